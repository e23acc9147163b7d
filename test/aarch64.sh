#!/bin/sh
# SPDX-License-Identifier: MIT
# Cross-compiles for aarch64 and runs tests under qemu-user, whose CPU has all the instruction sets. The
# tests tell what is right or wrong; speed under qemu means nothing. Needs Debian 12 with its package mirror; the arm64 packages are unpacked
# into the build folder, nothing foreign is installed.
#   sh test/aarch64.sh kernels             the kernels' tests only, as test/run.sh does (a minute)
#   sh test/aarch64.sh [MESON TEST ARGS]   slow, not part of CI (six minutes): the tests that are one
#                                          program each, or those of --suite NAME; then a network
#                                          through the tool on every instruction set. Tests that are
#                                          scripts (cli, demo, conform, ...) are left out, because
#                                          they would start programs without the emulator.
# Exit status 77: the compiler, qemu or the arm64 packages cannot be had.
set -eu
cd "$(dirname "$0")/.."
. tools/deps.sh
# shellcheck disable=SC2086
need $build_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user || exit 77
folder=$PWD/build-test/aarch64
root=$folder/root
mkdir -p "$folder/lists/partial" "$folder/debs" "$root"

if [ ! -e "$root/usr/include/zip.h" ]; then
    say "fetching libzip, zlib and nanopb for arm64"
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\(http[^ ]*\).*/\2/p' \
        /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep '/debian/*$' | head -n 1)
    echo "deb [arch=arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" \
        >"$folder/sources.list"
    apt="-o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::Lists=$folder/lists
        -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::sourcelist=$folder/sources.list
        -o Dir::State::status=/dev/null -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086
    apt-get $apt update -qq && (cd "$folder/debs" && apt-get $apt download -qq libzip-dev libzip4 zlib1g-dev \
        zlib1g libnanopb-dev libbz2-1.0 libssl3 libjansson-dev libjansson4) || exit 77
    for deb in "$folder"/debs/*.deb; do dpkg -x "$deb" "$root"; done
fi

libs=$root/usr/lib/aarch64-linux-gnu
cat >"$folder/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', '-E',
    'LD_LIBRARY_PATH=$libs:$root/lib/aarch64-linux-gnu']
[properties]
pkg_config_libdir = '$libs/pkgconfig'
sys_root = '$root'
[built-in options]
c_args = ['-isystem', '$root/usr/include', '-isystem', '$root/usr/include/aarch64-linux-gnu']
c_link_args = ['-L$libs', '-L$root/lib/aarch64-linux-gnu', '-Wl,-rpath-link,$libs',
    '-Wl,-rpath-link,$root/lib/aarch64-linux-gnu', '-Wl,--allow-shlib-undefined']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
[ -f "$folder/build/build.ninja" ] || meson setup "$folder/build" -Dwerror=true --cross-file "$folder/cross.ini"

if [ "${1:-}" = kernels ]; then
    ninja -C "$folder/build" test/kernel/checkkernel
    exec meson test -C "$folder/build" --no-rebuild --timeout-multiplier 10 --print-errorlogs --suite kernel
fi
ninja -C "$folder/build"
[ $# -gt 0 ] || set -- --suite unit --suite kernel --suite fault --suite fuzz --suite abi
meson test -C "$folder/build" --no-rebuild --timeout-multiplier 10 --print-errorlogs "$@"

model=${QSIM_SHARED:-../shared}/models/mlptiny_kws_dscnn_fp32.onnx
[ -e "$model" ] || {
    say "the tool on every instruction set: skipped, no $model"
    exit 0
}
for isa in c neon neondot neoni8mm; do
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$libs:$root/lib/aarch64-linux-gnu" \
        "$folder/build/tools/qsim/qsim" run "$model" -i random:3 --isa "$isa" -q -f -o "$folder/$isa.npy"
    cmp "$folder/c.npy" "$folder/$isa.npy"
done
say "the tool on every instruction set: the same bits"
