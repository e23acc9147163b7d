#!/bin/sh
# SPDX-License-Identifier: MIT
# ONNX Runtime loads what qsim quantize writes, and its results equal ours: the same top-1 on at least 99.9 %
# of the Fashion-MNIST test images (all 10,000 for both formats without further options, else 2,000; 500 for the
# 27 tensors of MobileNetV2), and every 8-bit tensor within one step.
# Skipped by name where npm or its registry is not reachable. Usage: onnxruntime.sh SOURCE_ROOT QSIM FOLDER
set -eu
root=$1 qsim=$2 peer=$3
. "$root/test/interop/ort.sh"
model=$models/fashion_lenetlite.onnx
train_data
images() { # COUNT
    ask images "$shared/data/fashion-mnist/t10k-images-idx3-ubyte.gz" "$1" "$work/x.npy"
}
"$qsim" calibrate -q "$model" -o "$work/cal.qcal" --limit 512 --data "$train"

compared() { # NAME: every tensor of its file
    ask taps "$work/$1.onnx" "$work/$1.taps.onnx"
    "$qsim" run -q "$work/$1.taps.onnx" --input "$work/x.npy" --output-dir "$work/$1"
    ask compare "$work/$1.taps.onnx" "$work/x.npy" "$work/$1"
}
check() { # NAME QUANTIZE-OPTIONS...
    name=$1
    shift
    echo "== $name"
    "$qsim" quantize -q "$model" -o "$work/$name.onnx" --calibration "$work/cal.qcal" "$@" >/dev/null
    compared "$name"
}
found() { # NAME VERB OPTIONS...: what a search finds
    name=$1 verb=$2
    shift 2
    echo "== $name"
    "$qsim" "$verb" -q "$model" -o "$work/$name.onnx" --limit 128 --save-recipe "$work/$name.qrecipe" \
        --data "$train" "$@" >/dev/null || [ $? = 3 ]
    compared "$name"
}
images 10000
check fp32_to_qdq
check qoperator --format qoperator
images 2000
check per_tensor --weight-scheme tensor
check signed --activations int8
check asymmetric --weight-scheme channel-asymmetric
check qoperator_asymmetric --format qoperator --weights uint8 --weight-scheme channel-asymmetric
# What --refine finds: weights rounded by GPTQ, biases layer by layer.
found refined quantize --refine
found equalized quantize --weight-scheme tensor --equalize
check applied --weight-scheme tensor --recipe "$work/equalized.qrecipe"
found mixed auto --max-drop 0.001 --budget 20s # reached or not: some units in float
# 16 bits of activations: floats between pairs, for some units or for all.
wide() { # NAME QUANTIZE-OPTIONS...
    name=$1
    shift
    "$qsim" quantize -q "$model" -o "$work/$name.onnx" --calibration "$work/cal.qcal" "$@" >/dev/null
    agree "$work/$name.onnx" within=1e-3 input=64,1,28,28
}
wide uint16 --activations uint16
wide int16 --activations int16 --symmetric
wide unit --set '/c2/Conv=int16'
wide unit_qoperator --set '/c2/Conv=int16' --format qoperator --weight-scheme channel-asymmetric
model=$models/fashion_mobilenetv2_tiny.onnx
"$qsim" calibrate -q "$model" -o "$work/cal.qcal" -f --limit 512 --data "$train" >/dev/null
images 500
check depthwise_asymmetric --weight-scheme channel-asymmetric
