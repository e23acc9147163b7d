# SPDX-License-Identifier: MIT
"""Options of quantizing."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Dict, List, Tuple

from ._abi import _QuantizeOptions, _Rule
from ._words import _ACTIONS, _FORMATS, _METHODS, _MODES, _SCHEMES, _dtype

#: Options of Model.quantize and their values, the first being the default.
QUANTIZE_OPTIONS: Dict[str, Any] = {
    "mode": list(_MODES),
    "per_row": [False, True],
    "bias_correction": [True, False],
    "format": list(_FORMATS),
    "method": list(_METHODS),
    "percentile": "in (0, 100], for method='percentile'",
    "activation_type": ["uint8", "int8", "uint16", "int16"],
    "weight_type": ["int8", "uint8", "int4", "uint4"],
    "weight_scheme": list(_SCHEMES),
    "weight_block": "4-bit weights that share a scale: 16, 32, 64, 128, 256; 0: all of a channel",
    "gptq": [True, False],
    "keep_moments": [False, True],
    "activation_symmetric": [False, True],
    "reduce_range": [False, True],
    "rules": "list or dict of (glob over node names, 'fp32', 'int8', 'int4' or 'int16'); the last match wins",
}

# Names of options in other quantizers, and the options here.
_ELSEWHERE = {
    "per_channel": "weight_scheme='channel' (the default) or 'tensor'",
    "calibrate_method": "method='minmax', 'percentile', 'mse' or 'entropy'",
    "calibration_method": "method='minmax', 'percentile', 'mse' or 'entropy'",
    "quant_format": "format='qdq' or 'qoperator'",
    "nodes_to_exclude": "rules=[('name', 'fp32')]",
    "nodes_to_quantize": "rules=[('*', 'fp32'), ('name', 'int8')]",
    "calibration_data_reader": "data=an iterable of batches",
    "weight_symmetric": "weight_scheme='tensor-asymmetric'",
}


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in QUANTIZE_OPTIONS:
            continue
        near = difflib.get_close_matches(name, QUANTIZE_OPTIONS, 1)
        hint = (f"here it is {_ELSEWHERE[name.lower()]}" if name.lower() in _ELSEWHERE else
                f"did you mean {near[0]!r}?" if near else f"known: {sorted(QUANTIZE_OPTIONS)}")
        raise TypeError(f"unknown option {name!r}: {hint}")


def _rules(given: Any) -> List[Tuple[str, str]]:
    pairs = list(given.items() if isinstance(given, Mapping) else given)
    if isinstance(given, str) or not all(isinstance(p, (tuple, list)) and len(p) == 2 for p in pairs):
        raise TypeError("rules are pairs, such as [('conv*', 'fp32')], or a dict of them")
    return [(glob, action) for glob, action in pairs]


def _quantize_options(options: Mapping[str, Any]) -> Tuple[_QuantizeOptions, Any]:
    """The struct, and the objects that must live as long."""
    _refuse_unknown(options)
    rules = [_Rule(pattern=glob.encode(), action=_ACTIONS[action])
             for glob, action in _rules(options.get("rules", []))]
    array = (_Rule * max(len(rules), 1))(*rules)
    struct = _QuantizeOptions(
        rules=array, rule_count=len(rules), percentile=options.get("percentile", 0.0),
        format=_FORMATS[options.get("format", "qdq")],
        activation_type=_dtype(options.get("activation_type", "uint8")),
        weight_type=_dtype(options.get("weight_type", "int8")),
        weight_scheme=_SCHEMES[options.get("weight_scheme", "channel")],
        activation_symmetric=1 if options.get("activation_symmetric") else 0,
        method=_METHODS[options.get("method", "minmax")],
        reduce_range=1 if options.get("reduce_range") else 0,
        mode=_MODES[options.get("mode", "static")],
        per_row=1 if options.get("per_row") else 0,
        no_bias_correction=0 if options.get("bias_correction", True) else 1,
        weight_block=options.get("weight_block", 0),
        no_gptq=0 if options.get("gptq", True) else 1,
        keep_moments=1 if options.get("keep_moments") else 0)
    return struct, (rules, array)
