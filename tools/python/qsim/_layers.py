# SPDX-License-Identifier: MIT
"""Quantized layers on plain arrays: convolution, linear layer, requantization."""

from __future__ import annotations

import ctypes as C
from typing import Any, Optional, Tuple

import numpy as np

from ._abi import _OpOptions, _lib
from ._arrays import Array, _array, _floats, _int32, _ints, _number, _view
from ._context import _ctx
from ._library import _call, _check
from ._words import _dtype


def _limits(dtype: Any) -> Tuple[int, int]:
    info = np.iinfo(dtype)
    return info.min, info.max


def _requantized(function: Any, acc: Any, factors: Tuple[Any, ...], count: int, zero_point: Any,
                 dtype: Any, lo: Any, hi: Any) -> Array:
    acc = _int32(acc)
    channels = acc.shape[-1] if acc.ndim else 1
    low, high = _limits(dtype)
    out: Array = np.empty(acc.shape, dtype)
    _check(function(acc.ctypes.data, acc.size // max(channels, 1), channels, *factors, count,
                    _number(zero_point), _number(low if lo is None else lo),
                    _number(high if hi is None else hi), _dtype(dtype), out.ctypes.data),
           where=f"requantize {acc.shape} by {count} multipliers to {dtype}")
    return out


def requantize(acc: Any, multiplier: Any, zero_point: int = 0, dtype: Any = "uint8",
               lo: Optional[int] = None, hi: Optional[int] = None) -> Array:
    """int32 sums to 8 bits: round_half_even(clamp(acc * multiplier, lo - zero_point, hi -
    zero_point)) + zero_point.

    `acc` is int32 [..., channels]; `multiplier` one float or one per channel, x_scale * w_scale /
    y_scale; `dtype` "uint8" or "int8"; [lo, hi] bound the result (default: the type's limits; a
    fused ReLU is lo=zero_point). Returns an array of `dtype` and acc's shape."""
    m, m_p = _floats(np.atleast_1d(multiplier))
    return _requantized(_lib.qsim_requantize, acc, (m_p,), m.size, zero_point, dtype, lo, hi)


def fixed_from_float(multiplier: float) -> Tuple[int, int]:
    """(m, shift) with which requantize_fixed() multiplies: multiplier = m * 2^(shift - 31)."""
    m, shift = C.c_int32(), C.c_int32()
    _check(_lib.qsim_fixed_from_float(multiplier, C.byref(m), C.byref(shift)),
           where=f"multiplier {multiplier}")
    return m.value, shift.value


def requantize_fixed(acc: Any, m: Any, shift: Any, zero_point: int = 0, dtype: Any = "uint8",
                     lo: Optional[int] = None, hi: Optional[int] = None) -> Array:
    """requantize() in integers only, by the definition of gemmlowp and TensorFlow Lite; `m` and
    `shift` are one pair of fixed_from_float(), or arrays of one per channel."""
    ms, m_p = _ints(np.atleast_1d(m))
    shifts, shift_p = _ints(np.atleast_1d(shift))
    if ms.shape != shifts.shape:
        raise ValueError(f"{ms.size} multipliers and {shifts.size} shifts do not go together")
    return _requantized(_lib.qsim_requantize_fixed, acc, (m_p, shift_p), ms.size, zero_point, dtype,
                        lo, hi)


def _pair(value: Any) -> Tuple[int, ...]:
    return (value, value) if np.isscalar(value) else tuple(value)


def _layer(name: str, x: Array, w: Array, y_shape: Tuple[int, ...], options: _OpOptions,
           x_zero_point: Any, w_zero_point: Any, bias: Any, multiplier: Any, y_zero_point: Any,
           dtype: Any, relu: bool) -> Array:
    """The common part of conv2d and linear: the arithmetic options and the call."""
    keep = []
    wz, wz_p = _ints(np.atleast_1d(w_zero_point))
    options.x_zero_point, y_zero_point = _number(x_zero_point), _number(y_zero_point)
    options.w_zero_point, options.w_zero_points = wz_p, wz.size
    if bias is not None:
        b, options.bias = _ints(bias)
        if b.shape != w.shape[:1]:
            raise ValueError(f"bias is {b.shape}, one for each of {w.shape[0]} channels is needed")
        keep.append(b)
    kind: Any = np.int32
    if multiplier is not None:
        m, options.multiplier = _floats(np.atleast_1d(multiplier))
        keep.append(m)
        kind = np.dtype(dtype)
        low, high = _limits(kind)
        options.multipliers, options.y_zero_point = m.size, y_zero_point
        options.lo, options.hi = (max(low, y_zero_point) if relu else low), high
    y: Array = np.empty(y_shape, kind)
    _call(name, _ctx, C.byref(_view(x)), C.byref(_view(w)), C.byref(options), C.byref(_view(y)))
    return y


def conv2d(x: Any, w: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
           x_zero_point: int = 0, w_zero_point: Any = 0, bias: Any = None, multiplier: Any = None,
           y_zero_point: int = 0, dtype: Any = "uint8", relu: bool = False) -> Array:
    """Integer convolution. x: [N, C, H, W], w: [O, C / groups, kh, kw], both uint8 or int8.

    `stride` and `dilation` are a number or (h, w), `padding` a number, (h, w), or (top, left,
    bottom, right); padding holds x_zero_point. `w_zero_point` is one number or one for each output
    channel; `bias`: int32 [O], in units of the sums, x_scale * w_scale. Without `multiplier` the
    int32 sums [N, O, oh, ow] are returned; with it (one float or one per output channel) they are
    requantized to `dtype`, "uint8" or "int8", as requantize() does, with a fused ReLU if `relu`."""
    x, w = _array(x), _array(w)
    if x.ndim != 4 or w.ndim != 4:
        raise ValueError(f"x and w have 4 axes, not {x.ndim} and {w.ndim}")
    (sh, sw), (dh, dw) = _pair(stride), _pair(dilation)
    if min(sh, sw, dh, dw) < 1:
        raise ValueError(f"stride {stride} and dilation {dilation} have to be at least 1")
    pads = _pair(padding)
    top, left, bottom, right = pads if len(pads) == 4 else pads * 2
    height = (x.shape[2] + top + bottom - dh * (w.shape[2] - 1) - 1) // sh + 1
    width = (x.shape[3] + left + right - dw * (w.shape[3] - 1) - 1) // sw + 1
    if min(height, width) < 1:
        raise ValueError(f"a window of {w.shape[2:]} does not fit an image of {x.shape[2:]}")
    options = _OpOptions(groups=groups, stride_h=sh, stride_w=sw, dilation_h=dh, dilation_w=dw,
                         pad_top=top, pad_left=left, pad_bottom=bottom, pad_right=right)
    return _layer("qsim_conv2d", x, w, (x.shape[0], w.shape[0], height, width), options,
                  x_zero_point, w_zero_point, bias, multiplier, y_zero_point, dtype, relu)


def linear(x: Any, w: Any, x_zero_point: int = 0, w_zero_point: Any = 0, bias: Any = None,
           multiplier: Any = None, y_zero_point: int = 0, dtype: Any = "uint8",
           relu: bool = False) -> Array:
    """Integer linear layer x w^T + bias. x: [rows, terms], w: [outputs, terms], bias: int32
    [outputs]; returns [rows, outputs]; else as conv2d()."""
    x, w = _array(x), _array(w)
    if x.ndim != 2 or w.ndim != 2:
        raise ValueError(f"x and w have 2 axes, not {x.ndim} and {w.ndim}")
    return _layer("qsim_linear", x, w, (x.shape[0], w.shape[0]), _OpOptions(), x_zero_point,
                  w_zero_point, bias, multiplier, y_zero_point, dtype, relu)
