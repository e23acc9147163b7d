#!/bin/sh
# SPDX-License-Identifier: MIT
# "The course in ten commands" of docs/COURSE.md and its Spanish page, run as printed, on a data set that is drawn:
# course.sh SOURCE QSIM QSIM-TRAIN-LENET QSIM-MAKE-LINEAR
set -u
source=$(cd "$1" && pwd) failed=0
for program in "$2" "$3" "$4"; do
    PATH=$(cd "$(dirname "$program")" && pwd):$PATH
done
export PATH
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# commands FILE HEADING: those of the section, without the prompt.
commands() {
    sed -n "/^## $2\$/,/^## /s/^    \\\$ //p" "$source/$1" 2>/dev/null
}

commands docs/COURSE.md "The course in ten commands" >"$dir/en"
commands docs/COURSE.es.md "El curso en diez órdenes" >"$dir/es"
[ -s "$dir/en" ] || { echo "skipped: docs/COURSE.md has no such section" && exit 77; }
if [ "$(wc -l <"$dir/en")" != 10 ]; then
    echo "not ten commands, but $(wc -l <"$dir/en")"
    failed=1
fi
cmp "$dir/en" "$dir/es" || { echo "the Spanish page has other commands" && failed=1; }

# What tools/quickstart.sh leaves, quickly.
mkdir -p "$dir/here/build/data" "$dir/here/results" "$dir/here/tools/demo" "$dir/drawn"
cp "$source/tools/demo/course.json" "$dir/here/tools/demo"
qsim-train-lenet -q --make-procedural "$dir/drawn" --count 60000 || exit 1
for file in train-images train-labels t10k-images t10k-labels; do
    ln -s "$dir/drawn/$file"-idx?-ubyte "$dir/here/build/data/$file"
done
cd "$dir/here" || exit 1
qsim-train-lenet -q --data "$dir/drawn" --epochs 1 -o results/lenetlite_fp32.onnx >/dev/null || exit 1

# Twice: they can be repeated.
for round in 1 2; do
    while read -r line; do
        sh -c "$line" >"$dir/out" 2>"$dir/err" </dev/null && [ -s "$dir/out" ] && continue
        echo "failed in round $round: $line"
        sed 's/^/    /' "$dir/err"
        failed=1
    done <"$dir/en"
done
for file in results/m3_linear_int8/model.onnx results/m3_linear_int8/OutputModels.zip; do
    [ -s "$file" ] || { echo "no $file" && failed=1; }
done
[ "$failed" = 0 ]
