#!/bin/sh
# SPDX-License-Identifier: MIT
# The tests of the package, and of the same as one file. Usage: python.sh PYTHON SOURCE_ROOT LIBRARY ONE_FILE
set -eu
"$1" -c 'import numpy' 2>/dev/null || { echo "skipped: $1 has no numpy"; exit 77; }
for form in "$2/tools/python" "$(dirname "$4")"; do
    for tests in test_qsim test_api test_quantizing; do
        QSIM_LIBRARY=$3 "$1" -B "$2/test/python/$tests.py" "$form"
    done
done
