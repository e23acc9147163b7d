#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds with -Doperators: models with these operators give the bits of the whole library, in floats and in
# integers, also where the library makes others of them; a model with another operator is refused by name,
# and so is quantizing with -Dquantizer=disabled; the libraries are smaller. The command of the whole build
# loads each library in place of its own. Compiled without optimization, to be quick.
# Usage: trimmed.sh SOURCE_ROOT QSIM RANDOM_GRAPHS EXPANDING CC
set -eu
root=$1 qsim=$2 graphs=$3 expanding=$4 cc=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$work/build models=$work/models
mkdir "$models"

fail() {
    echo "trimmed: $1"
    exit 1
}

quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" && fail "$* failed"; }
}

# library OPTION...: builds $library, with the options besides those before.
library() {
    if [ -d "$build" ]; then
        quietly meson configure "$build" "$@"
    else
        quietly meson setup "$build" "$root" -Dbuildtype=plain -Dwerror=true -Dtools=disabled "$@"
    fi
    library=$(ninja -C "$build" -t targets all | sed -n 's/^\(lib\/libqsim\.so[.0-9]*\):.*/\1/p' | head -n 1)
    quietly ninja -C "$build" "$library"
    library=$build/$library
    ln -sf "$library" "$work/libqsim.so.0"
    strip -o "$work/stripped" "$library"
    size=$(wc -c <"$work/stripped")
}

# trimmed COMMAND...: the command, which the whole build has linked, on $library.
trimmed() {
    LD_LIBRARY_PATH=$work "$@"
}

# same MODEL: $library and the whole one compute the same bits.
same() {
    for level in disable all; do
        mkdir "$work/a" "$work/b"
        quietly "$qsim" run "$1" -i random:5 --level $level --output-dir "$work/a"
        quietly trimmed "$qsim" run "$1" -i random:5 --level $level --output-dir "$work/b"
        [ -n "$(ls "$work/a")" ] || fail "$1: no outputs"
        diff -r "$work/a" "$work/b" || fail "$1, level $level: other bits"
        rm -r "$work/a" "$work/b"
    done
}

# refused TEXT COMMAND...: the command fails and says this.
refused() {
    text=$1
    shift
    ! trimmed "$@" >/dev/null 2>"$work/said" || fail "$* succeeded"
    grep -qF "$text" "$work/said" || { cat "$work/said" && fail "$*: not '$text'"; }
}

operators_of() {
    python3 "$root/tools/operators_of.py" "$@"
}

# Of all operators, whose names stand in the first column.
"$qsim" info --ops | sed -n '2,$s/ .*//p' | tr : . | sort -u >"$work/names"
library "-Doperators=$(paste -s -d , "$work/names")"
whole=$size
trimmed "$qsim" info --ops | sed -n '2,$s/ .*//p' | tr : . | sort -u | cmp - "$work/names" || fail "info --ops lists other operators"

# A network in floats and in its quantized forms.
quietly "$graphs" --write "$models" 3 1
library "-Doperators=$(operators_of "$models"/*.onnx)"
network=$size
for model in "$models"/*.onnx; do same "$model"; done
float=$(ls "$models"/*_floats.onnx)
[ "$size" -lt "$whole" ] || fail "$size bytes with the operators of a network, $whole with all"
[ "$(trimmed "$qsim" info --ops | wc -l)" -lt "$(wc -l <"$work/names")" ] || fail "info --ops lists what is not there"
for mode in static dynamic; do
    quietly "$qsim" quantize "$float" --mode $mode --data random:5 --limit 4 -o "$work/a.onnx"
    quietly trimmed "$qsim" quantize "$float" --mode $mode --data random:5 --limit 4 -o "$work/b.onnx"
    cmp "$work/a.onnx" "$work/b.onnx" || fail "quantized otherwise, $mode"
    rm "$work/a.onnx" "$work/b.onnx"
done

# Of this operator the library makes others, and other networks are refused by name.
"$expanding" "$work/mvn.onnx"
refused 'this build of libqsim has no operator MeanVarianceNormalization' "$qsim" run "$work/mvn.onnx" -i random
library -Doperators=MeanVarianceNormalization
same "$work/mvn.onnx"
refused 'this build of libqsim has no operator' "$qsim" run "$float" -i random
quietly trimmed "$qsim" info --inspect "$float"
[ "$size" -lt "$network" ] || fail "$size bytes with one operator, $network with those of a network"

# Without those that it makes the model loads, and its session is refused.
sed -i '/QS_LISTED_sqrt/d' "$build/lib/op/listed_operators.h"
quietly ninja -C "$build" "${library#"$build"/}"
refused 'operator Sqrt is not supported' "$qsim" run "$work/mvn.onnx" -i random

# A name that no operator has.
! meson configure "$build" -Doperators=Convolve >"$work/log" 2>&1 || ! ninja -C "$build" >"$work/log" 2>&1 || fail "Convolve is taken"
grep -q 'libqsim has no Convolve' "$work/log" || { cat "$work/log" && fail "Convolve is not refused by name"; }

# Without the quantizer.
library "-Doperators=$(operators_of "$models"/*.onnx)" -Dquantizer=disabled
for model in "$models"/*.onnx; do same "$model"; done
refused 'this build of libqsim does not quantize' "$qsim" quantize "$float" --data random:5 --limit 4 -o "$work/c.onnx"
[ ! -e "$work/c.onnx" ] || fail "a refused quantization wrote a file"
quietly sh "$root/test/abi/nulls.sh" "$root" "$library" "$cc"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u | diff - "$root/test/abi/exported.txt" ||
    fail "other functions are exported"
[ "$size" -lt "$network" ] || fail "$size bytes without the quantizer, $network with it"
echo "trimmed: the same bits; $whole bytes, with the operators of a network $network, without the quantizer $size"
