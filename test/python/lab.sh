#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that the pages show: the course's lab on linear quantization prints what the pages say, in
# both languages; README's example runs. Usage: lab.sh PYTHON SOURCE_ROOT LIBRARY
set -u
"$1" -c 'import numpy' 2>/dev/null || { echo "skipped: $1 has no numpy"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
source=$(cd "$2" && pwd)
export QSIM_LIBRARY="$3" PYTHONPATH="$source/tools/python"

program() { # PAGE: its first block of Python
    sed -n '/^```python$/,/^```$/p' "$source/$1" | sed '/^```$/q' | grep -v '^```'
}

for page in COURSE COURSE.es; do
    program docs/$page.md >"$dir/lab.py"
    [ -s "$dir/lab.py" ] || { echo "$page.md has no program" && exit 1; }
    sed -n '/^```python$/,/^- /p' "$source/docs/$page.md" | sed '1,/^```$/d' | sed -n 's/^    //p' >"$dir/wanted"
    "$1" -B "$dir/lab.py" >"$dir/out" || exit 1
    diff "$dir/wanted" "$dir/out" || { echo "$page.md says something else" && exit 1; }
    [ "$page" = COURSE ] && cp "$dir/lab.py" "$dir/english"
    cmp "$dir/english" "$dir/lab.py" || exit 1
done

cat >"$dir/readme.py" <<'EOF'
import numpy as np, qsim

random = np.random.default_rng(1)
b = qsim.Builder("net")
b.input("x", "float[N,1,28,28]")
b.constant("w1", random.standard_normal((784, 16), np.float32))
b.constant("w2", random.standard_normal((16, 10), np.float32))
b.node("Flatten", "x", "flat")
b.node("MatMul", "flat,w1", "h", name="fc1")
b.node("Relu", "h", "r")
b.node("MatMul", "r,w2", "y", name="fc2")
b.output("y")
b.finish().save("lenetlite_fp32.onnx")
batches = [random.random((8, 1, 28, 28), np.float32) for _ in range(4)]
EOF
program README.md >"$dir/block"
[ -s "$dir/block" ] || { echo "README.md has no program" && exit 1; }
cat "$dir/block" >>"$dir/readme.py"
cat >"$dir/page.py" <<'EOF'
import numpy as np, qsim

b = qsim.Builder().input("input", "float[N,1,28,28]").constant("w", np.ones((784, 10), np.float32))
b.node("Flatten", "input", "flat").node("MatMul", "flat,w", "logits").output("logits").finish().save("model.onnx")
EOF
program docs/PYTHON.md >>"$dir/page.py"
echo 'assert logits.shape == (1, 10)' >>"$dir/page.py"
(cd "$dir" && "$1" -B page.py) || { echo "docs/PYTHON.md's program failed" && exit 1; }
(cd "$dir" && "$1" -B readme.py) >"$dir/out" || { echo "README.md's program failed" && exit 1; }
[ -s "$dir/out" ] && [ -s "$dir/lenetlite_int8.onnx" ] || { echo "README.md's program wrote nothing" && exit 1; }
