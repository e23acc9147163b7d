# SPDX-License-Identifier: MIT
"""Classifies a photo as MobileNet wants it: the short side to 256, the middle 224 by 224, RGB from -1
to 1. Needs Pillow. Usage: photo.py MODEL PHOTO"""

import sys

import numpy as np
import qsim
from PIL import Image

photo = Image.open(sys.argv[2]).convert("RGB")
ratio = 256 / min(photo.size)
photo = photo.resize([round(side * ratio) for side in photo.size], Image.BILINEAR)
left, top = (photo.width - 224) // 2, (photo.height - 224) // 2
pixels = np.asarray(photo.crop((left, top, left + 224, top + 224)), np.float32) / 127.5 - 1
scores, = qsim.Session(sys.argv[1]).run(pixels.transpose(2, 0, 1)[None])
scores = scores[0]
if scores.min() < 0 or abs(scores.sum() - 1) > 0.05:  # logits, not yet probabilities
    scores = np.exp(scores - scores.max())
    scores /= scores.sum()
for index in scores.argsort()[:-4:-1]:
    print(f"class {index}: {100 * scores[index]:.2f} %")
