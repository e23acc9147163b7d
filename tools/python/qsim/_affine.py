# SPDX-License-Identifier: MIT
"""Affine quantization of arrays: q = saturate(round_half_even(x / scale) + zero_point)."""

from __future__ import annotations

import ctypes as C
from typing import Any, Optional, Tuple

import numpy as np

from ._abi import _QParams, _lib
from ._arrays import Array, _array, _floats, _ints, _packed_bytes, _view
from ._library import _call, _check
from ._words import _BITS, _NAMES, _dtype


def _range_flags(symmetric: bool, reduced: bool = False, narrow: bool = False) -> int:
    return (1 if symmetric else 0) | (2 if reduced else 0) | (4 if narrow else 0)


def limits(dtype: Any, symmetric: bool = False, reduced: bool = False,
           narrow: bool = False) -> Tuple[int, int]:
    """(lowest, highest) value that quantizing to `dtype` gives; keywords as in choose()."""
    low, high = C.c_int32(), C.c_int32()
    _check(_lib.qsim_dtype_limits(_dtype(dtype), _range_flags(symmetric, reduced, narrow),
                                  C.byref(low), C.byref(high)), where=f"limits of {dtype}")
    return low.value, high.value


def choose(low: float, high: float, dtype: Any = "uint8", symmetric: bool = False,
           reduced: bool = False, narrow: bool = False) -> Tuple[float, int]:
    """(scale, zero_point) for values between `low` and `high`; zero is always represented exactly.

    scale = (high - low) / (qmax - qmin), zero_point = round_half_even(qmin - low / scale), where
    the range is first widened to contain 0, and (qmin, qmax) is that of limits().

    `dtype`: "int8", "uint8", "int16", "uint16", "int32" or one of 2 or 4 bits. `symmetric`: the
    range is widened to [-m, m], the zero point is the middle of the type's range; `reduced`: 7
    bits; `narrow`: signed types without their lowest value."""
    scale, zero_point = C.c_float(), C.c_int32()
    _check(_lib.qsim_qparams_choose(low, high, _dtype(dtype),
                                    _range_flags(symmetric, reduced, narrow), C.byref(scale),
                                    C.byref(zero_point)), where=f"[{low}, {high}] as {dtype}")
    return scale.value, zero_point.value


def _scale_shape(shape: Tuple[int, ...], axis: Optional[int], block: int,
                 count: int) -> Tuple[int, ...]:
    if axis is None or count == 1 and block == 0:
        return ()
    axis %= len(shape)
    if block == 0:
        return (shape[axis],)
    return tuple(-(-n // block) if i == axis else n for i, n in enumerate(shape))


def measure(x: Any, dtype: Any = "int8", axis: Optional[int] = None, block: int = 0,
            symmetric: bool = False, reduced: bool = False,
            narrow: bool = False) -> Tuple[Array, Array]:
    """(scale, zero_point) from the least and the greatest value of `x`, as choose() does: float32
    and int32 arrays of shape () for the whole tensor, [channels] for each channel of `axis`, or x's
    shape with ceil(size / block) along `axis` for each block of `block` values along it."""
    x = _array(x, np.float32)
    count = C.c_size_t(1)
    if axis is not None:
        dims = (C.c_int64 * max(x.ndim, 1))(*x.shape)
        _check(_lib.qsim_qparams_count(x.ndim, dims, axis, block, C.byref(count)),
               where=f"axis {axis}, block {block} of {x.shape}")
    scale, scale_p = _floats(np.empty(count.value, np.float32))
    zero, zero_p = _ints(np.empty(count.value, np.int32))
    _call("qsim_qparams_measure", C.byref(_view(x)), _dtype(dtype), axis or 0, block,
          _range_flags(symmetric, reduced, narrow), count.value, scale_p, zero_p)
    shape = _scale_shape(x.shape, axis, block, count.value)
    return scale.reshape(shape), zero.reshape(shape)


def _qparams(scale: Any, zero_point: Any, dtype: int, axis: Optional[int], block: int) -> _QParams:
    scale, scale_p = _floats(scale)
    zero, zero_p = _ints(np.broadcast_to(zero_point, scale.shape))
    params = _QParams(dtype, axis or 0, block, scale.size, scale_p, zero_p)
    params.keep = (scale, zero)
    return params


def _quantize_array(x: Any, scale: Any, zero_point: Any, dtype: Any, axis: Optional[int],
                    block: int) -> Array:
    x = _array(x, np.float32)
    number = _dtype(dtype)
    name = _NAMES[number]
    packed = name in _BITS
    out: Array = np.empty(_packed_bytes(x.size, name) if packed else x.shape,
                          np.uint8 if packed else name)
    _call("qsim_tensor_quantize", C.byref(_view(x)),
          C.byref(_qparams(scale, zero_point, number, axis, block)),
          C.byref(_view(out, number, x.shape)))
    return out


def dequantize(q: Any, scale: Any, zero_point: Any = 0, dtype: Any = None,
               axis: Optional[int] = None, block: int = 0,
               shape: Optional[Tuple[int, ...]] = None) -> Array:
    """(q - zero_point) * scale as float32, of q's shape. `scale` and `zero_point`, `axis` and
    `block` are those of quantize(). Types of 2 and 4 bits, which are packed in bytes, need `dtype`
    and `shape`, that of the result."""
    q = _array(q)
    number = _dtype(q.dtype if dtype is None else dtype)
    if shape is None and _NAMES[number] in _BITS:
        raise ValueError(f"bytes of {_NAMES[number]} do not say their shape: it has to be given")
    shape = q.shape if shape is None else tuple(shape)
    out: Array = np.empty(shape, np.float32)
    _call("qsim_tensor_dequantize", C.byref(_view(q, number, shape)),
          C.byref(_qparams(scale, zero_point, number, axis, block)), C.byref(_view(out)))
    return out
