# SPDX-License-Identifier: MIT
"""Arrays as the library sees them, without copies where they are contiguous.

Accepted are objects that numpy reads (ndarray, __array_interface__, buffers, __array__) and objects
with DLPack (__dlpack__): arrays of most array libraries, if they are in this machine's memory.
"""

from __future__ import annotations

import ctypes as C
import os
from collections.abc import Mapping
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ._abi import _FLOATS, _INTS, _Tensor
from ._words import _BITS, _RAW, _dtype, _dtype_name

Array = NDArray[Any]

# Protocols that numpy reads itself. Its arrays have __dlpack__, too, which refuses read-only ones.
_NUMPY_READS = ("__array_interface__", "__array_struct__", "__array__")


def _no_path(data: Any) -> None:
    """Refuses a path in place of an array, with what reads it."""
    if isinstance(data, (str, bytes, os.PathLike)):
        raise TypeError(f"arrays are needed, not the path {os.fspath(data)!r}: qsim.read_array(path) "
                        "reads .npy, numpy.load(path) also .npz; PIL or OpenCV read pictures, each "
                        "an array (examples/photos.py does a folder)")


def _asarray(value: Any, dtype: Any = None) -> Array:
    """The array in `value`, sharing its memory; a value without a type of its own, like a list,
    gets `dtype`."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not any(hasattr(value, name) for name in _NUMPY_READS):
        return np.from_dlpack(value)
    if isinstance(value, (list, tuple, int, float, bool)):
        return np.asarray(value, dtype)
    _no_path(value)
    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError(f"an array is needed, not {type(value).__name__}")
    return array


def _array(values: Any, dtype: Any = None) -> Array:
    """An array as the library reads it: contiguous, aligned, of this machine's byte order. A scalar
    keeps its rank."""
    array = _asarray(values, dtype)
    if dtype is not None and array.dtype != dtype:
        array = array.astype(dtype)
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])  # array.ctypes takes five times as long


def _view(array: Array, dtype: Optional[int] = None,
          shape: Optional[Tuple[int, ...]] = None) -> _Tensor:
    """A qsim_tensor over an _array."""
    shape = array.shape if shape is None else shape
    dims = (C.c_int64 * max(len(shape), 1))(*shape)
    tensor = _Tensor(_dtype(array.dtype) if dtype is None else dtype, len(shape), dims,
                     _address(array), array.nbytes)
    tensor.keep = (array, dims)
    return tensor


def _views(arrays: Sequence[Array]) -> Any:
    return (_Tensor * max(len(arrays), 1))(*[_view(x) for x in arrays])


def _storage(dtype: int, shape: Tuple[int, ...], size: int) -> Tuple[Tuple[int, ...], str]:
    """Shape and numpy type of the array that holds a tensor."""
    name = _dtype_name(dtype)
    if name in _BITS:
        return (size,), "uint8"
    return shape, _RAW.get(name, name)


def _array_of(tensor: _Tensor) -> Array:
    """A copy of a qsim_tensor as a numpy array."""
    dims = tuple(tensor.dims[i] for i in range(tensor.rank))
    shape, kind = _storage(tensor.dtype, dims, tensor.bytes)
    out: Array = np.empty(shape, kind)
    if out.nbytes != tensor.bytes:
        raise TypeError(f"numpy cannot hold {_dtype_name(tensor.dtype)}")
    C.memmove(_address(out), tensor.data, tensor.bytes)
    return out


def _packed_bytes(count: int, name: str) -> int:
    return -(-count * _BITS[name] // 8)


def _floats(values: Any) -> Tuple[Array, Any]:
    array = np.ascontiguousarray(_asarray(values), np.float32)
    return array, array.ctypes.data_as(_FLOATS)


def _int32(values: Any) -> Array:
    """Whole numbers as int32: numpy would truncate fractions and wrap larger numbers."""
    array = _asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"integers are needed, not {array.dtype}")
    if array.size and (array.min() < -2**31 or array.max() >= 2**31):
        raise ValueError(f"{array.min()} to {array.max()} does not fit int32")
    return _array(array, np.int32)


def _number(value: Any) -> int:
    """One whole number, which ctypes would truncate to 32 bits."""
    return int(_int32(value).item())


def _ints(values: Any) -> Tuple[Array, Any]:
    array = _int32(values)
    return array, array.ctypes.data_as(_INTS)


def _batches(data: Iterable[Any], inputs: Sequence[Any]) -> Iterable[Any]:
    """The batches of `data`: its items, those that a CalibrationDataReader gives, or itself where it is
    one batch for `inputs`, a dict or an array of the first input's rank."""
    _no_path(data)
    if hasattr(data, "get_next") and not hasattr(data, "__iter__"):
        return iter(data.get_next, None)
    shape = inputs[0].shape if inputs else None
    whole = shape is not None and getattr(data, "ndim", None) == len(shape)
    return [data] if whole or isinstance(data, Mapping) else data


def _feed_all(feed: Callable[..., Any], data: Iterable[Any], inputs: Sequence[Any]) -> None:
    """Feeds every batch of an iterable: arrays, tuples of arrays, or dicts by input name."""
    for batch in _batches(data, inputs):
        feed(*batch) if isinstance(batch, tuple) else feed(batch)


def _bound(names: Sequence[str], given: Iterable[Any],
           named: Mapping[str, Any]) -> List[Any]:
    """The values for the inputs `names`, given in their order, as keywords, or as one dict."""
    given = list(given)
    if len(given) == 1 and isinstance(given[0], Mapping):
        given, named = [], {**given[0], **named}
    rest = list(names[len(given):])
    for name in named:
        if name not in rest:
            raise TypeError(f"input '{name}' is given twice" if name in names
                            else f"no input '{name}'; the model's are {', '.join(names)}")
    return given + [named[name] for name in rest if name in named]
