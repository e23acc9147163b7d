#!/bin/sh
# SPDX-License-Identifier: MIT
# MatMulNBits (4 and 8 bits) beside ONNX Runtime, one thread, in turns: one row, as when a language
# model writes, and 128, as when it reads.
# Usage: sh bench/nbits.sh [-s SECONDS]      (0.5 seconds per case)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=0.5
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
find_ort
build gcc bench/worker
python3 bench/nbits.py "$out" "$ort" "$seconds"
