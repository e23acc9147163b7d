#!/bin/sh
# SPDX-License-Identifier: MIT
# House rules that a machine can check: clang-format 14 leaves every file as it is; each source, script
# and build file has its licence line, each source at most 600 lines, that of a tool 300, each function
# 60; each macro of the library at most 12, unless docs/KERNELS.md names it; each function of library and
# tools at most 7 parameters, but those listed below; no memcpy copies the sizes of a rank, which may be
# none; the library's version stands in one place; no file of the library includes a public header before
# base/base.h, without which a DLL exports nothing; the top level holds what docs/ARCHITECTURE.md lists.
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
# A test program that runs in the source tree leaves its files there, and `git add -A` takes them along.
for name in $(git ls-files 2>/dev/null | sed 's,/.*,,' | LC_ALL=C sort -u); do
    case $name in
    .*|LICENSE|README.md|README.es.md|meson.build|meson_options.txt) ;;
    bench|docs|include|lib|subprojects|test|tools) ;;
    *) echo "style: $name: no file or folder of the top level"; bad=1 ;;
    esac
done
# The first include with quotes is base/base.h, or a header that begins with it.
for file in $(find lib \( -name '*.c' -o -name '*.h' \) ! -path lib/base/base.h | LC_ALL=C sort); do
    awk '/^#include "/ { exit } /^#include <qsim\// { exit 1 }' "$file" || { echo "style: $file: a public header before base/base.h"; bad=1; }
done
# shellcheck disable=SC2086
awk 'FNR == 1 { start = 0 }
     /^[A-Za-z_]/ && !/^[a-z_]+:/ { start = FNR; name = $0 }
     /^}$/ && FNR - start >= 60 { print "style: " FILENAME ": " FNR - start + 1 " lines: " name; bad = 1 }
     END { exit bad }' $files || bad=1
# Functions with more parameters: those of the interface (qsim_*), which stay as they are; kernels, whose
# vectors, addresses, strides and constants are to be in registers or folded into the code:
kernels='binaries each_row finish_24 five_half pack_run pairs pairs_tile pairs_tile_3'
kernels="$kernels qk_u8_pair_loop qs_read_columns quad_row three_row write_pixels"
# and those that make a node, whose parameters are its fields, most of them constants at each call:
makers='qs_graph_add_node qs_pass_node'
# shellcheck disable=SC2046
awk -v listed=" $kernels $makers " '
     function check(   depth, i, c, n, name) {
         sub(/ *\{$/, "", head)
         n = 1
         for (i = length(head); i > 0; i--) { # from the last parenthesis back: attributes have some, too
             c = substr(head, i, 1)
             if (c == ")") depth++
             else if (c == "(" && --depth == 0) break
             else if (c == "," && depth == 1) n++
         }
         name = substr(head, 1, i - 1)
         sub(/.*[ *]/, "", name)
         if (n > 7 && name !~ /^qsim_/) {
             found[name] = 1
             if (!index(listed, " " name " ")) { print "style: " FILENAME ": " name " has " n " parameters"; bad = 1 }
         }
     }
     FNR == 1 { inside = 0 }
     /^[A-Za-z_].*\(/ && !/^[a-z_]+:/ { inside = 1; head = "" }
     inside { head = head $0 }
     inside && /(;|\\|=.*)$/ { inside = 0 }
     inside && /\{$/ { if (/\) \{$/) check(); inside = 0 }
     END { for (i = split(listed, names, " "); i > 0; i--)
               if (!(names[i] in found)) { print "style: " names[i] " is listed, and has no more than 7 parameters"; bad = 1 }
           exit bad }' $(find lib tools -name '*.[ch]' | LC_ALL=C sort) || bad=1
if grep -rnE 'memcpy\([^;]*dims, [^;]*rank' lib; then
    echo "style: dims may be NULL where there are none: qs_value_dims, qs_tensor_dims"
    bad=1
fi
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
