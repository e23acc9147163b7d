#!/bin/sh
# SPDX-License-Identifier: MIT
# Random graphs in every form: each tensor is what ONNX Runtime, without optimizing anything, makes of the same
# inputs. Skipped by name where the runtime is not there.
# Usage: random.sh SOURCE_ROOT QSIM FOLDER TEST_RANDOM_GRAPHS [FIRST [COUNT]]
set -eu
root=$1 qsim=$2 peer=$3 graphs=$4
. "$root/test/interop/ort.sh"

"$graphs" --write "$work" "${5:-1}" "${6:-60}"
node "$root/test/interop/random.js" "$peer" "$work"
