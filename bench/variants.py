# SPDX-License-Identifier: MIT
"""A float network and what our quantizer makes of it, cached in OUT/nets: FP32, u8, s8, dynamic."""
import json
import os
import subprocess

from benchlib import SHARED

GENERATED = ["resnet50", "mobilenetv2", "squeezenet", "bert"]
SIDE = 320
# With split curves ONNX Runtime runs YOLOX-nano's file 1.3 times as fast, and libqsim as fast as without.
OPTIONS = {
    "u8": ["--split-curves"],
    "s8": ["--activations", "int8", "--symmetric", "--split-curves"],
    "dynamic": ["--mode", "dynamic"],
}


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def is_quantized(path):
    """Told from the name: the published integer files of the shared data."""
    name = stem(path)
    return any(word in name for word in ("int8", "qdq")) and "dequantized" not in name


def sources(out):
    """Generated networks first, then those of the shared data."""
    found = [f"{out}/nets/{name}.onnx" for name in GENERATED]
    folder = os.path.join(SHARED, "models")
    if os.path.isdir(folder):
        found += sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".onnx"))
    return [f for f in found if os.path.exists(f)]


def shapes(qsim, source):
    """Free axes as bench/worker.c has them: one sample, 320 of the rest."""
    done = subprocess.run([qsim, "info", source, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    options = []
    for value in json.loads(done.stdout or b"{}").get("inputs", []):
        dims = value["shape"] or []
        batch = {0, 1} if len(dims) == 3 else {0}
        if any(not isinstance(d, int) for d in dims):
            sizes = [d if isinstance(d, int) else 1 if i in batch else SIDE for i, d in enumerate(dims)]
            options += ["--shape", f"{value['name']}={'x'.join(map(str, sizes))}"]
    return options


def quantize(out, source, variant):
    """The file of the variant, or (None, why not). Calibrated on 8 random samples."""
    target = f"{out}/nets/{stem(source)}_{variant}.onnx"
    if os.path.exists(target):
        return target, None
    qsim = f"{out}/gcc/tools/qsim/qsim"
    command = [qsim, "quantize", source, "-q", "-o", target] + OPTIONS[variant]
    if variant != "dynamic":
        command += ["--data", "random:1", "--limit", "8", "--batch", "1"] + shapes(qsim, source)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0 and os.path.exists(target):
        return target, None
    lines = [l for l in done.stderr.splitlines() if l.strip()]
    return None, lines[-1] if lines else f"ended with {done.returncode}"


def variants(out, source, wanted):
    """{variant: (file, refusal)} of a network, in the order wanted; an integer file is 'as is'."""
    if is_quantized(source):
        return {"as is": (source, None)}
    return {v: (source, None) if v == "fp32" else quantize(out, source, v) for v in wanted}
