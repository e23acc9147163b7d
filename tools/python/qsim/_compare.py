# SPDX-License-Identifier: MIT
"""Differences between results and a reference."""

from __future__ import annotations

import ctypes as C
from typing import Any, Dict

import numpy as np

from ._abi import _Divergence, _Metrics, _lib, _utf8
from ._arrays import _array, _view
from ._library import _check
from ._words import _ANSWERS


class Metrics:
    """Differences between results and a reference, over any number of batches: add(), then
    summary(). `rtol` and `atol` are the tolerances of "allclose": |a - b| <= atol + rtol |a|."""

    def __init__(self, rtol: float = 1e-3, atol: float = 1e-5) -> None:
        self.rtol, self.atol = rtol, atol
        self._sums = _Metrics()

    def add(self, reference: Any, other: Any) -> "Metrics":
        """Adds a pair of arrays of equal shape. Returns self."""
        a, b = _array(reference), _array(other)
        _check(_lib.qsim_metrics_add(C.byref(self._sums), C.byref(_view(a)), C.byref(_view(b)),
                                     self.rtol, self.atol),
               where=f"comparing {a.dtype} {a.shape} with {b.dtype} {b.shape}")
        return self

    @property
    def sqnr_db(self) -> float:
        """The signal-to-quantization-noise ratio, 10 log10(sum a^2 / sum (a - b)^2), in dB."""
        return float(_lib.qsim_metrics_sqnr(C.byref(self._sums)))

    @property
    def cosine(self) -> float:
        """Cosine of the angle between both, taken as vectors."""
        return float(_lib.qsim_metrics_cosine(C.byref(self._sums)))

    @property
    def agreement(self) -> float:
        """Share, from 0 to 1, of rows of the last axis with the same arg-max."""
        return float(self._sums.agree / self._sums.rows) if self._sums.rows else 1.0

    def summary(self) -> Dict[str, Any]:
        """The dict of compare(), but with the index in `worst` counted over all elements added."""
        m = self._sums
        return {
            "max_abs": m.max_abs, "max_rel": m.max_rel, "sqnr_db": self.sqnr_db,
            "cosine": self.cosine, "allclose": m.outside == 0, "agreement": self.agreement,
            "worst": (m.worst, m.worst_a, m.worst_b), "nan_both": m.nan_both, "nan_one": m.nan_one,
        }

    def __repr__(self) -> str:
        return (f"<Metrics: {self._sums.count} elements, SQNR {self.sqnr_db:.2f} dB, "
                f"agreement {100 * self.agreement:.2f} %>")


def compare(reference: Any, other: Any, rtol: float = 1e-3, atol: float = 1e-5) -> Dict[str, Any]:
    """The difference of `other` from `reference`, arrays of one shape, floats or integers.

    Returns a dict: max_abs and max_rel (the greatest |a - b| and |a - b| / |a|), sqnr_db, cosine,
    allclose, agreement (share, from 0 to 1, of rows of the last axis with the same arg-max), worst
    (index of the greatest difference, a tuple, and both values there), nan_both (number of elements
    that are NaN in both, counted as equal) and nan_one (in one, never close)."""
    a = _array(reference)
    result = Metrics(rtol, atol).add(a, other).summary()
    index, *values = result["worst"]
    result["worst"] = (np.unravel_index(index, a.shape) if a.size else (), *values)
    return result


class Divergence:
    """The loss of a network's outputs beside a reference's, by the kind of the outputs, `answer`:
    the KL divergence of "probabilities" and of the Softmax of "logits", noise / signal of "values";
    "unknown": the first pair decides."""

    @classmethod
    def named(cls, output: str, rank: int) -> "Divergence":
        """A Divergence for an output with this name and rank: one called "...logits" with the axes
        samples, positions and classes holds logits; of others the first pair decides."""
        return cls(_ANSWERS.word(_lib.qsim_answer_of(_utf8(output), rank)))

    def __init__(self, answer: str = "unknown") -> None:
        self._sums = _Divergence(answer=_ANSWERS[answer])

    def add(self, reference: Any, other: Any) -> "Divergence":
        """Adds a pair of float arrays of equal shape. Returns self."""
        a, b = _array(reference), _array(other)
        _check(_lib.qsim_divergence_add(C.byref(self._sums), C.byref(_view(a)), C.byref(_view(b))),
               where=f"comparing {a.dtype} {a.shape} with {b.dtype} {b.shape}")
        return self

    @property
    def answer(self) -> str:
        """The kind of the outputs."""
        return _ANSWERS.word(self._sums.answer)

    @property
    def loss(self) -> float:
        """The mean KL divergence of a row in nats, or noise / signal; 0 for equal outputs."""
        return float(_lib.qsim_divergence_loss(C.byref(self._sums)))

    @property
    def agreement(self) -> float:
        """Percent of rows with the same arg-max; NaN for "values"."""
        return float(_lib.qsim_divergence_agreement(C.byref(self._sums)))

    def __repr__(self) -> str:
        return f"<Divergence of {self.answer}: loss {self.loss:.6g}, agreement {self.agreement:.2f} %>"


def mcnemar(only_a: int, only_b: int) -> float:
    """McNemar's exact two-sided p-value for two classifiers A and B: `only_a` samples were
    classified right by A alone, `only_b` by B alone. It is the probability of a split at least as
    uneven if both are equally good."""
    if only_a < 0 or only_b < 0:
        raise ValueError(f"{only_a} and {only_b} have to be counts")
    return float(_lib.qsim_mcnemar(only_a, only_b))
