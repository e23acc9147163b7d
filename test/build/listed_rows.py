#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models need no row that a build with -Doperators would leave out, at any level and for any purpose: random
graphs, and the shared data's networks where they are.

Usage: listed_rows.py SOURCE_ROOT RANDOM_GRAPHS ROWS_OF COUNT
"""
import os
import pathlib
import subprocess
import sys
import tempfile

root, random_graphs, rows_of, count = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path[:0] = [f"{root}/lib/op", f"{root}/tools"]
import listed  # noqa: E402
import operators_of  # noqa: E402

libraries = {quantizer: listed.Library(pathlib.Path(root, "lib"), quantizer) for quantizer in (False, True)}
closures = {}


def kept(operators, quantizer):
    """The rows of a build for these operators, as DOMAIN:OPERATOR."""
    key = frozenset(operators), quantizer
    if key not in closures:
        library = libraries[quantizer]
        closures[key] = {"%s:%s" % library.rows[row] for row in library.build(operators)}
    return closures[key]


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([random_graphs, "--write", folder, "1", count], check=True, stderr=subprocess.DEVNULL)
    shared = pathlib.Path(os.environ.get("QSIM_SHARED", f"{root}/../shared"), "models")
    models = sorted(map(str, [*pathlib.Path(folder).glob("*.onnx"), *shared.glob("*.onnx")]))
    operators = {model: operators_of.operators_of(pathlib.Path(model).read_bytes()) for model in models}
    output = subprocess.run([rows_of, *models], check=True, capture_output=True, text=True).stdout
found = {tuple(line.split()) for line in output.splitlines()}
bad = sorted(line for line in found if line[2] not in kept(operators[line[1]], line[0] == "quantizer"))
for purpose, model, row in bad[:20]:
    print(f"listed: {purpose}: {row} is left out with {','.join(sorted(operators[model]))}")
made = {row for _, _, row in found}
print(f"listed: {len(models)} models, {len(made)} rows")
sys.exit(bool(bad) or len(models) < 6 * int(count) or len(made) < 60)
