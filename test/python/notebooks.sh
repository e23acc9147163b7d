#!/bin/sh
# SPDX-License-Identifier: MIT
# The notebooks run from their first cell to the last, and print what is stored in them; their checks
# against NumPy are assertions inside. After a change that is meant: sh test/python/notebooks.sh PYTHON
# SOURCE_ROOT LIBRARY --store writes what they print now. Usage: notebooks.sh PYTHON SOURCE_ROOT LIBRARY
set -eu
python=$1 root=$(cd "$2" && pwd) shared=${QSIM_SHARED:-$2/../shared}
"$python" -c 'import numpy, nbconvert, ipykernel' 2>/dev/null || { echo "skipped: $python has no numpy, nbconvert or ipykernel"; exit 77; }
[ -e "$shared/models/fashion_lenetlite.onnx" ] || {
    echo "skipped: no $shared/models/fashion_lenetlite.onnx"
    [ "${QSIM_REQUIRE_SHARED:-0}" = 1 ] && exit 1
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
QSIM_SHARED=$(cd "$shared" && pwd) HOME=$work IPYTHONDIR=$work JUPYTER_RUNTIME_DIR=$work PYDEVD_DISABLE_FILE_VALIDATION=1
export QSIM_SHARED HOME IPYTHONDIR JUPYTER_RUNTIME_DIR PYDEVD_DISABLE_FILE_VALIDATION
export QSIM_LIBRARY="$3" PYTHONPATH="$root/tools/python" PYTHONDONTWRITEBYTECODE=1
bad=0
for notebook in "$root"/tools/python/notebooks/*.ipynb; do
    "$python" -m nbconvert --to notebook --execute --ExecutePreprocessor.timeout=300 --output-dir "$work" "$notebook" >"$work/log" 2>&1 ||
        { tail -n 30 "$work/log"; bad=1; continue; }
    store=
    [ "${4:-}" != --store ] || store=--store
    # shellcheck disable=SC2086
    "$python" -B "$root/test/python/notebooks.py" $store "$notebook" "$work/$(basename "$notebook")" || bad=1
done
exit $bad
