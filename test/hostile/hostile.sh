#!/bin/sh
# SPDX-License-Identifier: MIT
# Malformed and hostile models, arrays, packages and configurations from the shared corpus: each verdict
# must be good.
# Usage: hostile.sh QSIM SANITIZED(0|1) [KINDS]: their folders, onnx|mut... (all)
set -eu
corpus=${QSIM_SHARED:-../shared}/hostile
if [ ! -f "$corpus/dev.tar.xz" ]; then
    echo "missing: $corpus/dev.tar.xz"
    [ "${QSIM_REQUIRE_SHARED:-0}" != 1 ] || exit 1
    exit 77
fi
for tool in bash /usr/bin/time; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One file is 3 GiB of zeros: a hole, so that the disk needs no room for it.
hole=dev/hostile/onnx/big_ext_3g.bin
tar xf "$corpus/dev.tar.xz" -C "$work" --exclude "$hole"
tar xOf "$corpus/dev.tar.xz" "$hole" | dd of="$work/$hole" bs=1M conv=sparse status=none
QSIM=$(realpath "$1") SAN=$2 OUT="$work/out" TMO=30 bash "$corpus/check_hostile.sh" "$work/dev" \
    "^(${3:-onnx|mut|npy|npz|idx|zip|json})/" || {
    cut -c1-300 "$work/out/failed.tsv"
    exit 1
}
