#!/bin/sh
# SPDX-License-Identifier: MIT
# Slow analyses, not part of CI, each a build of its own in build-test. Needs Debian 12 with its package
# mirror. Usage: sh test/analysis.sh [tsan|ubsan|debug|fuzz|random]...   (all of them without arguments)
#     tsan    gcc, ThreadSanitizer: unit, kernel and fault tests
#     ubsan   clang, AddressSanitizer and UBSan: all but what loads the library into other programs
#     debug   gcc -O0, AddressSanitizer and UBSan: the same
#     fuzz    clang, libFuzzer over test/fuzz: SECONDS_EACH (default 120) for each target, at most 10 s
#             and 1.4 GB for an input; findings are left in build-test/fuzz/found
#     random  gcc -O0, AddressSanitizer and UBSan: SEEDS (default 2000) random graphs from seed FIRST (1) on
set -eu
cd "$(dirname "$0")/.."
. tools/deps.sh
# shellcheck disable=SC2086
need $build_packages clang
shared=${QSIM_SHARED:-../shared}
[ ! -d "$shared" ] || shared=$(cd "$shared" && pwd)
export QSIM_SHARED="$shared"
mkdir -p build-test
status=0

build() { # NAME CC OPTIONS...
    dir=build-test/$1 cc=$2
    shift 2
    [ -f "$dir/build.ninja" ] || CC=$cc meson setup "$dir" -Dwerror=true "$@"
    ninja -C "$dir"
}

tests() { # NAME ARGUMENTS...
    dir=build-test/$1
    shift
    # Without it reports of UBSan are printed and pass.
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 10 "$@" || status=1
}

fuzz() {
    root=$PWD/build-test/fuzz
    mkdir -p "$root/found"
    for target in "$root"/test/fuzz/fuzz_*; do
        [ ! -d "$target" ] || continue
        name=${target##*/fuzz_}
        mkdir -p "$root/corpus/$name"
        case $name in
        onnx | pipeline) find "$shared/models" -name '*.onnx' -size -100k -exec cp -f {} "$root/corpus/$name" \; ;;
        qcal) cp -f test/fuzz/seed.qcal "$root/corpus/$name" ;;
        esac
        "$root/test/fuzz/replay_$name" -d "$root/corpus/$name"
        say "fuzz: $name"
        "$target" -max_total_time="${SECONDS_EACH:-120}" -timeout=10 -rss_limit_mb=1400 -malloc_limit_mb=1024 \
            -max_len=100000 -print_final_stats=1 -artifact_prefix="$root/found/$name-" \
            "$root/corpus/$name" >"$root/$name.log" 2>&1 || {
            status=1
            grep -E 'ERROR|SUMMARY|Test unit written' "$root/$name.log" || tail -n 5 "$root/$name.log"
        }
        grep -E '^Done|exec_done|number_of_executed_units' "$root/$name.log" || true
    done
}

analyses=${*:-tsan ubsan debug fuzz random}
for analysis in $analyses; do
    say "$analysis"
    case $analysis in
    tsan)
        build tsan gcc -Dbuildtype=debugoptimized -Db_sanitize=thread
        tests tsan --suite unit --suite kernel --suite fault
        ;;
    ubsan)
        build ubsan clang -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false
        tests ubsan
        ;;
    debug)
        build debug gcc -Dbuildtype=debug -Db_sanitize=address,undefined
        tests debug
        ;;
    fuzz)
        build fuzz clang -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true
        fuzz
        ;;
    random)
        build debug gcc -Dbuildtype=debug -Db_sanitize=address,undefined
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build-test/debug/test/unit/test_random_graphs "${FIRST:-1}" "${SEEDS:-2000}" || status=1
        ;;
    *) say "no analysis is called $analysis" && exit 2 ;;
    esac
done
exit $status
