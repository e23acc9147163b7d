#!/bin/sh
# SPDX-License-Identifier: MIT
# ONNX Runtime computes the models of each method and search of qsim quantize and auto as qsim does. Static
# LeNetLite: the same top-1 on at least 99.9 % of 1,000 Fashion-MNIST test images, and every 8-bit tensor within one
# step. Activations of 16 bits: outputs within a step. Dynamic and weight-only: within 1e-4 of the largest value.
# Searches on other networks: models.js. Choices are those of --help; an option has to give another file than no
# option, since otherwise the test would show nothing. Skipped by name where npm or its registry is not reachable. Usage: methods.sh SOURCE_ROOT QSIM FOLDER
set -eu
root=$1 qsim=$2 peer=$3
. "$root/test/interop/ort.sh"
model=$models/fashion_lenetlite.onnx
train_data
ask images "$shared/data/fashion-mnist/t10k-images-idx3-ubyte.gz" 1000 "$work/x.npy"

choices() { # OPTION: its values but the default
    "$qsim" quantize --help | sed -n "s/^ *--$1 .*; one of //p" | tr '|' '\n' | grep -vxE 'minmax|channel|uint8|int8'
}
samples=128
write() { # FILE VERB OPTIONS...
    file=$work/$1.onnx verb=$2
    shift 2
    "$qsim" "$verb" -q -f "$model" -o "$file" --limit "$samples" --data "$train" "$@" >/dev/null || [ $? = 3 ]
}
differs() { # OTHER: from the file
    ! cmp -s "$file" "$work/$1.onnx" || { echo "BAD  nothing has changed"; exit 1; }
}
static() { # NAME VERB OPTIONS...
    echo "== $*"
    write "$@"
    # What auto finds depends on the machine's speed.
    [ "$1" = plain ] || [ "$2" = auto ] || differs plain
    ask taps "$file" "$work/taps.onnx"
    "$qsim" run -q -f "$work/taps.onnx" --input "$work/x.npy" --output-dir "$work/out"
    ask compare "$work/taps.onnx" "$work/x.npy" "$work/out"
}
static plain quantize
for method in $(choices method); do
    case $method in
    auto) ;; # finds nothing better here; below
    percentile) static "$method" quantize --percentile 99.9 ;;
    *) static "$method" quantize --method "$method" ;;
    esac
done
for scheme in $(choices weight-scheme); do
    static "$scheme" quantize --weight-scheme "$scheme"
done
for search in $(choices search); do
    steps='--steps 40 --seed 1'
    [ "$search" != greedy ] || steps=''
    static "$search" quantize --search "$search" $steps
done
static reduced quantize --reduce-range --symmetric --activations int8
static uncorrected quantize --no-bias-correction
static narrow quantize --weights int4
static everything quantize --weight-scheme tensor --equalize --search both --steps 20 --refine
for goal in size latency; do
    static "$goal" auto --goal $goal --max-drop 5 --budget 20s
done
static small auto --goal size --bits 4,8,float --max-drop 5 --budget 20s

# What finds settings, crossed with weights of 4 bits and activations of 16.
wide() { # QUANTIZE-OPTIONS...
    echo "== $*"
    write wide quantize "$@"
    differs plain
    agree "$file" within=1e-3 input=64,1,28,28
}
for how in '--search greedy' '--search anneal --steps 15 --seed 1' '--method auto'; do
    for weights in '--weights int4' '--weights uint4 --weight-scheme channel-asymmetric'; do
        static crossed quantize $weights $how
        wide --activations uint16 $weights $how
    done
    wide --activations int16 --symmetric $how
done

# Above the basic level ONNX Runtime makes of dequantized weights of a product what quantizes activations. By 128
# samples it is not sure whether biases of 4-bit layers are better corrected.
samples=256
mode() { # LEVEL MODE OPTIONS...: with data that correct biases, and round 4 bits by GPTQ
    level=$1 mode=$2
    [ "$level" = basic ] || level=''
    shift 2
    echo "== $mode $*"
    write uncorrected quantize --mode "$mode" "$@" --no-bias-correction
    write corrected quantize --mode "$mode" "$@"
    differs uncorrected
    agree "$file" $level input=64,1,28,28
}
mode all dynamic
mode all dynamic --per-row
mode all dynamic --weight-scheme channel-asymmetric
mode basic weights
for block in 0 32; do
    mode basic weights --weights int4 --block $block
    mode all weights --weights int4 --block $block --format qoperator
    mode all dynamic --weights int4 --block $block
done
samples=128
chosen() { # LEVEL OPTIONS...: biases that --method auto corrects or leaves
    level=$1
    [ "$level" = basic ] || level=''
    shift
    echo "== $* --method auto"
    write chosen quantize "$@" --method auto
    differs plain
    agree "$file" $level input=64,1,28,28
}
for block in 0 32; do
    for weights in '--weights int4' '--weights uint4 --weight-scheme channel-asymmetric'; do
        chosen basic --mode weights --block $block $weights
        chosen all --mode weights --block $block $weights --format qoperator
        chosen all --mode dynamic --block $block $weights
    done
done

node "$root/test/interop/models.js" "$peer" "$qsim" "$work" "$shared" chosen greedy anneal both refine asymmetric \
    searched4 searched16 \
    "$models/fashion_resnet8.onnx" "$models/mlptiny_kws_dscnn_fp32.onnx"
