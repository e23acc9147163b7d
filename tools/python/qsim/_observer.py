# SPDX-License-Identifier: MIT
"""Observers: ranges and histograms of values that are fed batch by batch."""

from __future__ import annotations

import ctypes as C
from typing import Any, Tuple

import numpy as np

from ._abi import _ObserverOptions, _lib
from ._affine import _range_flags
from ._arrays import _floats
from ._context import _ctx
from ._library import _Handle, _call, _check
from ._words import _METHODS, _dtype


class Observer(_Handle):
    """Statistics of values, in constant memory, from which the range for quantizing is chosen."""

    _free = "qsim_observer_free"

    def __init__(self, bins: int = 0) -> None:
        """`bins` of the histogram on either side of zero: a power of two from 128; 0: 2048."""
        pointer, options = C.c_void_p(), _ObserverOptions(bins=bins)
        _call("qsim_observer_create", _ctx, C.byref(options), C.byref(pointer))
        super().__init__(pointer)

    def __enter__(self) -> "Observer":
        return self

    def __repr__(self) -> str:
        low, high = self.limits
        return f"<Observer: {self.count} values from {low:g} to {high:g}>"

    def feed(self, values: Any) -> "Observer":
        """Records an array. NaN and infinity are refused. Returns self."""
        array, pointer = _floats(values)
        _check(_lib.qsim_observer_feed(self._pointer, pointer, array.size), where="values fed")
        return self

    def merge(self, other: "Observer") -> "Observer":
        """Adds the values of another observer; exact, in any order. Returns self."""
        _check(_lib.qsim_observer_merge(self._pointer, Observer._of(other)), where="merging")
        return self

    @property
    def count(self) -> int:
        """Number of values fed."""
        return int(_lib.qsim_observer_count(self._pointer))

    @property
    def limits(self) -> Tuple[float, float]:
        """(least, greatest) value seen."""
        return (_lib.qsim_observer_min(self._pointer), _lib.qsim_observer_max(self._pointer))

    def histogram(self) -> Tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
        """(counts, edges) like numpy.histogram(); the bins have one width, a power of two."""
        low, width, count = C.c_double(), C.c_double(), C.c_size_t()
        bins = np.zeros(4096, np.uint64)
        _check(_lib.qsim_observer_histogram(self._pointer, C.byref(low), C.byref(width),
                                            bins.ctypes.data_as(C.POINTER(C.c_uint64)), bins.size,
                                            C.byref(count)))
        edges = low.value + width.value * np.arange(count.value + 1)
        return bins[:count.value].copy(), edges

    def range(self, method: str = "minmax", percentile: float = 0.0, dtype: Any = "uint8",
              symmetric: bool = False) -> Tuple[float, float]:
        """The range (low, high), which contains 0, by `method`: "minmax" (all values), "percentile"
        (without (100 - percentile) / 2 percent of the values at either end; 0: 99.999), "mse" (the
        least mean squared error of quantizing to `dtype`) or "entropy" (the least KL divergence of
        the quantized histogram)."""
        low, high = C.c_float(), C.c_float()
        _check(_lib.qsim_observer_range(self._pointer, _METHODS[method], percentile, _dtype(dtype),
                                        _range_flags(symmetric), C.byref(low), C.byref(high)),
               where=f"range by {method} for {dtype} of {self.count} values")
        return low.value, high.value


class _LentObserver(Observer):
    """An observer that another object, `owner`, owns."""

    _free = ""

    def __init__(self, pointer: C.c_void_p, owner: object) -> None:
        _Handle.__init__(self, pointer)
        self._owner = owner
