#!/bin/sh
# SPDX-License-Identifier: MIT
# The binary interface that the headers describe against the one that is stored: additions pass, what is
# removed or changed fails. Compiles a library of empty functions from the headers, so that it needs
# neither debug information nor the real one. Usage: abidiff.sh SOURCE_ROOT CC [--write]
# --write stores the present interface: sh test/abi/abidiff.sh . cc --write
set -eu
root=$1 cc=$2 stored=$1/test/abi/libqsim.abi.gz
command -v abidw >/dev/null 2>&1 || { echo "abidiff: no abigail-tools: skipped"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#include <qsim/qsim.h>\n' | $cc -std=c11 -E -P -I "$root/include" - | tr '\n' ' ' |
    sed 's/__attribute__((visibility("default")))/\n@/g' | grep '^@' |
    sed 's/^@ *\([^;]*\);.*/\1 { __builtin_trap(); }/' >"$work/functions"
{ echo '#include <qsim/qsim.h>'; cat "$work/functions"; } >"$work/stub.c"
$cc -std=c11 -g -w -shared -fPIC -Wl,-soname,libqsim.so.0 -I "$root/include" \
    -o "$work/libqsim.so.0" "$work/stub.c"
abidw --no-corpus-path --no-comp-dir-path --no-show-locs "$work/libqsim.so.0" >"$work/now.abi"
if [ "${3:-}" = --write ]; then
    gzip -9nc "$work/now.abi" >"$stored"
    exit 0
fi
gzip -dc "$stored" >"$work/then.abi"
# Structs with struct_size grow at their end; test_structs.c keeps every field's place.
cat >"$work/growing" <<'END'
[suppress_type]
type_kind = struct
name_regexp = ^qsim_.*(options|info|entry|event|metrics|machine|array|rule)$
has_data_member_inserted_at = end
has_size_change = yes
END
if ! abidiff --no-added-syms --suppressions "$work/growing" "$work/then.abi" "$work/now.abi"; then
    echo "abidiff: the interface has changed other than by additions; before a release that is stored by"
    echo "abidiff: sh test/abi/abidiff.sh . cc --write"
    exit 1
fi
echo "abidiff: $(wc -l <"$work/functions") functions"
