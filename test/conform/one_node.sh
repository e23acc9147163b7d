#!/bin/sh
# SPDX-License-Identifier: MIT
# One-node models of language models' operators from the shared data. Usage: one_node.sh PROGRAM MINIMUM [onnx]
set -eu
models=${QSIM_SHARED:-../shared}/llm/ops
if [ ! -d "$models" ]; then
    echo "missing: $models"
    [ "${QSIM_REQUIRE_SHARED:-0}" != 1 ] || exit 1
    exit 77
fi
list=$(mktemp)
trap 'rm -f "$list"' EXIT
for model in "$models"/*.onnx; do
    # accuracy_level 4 rounds activations, for which ONNX has no operator
    case ${3-}$(basename "$model") in onnx*_acc4*|onnxnbits4_qwen_qkv*) continue ;; esac
    basename "$model" .onnx
done >"$list"
"$1" "$models" "$list" "$2" ${3+"$3"}
