# SPDX-License-Identifier: MIT
"""Fashion-MNIST's four files as arrays, for the other examples."""

import os

import numpy as np
import qsim


def find(folder, name):
    for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")):
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"{folder}: no {name}[.gz]")


def load(folder, part="t10k", first=0, count=None):
    """(images, labels): float32 [n, 1, 28, 28] between 0 and 1, and uint8 [n]; part is "train" or
    "t10k"."""
    end = None if count is None else first + count
    names = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
    images, labels = (qsim.read_array(find(folder, name))[first:end] for name in names)
    return images[:, None].astype(np.float32) / 255, labels


def calibration_batches(folder, samples=512, batch=64):
    """Batches of the images that no training has seen: the last 6,000 of the training set."""
    images, _ = load(folder, "train", 54000, samples)
    for i in range(0, samples, batch):
        yield images[i:i + batch]
