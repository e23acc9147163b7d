# SPDX-License-Identifier: MIT
"""Why the library refuses models of ONNX, for the tests of types. QSIM_LIBRARY names it, the first argument the sources."""

import os
import sys

sys.path.insert(0, os.path.join(sys.argv[1], "tools", "python"))
import qsim


def refusal(data):
    """The first problem of the bytes of a model, or why they are not loaded; None if they are."""
    try:
        for problem in qsim.check(data):
            return problem.message
        qsim.Model.loads(data)
    except qsim.Error as e:
        return str(e)
    return None
