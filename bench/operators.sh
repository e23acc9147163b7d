#!/bin/sh
# SPDX-License-Identifier: MIT
# Single operators that networks hold beside convolutions and products, with floats, next to ONNX Runtime, one
# thread, in turns; the slowest in proportion first.
# Usage: sh bench/operators.sh [-s SECONDS] [OPERATOR...]      (0.2 seconds for each; all operators)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=0.2
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
find_ort
[ -n "$ort" ] || { say "nothing to compare with"; exit 1; }
build gcc bench/worker
python3 bench/operators.py "$out" "$ort" "$seconds" "$@"
