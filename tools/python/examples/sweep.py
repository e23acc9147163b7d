# SPDX-License-Identifier: MIT
"""Accuracy for each range method and weight scheme, as a table in Markdown.
Usage: sweep.py MODEL DATA_FOLDER"""

import sys

import fashion
import qsim

model = qsim.Model.load(sys.argv[1])
calibration = qsim.Calibration(model).feed_all(fashion.calibration_batches(sys.argv[2]))
images, labels = fashion.load(sys.argv[2], "train", 54512, 2000)
schemes = ("channel", "tensor", "tensor-asymmetric", "channel-asymmetric")
print("| method |", " | ".join(schemes), "|\n" + "|---" * (1 + len(schemes)) + "|")
for method in qsim.QUANTIZE_OPTIONS["method"]:
    row = []
    for scheme in schemes:
        int8 = model.quantize(calibration, method=method, weight_scheme=scheme)
        row.append(f"{100 * (int8.run(images)[0].argmax(axis=1) == labels).mean():.2f} %")
    print(f"| {method} |", " | ".join(row), "|")
