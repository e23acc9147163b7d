#!/bin/sh
# SPDX-License-Identifier: MIT
# From nothing to a measured INT8 network: installs what is missing, builds, gets Fashion-MNIST, trains
# LeNetLite, quantizes it, compares both and leaves table, pictures and models in results/.
set -eu

usage() {
    cat <<'END'
usage: sh tools/quickstart.sh [--data DIR] [--results DIR] [--epochs N] [--seed N] [--threads N]

  --data DIR     folder of the four Fashion-MNIST files (.gz or not); without it: $QSIM_DATA, then
                 ../shared/data/fashion-mnist, then a download, then a data set drawn by the trainer
  --results DIR  where models, tables and pictures go (results)
  --epochs N, --seed N, --threads N   for the training
END
}

# One source a line; each holds the four files by their names.
sources="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com
https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion"

checksums="3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84  train-images-idx3-ubyte.gz
a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845  train-labels-idx1-ubyte.gz
346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073  t10k-images-idx3-ubyte.gz
67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5  t10k-labels-idx1-ubyte.gz"

# fetch URL FILE
fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --connect-timeout 15 --max-time 600 -o "$2" "$1"
    else
        wget -q --timeout=15 --tries=1 -O "$2" "$1"
    fi
}

intact() {
    [ -d "$1" ] && (cd "$1" && printf '%s\n' "$checksums" | sha256sum -c --quiet >/dev/null 2>&1)
}

# download DIR: all four files from one source, with the right checksums.
download() {
    intact "$1" && return 0
    command -v curl >/dev/null 2>&1 || command -v wget >/dev/null 2>&1 ||
        need curl ca-certificates || return 1
    mkdir -p "$1"
    for source in $sources; do
        say "downloading Fashion-MNIST (30 MB) from $source"
        for file in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
            fetch "$source/$file-ubyte.gz" "$1/$file-ubyte.gz" || break
        done
        intact "$1" && return 0
        say "that did not give the four files with the right checksums"
    done
    return 1
}

data='' results=results epochs='' seed='' threads=''
while [ $# -gt 0 ]; do
    case "$1" in
    -h | --help) usage && exit 0 ;;
    --data | --results | --epochs | --seed | --threads)
        [ $# -ge 2 ] || { usage >&2 && exit 2; }
        eval "${1#--}=\$2"
        shift 2
        ;;
    *) usage >&2 && exit 2 ;;
    esac
done

# Paths are the caller's until here.
absolute() {
    case "$1" in /* | '') printf '%s' "$1" ;; *) printf '%s/%s' "$PWD" "$1" ;; esac
}
data=$(absolute "${data:-${QSIM_DATA:-}}")
results=$(absolute "$results")
cd "$(dirname "$0")/.."
. tools/deps.sh

# shellcheck disable=SC2086,SC2154
need $build_packages || exit 1
say "building in build/"
[ -f build/build.ninja ] || meson setup build -Dtests=disabled >/dev/null
ninja -C build tools/qsim/qsim tools/demo/qsim-train-lenet tools/demo/qsim-demo \
    tools/demo/qsim-make-linear >build/quickstart.log ||
    { cat build/quickstart.log && exit 1; }
bin=build/tools/demo

if [ -n "$data" ]; then
    say "data: $data"
elif [ -f ../shared/data/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    data=../shared/data/fashion-mnist
    say "data: $data"
elif download build/fashion-mnist; then
    data=build/fashion-mnist
    say "data: $data"
else
    data=build/procedural
    say "Fashion-MNIST CANNOT BE HAD: a procedural data set takes its place. Its numbers say nothing"
    say "about Fashion-MNIST; it is called 'procedural' in every table and picture."
    mkdir -p "$data"
    $bin/qsim-train-lenet --make-procedural "$data"
fi

# The same names wherever the data come from, for the commands of docs/COURSE.md.
mkdir -p build/data
for file in train-images train-labels t10k-images t10k-labels; do
    for found in "$(absolute "$data")/$file"-idx?-ubyte*; do
        [ ! -f "$found" ] || ln -sf "$found" "build/data/$file"
    done
done

mkdir -p "$results"
say "training LeNetLite"
$bin/qsim-train-lenet --data "$data" -f -o "$results/lenetlite_fp32.onnx" \
    ${epochs:+--epochs "$epochs"} ${seed:+--seed "$seed"} ${threads:+--threads "$threads"}
say "quantizing and comparing"
status=0
$bin/qsim-demo -f --data "$data" --results "$results" "$results/lenetlite_fp32.onnx" || status=$?
say "table, pictures and both models are in $results"
exit $status
