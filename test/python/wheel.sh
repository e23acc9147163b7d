#!/bin/sh
# SPDX-License-Identifier: MIT
# `pip wheel tools/python` makes a wheel with the library inside; installed in a folder of its own, away
# from every other library, it passes the package's tests. Usage: wheel.sh PYTHON SOURCE_ROOT LIBRARY ONE_FILE CC...
set -eu
"$1" -c 'import numpy, pip, mesonpy' 2>/dev/null || { echo "skipped: $1 has no numpy, pip or meson-python"; exit 77; }
python=$1 root=$2
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
# meson-python writes into the folder that it builds. What is packed is tested, not how fast it is: C kernels alone, at
# -O0, compile in a third of the time. What pyproject.toml says of -O3 stands above --config-settings.
(cd "$root" && cp -R LICENSE meson.build meson_options.txt include lib tools "$work/source" &&
    mkdir "$work/source/subprojects" && cp -R subprojects/*.wrap subprojects/packagefiles "$work/source/subprojects")
sed -i 's/-Doptimization=3/-Doptimization=0/' "$work/source/tools/python/pyproject.toml"
CC="$*" "$python" -m pip --disable-pip-version-check wheel --no-index --no-deps --no-build-isolation --no-cache-dir \
    --config-settings=setup-args=-Dlibqsim:isa= \
    -w "$work" "$work/source/tools/python" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
"$python" -m pip --disable-pip-version-check install --no-index --no-deps --target "$work/site" "$work"/qsim-*.whl >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
[ -f "$work/site/qsim/py.typed" ] && [ ! -e "$work/site/.qsim.mesonpy.libs" ]
env -u QSIM_LIBRARY -u LD_LIBRARY_PATH "$python" -B "$root/test/python/test_qsim.py" "$work/site"
cd / && env -u QSIM_LIBRARY PYTHONPATH="$work/site" "$python" -c '
import qsim, qsim._library
assert qsim._library._lib._name.startswith(qsim.__path__[0]), qsim._library._lib._name
print("wheel:", qsim.version(), "loads the library inside of it")'
