# SPDX-License-Identifier: MIT
"""What each layer costs: quantizes one layer at a time, most expensive first.
Usage: sensitivity.py MODEL DATA_FOLDER"""

import sys

import fashion
import qsim

model = qsim.Model.load(sys.argv[1])
# All tensors: alone, a layer needs the range in front of its ReLU, which is else absorbed.
calibration = qsim.Calibration(model, tensors="*")
calibration.feed_all(fashion.calibration_batches(sys.argv[2]))
images, _ = fashion.load(sys.argv[2], "train", 54512, 256)
wanted, = model.run(images)
cost = {}
for layer in model.layers(calibration):
    one = model.quantize(calibration, rules=[("*", "fp32"), (layer.name, "int8")])
    cost[layer.name] = qsim.compare(wanted, one.run(images)[0])["sqnr_db"]
for name in sorted(cost, key=cost.get):
    print(f"{cost[name]:6.2f} dB  {name}")
