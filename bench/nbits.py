# SPDX-License-Identifier: MIT
"""MatMulNBits beside ONNX Runtime: nbits.sh."""
import struct
import sys

from benchlib import Refused, beside_ort
from onenode import FLOAT, INT32, floats, model, noise, tensor

UINT8 = 2


def product(rows, k, n, block, level, zeros, bits):
    blocks = k // block
    code_bytes, zero_bytes = block * bits // 8, (blocks * bits + 7) // 8
    constants = [tensor("b", UINT8, [n, blocks, code_bytes], noise(n * blocks * code_bytes, 251)),
                 tensor("s", FLOAT, [n, blocks], floats(n * blocks, lambda i: 0.01 + i % 7 / 1000))]
    inputs = ["x", "b", "s"]
    if zeros:
        constants.append(tensor("z", UINT8, [n, zero_bytes], noise(n * zero_bytes, 251)))
        inputs.append("z")
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level}
    return model("MatMulNBits", "com.microsoft", inputs, attributes, constants, (FLOAT, [rows, k]), (FLOAT, [rows, n]))


def main():
    out, ort, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    print("| bits | rows | K x N | block | accuracy_level | qsim µs | ONNX Runtime µs | times faster |")
    print("|---|---|---|---|---|---|---|---|")
    for k, n in ((896, 896), (2048, 2048), (896, 4864)):
        for bits, block, zeros in ((4, 32, False), (4, 32, True), (4, 128, False), (8, 32, False), (8, 128, True)):
            for level in (0, 4):
                for rows in (1, 128):
                    file = f"{out}/nbits.onnx"
                    with open(file, "wb") as f:
                        f.write(product(rows, k, n, block, level, zeros, bits))
                    try:
                        ours, theirs, ratio = beside_ort(out, ort, file, seconds)
                    except Refused as e:
                        print(e, flush=True)
                        continue
                    print(f"| {bits} | {rows} | {k} x {n} | {block}{', zero points' if zeros else ''} | {level} | "
                          f"{ours['median_us']:.0f} | {theirs['median_us']:.0f} | {ratio} |", flush=True)


main()
