# SPDX-License-Identifier: MIT
"""Names of the library's constants."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from ._abi import _lib, _text, _utf8


class _Words(Dict[str, int]):
    """Names of constants in Python, and their numbers in C."""

    def __missing__(self, word: str) -> int:
        raise ValueError(f"{word!r} is none of {', '.join(self)}")

    def word(self, number: int) -> str:
        return next((word for word, n in self.items() if n == number), f"number {number}")


_METHODS = _Words({"minmax": 0, "percentile": 1, "mse": 2, "entropy": 3})
_LEVELS = _Words({"default": 0, "disable": 1, "basic": 2, "extended": 3, "all": 4})
_SCHEMES = _Words({"channel": 0, "tensor": 1, "tensor-asymmetric": 2,
                   "channel-asymmetric": 3})
_FORMATS = _Words({"qdq": 0, "qoperator": 1})
_FORMS = _Words({"qdq": 0, "float": 2, "onnx": 3})
_MODES = _Words({"static": 0, "dynamic": 1, "weights": 2})
_ACTIONS = _Words({"fp32": 1, "int8": 2, "int4": 3, "int16": 4})
_ROLES = _Words({"data": 0, "model": 1, "calibration": 2, "preprocess": 3, "labels": 4, "report": 5,
                 "manifest": 6, "sums": 7})
_KINDS = _Words({"layer": 1, "tensor": 2, "equalize": 3})
_ENTRY_ACTIONS = _Words({"quantize": 0, "float": 1, "integer": 2})
_GRANULARITIES = _Words({"channel": 0, "tensor": 1, "block": 2})
_ROUNDINGS = _Words({"nearest": 0, "gptq": 1})
_CORRECTIONS = _Words({"default": 0, "on": 1, "off": 2, "given": 3})
_GRADES = _Words({"none": 0, "good": 1, "doubtful": 2, "bad": 3})
_MEASURES = _Words({"none": 0, "agreement": 1, "sqnr": 2})
_GOALS = _Words({"accuracy": 0, "size": 1, "latency": 2})
_UNIT_BITS = _Words({"float": 1, "4": 2, "8": 4, "16": 8, "dynamic": 16, "weights": 32})
_ANSWERS = _Words({"unknown": 0, "probabilities": 1, "logits": 2, "values": 3})

# Data types. numpy lacks those of 2 and 4 bits, whose arrays hold packed bytes, and those of _RAW,
# whose arrays hold their bits.
_DTYPES = _Words({
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
    "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21,
    "int4": 22, "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26,
})
_NAMES = {number: name for name, number in _DTYPES.items()}
_BITS = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2}
_RAW = {"bfloat16": "uint16", "float8e4m3fn": "uint8", "float8e4m3fnuz": "uint8",
        "float8e5m2": "uint8", "float8e5m2fnuz": "uint8", "float8e8m0": "uint8"}


# Members of ONNX Runtime's QuantType.
_QUANT_TYPES = {"QInt4": "int4", "QUInt4": "uint4", "QInt8": "int8", "QUInt8": "uint8", "QInt16": "int16",
                "QUInt16": "uint16"}


_KNOWN: Dict[Any, int] = {}  # numpy's types: asking one for its name takes microseconds


def _dtype(name: Any) -> int:
    """The library's number of a data type, given by name or as a numpy type."""
    number = _KNOWN.get(name)
    if number is None:
        there = getattr(name, "name", name)
        if isinstance(there, str) and there in _QUANT_TYPES:
            raise TypeError(f"{there} is {_QUANT_TYPES[there]!r} here")
        text = name if isinstance(name, str) else np.dtype(name).name
        if text not in _DTYPES:
            kind = "" if isinstance(name, str) else np.dtype(name).kind
            raise TypeError("an array of numbers is needed, not text or objects" if kind in ("U", "S", "O")
                            else f"libqsim has no data type {text!r}")
        number = _KNOWN[name] = _DTYPES[text]
    return number


def _dtype_name(number: int) -> str:
    return _NAMES.get(number, f"type {number}")


def _isa(name: Optional[str]) -> int:
    number = 0
    while name is not None and _lib.qsim_isa_name(number) != _utf8(name):
        if _lib.qsim_isa_name(number) is None:
            known = [_text(_lib.qsim_isa_name(i)) for i in range(1, number)]  # 0: the best
            raise ValueError(f"'{name}' is no instruction set: known: {known}")
        number += 1
    return number
