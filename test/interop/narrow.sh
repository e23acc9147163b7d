#!/bin/sh
# SPDX-License-Identifier: MIT
# Weights in 4 bits in every form that qsim quantize writes, beside ONNX Runtime: DequantizeLinear of opset
# 21 by channel and by block, MatMulNBits with floats and with activations in 8 bits by block. Outputs within
# 1e-4 of the largest value. ONNX Runtime runs at its level "basic": above it, it turns a DequantizeLinear in
# blocks before a MatMul into an operator that quantizes activations. Static models: the same top-1 on Fashion-MNIST.
# Skipped by name where npm or its registry is not reachable.
# Usage: narrow.sh SOURCE_ROOT QSIM FOLDER QSIM-MAKE-LINEAR
set -eu
root=$1 qsim=$2 peer=$3 linear=$4
. "$root/test/interop/ort.sh"

quantized() { # MODEL-FILE INPUTS QUANTIZE-OPTIONS...
    model=$1 inputs=$2
    shift 2
    file=$work/$(basename "$model" .onnx)$(echo "$*" | tr -d '* ').onnx
    "$qsim" quantize -q "$model" -o "$file" --no-gptq --set '*=int4' "$@" >/dev/null
    agree "$file" $inputs
}
"$linear" -q -o "$work/linear.onnx"
for type in '--weights int4' '--weights uint4' '--weights uint4 --weight-scheme channel-asymmetric' \
    '--weights int4 --weight-scheme channel-asymmetric'; do
    for block in 0 16 32 64 128; do
        quantized "$models/fashion_lenetlite.onnx" 'basic input=3,1,28,28' --mode weights $type --block $block
        quantized "$work/linear.onnx" 'basic X=3,64' --mode weights $type --block $block
        quantized "$work/linear.onnx" X=3,64 --mode weights --format qoperator $type --block $block
        quantized "$models/fashion_lenetlite.onnx" input=3,1,28,28 --mode dynamic $type --block $block
    done
    quantized "$models/fashion_resnet8.onnx" 'basic input=2,1,28,28' --mode weights $type
    quantized "$models/dtln_model_1.onnx" 'basic input_2=1,1,257 input_3=1,2,128,2' --mode weights $type --block 32
done

train_data
ask images "$shared/data/fashion-mnist/t10k-images-idx3-ubyte.gz" 10000 "$work/x.npy"
check() { # NAME QUANTIZE-OPTIONS...
    name=$1
    shift
    "$qsim" quantize -q "$models/fashion_lenetlite.onnx" -o "$work/$name.onnx" --limit 128 --data "$train" "$@" >/dev/null
    ask taps "$work/$name.onnx" "$work/$name.taps.onnx"
    "$qsim" run -q "$work/$name.taps.onnx" --input "$work/x.npy" --output-dir "$work/$name"
    ask compare "$work/$name.taps.onnx" "$work/x.npy" "$work/$name"
}
check static --weights int4
check asymmetric --weights uint4 --weight-scheme channel-asymmetric
