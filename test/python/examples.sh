#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples run on the project's test data and find what is known of it from elsewhere: labels, the
# accuracy that was measured at training, a photo's class, McNemar's and SQNR's formulas in numpy.
# Usage: examples.sh PYTHON SOURCE_ROOT LIBRARY
set -eu
python=$1 root=$2 shared=${QSIM_SHARED:-$2/../shared}
"$python" -c 'import numpy' 2>/dev/null || { echo "skipped: $python has no numpy"; exit 77; }
data=$shared/data/fashion-mnist model=$shared/models/fashion_lenetlite.onnx
if [ ! -e "$model" ]; then
    echo "skipped: no $model"
    [ "${QSIM_REQUIRE_SHARED:-0}" = 1 ] && exit 1
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export QSIM_LIBRARY="$3" PYTHONPATH="$root/tools/python"
example() { # NAME ARGUMENT...
    name=$1
    shift
    "$python" -B "$root/tools/python/examples/$name.py" "$@" >"$work/$name" || { echo "examples: $name failed"; exit 1; }
}
holds() { # NAME REGULAR_EXPRESSION
    grep -qE "$2" "$work/$1" || { echo "examples: $1 printed, without /$2/:"; cat "$work/$1"; exit 1; }
}

example infer "$model" "$data"
holds infer '^classes \[9 2 1 1 6\] labels \[9 2 1 1 6\]$'
example quantize_dynamic "$model" "$work/dynamic.onnx"
example quantize_static "$model" "$data" "$work/static.onnx"
holds quantize_static '^83446 bytes became [0-9]{5}$'
example accuracy "$data" "$model" "$work/dynamic.onnx" "$work/static.onnx"
holds accuracy '^87\.33 %  p = 1\.000 '
awk '$1 < 86.8 || $1 > 87.9 { exit 1 }' "$work/accuracy" || { echo "examples: accuracy moved:"; cat "$work/accuracy"; exit 1; }
example profile_trace "$model" "$data" "$work/trace.json"
[ "$(wc -l <"$work/profile_trace")" = 3 ]
example layers_sqnr "$model" "$data"
[ "$(wc -l <"$work/layers_sqnr")" = 10 ] && holds layers_sqnr ' dB  logits$'
example sensitivity "$model" "$data"
[ "$(grep -c '^gains ' "$work/sensitivity")" -ge 4 ] && ! grep -E 'inf|nan' "$work/sensitivity"
example sweep "$model" "$data"
[ "$(grep -cE '^\| (minmax|percentile|mse|entropy) \|( 8[78]\.[0-9]+ % \|){3,}' "$work/sweep")" = 4 ]
example voice "$shared/models/silero_vad_op18_ifless.onnx" "$shared/data/audio/silero_test.wav"
holds voice '^speech in [0-9.]+ of 60\.0 s$'

"$python" -B - "$work" "$model" "$data" "$root/tools/python/examples" <<'EOF'
import json
import sys

import numpy as np

work, path, data, folder = sys.argv[1:]
sys.path.insert(0, folder)
import fashion
import qsim

# The dynamic and the static model are what they say; every step of each run is in the trace.
dynamic, static = (qsim.Model.load(f"{work}/{name}.onnx") for name in ("dynamic", "static"))
assert "DynamicQuantizeLinear" in [n.op_type for n in dynamic.nodes]
assert "QuantizeLinear" in [n.op_type for n in static.nodes]
with open(f"{work}/trace.json") as f:
    trace = json.load(f)
assert sum(e["name"] == "model_run" for e in trace) == 50 and len(trace) % 50 == 0
# The last layer's SQNR by its formula.
model = qsim.Model.load(path)
images, _ = fashion.load(data, count=256)
a, b = (m.run(images)[0].astype(np.float64) for m in (model, static))
wanted = 10 * np.log10((a**2).sum() / ((a - b)**2).sum())
with open(f"{work}/layers_sqnr") as f:
    said = float(f.read().splitlines()[-1].split()[0])
assert abs(said - wanted) < 0.006, (said, wanted)
# Silence is no speech: the example's network says so of a recording of zeros.
import subprocess
import wave
with wave.open(f"{work}/silence.wav", "wb") as f:
    f.setnchannels(1), f.setsampwidth(2), f.setframerate(16000), f.writeframes(bytes(32000))
said = subprocess.run([sys.executable, "-B", f"{folder}/voice.py",
                       path.replace("fashion_lenetlite", "silero_vad_op18_ifless"), f"{work}/silence.wav"],
                      capture_output=True, text=True, check=True).stdout
assert said.startswith("speech in 0.0 of"), said
EOF

if "$python" -c 'import PIL' 2>/dev/null; then
    example photo "$shared/models/mobilenet_v1_025_224_imagenet.onnx" "$shared/data/images/parrot.jpg"
    holds photo '^class 88: 9[0-9]\.[0-9]+ %$'
    # This one gives logits. Its own preprocessing is another, but a macaw stays one.
    example photo "$shared/models/shufflenet-v2-12_fp32_dequantized.onnx" "$shared/data/images/parrot.jpg"
    holds photo '^class 88: 9[0-9]\.[0-9]+ %$'
    example photos "$shared/models/mobilenet_v1_025_224_imagenet.onnx" "$shared/data/images" "$work/photos.onnx"
    holds photos '^7 photos calibrated on, 2 judged by$'
    holds photos '(good|doubtful|bad)'
    "$python" -B "$root/tools/python/examples/photo.py" "$work/photos.onnx" "$shared/data/images/parrot.jpg" | grep -q '^class 88: '
else
    echo "examples: no Pillow, photos are not tried"
fi
"$python" -B "$root/tools/python/examples/infer.py" "$model" "$work" 2>"$work/missing" && exit 1
holds missing '^FileNotFoundError: .*: no t10k-images-idx3-ubyte\[\.gz\]$'
echo "examples: all found what is known"
