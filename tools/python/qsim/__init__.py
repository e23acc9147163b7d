# SPDX-License-Identifier: MIT
"""libqsim from Python: quantize, calibrate and run neural networks.

Needs numpy and the shared library (libqsim.so.0), nothing else.

    import qsim
    int8 = qsim.quantize("model.onnx", data=batches, method="mse")   # float32 arrays
    int8.save("int8.onnx")
    logits, = qsim.Session("int8.onnx", threads=2).run(batch)

Models:     Model (load, inspect, save), Builder (make one by calls), check, Package, operators
Running:    Session, Context (threads and limits of several sessions), isas, machine
Quantizing: quantize, Calibration, Observer, Recipe, search, sensitivity, judge
Comparing:  compare, Metrics, Divergence, mcnemar
Arrays:     choose, measure, limits, quantize, dequantize, conv2d, linear, requantize, read_array

The library is looked for in $QSIM_LIBRARY, beside this file, then on the system's paths. Inputs and
outputs are numpy arrays; contiguous inputs are not copied. Failures of the library raise qsim.Error
with its own message; arguments of a wrong type raise TypeError, unknown words ValueError. Models,
sessions and contexts may be shared between threads; every other object is used by one thread at a
time. Objects that own memory of the library have close() and work with `with`.
"""

from __future__ import annotations

from typing import NoReturn

from ._abi import version
from ._affine import choose, dequantize, limits, measure
from ._builder import Builder
from ._calibration import Calibration
from ._compare import Divergence, Metrics, compare, mcnemar
from ._context import Context, isas, machine
from ._files import dump_proto, read_array
from ._layers import conv2d, fixed_from_float, linear, requantize, requantize_fixed
from ._library import Error
from ._model import Model, Node, Operator, Problem, Value, check, operators
from ._observer import Observer
from ._options import QUANTIZE_OPTIONS
from ._package import Package, PackageEntry
from ._profile import Profile
from ._quantize import Layer, quantize
from ._recipe import Recipe, RecipeEntry
from ._search import (Attempt, Judgement, SearchResult, Sensitivity, Unit, search, search_methods,
                      sensitivity)
from ._session import Session
from ._verdict import Judged, JudgedInput, JudgedLabels, Verdict, judge

__version__ = "0.1.0"

_OTHER_NAMES = {"InferenceSession": "Session(path)", "SessionOptions": "Session(path, threads=, level=)",
              "load": "Model.load(path)", "load_model": "Model.load(path)", "quantize_dynamic":
              'quantize(model, mode="dynamic")', "quantize_static": "quantize(model, data=batches)"}


def __getattr__(name: str) -> NoReturn:
    hint = f": here it is qsim.{_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
    raise AttributeError(f"module 'qsim' has no attribute {name!r}{hint}")


__all__ = [
    "Attempt", "Builder", "Calibration", "Context", "Divergence", "Error", "Judged", "JudgedInput",
    "Judgement", "Layer", "Metrics", "Model", "Node", "Observer", "Operator", "Package", "PackageEntry",
    "Problem", "Profile", "QUANTIZE_OPTIONS", "Recipe", "RecipeEntry", "SearchResult", "Sensitivity",
    "Session", "Unit", "Value", "Verdict", "check", "choose", "compare", "conv2d", "dequantize",
    "dump_proto", "fixed_from_float", "isas", "judge", "limits", "linear", "machine", "mcnemar",
    "measure", "operators", "quantize", "read_array", "requantize", "requantize_fixed", "search",
    "search_methods", "sensitivity", "version",
]
