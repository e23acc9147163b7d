# SPDX-License-Identifier: MIT
"""Verdicts: the quality of a quantized model beside its float model."""

from __future__ import annotations

import ctypes as C
from typing import Any, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from ._abi import (_VerdictInfo, _VerdictInputInfo, _VerdictLabelsInfo, _VerdictOptions, _lib,
                   _text)
from ._arrays import _array, _asarray, _batches, _views
from ._calibration import Calibration
from ._html import _html_table
from ._library import Error, _Handle, _call, _check
from ._model import Model, Source, _explained, _given, _model
from ._words import _GRADES, _MEASURES, _METHODS


class Judged(NamedTuple):
    """An output or a layer: its name and that of the tensor that was compared; grade "good",
    "doubtful", "bad" or "none" by `measure` ("agreement", "sqnr", "none"); agreement in percent of
    `rows` (NaN: no class scores); SQNR in dB; before_db: the lowest SQNR of the tensors that a
    layer reads."""

    name: str
    tensor: str
    measure: str
    grade: str
    agreement: float
    sqnr_db: float
    cosine: float
    before_db: float
    rows: int


class JudgedInput(NamedTuple):
    """What was fed to the first input. `as_in_training`: what the model's first BatchNormalization
    or biases say; False where a warning tells why not, None where neither the model nor labels
    tell: compare least, greatest and mean with what the model was trained on."""

    name: str
    least: float
    greatest: float
    mean: float
    as_in_training: Optional[bool]


class JudgedLabels(NamedTuple):
    """Both models beside labels: of `rows` labelled samples the float model classifies `right_float`
    right, the quantized one `right_quantized`; `confidence_float`: the mean probability, from 0 to
    1, of the class that the float model names."""

    rows: int
    right_float: int
    right_quantized: int
    confidence_float: float


class Verdict(_Handle):
    """Runs a quantized model beside its float model: feed() it samples that were not calibrated on.

    `calibration`: the one that the ranges are from, for warnings; `method`: how they were chosen;
    `seen`: the samples were calibrated on; `made_up`: the samples are random numbers; with either
    the grade is never "good". `layers`: rank layers, too. `classes` False: no output is scores of
    classes (points, embeddings), whatever its numbers look like."""

    _free = "qsim_verdict_free"

    def __init__(self, model: Model, quantized: Model, calibration: Optional[Calibration] = None,
                 method: str = "minmax", seen: bool = False, made_up: bool = False,
                 layers: bool = True, classes: bool = True) -> None:
        pointer = C.c_void_p()
        options = _VerdictOptions(
            calibration=None if calibration is None else Calibration._of(calibration),
            method=_METHODS[method], seen=seen, made_up=made_up, no_layers=not layers,
            no_classes=not classes)
        _call("qsim_verdict_create", Model._of(model), Model._of(quantized), C.byref(options),
              C.byref(pointer))
        super().__init__(pointer)
        self._inputs = model.inputs

    def __enter__(self) -> "Verdict":
        return self

    def feed(self, *inputs: Any, **named: Any) -> "Verdict":
        """Runs one batch, given as run() takes it, through both models. Returns self."""
        arrays = _given(self._inputs, inputs, named)
        try:
            _call("qsim_verdict_feed", self._pointer, _views(arrays), len(arrays))
        except Error as e:
            raise _explained(e, self._inputs, arrays) from None
        return self

    def label(self, labels: Any) -> "Verdict":
        """The right classes (integers; negative: unknown) of the samples fed last. Returns self."""
        given = _asarray(labels)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"integers are needed, not {given.dtype}")
        classes = _array(given, np.int64)
        _call("qsim_verdict_label", self._pointer,
              classes.ctypes.data_as(C.POINTER(C.c_int64)), classes.size)
        return self

    @property
    def grade(self) -> str:
        """ "good", "doubtful", "bad"; "none" before anything was fed."""
        return _GRADES.word(_lib.qsim_verdict_grade(self._pointer))

    @property
    def samples(self) -> int:
        """Samples fed."""
        return int(_lib.qsim_verdict_samples(self._pointer))

    def _list(self, what: str) -> List[Judged]:
        found, get = [], getattr(_lib, f"qsim_verdict_{what}")
        for i in range(getattr(_lib, f"qsim_verdict_{what}_count")(self._pointer)):
            info = _VerdictInfo()
            _check(get(self._pointer, i, C.byref(info)))
            found.append(Judged(_text(info.name), _text(info.tensor), _MEASURES.word(info.measure),
                                _GRADES.word(info.grade), info.agreement, info.sqnr, info.cosine,
                                info.before, info.rows))
        return found

    @property
    def input(self) -> Optional[JudgedInput]:
        """What was fed to the first input; None: nothing, or no floats."""
        info = _VerdictInputInfo()
        if _lib.qsim_verdict_input(self._pointer, C.byref(info)):
            return None
        return JudgedInput(_text(info.name), info.least, info.greatest, info.mean,
                           None if info.fits == 0 else info.fits > 0)

    @property
    def labels(self) -> Optional[JudgedLabels]:
        """How many samples both models classify right; None: no labels, or no classes."""
        info = _VerdictLabelsInfo()
        if _lib.qsim_verdict_labels(self._pointer, C.byref(info)):
            return None
        return JudgedLabels(info.rows, info.right, info.right_quantized, info.confidence)

    @property
    def outputs(self) -> List[Judged]:
        """Outputs in the order of the model."""
        return self._list("output")

    @property
    def layers(self) -> List[Judged]:
        """Layers, ordered by the noise that they add, the worst first."""
        return self._list("layer")

    @property
    def warnings(self) -> List[Tuple[str, str]]:
        """Problems of the data: (kind, sentence)."""
        found: List[Tuple[str, str]] = []
        kind = C.c_char_p()
        while True:
            text = _lib.qsim_verdict_warning(self._pointer, len(found), C.byref(kind))
            if not text:
                return found
            found.append((_text(kind.value), _text(text)))

    def __repr__(self) -> str:
        return f"<Verdict: {self.grade}, by {self.samples} samples>"

    def __str__(self) -> str:
        """The verdict as `qsim quantize` prints it: outputs, warnings, the worst layers."""
        lines = [f"{self.grade}, by {self.samples} samples"]
        for o in self.outputs:
            agreement = f"agreement {o.agreement:.2f} % of {o.rows} rows, " if o.agreement >= 0 else ""
            lines.append(f"output '{o.name}': {o.grade}, {agreement}SQNR {o.sqnr_db:.2f} dB, "
                         f"cosine {o.cosine:.6f}")
        lines += [f"warning: {sentence}" for _, sentence in self.warnings]
        lines += [f"layer '{layer.name}': SQNR {layer.before_db:.1f} -> {layer.sqnr_db:.1f} dB"
                  for layer in self.layers[:3]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = "; ".join([f"{self.grade}, by {self.samples} samples",
                           *(sentence for _, sentence in self.warnings)])
        return _html_table(title,
                           ["output", "grade", "agreement", "SQNR", "cosine"],
                           [(o.name, o.grade, o.agreement, o.sqnr_db, o.cosine)
                            for o in self.outputs])


def judge(model: Source, quantized: Source, data: Iterable[Any],
          calibration: Optional[Calibration] = None, labels: Any = None, classes: bool = True,
          **options: Any) -> Verdict:
    """Runs both models over `data`, batches as Session.run() takes them (an array, a tuple or a
    dict of arrays) or one of them, and returns the Verdict. Each model gets floats in its own
    type, so float16 versions can be judged, too. `labels`: the right class of each sample,
    integers; with them a float model that is seldom right is noticed. `classes` and `options` are
    those of Verdict: method, seen, made_up, layers."""
    verdict, done = Verdict(_model(model), _model(quantized), calibration, classes=classes,
                            **options), 0
    for batch in _batches(data, verdict._inputs):
        verdict.feed(*batch) if isinstance(batch, tuple) else verdict.feed(batch)
        if labels is not None:
            verdict.label(labels[done:verdict.samples])
        done = verdict.samples
    if labels is not None and len(labels) != done:
        raise ValueError(f"{len(labels)} labels for {done} samples")
    return verdict
