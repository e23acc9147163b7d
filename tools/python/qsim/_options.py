# SPDX-License-Identifier: MIT
"""Options of quantizing."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Dict, List, Tuple

from ._abi import _QuantizeOptions, _Rule, _utf8
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
    "weight_type": ["int8", "uint8", "int4", "uint4", "float16"],
    "weight_scheme": list(_SCHEMES),
    "weight_block": "4-bit weights that share a scale: 16, 32, 64, 128, 256; 0: all of a channel",
    "gptq": [True, False],
    "keep_moments": [False, True],
    "activation_symmetric": [False, True],
    "split_curves": [False, True],
    "reduce_range": [False, True],
    "reduce_pairs": [False, True],
    "rules": "list or dict of (glob over names of nodes, or of operators if it matches no node; "
             "'fp32', 'int8', 'int4' or 'int16'); the last match wins",
}

# Names of options in other quantizers, and the options here.
_ELSEWHERE = {
    "per_channel": "weight_scheme='channel' (the default) or 'tensor'",
    "op_types_to_quantize": "rules=[('*', 'fp32'), ('Conv', 'int8')]",
    "use_external_data_format": "Model.save(path, external=True)",
    "block_size": "weight_block=32, for weights of 4 bits",
    "weightsymmetric": "weight_scheme='tensor' and 'channel' (symmetric), or '-asymmetric' behind them",
    "activationsymmetric": "activation_symmetric=True",
    "calibtensorrangesymmetric": "activation_symmetric=True",
    "smoothquant": "Model.search(calibration, 'smooth')",
    "tensorquantoverrides": "recipe=, in which each tensor has a line",
    "extra_options": "an option for each of its entries; docs/PYTHON.md has a table",
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


def _switch(options: Mapping[str, Any], name: str, default: bool) -> int:
    value = options.get(name, default)
    if value not in (True, False):  # also 0 and 1; the text "False" is true to Python
        raise TypeError(f"{name} is True or False, not {value!r}")
    return int(value)


def _reduction(options: Mapping[str, Any]) -> int:
    """QSIM_REDUCE_*."""
    by_range, pairs = (_switch(options, name, False) for name in ("reduce_range", "reduce_pairs"))
    if by_range and pairs:
        raise TypeError("reduce_pairs does not go with reduce_range")
    return 2 if pairs else by_range


def _quantize_options(options: Mapping[str, Any]) -> Tuple[_QuantizeOptions, Any]:
    """The struct, and the objects that must live as long."""
    _refuse_unknown(options)
    rules = [_Rule(pattern=_utf8(glob), action=_ACTIONS[action])
             for glob, action in _rules(options.get("rules", []))]
    array = (_Rule * max(len(rules), 1))(*rules)
    struct = _QuantizeOptions(
        rules=array, rule_count=len(rules), percentile=options.get("percentile", 0.0),
        format=_FORMATS[options.get("format", "qdq")],
        activation_type=_dtype(options.get("activation_type", "uint8")),
        weight_type=_dtype(options.get("weight_type", "int8")),
        weight_scheme=_SCHEMES[options.get("weight_scheme", "channel")],
        activation_symmetric=_switch(options, "activation_symmetric", False),
        method=_METHODS[options.get("method", "minmax")],
        reduce_range=_reduction(options),
        mode=_MODES[options.get("mode", "static")],
        per_row=_switch(options, "per_row", False),
        no_bias_correction=1 - _switch(options, "bias_correction", True),
        weight_block=options.get("weight_block", 0),
        no_gptq=1 - _switch(options, "gptq", True),
        keep_moments=_switch(options, "keep_moments", False),
        split_curves=_switch(options, "split_curves", False))
    return struct, (rules, array)
