# SPDX-License-Identifier: MIT
"""Searches for the best quantization of a model, and the sensitivity of its operators."""

from __future__ import annotations

import ctypes as C
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from ._abi import (_AttemptFn, _CostFn, _Judgement, _ScoreFn, _SearchOptions, _UnitFn, _lib, _text,
                   _utf8)
from ._arrays import Array, _batches, _views
from ._calibration import Calibration
from ._html import _html_table
from ._library import _ErrorStruct, _Handle, _call, _check
from ._model import Model, _given
from ._options import _quantize_options
from ._progress import Progress, _Watch
from ._recipe import Recipe
from ._words import _GOALS, _MODES, _UNIT_BITS


class _Found(NamedTuple):
    recipe: Recipe
    score: float


class SearchResult(_Found):
    """The result of a search: a recipe for quantize(), and its score, which is minus the loss if the
    search had no score function. `mode`: "static", "dynamic" or "weights", another one than asked
    for only if `bits` allows it."""

    mode = "static"


class Judgement(NamedTuple):
    """Outputs compared with the float model's: the loss, as Divergence has it, summed over the
    outputs (0: no difference); agreement in percent (NaN: no classes), top1 in percent (NaN: no
    labels), SQNR in dB and the number of rows of the first output."""

    loss: float
    agreement: float
    top1: float
    sqnr_db: float
    rows: int


class Attempt(NamedTuple):
    """A model that a search has tried: `what`, one line that describes it; the model (None: the
    float one) and the recipe that makes it, both valid during the call; bytes of its file;
    microseconds per sample; `floats`, the number of units in float; `kept`: it is the best so far;
    `met`: it is within max_drop; `mode`: "static", "dynamic" or "weights"."""

    what: str
    judgement: Judgement
    model: Optional[Model]
    recipe: Optional[Recipe]
    bytes: int
    microseconds: float
    floats: int
    kept: bool
    met: bool
    mode: str


class Unit(NamedTuple):
    """The sensitivity of a unit, an operator in integers with the activation or bias that it absorbs
    (`takes`): loss_alone, the loss with this unit alone in integers; loss_gained, by which the loss
    of all units in integers falls with this one in float; agreement in percent, with this unit
    alone in integers; SQNR in dB of its output with all; bytes of weights and bias, and
    microseconds per sample, in float and in integers; before_knee: one of the few units that gain
    most."""

    name: str
    op_type: str
    takes: str
    loss_alone: float
    loss_gained: float
    agreement: float
    sqnr_db: float
    float_bytes: int
    bytes: int
    float_us: float
    us: float
    before_knee: bool


class _Candidate(Model):
    """A model that is valid during a call; the library owns it."""

    _free = ""

    def __init__(self, pointer: int) -> None:
        _Handle.__init__(self, C.c_void_p(pointer))
        self._keep = None


class _LentRecipe(Recipe):
    """A recipe that is valid during a call; the library owns it."""

    _free = ""

    def __init__(self, pointer: int) -> None:
        _Handle.__init__(self, C.c_void_p(pointer))


def search_methods() -> Dict[str, bool]:
    """Names of the methods, and whether each needs `inputs`; for the others a score is enough."""
    found: Dict[str, bool] = {}
    while True:
        name = _text(_lib.qsim_search_method(len(found)))
        if not name:
            return found
        found[name] = bool(_lib.qsim_search_method_needs_inputs(len(found)))


class _Question:
    """The options of a search for the library, and the objects that must live as long."""

    def __init__(self, model: Model, inputs: Iterable[Any], labels: Any,
                 progress: Optional[Progress], classes: bool) -> None:
        self.watch = _Watch(progress)
        self.options = _SearchOptions(progress=self.watch.hook, no_classes=not classes)
        values, arrays = model.inputs, []
        for batch in _batches(inputs, values):
            given = batch if isinstance(batch, tuple) else (batch,)
            arrays += _given(values, given, {})
        self.options.inputs, self.options.input_count = _views(arrays), len(arrays)
        self.options.inputs_per_batch = len(values)
        self.keep: List[Any] = [arrays]
        if labels is not None:
            named: Array = np.ascontiguousarray(labels, np.int64)
            self.keep.append(named)
            self.options.labels = named.ctypes.data_as(C.POINTER(C.c_int64))
            self.options.label_count = named.size

    def score(self, score: Callable[[Model], float]) -> None:
        def rate(_: Any, candidate: Any, out: Any) -> int:
            def work() -> None:
                with _Candidate(candidate) as lent:
                    out[0] = float(score(lent))
            return self.watch.guard(work)

        self.options.score = _ScoreFn(rate)

    def attempt(self, attempt: Callable[[Attempt], Any]) -> None:
        def tell(_: Any, info: Any) -> int:
            return self.watch.guard(lambda: _tell_attempt(attempt, info.contents))

        self.options.attempt = _AttemptFn(tell)

    def cost(self, cost: Callable[[str], Tuple[float, float]]) -> None:
        def say(_: Any, unit: bytes, in_float: Any, in_integers: Any) -> None:
            def work() -> None:
                in_float[0], in_integers[0] = cost(_text(unit))
            in_float[0] = in_integers[0] = float("nan")
            self.watch.guard(work)

        self.options.cost = _CostFn(say)


def _judgement(j: Any) -> Judgement:
    return Judgement(j.loss, j.agreement, j.top1, j.sqnr, j.rows)


def _tell_attempt(attempt: Callable[[Attempt], Any], a: Any) -> Any:
    model = _Candidate(a.model) if a.model else None
    recipe = _LentRecipe(a.recipe) if a.recipe else None
    try:
        return attempt(Attempt(_text(a.what), _judgement(a.judgement.contents), model, recipe, a.bytes,
                               a.microseconds, a.floats, bool(a.kept), bool(a.met),
                               _MODES.word(a.mode)))
    finally:
        for lent in (model, recipe):
            if lent is not None:
                lent.close()


def search(model: Model, calibration: Calibration, methods: str = "greedy", *,
           inputs: Iterable[Any] = (), labels: Any = None, classes: bool = True,
           goal: str = "accuracy",
           score: Optional[Callable[[Model], float]] = None, float_score: float = 0.0,
           max_drop: float = 0.0, seconds: float = 0.0, steps: int = 0, seed: int = 0,
           start_percentile: float = 0.0, bits: Iterable[str] = ("float",),
           attempt: Optional[Callable[[Attempt], Any]] = None,
           cost: Optional[Callable[[str], Tuple[float, float]]] = None,
           found: Optional[Recipe] = None, recipe: Optional[Recipe] = None,
           progress: Optional[Progress] = None, **options: Any) -> SearchResult:
    """Searches for the best quantization, beginning with quantize()'s `options` and `recipe`.

    `methods`: names of search_methods(), separated by commas. `inputs`: batches as quantize() takes
    them; candidates are judged by the KL divergence of their outputs from the FP32 model's, and by
    `labels` if given, one for each row of the first output. Or `score` is called with each
    candidate, a Model that is valid during the call, and returns its quality, for instance accuracy
    in percent; `float_score` is that of the FP32 model. `classes` False: no output is scores of
    classes (points, embeddings), whatever its numbers look like; candidates are judged by noise.

    `goal`: "accuracy", "size" or "latency", by which auto chooses among candidates that lose at
    most `max_drop` percent (0: 1 for auto; 2 for annealing, of the score); `cost` returns the times
    of an operator in float and in integers, in microseconds (default: they are measured); `bits`:
    the forms that auto may give a unit besides 8 bits: "float", "16" for activations and, for
    weights with the goal size, "4"; and for all at once, where 8 bits lose too much, "dynamic" or
    "weights", the names of modes. `seconds`: time limit, after which the best so far is the
    result (0: none). `steps` (0: 200), `seed` and `start_percentile` (0: none) are for annealing.
    `attempt` is called with each Attempt; a true result ends the search.

    The result is never worse than the plain quantization. Its recipe goes to quantize(), with the
    same options and its mode. Ctrl-C, or an exception of a callback, ends the search; `found`, an empty Recipe,
    then has the best so far."""
    struct, keep = _quantize_options(options)
    struct.recipe = None if recipe is None else Recipe._of(recipe)
    found = Recipe() if found is None else found
    asked = _Question(model, inputs, labels, progress, classes)
    o = asked.options
    unknown = [name for name in methods.split(",") if name and name not in search_methods()]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(search_methods())}")
    o.methods, o.goal, o.float_score, o.max_drop = _utf8(methods), _GOALS[goal], float_score, max_drop
    o.bits = sum(_UNIT_BITS[word] for word in set(bits))
    o.seconds, o.steps, o.seed, o.start_percentile = seconds, steps, seed, start_percentile
    if score is not None:
        asked.score(score)
    kept_mode = _MODES.word(struct.mode)

    def tell(a: Attempt) -> Any:
        nonlocal kept_mode
        kept_mode = a.mode if a.kept else kept_mode
        return attempt(a) if attempt is not None else None

    asked.attempt(tell)
    if cost is not None:
        asked.cost(cost)
    best = C.c_double(float("nan"))
    with asked.watch:
        _call("qsim_search", Model._of(model), Calibration._of(calibration), C.byref(struct),
              C.byref(o), Recipe._of(found), C.byref(best))
    del keep
    result = SearchResult(found, best.value)
    result.mode = kept_mode
    return result


class Sensitivity(List[Unit]):
    """The result of sensitivity(): a list of Unit, the greatest loss_gained first; `plain` is the
    Judgement with all units in integers."""

    plain = Judgement(float("nan"), float("nan"), float("nan"), float("nan"), 0)

    def _repr_html_(self) -> str:
        rows = [(u.name, u.op_type, f"{u.loss_gained:.3g}", f"{u.loss_alone:.3g}", f"{u.sqnr_db:.1f}",
                 u.float_bytes, u.bytes) for u in self]
        return _html_table(f"Sensitivity: loss {self.plain.loss:.3g} of all in integers",
                           ("node", "operator", "gained in float", "lost alone", "SQNR", "bytes", "in 8 bits"),
                           rows)


def sensitivity(model: Model, calibration: Calibration, inputs: Iterable[Any], labels: Any = None, *,
                classes: bool = True, recipe: Optional[Recipe] = None, progress: Optional[Progress] = None,
                **options: Any) -> Sensitivity:
    """The sensitivity of each unit that a static quantization with quantize()'s `options` runs in
    integers, by the loss of the outputs over `inputs` (batches as quantize() takes them) and, if
    given, `labels`, the right class of each sample; see Unit. `classes` as for search()."""
    struct, keep = _quantize_options(options)
    struct.recipe = None if recipe is None else Recipe._of(recipe)
    asked, plain = _Question(model, inputs, labels, progress, classes), _Judgement()
    found, error = Sensitivity(), _ErrorStruct()

    def note(_: Any, info: Any) -> int:
        u = info.contents
        found.append(Unit(_text(u.name), _text(u.op_type), _text(u.takes), u.loss_alone, u.loss_gained,
                          u.agreement, u.sqnr, u.float_bytes, u.bytes, u.float_us, u.us,
                          bool(u.before_knee)))
        return 0

    with asked.watch:
        _check(_lib.qsim_sensitivity(Model._of(model), Calibration._of(calibration), C.byref(struct),
                                     C.byref(asked.options), _UnitFn(note), None, C.byref(plain),
                                     C.byref(error)), error)
    found.plain = _judgement(plain)
    del keep
    return found
