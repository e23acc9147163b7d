# SPDX-License-Identifier: MIT
"""Quantizing of models, and of arrays."""

from __future__ import annotations

import ctypes as C
import math
import os
from collections.abc import Mapping
from typing import Any, Iterable, List, NamedTuple, Optional, Tuple, Union, overload

import numpy as np

from ._abi import _LayerFn, _lib, _text
from ._affine import _quantize_array
from ._arrays import Array, _batches
from ._calibration import Calibration
from ._library import Error, _ErrorStruct, _call, _check
from ._model import Model, Source, _given, _model
from ._options import _quantize_options
from ._progress import Progress, _Watch
from ._recipe import Recipe
from ._search import search
from ._words import _SCHEMES, _dtype_name


_Numbers = Union[Array, float, List[Any], Tuple[Any, ...], "np.number[Any]"]


class Layer(NamedTuple):
    """The quantization of one layer: its weight scheme and type, None and "float32" if it stays
    float; float_bytes and bytes are those of weights and bias, before and after."""

    name: str
    op_type: str
    scheme: Optional[str]
    dtype: str
    float_bytes: int
    bytes: int


# Samples that tell whether correcting biases gains, as `qsim quantize` has them: more of them where
# they are small.
_JUDGED_BYTES, _LEAST_JUDGED, _JUDGED, _OF_UNKNOWN_SIZE = 64 << 20, 32, 1024, 128


class _Kept:
    """The first batches of data, copied while they go by."""

    def __init__(self, model: Model) -> None:
        self._inputs = model.inputs
        self.batches: List[Any] = []
        shape = self._inputs[0].shape if self._inputs else None
        sizes = [n for n in (shape or ())[1:] if isinstance(n, int)]
        known = shape is not None and len(sizes) == max(len(shape) - 1, 0)
        most = _JUDGED_BYTES // max(4 * math.prod(sizes), 1) if known else _OF_UNKNOWN_SIZE
        self._left = min(max(most, _LEAST_JUDGED), _JUDGED)

    def of(self, data: Iterable[Any]) -> Iterable[Any]:
        for batch in _batches(data, self._inputs):
            if self._left > 0:
                given = batch if isinstance(batch, tuple) else (batch,)
                arrays = tuple(np.array(x) for x in _given(self._inputs, given, {}))
                self.batches.append(arrays)
                self._left -= len(arrays[0]) if arrays and arrays[0].ndim else 1
            yield batch


def _judge_biases(model: Model, calibration: Calibration, kept: _Kept, progress: Optional[Progress],
                  options: Mapping[str, Any]) -> Optional[Recipe]:
    """The recipe that leaves biases as they are where correcting them gains nothing sure; None where
    nothing can be judged: they are corrected then."""
    try:
        return search(model, calibration, "correction", inputs=kept.batches, progress=progress,
                      **options).recipe
    except Error as e:
        if e.name in ("QSIM_E_UNSUPPORTED", "QSIM_E_SHAPE"):
            return None
        raise


def _quantize_model(model: Model, calibration: Optional[Calibration], data: Optional[Iterable[Any]],
                    recipe: Optional[Recipe], decided: Optional[Recipe],
                    progress: Optional[Progress], options: Mapping[str, Any]) -> Model:
    struct, keep = _quantize_options(options)
    if data is not None:
        if calibration is not None:
            raise TypeError("quantize() takes a calibration or data, not both")
        judged = (options.get("mode") == "dynamic" and options.get("bias_correction", True) and
                  recipe is None)
        kept = _Kept(model) if judged else None
        calibration = Calibration(model, quantize=options, progress=progress)
        calibration.feed_all(data if kept is None else kept.of(data))
        if kept is not None:
            recipe = _judge_biases(model, calibration, kept, progress, options)
    struct.recipe = None if recipe is None else Recipe._of(recipe)
    struct.decided = None if decided is None else Recipe._of(decided)
    known = None if calibration is None else Calibration._of(calibration)
    pointer = C.c_void_p()
    with _Watch(progress) as watch:
        struct.progress = watch.hook
        _call("qsim_quantize", model._pointer, known, C.byref(struct), C.byref(pointer))
    del keep
    return model._derived(pointer)


def _quantize_layers(model: Model, calibration: Optional[Calibration],
                     options: Mapping[str, Any]) -> List[Layer]:
    struct, keep = _quantize_options(options)
    found: List[Layer] = []

    def note(_: Any, info: Any) -> int:
        i = info.contents
        found.append(Layer(_text(i.name), _text(i.op_type),
                           _SCHEMES.word(i.scheme) if i.scheme >= 0 else None,
                           _dtype_name(i.dtype), i.float_bytes, i.bytes))
        return 0

    error = _ErrorStruct()
    known = None if calibration is None else Calibration._of(calibration)
    _check(_lib.qsim_quantize_layers(model._pointer, known, C.byref(struct), _LayerFn(note), None,
                                     C.byref(error)), error)
    del keep
    return found


@overload
def quantize(x: Source, *, data: Optional[Iterable[Any]] = ...,
             calibration: Optional[Calibration] = ..., **options: Any) -> Model: ...


@overload
def quantize(x: _Numbers, scale: Any, zero_point: Any = ..., dtype: Any = ...,
             axis: Optional[int] = ..., block: int = ...) -> Array: ...


def quantize(x: Any, scale: Any = None, zero_point: Any = 0, dtype: Any = "uint8",
             axis: Optional[int] = None, block: int = 0, **options: Any) -> Any:
    """Quantizes a model, or an array.

    quantize(model, data=batches, method="mse", ...): `model` is a Model, a path, a file's bytes or an
    onnx.ModelProto; Model.quantize() describes the rest. Returns a Model.

    quantize(x, scale, zero_point, dtype): saturate(round_half_even(x / scale) + zero_point) of
    float32 x. `scale` and `zero_point` are numbers, or arrays with one for each channel of `axis`
    or for each block of `block` values along `axis`, as measure() returns them. Returns an array of
    `dtype` and x's shape; for "int4", "uint4", "int2" and "uint2" the packed bytes."""
    if (isinstance(x, (Model, str, os.PathLike, bytes)) or hasattr(x, "SerializeToString") or
            (scale is None and isinstance(x, (bytearray, memoryview)))):
        if scale is not None:
            raise TypeError("a model is quantized with data=... or calibration=...")
        return _model(x).quantize(**options)
    if options or scale is None:
        raise TypeError(f"quantize() of {type(x).__name__}: an array and a scale, or a Model or path "
                        "with data=..., is needed")
    return _quantize_array(x, scale, zero_point, dtype, axis, block)
