#!/bin/sh
# SPDX-License-Identifier: MIT
# The course's lab on linear quantization: its program prints what the pages say, in both languages.
# Usage: lab.sh PYTHON SOURCE_ROOT LIBRARY
set -u
"$1" -c 'import numpy' 2>/dev/null || { echo "skipped: $1 has no numpy"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for page in COURSE COURSE.es; do
    file=$2/docs/$page.md
    sed -n '/^```python$/,/^```$/p' "$file" | grep -v '^```' >"$dir/lab.py"
    [ -s "$dir/lab.py" ] || { echo "$page.md has no program" && exit 1; }
    sed -n '/^```python$/,/^- /p' "$file" | sed '1,/^```$/d' | sed -n 's/^    //p' >"$dir/wanted"
    QSIM_LIBRARY=$3 PYTHONPATH=$2/tools/python "$1" -B "$dir/lab.py" >"$dir/out" || exit 1
    diff "$dir/wanted" "$dir/out" || { echo "$page.md says something else" && exit 1; }
    [ "$page" = COURSE ] && cp "$dir/lab.py" "$dir/english"
    cmp "$dir/english" "$dir/lab.py" || exit 1
done
