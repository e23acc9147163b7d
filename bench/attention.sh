#!/bin/sh
# SPDX-License-Identifier: MIT
# Attention and GroupQueryAttention beside ONNX Runtime, one thread, in turns: one query with the
# keys and values of 511 before it, as when a language model writes, and 128, as when it reads.
# Usage: sh bench/attention.sh [-s SECONDS]      (0.5 seconds per case)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=0.5
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
find_ort
build gcc bench/worker
python3 bench/attention.py "$out" "$ort" "$seconds"
