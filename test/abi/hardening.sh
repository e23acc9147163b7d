#!/bin/sh
# SPDX-License-Identifier: MIT
# The library has all that hardens the program that embeds it: read-only relocations, all bound at the start,
# no stack that can be executed, no segment both written and executed, code in a segment of its own, checked
# copies, canaries, and (x86) landing pads at the start of every exported function and stack frames that grow by
# a page at a time, each touched, so that none steps over the guard page.
# Debian's hardening-check has to pass, too, where it is installed; except for the mark of landing pads,
# which no linker sets, because Debian's own start files (crti.o) lack it.
# Usage: hardening.sh FILE...
set -eu
command -v readelf >/dev/null 2>&1 || exit 77
command -v objdump >/dev/null 2>&1 || exit 77
bad=0
lacks() {
    echo "hardening: $file: $1"
    bad=1
}
for file; do
    segments=$(readelf -lW "$file")
    dynamic=$(readelf -dW "$file")
    symbols=$(readelf --dyn-syms -W "$file")
    echo "$segments" | grep -q GNU_RELRO || lacks "relocations stay writable (-z relro)"
    echo "$dynamic" | grep -qE 'BIND_NOW|NOW' || lacks "functions are bound late (-z now)"
    echo "$segments" | grep 'GNU_STACK' | grep -q E && lacks "the stack can be executed"
    echo "$segments" | grep -qE 'LOAD.* RWE ' && lacks "a segment can be written and executed"
    echo "$segments" | grep -qE 'LOAD +0x0+ .* R E ' && lacks "headers can be executed (-z separate-code)"
    echo "$segments" | grep -E '^ +[0-9]+ .*\.text' | grep -q '\.rodata' &&
        lacks "constants can be executed (-z separate-code)"
    echo "$dynamic" | grep -q TEXTREL && lacks "code is relocated"
    echo "$symbols" | grep -q '__stack_chk_fail' || lacks "no canaries (-fstack-protector-strong)"
    echo "$symbols" | grep -qE '_chk(@|$)' || lacks "no checked copies (_FORTIFY_SOURCE)"
    ! command -v hardening-check >/dev/null 2>&1 || hardening-check -q --nocfprotection "$file" || bad=1
    # A frame grows by `sub $0x...,%rsp`; 0xffffffffffffff80 adds 128.
    if [ "$(uname -m)" = x86_64 ]; then
        large=$(objdump -d --no-show-raw-insn "$file" |
            awk '/^[0-9a-f]+ <.*>:$/ { name = $2 }
                /sub +\$0x[0-9a-f][0-9a-f][0-9a-f][0-9a-f]+,%rsp/ && !/\$0x(1000|ffffffff[0-9a-f]+),%rsp/ { print name }' | head -n 3)
        [ -z "$large" ] || lacks "a stack frame of more than a page at once (-fstack-clash-protection): $large"
    fi
    case $(uname -m):$file in
    x86_64:*.so*)
        none=$(objdump -d --no-show-raw-insn "$file" |
            awk '/^[0-9a-f]+ <qsim_[a-z0-9_]+>:$/ { name = $2; getline; if ($0 !~ /endbr64/) print name }' | head -n 3)
        [ -z "$none" ] || lacks "no landing pad (-fcf-protection): $none"
        ;;
    esac
done
[ $bad = 0 ] && echo "hardening: $# files"
exit $bad
