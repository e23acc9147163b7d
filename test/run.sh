#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds libqsim and passes its tests: gcc, clang, gcc with AddressSanitizer and UBSan, and the kernels'
# tests for aarch64 under qemu. Installs what is missing on Debian 12 (as root or with sudo), is safe to
# repeat, and ends with one line
#     N passed, N failed, N skipped
# What is skipped is named. Shared data is looked for at $QSIM_SHARED, else ../shared; with
# QSIM_REQUIRE_SHARED=1 its absence is a failure.
#   sh test/run.sh            everything
#   sh test/run.sh gcc        one build only (gcc, clang, sanitize or aarch64)
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/deps.sh

builds=${1:-gcc clang sanitize aarch64} one=${1:+one}
shared=${QSIM_SHARED:-../shared}
[ ! -d "$shared" ] || shared=$(cd "$shared" && pwd)
export QSIM_SHARED="$shared" QSIM_REQUIRE_SHARED="${QSIM_REQUIRE_SHARED:-0}"
passed=0 failed=0 skipped=0

# shellcheck disable=SC2086
need $build_packages cmake g++ clang clang-format python3 python3-numpy xz-utils time || exit 1
need lld || say "no lld: linking will take longer"
need abigail-tools || say "no abigail-tools: the stored interface will not be compared"
need python3-pip python3-mesonpy mypy jupyter-nbconvert python3-ipykernel python3-pil ||
    say "not all of pip, meson-python, mypy, nbconvert, ipykernel, Pillow: parts of the Python package are not tested"
# Peers for the interoperability tests; without them those tests are skipped by name.
need python3-onnx || say "no python3-onnx: the ONNX checker will not be asked"
need libonnx-testdata || say "no libonnx-testdata: types will not be compared with ONNX's schemas"
command -v npm >/dev/null 2>&1 || need nodejs npm ||
    say "no npm: the tests against ONNX Runtime will be skipped"
need qemu-user || say "no qemu-user: ONNX Runtime will not be tried on a CPU without VNNI"

# The GNU linker takes two to three times as long as lld for a hundred programs; the gcc build keeps it, because sizes are
# measured there.
linker() { # NAME
    [ "$1" = gcc ] || ! command -v ld.lld >/dev/null 2>&1 || echo lld
}

configure() { # NAME CC OPTIONS...
    dir=build-test/$1 cc=$2 ld=$(linker "$1")
    shift 2
    if [ -f "$dir/build.ninja" ]; then
        return 0
    fi
    env CC="$cc" ${ld:+CC_LD="$ld"} meson setup "$dir" -Dwerror=true "$@" >"$dir.log" 2>&1 || {
        cat "$dir.log"
        return 1
    }
}

count() { # FILE LABEL
    n=$(sed -n "s/^$2: *\([0-9][0-9]*\) *$/\1/p" "$1" | tail -n 1)
    echo "${n:-0}"
}

# In a run of all builds: sources are read once, in the first build; slow tests of commands and fuzz targets run in two
# builds, not with clang; demos, which are programs beside the library, without sanitizers.
left_out() { # NAME
    case ${one:-$1} in
    clang) echo "--no-suite source --no-suite slow --no-suite fuzz" ;;
    sanitize) echo "--no-suite source --no-suite demo" ;;
    esac
}

run() { # NAME CC OPTIONS...
    name=$1
    say "$name: build"
    configure "$@" && ninja -C "build-test/$name" >"build-test/$name.build.log" 2>&1 || {
        grep -E 'error|FAILED|warning' "build-test/$name.build.log" | head -n 40
        say "$name: the build failed"
        failed=$((failed + 1))
        return
    }
    say "$name: tests"
    # shellcheck disable=SC2046
    meson test -C "build-test/$name" --no-rebuild --print-errorlogs $(left_out "$name") >"build-test/$name.test.log" 2>&1
    report
}

report() {
    grep -E '(FAIL|TIMEOUT|SKIP|ERROR) ' "build-test/$name.test.log" | sed "s/^/$name: /" | sort -u
    sed -n '/^=\{3,\}/,$p' "build-test/$name.test.log" | grep -vE '^(Ok|Fail|Skipped|Timeout):' | head -n 200
    passed=$((passed + $(count "build-test/$name.test.log" Ok)))
    failed=$((failed + $(count "build-test/$name.test.log" Fail) + $(count "build-test/$name.test.log" Timeout)))
    skipped=$((skipped + $(count "build-test/$name.test.log" Skipped)))
}

run_aarch64() {
    name=aarch64
    [ "$(uname -m)" != aarch64 ] || return 0
    say "$name: build, tests of the kernels"
    sh test/aarch64.sh kernels >"build-test/$name.test.log" 2>&1 && code=0 || code=$?
    if [ "$code" = 77 ]; then
        say "$name: SKIP, no cross compiler, qemu-user or arm64 packages"
        skipped=$((skipped + 1))
    elif grep -q '^Ok: ' "build-test/$name.test.log"; then
        report
    else
        grep -E 'error|FAILED|warning' "build-test/$name.test.log" | head -n 40
        say "$name: the build failed"
        failed=$((failed + 1))
    fi
}

mkdir -p build-test
say "test data: $shared"
for build in $builds; do
    case $build in
    gcc) run gcc gcc ;;
    clang) run clang clang ;;
    # -g1: reports need line numbers only, which takes half the disk and less time to link. -O1 (not for kernels) takes less
    # time to compile.
    sanitize) run sanitize gcc -Dbuildtype=debugoptimized -Doptimization=1 -Dc_args=-g1 -Db_sanitize=address,undefined ;;
    aarch64) run_aarch64 ;;
    *) say "no build is called $build" && exit 2 ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
