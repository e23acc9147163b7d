#!/bin/sh
# SPDX-License-Identifier: MIT
# Single operators with random attributes, ranks, types and inputs: each output is the one of ONNX Runtime, which
# optimizes nothing here, and qsim refuses nothing that it runs. Skipped by name where the runtime is not there.
# Usage: operators.sh SOURCE_ROOT QSIM FOLDER [FIRST [COUNT [OPERATOR]]]      FOLDER: where the runtime is fetched to
set -eu
root=$1 qsim=$2 peer=$3
. "$root/test/interop/ort.sh"

node "$root/test/interop/operators.js" "$peer" "$qsim" "$work" "${4:-1}" "${5:-300}" ${6:+"$6"}
