#!/bin/sh
# SPDX-License-Identifier: MIT
# What the library knows of an operator is in its row (lib/op/op.h). Elsewhere in lib and tools only
# files that make, read or rewrite this very operator may name it, and lib/op/names.txt and names.txt list them with the
# reason. A name that a file no longer spells has to leave the list. In lib/op, files called op_* hold rows; all others hold what
# rows share. Usage: names.sh SOURCE_ROOT
set -eu
LC_ALL=C
export LC_ALL
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/.*\.name = "\([A-Z][A-Za-z0-9]*\)".*/\1/p' lib/op/*/*.c | sort -u >"$work/operators"
[ "$(wc -l <"$work/operators")" -gt 80 ] || {
    echo "names: the rows' names were not found"
    exit 1
}

# One "FILE NAME" for each operator's name that a file outside lib/op spells as a string.
for file in $(find lib tools -name '*.[ch]' ! -path 'lib/op/*' | sort); do
    sed -e 's@/\*.*\*/@@' -e 's@^ *\*[ /].*@@' -e '/^ *# *include/d' "$file" |
        grep -o '"[A-Za-z]*"' | tr -d '"' | sort -u | comm -12 - "$work/operators" |
        sed "s@^@${file#lib/} @"
done >"$work/spelled"

# What follows " of " is a condition of builds with -Doperators, and so are lines of lib/op.
sed -e 's/#.*//' -e 's/ of .*//' -e '/^op\//d' lib/op/names.txt test/abi/names.txt | while read -r file names; do
    for name in $names; do echo "$file $name"; done
done | sort >"$work/allowed"

sort "$work/spelled" >"$work/found"
comm -23 "$work/found" "$work/allowed" | sed 's/^/names: make it a trait of the row: /' >"$work/bad"
comm -13 "$work/found" "$work/allowed" | sed 's/^/names: not spelled any more: /' >>"$work/bad"
sed -e 's/#.*//' -n -e 's/.* of //p' lib/op/names.txt | tr -s ' +' '\n' | sed '/^nothing$/d' | sort -u |
    comm -23 - "$work/operators" | sed 's/^/names: lib\/op\/names.txt: no operator: /' >>"$work/bad"
sed -e 's/#.*//' -n -e 's/^\(op\/.*\) of .*/\1/p' lib/op/names.txt | while read -r file names; do
    for name in $names; do
        grep -q "\"$name\"" "lib/$file" || echo "names: lib/op/names.txt: not spelled: $file $name"
    done
done >>"$work/bad"
for file in $(find lib/op -name '*.c' | sort); do
    case $(basename "$file"),$(grep -c 'QS_OP(' "$file" || true) in
    op_*,0) echo "names: $file: no row: op_ is for files with rows" ;;
    op_*,*) ;;
    *,0) ;;
    *) echo "names: $file: rows stand in files called op_*" ;;
    esac
done >>"$work/bad"
cat "$work/bad"
echo "names: $(wc -l <"$work/found") in $(cut -d' ' -f1 "$work/found" | uniq | wc -l) files"
[ ! -s "$work/bad" ]
