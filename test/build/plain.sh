#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles the library by one plain command, without meson and its flags, together with the program
# that draws random graphs; what both builds compute of the same graphs in every form (floats, static,
# dynamic, ...) has to be the same bits, and the plain build the same on all instruction sets.
# -ffast-math and what it consists of are refused. Usage: plain.sh SOURCE_ROOT RANDOM_GRAPHS CC
set -eu
root=$1 program=$(cd "$(dirname "$2")" && pwd)/$(basename "$2") cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
"$cc" -std=c11 -O2 -Iinclude -Ilib -Itest -Itest/unit $(find lib -name '*.c') \
    test/unit/exec/test_random_graphs.c test/unit/exec/random_*.c \
    -o "$work/plain" -lprotobuf-nanopb -lzip -lm -pthread
mkdir "$work/a" "$work/b"
"$program" --write "$work/a" 1 12 2>/dev/null
"$work/plain" --write "$work/b" 1 12 2>/dev/null
files=$(find "$work/a" -type f | wc -l)
[ "$files" -gt 100 ] || { echo "plain: only $files files were written"; exit 1; }
diff -r "$work/a" "$work/b" || { echo "plain: not the bits of the build by meson"; exit 1; }
"$work/plain" 1 6
# Flags that would change results are refused.
for flag in -Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only -freciprocal-math -fno-signed-zeros; do
    "$cc" -std=c11 "$flag" -Iinclude -Ilib -fsyntax-only lib/base/version.c 2>"$work/said" && echo "plain: $flag is taken" && exit 1
    grep -q 'changes results' "$work/said" || { cat "$work/said" && exit 1; }
done
echo "plain: $files files are the same"
