#!/bin/sh
# SPDX-License-Identifier: MIT
# README's photo, run as printed: photo.sh SOURCE QSIM. Classes are compared; another release of
# libjpeg may move the last digit of a probability.
set -u
source=$1
PATH=$(cd "$(dirname "$2")" && pwd):$PATH
shared=${QSIM_SHARED:-$source/../shared}
[ -d "$shared/data/images" ] || { [ "${QSIM_REQUIRE_SHARED:-0}" = 1 ] && exit 1; echo "skipped: no shared data" && exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
shared=$(cd "$shared" && pwd)
sed -n '/^## A photo$/,/^## /s/^    //p' "$source/README.md" >"$dir/block"
line=$(sed -n 's/^\$ //p' "$dir/block")
[ -n "$line" ] || { echo "README.md shows no photo" && exit 1; }
mkdir "$dir/here"
ln -s "$shared" "$dir/shared"
(cd "$dir/here" && sh -c "$line") >"$dir/out" 2>"$dir/err" || {
    grep -q 'without lib' "$dir/err" && echo "skipped: $(cat "$dir/err")" && exit 77
    cat "$dir/err" && exit 1
}
# Of 1000 classes and one photo the matrix has one row of numbers, at its place, not a million zeros.
mkdir "$dir/set"
cp "$shared/data/images/parrot.jpg" "$dir/set"
echo 'parrot.jpg 88' >"$dir/set/labels.txt"
qsim eval "$shared/models/mobilenet_v1_025_224_imagenet.onnx" -d "$dir/set" --preprocess tf --json >"$dir/json" || exit 1
tr -d ' \n' <"$dir/json" | grep -qE '"confusion":\[(\[],){88}\[(0,){88}1(,0){911}](,\[]){911}]' || { echo "eval: a matrix of few samples" && exit 1; }
sed 1d "$dir/block" | awk '{ print $1, $2 }' >"$dir/wanted"
awk '{ print $1, $2 }' "$dir/out" | diff "$dir/wanted" -
