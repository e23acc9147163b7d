#!/bin/sh
# SPDX-License-Identifier: MIT
# Every model of the shared data beside ONNX Runtime: as it is, and quantized in every mode, on made-up and real inputs in
# batches of 1 and 3; a table, minutes of work. Skipped by name where the runtime is not there.
# Usage: models.sh SOURCE_ROOT QSIM FOLDER [MODEL...]      FOLDER: where the runtime is fetched to
set -eu
root=$1 qsim=$2 peer=$3
shift 3
. "$root/test/interop/ort.sh"

[ $# -gt 0 ] || set -- "$models" "$shared/llm"
node "$root/test/interop/models.js" "$peer" "$qsim" "$work" "$shared" "$@"
