#!/bin/sh
# SPDX-License-Identifier: MIT
# mypy --strict accepts the package, the same as one file, and a program that uses it; and refuses one
# that uses it wrongly. Other scripts of the project, most of which no test runs whole, call functions as these
# are defined. Usage: types.sh PYTHON SOURCE_ROOT LIBRARY ONE_FILE
set -eu
"$1" -c 'import mypy, numpy' 2>/dev/null || { echo "skipped: $1 has no mypy or no numpy"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { "$1" -m mypy --strict --cache-dir "$work/cache" "$2"; }

check "$1" "$2/tools/python/qsim"
check "$1" "$4"
cat >"$work/right.py" <<'EOF'
import numpy as np
import qsim

batch = np.zeros((1, 1, 28, 28), np.float32)
int8: qsim.Model = qsim.quantize("m.onnx", data=[batch], method="mse")
with qsim.Session(int8, threads=2, isa="c") as session:
    logits, = session.run(None, {"x": batch})
    print(logits.shape, session.input_names[0].upper())
q = qsim.quantize(batch, 0.1, 128)
print(q.dtype, qsim.dequantize(q, 0.1, 128).max())
EOF
cat >"$work/wrong.py" <<'EOF'
import qsim

session: int = qsim.Session("m.onnx")
qsim.Session("m.onnx", thread=2)
EOF
export MYPYPATH="$2/tools/python"
check "$1" "$work/right.py"
said=$(check "$1" "$work/wrong.py") && { echo "types: a wrong program was accepted"; exit 1; }
echo "$said" | grep -q '^Found 2 errors' || { echo "types: $said"; exit 1; }

# Types of scripts are not declared, so of what mypy says only calls, names and members of modules count. It reads
# numpy once for the same options, and would read torch and onnx for a minute.
echo '[mypy]' >"$work/mypy.ini"
printf '[mypy-%s.*]\nfollow_imports = skip\n' torch torchvision onnx >>"$work/mypy.ini"
for folder in bench test test/cli test/fault test/interop; do
    said=$(cd "$2/$folder" && "$1" -m mypy --strict --ignore-missing-imports --config-file "$work/mypy.ini" \
        --cache-dir "$work/cache" ./*.py) || :
    echo "$said" | grep -qE '^(Success|Found)' || { echo "types: $folder: $said"; exit 1; }
    wrong=$(echo "$said" | grep -E '\[(call-arg|name-defined)\]|Module has no attribute') || continue
    echo "types: $folder: $wrong" && exit 1
done
