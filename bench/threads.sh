#!/bin/sh
# SPDX-License-Identifier: MIT
# How networks scale on 1, 2, 4, … up to all CPUs that this process may use, beside ONNX Runtime with as many
# threads, in turns; and how long a run takes that comes after a pause of 5 ms, when all threads sleep.
# Usage: sh bench/threads.sh [-s SECONDS] [MODEL...]      (1 second per row; by default the generated networks
# and the small ones of the shared data, FP32 and u8)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=1
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
find_ort
build gcc bench/nets bench/worker tools/qsim/qsim
build_tiles
[ $# -gt 0 ] || generate resnet50 mobilenetv2 squeezenet
python3 bench/threads.py "$out" "$ort" "$seconds" "$@"
