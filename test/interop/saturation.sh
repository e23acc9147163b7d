#!/bin/sh
# SPDX-License-Identifier: MIT
# qsim saturation against ONNX Runtime itself, which qemu runs on a CPU with AVX2 and without VNNI: models of
# Fashion-MNIST, whose sums saturate, lose what was said.
# Skipped by name where npm, its registry or qemu are not there. Usage: saturation.sh SOURCE_ROOT QSIM FOLDER
set -eu
root=$1 qsim=$2 peer=$3
command -v qemu-x86_64 >/dev/null 2>&1 || { echo "skipped: no qemu-x86_64"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: ONNX Runtime is fetched for this machine alone"; exit 77; }
. "$root/test/interop/ort.sh"

ask images "$shared/data/fashion-mnist/t10k-images-idx3-ubyte.gz" 400 "$work/images.npy"
train_data
status=0
check() { # MODEL QUANTIZE-OPTIONS...
    model=$1
    shift
    echo "$model $*"
    "$qsim" quantize -q -f "$models/$model.onnx" --data "$train" --limit 256 "$@" -o "$work/int8.onnx" >/dev/null
    "$qsim" run -q "$work/int8.onnx" -i "$work/images.npy" -f -o "$work/exact.npy"
    "$qsim" saturation -q "$work/int8.onnx" --data "$work/images.npy" --batch 400 --json >"$work/said.json"
    qemu-x86_64 -cpu Haswell "$(command -v node)" "$root/test/interop/saturation.js" run "$peer" "$work/int8.onnx" \
        "$work/images.npy" "$work/theirs.f32" 2>"$work/qemu.log" || { cat "$work/qemu.log"; exit 1; }
    node "$root/test/interop/saturation.js" judge "$work/exact.npy" "$work/theirs.f32" "$work/said.json" || status=1
}
check fashion_lenetlite
check fashion_mobilenetv2_tiny
check fashion_resnet8 --format qoperator
check fashion_mobilenetv2_tiny --activations int8
check fashion_lenetlite --mode dynamic
check fashion_mobilenetv2_tiny --weights uint8
check fashion_mobilenetv2_tiny --reduce-pairs
check fashion_resnet8 --format qoperator --reduce-pairs
exit $status
