# SPDX-License-Identifier: MIT
"""Quantizes a classifier with a folder of photos, each as it wants them (here as MobileNet does: the
short side to 256, the middle 224 by 224, RGB from -1 to 1), and judges the result by every fourth one.
Needs Pillow. Usage: photos.py MODEL FOLDER OUTPUT"""

import sys
from pathlib import Path

import numpy as np
import qsim
from PIL import Image


def batch(path):
    photo = Image.open(path).convert("RGB")
    ratio = 256 / min(photo.size)
    photo = photo.resize([round(side * ratio) for side in photo.size], Image.BILINEAR)
    left, top = (photo.width - 224) // 2, (photo.height - 224) // 2
    pixels = np.asarray(photo.crop((left, top, left + 224, top + 224)), np.float32) / 127.5 - 1
    return pixels.transpose(2, 0, 1)[None]  # channels first, a batch of one


files = sorted(p for p in Path(sys.argv[2]).iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
held = files[3::4]  # not calibrated on, to judge by
model = qsim.Model.load(sys.argv[1])
int8 = model.quantize(data=(batch(p) for p in files if p not in held))
int8.save(sys.argv[3])
print(f"{len(files) - len(held)} photos calibrated on, {len(held)} judged by")
print(qsim.judge(model, int8, (batch(p) for p in held)))
