#!/bin/sh
# SPDX-License-Identifier: MIT
# What `qsim optimize` saves at the start: from the file until the first run can begin, for the file as it is
# and for the optimized one with optimization off, each in fresh processes, in turns.
# Usage: sh bench/start.sh [-n ROUNDS] [MODEL...]      (60 rounds; by default five models of the shared data)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
rounds=60
[ "${1:-}" != -n ] || { rounds=$2 && shift 2; }
build gcc tools/qsim/qsim
python3 bench/start.py "$out" "$rounds" "$@"
