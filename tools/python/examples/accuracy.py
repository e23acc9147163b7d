# SPDX-License-Identifier: MIT
"""Accuracy of models on the 10,000 test images, and whether they differ from the first one by more
than chance. Usage: accuracy.py DATA_FOLDER MODEL..."""

import sys

import fashion
import qsim

images, labels = fashion.load(sys.argv[1])
first = None
for path in sys.argv[2:]:
    with qsim.Session(path) as session:
        right = session.run(images)[0].argmax(axis=1) == labels
    first = right if first is None else first
    p = qsim.mcnemar((first & ~right).sum(), (right & ~first).sum())
    print(f"{100 * right.mean():.2f} %  p = {p:.3f}  {path}")
