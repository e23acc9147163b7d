# SPDX-License-Identifier: MIT
"""Signal-to-quantization-noise ratio (SQNR) of each layer of a quantized model, beside the float one.
Usage: layers_sqnr.py MODEL DATA_FOLDER"""

import sys

import fashion
import qsim

model = qsim.Model.load(sys.argv[1])
int8 = model.quantize(data=fashion.calibration_batches(sys.argv[2]))
there = {value.name for value in int8.values}
names = [name for node in model.nodes for name in node.outputs if name in there]
images, _ = fashion.load(sys.argv[2], count=256)
wanted = qsim.Session(model, outputs=names).run(images)
got = qsim.Session(int8, outputs=names).run(images)
for name, a, b in zip(names, wanted, got):
    print(f"{qsim.compare(a, b)['sqnr_db']:6.2f} dB  {name}")
