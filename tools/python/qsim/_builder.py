# SPDX-License-Identifier: MIT
"""Models made by calls."""

from __future__ import annotations

import ctypes as C
from typing import Any, Optional, Tuple

import numpy as np

from ._abi import _lib, _utf8
from ._arrays import _array, _view
from ._context import _ctx
from ._library import _Handle, _call
from ._model import Model


class Builder(_Handle):
    """A model made by calls, which may be chained; finish() raises their first error. `name` is the
    graph's, `opset` the version of ai.onnx.

        b = qsim.Builder("linear").input("x", "float[N,64]").output("y")
        b.constant("W", W).constant("b", bias)
        b.node("MatMul", "x,W", "xW")
        b.node("Add", "xW,b", "y")
        model = b.finish()
    """

    _free = "qsim_builder_free"

    def __init__(self, name: str = "model", opset: int = 13) -> None:
        pointer = C.c_void_p()
        _call("qsim_builder_create", _ctx, opset, _utf8(name), C.byref(pointer))
        super().__init__(pointer)

    def __enter__(self) -> "Builder":
        return self

    def domain(self, name: str, version: int) -> "Builder":
        """Imports another operator domain."""
        _lib.qsim_builder_import(self._pointer, _utf8(name), version)
        return self

    def input(self, name: str, type: str) -> "Builder":
        """An input such as ("x", "float[N,64]"): ONNX's name of the type, and the sizes; a name in
        their place is a free axis."""
        _lib.qsim_builder_input_as(self._pointer, _utf8(name), _utf8(type))
        return self

    def output(self, name: str, type: Optional[str] = None) -> "Builder":
        """An output; without a type it is inferred."""
        _lib.qsim_builder_output_as(self._pointer, _utf8(name), _utf8(type) if type else None)
        return self

    def constant(self, name: str, array: Any) -> "Builder":
        """A constant with the array's type and shape."""
        view = _view(_array(array))
        _lib.qsim_builder_constant(self._pointer, _utf8(name), C.byref(view))
        return self

    def node(self, op_type: str, inputs: str, outputs: str, name: str = "", domain: str = "",
             **attributes: Any) -> "Builder":
        """A node; `inputs` and `outputs` are comma-separated names of tensors. Keywords are its
        attributes: ints, floats, strings, arrays (a tensor), or lists of ints, floats or strings."""
        _lib.qsim_builder_node(self._pointer, _utf8(domain), _utf8(op_type), _utf8(name),
                               _utf8(inputs), _utf8(outputs))
        for key, value in attributes.items():
            self._attribute(key, value)
        return self

    def _attribute(self, key: str, value: Any) -> None:
        kind: Optional[str] = None
        arguments: Tuple[Any, ...] = (value,)
        if isinstance(value, np.ndarray):
            view = _view(_array(value))
            kind, arguments = "tensor", (C.byref(view),)
        elif isinstance(value, (int, np.integer)):
            kind, arguments = "int", (int(value),)
        elif isinstance(value, (float, np.floating)):
            kind = "float"
        elif isinstance(value, str):
            kind, arguments = "string", (_utf8(value),)
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
            texts = [_utf8(v) for v in value]
            kind, arguments = "strings", ((C.c_char_p * len(texts))(*texts), len(texts))
        elif isinstance(value, (list, tuple)):
            whole = all(isinstance(v, (int, np.integer)) for v in value)
            kind = "ints" if whole else "floats"
            element: Any = C.c_int64 if whole else C.c_float
            arguments = ((element * len(value))(*value), len(value))
        if kind is None:
            raise TypeError(f"attribute {key!r} cannot be {type(value).__name__}")
        getattr(_lib, f"qsim_builder_attr_{kind}")(self._pointer, _utf8(key), *arguments)

    def metadata(self, key: str, value: str) -> "Builder":
        """Adds or replaces a metadata_props entry."""
        _lib.qsim_builder_metadata(self._pointer, _utf8(key), _utf8(value))
        return self

    def finish(self) -> Model:
        """Checks the model, infers types and shapes and returns it as a Model; may be called
        once."""
        pointer = C.c_void_p()
        _call("qsim_builder_finish", self._pointer, C.byref(pointer))
        return Model(pointer)
