# SPDX-License-Identifier: MIT
"""
Whether gcc vectorizes the loops that count on it: a flag for size may undo that, and nothing but the clock shows it.
Usage: vectorized.py SOURCE_ROOT BUILD_ROOT. Exit code 77: the compiler or its flags are not those of a release build.
"""
import json
import os
import re
import shlex
import subprocess
import sys

# A source, the file that has its loops, and what begins such a loop there.
LOOPS = (
    ("lib/kernel/x86/ew_avx2.c", "lib/kernel/ew_maps.h", r"\bLOOP\((?!value)"),
    ("lib/kernel/x86/ew_avx2.c", "lib/quant/observer_loops.h", r"\bdo \{$"),
    # Vectors without AVX-512 have no conversion of int64 to float.
    ("lib/quant/affine_loops.c", "lib/quant/affine_loops.c", r"^QS_(DE)?QUANTIZE\("),
    ("lib/op/elementwise/dense.c", "lib/op/elementwise/dense.c", r"^QS_DENSE\((?!times_64)"),  # nor a product of int64
    ("lib/op/elementwise/op_cast.c", "lib/op/elementwise/op_cast.c", r"^PLAIN\((?!s64_to_f32)"),
)
LONGEST = 8  # lines of a loop; gcc may name any of them


def report(command, folder):
    """Line numbers of loops that gcc has vectorized, by the base name of their file."""
    words = [w for w in shlex.split(command) if w != "-MD"]
    for option in ("-o", "-MQ", "-MF"):
        at = words.index(option)
        del words[at:at + 2]
    words += ["-o", os.devnull, "-fopt-info-vec-optimized"]
    out = subprocess.run(words, cwd=folder, stderr=subprocess.PIPE, text=True, check=True).stderr
    lines = {}
    for name, line in re.findall(r"([\w./-]+):(\d+):\d+: optimized: loop vectorized", out):
        lines.setdefault(os.path.basename(name), set()).add(int(line))
    return lines


def main():
    root, folder = sys.argv[1:]
    with open(f"{folder}/compile_commands.json", encoding="utf-8") as file:
        commands = {c["file"]: c["command"] for c in json.load(file) if c["output"].startswith("lib/libqs_")}
    wrong = 0
    for source, place, begin in LOOPS:
        command = next(c for f, c in commands.items() if f.endswith(source))
        if " -O2 " not in command or "-fsanitize" in command:
            print("vectorized: not a release build")
            sys.exit(77)
        done = report(command, folder).get(os.path.basename(place), set())
        with open(f"{root}/{place}", encoding="utf-8") as file:
            starts = [n for n, line in enumerate(file, 1) if re.search(begin, line)]
        lost = [n for n in starts if not done & set(range(n, n + LONGEST if begin.endswith("$") else n + 1))]
        print(f"vectorized: {place}: {len(starts) - len(lost)} of {len(starts)} loops")
        for n in lost:
            print(f"vectorized: {place}:{n}: gcc leaves this loop scalar (flags: lib/meson.build)")
        wrong += len(lost) + (not starts)
    sys.exit(wrong > 0)


main()
