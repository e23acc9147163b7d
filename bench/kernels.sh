#!/bin/sh
# SPDX-License-Identifier: MIT
# The cases of the kernel tests, timed: GMAC/s, or GB/s where memory is what counts, and the share of
# what registers-only loops, or reads and copies in the same cache, reach in the same run. Built by gcc
# and by clang, in turns; those that differ by more than 5 % are marked (and never fail).
# Usage: sh bench/kernels.sh [-r ROUNDS] [ISA...]      (3 rounds; the instruction sets of this CPU but c)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
rounds=3
[ "${1:-}" != -r ] || { rounds=$2 && shift 2; }
[ $# -gt 0 ] || set -- amx avx512vnni avxvnni avx2 neoni8mm neondot neon
compilers=gcc
build gcc test/kernel/checkkernel bench/limits
if command -v clang >/dev/null 2>&1; then
    build clang test/kernel/checkkernel && compilers=gcc,clang
else
    say "no clang: gcc alone"
fi
python3 bench/kernels.py "$out" "$rounds" "$compilers" "$@"
