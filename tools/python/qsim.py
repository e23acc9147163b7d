# SPDX-License-Identifier: MIT
"""libqsim from Python: quantize, calibrate and run neural networks.

One file over ctypes; needs numpy and the shared library (libqsim.so.0), nothing else.

    import qsim
    model = qsim.Model.load("model.onnx")
    calibration = qsim.Calibration(model)
    for batch in batches:                       # float32 arrays
        calibration.feed(batch)
    int8 = model.quantize(calibration, method="mse")
    int8.save("int8.onnx")
    logits, = qsim.Session(int8).run(batch)

The library is looked for in $QSIM_LIBRARY, beside this file, then where the system looks. Arrays go
in and out as numpy arrays; contiguous input is not copied. Failures raise qsim.Error with the
library's own message. Objects may be used from several threads as include/qsim says: models and
sessions freely, runs, observers and calibrations by one thread at a time.
"""

import ctypes as C
import json
import os
import threading

import numpy as np

__all__ = [
    "Builder", "Calibration", "Error", "Model", "Observer", "Package", "Profile", "Recipe", "Session",
    "choose", "compare", "conv2d", "dequantize", "linear", "mcnemar", "measure", "quantize",
    "requantize", "version",
]

# ---- the library ------------------------------------------------------------------------------


def _open():
    here = os.path.dirname(os.path.abspath(__file__))
    tried = []
    for path in (os.environ.get("QSIM_LIBRARY"), os.path.join(here, "libqsim.so.0"),
                 "libqsim.so.0", "libqsim.so"):
        if not path:
            continue
        try:
            return C.CDLL(path)
        except OSError as why:
            tried.append(f"{path}: {why}")
    raise ImportError("libqsim was not found; set QSIM_LIBRARY to its path\n" + "\n".join(tried))


_lib = _open()
_P = C.c_void_p
_MAX_RANK = 16


class _ErrorStruct(C.Structure):
    _fields_ = [("code", C.c_int32), ("flags", C.c_int32), ("message", C.c_char * 384),
                ("hint", C.c_char * 192)]


class _Tensor(C.Structure):
    _fields_ = [("dtype", C.c_int32), ("rank", C.c_int32), ("dims", C.POINTER(C.c_int64)),
                ("data", _P), ("bytes", C.c_size_t)]


class _QParams(C.Structure):
    _fields_ = [("dtype", C.c_int32), ("axis", C.c_int32), ("block", C.c_int64),
                ("count", C.c_size_t), ("scale", C.POINTER(C.c_float)),
                ("zero_point", C.POINTER(C.c_int32))]


class _Options(C.Structure):
    """An options or info struct: struct_size is filled in."""

    def __init__(self, **fields):
        super().__init__(struct_size=C.sizeof(self), **fields)


class Error(Exception):
    """A failure of the library: `code` (QSIM_E_*), `name`, `message` and `hint`."""

    def __init__(self, code, message="", hint=""):
        self.code = code
        self.name = _lib.qsim_error_name(code).decode()
        self.message = message or _lib.qsim_error_text(code).decode()
        self.hint = hint
        super().__init__(self.message + (f" ({hint})" if hint else ""))


def _declare(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype = result
    function.argtypes = arguments


def _check(code, error=None, where=None):
    """Raises what a negative code and its qsim_error tell; `where`, of functions without one."""
    if code < 0:
        if error is not None and error.code:
            raise Error(code, error.message.decode(), error.hint.decode())
        raise Error(code, where and f"{where}: {_lib.qsim_error_text(code).decode()}")
    return code


def _call(name, *arguments):
    """Calls a function whose last parameter is a qsim_error *."""
    error = _ErrorStruct()
    return _check(getattr(_lib, name)(*arguments, C.byref(error)), error)


_declare("qsim_version_string", C.c_char_p)
_declare("qsim_error_name", C.c_char_p, C.c_int)
_declare("qsim_error_text", C.c_char_p, C.c_int)


def version():
    """Version of the library that is loaded, for instance "0.1.0"."""
    return _lib.qsim_version_string().decode()


# ---- arrays -----------------------------------------------------------------------------------

# numpy has no 4-bit and 2-bit types: those are given by name, and their arrays hold packed bytes.
_DTYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "uint4": 21, "int4": 22,
    "uint2": 25, "int2": 26,
}
_NAMES = {number: name for name, number in _DTYPES.items()}
_BITS = {"uint4": 4, "int4": 4, "uint2": 2, "int2": 2}


def _dtype(name):
    name = name if isinstance(name, str) else np.dtype(name).name
    if name not in _DTYPES:
        raise TypeError(f"libqsim has no data type {name!r}")
    return _DTYPES[name]


def _array(values, dtype=None):
    """An array as the library reads it: contiguous, aligned, of this machine's byte order. A scalar
    keeps its rank."""
    array = np.asarray(values, dtype)
    return np.require(array, array.dtype.newbyteorder("="), "CA")


def _view(array, dtype=None, shape=None):
    """A qsim_tensor over an _array, which must stay alive."""
    shape = array.shape if shape is None else shape
    dims = (C.c_int64 * max(len(shape), 1))(*shape)
    tensor = _Tensor(_dtype(array.dtype) if dtype is None else dtype, len(shape), dims,
                     array.ctypes.data, array.nbytes)
    tensor.keep = (array, dims)
    return tensor


def _array_of(tensor):
    """A copy of what a qsim_tensor shows, as a numpy array."""
    shape = [tensor.dims[i] for i in range(tensor.rank)]
    out = np.empty(shape, _NAMES[tensor.dtype])
    C.memmove(out.ctypes.data, tensor.data, tensor.bytes)
    return out


def _floats(values):
    array = np.ascontiguousarray(values, np.float32)
    return array, array.ctypes.data_as(C.POINTER(C.c_float))


def _int32(values):
    """Whole numbers as int32: numpy would cut fractions off and wrap what does not fit."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"integers are needed, not {array.dtype}")
    if array.size and (array.min() < -2**31 or array.max() >= 2**31):
        raise ValueError(f"{array.min()} to {array.max()} does not fit int32")
    return _array(array, np.int32)


def _number(value):
    """One whole number that ctypes would cut to 32 bits."""
    return _int32(value).item()


def _ints(values):
    array = _int32(values)
    return array, array.ctypes.data_as(C.POINTER(C.c_int32))


# ---- affine quantization ----------------------------------------------------------------------

_declare("qsim_qparams_choose", C.c_int, C.c_float, C.c_float, C.c_int32, C.c_int32,
         C.POINTER(C.c_float), C.POINTER(C.c_int32))
_declare("qsim_qparams_count", C.c_int, C.c_int32, C.POINTER(C.c_int64), C.c_int32, C.c_int64,
         C.POINTER(C.c_size_t))
_declare("qsim_qparams_measure", C.c_int, C.POINTER(_Tensor), C.c_int32, C.c_int32, C.c_int64,
         C.c_int32, C.c_size_t, C.POINTER(C.c_float), C.POINTER(C.c_int32), C.POINTER(_ErrorStruct))
for _name in ("qsim_tensor_quantize", "qsim_tensor_dequantize"):
    _declare(_name, C.c_int, C.POINTER(_Tensor), C.POINTER(_QParams), C.POINTER(_Tensor),
             C.POINTER(_ErrorStruct))


def _range_flags(symmetric, reduced, narrow):
    return (1 if symmetric else 0) | (2 if reduced else 0) | (4 if narrow else 0)


def choose(low, high, dtype="uint8", symmetric=False, reduced=False, narrow=False):
    """(scale, zero_point) for values between `low` and `high`; zero is always represented exactly.

    symmetric: the zero point is the middle of the range; reduced: 7 bits; narrow: signed types
    without their lowest value."""
    scale, zero_point = C.c_float(), C.c_int32()
    _check(_lib.qsim_qparams_choose(low, high, _dtype(dtype),
                                    _range_flags(symmetric, reduced, narrow), C.byref(scale),
                                    C.byref(zero_point)), where=f"[{low}, {high}] as {dtype}")
    return scale.value, zero_point.value


def _scale_shape(shape, axis, block, count):
    if axis is None or count == 1 and block == 0:
        return ()
    axis %= len(shape)
    if block == 0:
        return (shape[axis],)
    return tuple(-(-n // block) if i == axis else n for i, n in enumerate(shape))


def measure(x, dtype="int8", axis=None, block=0, symmetric=False, reduced=False, narrow=False):
    """(scale, zero_point) arrays from the range of `x`: per tensor, per channel of `axis`, or per
    block of `block` values along `axis`."""
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


def _qparams(scale, zero_point, dtype, axis, block):
    scale, scale_p = _floats(scale)
    zero, zero_p = _ints(np.broadcast_to(zero_point, scale.shape))
    params = _QParams(dtype, axis or 0, block, scale.size, scale_p, zero_p)
    params.keep = (scale, zero)
    return params


def _packed_bytes(count, dtype):
    return -(-count * _BITS[dtype] // 8)


def quantize(x, scale, zero_point=0, dtype="uint8", axis=None, block=0):
    """Quantizes float values: saturate(round_half_even(x / scale) + zero_point).

    `scale` and `zero_point` are numbers, one per channel of `axis`, or one per block. Returns an
    array of `dtype` and x's shape; for "int4", "uint4", "int2" and "uint2" the packed bytes."""
    x = _array(x, np.float32)
    number = _dtype(dtype)
    name = _NAMES[number]
    out = np.empty(_packed_bytes(x.size, name), np.uint8) if name in _BITS else np.empty(x.shape, name)
    _call("qsim_tensor_quantize", C.byref(_view(x)),
          C.byref(_qparams(scale, zero_point, number, axis, block)),
          C.byref(_view(out, number, x.shape)))
    return out


def dequantize(q, scale, zero_point=0, dtype=None, axis=None, block=0, shape=None):
    """(q - zero_point) * scale as float32. Packed types need `dtype` and `shape`."""
    q = _array(q)
    number = _dtype(q.dtype if dtype is None else dtype)
    if shape is None and _NAMES[number] in _BITS:
        raise ValueError(f"bytes of {_NAMES[number]} do not say their shape: it has to be given")
    shape = q.shape if shape is None else tuple(shape)
    out = np.empty(shape, np.float32)
    _call("qsim_tensor_dequantize", C.byref(_view(q, number, shape)),
          C.byref(_qparams(scale, zero_point, number, axis, block)), C.byref(_view(out)))
    return out


# ---- layers on plain arrays -------------------------------------------------------------------


class _OpOptions(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("flags", C.c_int32), ("groups", C.c_int32),
                ("stride_h", C.c_int32), ("stride_w", C.c_int32), ("dilation_h", C.c_int32),
                ("dilation_w", C.c_int32), ("pad_top", C.c_int32), ("pad_left", C.c_int32),
                ("pad_bottom", C.c_int32), ("pad_right", C.c_int32), ("x_zero_point", C.c_int32),
                ("w_zero_point", C.POINTER(C.c_int32)), ("w_zero_points", C.c_size_t),
                ("bias", C.POINTER(C.c_int32)), ("multiplier", C.POINTER(C.c_float)),
                ("multipliers", C.c_size_t), ("y_zero_point", C.c_int32), ("lo", C.c_int32),
                ("hi", C.c_int32)]


_declare("qsim_ctx_create", C.c_int, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_requantize", C.c_int, _P, C.c_size_t, C.c_size_t, C.POINTER(C.c_float), C.c_size_t,
         C.c_int32, C.c_int32, C.c_int32, C.c_int32, _P)
for _name in ("qsim_conv2d", "qsim_linear"):
    _declare(_name, C.c_int, _P, C.POINTER(_Tensor), C.POINTER(_Tensor), C.POINTER(_OpOptions),
             C.POINTER(_Tensor), C.POINTER(_ErrorStruct))

_declare("qsim_ctx_free", None, _P)
_declare("qsim_isa_name", C.c_char_p, C.c_int32)

_ctx = _P()
_call("qsim_ctx_create", None, C.byref(_ctx))


def _limits(dtype):
    info = np.iinfo(dtype)
    return info.min, info.max


def requantize(acc, multiplier, zero_point=0, dtype="uint8", lo=None, hi=None):
    """int32 sums to 8 bits: round_half_even(clamp(acc * multiplier)) + zero_point.

    `acc` is [..., channels]; `multiplier` one float or one per channel; [lo, hi] bound the result
    (a fused ReLU is lo=zero_point)."""
    acc = _int32(acc)
    m, m_p = _floats(np.atleast_1d(multiplier))
    channels = acc.shape[-1] if acc.ndim else 1
    low, high = _limits(dtype)
    out = np.empty(acc.shape, dtype)
    _check(_lib.qsim_requantize(
        acc.ctypes.data, acc.size // max(channels, 1), channels, m_p, m.size, _number(zero_point),
        _number(low if lo is None else lo), _number(high if hi is None else hi), _dtype(dtype), out.ctypes.data),
        where=f"requantize {acc.shape} by {m.size} multipliers to {dtype}")
    return out


def _pair(value):
    return (value, value) if np.isscalar(value) else tuple(value)


def _layer(name, x, w, y_shape, options, x_zero_point, w_zero_point, bias, multiplier, y_zero_point,
           dtype, relu):
    """What conv2d and linear share: the arithmetic options and the call."""
    keep = []
    wz, wz_p = _ints(np.atleast_1d(w_zero_point))
    options.x_zero_point, y_zero_point = _number(x_zero_point), _number(y_zero_point)
    options.w_zero_point, options.w_zero_points = wz_p, wz.size
    if bias is not None:
        b, options.bias = _ints(bias)
        if b.shape != w.shape[:1]:
            raise ValueError(f"bias is {b.shape}, one for each of {w.shape[0]} channels is needed")
        keep.append(b)
    kind = np.int32
    if multiplier is not None:
        m, options.multiplier = _floats(np.atleast_1d(multiplier))
        keep.append(m)
        kind = np.dtype(dtype)
        low, high = _limits(kind)
        options.multipliers, options.y_zero_point = m.size, y_zero_point
        options.lo, options.hi = (max(low, y_zero_point) if relu else low), high
    y = np.empty(y_shape, kind)
    _call(name, _ctx, C.byref(_view(x)), C.byref(_view(w)), C.byref(options), C.byref(_view(y)))
    return y


def conv2d(x, w, stride=1, padding=0, dilation=1, groups=1, x_zero_point=0, w_zero_point=0,
           bias=None, multiplier=None, y_zero_point=0, dtype="uint8", relu=False):
    """Integer convolution. x: [N, C, H, W], w: [O, C / groups, kh, kw], both uint8 or int8.

    `padding` is a number, (h, w), or (top, left, bottom, right) and holds x_zero_point. Without
    `multiplier` the int32 sums are returned; with it (one float or one per output channel) uint8 or
    int8, ReLU fused on demand."""
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


def linear(x, w, x_zero_point=0, w_zero_point=0, bias=None, multiplier=None, y_zero_point=0,
           dtype="uint8", relu=False):
    """Integer linear layer. x: [rows, terms], w: [outputs, terms]; else as conv2d."""
    x, w = _array(x), _array(w)
    if x.ndim != 2 or w.ndim != 2:
        raise ValueError(f"x and w have 2 axes, not {x.ndim} and {w.ndim}")
    return _layer("qsim_linear", x, w, (x.shape[0], w.shape[0]), _OpOptions(), x_zero_point,
                  w_zero_point, bias, multiplier, y_zero_point, dtype, relu)


# ---- observers --------------------------------------------------------------------------------


class _Words(dict):
    """What constants are called here."""

    def __missing__(self, word):
        raise ValueError(f"{word!r} is none of {', '.join(self)}")


_METHODS = _Words({"minmax": 0, "percentile": 1, "mse": 2, "entropy": 3})

_declare("qsim_observer_create", C.c_int, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_observer_free", None, _P)
_declare("qsim_observer_feed", C.c_int, _P, C.POINTER(C.c_float), C.c_size_t)
_declare("qsim_observer_merge", C.c_int, _P, _P)
_declare("qsim_observer_count", C.c_uint64, _P)
_declare("qsim_observer_min", C.c_float, _P)
_declare("qsim_observer_max", C.c_float, _P)
_declare("qsim_observer_range", C.c_int, _P, C.c_int32, C.c_double, C.c_int32, C.c_int32,
         C.POINTER(C.c_float), C.POINTER(C.c_float))


class _Handle:
    """Owns an opaque object of the library."""

    _free = None
    _made_by = "the library"

    def __init__(self, pointer=None):
        if not isinstance(pointer, _P):
            raise TypeError(f"{self._made_by} makes a {type(self).__name__}")
        self._pointer = pointer

    @classmethod
    def _of(cls, value):
        """The library's object in `value`, which has to be one of this class."""
        if not isinstance(value, cls):
            raise TypeError(f"{cls.__name__} is needed, not {type(value).__name__}")
        return value._pointer

    def __del__(self):
        if getattr(self, "_pointer", None):
            getattr(_lib, self._free)(self._pointer)
            self._pointer = None


class Observer(_Handle):
    """Watches values stream by in constant memory and yields the range to quantize them with."""

    _free = "qsim_observer_free"

    def __init__(self):
        pointer = _P()
        _call("qsim_observer_create", _ctx, C.byref(pointer))
        super().__init__(pointer)

    def feed(self, values):
        """Records an array. NaN and infinity are refused. Returns self."""
        array, pointer = _floats(values)
        _check(_lib.qsim_observer_feed(self._pointer, pointer, array.size), where="values fed")
        return self

    def merge(self, other):
        """Adds what another observer has seen; exact, in any order. Returns self."""
        _check(_lib.qsim_observer_merge(self._pointer, Observer._of(other)), where="merging")
        return self

    @property
    def count(self):
        """How many values were fed."""
        return _lib.qsim_observer_count(self._pointer)

    @property
    def limits(self):
        """(least, greatest) value seen."""
        return (_lib.qsim_observer_min(self._pointer), _lib.qsim_observer_max(self._pointer))

    def range(self, method="minmax", percentile=0.0, dtype="uint8", symmetric=False):
        """(low, high) that `method` keeps: "minmax", "percentile", "mse" or "entropy"."""
        low, high = C.c_float(), C.c_float()
        _check(_lib.qsim_observer_range(self._pointer, _METHODS[method], percentile, _dtype(dtype),
                                        _range_flags(symmetric, False, False), C.byref(low),
                                        C.byref(high)),
               where=f"range by {method} for {dtype} of {self.count} values")
        return low.value, high.value


# ---- models -----------------------------------------------------------------------------------


class _ValueInfo(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("dims", C.POINTER(C.c_int64)),
                ("dim_names", C.POINTER(C.c_char_p)), ("data", _P), ("bytes", C.c_size_t),
                ("dtype", C.c_int32), ("rank", C.c_int32)]


class _NodeInfo(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("domain", C.c_char_p),
                ("op_type", C.c_char_p), ("inputs", C.POINTER(C.c_char_p)),
                ("outputs", C.POINTER(C.c_char_p)), ("input_count", C.c_int32),
                ("output_count", C.c_int32), ("macs", C.c_int64), ("integer", C.c_int32),
                ("reserved", C.c_int32)]


class _SaveOptions(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("flags", C.c_int32), ("reserved", C.c_int32)]


_declare("qsim_model_load", C.c_int, _P, C.c_char_p, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_model_load_memory", C.c_int, _P, _P, C.c_size_t, _P, C.POINTER(_P),
         C.POINTER(_ErrorStruct))
_declare("qsim_model_save", C.c_int, _P, C.c_char_p, _P, C.POINTER(_ErrorStruct))
_declare("qsim_model_save_memory", C.c_int, _P, _P, C.c_size_t, C.POINTER(C.c_size_t),
         C.POINTER(_ErrorStruct))
_declare("qsim_model_free", None, _P)
for _name in ("input", "output", "node"):
    _declare(f"qsim_model_{_name}_count", C.c_int32, _P)
    _declare(f"qsim_model_{_name}", C.c_int, _P, C.c_int32, _P)
_declare("qsim_model_opset", C.c_int64, _P, C.c_char_p)
_declare("qsim_model_parameters", C.c_int64, _P)
_declare("qsim_model_optimize", C.c_int, _P, C.c_int32, C.POINTER(_P), C.POINTER(_ErrorStruct))
_LEVELS = _Words({"default": 0, "disable": 1, "basic": 2, "extended": 3, "all": 4})


class Value:
    """Name, dtype and shape of a model's input or output; a symbolic size is its name."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.dtype = _NAMES.get(info.dtype, f"type {info.dtype}")
        self.shape = None
        if info.rank >= 0:
            self.shape = tuple(
                info.dims[i] if info.dims[i] >= 0 else
                (info.dim_names[i] or b"?").decode() for i in range(info.rank))

    def __repr__(self):
        return f"<{self.name}: {self.dtype} {self.shape}>"


class Node:
    """A node of the graph: name, op_type, domain, inputs, outputs, macs, integer."""

    def __init__(self, info):
        self.name, self.op_type, self.domain = (
            info.name.decode(), info.op_type.decode(), info.domain.decode())
        self.inputs = [info.inputs[i].decode() for i in range(info.input_count)]
        self.outputs = [info.outputs[i].decode() for i in range(info.output_count)]
        self.macs, self.integer = info.macs, bool(info.integer)

    def __repr__(self):
        return f"<{self.op_type} '{self.name}'>"


class Model(_Handle):
    """An ONNX model. Immutable; transformations return new ones."""

    _free = "qsim_model_free"
    _made_by = "Model.load(path)"

    @classmethod
    def load(cls, path):
        """Loads a model from an ONNX file or a package."""
        pointer = _P()
        _call("qsim_model_load", _ctx, os.fsencode(path), None, C.byref(pointer))
        return cls(pointer)

    @classmethod
    def loads(cls, data):
        """Loads a model from bytes."""
        data, pointer = bytes(data), _P()
        keep = C.create_string_buffer(data, len(data))
        _call("qsim_model_load_memory", _ctx, keep, len(data), None, C.byref(pointer))
        model = cls(pointer)
        model._bytes = keep
        return model

    def save(self, path, replace=True):
        """Writes the model as ONNX, atomically."""
        options = _SaveOptions(flags=1 if replace else 0)
        _call("qsim_model_save", self._pointer, os.fsencode(path), C.byref(options))

    def dumps(self):
        """The model as ONNX bytes."""
        need = C.c_size_t()
        _call("qsim_model_save_memory", self._pointer, None, 0, C.byref(need))
        buffer = C.create_string_buffer(need.value)
        _call("qsim_model_save_memory", self._pointer, buffer, need.value, C.byref(need))
        return buffer.raw

    def _list(self, what, struct, kind):
        result = []
        for i in range(getattr(_lib, f"qsim_model_{what}_count")(self._pointer)):
            info = struct()
            _check(getattr(_lib, f"qsim_model_{what}")(self._pointer, i, C.byref(info)))
            result.append(kind(info))
        return result

    @property
    def inputs(self):
        """The inputs that have to be given."""
        return self._list("input", _ValueInfo, Value)

    @property
    def outputs(self):
        """What run() returns."""
        return self._list("output", _ValueInfo, Value)

    @property
    def nodes(self):
        """Nodes in order of execution."""
        return self._list("node", _NodeInfo, Node)

    @property
    def opset(self):
        """Version of ai.onnx that the model imports."""
        return _lib.qsim_model_opset(self._pointer, b"")

    @property
    def parameters(self):
        """Elements of all weights."""
        return _lib.qsim_model_parameters(self._pointer)

    def _derived(self, pointer):
        model = Model(pointer)
        model._bytes = getattr(self, "_bytes", None)  # weights are shared, not copied
        return model

    def optimize(self, level="all"):
        """A model with constants folded, identities removed and BatchNormalization folded."""
        pointer = _P()
        _call("qsim_model_optimize", self._pointer, _LEVELS[level], C.byref(pointer))
        return self._derived(pointer)

    def quantize(self, calibration=None, recipe=None, decided=None, **options):
        """A quantized copy of an FP32 model; see `QUANTIZE_OPTIONS` for the options. The modes
        dynamic and weights need no calibration; with one, biases are corrected by its means.
        `recipe`, a Recipe, says what it names; `decided`, another, gets what was decided."""
        struct, keep = _quantize_options(options)
        struct.recipe = None if recipe is None else Recipe._of(recipe)
        struct.decided = None if decided is None else Recipe._of(decided)
        pointer = _P()
        _call("qsim_quantize", self._pointer,
              None if calibration is None else Calibration._of(calibration), C.byref(struct),
              C.byref(pointer))
        del keep
        return self._derived(pointer)

    def run(self, *inputs, **named):
        """Runs once and returns the list of outputs. For repeated runs make a Session."""
        return Session(self).run(*inputs, **named)


# ---- building ---------------------------------------------------------------------------------

_declare("qsim_builder_create", C.c_int, _P, C.c_int32, C.c_char_p, C.POINTER(_P),
         C.POINTER(_ErrorStruct))
_declare("qsim_builder_import", C.c_int, _P, C.c_char_p, C.c_int32)
_declare("qsim_builder_input_as", C.c_int, _P, C.c_char_p, C.c_char_p)
_declare("qsim_builder_output_as", C.c_int, _P, C.c_char_p, C.c_char_p)
_declare("qsim_builder_constant", C.c_int, _P, C.c_char_p, C.POINTER(_Tensor))
_declare("qsim_builder_node", C.c_int, _P, *[C.c_char_p] * 5)
_declare("qsim_builder_attr_int", C.c_int, _P, C.c_char_p, C.c_int64)
_declare("qsim_builder_attr_float", C.c_int, _P, C.c_char_p, C.c_float)
_declare("qsim_builder_attr_string", C.c_int, _P, C.c_char_p, C.c_char_p)
_declare("qsim_builder_attr_ints", C.c_int, _P, C.c_char_p, C.POINTER(C.c_int64), C.c_size_t)
_declare("qsim_builder_attr_floats", C.c_int, _P, C.c_char_p, C.POINTER(C.c_float), C.c_size_t)
_declare("qsim_builder_attr_tensor", C.c_int, _P, C.c_char_p, C.POINTER(_Tensor))
_declare("qsim_builder_metadata", C.c_int, _P, C.c_char_p, C.c_char_p)
_declare("qsim_builder_finish", C.c_int, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_builder_free", None, _P)


class Builder(_Handle):
    """A model made by calls, which may be chained; what is wrong is told by finish().

        b = qsim.Builder("linear").input("x", "float[N,64]").output("y")
        b.constant("W", W).constant("b", bias)
        b.node("MatMul", "x,W", "xW")
        b.node("Add", "xW,b", "y")
        model = b.finish()
    """

    _free = "qsim_builder_free"

    def __init__(self, name="model", opset=13):
        pointer = _P()
        _call("qsim_builder_create", _ctx, opset, name.encode(), C.byref(pointer))
        super().__init__(pointer)

    def domain(self, name, version):
        """Imports another operator domain."""
        _lib.qsim_builder_import(self._pointer, name.encode(), version)
        return self

    def input(self, name, type):
        """An input such as ("x", "float[N,64]")."""
        _lib.qsim_builder_input_as(self._pointer, name.encode(), type.encode())
        return self

    def output(self, name, type=None):
        """An output; without a type it is inferred."""
        _lib.qsim_builder_output_as(self._pointer, name.encode(), type and type.encode())
        return self

    def constant(self, name, array):
        """A constant with the array's type and shape."""
        view = _view(_array(array))
        _lib.qsim_builder_constant(self._pointer, name.encode(), C.byref(view))
        return self

    def node(self, op_type, inputs, outputs, name="", domain="", **attributes):
        """A node; inputs and outputs are comma-separated names. Attributes are ints, floats,
        strings, arrays (a tensor), or lists of ints or of floats."""
        _lib.qsim_builder_node(self._pointer, domain.encode(), op_type.encode(), name.encode(),
                               inputs.encode(), outputs.encode())
        for key, value in attributes.items():
            self._attribute(key, value)
        return self

    def _attribute(self, key, value):
        kind, arguments = None, (value,)
        if isinstance(value, np.ndarray):
            view = _view(_array(value))
            kind, arguments = "tensor", (C.byref(view),)
        elif isinstance(value, (int, np.integer)):
            kind, arguments = "int", (int(value),)
        elif isinstance(value, (float, np.floating)):
            kind = "float"
        elif isinstance(value, str):
            kind, arguments = "string", (value.encode(),)
        elif isinstance(value, (list, tuple)):
            whole = all(isinstance(v, (int, np.integer)) for v in value)
            kind = "ints" if whole else "floats"
            element = C.c_int64 if whole else C.c_float
            arguments = ((element * len(value))(*value), len(value))
        if kind is None:
            raise TypeError(f"attribute {key!r} cannot be {type(value).__name__}")
        getattr(_lib, f"qsim_builder_attr_{kind}")(self._pointer, key.encode(), *arguments)

    def metadata(self, key, value):
        """Adds or replaces a metadata_props entry."""
        _lib.qsim_builder_metadata(self._pointer, key.encode(), value.encode())
        return self

    def finish(self):
        """Checks everything, infers types and shapes and returns the Model; once."""
        pointer = _P()
        _call("qsim_builder_finish", self._pointer, C.byref(pointer))
        return Model(pointer)


# ---- packages ---------------------------------------------------------------------------------


class _PackageEntry(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("sha256", C.c_char_p),
                ("bytes", C.c_uint64), ("role", C.c_int32), ("stored", C.c_int32)]


_declare("qsim_package_open", C.c_int, _P, C.c_char_p, C.c_int32, C.POINTER(_P),
         C.POINTER(_ErrorStruct))
_declare("qsim_package_free", None, _P)
_declare("qsim_package_count", C.c_int32, _P)
_declare("qsim_package_get", C.c_int, _P, C.c_int32, _P)
_declare("qsim_package_find", C.c_int32, _P, C.c_char_p)
_declare("qsim_package_data", C.c_int, _P, C.c_int32, C.POINTER(_P), C.POINTER(C.c_size_t),
         C.POINTER(_ErrorStruct))
_declare("qsim_package_model", C.c_int, _P, C.c_char_p, _P, C.POINTER(_P),
         C.POINTER(_ErrorStruct))
_declare("qsim_package_unpack", C.c_int, _P, C.c_char_p, C.c_int32, C.POINTER(_ErrorStruct))
_declare("qsim_packer_create", C.c_int, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_packer_free", None, _P)
_declare("qsim_packer_model", C.c_int, _P, C.c_char_p, C.c_char_p, C.POINTER(_ErrorStruct))
_declare("qsim_packer_add", C.c_int, _P, C.c_int32, C.c_char_p, C.c_char_p, C.c_size_t,
         C.POINTER(_ErrorStruct))
_declare("qsim_packer_option", C.c_int, _P, C.c_char_p, C.c_char_p, C.POINTER(_ErrorStruct))
_declare("qsim_packer_save", C.c_int, _P, C.c_char_p, C.c_int32, C.POINTER(_ErrorStruct))
_ROLES = {"calibration": 2, "preprocess": 3, "labels": 4, "report": 5}


class _Packer(_Handle):
    _free = "qsim_packer_free"

    def __init__(self):
        pointer = _P()
        _call("qsim_packer_create", _ctx, C.byref(pointer))
        super().__init__(pointer)


class Package(_Handle):
    """A zip of models and what they need in use: labels, preprocessing, calibration, report."""

    _free = "qsim_package_free"
    _made_by = "Package.open(path)"

    @classmethod
    def open(cls, path):
        """Opens a package; every entry is checked when it is first read."""
        pointer = _P()
        _call("qsim_package_open", _ctx, os.fsencode(path), 0, C.byref(pointer))
        return cls(pointer)

    @staticmethod
    def write(path, *models, replace=True, compress=False, note=None, **texts):
        """Packs model files; `texts` are calibration, preprocess, labels, report (str or bytes)."""
        owner = _Packer()
        packer = owner._pointer
        for model in models:
            _call("qsim_packer_model", packer, os.fsencode(model), None)
        for role, text in texts.items():
            data = text.encode() if isinstance(text, str) else bytes(text)
            if role not in _ROLES:
                raise TypeError(f"a package has no {role}; it has {', '.join(_ROLES)}")
            _call("qsim_packer_add", packer, _ROLES[role], None, data, len(data))
        if note is not None:
            _call("qsim_packer_option", packer, b"note", note.encode())
        _call("qsim_packer_save", packer, os.fsencode(path), bool(replace) | 2 * bool(compress))

    @property
    def names(self):
        """The entries' names, sorted."""
        entry, names = _PackageEntry(), []
        for i in range(_lib.qsim_package_count(self._pointer)):
            _check(_lib.qsim_package_get(self._pointer, i, C.byref(entry)))
            names.append(entry.name.decode())
        return names

    def read(self, name):
        """The bytes of an entry, checked against its hash."""
        data, size = _P(), C.c_size_t()
        index = _check(_lib.qsim_package_find(self._pointer, name.encode()), where=name)
        _call("qsim_package_data", self._pointer, index, C.byref(data), C.byref(size))
        return C.string_at(data, size.value) if size.value else b""

    def model(self, name=None):
        """The model of that name, or the one that the manifest names; nothing is unpacked."""
        pointer = _P()
        _call("qsim_package_model", self._pointer, name.encode() if name else None, None,
              C.byref(pointer))
        return Model(pointer)

    def unpack(self, folder, replace=False):
        """Checks every entry, then writes all of them below `folder`."""
        _call("qsim_package_unpack", self._pointer, os.fsencode(folder), 1 if replace else 0)


# ---- sessions ---------------------------------------------------------------------------------


class _CtxOptions(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("allocator", _P), ("log", _P), ("log_user", _P),
                ("parallel_for", _P), ("parallel_user", _P), ("threads", C.c_int32),
                ("isa", C.c_int32)]


class _SessionOptions(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("outputs", C.POINTER(C.c_char_p)),
                ("output_count", C.c_size_t), ("ctx", _P), ("level", C.c_int32),
                ("reserved", C.c_int32)]


_declare("qsim_session_create", C.c_int, _P, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_session_free", None, _P)
_declare("qsim_run_create", C.c_int, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_run_free", None, _P)
_declare("qsim_run_execute", C.c_int, _P, C.POINTER(_Tensor), C.c_size_t, C.POINTER(_Tensor),
         C.c_size_t, C.POINTER(_ErrorStruct))
for _name in ("input", "output"):
    _declare(f"qsim_session_{_name}_count", C.c_int32, _P)
    _declare(f"qsim_session_{_name}_name", C.c_char_p, _P, C.c_int32)


class _StepInfo(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("node", C.c_char_p), ("op_type", C.c_char_p),
                ("kernel", C.c_char_p), ("macs", C.c_int64), ("nanoseconds", C.c_uint64),
                ("start_ns", C.c_uint64), ("bytes_read", C.c_int64), ("bytes_written", C.c_int64),
                ("input_count", C.c_int32), ("output_count", C.c_int32)]


class _ProfileEvent(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("execution", C.c_int64), ("start_ns", C.c_uint64),
                ("duration_ns", C.c_uint64), ("step", C.c_int32), ("reserved", C.c_int32)]


_ProfileFn = C.CFUNCTYPE(None, _P, C.POINTER(_ProfileEvent))
_declare("qsim_run_step_count", C.c_int32, _P)
_declare("qsim_run_step", C.c_int, _P, C.c_int32, _P)
_declare("qsim_run_step_tensor", C.c_int, _P, C.c_int32, C.c_int32, C.POINTER(C.c_int64),
         C.POINTER(_Tensor))
_declare("qsim_run_profile_begin", C.c_int, _P, _ProfileFn, _P)
_declare("qsim_run_profile_end", C.c_int64, _P)


def _context(threads, isa):
    """A context with its own threads or instruction set; None where neither is asked for."""
    if threads is None and isa is None:
        return None
    own = _P()
    options = _CtxOptions(threads=threads or 0, isa=_isa(isa))
    _call("qsim_ctx_create", C.byref(options), C.byref(own))
    return own


def _isa(name):
    number = 0
    while name is not None and _lib.qsim_isa_name(number) != name.encode():
        if _lib.qsim_isa_name(number) is None:
            raise ValueError(f"'{name}' is no instruction set")
        number += 1
    return number


class Session(_Handle):
    """A compiled model with the memory to run it. Threads take turns; for speed, one for each."""

    _free = "qsim_session_free"

    def __init__(self, model, outputs=None, level="default", threads=None, isa=None):
        """`outputs`: names of tensors to give out, any of the graph; None: the graph's outputs.

        With `threads` (0: one for each CPU) or `isa` ("c", "avx2", ...) the session has threads of
        its own; else it shares those of the package.
        """
        options = _SessionOptions(level=_LEVELS[level])
        if isinstance(outputs, str):
            raise TypeError("outputs is a list of names, not one name")
        if outputs is not None:
            names = (C.c_char_p * len(outputs))(*[name.encode() for name in outputs])
            options.outputs, options.output_count = names, len(outputs)
        pointer, own = _P(), _context(threads, isa)
        options.ctx = own
        try:
            _call("qsim_session_create", Model._of(model), C.byref(options), C.byref(pointer))
        finally:
            _lib.qsim_ctx_free(own)
        super().__init__(pointer)
        self._keep = model
        self._run = _Run(pointer)
        self._turn = threading.Lock()
        self.input_names = self._names("input")
        self.output_names = self._names("output")

    def _names(self, what):
        count = getattr(_lib, f"qsim_session_{what}_count")(self._pointer)
        name = getattr(_lib, f"qsim_session_{what}_name")
        return [name(self._pointer, i).decode() for i in range(count)]

    def run(self, *inputs, **named):
        """Executes on arrays, given in order or by name; returns the list of outputs."""
        with self._turn:  # results lie in the run until they are copied
            results = self._execute(inputs, named)
            return [_array_of(results[i]) for i in range(len(self.output_names))]

    def _execute(self, inputs, named):
        rest = self.input_names[len(inputs):]
        for name in named:
            if name not in rest:
                raise TypeError(f"'{name}' is no input that is not given yet; those are {rest}")
        given = list(inputs) + [named[name] for name in rest if name in named]
        arrays = [_array(x) for x in given]
        views = (_Tensor * max(len(arrays), 1))(*[_view(x) for x in arrays])
        results = (_Tensor * max(len(self.output_names), 1))()
        _call("qsim_run_execute", self._run._pointer, views, len(arrays), results,
              len(self.output_names))
        return results

    def profile(self, *inputs, runs=10, **named):
        """Executes `runs` times on arrays as run() takes them and tells what each step took.

        Returns a Profile, a list of dicts in the order of execution: node, op_type, kernel, macs,
        bytes_read, bytes_written, inputs and outputs (pairs of dtype and shape), us (median
        microseconds) and share (percent of all steps).
        """
        events = []

        def keep(_, event):
            e = event.contents
            events.append((e.execution, e.step, e.start_ns, e.duration_ns))

        run, hook = self._run._pointer, _ProfileFn(keep)
        with self._turn:
            self._execute(inputs, named)
            _check(_lib.qsim_run_profile_begin(run, hook, None))
            try:
                for _ in range(runs):
                    self._execute(inputs, named)
            finally:
                _lib.qsim_run_profile_end(run)
            return Profile([self._step(i) for i in range(_lib.qsim_run_step_count(run))], events)

    def _step(self, index):
        info = _StepInfo()
        _check(_lib.qsim_run_step(self._run._pointer, index, C.byref(info)))
        count = info.input_count
        tensors = [self._step_tensor(index, i) for i in range(count + info.output_count)]
        return {"node": info.node.decode(), "op_type": info.op_type.decode(),
                "kernel": info.kernel.decode(), "macs": info.macs, "bytes_read": info.bytes_read,
                "bytes_written": info.bytes_written,
                "inputs": [t for t in tensors[:count] if t],
                "outputs": [t for t in tensors[count:] if t]}

    def _step_tensor(self, index, which):
        dims, t = (C.c_int64 * _MAX_RANK)(), _Tensor()
        _check(_lib.qsim_run_step_tensor(self._run._pointer, index, which, dims, C.byref(t)))
        return (_NAMES.get(t.dtype, f"type {t.dtype}"), tuple(dims[:t.rank])) if t.dtype else None


class Profile(list):
    """What Session.profile() returns: a dict for each step, slowest ones with top()."""

    def __init__(self, steps, events):
        super().__init__(steps)
        self.runs = 1 + max((e[0] for e in events), default=-1)
        self._events = events
        times = [[] for _ in steps]
        for _, step, _, duration in events:
            if step >= 0:
                times[step].append(duration / 1000)
        for step, t in zip(self, times):
            step["us"] = float(np.median(t)) if t else 0.0
        whole = sum(step["us"] for step in self) or 1.0
        for step in self:
            step["share"] = 100 * step["us"] / whole

    def top(self, count=10):
        """The slowest steps."""
        return sorted(self, key=lambda step: -step["us"])[:count]

    def save_trace(self, path):
        """Writes Chrome trace events, as Perfetto and scripts for ONNX Runtime's profiles read."""
        origin = min((e[2] for e in self._events), default=0)
        trace = [self._event(origin, *e) for e in self._events]
        temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as f:
                json.dump(trace, f)
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise

    def _event(self, origin, execution, step, start, duration):
        event = {"cat": "Session", "pid": os.getpid(), "tid": os.getpid(), "ph": "X",
                 "ts": (start - origin) / 1000, "dur": duration / 1000, "name": "model_run",
                 "args": {}}
        if step >= 0:
            s = self[step]
            shapes = {f"{way}_type_shape": [{"float" if dtype == "float32" else dtype: list(shape)}
                                            for dtype, shape in s[f"{way}s"]]
                      for way in ("input", "output")}
            event.update(cat="Node", name=f"{s['node'] or s['op_type']}_kernel_time", args={
                "op_name": s["op_type"], "op_type": s["op_type"], "kernel": s["kernel"],
                "provider": "CPUExecutionProvider", "node_index": str(step), "macs": s["macs"],
                "bytes_read": s["bytes_read"], "bytes_written": s["bytes_written"],
                "run": execution, **shapes})
        return event


class _Run(_Handle):
    _free = "qsim_run_free"

    def __init__(self, session):
        pointer = _P()
        _call("qsim_run_create", session, C.byref(pointer))
        super().__init__(pointer)


# ---- calibration and quantization -------------------------------------------------------------


class _Rule(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("pattern", C.c_char_p), ("action", C.c_int32),
                ("reserved", C.c_int32)]


class _QuantizeOptions(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("rules", C.POINTER(_Rule)),
                ("rule_count", C.c_size_t), ("recipe", _P), ("decided", _P), ("progress", _P),
                ("progress_user", _P),
                ("percentile", C.c_double), ("format", C.c_int32),
                ("activation_type", C.c_int32), ("weight_type", C.c_int32),
                ("weight_scheme", C.c_int32), ("activation_symmetric", C.c_int32),
                ("method", C.c_int32), ("reduce_range", C.c_int32), ("mode", C.c_int32),
                ("per_row", C.c_int32), ("no_bias_correction", C.c_int32)]


class _CalibrationOptions(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("tensors", C.POINTER(C.c_char_p)),
                ("tensor_count", C.c_size_t), ("quantize", C.POINTER(_QuantizeOptions)),
                ("progress", _P), ("progress_user", _P), ("bins", C.c_int32),
                ("batch_axis", C.c_int32)]


class _Outlier(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("sample", C.c_int64), ("value", C.c_float),
                ("others", C.c_float), ("ratio", C.c_double)]


_declare("qsim_calibration_create", C.c_int, _P, C.POINTER(_CalibrationOptions), C.POINTER(_P),
         C.POINTER(_ErrorStruct))
_declare("qsim_calibration_outlier", C.c_int, _P, C.c_int32, C.POINTER(_Outlier))
_declare("qsim_calibration_feed", C.c_int, _P, C.POINTER(_Tensor), C.c_size_t,
         C.POINTER(_ErrorStruct))
_declare("qsim_calibration_merge", C.c_int, _P, _P, C.POINTER(_ErrorStruct))
_declare("qsim_calibration_save", C.c_int, _P, C.c_char_p, C.c_int32, C.POINTER(_ErrorStruct))
_declare("qsim_calibration_load", C.c_int, _P, C.c_char_p, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_calibration_free", None, _P)
_declare("qsim_calibration_samples", C.c_int64, _P)
_declare("qsim_calibration_count", C.c_int32, _P)
_declare("qsim_calibration_name", C.c_char_p, _P, C.c_int32)
_declare("qsim_calibration_range", C.c_int, _P, C.c_char_p, C.c_int32, C.c_double,
         C.POINTER(C.c_float), C.POINTER(C.c_float))
_declare("qsim_recipe_create", C.c_int, _P, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_recipe_load", C.c_int, _P, C.c_char_p, C.POINTER(_P), C.POINTER(_ErrorStruct))
_declare("qsim_recipe_load_memory", C.c_int, _P, C.c_char_p, C.c_size_t, C.c_char_p, C.POINTER(_P),
         C.POINTER(_ErrorStruct))
_declare("qsim_recipe_save", C.c_int, _P, C.c_char_p, C.c_int32, C.POINTER(_ErrorStruct))
_declare("qsim_recipe_text", C.c_int, _P, C.c_char_p, C.c_size_t, C.POINTER(C.c_size_t),
         C.POINTER(_ErrorStruct))
_declare("qsim_recipe_merge", C.c_int, _P, _P, C.POINTER(_ErrorStruct))
_declare("qsim_recipe_count", C.c_int32, _P)
_declare("qsim_recipe_free", None, _P)
_declare("qsim_quantize", C.c_int, _P, _P, C.POINTER(_QuantizeOptions), C.POINTER(_P),
         C.POINTER(_ErrorStruct))


class Calibration(_Handle):
    """Histograms of a model's activations, filled batch by batch in constant memory.

    `tensors`: globs over tensor names, what is observed (default: the tensors that get a scale);
    `bins`: of a histogram on either side of zero, a power of two from 128 to 2048 (default);
    `batch_axis`: the axis of the first input that counts samples.
    """

    _free = "qsim_calibration_free"

    def __init__(self, model, tensors=(), bins=0, batch_axis=0):
        pointer = _P()
        if isinstance(model, Model):
            names = [tensors] if isinstance(tensors, str) else list(tensors)
            options = _CalibrationOptions(
                tensors=(C.c_char_p * max(len(names), 1))(*[n.encode() for n in names]),
                tensor_count=len(names), bins=bins, batch_axis=batch_axis)
            _call("qsim_calibration_create", model._pointer, C.byref(options), C.byref(pointer))
        else:
            _call("qsim_calibration_load", _ctx, os.fsencode(model), C.byref(pointer))
        super().__init__(pointer)
        self._keep = model

    @classmethod
    def load(cls, path):
        """Reads a calibration file."""
        return cls(path)

    def feed(self, *inputs):
        """Runs one batch and records its activations. Returns self."""
        arrays = [_array(x) for x in inputs]
        views = (_Tensor * max(len(arrays), 1))(*[_view(x) for x in arrays])
        _call("qsim_calibration_feed", self._pointer, views, len(arrays))
        return self

    def merge(self, other):
        """Adds what another calibration of the same model has seen. Returns self."""
        _call("qsim_calibration_merge", self._pointer, Calibration._of(other))
        return self

    def save(self, path, replace=True):
        """Writes the calibration as text, atomically."""
        _call("qsim_calibration_save", self._pointer, os.fsencode(path), 1 if replace else 0)

    @property
    def samples(self):
        """How many samples were fed."""
        return _lib.qsim_calibration_samples(self._pointer)

    @property
    def tensors(self):
        """Names of the tensors observed."""
        count = _lib.qsim_calibration_count(self._pointer)
        return [_lib.qsim_calibration_name(self._pointer, i).decode() for i in range(count)]

    def outlier(self, tensor):
        """The sample that alone widens a tensor's range most: {sample, value, others, ratio}.

        Samples are counted from 0 in the order of feeding; None: fewer than two, or from a file.
        """
        o = _Outlier()
        code = _lib.qsim_calibration_outlier(self._pointer, self.tensors.index(tensor), C.byref(o))
        if code == -12:
            return None
        _check(code, where=f"outlier of {tensor!r}")
        return {"sample": o.sample, "value": o.value, "others": o.others, "ratio": o.ratio}

    def range(self, tensor, method="minmax", percentile=0.0):
        """(low, high) that `method` keeps of a tensor."""
        low, high = C.c_float(), C.c_float()
        _check(_lib.qsim_calibration_range(self._pointer, tensor.encode(), _METHODS[method],
                                           percentile, C.byref(low), C.byref(high)),
               where=f"range of {tensor!r} by {method}")
        return low.value, high.value


class Recipe(_Handle):
    """What a quantization decided for each layer and tensor, as text; empty at first."""

    _free = "qsim_recipe_free"

    def __init__(self, text=""):
        pointer = _P()
        if text:
            data = text.encode()
            _call("qsim_recipe_load_memory", _ctx, data, len(data), None, C.byref(pointer))
        else:
            _call("qsim_recipe_create", _ctx, C.byref(pointer))
        super().__init__(pointer)

    @classmethod
    def load(cls, path):
        """Reads a recipe from a file."""
        pointer, recipe = _P(), cls.__new__(cls)
        _call("qsim_recipe_load", _ctx, os.fsencode(path), C.byref(pointer))
        _Handle.__init__(recipe, pointer)
        return recipe

    def save(self, path, replace=False):
        """Writes the text to a file, all of it or nothing."""
        _call("qsim_recipe_save", self._pointer, os.fsencode(path), replace)

    def merge(self, other):
        """Takes over every entry of another recipe. Returns self."""
        _call("qsim_recipe_merge", self._pointer, Recipe._of(other))
        return self

    def __len__(self):
        return _lib.qsim_recipe_count(self._pointer)

    def __str__(self):
        need = C.c_size_t()
        _call("qsim_recipe_text", self._pointer, None, 0, C.byref(need))
        text = C.create_string_buffer(need.value)
        _call("qsim_recipe_text", self._pointer, text, need.value, C.byref(need))
        return text.raw.decode()


_SCHEMES = _Words({"channel": 0, "tensor": 1, "tensor-asymmetric": 2})
_FORMATS = _Words({"qdq": 0, "qoperator": 1})
_MODES = _Words({"static": 0, "dynamic": 1, "weights": 2})
_ACTIONS = _Words({"fp32": 1, "int8": 2})

#: Options of Model.quantize and their values, the first being the default.
QUANTIZE_OPTIONS = {
    "mode": list(_MODES),
    "per_row": [False, True],
    "bias_correction": [True, False],
    "format": list(_FORMATS),
    "method": list(_METHODS),
    "percentile": "in (0, 100], for method='percentile'",
    "activation_type": ["uint8", "int8"],
    "weight_type": ["int8", "uint8"],
    "weight_scheme": list(_SCHEMES),
    "activation_symmetric": [False, True],
    "reduce_range": [False, True],
    "rules": "list of (glob over node names, 'fp32' or 'int8'); the last match wins",
}


def _quantize_options(options):
    unknown = set(options) - set(QUANTIZE_OPTIONS)
    if unknown:
        raise TypeError(f"unknown option {sorted(unknown)}; known: {sorted(QUANTIZE_OPTIONS)}")
    rules = [_Rule(pattern=glob.encode(), action=_ACTIONS[action])
             for glob, action in options.get("rules", [])]
    array = (_Rule * max(len(rules), 1))(*rules)
    struct = _QuantizeOptions(
        rules=array, rule_count=len(rules), percentile=options.get("percentile", 0.0),
        format=_FORMATS[options.get("format", "qdq")],
        activation_type=_dtype(options.get("activation_type", "uint8")),
        weight_type=_dtype(options.get("weight_type", "int8")),
        weight_scheme=_SCHEMES[options.get("weight_scheme", "channel")],
        activation_symmetric=1 if options.get("activation_symmetric") else 0,
        method=_METHODS[options.get("method", "minmax")],
        reduce_range=1 if options.get("reduce_range") else 0,
        mode=_MODES[options.get("mode", "static")],
        per_row=1 if options.get("per_row") else 0,
        no_bias_correction=0 if options.get("bias_correction", True) else 1)
    return struct, (rules, array)


# ---- comparison -------------------------------------------------------------------------------


class _Metrics(_Options):
    _fields_ = [("struct_size", C.c_size_t), ("count", C.c_uint64), ("outside", C.c_uint64),
                ("rows", C.c_uint64), ("agree", C.c_uint64), ("max_abs", C.c_double),
                ("max_rel", C.c_double), ("signal", C.c_double), ("noise", C.c_double),
                ("dot", C.c_double), ("norm_b", C.c_double), ("nan_both", C.c_uint64),
                ("nan_one", C.c_uint64), ("worst", C.c_uint64), ("worst_a", C.c_double),
                ("worst_b", C.c_double)]


_declare("qsim_metrics_add", C.c_int, C.POINTER(_Metrics), C.POINTER(_Tensor), C.POINTER(_Tensor),
         C.c_double, C.c_double)
_declare("qsim_metrics_sqnr", C.c_double, C.POINTER(_Metrics))
_declare("qsim_metrics_cosine", C.c_double, C.POINTER(_Metrics))
_declare("qsim_mcnemar", C.c_double, C.c_uint64, C.c_uint64)


def compare(reference, other, rtol=1e-3, atol=1e-5):
    """How far `other` is from `reference`: a dict of max_abs, max_rel, sqnr_db, cosine, allclose,
    agreement (share of rows of the last axis with the same arg-max), worst (index of the greatest
    difference and both values there), nan_both (counted as equal) and nan_one (never close)."""
    a, b = _array(reference), _array(other)
    metrics = _Metrics()
    _check(_lib.qsim_metrics_add(C.byref(metrics), C.byref(_view(a)), C.byref(_view(b)), rtol, atol),
           where=f"comparing {a.dtype} {a.shape} with {b.dtype} {b.shape}")
    return {
        "max_abs": metrics.max_abs, "max_rel": metrics.max_rel,
        "sqnr_db": _lib.qsim_metrics_sqnr(C.byref(metrics)),
        "cosine": _lib.qsim_metrics_cosine(C.byref(metrics)),
        "allclose": metrics.outside == 0,
        "agreement": metrics.agree / metrics.rows if metrics.rows else 1.0,
        "worst": (np.unravel_index(metrics.worst, a.shape) if metrics.count else (),
                  metrics.worst_a, metrics.worst_b),
        "nan_both": metrics.nan_both, "nan_one": metrics.nan_one,
    }


def mcnemar(only_a, only_b):
    """McNemar's exact two-sided p-value: how likely is such a split if both are equally good."""
    if only_a < 0 or only_b < 0:
        raise ValueError(f"{only_a} and {only_b} have to be counts")
    return _lib.qsim_mcnemar(only_a, only_b)
