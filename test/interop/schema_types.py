# SPDX-License-Identifier: MIT
"""The types that ONNX's schemas allow and qsim refuses, by operator and input.

ONNX's own test models of single nodes are declared anew with each type that a type variable may
have, and loaded. Every refusal has to be named here, with its reason, and every name has to be
needed. Needs Python's onnx package, with its tests (Debian: python3-onnx, libonnx-testdata); skipped by name without. Operators that are
newer than the package are in newer_types.py.

Usage: schema_types.py SOURCE_ROOT (QSIM_LIBRARY set)
"""

import collections
import os
import sys

try:
    import onnx
    import onnx.backend.test
    from onnx import TensorProto, defs
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

from refusals import qsim, refusal

DATA = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "node")
if not os.path.isdir(DATA):
    print(f"skipped: no test models of ONNX in {DATA}")
    sys.exit(77)

# Refused whatever the operator.
TYPES = {
    "string": "texts are no numbers",
    "complex64": "complex numbers stand in the last axis, as DFT has them",
    "complex128": "complex numbers stand in the last axis, as DFT has them",
}
# (operator, type variable): types, reason.
REFUSED = {
    ("GridSample", "T1"): ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 double",
                           "this schema gives the output the grid's type, a slip that version 20 mends"),
}
# Operators that are refused whatever the type.
OPERATORS = {
    "SequenceMap": "a sequence as an input of each of ONNX's models",
    "StringNormalizer": "texts are no numbers", "TfIdfVectorizer": "texts are no numbers",
}
# ONNX's models feed these sequences and optionals, which are no inputs here.
FED = ("OptionalGetElement", "OptionalHasElement", "SequenceInsert")
SHORT = {f"tensor({n})": getattr(TensorProto, n.upper()) for n in
         "float uint8 int8 uint16 int16 int32 int64 string bool float16 double uint32 uint64 "
         "complex64 complex128 bfloat16".split()}
MODELS = 4  # of each operator and number of inputs


def models():
    """Test models of one node by operator: [path], a few of each."""
    found = collections.defaultdict(list)
    for test in sorted(os.listdir(DATA)):
        path = os.path.join(DATA, test, "model.onnx")
        model = onnx.load(path)
        nodes = model.graph.node
        if len(nodes) != 1 or nodes[0].domain not in ("", "ai.onnx") or "_expanded" in test:
            continue
        if any(a.HasField("g") for a in nodes[0].attribute):
            continue  # what the nodes inside make goes by them
        found[nodes[0].op_type].append((path, model))
    for op, list_ in found.items():
        by_count = collections.defaultdict(list)
        for path, model in list_:
            by_count[len(model.graph.node[0].input)].append((path, model))
        found[op] = [pair for some in by_count.values() for pair in some[::-(-len(some) // MODELS)]]
    return found


def variables(schema, node):
    """Names of values by the type variable that they have. Those of outputs alone go by attributes."""
    found = collections.defaultdict(list)
    for formal, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for i, name in enumerate(names):
            variable = formal[min(i, len(formal) - 1)].typeStr
            if name and (names is node.input or variable in found):
                found[variable].append(name)
    return found


def declared(model, names, dtype):
    """The model with these tensors of another type; None where one of them is no tensor."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for value in list(other.graph.input) + list(other.graph.output):
        if value.name in names:
            if not value.type.HasField("tensor_type"):
                return None
            value.type.tensor_type.elem_type = dtype
    return other


def main():
    refused = collections.defaultdict(set)
    loaded = collections.Counter()
    whole = set()
    schemas = {s.name: s for s in defs.get_all_schemas() if s.domain == "" and not s.deprecated}

    for op, list_ in sorted(models().items()):
        if op not in schemas:
            continue
        allowed = {c.type_param_str: c.allowed_type_strs for c in schemas[op].type_constraints}
        plain = [(path, m) for path, m in list_ if not refusal(m.SerializeToString())]
        if not plain:
            whole.add(op)
            continue
        for variable, types in allowed.items():
            for type_ in types:
                if type_ not in SHORT:
                    continue  # sequences and optionals
                answers = []
                for _, model in plain:
                    names = variables(schemas[op], model.graph.node[0])[variable]
                    other = names and declared(model, names, SHORT[type_])
                    if other and None not in answers:
                        answers.append(refusal(other.SerializeToString()))
                if answers and all(answers):
                    refused[op, variable].add((type_[7:-1], answers[0]))
                loaded[bool(answers) and not all(answers)] += 1
    bad = 0
    for key, found in sorted(refused.items()):
        names = {t for t, _ in found} - set(TYPES)
        known = set(REFUSED.get(key, ("", ""))[0].split())
        for t, why in sorted(found):
            if t in names - known:
                print(f"refused, and not named: {key[0]} {key[1]} {t}: {why}")
                bad += 1
        for t in sorted(known - names):
            print(f"named, but not refused: {key[0]} {key[1]} {t}")
            bad += 1
    for key in sorted(set(REFUSED) - set(refused)):
        print(f"named, but not refused: {key[0]} {key[1]}")
        bad += 1
    table = {o.op_type for o in qsim.operators() if not o.domain}
    for op in sorted((set(schemas) - table) ^ set(OPERATORS)):
        print(f"{'named, but not refused' if op in OPERATORS else 'refused, and not named'}: {op}")
        bad += 1
    for op in sorted((whole & table) ^ set(FED)):
        print(f"{'named, but not refused' if op in FED else 'refused, and not named'}: all of {op}")
        bad += 1
    total = sum(len(f) for f in refused.values())
    texts = sum(t in TYPES for f in refused.values() for t, _ in f)
    print(f"{loaded[True]} pairs of operator and type are loaded, {total} refused, {texts} of them texts and "
          f"complex numbers; {len(OPERATORS)} operators are refused; {bad} not as named here")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
