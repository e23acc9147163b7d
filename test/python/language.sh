#!/bin/sh
# SPDX-License-Identifier: MIT
# Language models of the shared data give their golden ids and logits. Usage: language.sh PYTHON SOURCE_ROOT LIBRARY ONE_FILE
set -eu
"$1" -c 'import numpy' 2>/dev/null || { echo "skipped: $1 has no numpy"; exit 77; }
models=${QSIM_SHARED:-../shared}/llm
if [ ! -d "$models" ]; then
    echo "missing: $models"
    [ "${QSIM_REQUIRE_SHARED:-0}" != 1 ] || exit 1
    exit 77
fi
QSIM_LIBRARY=$3 "$1" -B "$2/test/python/test_language.py" "$2/tools/python" "$models"
