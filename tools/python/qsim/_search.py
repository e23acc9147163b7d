# SPDX-License-Identifier: MIT
"""Searches for what quantizes a model best."""

from __future__ import annotations

import ctypes as C
from typing import Any, Callable, Dict, Iterable, NamedTuple, Optional

from ._abi import _ScoreFn, _SearchOptions, _lib, _text
from ._arrays import _array, _views
from ._calibration import Calibration
from ._library import _Handle, _call
from ._model import Model
from ._options import _quantize_options
from ._progress import Progress, _Watch
from ._recipe import Recipe


class SearchResult(NamedTuple):
    """What was found: a recipe for quantize(), and its score (NaN without a score function)."""

    recipe: Recipe
    score: float


class _Candidate(Model):
    """A model that is lent during a call."""

    _free = ""

    def __init__(self, pointer: int) -> None:
        _Handle.__init__(self, C.c_void_p(pointer))
        self._keep = None


def search_methods() -> Dict[str, bool]:
    """Names of the methods, and whether each needs `inputs`."""
    found: Dict[str, bool] = {}
    while True:
        name = _text(_lib.qsim_search_method(len(found)))
        if not name:
            return found
        found[name] = bool(_lib.qsim_search_method_needs_inputs(len(found)))


def search(model: Model, calibration: Calibration, methods: str = "greedy", *,
           inputs: Iterable[Any] = (), score: Optional[Callable[[Model], float]] = None,
           float_score: float = 0.0, max_drop: float = 0.0, steps: int = 0, seed: int = 0,
           start_percentile: float = 0.0, found: Optional[Recipe] = None,
           recipe: Optional[Recipe] = None, progress: Optional[Progress] = None,
           **options: Any) -> SearchResult:
    """Searches, beginning with quantize()'s `options` and `recipe`.

    `methods`: names of search_methods(), separated by commas. `inputs`: batches; candidates are
    judged by the KL divergence of their answers from the FP32 model's. Or `score`: is called with
    each candidate, a Model that is valid during the call, and returns how good it is, accuracy in
    percent for instance; `float_score` is that of the FP32 model, and annealing steps no further
    than `max_drop` (0: 2) below it. `steps` (0: 200), `seed` and `start_percentile` (0: none) are of
    annealing. The result is never worse than the plain quantization.

    The result's recipe goes to quantize(), with the same options. Ctrl-C, or an exception of `score`
    or `progress`, ends the search; `found`, an empty Recipe, then has the best so far."""
    struct, keep = _quantize_options(options)
    struct.recipe = None if recipe is None else Recipe._of(recipe)
    arrays = [_array(x) for x in inputs]
    found = Recipe() if found is None else found
    best = C.c_double(float("nan"))
    watch = _Watch(progress)

    def rate(_: Any, candidate: Any, out: Any) -> int:
        def work() -> None:
            with _Candidate(candidate) as lent:
                out[0] = float(score(lent)) if score else 0.0
        return watch.guard(work)

    asked = _SearchOptions(
        methods=methods.encode(), inputs=_views(arrays), input_count=len(arrays), seed=seed,
        start_percentile=start_percentile, float_score=float_score, max_drop=max_drop, steps=steps,
        progress=watch.hook)
    if score is not None:
        asked.score = _ScoreFn(rate)
    with watch:
        _call("qsim_search", Model._of(model), Calibration._of(calibration), C.byref(struct),
              C.byref(asked), Recipe._of(found), C.byref(best))
    del keep
    return SearchResult(found, best.value)
