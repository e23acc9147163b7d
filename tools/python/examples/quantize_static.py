# SPDX-License-Identifier: MIT
"""Quantizes a model with a calibration data reader as ONNX Runtime's users have one: an object whose
get_next() gives a dict of inputs, then None. Usage: quantize_static.py MODEL DATA_FOLDER OUTPUT"""

import sys

import fashion
import qsim


class Reader:
    def __init__(self, folder, name):
        self.batches = fashion.calibration_batches(folder)
        self.name = name

    def get_next(self):
        batch = next(self.batches, None)
        return None if batch is None else {self.name: batch}


model = qsim.Model.load(sys.argv[1])
reader = Reader(sys.argv[2], model.inputs[0].name)
int8 = model.quantize(data=iter(reader.get_next, None))  # any iterable of batches will do
int8.save(sys.argv[3])
print(f"{model.bytes} bytes became {int8.bytes}")
