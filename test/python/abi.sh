#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: abi.sh PYTHON SOURCE_ROOT LIBRARY ONE_FILE CC...
set -eu
"$1" -c 'import numpy' 2>/dev/null || { echo "skipped: $1 has no numpy"; exit 77; }
python=$1 root=$2
export QSIM_LIBRARY="$3"
shift 4
exec "$python" -B "$root/test/python/abi.py" "$root" "$root/tools/python" "$@"
