# SPDX-License-Identifier: MIT
"""ONNX files of one node for ONNX Runtime, in bytes: the channels-last form of QLinearConv that it uses
inside is an operator of its own, which no other tool writes."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, BOOL, HALF, DOUBLE, BRAIN = 1, 2, 3, 6, 7, 9, 10, 11, 16


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dtype, dims, raw):
    return text(5, b"".join(number(1, d) for d in dims) + number(2, dtype) + text(8, name) + text(9, raw))


def value(field, name, dtype, dims):
    """`dims` None: no shape is declared."""
    shape = b"" if dims is None else text(2, b"".join(text(1, text(2, d) if isinstance(d, str) else number(1, d)) for d in dims))
    return text(field, text(1, name) + text(2, text(1, number(1, dtype) + shape)))


def attribute(name, v):
    if isinstance(v, str):
        return text(5, text(1, name) + text(4, v) + number(20, 3))
    if isinstance(v, float):
        return text(5, text(1, name) + varint(2 << 3 | 5) + struct.pack("<f", v) + number(20, 1))
    if isinstance(v, int):
        return text(5, text(1, name) + number(3, v) + number(20, 2))
    return text(5, text(1, name) + b"".join(number(8, i) for i in v) + number(20, 7))


def one_node(op, domain, inputs, attributes, constants, values, outputs, opset):
    """Values and outputs are (name, dims) of floats, or (name, dims, type)."""
    node = b"".join(text(1, i) for i in inputs) + b"".join(text(2, o[0]) for o in outputs)
    node += text(4, op) + text(7, domain) + b"".join(attribute(k, v) for k, v in attributes.items())
    graph = text(1, node) + text(2, "layer") + b"".join(constants)
    for field, tensors in ((11, values), (12, outputs)):
        graph += b"".join(value(field, name, type_[0] if type_ else FLOAT, dims) for name, dims, *type_ in tensors)
    opsets = text(8, number(2, opset)) + text(8, text(1, "com.microsoft") + number(2, 1))
    return number(1, 8) + opsets + text(7, graph)


def model(op, domain, inputs, attributes, constants, x, y):
    """x and y are (type, dims)."""
    return one_node(op, domain, inputs, attributes, constants, [("x", x[1], x[0])], [("y", y[1], y[0])], 17)


def noise(count, modulus=97):
    return bytes((i * 7919 >> 3) % modulus for i in range(count))


def floats(count, value_of):
    return struct.pack(f"<{count}f", *(value_of(i) for i in range(count)))


def quantization(columns):
    """Scales and zero points of x, w and y; w's per output channel."""
    one = floats(1, lambda i: 0.02)
    return {
        "xs": tensor("xs", FLOAT, [], one), "xz": tensor("xz", UINT8, [], b"\0"),
        "ws": tensor("ws", FLOAT, [columns], floats(columns, lambda i: 0.001 * (1 + i % 7))),
        "wz": tensor("wz", INT8, [columns], bytes(columns)),
        "ys": tensor("ys", FLOAT, [], floats(1, lambda i: 0.1)), "yz": tensor("yz", UINT8, [], b"\0"),
    }


def conv(integer, groups, c, n, k, s, size):
    channels, columns, out = groups * c, groups * n, (size + 2 * (k // 2) - k) // s + 1
    weights, dims = columns * c * k * k, [columns, c, k, k]
    attributes = {"kernel_shape": [k, k], "strides": [s, s], "pads": [k // 2] * 4, "group": groups}
    if not integer:
        constants = [tensor("w", FLOAT, dims, floats(weights, lambda i: (i * 7919 % 97) / 970 - 0.05)),
                     tensor("b", FLOAT, [columns], bytes(4 * columns))]
        return model("Conv", "", ["x", "w", "b"], attributes, constants,
                     (FLOAT, [1, channels, size, size]), (FLOAT, [1, columns, out, out]))
    q = quantization(columns)
    constants = list(q.values()) + [tensor("w", INT8, dims, noise(weights)),
                                    tensor("b", INT32, [columns], bytes(4 * columns))]
    attributes["channels_last"] = 1
    return model("QLinearConv", "com.microsoft", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], attributes,
                 constants, (UINT8, [1, size, size, channels]), (UINT8, [1, out, out, columns]))


def gemm(integer, m, n, k):
    if not integer:
        constants = [tensor("w", FLOAT, [k, n], floats(k * n, lambda i: (i * 7919 % 97) / 970 - 0.05))]
        return model("MatMul", "", ["x", "w"], {}, constants, (FLOAT, [m, k]), (FLOAT, [m, n]))
    q = quantization(n)
    constants = list(q.values()) + [tensor("w", INT8, [k, n], noise(k * n))]
    return model("QLinearMatMul", "", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], {}, constants,
                 (UINT8, [m, k]), (UINT8, [m, n]))
