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

# refused QSIM FIXTURES: what needs a library that is left out is refused, naming library and package.
refused() {
    files=$work/files
    mkdir "$files"
    (cd "$files" && "$2")
    printf '\211PNG\r\n\032\n' >"$files/a.png"
    printf '\377\330\377\340' >"$files/a.jpg"
    printf 'RIFF\020\0\0\0WEBPVP8 ' >"$files/a.webp"
    gzip -n "$files/images.idx3-ubyte"
    echo '{}' >"$files/c.json"
    says 'without libpng (Debian: libpng-dev)' "$1" run "$files/photo.onnx" -i "$files/a.png"
    says 'without libjpeg (Debian: libjpeg-dev)' "$1" run "$files/photo.onnx" -i "$files/a.jpg"
    says 'without libwebp (Debian: libwebp-dev)' "$1" run "$files/photo.onnx" -i "$files/a.webp"
    says 'without libsndfile (Debian: libsndfile1-dev)' "$1" run "$files/sound.onnx" -i "$files/tone.wav"
    says 'without zlib (Debian: zlib1g-dev)' "$1" eval "$files/img.onnx" -d "$files/images.idx3-ubyte.gz,$files/labels.idx1-ubyte"
    says 'without libjansson (Debian: libjansson-dev)' "$1" run-config "$files/c.json"
}

# says TEXT COMMAND...: fails with one line that has this text.
says() {
    text=$1
    shift
    ! "$@" >/dev/null 2>"$work/said" || { echo "options: $* succeeded" && exit 1; }
    grep -qF "$text" "$work/said" || { cat "$work/said" && echo "options: $*: not '$text'" && exit 1; }
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
        case $test in test/unit/* | test/kernel/*) quietly "$dir/$test" ;; esac
    done
    case $name in *no_formats*) refused "$dir/tools/qsim/qsim" "$dir/test/cli/cli_fixtures" ;; esac
    needed=$(ldd "$dir/$library" 2>/dev/null || true)
    case $name in *no_zip*) ! echo "$needed" | grep libzip || exit 1 ;; esac
    echo "options: $name: the same bits"
    rm -rf "$dir"
}

try one_isa-no_zip-no_tools test/unit/test_no_zip -Disa=$one -Dzip=disabled -Dtools=disabled
try other_isa-no_threads-no_demos-no_formats tools/qsim/qsim,test/cli/cli_fixtures -Disa=$other -Dthreads=disabled -Ddemos=disabled -Dformats=disabled
try no_isa-no_python test/kernel/checkkernel -Disa= -Dpython=disabled
