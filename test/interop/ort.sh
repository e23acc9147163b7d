# SPDX-License-Identifier: MIT
# Sourced by the tests beside ONNX Runtime, after root, qsim and peer (the folder it is fetched into) are
# set. Sets shared, models and work, a folder that goes away. Skips by name, exit 77, what is not there.
shared=${QSIM_SHARED:-../shared}
models=$shared/models

missing() { # WHAT
    echo "skipped: $1"
    exit 77
}
if [ ! -d "$models" ]; then
    [ "${QSIM_REQUIRE_SHARED:-0}" != 1 ] || { echo "missing: $models"; exit 1; }
    missing "no $models"
fi
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || missing "no node and npm"
mkdir -p "$peer"
(
    flock 9 # the first test fetches it, and others wait
    [ ! -d "$peer/node_modules/onnxruntime-node" ] || exit 0
    # One try an hour: each takes a minute where there is no network.
    [ -z "$(find "$peer" -name npm.failed -mmin -60)" ] || exit 1
    cd "$peer" && npm install --ignore-scripts --no-audit --no-fund --silent onnxruntime-node@1.30.0 >npm.log 2>&1 || {
        touch "$peer/npm.failed"
        exit 1
    }
) 9>"$peer/npm.lock" || missing "npm cannot install onnxruntime-node"
work=$(mktemp -d)
mkfifo "$work/asked" "$work/answered"
node "$root/test/interop/answer.js" "$peer" <"$work/asked" >"$work/answered" &
exec 8>"$work/asked" 7<"$work/answered"
trap 'exec 8>&-; wait; rm -rf "$work"' EXIT # it ends with its questions

ask() { # VERB WORDS...: of answer.js; fails if something differs
    { printf '%s\t' "$@" && echo; } >&8
    while IFS= read -r said <&7; do
        case $said in
        'done 0') return 0 ;;
        'done 1') return 1 ;;
        *) echo "$said" ;;
        esac
    done
    return 1 # it has ended
}

# Fashion-MNIST from 54,000 on, which networks were not trained on, as $train. Skipping what is before them each time
# would take longer than quantizing.
train_data() {
    train=$work/images.idx3-ubyte,$work/labels.idx1-ubyte
    ask cut "$shared/data/fashion-mnist/train-images-idx3-ubyte.gz" 54000 6000 "${train%,*}"
    ask cut "$shared/data/fashion-mnist/train-labels-idx1-ubyte.gz" 54000 6000 "${train#*,}"
}

agree() { # FILE OPTIONS-AND-INPUTS...
    ask agree "$qsim" "$work" "$@"
}
