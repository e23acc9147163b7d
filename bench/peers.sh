#!/bin/sh
# SPDX-License-Identifier: MIT
# libqsim and ONNX Runtime side by side, one thread, the same machine, in turns: the models given, or
# those of the shared data; medians and their ratio. ONNX Runtime is driven from Node, whose call costs
# some 10 to 20 us: below 0.1 ms that is most of what its column shows.
# Usage: sh bench/peers.sh [-b BATCH] [MODEL...]
set -eu
cd "$(dirname "$0")/.."
batch=1
[ "${1:-}" != -b ] || { batch=$2 && shift 2; }
models=${QSIM_SHARED:-../shared}/models
[ $# -gt 0 ] || set -- "$models"/fashion_lenetlite.onnx "$models"/fashion_resnet8.onnx \
    "$models"/mlptiny_ic_resnet8_fp32.onnx "$models"/mlptiny_ic_resnet8_int8.onnx \
    "$models"/mlptiny_kws_dscnn_int8.onnx "$models"/cifar_resnet20_akamaster.onnx \
    "$models"/mobilenet_v1_025_224_imagenet.onnx "$models"/squeezenet1.1_fp32_from_fp16.onnx \
    "$models"/coral_mobilenet_v2_1.0_224_fp32deq.onnx "$models"/coral_mobilenet_v2_1.0_224_qdq.onnx \
    "$models"/shufflenet-v2-12-int8.onnx
qsim=${QSIM:-build/tools/qsim/qsim}
peer=build/onnxruntime
[ -x "$qsim" ] || { echo "peers: no $qsim; build first (ninja -C build)" >&2; exit 1; }
if [ ! -d "$peer/node_modules/onnxruntime-node" ]; then
    mkdir -p "$peer"
    (cd "$peer" && npm install --ignore-scripts --no-audit --no-fund --silent onnxruntime-node@1.30.0)
fi
field() { # NAME
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" | head -n 1
}
printf '%-40s %12s %12s %8s\n' "model, batch $batch, 1 thread" 'qsim ms' 'ORT ms' 'ratio'
for model; do
    best_q='' best_o=''
    for _ in 1 2 3; do
        q=$("$qsim" bench -q --json -T 1 --batch "$batch" "$model" | field median_ms)
        o=$(node bench/peer_bench.js "$peer" 1 "$batch" "$model" | field median_ms)
        best_q=$(printf '%s\n' $best_q "$q" | sort -g | head -n 1)
        best_o=$(printf '%s\n' $best_o "$o" | sort -g | head -n 1)
    done
    printf '%-40s %12.4f %12.4f %7.2fx\n' "$(basename "$model")" "$best_q" "$best_o" \
        "$(awk -v a="$best_o" -v b="$best_q" 'BEGIN { print a / b }')"
done
