# SPDX-License-Identifier: MIT
"""The types of operators that ONNX added or widened since opset 18, which Debian's schemas do not have.

Types and versions are those of ONNX's changelog of operators. A model of one node is made for each
and loaded; every refusal has to be named here, with its reason, and every name has to be needed.
Needs Python's onnx package; skipped by name without.

Usage: newer_types.py SOURCE_ROOT (QSIM_LIBRARY set)
"""

import sys

try:
    import numpy as np
    from onnx import ValueInfoProto, helper, numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

from refusals import refusal

CODES = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "double": 11,
         "uint32": 12, "uint64": 13, "bfloat16": 16, "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20,
         "uint4": 21, "int4": 22, "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26}
REAL = "float float16 bfloat16 double"
INT = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
ALL = f"{REAL} {INT} bool"
SMALL = "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz"
PACKED = "int4 uint4"
FOUR = "float4e2m1"
NEWEST = "float8e8m0 uint2 int2"  # since opset 24 and 25
EVERY = f"{ALL} {SMALL} {PACKED} {FOUR} {NEWEST}"


def ints(values):
    return np.array(values, np.int64)


# Operators, version, types of the first input and of others without one, inputs: sizes, (type, sizes), a constant, None: left out.
# Attributes; "outputs" is their number.
CASES = [
    ("ReduceMax ReduceMin", 20, f"{REAL} int8 uint8 int32 int64 uint32 uint64 bool", [[2, 3], ints([1])], {}),
    ("ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSumSquare", 18,
     f"{REAL} int32 int64 uint32 uint64", [[2, 3], ints([1])], {}),
    ("CenterCropPad", 18, ALL, [[4, 4], ints([2, 6])], {}),
    ("Col2Im", 18, ALL, [[1, 4, 4], ints([4, 4]), ints([2, 2])], {"strides": [2, 2]}),
    ("BitwiseAnd BitwiseOr BitwiseXor", 18, INT, [[2, 3], [2, 3]], {}),
    ("BitwiseNot", 18, INT, [[2, 3]], {}),
    ("Split", 18, ALL, [[4, 3]], {"outputs": 2, "num_outputs": 2}),
    ("ScatterElements", 18, ALL, [[2, 3], ("int64", [1, 3]), [1, 3]], {}),
    ("ScatterND", 18, ALL, [[2, 3], ("int64", [1, 1]), [1, 3]], {}),
    ("Equal", 19, ALL, [[2], [2]], {}),
    ("Resize", 19, ALL, [[1, 1, 4, 4], None, np.array([1, 1, 2, 2], np.float32)], {"mode": "nearest"}),
    ("Resize", 19, f"{REAL} {INT}", [[1, 1, 4, 4], None, np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}),
    ("Gelu", 20, REAL, [[2, 3]], {}),
    ("AffineGrid", 20, REAL, [[1, 2, 3], ints([1, 1, 4, 4])], {}),
    ("DFT", 20, REAL, [[1, 8, 1]], {}),
    ("GridSample", 20, ALL, [[1, 1, 4, 4], ("float", [1, 2, 2, 2])], {}),
    ("IsInf IsNaN", 20, f"{REAL} {SMALL}", [[3]], {}),
    ("GroupNormalization", 21, REAL, [[1, 4, 3], [4], [4]], {"num_groups": 2}),
    ("Pad", 21, ALL, [[2, 3], ints([0, 1, 0, 1])], {}),
    ("QuantizeLinear", 21, "float float16 bfloat16 int32", [[2, 4], ("float", [])], {"output_dtype": 5}),
    ("Acos Acosh Asin Asinh Atan Atanh Celu Cos Cosh Dropout Elu HardSigmoid HardSwish Mish Round Selu Sin Sinh Softplus Softsign Tan "
     "ThresholdedRelu", 22, REAL, [[2, 3]], {}),
    ("AveragePool LpPool", 22, REAL, [[1, 1, 4, 4]], {"kernel_shape": [2, 2]}),
    ("MaxPool", 22, f"{REAL} int8 uint8", [[1, 1, 4, 4]], {"kernel_shape": [2, 2]}),
    ("GlobalAveragePool GlobalLpPool GlobalMaxPool", 22, REAL, [[1, 1, 4, 4]], {}),
    ("MaxUnpool", 22, REAL, [[1, 1, 2, 2], ("int64", [1, 1, 2, 2])], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("MaxRoiPool", 22, REAL, [[1, 1, 4, 4], [1, 5]], {"pooled_shape": [2, 2]}),
    ("RoiAlign", 22, REAL, [[1, 1, 4, 4], [1, 4], ints([0])], {}),
    ("Conv ConvTranspose", 22, REAL, [[1, 1, 4, 4], [1, 1, 2, 2]], {}),
    ("DeformConv", 22, REAL, [[1, 1, 4, 4], [1, 1, 2, 2], [1, 8, 3, 3]], {}),
    ("Det", 22, REAL, [[2, 2]], {}),
    ("EyeLike", 22, ALL, [[2, 2]], {}),
    ("InstanceNormalization", 22, REAL, [[1, 2, 4], [2], [2]], {}),
    ("LpNormalization", 22, REAL, [[2, 3]], {}),
    ("LSTM", 22, REAL, [[2, 1, 3], [1, 8, 3], [1, 8, 2]], {"hidden_size": 2}),
    ("GRU", 22, REAL, [[2, 1, 3], [1, 6, 3], [1, 6, 2]], {"hidden_size": 2}),
    ("RNN", 22, REAL, [[2, 1, 3], [1, 2, 3], [1, 2, 2]], {"hidden_size": 2}),
    ("NegativeLogLikelihoodLoss", 22, REAL, [[2, 3], ("int64", [2])], {}),
    ("Flatten Identity Shape Size Transpose", 23, f"{ALL} {SMALL} {PACKED} {FOUR}", [[2, 4]], {}),
    ("Squeeze", 23, f"{ALL} {SMALL} {PACKED} {FOUR}", [[1, 4]], {}),
    ("Unsqueeze", 23, f"{ALL} {SMALL} {PACKED} {FOUR}", [[2, 4], ints([0])], {}),
    ("Reshape", 23, f"{ALL} {SMALL} {PACKED} {FOUR}", [[2, 4], ints([4, 2])], {}),
    ("Attention", 23, REAL, [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]], {}),
    ("RMSNormalization", 23, REAL, [[2, 4], [4]], {}),
    ("RotaryEmbedding", 23, "float float16 bfloat16", [[1, 2, 3, 4], [1, 3, 2], [1, 3, 2]], {}),
    ("Swish", 24, "float float16 bfloat16", [[2, 3]], {}),
    ("TensorScatter", 24, ALL, [[2, 4, 3], [2, 2, 3], ints([0, 1])], {}),
    ("Cast", 25, EVERY, [[2, 4]], {"to": 1}),
    *(("Cast", 25, "float", [[2, 4]], {"to": CODES[t]}) for t in EVERY.split()),
    ("CastLike", 25, EVERY, [[2, 4], ("float8e8m0", [1])], {}),
    ("Flatten Identity Shape Size Squeeze Transpose", 25, NEWEST, [[1, 4]], {}),
    ("Reshape", 25, NEWEST, [[2, 4], ints([4, 2])], {}),
    ("Unsqueeze", 25, NEWEST, [[2, 4], ints([0])], {}),
    ("BitCast", 26, "int8 uint8 bool", [[2]], {"to": CODES["uint8"]}),
    *(("QuantizeLinear", 25, "float float16 bfloat16 int32", [[2, 4], ("float", [4])], {"output_dtype": CODES[t]})
      for t in f"int8 uint8 int16 uint16 {SMALL} {PACKED} {FOUR} uint2 int2".split()),
    ("QuantizeLinear", 25, "float", [[2, 4], ("float8e8m0", [2, 2])], {"block_size": 2, "output_dtype": CODES["float8e4m3fn"]}),
    *(("DequantizeLinear", 25, f"int8 uint8 int16 uint16 int32 {SMALL} {PACKED} {FOUR} uint2 int2", [[2, 4], (t, [])], {})
      for t in "float float16 bfloat16 float8e8m0".split()),
    ("TopK", 24, f"{REAL} {INT}", [[2, 3], ints([1])], {"outputs": 2}),
]
REFUSED = {
    ("Col2Im", 18): ("bool", "sums of truth values"),
    ("GridSample", 20): ("bool", "weighted means of truth values"),
}


def model(op, version, dtype, inputs, attrs):
    names, fed, constants = [], [], []
    for i, x in enumerate(inputs):
        names.append("" if x is None else f"x{i}")
        if isinstance(x, np.ndarray):
            constants.append(numpy_helper.from_array(x, names[-1]))
        elif x is not None:
            own, sizes = x if isinstance(x, tuple) else (dtype, x)
            fed.append(helper.make_tensor_value_info(names[-1], CODES[own], sizes))
    outs = [ValueInfoProto(name=f"y{i}") for i in range(attrs.get("outputs", 1))]
    node = helper.make_node(op, names, [o.name for o in outs], **{k: v for k, v in attrs.items() if k != "outputs"})
    graph = helper.make_graph([node], "one", fed, outs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    made.ir_version = 11
    return made.SerializeToString()


def main():
    wrong, tried, needed = 0, 0, set()
    for names, version, types, inputs, attrs in CASES:
        for op, dtype in ((op, t) for op in names.split() for t in types.split()):
            why = refusal(model(op, version, dtype, inputs, attrs))
            named = dtype in REFUSED.get((op, version), ("", ""))[0].split()
            tried += 1
            if why and named:
                needed.add((op, version, dtype))
            elif why:
                wrong += 1
                print(f"refused, and not named here: {op}-{version} of {dtype}: {why}")
    for (op, version), (types, _) in REFUSED.items():
        for dtype in types.split():
            if (op, version, dtype) not in needed:
                wrong += 1
                print(f"named here, and loaded: {op}-{version} of {dtype}")
    print(f"{tried} pairs of operator and type: {tried - len(needed) - wrong} are loaded, {len(needed)} refused as named; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
