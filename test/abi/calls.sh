#!/bin/sh
# SPDX-License-Identifier: MIT
# The layer rule for calls, as layers.sh has it for includes: a name that an object of one layer needs
# and another layer of the library defines is defined in a layer that it may use.
# First the check has to find an upward call in two objects made for it.
# Usage: calls.sh COMPILER LAYER=ARCHIVE...    (a layer may have several archives; lowest layer first)
set -eu
compiler=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints each call that the rule forbids: LAYER OBJECT needs NAME of LAYER.
forbidden() { # LAYER=ARCHIVE...
    for pair; do
        nm -A -g "${pair#*=}" | sed "s@^@${pair%%=*} @"
    done | awk '
        BEGIN {
            count = split("base tensor quant kernel graph op onnx pass exec ptq package", names, " ")
            for (i = 1; i <= count; i++) rank[names[i]] = i
        }
        function may_use(from, to) {
            if (to == "onnx" && (from == "pass" || from == "exec")) return 0
            return rank[to] <= rank[from]
        }
        $(NF - 1) ~ /^[TDBRVWCi]$/ { home[$NF] = $1; next }
        $(NF - 1) ~ /^[Uwv]$/ { from[++needs] = $1; file[needs] = $2; name[needs] = $NF }
        END {
            for (i = 1; i <= needs; i++) {
                to = home[name[i]]
                if (to != "" && !may_use(from[i], to)) {
                    sub(/:[^:]*$/, "", file[i])
                    sub(/.*[\/:]/, "", file[i])
                    print from[i] " " file[i] " needs " name[i] " of " to
                }
            }
        }'
}

# $compiler may be several words.
make_object() { # NAME SOURCE
    echo "$2" >"$work/$1.c"
    # shellcheck disable=SC2086
    $compiler -c -o "$work/$1.o" "$work/$1.c"
}

make_object low 'int qs_high(void); int qs_low(void); int qs_low(void) { return qs_high(); }'
make_object high 'int qs_high(void); int qs_high(void) { return 0; }'
expect() { # LOW HIGH COUNT
    found=$(forbidden "$1=$work/low.o" "$2=$work/high.o" | wc -l)
    [ "$found" -eq "$3" ] || {
        echo "calls: $found forbidden calls found from $1 to $2, $3 expected"
        exit 1
    }
}
expect base kernel 1
expect pass onnx 1
expect onnx pass 1
expect exec onnx 1
expect pass exec 1
expect exec pass 0
expect ptq onnx 0
expect op op 0

forbidden "$@" | sort -u >"$work/found"
[ "$#" -ge 11 ] || { echo "calls: only $# archives"; exit 1; }
cat "$work/found"
echo "calls: $# archives"
[ ! -s "$work/found" ]
