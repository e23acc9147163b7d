#!/bin/sh
# SPDX-License-Identifier: MIT
# Each public header compiles alone, twice included, as pedantic C89, C11, C++98 and C++17, and has no
# type in a signature that ctypes cannot call. Every struct is in test_structs.c. Usage: headers.sh SOURCE_ROOT CC [CXX]
set -eu
root=$1 cc=$2 cxx=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
for header in "$root"/include/qsim/*.h; do
    name=qsim/$(basename "$header")
    printf '#include <%s>\n#include <%s>\ntypedef int not_empty;\n' "$name" "$name" >"$work/one.c"
    $cc -std=c89 -pedantic -Wall -Wextra -Werror -I "$root/include" -fsyntax-only "$work/one.c"
    $cc -std=c11 -pedantic -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Werror \
        -I "$root/include" -fsyntax-only "$work/one.c"
    if [ -n "$cxx" ]; then
        cp "$work/one.c" "$work/one.cc"
        $cxx -std=c++98 -pedantic -Wall -Wextra -Werror -I "$root/include" -fsyntax-only "$work/one.cc"
        $cxx -std=c++17 -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror -I "$root/include" \
            -fsyntax-only "$work/one.cc"
    fi
    $cc -std=c11 -E -P -I "$root/include" "$header" >"$work/plain"
    if grep -nwE 'bool|_Bool|FILE|va_list' "$work/plain"; then
        echo "headers: $name uses a type that ctypes cannot call"
        exit 1
    fi
    if grep -nE '\<enum +[a-z]|[a-z0-9_] *: *[0-9]+;' "$work/plain" | grep -vE '\<__'; then
        echo "headers: $name has an enumeration's type or a bit-field"
        exit 1
    fi
    for struct in $(sed -n 's/^} \(qsim_[a-z_]*\);.*/\1/p' "$header"); do
        grep -q "SIZE($struct," "$root/test/abi/test_structs.c" || {
            echo "headers: test/abi/test_structs.c does not state the fields of $struct"
            exit 1
        }
    done
    count=$((count + 1))
done
[ "$count" -gt 0 ]
echo "headers: $count, C89, C11${cxx:+, C++98 and C++17}"
