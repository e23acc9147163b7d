#!/bin/sh
# SPDX-License-Identifier: MIT
# House rules that a machine can check: clang-format 14 leaves every file as it is; each source, script
# and build file has its licence line, each source at most 600 lines, that of a tool 300, each function
# 60; each macro of the library at most 12, unless docs/KERNELS.md names it; the library's version stands
# in one place.
# Usage: style.sh SOURCE_ROOT
set -eu
cd "$1"
bad=0
files=$(find include lib tools test bench -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
for file in $files; do
    head -n 1 "$file" | grep -q 'SPDX-License-Identifier: MIT' || { echo "style: $file: no SPDX line"; bad=1; }
    lines=$(wc -l <"$file")
    [ "$lines" -le 600 ] || { echo "style: $file: $lines lines"; bad=1; }
done
for file in $(find tools -name '*.c'); do
    lines=$(wc -l <"$file")
    [ "$lines" -le 300 ] || { echo "style: $file: $lines lines, a tool's file has 300"; bad=1; }
done
for file in $(find lib tools test bench include \( -name meson.build -o -name '*.sh' -o -name '*.py' -o -name '*.js' \) | LC_ALL=C sort) meson.build meson_options.txt; do
    head -n 2 "$file" | grep -q 'SPDX-License-Identifier: MIT' || { echo "style: $file: no SPDX line"; bad=1; }
done
# shellcheck disable=SC2086
awk 'FNR == 1 { start = 0 }
     /^[A-Za-z_]/ && !/^[a-z_]+:/ { start = FNR; name = $0 }
     /^}$/ && FNR - start >= 60 { print "style: " FILENAME ": " FNR - start + 1 " lines: " name; bad = 1 }
     END { exit bad }' $files || bad=1
# shellcheck disable=SC2046
for macro in $(awk 'FNR == 1 { inside = 0 }
                    !inside && /^ *# *define .*\\$/ { inside = 1; start = FNR; sub(/^ *# *define */, ""); sub(/[^A-Za-z0-9_].*/, ""); name = $0; next }
                    inside && !/\\$/ { if (FNR - start >= 12) print name; inside = 0 }' $(find lib -name '*.[ch]') | sort -u); do
    grep -q "\`$macro\`" docs/KERNELS.md || { echo "style: macro $macro has more than 12 lines and no reason in docs/KERNELS.md"; bad=1; }
done
header=$(awk '/define QSIM_VERSION_(MAJOR|MINOR|PATCH)/ { v = v s $3; s = "." } END { print v }' include/qsim/base.h)
grep -q "__version__ = \"$header\"" tools/python/qsim/__init__.py && grep -q "^  version: '$header'" tools/python/meson.build ||
    { echo "style: tools/python has not version $header"; bad=1; }
grep -q "^  version: '$header'" meson.build || { echo "style: meson.build has not version $header"; bad=1; }
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    # shellcheck disable=SC2086
    printf '%s\n' $files | xargs -P "$(nproc 2>/dev/null || echo 1)" -n 40 clang-format --dry-run -Werror || bad=1
else
    echo "style: no clang-format 14, formatting not checked"
    [ "$bad" = 1 ] || exit 77
fi
exit $bad
