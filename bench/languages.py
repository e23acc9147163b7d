# SPDX-License-Identifier: MIT
"""Language models beside ONNX Runtime: languages.sh."""
import glob
import os
import sys

from benchlib import duel

CASES = [("prompt of 128", 128, 0), ("token after 128", 1, 128)]


def main():
    out, ort, seconds, given = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
    folder = os.path.join(os.environ.get("QSIM_SHARED", "../shared"), "llm")
    files = given or sorted(f for f in glob.glob(f"{folder}/**/*.onnx", recursive=True) if "/ops/" not in f)
    cases = " | ".join(f"{what}: µs | ONNX Runtime µs | times faster" for what, _, _ in CASES)
    print(f"| model | {cases} |\n" + "|---" * (1 + 3 * len(CASES)) + "|")
    worker = f"{out}/gcc/bench/worker"
    for path in files:
        cells = []
        for _, tokens, past in CASES:
            rest = [path, "threads=1", f"side={tokens}", f"past={past}"]
            ours, theirs = duel([[worker, "qsim"] + rest, [worker, "ort"] + rest + [f"library={ort}"]], 1, seconds)
            refused = [f"refused by {name}: {r['refused']}" for name, r in (("qsim", ours), ("ONNX Runtime", theirs)) if "refused" in r]
            cells += refused + [""] * (3 - len(refused)) if refused else [
                f"{ours['median_us']:.0f}", f"{theirs['median_us']:.0f}",
                f"{theirs['ratio']:.2f} ({theirs['ratio_low']:.2f}-{theirs['ratio_high']:.2f})"]
        print(f"| {os.path.relpath(path, folder).removesuffix('.onnx')} | " + " | ".join(cells) + " |", flush=True)


main()
