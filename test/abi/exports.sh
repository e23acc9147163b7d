#!/bin/sh
# SPDX-License-Identifier: MIT
# What the shared library exports is exactly test/abi/exported.txt; every global name in the static
# library carries a prefix; nothing in it can be written to: there are no globals; and it needs neither
# what prints nor what ends a program, but for assertions in debug builds.
# Usage: exports.sh SOURCE_ROOT SHARED_LIBRARY STATIC_LIBRARY release|debug
set -eu
list="$1/test/abi/exported.txt"
now=$(mktemp)
trap 'rm -f "$now"' EXIT
nm -D --defined-only "$2" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$now"
bad=0
if ! diff -u "$list" "$now"; then
    echo "exports: the exported names differ from test/abi/exported.txt (- missing, + new)"
    echo "exports: a new public function belongs into that list, in the order of sort, with the change"
    echo "exports: that adds it; nothing that was released may leave it"
    bad=1
fi
foreign=$(nm -g --defined-only "$3" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^(qsim_|qs_|qk_|__asan_|__odr_asan)/ { print $3 }' | sort -u)
if [ -n "$foreign" ]; then
    echo "exports: names without the prefix qsim_, qs_ or qk_:"
    echo "$foreign"
    bad=1
fi
state=$(objdump -h "$3" 2>/dev/null |
    awk '/file format/ { file = $1 } $2 ~ /^\.t?(data|bss)/ && $2 !~ /rel\.ro/ && $3 !~ /^0*$/ { print file, $2 }')
if [ -n "$state" ]; then
    echo "exports: data that can be written to:"
    echo "$state"
    bad=1
fi
calls=$(nm -D --undefined-only "$2" | awk '{ sub(/@.*/, "", $2); print $2 }' |
    { [ "$4" = release ] && cat || grep -v '^__assert_fail$'; } |
    grep -xE '_*(v?f?printf(_chk)?|puts|fputs|fputc|putc|putchar|fwrite|perror|stdout|stderr|abort|_?exit|assert_fail|raise|kill|signal|sigaction|getenv|system)' || true)
if [ -n "$calls" ]; then
    echo "exports: a library neither prints nor ends the program, nor reads the environment:"
    echo "$calls"
    bad=1
fi
if command -v readelf >/dev/null 2>&1 && ! readelf -d "$2" | grep -q 'SONAME.*\[libqsim\.so\.0\]'; then
    echo "exports: the soname is not libqsim.so.0"
    bad=1
fi
echo "exports: $(wc -l <"$now") names"
exit $bad
