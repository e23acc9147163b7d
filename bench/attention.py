# SPDX-License-Identifier: MIT
"""Attention beside ONNX Runtime: attention.sh."""
import struct
import sys

from benchlib import Refused, beside_ort
from onenode import INT32, one_node, tensor


def cache(heads, entries, width, kind):
    return [(f"{kind}_key", [1, heads, entries, width]), (f"{kind}_value", [1, heads, entries, width])]


def standard(queries, past, heads, kv_heads, width):
    values = [("q", [1, heads, queries, width]), ("k", [1, kv_heads, queries, width]), ("v", [1, kv_heads, queries, width])]
    outputs = [("y", [1, heads, queries, width])]
    if past:
        values += cache(kv_heads, past, width, "past")
        outputs += cache(kv_heads, past + queries, width, "present")
    inputs = ["q", "k", "v", "", "past_key", "past_value"] if past else ["q", "k", "v"]
    return one_node("Attention", "", inputs, {"is_causal": 1}, [], values, outputs, 23)


def grouped(queries, past, heads, kv_heads, width):
    values = [("q", [1, queries, heads * width]), ("k", [1, queries, kv_heads * width]), ("v", [1, queries, kv_heads * width])]
    inputs = ["q", "k", "v", "", "", "last", "total"]
    if past:
        values += cache(kv_heads, past, width, "past")
        inputs[3:5] = ["past_key", "past_value"]
    outputs = [("y", [1, queries, heads * width])] + cache(kv_heads, past + queries, width, "present")
    whole = struct.pack("<i", past + queries)
    constants = [tensor("last", INT32, [1, 1], struct.pack("<i", past + queries - 1)), tensor("total", INT32, [1], whole)]
    attributes = {"num_heads": heads, "kv_num_heads": kv_heads}
    return one_node("GroupQueryAttention", "com.microsoft", inputs, attributes, constants, values, outputs, 17)


def main():
    out, ort, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    print("| operator | queries | keys | heads | key heads | width | qsim µs | ONNX Runtime µs | times faster |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, make in (("Attention", standard), ("GroupQueryAttention", grouped)):
        for heads, kv_heads, width in ((14, 2, 64), (16, 16, 64), (32, 8, 128)):
            for queries, past in ((1, 511), (128, 0)):
                path = f"{out}/attention.onnx"
                with open(path, "wb") as f:
                    f.write(make(queries, past, heads, kv_heads, width))
                try:
                    ours, theirs, ratio = beside_ort(out, ort, path, seconds)
                except Refused as e:
                    print(e, flush=True)
                    continue
                print(f"| {name} | {queries} | {past + queries} | {heads} | {kv_heads} | {width} | {ours['median_us']:.0f} | "
                      f"{theirs['median_us']:.0f} | {ratio} |", flush=True)


main()
