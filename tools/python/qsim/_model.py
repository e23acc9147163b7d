# SPDX-License-Identifier: MIT
"""Models: load, inspect, check, transform, save."""

from __future__ import annotations

import ctypes as C
import os
from collections import Counter
from collections.abc import Mapping
from typing import (Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Protocol, Sequence,
                    Tuple, Type, Union)

import numpy as np

from ._abi import (_AttrInfo, _LoadOptions, _NodeInfo, _OperatorInfo, _ProblemFn, _SaveOptions, _ValueInfo,
                   _lib, _path, _text, _utf8)
from ._arrays import Array, _array, _array_of, _bound, _storage
from ._context import Context, _ctx, _of_context
from ._html import _html_table, _size
from ._library import Error, _Handle, _call, _check
from ._words import _DTYPES, _FORMS, _LEVELS, _RAW, _dtype_name

class _Proto(Protocol):
    """onnx.ModelProto."""

    def SerializeToString(self) -> bytes: ...


#: A model, the path of a model or package, a file's bytes, or a ModelProto of the package onnx.
Source = Union["Model", str, "os.PathLike[str]", bytes, bytearray, memoryview, _Proto]

_INSPECT, _CHECK = 2, 4
_NOT_FOUND = -12
_ATTR_TENSOR, _ATTR_LISTS = 4, (6, 7, 8)  # FLOATS, INTS, STRINGS


class Value:
    """A tensor of a model: name, dtype ("float32", "int8", ...) and shape, a tuple. The size of a
    free axis is its name, an unknown size "?"; an unknown shape is None."""

    def __init__(self, info: _ValueInfo, owner: object = None) -> None:
        self.name = _text(info.name)
        self.dtype = _dtype_name(info.dtype)
        self.shape: Optional[Tuple[Union[int, str], ...]] = None
        if info.rank >= 0:
            self.shape = tuple(
                info.dims[i] if info.dims[i] >= 0 else
                _text(info.dim_names[i] if info.dim_names else b"") or "?" for i in range(info.rank))
        self._at = (info.data, info.bytes, info.dtype, owner)

    @property
    def constant(self) -> Optional[Array]:
        """A copy of a constant's elements; None if the tensor is not constant. Types of 2 and 4
        bits as packed bytes, bfloat16 and float8 as their bits."""
        data, size, dtype, _ = self._at
        if data is None or self.shape is None:
            return None
        shape, kind = _storage(dtype, tuple(int(n) for n in self.shape), size)
        out: Array = np.empty(shape, kind)
        C.memmove(out.ctypes.data, data, min(size, out.nbytes))
        return out

    def __repr__(self) -> str:
        return f"<{self.name}: {self.dtype} {self.shape}>"


class Node:
    """A node of the graph: name, op_type, domain ("": ai.onnx), inputs and outputs (names of
    tensors), macs (multiply-accumulates at batch 1, -1: unknown), integer (it runs in integers),
    graphs (the number of graphs inside it, as of If), operands (those inputs that are data or
    weights, not sizes, indices, bounds, masks, tables, scales or zero points)."""

    def __init__(self, info: _NodeInfo, owner: Optional["Model"] = None) -> None:
        self._at = (owner, 0)
        self.name, self.op_type, self.domain = (
            _text(info.name), _text(info.op_type), _text(info.domain))
        self.inputs = [_text(info.inputs[i]) for i in range(info.input_count)]
        self.outputs = [_text(info.outputs[i]) for i in range(info.output_count)]
        self.macs: int = info.macs
        self.integer = bool(info.integer)
        self.graphs: int = info.graphs
        self.operands = [name for i, name in enumerate(self.inputs)
                         if name and (i >= 64 or info.operands >> i & 1)]

    @property
    def attributes(self) -> Dict[str, Any]:
        """The attributes that the node sets, by name: int, float, str (bytes that are not UTF-8
        stay bytes), lists of these, or a copy of a tensor as an array; None for graphs and other
        types. What the node leaves out is not listed, whatever its default."""
        owner, index = self._at
        found: Dict[str, Any] = {}
        while owner is not None:
            info = _AttrInfo()
            code = _lib.qsim_model_attr(owner._pointer, index, len(found), C.byref(info))
            if code == _NOT_FOUND:
                break
            _check(code)
            found[_text(info.name)] = _attribute(info)
        return found

    def __repr__(self) -> str:
        return f"<{self.op_type} '{self.name}'>"


def _attribute(info: _AttrInfo) -> Any:
    if info.type == _ATTR_TENSOR:
        return _array_of(info.tensor)
    if info.ints or info.floats:
        values: List[Any] = (info.ints or info.floats)[:info.count]
    elif info.strings:
        values = [_readable(C.string_at(s.data, s.size)) for s in info.strings[:info.count]]
    else:
        return [] if info.type in _ATTR_LISTS else None
    return values if info.type in _ATTR_LISTS else values[0]


def _readable(data: bytes) -> Union[str, bytes]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


class Problem(NamedTuple):
    """A problem that check() found: name of the code (QSIM_E_*), message and hint."""

    name: str
    message: str
    hint: str


class Operator(NamedTuple):
    """An operator that models may have: the versions of its domain's opset that have it, `since` to
    `until` (None: no end); least and greatest number of inputs (None: any); types of the first
    tensor of elements in the newest version; the operator that does the same on quantized numbers
    ("": it runs in float); and the kernel of its step, as profiles name it."""

    domain: str
    op_type: str
    since: int
    until: Optional[int]
    min_inputs: int
    max_inputs: Optional[int]
    types: Tuple[str, ...]
    integer_form: str
    kernel: str


def operators() -> List[Operator]:
    """The operators that models may have, domain by domain and by name."""
    info, found = _OperatorInfo(), []  # type: _OperatorInfo, List[Operator]
    while True:
        code = _lib.qsim_operator(None, len(found), C.byref(info))
        if code == _NOT_FOUND:
            return found
        _check(code)
        found.append(Operator(
            _text(info.domain), _text(info.op_type), info.since, info.until or None, info.min_inputs,
            None if info.max_inputs < 0 else info.max_inputs,
            tuple(_dtype_name(t) for t in range(32) if info.types >> t & 1),
            _text(info.integer_form), _text(info.kernel)))


class Model(_Handle):
    """An ONNX model. Immutable; transformations return new ones."""

    _free = "qsim_model_free"
    _made_by = "Model.load(path)"

    def __init__(self, pointer: Optional[C.c_void_p] = None, keep: object = None) -> None:
        super().__init__(pointer)
        self._keep = keep  # memory that holds the weights

    def __enter__(self) -> "Model":
        return self

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"], inspect: bool = False,
             context: Optional[Context] = None) -> "Model":
        """Loads a model from an ONNX file or a package. `inspect` accepts operators that the
        library does not know: to inspect the model, not to run it. `context` sets its limits."""
        pointer, options = C.c_void_p(), _LoadOptions(flags=_INSPECT if inspect else 0)
        _call("qsim_model_load", _of_context(context), _path(path), C.byref(options),
              C.byref(pointer))
        return cls(pointer)

    @classmethod
    def loads(cls, data: Any, inspect: bool = False, name: Optional[str] = None,
              context: Optional[Context] = None) -> "Model":
        """Loads a model from bytes; `name` is its name in messages."""
        data, pointer = bytes(data), C.c_void_p()
        keep = C.create_string_buffer(data, len(data))
        options = _LoadOptions(flags=_INSPECT if inspect else 0, name=_utf8(name) if name else None)
        _call("qsim_model_load_memory", _of_context(context), keep, len(data), C.byref(options),
              C.byref(pointer))
        return cls(pointer, keep)

    def save(self, path: Union[str, "os.PathLike[str]"], replace: bool = True,
             external: bool = False) -> None:
        """Writes the model as ONNX, atomically. Without `replace` an existing file is an error.
        `external`: weights of 1 KB and more go to a second file, the path followed by ".data";
        models over 2 GB are always saved so."""
        options = _SaveOptions(flags=(1 if replace else 0) | (2 if external else 0))
        _call("qsim_model_save", self._pointer, _path(path), C.byref(options))

    def dumps(self) -> bytes:
        """The model as ONNX bytes."""
        need = C.c_size_t()
        _call("qsim_model_save_memory", self._pointer, None, 0, C.byref(need))
        buffer = C.create_string_buffer(need.value)
        _call("qsim_model_save_memory", self._pointer, buffer, need.value, C.byref(need))
        return buffer.raw

    def _list(self, what: str, struct: Type[Any], kind: Callable[..., Any]) -> List[Any]:
        result = []
        for i in range(_check(getattr(_lib, f"qsim_model_{what}_count")(self._pointer))):
            info = struct()
            _check(getattr(_lib, f"qsim_model_{what}")(self._pointer, i, C.byref(info)))
            result.append(kind(info, self))
        return result

    @property
    def inputs(self) -> List[Value]:
        """The inputs that a run needs."""
        return self._list("input", _ValueInfo, Value)

    @property
    def outputs(self) -> List[Value]:
        """The outputs that run() returns."""
        return self._list("output", _ValueInfo, Value)

    @property
    def values(self) -> List[Value]:
        """All tensors that the graph names, constants among them."""
        return self._list("value", _ValueInfo, Value)

    @property
    def nodes(self) -> List[Node]:
        """Nodes in order of execution."""
        found: List[Node] = self._list("node", _NodeInfo, Node)
        for i, node in enumerate(found):
            node._at = (self, i)
        return found

    @property
    def opset(self) -> int:
        """Version of ai.onnx that the model imports."""
        return int(_lib.qsim_model_opset(self._pointer, b""))

    @property
    def ir_version(self) -> int:
        """The file's ir_version, or the one that saving would write."""
        return int(_lib.qsim_model_ir_version(self._pointer))

    @property
    def bytes(self) -> int:
        """Size of the file, external data included, or of the file that saving would write."""
        return _check(_lib.qsim_model_bytes(self._pointer))

    @property
    def external_files(self) -> List[str]:
        """Files of external data, relative to the model's folder."""
        found: List[str] = []
        while True:
            name = _lib.qsim_model_external_file(self._pointer, len(found))
            if not name:
                return found
            found.append(_text(name))

    @property
    def parameters(self) -> int:
        """Number of elements of all weights and biases."""
        return _check(_lib.qsim_model_parameters(self._pointer))

    @property
    def parameter_bytes(self) -> int:
        """Bytes of all weights and biases, as stored."""
        return _check(_lib.qsim_model_parameter_bytes(self._pointer))

    @property
    def metadata(self) -> Dict[str, str]:
        """metadata_props of the file."""
        count = _lib.qsim_model_metadata_count(self._pointer)
        return {_text(_lib.qsim_model_metadata_key(self._pointer, i)):
                _text(_lib.qsim_model_metadata_value(self._pointer, i)) for i in range(count)}

    @property
    def hash(self) -> str:
        """SHA-256 over graph and weights, without producer and metadata, in hexadecimal."""
        text = C.create_string_buffer(65)
        _check(_lib.qsim_model_hash(self._pointer, text))
        return text.value.decode()

    def _derived(self, pointer: C.c_void_p) -> "Model":
        return Model(pointer, self._keep)  # weights are shared, not copied

    def optimize(self, level: str = "all") -> "Model":
        """The optimized model, still in operators of ONNX: "disable", "basic", "extended" or
        "all" (include/qsim/model.h describes them)."""
        pointer = C.c_void_p()
        _call("qsim_model_optimize", self._pointer, _LEVELS[level], C.byref(pointer))
        return self._derived(pointer)

    def convert(self, to: str) -> "Model":
        """This model in another form: "qdq", pairs of QuantizeLinear and DequantizeLinear around
        float operators; "float", a model that can be quantized again; "onnx", a model of ONNX's
        operators, without com.microsoft (qsim_model_convert_to in include/qsim/ptq.h)."""
        pointer = C.c_void_p()
        _call("qsim_model_convert_to", self._pointer, _FORMS[to], C.byref(pointer))
        return self._derived(pointer)

    def integer_io(self, inputs: bool = True, outputs: bool = True) -> "Model":
        """This quantized model with the integers that it makes of float `inputs` as inputs, or with
        those that it computes float `outputs` from as outputs (of Softmax: 256ths); scale() says
        what they stand for."""
        pointer = C.c_void_p()
        _call("qsim_model_integer_io", self._pointer, inputs + 2 * outputs, C.byref(pointer))
        return self._derived(pointer)

    def scale(self, tensor: str) -> Tuple[float, int]:
        """The scale and the zero point of a tensor of integers, which stand for (integer -
        zero_point) * scale. Raises Error if no operator states one scale for it."""
        scale, zero_point = C.c_double(), C.c_int64()
        _call("qsim_model_scale", self._pointer, _utf8(tensor), C.byref(scale),
              C.byref(zero_point))
        return scale.value, zero_point.value

    def upgrade(self, opset: int) -> "Model":
        """The model converted to ai.onnx `opset`: at least its own, and at least 13."""
        pointer = C.c_void_p()
        _call("qsim_model_upgrade", self._pointer, opset, C.byref(pointer))
        return self._derived(pointer)

    def quantize(self, calibration: Any = None, data: Optional[Iterable[Any]] = None,
                 recipe: Any = None, decided: Any = None, progress: Any = None,
                 **options: Any) -> "Model":
        """A quantized copy of a float model.

        `data`, to calibrate on, is one batch or an iterable of them: arrays, tuples of arrays, or
        dicts, as run() takes them; else `calibration` is a Calibration. The modes dynamic and
        weights need neither; with one, biases are corrected by its means, in mode dynamic with
        `data` and without a recipe only where that brings the outputs closer to the float model's
        (as `search(calibration, "correction", inputs=batches)` finds). `recipe`, a Recipe, decides
        for the layers and tensors that it names; `decided`, another Recipe, gets all decisions.
        `progress` is called with (what, done, total); Ctrl-C, an exception or a true result of it
        ends the work.

        The options, whose values QUANTIZE_OPTIONS lists with the default first:

        mode                  scales of activations from data (static) or found in each run
                              (dynamic); or only the weights are stored in integers (weights)
        per_row               dynamic: a scale for each row or image, not for the whole tensor
        bias_correction       biases correct the means that quantizing shifts
        format                static: QDQ pairs, or operators such as QLinearConv (qoperator)
        method, percentile    how ranges of activations are chosen; see Observer.range()
        activation_type, activation_symmetric    the type of activations, and their ranges
        split_curves          rounds between the nodes of curves, too, for other runtimes
        weight_type, weight_scheme    the type of weights; one scale per channel or per tensor
        weight_block, gptq    of 4-bit weights: how many share a scale, and rounding by GPTQ
        keep_moments          calibrating with these options keeps what the search "refine" needs
        reduce_range          weights of 7 bits, for other runtimes on CPUs without VNNI
        reduce_pairs          larger weight scales where ONNX Runtime would saturate there
        rules                 types of single nodes: [("conv*", "fp32")]
        """
        from ._quantize import _quantize_model
        return _quantize_model(self, calibration, data, recipe, decided, progress, options)

    def layers(self, calibration: Any = None, **options: Any) -> List[Any]:
        """A dry run of quantize() with the same options: a Layer for each node with weights, in
        order of execution."""
        from ._quantize import _quantize_layers
        return _quantize_layers(self, calibration, options)

    def search(self, calibration: Any, methods: str = "greedy", **options: Any) -> Any:
        """Searches for better schemes and percentiles; see search()."""
        from ._search import search
        return search(self, calibration, methods, **options)

    def run(self, *inputs: Any, **named: Any) -> List[Array]:
        """Runs once and returns the list of outputs. For repeated runs make a Session."""
        from ._session import Session
        with Session(self) as session:
            return session.run(*inputs, **named)

    def __repr__(self) -> str:
        if self._owned is None:
            return "<Model: closed>"
        return (f"<Model: {_signature(self.inputs)} -> {_signature(self.outputs)}, "
                f"{len(self.nodes)} nodes, {self.parameters} parameters, opset {self.opset}>")

    def _repr_html_(self) -> str:
        rows: List[Tuple[Any, ...]] = [(way, v.name, v.dtype, v.shape) for way, values in
                                       (("input", self.inputs), ("output", self.outputs))
                                       for v in values]
        nodes = self.nodes
        kinds = ", ".join(f"{name} {n}" for name, n in Counter(n.op_type for n in nodes).most_common())
        integer = sum(n.integer for n in nodes)
        rows += [("nodes", kinds, f"{integer} in integers", len(nodes)),
                 ("weights", f"{self.parameters} parameters", _size(self.parameter_bytes),
                  f"opset {self.opset}")]
        return _html_table("Model", ("", "name", "type", "shape"), rows)


def _signature(values: List[Value]) -> str:
    return ", ".join(f"{v.name} {v.dtype}{list(v.shape) if v.shape is not None else ''}"
                     for v in values)


def _given(values: Sequence[Value], inputs: Iterable[Any], named: Mapping[str, Any]) -> List[Array]:
    """Arrays for the inputs `values`, given in order, by name or as one dict; a value without a
    type of its own, like a list, gets the input's."""
    arrays = []
    for i, x in enumerate(_bound([v.name for v in values], inputs, named)):
        dtype = values[i].dtype if i < len(values) else "type"
        listed = isinstance(x, (list, tuple, int, float, bool)) and dtype in _DTYPES
        arrays.append(_array(x, dtype if listed and dtype not in _RAW else None))
    return arrays


def _model(source: Source) -> Model:
    """The model itself, or loaded from its path or bytes."""
    if isinstance(source, Model):
        return source
    if isinstance(source, (str, os.PathLike)):
        return Model.load(source)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Model.loads(source)
    if hasattr(source, "SerializeToString"):
        return Model.loads(source.SerializeToString())
    raise TypeError(f"a Model, the path of one or its bytes are needed, not {type(source).__name__}")


def _explained(error: Error, values: Sequence[Value], arrays: Sequence[Array]) -> Error:
    """The error, with what NumPy does about a type or about an axis of samples that is missing."""
    for value, x in zip(values, arrays):
        if error.hint or value.dtype not in _DTYPES or value.shape is None:
            continue
        if error.name == "QSIM_E_DTYPE" and x.dtype != np.dtype(_RAW.get(value.dtype, value.dtype)):
            scaled = "" if x.dtype.kind == "f" else ", and the scaling that the model was trained with"
            return Error(error.code, error.message, f".astype({value.dtype!r}){scaled}")
        if error.name == "QSIM_E_SHAPE" and x.ndim + 1 == len(value.shape):
            return Error(error.code, error.message, "x[numpy.newaxis] is a batch of one sample")
    return error


def check(source: Union[str, "os.PathLike[str]", bytes]) -> List[Problem]:
    """All problems of a model; [] if there are none. `source` is a path or the file's bytes. A file
    that is not ONNX raises Error."""
    pointer, options, found = C.c_void_p(), _LoadOptions(flags=_CHECK), []

    def note(_: Any, error: Any) -> None:
        e = error.contents
        found.append(Problem(_text(_lib.qsim_error_name(e.code)), e.message.decode(), e.hint.decode()))

    keep = None
    if isinstance(source, bytes):
        keep = C.create_string_buffer(source, len(source))
        _call("qsim_model_load_memory", _ctx, keep, len(source), C.byref(options), C.byref(pointer))
    else:
        _call("qsim_model_load", _ctx, _path(source), C.byref(options), C.byref(pointer))
    with Model(pointer, keep) as model:
        _check(_lib.qsim_model_check(model._pointer, _ProblemFn(note), None))
    return found
