#!/bin/sh
# SPDX-License-Identifier: MIT
# Slow, not part of CI: cross-compiles the library and its unit tests without a warning for another
# platform and runs them there or in an emulator; then random graphs, whose files and
# tensors must have the same bytes as those of this machine. Debian's compilers; nanopb comes by its
# wrap, from the network or subprojects/packagecache. Without libzip; but on Windows without the tools.
#   sh test/platforms.sh windows [MESON TEST ARGS]   mingw-w64, x86-64, run by Wine; with the command
#   sh test/platforms.sh i686                        32-bit x86 with SSE2, run by this machine
#   sh test/platforms.sh musl                        x86-64 with musl, the C library of Alpine Linux
#   sh test/platforms.sh armhf | riscv64             under qemu-user
#   sh test/platforms.sh wasm                        emscripten, without threads, run by node
#   sh test/platforms.sh s390x                       must be refused: its bytes are in the other order
# Exit status 77: the compiler or what runs its programs cannot be had.
set -eu
cd "$(dirname "$0")/.."
. tools/deps.sh
name=${1:-}
[ $# -eq 0 ] || shift
folder=$PWD/build-test/$name
prefix="" options="" tools=-Dtools=disabled system=linux endian=little cpu=$name suffix="" links="" peer=gcc
case "$name" in
windows)
    need gcc-mingw-w64-x86-64-posix wine wine64 || exit 77
    prefix=x86_64-w64-mingw32- run="'wine'" system=windows cpu=x86_64 suffix=.exe
    tools="-Dtools=enabled -Dpython=disabled -Dformats=disabled"
    export WINEPREFIX="$folder/wine" WINEDEBUG=-all
    ;;
i686)
    need gcc-i686-linux-gnu libc6-dev-i386-cross qemu-user || exit 77
    # Where this system has 32-bit libraries of its own, its cache would name them beside the other loader.
    prefix=i686-linux-gnu- cpu=x86
    run="'qemu-i386', '-L', '/usr/i686-linux-gnu', '-E', 'LD_LIBRARY_PATH=/usr/i686-linux-gnu/lib'"
    ;;
musl)
    need musl-tools || exit 77
    run="'env'" cpu=x86_64
    ;;
armhf)
    need gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user || exit 77
    prefix=arm-linux-gnueabihf- run="'qemu-arm', '-L', '/usr/arm-linux-gnueabihf'" cpu=arm
    ;;
riscv64 | s390x)
    need gcc-"$name"-linux-gnu libc6-dev-"$name"-cross qemu-user || exit 77
    prefix=$name-linux-gnu- run="'qemu-$name', '-L', '/usr/$name-linux-gnu'"
    [ "$name" != s390x ] || endian=big
    ;;
wasm)
    need emscripten nodejs || exit 77
    # Debian's emscripten is older than node's fetch: it takes node for a browser, since it has that function.
    prefix=em run="'node', '--no-experimental-fetch'" system=emscripten cpu=wasm32 suffix=.js
    links="'-sNODERAWFS', '-sALLOW_MEMORY_GROWTH', '-sINITIAL_MEMORY=67108864', '-sEXIT_RUNTIME'"
    options="-Dthreads=disabled"
    peer=clang # random graphs depend on the order in which a compiler evaluates arguments
    ;;
*)
    sed -n 's/^#   //p' "$0" >&2
    exit 2
    ;;
esac

mkdir -p "$folder"
compiler=${prefix}gcc strip=${prefix}strip
[ "$name" != wasm ] || compiler=emcc strip=emstrip
[ "$name" != musl ] || compiler=musl-gcc
cat >"$folder/cross.ini" <<END
[binaries]
c = '$compiler'
ar = '${prefix}ar'
windres = '${prefix}windres'
strip = '$strip'
exe_wrapper = [$run]
[host_machine]
system = '$system'
cpu_family = '$cpu'
cpu = '$cpu'
endian = '$endian'
[built-in options]
c_link_args = [$links]
END
build=$folder/build
if [ ! -f "$build/build.ninja" ]; then
    # shellcheck disable=SC2086
    meson setup "$build" -Dwerror=true --cross-file "$folder/cross.ini" --wrap-mode=default \
        -Dzip=disabled -Ddemos=disabled $tools $options >"$folder/setup.log" 2>&1 || {
        grep ERROR "$folder/setup.log" || tail -n 20 "$folder/setup.log"
        [ "$endian" = big ] && grep -q 'needs a little-endian CPU' "$folder/setup.log"
        exit
    }
fi
ninja -C "$build"
[ $# -gt 0 ] || set -- --suite unit --suite kernel
meson test -C "$build" --no-rebuild --timeout-multiplier 10 --print-errorlogs "$@"

graphs=build-test/$peer/test/unit/test_random_graphs
[ -x "$graphs" ] || {
    say "the same bytes: skipped, no $graphs"
    exit 0
}
wrapper=$(printf '%s' "$run" | tr -d "',")
rm -rf "$folder/here" "$folder/there"
mkdir "$folder/here" "$folder/there"
"$graphs" --write "$folder/here" 1 20
# The path of the folder is the one that the emulated program sees.
# shellcheck disable=SC2086
(cd "$folder" && $wrapper "build/test/unit/test_random_graphs$suffix" --write there 1 20)
diff -r "$folder/here" "$folder/there"
say "the same bytes as here: $(find "$folder/here" -type f | wc -l) files of random graphs"

# The command: its files and tables have the bytes of those that the command here writes.
[ "$tools" != -Dtools=disabled ] || exit 0
command=$PWD/build-test/$peer/tools/qsim/qsim
fixtures=$PWD/build-test/$peer/test/cli/cli_fixtures
[ -x "$command" ] && [ -x "$fixtures" ] || {
    say "the command: skipped, no $command"
    exit 0
}
cp "$build"/lib/*.dll "$build/tools/qsim"
rm -rf "$folder/here" "$folder/there"
for at in here there; do
    mkdir "$folder/$at"
    [ $at = here ] || command="$wrapper $build/tools/qsim/qsim$suffix"
    (
        cd "$folder/$at"
        "$fixtures"
        mkdir niño
        mv mlp.onnx niño
        slash=/
        [ $at = here ] || slash='\'
        # Lines of arguments; / stands for the system's own separator.
        while read -r arguments; do
            echo "== $arguments" >>log
            eval "set -- $(printf '%s' "$arguments" | sed "s,/,'\\$slash',g")"
            code=0
            $command "$@" >out 2>&1 </dev/null || code=$?
            # Times differ, and quantize's sentence of them.
            grep -vE '^speed|"([a-z_]*ms|speed_[a-z]*|why_not_faster)":' out >>log || :
            echo "code $code" >>log
        done <<'END'
info niño/mlp.onnx --json
check niño/mlp.onnx
run niño/mlp.onnx -i x4.npy --json
run img.onnx -i 'picture[!0-2]*.p?m' --top 1
run niño/mlp.onnx -i niño/none.npy
optimize niño/mlp.onnx -o o.onnx
calibrate niño/mlp.onnx -d x4.npy -o c.qcal
quantize niño/mlp.onnx --calibration c.qcal -o niño/q.onnx
quantize niño/mlp.onnx --mode dynamic -o d.onnx
quantize niño/mlp.onnx --mode weights -o w.onnx
quantize niño/mlp.onnx -d x4.npy -o niño/mlp.onnx -f
quantize niño/mlp.onnx -d x4.npy -o none/q.onnx
compare niño/mlp.onnx niño/q.onnx -d x4.npy --json
END
        rm out
    )
done
diff -r "$folder/here" "$folder/there"
say "the command writes what it writes here: $(find "$folder/here" -type f | wc -l) files"
