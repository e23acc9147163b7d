# SPDX-License-Identifier: MIT
"""Calibration: ranges, histograms and means of a model's activations."""

from __future__ import annotations

import ctypes as C
import os
import tempfile
from collections.abc import Mapping
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from ._abi import _CalibrationOptions, _Outlier, _lib, _path, _text, _utf8
from ._affine import _range_flags
from ._arrays import _feed_all, _views
from ._context import _ctx
from ._html import _html_table
from ._library import Error, _Handle, _call, _check
from ._model import Model, _explained, _given, _model
from ._observer import Observer, _LentObserver
from ._options import _quantize_options
from ._progress import Progress, _Watch
from ._words import _METHODS, _dtype

_NOT_FOUND = -12


class Calibration(_Handle):
    """Ranges, histograms and means of a float model's activations, filled batch by batch in constant
    memory. The model may be given by its path.

    `tensors`: a glob over names of tensors to observe, or a list of them (default: the tensors that
    get a scale); `bins`: bins of a histogram on either side of zero, a power of two from 128 to
    2048 (0: 2048); `batch_axis`: the axis of the first input along which its samples lie;
    `quantize`: a dict of quantize()'s options, with which the calibration will be used: some need
    further tensors or statistics; `progress`: called while a batch is fed, as in quantize().
    """

    _free = "qsim_calibration_free"

    def __init__(self, model: Union[Model, str, "os.PathLike[str]"],
                 tensors: Union[str, Iterable[str]] = (), bins: int = 0, batch_axis: int = 0,
                 quantize: Optional[Mapping[str, Any]] = None,
                 progress: Optional[Progress] = None) -> None:
        model = _model(model)
        pointer, self._watch = C.c_void_p(), _Watch(progress)
        names = [tensors] if isinstance(tensors, str) else list(tensors)
        struct, keep = _quantize_options(quantize or {})
        options = _CalibrationOptions(
            tensors=(C.c_char_p * max(len(names), 1))(*[_utf8(n) for n in names]),
            tensor_count=len(names), bins=bins, batch_axis=batch_axis, progress=self._watch.hook)
        if quantize is not None:
            options.quantize = C.pointer(struct)
        _call("qsim_calibration_create", model._pointer, C.byref(options), C.byref(pointer))
        del keep
        super().__init__(pointer)
        self._inputs = model.inputs

    def __enter__(self) -> "Calibration":
        return self

    @classmethod
    def _loaded(cls, name: str, *source: Any) -> "Calibration":
        pointer, calibration = C.c_void_p(), cls.__new__(cls)
        _call(name, _ctx, *source, C.byref(pointer))
        _Handle.__init__(calibration, pointer)
        calibration._watch, calibration._inputs = _Watch(), []
        return calibration

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Calibration":
        """Reads a calibration file."""
        return cls._loaded("qsim_calibration_load", _path(path))

    @classmethod
    def loads(cls, text: Union[str, bytes]) -> "Calibration":
        """Reads a calibration from its text."""
        data = text.encode() if isinstance(text, str) else text
        return cls._loaded("qsim_calibration_load_memory", data, len(data), None)

    def feed(self, *inputs: Any, **named: Any) -> "Calibration":
        """Runs one batch, given as Session.run() takes it, and records its activations. Returns
        self."""
        arrays = _given(self._inputs, inputs, named)
        with self._watch:
            try:
                _call("qsim_calibration_feed", self._pointer, _views(arrays), len(arrays))
            except Error as e:
                raise _explained(e, self._inputs, arrays) from None
        return self

    def feed_all(self, data: Iterable[Any]) -> "Calibration":
        """Feeds every batch of an iterable: arrays, tuples of arrays, or dicts by input name; or
        one batch, a dict or an array of the first input's rank. Returns self."""
        _feed_all(self.feed, data, self._inputs)
        return self

    def merge(self, other: "Calibration") -> "Calibration":
        """Adds the samples of another calibration of the same model. Returns self."""
        _call("qsim_calibration_merge", self._pointer, Calibration._of(other))
        return self

    def save(self, path: Union[str, "os.PathLike[str]"], replace: bool = True) -> None:
        """Writes the calibration as text, atomically. Without `replace` an existing file is an
        error."""
        _call("qsim_calibration_save", self._pointer, _path(path), 1 if replace else 0)

    def dumps(self) -> str:
        """The text of the calibration; loads() reads it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "calibration")
            self.save(path)
            with open(path, encoding="utf-8") as f:
                return f.read()

    @property
    def samples(self) -> int:
        """Number of samples fed."""
        return int(_lib.qsim_calibration_samples(self._pointer))

    @property
    def model(self) -> str:
        """Model.hash of the model that the calibration belongs to."""
        return _text(_lib.qsim_calibration_model(self._pointer))

    @property
    def tensors(self) -> List[str]:
        """Names of the tensors observed."""
        count = _lib.qsim_calibration_count(self._pointer)
        return [_text(_lib.qsim_calibration_name(self._pointer, i)) for i in range(count)]

    def observer(self, tensor: str) -> Observer:
        """The observer of a tensor, with its histogram; it must not be fed."""
        pointer = C.c_void_p(_lib.qsim_calibration_observer(self._pointer, self._index(tensor)))
        return _LentObserver(pointer, self)

    def _index(self, tensor: str) -> int:
        names = self.tensors
        if tensor not in names:
            raise ValueError(f"no tensor {tensor!r} was observed; calibration.tensors lists those that were")
        return names.index(tensor)

    def outlier(self, tensor: str) -> Optional[Dict[str, Any]]:
        """The single sample that widens a tensor's range most, as a dict: sample (its number, from
        0 in the order of feeding), value (its extreme), others (the nearest extreme of all others)
        and ratio (of the range with it to the range without it). None for fewer than two samples,
        or if the calibration is from a file.
        """
        o = _Outlier()
        code = _lib.qsim_calibration_outlier(self._pointer, self._index(tensor), C.byref(o))
        if code == _NOT_FOUND:
            return None
        _check(code, where=f"outlier of {tensor!r}")
        return {"sample": o.sample, "value": o.value, "others": o.others, "ratio": o.ratio}

    def range(self, tensor: str, method: str = "minmax", percentile: float = 0.0,
              dtype: Any = "uint8", symmetric: bool = False) -> Tuple[float, float]:
        """The range (low, high) of a tensor by `method`, as Observer.range()."""
        low, high = C.c_float(), C.c_float()
        _check(_lib.qsim_calibration_range(self._pointer, _utf8(tensor), _METHODS[method],
                                           percentile, _dtype(dtype), _range_flags(symmetric),
                                           C.byref(low), C.byref(high)),
               where=f"range of {tensor!r} by {method}")
        return low.value, high.value

    def __repr__(self) -> str:
        if self._owned is None:
            return "<Calibration: closed>"
        return f"<Calibration: {self.samples} samples, {len(self.tensors)} tensors>"

    def _repr_html_(self) -> str:
        rows = [(name, *self.observer(name).limits, *self.range(name, "percentile", 99.99))
                for name in self.tensors] if self.samples else []
        return _html_table(f"Calibration, {self.samples} samples",
                           ("tensor", "min", "max", "99.99 % from", "to"), rows)
