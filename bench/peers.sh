#!/bin/sh
# SPDX-License-Identifier: MIT
# libqsim and ONNX Runtime side by side, in turns in one run, at 1 and 2 threads: time with spread, load,
# peak memory, and what the project's aims miss; rows that something else disturbed are marked. The networks
# given, as they are; or those of bench/models.sh (the shared data's and the generated ones, FP32 and
# quantized by qsim: u8, s8, dynamic).
# Usage: sh bench/peers.sh [-s SECONDS] [-b BATCH] [MODEL...]   (1.5 seconds per row; batch 1)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
seconds=1.5 batch=1
while getopts s:b: option; do
    case $option in
    s) seconds=$OPTARG ;;
    b) batch=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
find_ort
[ -n "$ort" ] || { say "nothing to compare with"; exit 1; }
build gcc bench/nets bench/worker tools/qsim/qsim
build_tiles
generate chain1
[ $# -gt 0 ] || generate resnet50 mobilenetv2 squeezenet bert
python3 bench/peers.py "$out" "$ort" "$seconds" "$batch" "$@"
