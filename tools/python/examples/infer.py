# SPDX-License-Identifier: MIT
"""Runs a classifier on the first five test images. Usage: infer.py MODEL DATA_FOLDER"""

import sys

import fashion
import qsim

images, labels = fashion.load(sys.argv[2], count=5)
session = qsim.Session(sys.argv[1], threads=1)
logits, = session.run(None, {session.input_names[0]: images})
print("classes", logits.argmax(axis=1), "labels", labels)
