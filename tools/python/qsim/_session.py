# SPDX-License-Identifier: MIT
"""Sessions: compiled models that run."""

from __future__ import annotations

import ctypes as C
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ._abi import _MAX_RANK, _ProfileFn, _SessionOptions, _StepInfo, _Tensor, _lib, _text, _utf8
from ._arrays import Array, _address, _array_of, _asarray, _views
from ._context import Context, _shared
from ._html import _html_table, _size
from ._interrupt import _interrupts
from ._library import Error, _Handle, _call, _check
from ._model import Source, Value, _explained, _given, _model
from ._profile import Profile
from ._words import _LEVELS, _RAW, _dtype, _dtype_name


class _Run(_Handle):
    _free = "qsim_run_free"

    cancelled = False  # by Ctrl-C: the run is not used again

    def __init__(self, session: C.c_void_p) -> None:
        pointer = C.c_void_p()
        _call("qsim_run_create", session, C.byref(pointer))
        super().__init__(pointer)


# Methods of ONNX Runtime's sessions, and what has their place here.
_ORT_NAMES = {"get_inputs": "the list .inputs", "get_outputs": "the list .outputs",
                "get_modelmeta": ".model.metadata", "get_providers": ".isa, one of qsim.isas()",
                "end_profiling": ".profile(x).save_trace(path)", "io_binding": ".run(x, out=array)"}


class Session(_Handle):
    """A compiled model that runs.

        session = qsim.Session("model.onnx", threads=2)
        logits, = session.run(x)                          # inputs in order,
        logits, = session.run({"x": x})                   # by name,
        logits, = session.run(["logits"], {"x": x})       # as in ONNX Runtime

    Several threads may run one session at once: each run has memory of its own, kept for the next.
    """

    _free = "qsim_session_free"

    def __init__(self, model: Source, outputs: Optional[Sequence[str]] = None,
                 level: str = "default", threads: Optional[int] = None,
                 isa: Optional[str] = None, context: Optional[Context] = None,
                 seed: int = 0) -> None:
        """`model`: a Model, the path of a model or package, a model's bytes or an onnx.ModelProto. `outputs`: names of
        the session's outputs, any tensors of the graph; None: the graph's outputs. `level`: of
        optimization, as Model.optimize() has it ("default": "all"); integers are the same at
        every level, floats may round differently.

        With `threads` (0: one for each CPU) or `isa` ("c", "avx2", ...; isas() lists them) the
        session has threads of its own; else it shares those of `context`, or of the module.

        `seed`: for the model's random numbers, such as the noise of a voice. The same inputs give
        the same outputs in every run, until the attribute `seed` is set to another number.
        """
        options = _SessionOptions(level=_LEVELS[level], seed=seed)
        if isinstance(outputs, str):
            raise TypeError("outputs is a list of names, not one name")
        if outputs is not None:
            names = (C.c_char_p * len(outputs))(*[_utf8(name) for name in outputs])
            options.outputs, options.output_count = names, len(outputs)
        if threads is not None or isa is not None:
            if context is not None:
                raise TypeError("threads and isa are the context's, where one is given")
            context = Context(threads or 0, isa)
        used = _shared if context is None else context
        self.threads, self.isa = used.threads, used.isa
        if context is not None:
            options.ctx = context._pointer
        self.model = _model(model)
        pointer = C.c_void_p()
        _call("qsim_session_create", self.model._pointer, C.byref(options), C.byref(pointer))
        super().__init__(pointer)
        self.seed = seed
        self._idle: List[_Run] = []
        self._busy: List[_Run] = []
        self._lock = threading.Lock()
        self.input_names = self._names("input")
        self.output_names = self._names("output")
        known = {value.name: value for value in self.model.inputs}
        self._inputs = [known[name] for name in self.input_names]
        self._values: Optional[Dict[str, Value]] = None
        self._shapes: Dict[Any, Tuple[Tuple[int, ...], ...]] = {}  # of outputs, by those of inputs

    def __enter__(self) -> "Session":
        return self

    def _names(self, what: str) -> List[str]:
        count = getattr(_lib, f"qsim_session_{what}_count")(self._pointer)
        name = getattr(_lib, f"qsim_session_{what}_name")
        return [_text(name(self._pointer, i)) for i in range(count)]

    @property
    def inputs(self) -> List[Value]:
        """The inputs of run()."""
        return list(self._inputs)

    @property
    def outputs(self) -> List[Value]:
        """The outputs of run()."""
        found = [self._value(name) for name in self.output_names]
        return [value for value in found if value is not None]

    if not TYPE_CHECKING:  # type checkers find wrong names by themselves

        def __getattr__(self, name):
            hint = f": here it is {_ORT_NAMES[name]}" if name in _ORT_NAMES else ""
            raise AttributeError(f"'Session' object has no attribute {name!r}{hint}")

    @property
    def bytes(self) -> int:
        """Bytes of packed weights and tables."""
        return int(_lib.qsim_session_bytes(self._pointer))

    @property
    def integer_nodes(self) -> List[str]:
        """Names of the model's nodes that run in integers here."""
        return [node.name for i, node in enumerate(self.model.nodes)
                if _lib.qsim_session_node_integer(self._pointer, i)]

    def close(self) -> None:
        """Frees the memory now; runs in progress end first."""
        for run in getattr(self, "_idle", []):
            run.close()
        super().close()

    @contextmanager
    def _running(self) -> Iterator[_Run]:
        """One caller's memory: an idle one, or a new one."""
        with self._lock:
            pointer = self._pointer
            run = self._idle.pop() if self._idle else _Run(pointer)
            self._busy.append(run)
        try:
            yield run
        finally:
            with self._lock:
                self._busy.remove(run)
                if not run.cancelled:
                    self._idle.append(run)

    def cancel(self) -> None:
        """Ends the runs in progress, from another thread: they raise Error (QSIM_E_CANCELLED)."""
        with self._lock:
            for run in self._busy:
                _lib.qsim_run_cancel(run._pointer)

    def run(self, *inputs: Any, out: Any = None, **named: Any) -> List[Array]:
        """Executes and returns the list of outputs.

        Inputs are arrays in order, keywords, or one dict by name; run(names, dict) returns the
        outputs `names` only, run(None, dict) all. Contiguous arrays in memory are not copied,
        whichever library made them (DLPack, __array_interface__, buffers). A list gets the type of
        its input.

        `out`: arrays that the outputs are written into, without a copy: a list in the order of the
        outputs (None: a new array), a dict by name, or one array for the only output. They must be
        contiguous and have the output's type and shape; they are returned in its place. Others are
        refused and keep what they hold. (The first run with new shapes of inputs copies, and so do
        outputs whose sizes depend on what the inputs hold.)

        Ctrl-C ends a run of the main thread within its step.
        """
        wanted = self.output_names
        if len(inputs) == 2 and isinstance(inputs[1], Mapping) and not isinstance(inputs[0], Mapping):
            wanted = list(wanted if inputs[0] is None else inputs[0])
            inputs = (inputs[1],)
        for name in wanted:
            if name not in self.output_names:
                raise ValueError(f"'{name}' is no output; those are {self.output_names}")
        given = self._outputs(out)
        with self._running() as run:
            results = self._execute(run, inputs, named, given)
            shapes = [tuple(t.dims[i] for i in range(t.rank)) for t in results[:len(given)]]
            for name, shape, bound in zip(self.output_names, shapes, given):
                self._check_shape(name, shape, bound)
            got = {name: self._result(results[i], given[i])
                   for i, name in enumerate(self.output_names) if name in wanted or given[i]}
        return [got[name] for name in wanted]

    def _execute(self, run: _Run, inputs: Sequence[Any], named: Mapping[str, Any],
                 out: Sequence[Optional[Tuple[Any, Array]]] = ()) -> Any:
        arrays = _given(self._inputs, inputs, named)
        results = (_Tensor * max(len(self.output_names), 1))()
        key = tuple(x.shape for x in arrays)
        known = self._shapes.get(key)
        for i, bound in enumerate(out):
            if bound is not None and known and self._is_fixed(self.output_names[i]):
                self._check_shape(self.output_names[i], known[i], bound)
                results[i].data, results[i].bytes = _address(bound[1]), bound[1].nbytes
        views = _views(arrays)
        _lib.qsim_run_set_seed(run._pointer, self.seed)
        watched = _interrupts.watch(run)
        try:
            _call("qsim_run_execute", run._pointer, views, len(arrays), results,
                  len(self.output_names))
        except Error as e:
            raise _explained(e, self._inputs, arrays) from None
        finally:
            if watched is not None:
                watched.leave()
        if not known and out:
            self._shapes = {} if len(self._shapes) > 99 else self._shapes
            self._shapes[key] = tuple(tuple(t.dims[i] for i in range(t.rank))
                                      for t in results[:len(self.output_names)])
        return results

    def _outputs(self, out: Any) -> List[Optional[Tuple[Any, Array]]]:
        """The object given for each output, and its array."""
        if out is None:
            return [None] * len(self.output_names)
        if isinstance(out, Mapping):
            for name in out:
                if name not in self.output_names:
                    raise ValueError(f"out: '{name}' is no output; those are {self.output_names}")
            out = [out.get(name) for name in self.output_names]
        elif not isinstance(out, (list, tuple)):
            out = [out]
        if len(out) != len(self.output_names):
            raise ValueError(f"out: {len(out)} arrays for {len(self.output_names)} outputs")
        return [None if x is None else (x, self._writable(name, x))
                for name, x in zip(self.output_names, out)]

    def _writable(self, name: str, x: Any) -> Array:
        array = _asarray(x)
        kind = self._kind(name)
        if kind and _dtype(_RAW.get(kind, kind)) != _dtype(array.dtype):
            raise TypeError(f"out: '{name}' is {kind}, the array {array.dtype}")
        flags = array.flags
        # numpy marks every array from DLPack read-only.
        if not (flags.c_contiguous and flags.aligned and array.dtype.isnative and
                (flags.writeable or not isinstance(x, type(array)))):
            raise ValueError(f"out: the array for '{name}' is not contiguous and writable")
        return array

    def _kind(self, name: str) -> str:
        """The data type of an output, "" if the model does not give it."""
        value = self._value(name)
        return "" if value is None or value.dtype.startswith("type ") else value.dtype

    def _value(self, name: str) -> Optional[Value]:
        if self._values is None:
            self._values = {v.name: v for v in [*self.model.values, *self.model.outputs]}
        return self._values.get(name)

    def _is_fixed(self, name: str) -> bool:
        """Whether sizes of the inputs alone decide on those of an output."""
        value = self._value(name)
        names = {d for v in self._inputs for d in v.shape or () if isinstance(d, str) and d != "?"}
        return (value is not None and value.shape is not None and
                all(isinstance(d, int) or d in names for d in value.shape))

    @staticmethod
    def _check_shape(name: str, shape: Tuple[int, ...],
                     bound: Optional[Tuple[Any, Array]]) -> None:
        if bound is not None and bound[1].shape != shape:
            raise ValueError(f"out: '{name}' is {shape}, the array {bound[1].shape}")

    @staticmethod
    def _result(tensor: Any, bound: Optional[Tuple[Any, Array]]) -> Any:
        if bound is None:
            return _array_of(tensor)
        if bound[1].nbytes < tensor.bytes:
            raise TypeError(f"out: the output has {_dtype_name(tensor.dtype)}, "
                            f"the array {bound[1].dtype}")
        if _address(bound[1]) != tensor.data:
            C.memmove(_address(bound[1]), tensor.data, tensor.bytes)
        return bound[0]

    def reserve(self, *inputs: Any, **named: Any) -> int:
        """Plans for the shapes of these arrays, so that the next run with such shapes allocates
        nothing; returns the bytes of activations."""
        with self._running() as run:
            arrays = _given(self._inputs, inputs, named)
            try:
                _call("qsim_run_reserve", run._pointer, _views(arrays), len(arrays))
            except Error as e:
                raise _explained(e, self._inputs, arrays) from None
            return int(_lib.qsim_run_arena_bytes(run._pointer))

    def profile(self, *inputs: Any, runs: int = 10, **named: Any) -> Profile:
        """Executes `runs` times on arrays as run() takes them and measures each step.

        Returns a Profile, a list of dicts in the order of execution: node, op_type, kernel, isa,
        macs, bytes_read, bytes_written, inputs and outputs (pairs of dtype and shape), us (median
        microseconds) and share (percent of all steps).
        """
        events: List[Tuple[int, int, int, int]] = []

        def keep(_: Any, event: Any) -> None:
            e = event.contents
            events.append((e.execution, e.step, e.start_ns, e.duration_ns))

        hook = _ProfileFn(keep)
        with self._running() as run:
            self._execute(run, inputs, named)
            _check(_lib.qsim_run_profile_begin(run._pointer, hook, None))
            try:
                for _ in range(runs):
                    self._execute(run, inputs, named)
            finally:
                _lib.qsim_run_profile_end(run._pointer)
            count = _lib.qsim_run_step_count(run._pointer)
            return Profile([_step(run, i) for i in range(count)], events)

    def __repr__(self) -> str:
        if self._owned is None:
            return "<Session: closed>"
        return (f"<Session: {', '.join(self.input_names)} -> {', '.join(self.output_names)}, "
                f"{self.isa}, {self.threads} thread{'s' if self.threads > 1 else ''}>")

    def _repr_html_(self) -> str:
        rows: List[Tuple[Any, ...]] = [("input", v.name, v.dtype, v.shape) for v in self.inputs]
        rows += [("output", name, self._kind(name), "") for name in self.output_names]
        return _html_table(f"Session: {self.isa}, {self.threads} threads, {_size(self.bytes)} of weights",
                           ("", "name", "type", "shape"), rows)


def _step(run: _Run, index: int) -> Dict[str, Any]:
    info = _StepInfo()
    _check(_lib.qsim_run_step(run._pointer, index, C.byref(info)))
    count = info.input_count
    tensors = [_step_tensor(run, index, i) for i in range(count + info.output_count)]
    return {"node": _text(info.node), "op_type": _text(info.op_type),
            "kernel": _text(info.kernel), "isa": _text(_lib.qsim_isa_name(info.isa)),
            "macs": info.macs, "bytes_read": info.bytes_read, "bytes_written": info.bytes_written,
            "inputs": [t for t in tensors[:count] if t],
            "outputs": [t for t in tensors[count:] if t]}


def _step_tensor(run: _Run, index: int, which: int) -> Optional[Tuple[str, Tuple[int, ...]]]:
    dims, t = (C.c_int64 * _MAX_RANK)(), _Tensor()
    _check(_lib.qsim_run_step_tensor(run._pointer, index, which, dims, C.byref(t)))
    return (_dtype_name(t.dtype), tuple(dims[:t.rank])) if t.dtype else None
