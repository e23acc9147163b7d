#!/bin/sh
# SPDX-License-Identifier: MIT
# ONNX's own checker, with its strict shape inference, accepts what the trainer and the quantizer write.
# Skipped by name where Python has no onnx (Debian: python3-onnx).
# Usage: onnx_checker.sh PYTHON QSIM QSIM-TRAIN-LENET QSIM-MAKE-LINEAR
set -eu
python=$1 qsim=$2 train=$3 linear=$4
"$python" -c 'import onnx' 2>/dev/null || { echo "skipped: $python has no onnx"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/data"
"$train" -q --make-procedural "$work/data" --count 300
"$train" -q --data "$work/data" --epochs 1 -o "$work/fp32.onnx" >/dev/null
"$linear" -q -o "$work/linear.onnx"
"$linear" -q -o "$work/linear_batch.onnx" --inputs 5 --outputs 3 --batch 2
"$qsim" calibrate -q "$work/fp32.onnx" --data random --limit 16 -o "$work/cal.qcal"

quantize() { # NAME OPTIONS...
    name=$1
    shift
    "$qsim" quantize -q "$work/fp32.onnx" --calibration "$work/cal.qcal" -o "$work/$name.onnx" "$@" >/dev/null
}
quantize qdq
quantize signed --activations int8 --symmetric
quantize tensor --weight-scheme tensor-asymmetric --weights uint8
quantize qoperator --format qoperator
quantize asymmetric --format qoperator --weight-scheme channel-asymmetric
"$python" - "$work"/*.onnx <<'END'
import sys

import onnx

for path in sys.argv[1:]:
    onnx.checker.check_model(onnx.load(path), full_check=True)
print(f"onnx {onnx.__version__}: {len(sys.argv) - 1} models accepted")
END
