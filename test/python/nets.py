# SPDX-License-Identifier: MIT
"""Small networks that the tests of the package share. `qsim` is on the path already."""

import numpy as np
import qsim

RNG = np.random.default_rng(11)


def two_inputs():
    """y = a - 2 b, z = a + b."""
    b = qsim.Builder("two").input("a", "float[N,3]").input("b", "float[N,3]")
    b.constant("two", np.float32(2)).node("Mul", "b,two", "b2").node("Sub", "a,b2", "y")
    return b.node("Add", "a,b", "z").output("y").output("z").finish()


def network():
    """A convolution and a linear layer, of weights that a test can compute with."""
    b = qsim.Builder("net").input("x", "float[N,1,8,8]")
    b.constant("w", RNG.normal(size=(4, 1, 3, 3)).astype(np.float32))
    b.constant("f", RNG.normal(size=(144, 5)).astype(np.float32))
    b.node("Conv", "x,w", "c", name="conv").node("Relu", "c", "r").node("Flatten", "r", "h")
    return b.node("MatMul", "h,f", "y", name="fc").output("y").finish()
