# SPDX-License-Identifier: MIT
"""What each operator costs in 8 bits, the most expensive first. "gains": by how much the loss, the KL
divergence from the float model's outputs, falls if this operator stays in float; "alone": the loss with
this operator alone in integers.
Usage: sensitivity.py MODEL DATA_FOLDER"""

import sys

import fashion
import qsim

model = qsim.Model.load(sys.argv[1])
calibration = qsim.Calibration(model).feed_all(fashion.calibration_batches(sys.argv[2]))
images, _ = fashion.load(sys.argv[2], "train", 54512, 256)
units = qsim.sensitivity(model, calibration, [images])
print(f"all in integers: loss {units.plain.loss:.3g}, agreement {units.plain.agreement:.2f} %")
for unit in units:
    print(f"gains {unit.loss_gained:9.2g}  alone {unit.loss_alone:9.2g}  {unit.op_type:8} {unit.name}")
