#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared data's language models beside ONNX Runtime, as a whole, one thread, in turns: a prompt of
# 128 tokens, and one token after 128 whose keys and values are given.
# Usage: sh bench/languages.sh [-s SECONDS] [MODEL...]      (1 second per row)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=1
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
find_ort
build gcc bench/worker
python3 bench/languages.py "$out" "$ort" "$seconds" "$@"
