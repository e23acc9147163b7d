#!/bin/sh
# SPDX-License-Identifier: MIT
# What hardens a program that embeds the library is there: read-only relocations, all bound at the start,
# no stack that can be executed, no segment both written and executed, checked copies, canaries, and (x86)
# the mark of objects whose returns a shadow stack may check.
# Debian's hardening-check, where it is there, has a say, too; but for that mark of a whole file, which
# Debian's own start files (crti.o) lack, so that no linker sets it.
# Usage: hardening.sh STATIC_LIBRARY FILE...
set -eu
command -v readelf >/dev/null 2>&1 || exit 77
command -v ar >/dev/null 2>&1 || exit 77
archive=$1
shift
bad=0
lacks() {
    echo "hardening: $file: $1"
    bad=1
}
if [ "$(uname -m)" = x86_64 ]; then
    file=$archive
    objects=$(ar t "$file" | grep -c '\.o$')
    marked=$(readelf -nW "$file" | grep -c SHSTK)
    [ "$marked" -ge "$objects" ] || lacks "$marked of $objects objects are marked for shadow stacks (-fcf-protection)"
fi
for file; do
    segments=$(readelf -lW "$file")
    dynamic=$(readelf -dW "$file")
    symbols=$(readelf --dyn-syms -W "$file")
    echo "$segments" | grep -q GNU_RELRO || lacks "relocations stay writable (-z relro)"
    echo "$dynamic" | grep -qE 'BIND_NOW|NOW' || lacks "functions are bound late (-z now)"
    echo "$segments" | grep 'GNU_STACK' | grep -q E && lacks "the stack can be executed"
    echo "$segments" | grep -qE 'LOAD.* RWE ' && lacks "a segment can be written and executed"
    echo "$dynamic" | grep -q TEXTREL && lacks "code is relocated"
    echo "$symbols" | grep -q '__stack_chk_fail' || lacks "no canaries (-fstack-protector-strong)"
    echo "$symbols" | grep -qE '_chk(@|$)' || lacks "no checked copies (_FORTIFY_SOURCE)"
    ! command -v hardening-check >/dev/null 2>&1 || hardening-check -q --nocfprotection "$file" || bad=1
done
[ $bad = 0 ] && echo "hardening: $# files"
exit $bad
