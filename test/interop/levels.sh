#!/bin/sh
# SPDX-License-Identifier: MIT
# ONNX Runtime loads what qsim optimize writes at each level, runs it without optimizing anything itself, and
# gives the same results as qsim. Skipped by name where the runtime is not there. Usage: levels.sh SOURCE_ROOT QSIM FOLDER
set -eu
root=$1 qsim=$2 peer=$3
. "$root/test/interop/ort.sh"

levels='basic extended all'
check() { # MODEL TOLERANCE INPUTS...
    model=$1 within=$2
    shift 2
    for level in $levels; do
        "$qsim" optimize -q "$models/$model.onnx" --level "$level" -o "$work/$model.$level.onnx"
        agree "$work/$model.$level.onnx" disabled \
            "within=$within" "$@"
    done
}
check fashion_lenetlite 1e-4 input=3,1,28,28
check fashion_resnet8 1e-4 input=2,1,28,28
check fashion_mobilenetv2_tiny 1e-4 input=2,1,28,28
check squeezenet1.1_fp32_from_fp16 1e-4 data_0=1,3,224,224
check mobilenet_v1_025_224_imagenet 1e-4 input=1,3,224,224
check mlptiny_kws_dscnn_fp32 1e-4 input=2,1,49,10
check mnist-8 1e-4 Input3=1,1,28,28
check dtln_model_1 1e-4 input_2=1,1,257 input_3=1,2,128,2
check ppocrv2_rec_en_number 1e-4 x=2,3,32,100
check silero_vad_op18_ifless 1e-4 input=1,576 sr:16000 state=2,1,128
# A step of 8 bits more or less here and there, docs/QUANTIZATION.md, section 14. Run literally in floats, as the
# pairs of the basic level are without optimization, 53 layers make more of that: only the integer form is compared.
check mlptiny_kws_dscnn_int8 0.03 input=2,1,49,10
check mlptiny_ic_resnet8_int8 0.03 input=2,3,32,32
levels='extended all'
check coral_mobilenet_v1_0.75_192_qdq 0.05 input=1,3,192,192
check coral_mobilenet_v2_1.0_224_qdq 0.05 input=1,3,224,224
