#!/bin/sh
# SPDX-License-Identifier: MIT
# One-node models of language models' operators from the shared data. Usage: one_node.sh PROGRAM MINIMUM
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
    basename "$model" .onnx
done >"$list"
"$1" "$models" "$list" "$2"
