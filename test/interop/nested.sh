#!/bin/sh
# SPDX-License-Identifier: MIT
# Layers inside of If, Loop and Scan: what the quantizer writes, ONNX Runtime runs alike, whichever branch is
# taken, and no layer is left in float. Skipped by name where the runtime is not there.
# Usage: nested.sh SOURCE_ROOT QSIM FOLDER
set -eu
root=$1 qsim=$2 peer=$3
. "$root/test/interop/ort.sh"
node "$root/test/interop/nested.js" "$work"

check() { # MODEL SIZES LAYERS OPTIONS...
    model=$1 sizes=$2 layers=$3
    shift 3
    file=$work/$model$(echo "$*" | tr -d ' ').onnx
    "$qsim" quantize "$work/$model.onnx" -o "$file" "$@" >"$work/said"
    grep -q "^layers  *$layers int8, 0 fp32" "$work/said" || { cat "$work/said"; exit 1; }
    # Without the runtime's own optimizations, which quantize the activations of products whose weights are
    # dequantized.
    for number in 1 2; do
        agree "$file" disabled "x0=$sizes" "x1:$number"
    done
}
for how in '--mode weights' '--mode weights --weights uint8 --weight-scheme tensor-asymmetric' '--mode dynamic' \
    '--mode dynamic --per-row' '--mode dynamic --weights uint8 --weight-scheme tensor'; do
    check branches 2,4,8,8 4 $how
    check loop 3,32 2 $how
    check scan 5,32 1 $how
    check deep 3,32 2 $how
done
# Static: random numbers choose either branch, so that both are seen.
for how in '' '--format qoperator' '--activations int8 --symmetric'; do
    check branches 2,4,8,8 4 --data random --limit 32 --batch 2 --shape x0=2x4x8x8 $how
    check loop 3,32 2 --data random --limit 32 --batch 3 --shape x0=3x32 $how
    check deep 3,32 2 --data random --limit 32 --batch 3 --shape x0=3x32 $how
done
