#!/bin/sh
# SPDX-License-Identifier: MIT
# Whole networks on libqsim: those of the shared data, and ResNet-50, MobileNetV2, SqueezeNet 1.1 and a
# BERT of 6 layers with random weights, as FP32 and quantized by qsim (u8 and s8 activations, dynamic), at
# 1 and 2 threads; what does not run is named. Then the executor's cost and ResNet-50's scaling.
# What is made is kept in build-bench/nets: remove it to have it made again.
# Usage: sh bench/models.sh [-s SECONDS] [MODEL...]      (1.5 seconds per network and number of threads)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=1.5
[ "${1:-}" != -s ] || { seconds=$2 && shift 2; }
build gcc bench/nets bench/worker tools/qsim/qsim
build_tiles
generate chain1 chain65
[ $# -gt 0 ] || generate resnet50 mobilenetv2 squeezenet bert
python3 bench/models.py "$out" "$seconds" "$@"
