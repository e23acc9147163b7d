#!/bin/sh
# SPDX-License-Identifier: MIT
# From nothing to a measured INT8 network: installs what is missing, builds, gets Fashion-MNIST, trains
# LeNetLite, quantizes it, compares both and leaves table, pictures and models in results/.
set -eu

usage() {
    cat <<'END'
usage: sh tools/quickstart.sh [--data DIR] [--results DIR] [--epochs N] [--seed N] [--threads N]

  --data DIR     folder of the four Fashion-MNIST files (.gz or not); without it: $QSIM_DATA, then
                 ../shared/data/fashion-mnist, then Debian's package dataset-fashion-mnist (30 MB),
                 then a download, then a data set drawn by the trainer
  --results DIR  where models, tables and pictures go (results)
  --epochs N, --seed N, --threads N   for the training
END
}

# Where Debian's package dataset-fashion-mnist keeps the four files.
packaged=/usr/share/datasets/fashion-mnist

# One source a line; each holds the four files by their names.
sources="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com
https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion"

# SHA-256 of each file as it is uncompressed: archives of the same data differ.
checksums="c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888  train-images-idx3-ubyte
bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9  train-labels-idx1-ubyte
5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b  t10k-images-idx3-ubyte
0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34  t10k-labels-idx1-ubyte"

# fetch URL FILE
fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --connect-timeout 15 --max-time 600 -o "$2" "$1"
    else
        wget -q --timeout=15 --tries=1 -O "$2" "$1"
    fi
}

# intact DIR: whether DIR has the four files of Fashion-MNIST, compressed, with the right checksums.
intact() {
    for file in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
        [ -f "$1/$file-ubyte.gz" ] || return 1
        sum=$(gzip -dc "$1/$file-ubyte.gz" 2>/dev/null | sha256sum)
        case "$checksums" in *"${sum%% *}  $file-ubyte"*) ;; *) return 1 ;; esac
    done
}

# download DIR: all four files from one source, with the right checksums.
download() {
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

# Debian's package; it comes by the same network as the packages that the build needs.
from_package() {
    intact "$packaged" ||
        { command -v apt-get >/dev/null 2>&1 && need dataset-fashion-mnist && intact "$packaged"; }
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

# Relative paths are those of the caller's folder; the commands below run in the repository's.
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
    :
elif [ -f ../shared/data/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    data=../shared/data/fashion-mnist
elif from_package; then
    data=$packaged
elif intact build/fashion-mnist || download build/fashion-mnist; then
    data=build/fashion-mnist
else
    data=build/procedural
    say "Fashion-MNIST CANNOT BE HAD: a procedural data set takes its place. Its numbers say nothing"
    say "about Fashion-MNIST; it is called 'procedural' in every table and picture."
    mkdir -p "$data"
    $bin/qsim-train-lenet --make-procedural "$data"
fi
say "data: $data"

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
