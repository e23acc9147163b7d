# SPDX-License-Identifier: MIT
"""What quantization costs, method by method: KL to the float model and agreement with it on samples that
were not calibrated on. No labels: Fashion-MNIST's test images, and crops of the shared photos (crops.py).
Exits with 1 where bias correction makes the KL of a network more than 10 % greater. A batch of a dynamic
model shares its scales; biases are `judged` where they are corrected only if that gains on the calibrated samples.
Refining rounds by GPTQ if the calibration has `moments`, and corrects biases in any case.

    QSIM_LIBRARY=... PYTHONPATH=tools/python python3 bench/accuracy.py CROPS.npy [MODEL or METHOD...]
"""
import gzip
import os
import sys

import numpy as np

import qsim
from benchlib import SHARED

CALIBRATE = 128  # samples; all others judge

NETS = [
    ("fashion_lenetlite", "fashion"), ("fashion_resnet8", "fashion"), ("fashion_mobilenetv2_tiny", "fashion"),
    ("mobilenet_v1_025_224_imagenet", "tf"), ("coral_mobilenet_v2_1.0_224_fp32deq", "tf"),
    ("shufflenet-v2-12_fp32_dequantized", "imagenet"), ("squeezenet1.1_fp32_from_fp16", "imagenet"),
]
METHODS = [
    ("minmax, no correction", dict(bias_correction=False)), ("minmax", {}),
    ("mse", dict(method="mse")), ("percentile 99.99", dict(method="percentile", percentile=99.99)),
    ("entropy", dict(method="entropy")),
    ("per tensor, no correction", dict(weight_scheme="tensor", bias_correction=False)),
    ("per tensor", dict(weight_scheme="tensor")),
    ("dynamic, no correction", dict(mode="dynamic", bias_correction=False, single=True)),
    ("dynamic", dict(mode="dynamic", single=True)),
    ("dynamic in batches, no correction", dict(mode="dynamic", bias_correction=False)),
    ("dynamic in batches", dict(mode="dynamic")),
    ("dynamic in batches, judged", dict(mode="dynamic", search="correction")),
    ("refined", dict(search="refine", moments=True)), ("biases refined", dict(search="refine")),
    ("per tensor, refined", dict(weight_scheme="tensor", search="refine", moments=True)),
    ("equalized", dict(search="equalize")), ("smoothed", dict(search="smooth")),
    ("falling back", dict(search="fallback")),
    ("per tensor, equalized", dict(weight_scheme="tensor", search="equalize")),
    ("per tensor, equalized, biases refined", dict(weight_scheme="tensor", search="equalize,refine")),
    ("weights, no correction", dict(mode="weights", bias_correction=False)), ("weights", dict(mode="weights")),
    ("zero points per channel", dict(weight_scheme="channel-asymmetric")),
    ("weights, zero points per channel", dict(mode="weights", weight_scheme="channel-asymmetric")),
    ("activations of 16 bits", dict(activation_type="uint16")),
]


def images(kind, crops):
    """Samples as the network wants them."""
    if kind == "fashion":
        path = os.path.join(SHARED, "data", "fashion-mnist", "t10k-images-idx3-ubyte.gz")
        with gzip.open(path) as f:
            raw = np.frombuffer(f.read(), np.uint8, offset=16)
        return (raw.reshape(-1, 1, 28, 28) / 255).astype(np.float32)
    if kind == "tf":
        return crops
    mean, std = (np.array(v, np.float32).reshape(1, 3, 1, 1) for v in ((.485, .456, .406), (.229, .224, .225)))
    return ((crops + 1) / 2 - mean) / std


def answers(model, batches, single=False):
    with qsim.Session(model) as session:
        if single:
            return [np.concatenate([session.run(x[i:i + 1])[0] for i in range(len(x))]) for x in batches]
        return [np.array(session.run(x)[0]) for x in batches]


def judge(name, kind, crops, chosen):
    model = qsim.Model.load(os.path.join(SHARED, "models", name + ".onnx"))
    x = images(kind, crops)
    size = 16 if isinstance(model.inputs[0].shape[0], str) else 1
    batches = [np.ascontiguousarray(x[i:i + size]) for i in range(0, len(x), size)]
    seen, unseen = batches[:CALIBRATE // size], batches[CALIBRATE // size:]
    calibrations = {moments: qsim.Calibration(model, quantize={"keep_moments": moments}).feed_all(seen)
                    for moments in {m[1].get("moments", False) for m in chosen}}
    wanted = answers(model, unseen)
    found = {}
    for label, options in chosen:
        sums, options = qsim.Divergence(), dict(options)
        calibration = calibrations[options.pop("moments", False)]
        methods, single = options.pop("search", None), options.pop("single", False)
        if methods:
            options["recipe"] = model.search(calibration, methods, inputs=seen, **options).recipe
        for a, b in zip(wanted, answers(model.quantize(calibration, **options), unseen, single)):
            sums.add(a, b)
        found[label] = (sums.loss, sums.agreement)
    return found


def main():
    crops = np.load(sys.argv[1])
    nets, methods = ([row for row in table if row[0] in sys.argv[2:]] or table for table in (NETS, METHODS))
    results = {name: judge(name, kind, crops, methods) for name, kind in nets}
    print("| KL (agreement, %) | " + " | ".join(results) + " |")
    print("|---" * (len(results) + 1) + "|")
    for label, _ in methods:
        cells = ("%.5f (%.1f)" % results[name][label] for name in results)
        print("| " + label + " | " + " | ".join(cells) + " |")
    worse = [f"{name}, {label}: {found[plain][0]:.6f} -> {found[label][0]:.6f}" for name, found in results.items()
             for label in ("minmax", "per tensor", "dynamic", "dynamic in batches, judged", "weights")
             for plain in [label.removesuffix(", judged") + ", no correction"]
             if {label, plain} <= found.keys() and found[label][0] > 1.1 * found[plain][0]]
    for line in worse:
        print("bias correction makes it worse: " + line)
    sys.exit(bool(worse))


if __name__ == "__main__":
    main()
