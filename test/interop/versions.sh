#!/bin/sh
# SPDX-License-Identifier: MIT
# Numbers of inputs and outputs and names of attributes, for each operator at each version: what ONNX's
# own schemas refuse, loading refuses, too; counts that they accept are not refused.
# Skipped by name where Python has no onnx (Debian: python3-onnx).
# Usage: versions.sh PYTHON SOURCE_ROOT LIBRARY
set -eu
python=$1
export QSIM_LIBRARY="$3" PYTHONPATH="$2/tools/python"
"$python" -c 'import onnx' 2>/dev/null || { echo "skipped: $python has no onnx"; exit 77; }
"$python" -B - <<'END'
import collections
import sys

import onnx
import qsim
from onnx import TensorProto, helper

newest = onnx.defs.onnx_opset_version()
history = collections.defaultdict(dict)
for s in onnx.defs.get_all_schemas_with_history():
    if s.domain == "":
        history[s.name][s.since_version] = s
values = {"FLOAT": 1.0, "INT": 1, "STRING": "a", "FLOATS": [1.0], "INTS": [1], "STRINGS": ["a"]}
bad, checked = [], 0


def complaint(name, opset, inputs, outputs, **attrs):
    """What the library says of a model of one node."""
    x = [f"x{i}" for i in range(inputs)]
    y = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(name, x, y, **attrs)], "g",
        [helper.make_tensor_value_info(v, TensorProto.FLOAT, [1]) for v in x],
        [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in y])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()
    try:
        found = qsim.check(data)
        if not found:
            qsim.Model.loads(data)
    except qsim.Error as e:
        return str(e)
    return "\n".join(p.message for p in found)


def expect(refused, said, what):
    global checked
    checked += 1
    if refused != said:
        bad.append(f"{what}: {'accepted' if refused else 'refused'}")


def check_form(name, opset, s, attributes):
    least_out = max(1, s.min_output)
    for n in {s.min_input - 1, s.min_input, s.max_input, s.max_input + 1}:
        if 0 <= n < 64:
            said = "inputs, expected" in complaint(name, opset, n, least_out)
            expect(not s.min_input <= n <= s.max_input, said, f"{name} {opset}, {n} inputs")
    for n in {least_out, s.max_output, s.max_output + 1}:
        if n < 64:
            said = "outputs, expected" in complaint(name, opset, s.min_input, n)
            expect(n > s.max_output, said, f"{name} {opset}, {n} outputs")
    for a, value in attributes.items():
        if a not in s.attributes:
            said = complaint(name, opset, s.min_input, least_out, **{a: value})
            expect(True, f"attribute '{a}' is not known" in said, f"{name} {opset}, {a}")


for name, forms in sorted(history.items()):
    since = sorted(forms)
    graphs = any(a.type.name == "GRAPH" for a in forms[since[0]].attributes.values())
    if graphs or f"operator {name} is not supported" in complaint(name, newest, 1, 1):
        continue
    attributes = {a.name: values[a.type.name] for s in forms.values() for a in s.attributes.values()
                  if a.type.name in values}
    for i, first in enumerate(since):
        last = since[i + 1] - 1 if i + 1 < len(since) else newest
        for opset in {first, last}:
            if f"this version of operator {name}" not in complaint(name, opset, 1, 1):
                check_form(name, opset, forms[first], attributes)
print(f"onnx {onnx.__version__}: {checked} nodes, {len(bad)} wrong", *bad, sep="\n")
sys.exit(bool(bad) or checked < 500)
END
