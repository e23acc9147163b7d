#!/bin/sh
# SPDX-License-Identifier: MIT
# Every public function answers to NULL for each of its objects and to 0, -1, the greatest and the least number for
# the others: no crash. The calls are made from the headers, so that a new function is among them.
# Usage: [PROGRAM=FILE] nulls.sh SOURCE_ROOT SHARED_LIBRARY CC...    PROGRAM: where the program that calls stays
set -eu
root=$1 library=$2
shift 2
work=$(mktemp -d)
program=${PROGRAM:-$work/calls}
trap 'rm -rf "$work"' EXIT
cat >"$work/calls.c" <<'END'
#include <qsim/qsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
/* Each function in a process of its own, so that one that crashes is named. */
#define ASK(name, ...)                                                                             \
    do {                                                                                           \
        int status = 1;                                                                            \
        fflush(stdout);                                                                            \
        const pid_t child = fork();                                                                \
        if (child == 0) {                                                                          \
            __VA_ARGS__;                                                                           \
            exit(0);                                                                               \
        }                                                                                          \
        if (waitpid(child, &status, 0) != child || status) {                                       \
            printf("nulls: %s: status %d\n", name, status);                                        \
            bad = 1;                                                                               \
        }                                                                                          \
        asked++;                                                                                   \
    } while (0)
int main(void) {
    int bad = 0, asked = 0;
END
cat "$root"/include/qsim/*.h | tr '\n' ' ' | sed 's,/\*,\n&,g; s,\*/,&\n,g' | sed '/^\/\*/d' | tr '\n' ' ' |
    sed 's/QSIM_API/\n&/g' | sed -n 's/^QSIM_API \([^;]*\);.*/\1/p' | awk '
    function value(type, k) {
        if (type ~ /[*[]|_fn /) return "NULL"
        if (type ~ /^(float|double) /) return substr("0      1      -1     0.0/0.0", 7 * k - 6, 7)
        if (type ~ /^u?int64_t /) return substr("0        -1       INT64_MAXINT64_MIN", 9 * k - 8, 9)
        if (type ~ /^size_t /) return substr("0       SIZE_MAX1       4       ", 8 * k - 7, 8)
        return substr("0        -1       INT32_MAXINT32_MIN", 9 * k - 8, 9)
    }
    {
        match($0, /qsim_[a-z0-9_]*\(/)
        name = substr($0, RSTART, RLENGTH - 1)
        list = substr($0, RSTART + RLENGTH)
        sub(/\) *$/, "", list)
        count = split(list, types, /, */)
        if (list == "void") next
        calls = ""
        for (k = 1; k <= 4; k++) {
            calls = calls "(void)" name "("
            for (i = 1; i <= count; i++)
                calls = calls (i > 1 ? ", " : "") value(types[i], k)
            calls = calls "); "
        }
        printf "    ASK(\"%s\", %s);\n", name, calls
    }' >>"$work/calls.c"
cat >>"$work/calls.c" <<'END'
    printf("nulls: %d functions\n", asked);
    return bad;
}
END
"$@" -std=c11 -w -I "$root/include" "$work/calls.c" -o "$program" "$library" -Wl,-rpath,"$(dirname "$library")"
"$program"
[ "$(grep -c 'ASK("' "$work/calls.c")" -ge "$(($(wc -l <"$root/test/abi/exported.txt") - 8))" ]
