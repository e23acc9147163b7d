#!/bin/sh
# SPDX-License-Identifier: MIT
# The demo from end to end on a small drawn data set: demo.sh QSIM-TRAIN-LENET QSIM-DEMO
# QSIM-MAKE-LINEAR
set -u
train=$1 demo=$2 linear=$3 failed=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

check() { # WHAT COMMAND...
    what=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err" || {
        failed=$((failed + 1))
        printf 'failed: %s (%s)\n' "$what" "$*"
        sed 's/^/    /' "$dir/err"
    }
}

# exits CODE COMMAND...: with this exit code, and one line of error if that is not 0.
exits() {
    expected=$1 code=0
    shift
    "$@" >"$dir/stdout" 2>"$dir/stderr" || code=$?
    [ "$code" = "$expected" ] || { echo "exit code $code, expected $expected" >&2 && return 1; }
    [ "$code" = 0 ] || grep -q '^qsim: ' "$dir/stderr"
}

check "linear" exits 0 "$linear" -o "$dir/l.onnx" --inputs 8 --outputs 4
check "its sizes" grep -qF 'X float[N,8] -> Y float[N,4], 36 parameters, seed 0' "$dir/stdout"
check "linear again" exits 0 "$linear" -q -o "$dir/l2.onnx" --inputs 8 --outputs 4
check "the same bytes" cmp "$dir/l.onnx" "$dir/l2.onnx"
check "linear is kept" exits 5 "$linear" -o "$dir/l.onnx"
check "another seed" exits 0 "$linear" -f -o "$dir/l2.onnx" --inputs 8 --outputs 4 --seed 1
# shellcheck disable=SC2016
check "other weights" sh -c '! cmp -s "$1" "$2"' - "$dir/l.onnx" "$dir/l2.onnx"
check "no such size" exits 2 "$linear" -o "$dir/l3.onnx" --inputs 0

mkdir "$dir/data" "$dir/again"
check "help" exits 0 "$train" --help
check "help names the program" grep -q '^usage: qsim-train-lenet' "$dir/stdout"
check "no options" exits 2 "$train"
check "unknown option" exits 2 "$train" --sed 3
check "no data" exits 5 "$train" --data "$dir/nowhere" -o "$dir/m.onnx"

check "draw" exits 0 "$train" -q --make-procedural "$dir/data" --count 6000
check "draw again" exits 0 "$train" -q --make-procedural "$dir/again" --count 6000
check "the same bytes" diff -r "$dir/data" "$dir/again"

check "train" exits 0 "$train" -q --data "$dir/data" --epochs 2 -T 1 -o "$dir/a.onnx" --json
check "the data's name" grep -q '"procedural"' "$dir/stdout"
# 10 % would be chance.
check "it has learned" grep -qE '"test_top1": *[6-9][0-9]' "$dir/stdout"
check "output is kept" exits 5 "$train" -q --data "$dir/data" --epochs 1 -o "$dir/a.onnx"
check "three threads" exits 0 "$train" -q --data "$dir/data" --epochs 2 -T 3 -o "$dir/b.onnx"
check "the same model" cmp "$dir/a.onnx" "$dir/b.onnx"
check "another seed" exits 0 "$train" -q --data "$dir/data" --epochs 2 --seed 2 -f -o "$dir/b.onnx"
# shellcheck disable=SC2016
check "another model" sh -c '! cmp -s "$1" "$2"' - "$dir/a.onnx" "$dir/b.onnx"

# With 1,000 test images and two epochs, accuracy may miss its bar by chance: 3 is no failure.
"$demo" --data "$dir/data" --results "$dir/results" --rounds 20 "$dir/a.onnx" >"$dir/table" 2>"$dir/err"
case $? in
0 | 3) ;;
*) failed=$((failed + 1)) && echo "failed: demo" && cat "$dir/err" ;;
esac
check "the table names the data" grep -q '^data: procedural, 600 validation and 1000 test' "$dir/table"
check "size" grep -qE '^fp32/int8 .* 3\.94x' "$dir/table"
for file in confusion_fp32 confusion_int8 confusion_difference per_class; do
    check "$file.svg names the data" grep -q procedural "$dir/results/$file.svg"
    check "$file.csv has ten classes" test "$(wc -l <"$dir/results/$file.csv")" = 11
done
check "classes without names are numbers" grep -q '^1,' "$dir/results/confusion_int8.csv"
printf 'zero\none\n' >"$dir/data/labels.txt"
"$demo" --data "$dir/data" --results "$dir/results" --rounds 20 "$dir/a.onnx" -f --json >"$dir/json" 2>"$dir/err"
check "--json prints JSON" sh -c 'head -1 "$1" | grep -qx "{" && grep -q "\"validation_images\": 600" "$1"' - "$dir/json"
check "classes have the data set's names" grep -q '^one,' "$dir/results/confusion_int8.csv"
# Printed with 6 digits behind the point.
check "times are per image in all reports" awk -F '[:,} ]+' 'FNR == NR { if (/batch64_ms/ && !n++) want = $4; next }
    FNR == 2 { split($0, f, ","); d = f[8] - want; ok = d < 1e-6 && d > -1e-6 } END { exit !ok }' "$dir/json" "$dir/results/summary.csv"
check "summary" test "$(wc -l <"$dir/results/summary.csv")" = 3
check "results are kept" exits 5 "$demo" --data "$dir/data" --results "$dir/results" "$dir/a.onnx"

head -c 1000 "$dir/again/train-images-idx3-ubyte" >"$dir/cut"
mv "$dir/cut" "$dir/again/train-images-idx3-ubyte"
check "cut data" exits 4 "$train" -q --data "$dir/again" -o "$dir/c.onnx"
check "nothing was written" test ! -e "$dir/c.onnx"
[ "$failed" = 0 ] || exit 1
