#!/bin/sh
# SPDX-License-Identifier: MIT
# Slow analyses, not part of CI, each a build of its own in build-test. Needs Debian 12 with its package
# mirror. Usage: sh test/analysis.sh [NAME]...   (all of them without arguments)
# Says after each analysis whether it found anything, and ends with one line
#     N analyses, M with findings: NAMES
#     tsan      gcc, ThreadSanitizer: unit tests and 4 random graphs. Left out is what has one thread: tests of
#               kernels, failing allocations, ptq_memory
#     ubsan     clang, AddressSanitizer and UBSan: all but demos, what reads sources alone, and what loads the
#               library into other programs
#     debug     gcc -O0, AddressSanitizer and UBSan: the same
#     exact     gcc, AddressSanitizer and UBSan, memory exact: arenas and short arrays ask for each piece alone, of its
#               size, so that each can fail and its end is seen: unit tests, failing allocations, fuzz targets replayed
#     fuzz      clang, libFuzzer over test/fuzz: SECONDS_EACH (default 120) for each target, at most 10 s
#               and 1.4 GB for an input; findings are left in build-test/fuzz/found
#     replay    gcc, AddressSanitizer and UBSan: the same targets without libFuzzer, TIMES (default 1; also
#               1/10) 10 million mutations in all, others for each START (0); the first input that fails is
#               left in build-test/replay
#               ONLY="npy csv" restricts both, fuzz and replay, to some targets
#     random    gcc -O0, AddressSanitizer and UBSan: SEEDS (default 2000) random graphs from seed FIRST (1) on
#     coverage  lines and branches of readers and writers that the ordinary tests reach, and that fuzz targets
#               alone do, replayed (test/coverage.py)
#     valgrind  gcc: the quick unit tests
#     analyzer  gcc -fanalyzer over what reads, checks and writes; what it is told: test/analyzer.h
#     scan      clang --analyze, what scan-build runs, over lib and tools but the kernels
#     msan      clang, MemorySanitizer: fuzz targets replayed and unit tests, kernels in C, nanopb as a wrap;
#               functions that it is not to judge: test/msan.txt
#     cppcheck  lib and tools; false reports that are left out, and why: test/cppcheck.txt
#     tidy      clang-tidy over lib and tools; .clang-tidy has the checks, and why there are not more
#     mutation  how many of 200 faults in parsing and checking code the tests catch (test/mutate.py)
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in -h | --help) sed -n '3,/^set /s/^# \{0,1\}//p' test/analysis.sh && exit ;; esac
. tools/deps.sh
# shellcheck disable=SC2086
need $build_packages clang
shared=${QSIM_SHARED:-../shared}
[ ! -d "$shared" ] || shared=$(cd "$shared" && pwd)
export QSIM_SHARED="$shared"
mkdir -p build-test
count=0 found=

setup() { # NAME CC OPTIONS...
    dir=build-test/$1 cc=$2
    shift 2
    [ -f "$dir/build.ninja" ] || CC=$cc meson setup "$dir" -Dwerror=true "$@"
}

build() { # NAME CC OPTIONS...
    setup "$@"
    ninja -C "$dir"
}

# The programs of one folder of test alone.
build_folder() { # FOLDER NAME CC OPTIONS...
    folder=$1
    shift
    setup "$@"
    ninja -C "$dir" build.ninja # lists new targets
    # shellcheck disable=SC2046
    ninja -C "$dir" $(ninja -C "$dir" -t targets all | sed -n "s/^\(test\/$folder\/[a-z]*_[a-z0-9_]*\): .*/\1/p")
}

tests() { # NAME ARGUMENTS...
    dir=build-test/$1
    shift
    # Without it reports of UBSan are printed and pass.
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 10 "$@" || status=1
}

# Left out under sanitizers, as in test/run.sh: what reads sources, and demos, which are programs beside the library.
beside="--no-suite source --no-suite demo"

# Names of unit tests but those that a pattern matches.
units() { # PATTERN
    sed -n '/^unit_tests/,/^}/s/^    .\([a-z0-9_]*\).,$/\1/p' test/unit/meson.build | grep -vxE "$1"
}

wanted() { # TARGET
    case " ${ONLY:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
}

fuzz() {
    root=$PWD/build-test/fuzz
    mkdir -p "$root/found"
    for target in "$root"/test/fuzz/fuzz_*; do
        name=${target##*/fuzz_}
        if [ -d "$target" ] || ! wanted "$name"; then
            continue
        fi
        mkdir -p "$root/corpus/$name"
        case $name in
        onnx | pipeline) find "$shared/models" -name '*.onnx' -size -100k -exec cp -f {} "$root/corpus/$name" \; ;;
        qcal) cp -f test/fuzz/seed.qcal "$root/corpus/$name" ;;
        esac
        "$root/test/fuzz/replay_$name" -d "$root/corpus/$name"
        say "fuzz: $name"
        # Without counts of how rare each feature is: they took nine tenths of the time.
        "$target" -entropic=0 -max_total_time="${SECONDS_EACH:-120}" -timeout=10 -rss_limit_mb=1400 -malloc_limit_mb=1024 \
            -max_len=100000 -print_final_stats=1 -artifact_prefix="$root/found/$name-" \
            "$root/corpus/$name" >"$root/$name.log" 2>&1 || {
            status=1
            grep -E 'ERROR|SUMMARY|Test unit written' "$root/$name.log" || tail -n 5 "$root/$name.log"
        }
        grep -E '^Done|exec_done|number_of_executed_units' "$root/$name.log" || true
    done
}

# Mutations of each target: many where an input takes microseconds.
replay() {
    cd build-test/replay
    while read -r name times; do
        wanted "$name" || continue
        times=$((times * ${TIMES:-1}))
        case $name in
        qcal) seeds=../../test/fuzz/seed.qcal ;;
        recipe) seeds=../../test/fuzz/seed.qrecipe ;;
        config) seeds="../../test/fuzz/seed.json ../../test/fuzz/seed_flat.json" ;;
        *) seeds= ;;
        esac
        # shellcheck disable=SC2086
        ASAN_OPTIONS=abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:abort_on_error=1 \
            ../sanitize/test/fuzz/replay_"$name" -s "${START:-0}" -n $times $seeds >"$name.log" 2>&1 &&
            say "replay: $name: $times mutations of each seed, none fails" || {
            say "replay: $name FAILED"
            tail -n 20 "$name.log"
            [ ! -f replay-found ] || mv replay-found "found-$name"
            status=1
        }
    done <<EOF
api 50000
args 100000
array 4000
config 1100
csv 500000
external 4000
idx 500000
kernels 1200
large 4
nodes 300
npy 400000
npz 50000
onnx 1500
pack 3000
picture 35000
pipeline 5000
qcal 1200
recipe 2000
tensors 3500
zip 50000
EOF
    cd ../..
}

# Readers, checks and writers.
readers() {
    ls lib/base/*.c lib/tensor/*.c lib/graph/*.c lib/onnx/*.c lib/package/*.c lib/ptq/*_parse.c lib/ptq/lines.c \
        lib/ptq/recipe*.c tools/common/*.c tools/qsim/job_*.c | grep -v no_zip.c
}
# test/analyzer.h for all files but those that define its functions, or that choose what system headers declare.
told() {
    case $1 in lib/base/cpu.c | lib/base/error.c | lib/base/file.c | lib/base/thread.c | lib/onnx/reader.c | lib/exec/flow.c | lib/graph/node.c | lib/op/infer.c | lib/pass/pass.c) ;; *) echo "-include test/analyzer.h" ;; esac
}
optional="-DTOOL_ZLIB -DTOOL_JANSSON -DTOOL_PNG -DTOOL_JPEG -DTOOL_WEBP -DTOOL_SNDFILE"
plain="-std=c11 -O1 -Iinclude -Ilib -Itools -D_POSIX_C_SOURCE=200809L -D_FILE_OFFSET_BITS=64 -DNDEBUG $optional"

analyses=${*:-tsan ubsan debug exact fuzz replay random coverage valgrind analyzer scan msan cppcheck tidy mutation}
for analysis in $analyses; do
    say "$analysis"
    status=0
    case $analysis in
    tsan)
        build_folder unit tsan gcc -Dbuildtype=debugoptimized -Db_sanitize=thread
        # shellcheck disable=SC2046
        tests tsan $(units 'ptq_memory|no_zip')
        build-test/tsan/test/unit/test_random_graphs 1 4 || status=1
        ;;
    ubsan)
        build ubsan clang -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false
        # shellcheck disable=SC2086
        tests ubsan $beside
        ;;
    debug)
        build debug gcc -Dbuildtype=debug -Db_sanitize=address,undefined
        # shellcheck disable=SC2086
        tests debug $beside
        ;;
    exact)
        build exact gcc -Dbuildtype=debugoptimized -Doptimization=1 "-Dc_args=-g1 -DQS_EXACT_MEMORY" -Db_sanitize=address,undefined
        tests exact --suite unit --suite fuzz --suite fault
        ;;
    fuzz)
        build_folder fuzz fuzz clang -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true
        fuzz
        ;;
    random)
        build debug gcc -Dbuildtype=debug -Db_sanitize=address,undefined
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build-test/debug/test/unit/test_random_graphs "${FIRST:-1}" "${SEEDS:-2000}" || status=1
        ;;
    replay)
        # The build of test/run.sh.
        build_folder fuzz sanitize gcc -Dbuildtype=debugoptimized -Doptimization=1 -Dc_args=-g1 -Db_sanitize=address,undefined
        mkdir -p build-test/replay
        replay
        ;;
    coverage)
        need python3 pkg-config
        python3 test/coverage.py || status=1
        ;;
    valgrind)
        need valgrind libc6-dbg
        # Sets the bytes behind tensors once: vector loads read them, and their results are dropped or multiplied by zero.
        # Without checked copies: glibc's checked memmove is its checked memcpy, whose operands must not overlap.
        build_folder unit valgrind gcc "-Dc_args=-DQS_CLEAR_TENSORS -U_FORTIFY_SOURCE"
        # Not run: what takes minutes; what counts on threads, clocks or AMX; long doubles, which valgrind
        # has with 64 bits (op_math); a test that reads its stack beyond what is in use (stack).
        # shellcheck disable=SC2046
        meson test -C build-test/valgrind --no-rebuild --suite unit --print-errorlogs --timeout-multiplier 100 \
            --wrap='valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --trace-children=no' \
            $(units 'ptq_memory|conv|convtranspose|pool|in_place|same_bits|thread_pool|threads|cancel|cancel_touch|fork|memory_use|memory_limit|limits|no_zip|tiles|op_math|functions|epilogue|levels|stack') || status=1
        ;;
    analyzer)
        for file in $(readers); do
            # shellcheck disable=SC2086,SC2046
            gcc -fanalyzer -Werror $(told "$file") $plain $(pkg-config --cflags libpng libwebp sndfile) -S -o /dev/null "$file" || status=1
        done
        ;;
    scan)
        # With assertions. Dead stores are left to the compilers' warnings; wire.c is left out: the analyzer
        # believes that an empty message, which begins and ends at NULL, has bytes.
        find lib tools -name '*.c' ! -path 'lib/kernel/*' ! -name no_zip.c ! -name wire.c ! -path 'tools/python/*' >build-test/scan.txt
        while read -r file; do
            # shellcheck disable=SC2086,SC2046
            clang --analyze --analyzer-output text -Xclang -analyzer-werror -Xclang -analyzer-disable-checker=deadcode \
                $(told "$file") $plain -UNDEBUG $(pkg-config --cflags libpng libwebp sndfile) -o /dev/null "$file" || status=1
        done <build-test/scan.txt
        ;;
    msan)
        # MemorySanitizer does not see what the system's zlib and libzip write; they are left out, and the tools with them.
        build msan clang --wrap-mode=forcefallback -Dbuildtype=debugoptimized -Db_sanitize=memory -Db_lundef=false -Disa= \
            -Dzip=disabled -Dtools=disabled -Dpython=disabled -Ddemos=disabled \
            -Dc_args="-DQS_CLEAR_TENSORS -fsanitize-ignorelist=$PWD/test/msan.txt"
        tests msan --suite fuzz
        tests msan --suite unit
        ;;
    cppcheck)
        need cppcheck
        grep -vE '^(#|$)' test/cppcheck.txt >build-test/cppcheck.txt
        cppcheck --quiet --std=c11 --platform=unix64 --enable=warning,portability --suppressions-list=build-test/cppcheck.txt \
            --error-exitcode=1 -Iinclude -Ilib -Itools -D__GNUC__=12 -D__x86_64__ -DNDEBUG -DTOOL_ZLIB -DTOOL_JANSSON -DTOOL_PNG \
            -DTOOL_JPEG -DTOOL_WEBP -DTOOL_SNDFILE lib tools/common tools/qsim tools/demo || status=1
        ;;
    tidy)
        need clang-tidy
        setup clang clang # whose arguments it knows
        find lib tools -name '*.c' ! -path 'lib/kernel/arm/*' ! -name no_zip.c ! -path 'tools/python/*' |
            xargs -n 40 clang-tidy -quiet -p build-test/clang || status=1
        ;;
    mutation)
        need python3 pkg-config
        python3 test/mutate.py || status=1
        ;;
    *) say "no analysis is called $analysis" && exit 2 ;;
    esac
    count=$((count + 1))
    if [ "$status" = 0 ]; then
        say "$analysis: no finding"
    else
        say "$analysis: FINDINGS, see above"
        found="$found $analysis"
    fi
done
# shellcheck disable=SC2086
set -- $found
echo "$count analyses, $# with findings${found:+:$found}"
[ "$#" = 0 ]
