#!/bin/sh
# SPDX-License-Identifier: MIT
# Whole float models with loops in time, resizing and transposed convolutions, what the demos write, and
# what the dynamic and weight-only modes write: every output within 1e-4 of ONNX Runtime's largest value.
# Skipped by name where npm or its registry is not reachable.
# Usage: agree.sh SOURCE_ROOT QSIM FOLDER QSIM-MAKE-LINEAR QSIM-TRAIN-LENET
set -eu
root=$1 qsim=$2 peer=$3 linear=$4 train=$5
. "$root/test/interop/ort.sh"

check() { # MODEL INPUTS...
    model=$1
    shift
    agree "$models/$model.onnx" "$@"
}
check dtln_model_1 input_2=1,1,257 input_3=1,2,128,2
check ppocrv2_rec_en_number x=2,3,32,100
check ppocrv3_det_ch x=1,3,64,96
check yolox_nano images=1,3,416,416
check silero_vad_op18_ifless input=1,576 sr:16000 state=2,1,128
check silero_vad_op18_ifless input=3,288 sr:8000 state=2,3,128

"$linear" -q -o "$work/linear.onnx"
agree "$work/linear.onnx" X=3,64
mkdir "$work/data"
"$train" -q --make-procedural "$work/data" --count 300
"$train" -q --data "$work/data" --epochs 1 -o "$work/trained.onnx" >/dev/null
agree "$work/trained.onnx" input=3,1,28,28

quantized() { # MODEL INPUTS QUANTIZE-OPTIONS...
    model=$1 inputs=$2
    shift 2
    file=$work/$model$(echo "$*" | tr -d ' ').onnx
    "$qsim" quantize -q "$models/$model.onnx" -o "$file" "$@"
    agree "$file" $inputs
}
for how in '--mode dynamic' '--mode dynamic --per-row' '--mode dynamic --weight-scheme tensor-asymmetric' \
    '--mode dynamic --weight-scheme channel-asymmetric' '--mode dynamic --weights uint8' '--mode dynamic --weights uint8 --weight-scheme tensor'; do
    quantized fashion_lenetlite input=3,1,28,28 $how
    quantized squeezenet1.1_fp32_from_fp16 data_0=1,3,224,224 $how
    quantized mobilenet_v1_025_224_imagenet input=1,3,224,224 $how
    quantized mlptiny_kws_dscnn_fp32 input=2,1,49,10 $how
    quantized dtln_model_1 'input_2=1,1,257 input_3=1,2,128,2' $how
done
for how in '--mode weights' '--mode weights --weights float16' '--mode weights --weights uint8 --weight-scheme tensor-asymmetric' \
    '--mode weights --weight-scheme channel-asymmetric'; do
    quantized fashion_lenetlite input=3,1,28,28 $how
    quantized squeezenet1.1_fp32_from_fp16 data_0=1,3,224,224 $how
    quantized mobilenet_v1_025_224_imagenet input=1,3,224,224 $how
    quantized dtln_model_1 'basic input_2=1,1,257 input_3=1,2,128,2' $how
done

# Integers as inputs and outputs: a step apart here and there.
images=$shared/data/fashion-mnist/t10k-images-idx3-ubyte.gz
for how in 'uint8 --format qdq' 'uint8 --format qoperator' 'int8 --format qdq' 'int8 --format qoperator'; do
    file=$work/integers.onnx
    "$qsim" quantize -q -f "$models/fashion_lenetlite.onnx" -o "$file" --io integer --data "$images" --limit 200 --activations $how
    agree "$file" within=0.01 "input=3,1,28,28:${how%% *}"
done
# Those of Softmax are quantized for it.
for how in 'uint8 --format qdq' 'uint8 --format qoperator' 'int8 --format qdq' 'uint16 --format qdq' 'int16 --format qdq'; do
    file=$work/shares.onnx
    "$qsim" quantize -q -f "$models/mlptiny_kws_dscnn_fp32.onnx" -o "$file" --io integer-outputs --data random --limit 64 --activations $how
    agree "$file" within=0.01 input=5,1,49,10
done

# Quantized files in another form: pairs a step apart here and there, floats as any float model.
other_form() { # MODEL INPUT
    for form in float qdq; do
        file=$work/form.onnx
        "$qsim" convert -q -f "$models/$1.onnx" --to $form -o "$file"
        agree "$file" within=$([ $form = qdq ] && echo 0.05 || echo 1e-4) "$2"
    done
}
other_form shufflenet-v2-12-int8 input=1,3,224,224
other_form mlptiny_kws_dscnn_int8 input=2,1,49,10
other_form coral_mobilenet_v1_0.75_192_qdq input=1,3,192,192

# What ONNX Runtime has optimized and saved, with operators of com.microsoft, as operators of ONNX: the same bits.
only_onnx() { # MODEL [WITHIN] INPUT
    model=$models/$1.onnx
    shift
    ask optimize "$model" "$work/optimized.onnx"
    "$qsim" convert -f "$work/optimized.onnx" --to onnx -o "$work/onnx.onnx" >"$work/said"
    grep -q '^operators of other domains: [1-9][0-9]* before, 0 now' "$work/said" || { cat "$work/said"; exit 1; }
    "$qsim" compare -q "$work/optimized.onnx" "$work/onnx.onnx" --data random --limit 2 --max-abs 0 >"$work/said" || { cat "$work/said"; exit 1; }
    agree "$work/onnx.onnx" "$@"
}
only_onnx fashion_lenetlite input=3,1,28,28
only_onnx yolox_nano images=1,3,416,416
only_onnx shufflenet-v2-12-int8 within=0.05 input=1,3,224,224
only_onnx mlptiny_kws_dscnn_int8 within=0.05 input=2,1,49,10

# Language models whose normalizations are smoothed; "-" in place of a figure: that did not happen.
smoothed=$(node "$root/test/interop/models.js" "$peer" "$qsim" "$work" "$shared" smooth \
    "$shared/llm/tinystories656k/std23.onnx" "$shared/llm/tinystories656k/fp32.onnx") || { echo "$smoothed"; exit 1; }
echo "$smoothed"
! echo "$smoothed" | grep -q ' -  *$'
