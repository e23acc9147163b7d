# SPDX-License-Identifier: MIT
"""Language models beside ONNX Runtime: languages.sh."""
import glob
import os
import sys

from benchlib import SHARED, Refused, beside_ort

CASES = [
    ("prompt of 128", ["side=128", "past=0"]),
    ("token after 128", ["side=1", "past=128"]),
    ("each of 64 tokens from there on", ["side=1", "past=128", "grow=64"]),
]


def main():
    out, ort, seconds, given = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
    folder = os.path.join(SHARED, "llm")
    files = given or sorted(f for f in glob.glob(f"{folder}/**/*.onnx", recursive=True) if "/ops/" not in f)
    cases = " | ".join(f"{what}: µs | ONNX Runtime µs | times faster" for what, _ in CASES)
    print(f"| model | {cases} |\n" + "|---" * (1 + 3 * len(CASES)) + "|")
    for path in files:
        cells = []
        for _, options in CASES:
            try:
                ours, theirs, ratio = beside_ort(out, ort, path, seconds, *options)
                cells += [f"{ours['median_us']:.0f}", f"{theirs['median_us']:.0f}", ratio]
            except Refused as e:
                cells += [str(e), "", ""]
        print(f"| {os.path.relpath(path, folder).removesuffix('.onnx')} | " + " | ".join(cells) + " |", flush=True)


main()
