# SPDX-License-Identifier: MIT
"""Quantizes a model without data: scales of activations are found while it runs.
Usage: quantize_dynamic.py MODEL OUTPUT"""

import sys

import qsim

qsim.quantize(sys.argv[1], mode="dynamic").save(sys.argv[2])
