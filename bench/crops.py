# SPDX-License-Identifier: MIT
"""Crops of the shared photos as one array, decoded by qsim itself: windows of random place, size and
side, as ImageNet's training uses them, from a fixed seed. For KL and agreement where no labels exist.

    python3 bench/crops.py QSIM OUT.npy [COUNT] [SIZE]       float, [COUNT, 3, SIZE, SIZE], x / 127.5 - 1
"""
import glob
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

import onenode
from benchlib import SHARED



def decode(qsim, path, work):
    """The pixels of a picture, [3, height, width] from 0 to 255."""
    model, out = os.path.join(work, "identity.onnx"), os.path.join(work, "pixels.npy")
    shape = (onenode.FLOAT, [1, 3, "h", "w"])
    with open(model, "wb") as f:
        f.write(onenode.model("Identity", "", ["x"], {}, [], shape, shape))
    subprocess.run([qsim, "run", "-q", "-f", model, "-i", path, "--preprocess", "scale=1", "-o", out], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(out)[0]


def crop(pixels, size, rng):
    """A window that covers 20 to 100 % of the picture, resized by two linear interpolations."""
    _, height, width = pixels.shape
    area, ratio = rng.uniform(0.2, 1.0) * height * width, rng.uniform(0.8, 1.25)
    h, w = min(height, int((area / ratio) ** 0.5)), min(width, int((area * ratio) ** 0.5))
    top, left = rng.randint(0, height - h), rng.randint(0, width - w)
    window = pixels[:, top:top + h, left:left + w]
    if rng.random() < 0.5:
        window = window[:, :, ::-1]
    for axis, have in ((1, h), (2, w)):
        at = np.clip((np.arange(size) + 0.5) * have / size - 0.5, 0, have - 1)
        low = np.floor(at).astype(int)
        part = (at - low).reshape((-1, 1) if axis == 1 else (1, -1))
        high = np.minimum(low + 1, have - 1)
        window = np.take(window, low, axis) * (1 - part) + np.take(window, high, axis) * part
    return window / 127.5 - 1


def main():
    qsim, out = sys.argv[1:3]
    count, size = int(sys.argv[3]) if len(sys.argv) > 3 else 512, int(sys.argv[4]) if len(sys.argv) > 4 else 224
    rng = random.Random(7)
    photos = sorted(p for p in glob.glob(os.path.join(SHARED, "data", "images", "*")) if p.endswith((".jpg", ".bmp")))
    if not photos:
        sys.exit(f"no photos in {SHARED}/data/images: set QSIM_SHARED")
    with tempfile.TemporaryDirectory() as work:
        pixels = [decode(qsim, p, work) for p in photos]
    np.save(out, np.stack([crop(pixels[i % len(pixels)], size, rng) for i in range(count)]).astype(np.float32))


if __name__ == "__main__":
    main()
