# SPDX-License-Identifier: MIT
# Sourced by the scripts of this folder, in the repository's root. Builds go to build-bench/gcc and
# build-bench/clang, networks, tables (.md) and figures (.json) to build-bench.

# What a script says of itself at its head is its help, too.
case "${1:-}" in
-h | --help)
    sed -n '3,/^[^#]/s/^# \{0,1\}//p' "bench/$(basename "$0")"
    exit 0
    ;;
esac

: "${QSIM_SHARED:=../shared}"
export QSIM_SHARED
out=build-bench
mkdir -p "$out/nets"

say() {
    printf '== %s\n' "$*" >&2
}

command -v python3 >/dev/null 2>&1 || { say "python3 is missing: nothing measured"; exit 1; }

build() { # COMPILER TARGET...
    compiler=$1 dir=$out/$1
    shift
    if [ ! -f "$dir/build.ninja" ]; then
        say "configuring $dir"
        CC=$compiler meson setup "$dir" --buildtype=release -Dbench=true >"$dir.log" 2>&1 || {
            tail -n 20 "$dir.log" >&2
            return 1
        }
    fi
    say "building $* in $dir"
    ninja -C "$dir" "$@" >"$dir.build.log" 2>&1 || {
        tail -n 20 "$dir.build.log" >&2
        return 1
    }
}

# Sets ort to the library of ONNX Runtime 1.30: $ORT_LIBRARY, or that of its npm package, which is
# fetched into build/onnxruntime if it is not there. Leaves ort empty if it cannot be had.
find_ort() {
    peer=build/onnxruntime
    case $(uname -m) in
    x86_64) platform=linux/x64 ;;
    *) platform=linux/arm64 ;;
    esac
    ort=${ORT_LIBRARY:-$peer/node_modules/onnxruntime-node/bin/napi-v6/$platform/libonnxruntime.so.1}
    if [ ! -f "$ort" ] && command -v npm >/dev/null 2>&1; then
        say "fetching onnxruntime-node 1.30.0 into $peer (for its shared library; no script of it is run)"
        mkdir -p "$peer"
        (cd "$peer" && npm install --ignore-scripts --no-audit --no-fund --silent onnxruntime-node@1.30.0) || true
    fi
    if [ ! -f "$ort" ]; then
        say "no ONNX Runtime (npm is missing or failed): its columns stay empty"
        ort=
    fi
}

# What times the loading of tiles, where the CPU has them: see tile_load in benchlib.py.
build_tiles() {
    ! grep -q amx_int8 /proc/cpuinfo || build gcc test/kernel/checkkernel
}

# Networks with random weights, in $out/nets; those that the library cannot build are named.
generate() { # NAME...
    for net; do
        file=$out/nets/$net.onnx
        [ -f "$file" ] || "$out/gcc/bench/nets" "$net" "$file" || say "no $net"
    done
}
