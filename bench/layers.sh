#!/bin/sh
# SPDX-License-Identifier: MIT
# Single layers, one thread: our kernels beside ONNX Runtime and oneDNN, in turns; the shapes are those that
# the kernel tests time. oneDNN is optional (Debian: libdnnl-dev); without it its columns stay empty.
# Usage: sh bench/layers.sh [-s SECONDS] [ISA]      (0.5 seconds per layer; avx512vnni)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=0.5
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
find_ort
build gcc bench/limits bench/worker test/kernel/checkkernel
build gcc bench/worker_onednn 2>/dev/null || say "no oneDNN (libdnnl-dev): its columns stay empty"
python3 bench/layers.py "$out" "$ort" "$seconds" "${1:-avx512vnni}"
