#!/bin/sh
# SPDX-License-Identifier: MIT
# Random graphs in every form: each tensor is the one that ONNX Runtime, which optimizes nothing here, computes from
# the same inputs. Skipped by name where the runtime is not there.
# Usage: random.sh SOURCE_ROOT QSIM FOLDER TEST_RANDOM_GRAPHS [FIRST [COUNT]]
set -eu
root=$1 qsim=$2 peer=$3 graphs=$4
. "$root/test/interop/ort.sh"

"$graphs" --write "$work" "${5:-1}" "${6:-60}"
# Quantized graphs as optimizers leave them, in operators of com.microsoft, too.
mkdir "$work/optimized"
for file in "$work"/*_pairs.onnx "$work"/*_static.onnx; do
    "$qsim" optimize -q "$file" --level extended -o "$work/optimized/${file##*/}" >/dev/null
done
node "$root/test/interop/random.js" "$peer" "$work"
