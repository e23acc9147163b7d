#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds with parts left out: each configures, compiles without a warning and computes the same bits of
# random graphs in every form. Compiled without optimization, to be quick.
# Usage: options.sh SOURCE_ROOT RANDOM_GRAPHS
set -eu
root=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(uname -m) in
x86_64) one=avx2 other=avx512vnni ;;
aarch64) one=neon other=neondot ;;
*) one='' other='' ;;
esac
mkdir "$work/expected"
"$program" --write "$work/expected" 1 4 2>/dev/null
[ -n "$(ls "$work/expected")" ]

quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" && echo "options: $* failed" && exit 1; }
}

# try NAME TARGET,... OPTION...: (a comma in NAME would end up in -Wl,) builds these targets besides the library; tests among them are run.
try() {
    name=$1 targets=$(echo "$2" | tr ',' ' ')
    shift 2
    dir=$work/$name
    quietly meson setup "$dir" "$root" -Dbuildtype=plain -Doptimization=1 -Dwerror=true "$@"
    library=$(ninja -C "$dir" -t targets all | sed -n 's/^\(lib\/libqsim\.so[.0-9]*\):.*/\1/p' | head -n 1)
    # shellcheck disable=SC2086
    quietly ninja -C "$dir" "$library" test/unit/test_random_graphs test/unit/test_base $targets
    mkdir "$work/$name.out"
    "$dir/test/unit/test_random_graphs" --write "$work/$name.out" 1 4 2>/dev/null
    diff -r "$work/expected" "$work/$name.out" || { echo "options: $name: other bits"; exit 1; }
    for test in test/unit/test_base $targets; do
        case $test in test/*) quietly "$dir/$test" ;; esac
    done
    needed=$(ldd "$dir/$library" 2>/dev/null || true)
    case $name in *no_zip*) ! echo "$needed" | grep libzip || exit 1 ;; esac
    echo "options: $name: the same bits"
    rm -rf "$dir"
}

try one_isa-no_zip-no_tools test/unit/test_no_zip -Disa=$one -Dzip=disabled -Dtools=disabled
try other_isa-no_threads-no_demos tools/qsim/qsim -Disa=$other -Dthreads=disabled -Ddemos=disabled
try no_isa-no_python test/kernel/checkkernel -Disa= -Dpython=disabled
