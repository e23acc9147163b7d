#!/bin/sh
# SPDX-License-Identifier: MIT
# Every example in a public header compiles: an indented block of a comment with a line that ends with
# ';'. Names that an example does not declare are those of examples.h. Usage: examples.sh SOURCE_ROOT CC
set -eu
root=$1 cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf "#include <examples.h>\n" >"$work/all.c"
for header in "$root"/include/qsim/*.h; do
    awk -v name="$(basename "$header" .h)" '
        function flush() {
            if (code) printf "void %s_%d(void);\nvoid %s_%d(void) {\n%s}\n", name, ++n, name, n, block
            block = ""; code = 0
        }
        /^ \*     / { line = substr($0, 8); block = block line "\n"; if (line ~ /;( *\/\/.*)?$/) code = 1; next }
        { flush() }' "$header" >>"$work/all.c"
done
count=$(grep -c '^}' "$work/all.c")
$cc -std=c11 -Wall -Wextra -Wno-unused -Wno-uninitialized -Werror -I "$root/include" -I "$root/test/abi" -fsyntax-only "$work/all.c"
echo "examples: $count"
[ "$count" -ge 5 ]
