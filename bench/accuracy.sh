#!/bin/sh
# SPDX-License-Identifier: MIT
# What INT8 costs the three Fashion-MNIST networks of the shared data: calibrated on 512 validation
# images, evaluated on the 10,000 test images. Without options also KL and agreement of every method on
# seven networks, with crops of the shared photos (accuracy.py). Usage: sh bench/accuracy.sh [quantize options]
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
shared=$QSIM_SHARED
qsim=${QSIM:-build/tools/qsim/qsim}
train=$shared/data/fashion-mnist/train-images-idx3-ubyte.gz,$shared/data/fashion-mnist/train-labels-idx1-ubyte.gz
test=$shared/data/fashion-mnist/t10k-images-idx3-ubyte.gz,$shared/data/fashion-mnist/t10k-labels-idx1-ubyte.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
field() { # NAME
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" | head -n 1
}
printf '%-28s %9s %9s %10s %14s\n' 'model' 'fp32 %' 'int8 %' 'agreement' 'file smaller'
for name in fashion_lenetlite fashion_resnet8 fashion_mobilenetv2_tiny; do
    a=$shared/models/$name.onnx b=$work/$name.onnx
    "$qsim" quantize -q "$a" -o "$b" --data "$train" --skip 54000 --limit 512 "$@" >/dev/null
    printf '%-28s %9.2f %9.2f %9.2f%% %13.2fx\n' "$name" \
        "$("$qsim" eval -q --json "$a" --data "$test" | field top1)" \
        "$("$qsim" eval -q --json "$b" --data "$test" | field top1)" \
        "$("$qsim" compare -q --json "$a" "$b" --data "$test" | field agreement)" \
        "$(awk -v a="$(wc -c <"$a")" -v b="$(wc -c <"$b")" 'BEGIN { print a / b }')"
done
[ $# = 0 ] || exit 0
library=${QSIM_LIBRARY:-$(dirname "$qsim")/../../lib/libqsim.so}
python=${PYTHON:-python3}
"$python" bench/crops.py "$qsim" "$work/crops.npy"
echo
QSIM_LIBRARY=$library PYTHONPATH=tools/python "$python" bench/accuracy.py "$work/crops.npy"
