#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: python.sh PYTHON SOURCE_ROOT LIBRARY
set -eu
"$1" -c 'import numpy' 2>/dev/null || { echo "skipped: $1 has no numpy"; exit 77; }
QSIM_LIBRARY=$3 exec "$1" -B "$2/test/python/test_qsim.py" "$2/tools/python"
