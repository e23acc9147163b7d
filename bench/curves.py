# SPDX-License-Identifier: MIT
"""What rounding curves once brings, and falling back to float: the loss to the float model of three
networks whose activation functions are several nodes, as x * sigmoid(x), with and without
split_curves, and after the searches "fallback" and "ranges,fallback". The data are windows of
the shared photos and of a shared page of text: in each of five draws 24 to calibrate and 24 others to
judge. Prints the mean of the draws' signal-to-noise ratios in dB, least and greatest in brackets.

    QSIM_LIBRARY=... PYTHONPATH=tools/python python3 bench/curves.py QSIM
"""
import os
import random
import sys
import tempfile

import numpy as np

import crops
import qsim
from benchlib import SHARED

COUNT, DRAWS = 48, 5
COLUMNS = [("minmax, split", {"split_curves": True}), ("minmax", {}),
           ("mse, split", {"method": "mse", "split_curves": True}), ("mse", {"method": "mse"}),
           ("fallback", {"search": "fallback"}), ("ranges, fallback", {"search": "ranges,fallback"})]


def windows(draw, pictures, height, width, zoom):
    """Windows of random place whose side is `zoom` of the largest that fits, from 0 to 255."""
    rng, found = random.Random(draw), []
    for i in range(COUNT):
        pixels = pictures[i % len(pictures)]
        side = rng.uniform(*zoom) * min(pixels.shape[1] / height, pixels.shape[2] / width)
        h, w = int(side * height), int(side * width)
        top, left = rng.randint(0, pixels.shape[1] - h), rng.randint(0, pixels.shape[2] - w)
        rows, columns = (np.arange(height) * h // height + top), (np.arange(width) * w // width + left)
        found.append(pixels[:, rows][:, :, columns])
    return np.stack(found).astype(np.float32)


def outputs(model, samples):
    with qsim.Session(model) as session:
        return [np.array(session.run(x[None])[0]) for x in samples]


def ratios(model, samples):
    """Signal to noise in dB, for each of COLUMNS."""
    calibration, found = qsim.Calibration(model), []
    for x in samples[:COUNT // 2]:
        calibration.feed(x[None])
    wanted = outputs(model, samples[COUNT // 2:])
    signal = sum(float((a.astype(np.float64) ** 2).sum()) for a in wanted)
    for _, given in COLUMNS:
        options, searched = dict(given), given.get("search")
        if searched:
            del options["search"]
            batches = [np.ascontiguousarray(x[None]) for x in samples[:COUNT // 2]]
            options["recipe"] = model.search(calibration, searched, inputs=batches).recipe
        quantized = outputs(model.quantize(calibration, **options), samples[COUNT // 2:])
        noise = sum(float(((a - b).astype(np.float64) ** 2).sum()) for a, b in zip(wanted, quantized))
        found.append(10 * np.log10(signal / noise))
    return found


def judge(name, draw):
    model = qsim.Model.load(os.path.join(SHARED, "models", name + ".onnx"))
    columns = zip(*(ratios(model, draw(i)) for i in range(DRAWS)))
    cells = ["%.1f (%.1f to %.1f)" % (np.mean(c), min(c), max(c)) for c in columns]
    print("| " + name + " | " + " | ".join(cells) + " |", flush=True)


def main():
    images, text = (os.path.join(SHARED, "data", f) for f in ("images", "ocr"))
    photos = sorted(p for p in os.listdir(images) if p.endswith((".jpg", ".bmp")))
    with tempfile.TemporaryDirectory() as work:
        pixels = [crops.decode(sys.argv[1], os.path.join(images, p), work) for p in photos]
        page = crops.decode(sys.argv[1], os.path.join(text, "en.jpg"), work)
        line = crops.decode(sys.argv[1], os.path.join(text, "en_rec.jpg"), work)
    print("| dB | " + " | ".join(title for title, _ in COLUMNS) + " |\n|---" + "|---" * len(COLUMNS) + "|")
    judge("yolox_nano", lambda i: windows(i, pixels, 416, 416, (0.5, 1)))
    judge("ppocrv3_det_ch", lambda i: windows(i, [page], 320, 320, (0.5, 1)) / 127.5 - 1)
    judge("ppocrv2_rec_en_number", lambda i: windows(i, [line, page], 32, 320, (0.3, 0.6)) / 127.5 - 1)


if __name__ == "__main__":
    main()
