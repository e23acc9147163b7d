# SPDX-License-Identifier: MIT
"""Where the time goes: the slowest steps, and a trace for Perfetto.
Usage: profile_trace.py MODEL DATA_FOLDER TRACE.json"""

import sys

import fashion
import qsim

images, _ = fashion.load(sys.argv[2], count=1)
profile = qsim.Session(sys.argv[1], threads=1).profile(images, runs=50)
for step in profile.top(3):
    print(f"{step['share']:5.1f} %  {step['us']:8.2f} us  {step['op_type']:14} {step['node']}")
profile.save_trace(sys.argv[3])
