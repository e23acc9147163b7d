# SPDX-License-Identifier: MIT
"""Arrays from files that numpy does not read: IDX, TensorProto; .npy without evaluating its
header."""

from __future__ import annotations

import ctypes as C
import gzip
import os
from typing import Any, Optional, Union

import numpy as np

from ._abi import _ArrayInfo, _lib, _utf8
from ._arrays import Array, _array, _storage, _view
from ._library import _call, _check


# First bytes of files that are no arrays, with what reads them.
_OTHER_FILES = {b"PK": "a zip archive: numpy.load reads .npz", b"\xff\xd8": "a JPEG picture: PIL reads it",
                b"\x89P": "a PNG picture: PIL reads it"}


def read_array(source: Union[str, "os.PathLike[str]", bytes]) -> Array:
    """The array in a file, given by its path or its bytes: .npy, IDX (the format of MNIST) or an
    ONNX TensorProto (.pb), gzipped or not; the first bytes tell the format. It has the file's type
    and shape; 2 and 4 bits are packed bytes, bfloat16 and float8 their bits."""
    data = source if isinstance(source, bytes) else _contents(source)
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:2] in _OTHER_FILES:
        raise ValueError(f"no array, but {_OTHER_FILES[data[:2]]}")
    info, size = _ArrayInfo(), len(data)
    if data[:6] == b"\x93NUMPY":
        _call("qsim_npy_parse", data, size, 0, C.byref(info))
    elif data[:2] == b"\0\0":
        _call("qsim_idx_parse", data, size, C.byref(info))
    else:
        _call("qsim_proto_parse", data, size, C.byref(info))
        out = _empty(info)
        _call("qsim_proto_read", data, size, out.ctypes.data, out.nbytes)
        return out
    out = _empty(info)
    count = info.dims[0] if info.rank else 1
    _call("qsim_array_read", C.byref(info), data, size, 0, count, out.ctypes.data, out.nbytes)
    return out


def _contents(path: Union[str, "os.PathLike[str]"]) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def _empty(info: _ArrayInfo) -> Array:
    shape = tuple(info.dims[i] for i in range(info.rank))
    return np.empty(*_storage(info.dtype, shape, info.bytes))


def dump_proto(array: Any, name: Optional[str] = None) -> bytes:
    """An array as the bytes of an ONNX TensorProto, like input_0.pb of ONNX's tests."""
    view, need = _view(_array(array)), C.c_size_t()
    text = _utf8(name) if name else None
    _check(_lib.qsim_proto_write(C.byref(view), text, None, 0, C.byref(need)))
    buffer = C.create_string_buffer(need.value)
    _check(_lib.qsim_proto_write(C.byref(view), text, buffer, need.value, C.byref(need)))
    return buffer.raw
