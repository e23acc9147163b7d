# SPDX-License-Identifier: MIT
"""Single operators beside ONNX Runtime: operators.sh."""
import struct
import sys

from benchlib import Refused, beside_ort
from onenode import BOOL, BRAIN, DOUBLE, FLOAT, HALF, INT8, INT32, INT64, UINT8, floats, one_node, tensor

IMAGE = [1, 64, 64, 64]


def weights(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return tensor(name, FLOAT, list(dims), floats(count, lambda i: (i * 7919 % 97) / 970 + 0.01))


def whole(name, *numbers):
    return tensor(name, INT64, [len(numbers)], struct.pack(f"<{len(numbers)}q", *numbers))


def case(op, dims=None, attributes=None, constants=(), inputs=None, out=FLOAT, outputs=1, opset=17, note="", of=FLOAT, more=None):
    """
    `inputs`: names in order, of x, which has the type `of`, of z, which has that type and the sizes `more`, and of
    constants (name, bytes); a second output is int64.
    """
    names = inputs or ["x"] + ["z"] * bool(more) + [name for name, _ in constants]
    results = [("y", None, out)] + [("z", None, INT64)] * (outputs - 1)
    dims = dims or IMAGE
    model = one_node(op, "", names, attributes or {}, [c for _, c in constants], [("x", dims, of)] + ([("z", more, of)] if more else []),
                     results, opset)
    return op, note, dims, model


def unary():
    for op in ("Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Reciprocal", "Relu", "LeakyRelu", "Elu", "Selu", "Celu",
               "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softplus", "Softsign", "ThresholdedRelu", "Exp", "Log", "Erf", "Sin"):
        yield case(op)
    for op, opset in (("Mish", 18), ("Gelu", 20)):
        yield case(op, opset=opset)
    yield case("PRelu", constants=[("s", weights("s", 64, 1, 1))])
    yield case("Clip", constants=[("low", tensor("low", FLOAT, [], struct.pack("<f", -0.2))), ("high", tensor("high", FLOAT, [], struct.pack("<f", 0.2)))])
    yield case("Pow", constants=[("e", tensor("e", FLOAT, [], struct.pack("<f", 2.0)))])
    for op in ("Add", "Mul", "Div", "Max"):
        yield case(op, constants=[("c", weights("c", 64, 1, 1))], note="a number for each channel")
    yield case("Less", constants=[("c", weights("c", 1))], out=BOOL)
    yield case("And", [100, 100, 16], more=[100, 100, 16], of=BOOL, out=BOOL)
    scale, zeros = ("s", tensor("s", FLOAT, [], struct.pack("<f", 0.02))), ("z", tensor("z", INT8, [], b"\0"))
    yield case("QuantizeLinear", constants=[scale, zeros], out=INT8, note="to int8")
    yield case("DequantizeLinear", [256, 256], {"axis": 0}, [("s", weights("s", 256)), ("z", tensor("z", UINT8, [256], bytes(256)))], of=UINT8,
               note="256 scales")
    for name, of, to in (("float to int32", FLOAT, INT32), ("float to int64", FLOAT, INT64), ("int32 to float", INT32, FLOAT),
                         ("int64 to float", INT64, FLOAT), ("int32 to int64", INT32, INT64), ("int64 to int32", INT64, INT32),
                         ("bool to int64", BOOL, INT64), ("int64 to bool", INT64, BOOL), ("float to bfloat16", FLOAT, BRAIN),
                         ("float to double", FLOAT, DOUBLE), ("double to float", DOUBLE, FLOAT)):
        yield case("Cast", attributes={"to": to}, of=of, out=to, note=name)
    for note, dims in (("", IMAGE), (", condition of a row", [1, 1, 1, 64]), (", condition of columns", [1, 64, 64, 1])):
        yield case("Where", dims, constants=[("a", weights("a", *IMAGE)), ("b", weights("b", 1))], of=BOOL, note="a number elsewhere" + note)


def windows():
    yield case("Conv", [1, 64, 56, 56], {"pads": [2] * 4, "dilations": [2, 2]}, [("w", weights("w", 64, 64, 3, 3))], note="dilation 2")
    yield case("Conv", [1, 64, 56, 56], {"pads": [1] * 4, "group": 8}, [("w", weights("w", 64, 8, 3, 3))], note="8 groups")
    yield case("Conv", [1, 96, 56, 56], {"pads": [3] * 4, "group": 96}, [("w", weights("w", 96, 1, 7, 7))], note="7x7 depthwise")
    yield case("Conv", [1, 64, 4096], {"pads": [2, 2]}, [("w", weights("w", 64, 64, 5))], note="of lines")
    yield case("Conv", [1, 16, 16, 32, 32], {"pads": [1] * 6}, [("w", weights("w", 16, 16, 3, 3, 3))], note="of volumes")
    yield case("ConvTranspose", [1, 64, 32, 32], {"strides": [2, 2], "pads": [1] * 4}, [("w", weights("w", 64, 32, 4, 4))], note="4x4, stride 2")
    for note, dims, m, kernel, stride, pad in (("9x9, stride 3, to 1 channel", [1, 56, 64, 64], 1, 9, 3, 3), ("5x5, stride 2, to 1 channel", IMAGE, 1, 5, 2, 2),
                                               ("4x4, stride 2, to 3 channels", IMAGE, 3, 4, 2, 1), ("16x16, stride 8", [1, 21, 32, 32], 21, 16, 8, 4)):
        yield case("ConvTranspose", dims, {"strides": [stride] * 2, "pads": [pad] * 4}, [("w", weights("w", dims[1], m, kernel, kernel))], note=note)
    yield case("ConvTranspose", attributes={"strides": [2, 2], "pads": [1] * 4, "group": 64}, constants=[("w", weights("w", 64, 1, 4, 4))], note="4x4, stride 2, depthwise")
    yield case("ConvTranspose", [1, 64, 32, 32], {"strides": [2, 2]}, [("w", weights("w", 64, 32, 2, 2))], note="2x2, stride 2")
    yield case("ConvTranspose", attributes={"strides": [2, 2]}, constants=[("w", weights("w", 64, 1, 2, 2))], note="2x2, stride 2, to 1 channel")
    for m in (1, 3):
        yield case("Conv", attributes={"pads": [2] * 4}, constants=[("w", weights("w", m, 64, 5, 5))], note=f"5x5, to {m} channels")
    for op in ("AveragePool", "MaxPool"):
        yield case(op, attributes={"kernel_shape": [3, 3], "pads": [1] * 4})
        for size, stride in ((3, 1), (2, 2)):
            yield case(op, [1, 64, 8, 28, 28], {"kernel_shape": [size] * 3, "strides": [stride] * 3, "pads": [size % 2] * 6},
                       note=f"of volumes, {size}x{size}x{size}, stride {stride}")
    yield case("GlobalAveragePool")
    yield case("LRN", attributes={"size": 5})


def norms():
    yield case("InstanceNormalization", constants=[("s", weights("s", 64)), ("b", weights("b", 64))])
    yield case("LayerNormalization", [1, 256, 1024], constants=[("s", weights("s", 1024)), ("b", weights("b", 1024))])
    yield case("LpNormalization", attributes={"axis": 3, "p": 2})
    yield case("BatchNormalization", constants=[(n, weights(n, 64)) for n in "sbmv"])
    for axis in (1, 3):
        yield case("Softmax", attributes={"axis": axis}, note=f"axis {axis}")
    yield case("Softmax", [256, 1000], {"axis": 1})
    for dims in ([4096, 64], [256, 1000]):
        yield case("LogSoftmax", dims, {"axis": 1})
    for op in ("Softmax", "LogSoftmax"):
        for dims in ([100, 50, 4], [16, 100, 24]):
            yield case(op, dims, {"axis": 1}, note=f"{dims[2]} columns")
    for op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare"):
        for axes in ([1], [2, 3], [3]):
            yield case(op, attributes={"axes": axes}, note=f"axes {axes}")
    for axis in (1, 3):
        yield case("ArgMax", [1, 21, 256, 256], {"axis": axis}, out=INT64, note=f"axis {axis}")
    for axis in (0, 1):
        yield case("CumSum", [64, 4096], constants=[("a", tensor("a", INT64, [], struct.pack("<q", axis)))], note=f"axis {axis}")
    yield case("TopK", [64, 4096], constants=[("k", whole("k", 10))], outputs=2)


def moves():
    scales = ("s", tensor("s", FLOAT, [4], struct.pack("<4f", 1, 1, 2, 2)))
    for mode in ("nearest", "linear", "cubic"):
        yield case("Resize", attributes={"mode": mode}, constants=[scales], inputs=["x", "", "s"], note=mode)
    yield case("Resize", attributes={"mode": "linear", "coordinate_transformation_mode": "align_corners"}, constants=[scales],
               inputs=["x", "", "s"], note="linear, corners aligned")
    for perm in ([0, 2, 3, 1], [0, 2, 1, 3]):
        yield case("Transpose", attributes={"perm": perm}, note=f"to {perm}")
    yield case("Transpose", [64, 12, 128, 2], {"perm": [0, 2, 1, 3]}, note="of pairs")
    for dims, perm in (([8, 128, 256], [0, 2, 1]), (IMAGE, [0, 2, 3, 1])):
        yield case("Transpose", dims, {"perm": perm}, of=HALF, out=HALF, note=f"of float16 to {perm}")
    for block in (2, 3):
        yield case("DepthToSpace", [1, 16 * block * block, 32, 32], {"blocksize": block}, note=f"blocks of {block}")
        yield case("SpaceToDepth", [1, 16, 32 * block, 32 * block], {"blocksize": block}, note=f"blocks of {block}")
    yield case("Pad", attributes={"mode": "reflect"}, constants=[("p", whole("p", 0, 0, 1, 1, 0, 0, 1, 1))])
    yield case("Slice", constants=[("b", whole("b", 0)), ("e", whole("e", 64)), ("a", whole("a", 3)), ("s", whole("s", 2))], note="every second")
    yield case("Gather", [4096, 64], constants=[("k", whole("k", *((n * 37) % 4096 for n in range(4096))))])
    for axis in (0, 1):
        indices = [(n * 37) % 64 for n in range(4096 * 64)]
        yield case("GatherElements", [4096, 64], {"axis": axis}, [("k", tensor("k", INT64, [4096, 64], struct.pack(f"<{len(indices)}q", *indices)))],
                   note=f"axis {axis}")
    rows = ("k", tensor("k", INT64, [1024, 1], struct.pack("<1024q", *((n * 37) % 4096 for n in range(1024)))))
    yield case("ScatterND", [4096, 64], constants=[rows, ("u", weights("u", 1024, 64))], note="rows")
    yield case("Tile", [100, 4, 32, 2], constants=[("r", whole("r", 1, 1, 2, 2))], note="pairs and rows twice")
    yield case("Expand", [1, 3, 1, 256, 1], constants=[("s", whole("s", 4, 3, 2, 256, 8))], note="8 of each")
    yield case("Expand", [1, 64, 1, 64], constants=[("s", whole("s", *IMAGE))])
    yield case("Concat", attributes={"axis": 1}, inputs=["x", "x"])
    yield case("GridSample", constants=[("g", weights("g", 1, 64, 64, 2))])


def products():
    yield case("MatMul", [8, 128, 64], constants=[("w", weights("w", 8, 64, 128))], note="8 matrices")
    yield case("MatMul", [64, 100, 100], constants=[("w", weights("w", 64, 100, 1))], note="64 matrices by vectors")
    yield case("MatMul", [512, 512], constants=[("w", weights("w", 512, 1))], note="by a vector")
    for rows in (1, 64):
        yield case("MatMul", [8, rows, 768], more=[8, 768, 64], note=f"{rows} rows by a matrix that is no constant")
    for dims, columns in (([32, 5, 64], 100), ([64, 49, 32], 49)):
        yield case("MatMul", dims, more=[dims[0], dims[2], columns], note=f"{dims[1]} rows by {columns} columns that are no constants")
    yield case("Gemm", [1024, 100], {"transA": 1}, [("w", weights("w", 1024, 10))], note="transA")
    yield case("Einsum", [300], {"equation": "i,j->ij"}, more=[400], note="i,j->ij")
    yield case("Einsum", [8, 128, 64], {"equation": "bik,bjk->bij"}, inputs=["x", "x"], note="bik,bjk->bij")
    yield case("LSTM", [64, 1, 128], {"hidden_size": 256}, [("w", weights("w", 1, 1024, 128)), ("r", weights("r", 1, 1024, 256))])
    yield case("GRU", [64, 1, 128], {"hidden_size": 256, "linear_before_reset": 1}, [("w", weights("w", 1, 768, 128)), ("r", weights("r", 1, 768, 256))])


def regions():
    """What detectors and readers of sound have after or before their convolutions. Inputs are between -1 and 1."""
    offsets = ("o", weights("o", 1, 18, 32, 32))
    yield case("DeformConv", [1, 32, 32, 32], {"pads": [1] * 4}, [("w", weights("w", 32, 32, 3, 3)), offsets], opset=19, note="3x3")
    boxes = ("r", tensor("r", FLOAT, [100, 4], struct.pack("<400f", *(v for n in range(100) for v in (n % 10 * 40, n // 10 * 40, n % 10 * 40 + 160, n // 10 * 40 + 240)))))
    yield case("RoiAlign", [1, 256, 50, 50], {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 0.0625},
               [boxes, ("i", whole("i", *[0] * 100))], note="100 regions, 7x7")
    limits = [("m", whole("m", 100))] + [(n, tensor(n, FLOAT, [1], struct.pack("<f", v))) for n, v in (("o", 0.45), ("t", 0.25))]
    for count, classes in ((25200, 1), (3000, 20)):
        corners = ("b", tensor("b", FLOAT, [1, count, 4], floats(count * 4, lambda i: i * 7919 % 997 / (997 if i % 4 < 2 else 9970) + 0.01)))
        yield case("NonMaxSuppression", [1, classes, count], {"center_point_box": 1}, [corners] + limits,
                   inputs=["b", "x", "m", "o", "t"], out=INT64, note=f"{classes} of {count} boxes")
    yield case("NonZero", [100, 64, 64], of=BOOL, out=INT64)
    yield case("DFT", [100, 512, 1], {"axis": 1, "onesided": 1}, note="of 512")
    yield case("STFT", [1, 16000, 1], {"onesided": 1}, [("s", tensor("s", INT64, [], struct.pack("<q", 160))), ("w", weights("w", 400))], note="400 each 160")
    yield case("Col2Im", [1, 576, 900], {}, [("s", whole("s", 32, 32)), ("b", whole("b", 3, 3))], opset=18)
    yield case("TopK", [1, 25200], constants=[("k", whole("k", 300))], outputs=2, note="300 of 25200")
    yield case("OneHot", [256], constants=[("d", whole("d", 1000)), ("v", tensor("v", FLOAT, [2], struct.pack("<2f", 0, 1)))], of=INT64)


def main():
    out, ort, seconds, wanted = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
    rows = []
    for group in (unary, windows, norms, moves, products, regions):
        for op, note, dims, model in group():
            if wanted and op not in wanted:
                continue
            path = f"{out}/operator.onnx"
            with open(path, "wb") as file:
                file.write(model)
            name = f"{op}{', ' + note if note else ''}"
            try:
                ours, theirs, _ = beside_ort(out, ort, path, seconds)
            except Refused as e:
                print(f"{name}: {e}", flush=True)
                continue
            rows.append((theirs["ratio"], f"{name:44} {'x'.join(map(str, dims)):16} {ours['median_us']:9.1f} {theirs['median_us']:9.1f} {theirs['ratio']:7.2f}"))
    print(f"{'operator':44} {'input':16} {'qsim us':>9} {'ORT us':>9} {'times faster':>7}")
    print("\n".join(line for _, line in sorted(rows)))


main()
