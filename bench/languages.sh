#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared data's language models beside ONNX Runtime, as a whole, one thread, in turns: a prompt of
# 128 tokens; one token after 128 whose keys and values are given; and one after each of 128 to 191, so
# that no run has the sizes of the one before, as when a text is written.
# Usage: sh bench/languages.sh [-s SECONDS] [MODEL...]      (1 second per row)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=1
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
find_ort
build gcc bench/worker
python3 bench/languages.py "$out" "$ort" "$seconds" "$@"
