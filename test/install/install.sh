#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the build into a scratch folder, then compiles and runs the README's C and C++ examples
# against what was installed, through pkg-config, shared and static, and through CMake's find_package;
# and builds a project that has libqsim as its meson subproject. Usage: install.sh SOURCE_ROOT BUILD_DIR MAKE_MODEL CC [CXX]
set -eu
root=$1 build=$2 make_model=$3 cc=$4 cxx=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$work/model.onnx
"$make_model" "$model"
meson install -C "$build" --no-rebuild --quiet --destdir "$work/root" >/dev/null
pc=$(find "$work/root" -name libqsim.pc)
PKG_CONFIG_PATH=$(dirname "$pc") PKG_CONFIG_SYSROOT_DIR="$work/root"
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
cflags=$(pkg-config --cflags libqsim)
libs=$(pkg-config --libs libqsim)
lib=$(dirname "$(find "$work/root" -name libqsim.so)")
export LD_LIBRARY_PATH="$lib"

# The first block of each language in the README.
block() { # LANGUAGE
    awk -v start="\`\`\`$1" '$0 == start { on = 1; next } on && /^```/ { exit } on' "$root/README.md"
}

try() { # LANGUAGE COMPILER STANDARD
    block "$1" >"$work/example.$1"
    lines=$(wc -l <"$work/example.$1")
    [ "$lines" -gt 5 ] && [ "$lines" -le 40 ] || { echo "install: $1 example has $lines lines"; exit 1; }
    # shellcheck disable=SC2086
    "$2" "$3" -Wall -Wextra -Werror $cflags "$work/example.$1" -o "$work/shared" $libs
    "$work/shared" "$model" | tee "$work/out.$1"
    grep -q 'class [0-9]' "$work/out.$1" || { echo "install: the $1 example printed no class"; exit 1; }
}

try c "$cc" -std=c11
[ -z "$cxx" ] || try cpp "$cxx" -std=c++11

# Static: the archive, what its .pc file names, and the shared libraries that it requires.
private=$(sed -n 's/^Libs.private: *//p' "$pc" | tr ' ' '\n' | grep '^-l' | tr '\n' ' ')
required=$(sed -n 's/^Requires.private: *//p' "$pc" | tr -d ',')
# shellcheck disable=SC2086
static="$private $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --libs $required)"
# shellcheck disable=SC2086
"$cc" -std=c11 $cflags "$work/example.c" -o "$work/static" "$lib/libqsim.a" $static
env -u LD_LIBRARY_PATH "$work/static" "$model" >"$work/out.static"
cmp "$work/out.c" "$work/out.static"

# CMake, if there is one: both targets, and a version that is too new is refused.
cmake_said=
if command -v cmake >/dev/null 2>&1; then
    mkdir "$work/cmake"
    cp "$work/example.c" "$work/cmake/main.c"
    version=$(pkg-config --modversion libqsim)
    cat >"$work/cmake/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.18)
project(app C)
find_package(libqsim 99 QUIET)
if(libqsim_FOUND)
  message(FATAL_ERROR "version 99 was found")
endif()
find_package(libqsim $version REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared libqsim::libqsim)
add_executable(static main.c)
target_link_libraries(static libqsim::static)
EOF
    CC=$cc cmake -G Ninja -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_FIND_ROOT_PATH="$work/root" \
        -Dlibqsim_ROOT="$(dirname "$(dirname "$(dirname "$pc")")")" >"$work/log" 2>&1 &&
        cmake --build "$work/cmake/build" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
    for kind in shared static; do
        "$work/cmake/build/$kind" "$model" >"$work/out.cmake"
        cmp "$work/out.c" "$work/out.cmake"
    done
    cmake_said=', CMake'
else
    echo "install: no cmake, find_package is not tested"
fi

# As a subproject of a program that is built for its debugger, with C kernels alone, which compile in half the
# time. It is static if the program is, and its loops are optimized all the same.
mkdir -p "$work/app/subprojects"
ln -s "$root" "$work/app/subprojects/libqsim"
cp "$work/example.c" "$work/app/main.c"
cat >"$work/app/meson.build" <<'EOF'
project('app', 'c', default_options: ['c_std=c11', 'default_library=static'])
executable('app', 'main.c', dependencies: dependency('libqsim', fallback: ['libqsim', 'libqsim_dep']))
EOF
unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
CC=$cc meson setup -Dlibqsim:isa= "$work/app/build" "$work/app" >"$work/log" 2>&1 &&
    ninja -C "$work/app/build" app >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
"$work/app/build/app" "$model" >"$work/out.sub"
cmp "$work/out.c" "$work/out.sub"
! ldd "$work/app/build/app" | grep libqsim || { echo "install: a static subproject was linked shared"; exit 1; }
loops=$(ninja -C "$work/app/build" -t commands app | grep -e '-Isubprojects/libqsim/lib/libqs_kernel_fast')
! echo "$loops" | grep -v -e ' -O2 ' || { echo "install: the subproject's loops are not optimized"; exit 1; }

# The Python package, where numpy is: the one that is found there loads the library that is found there.
package=$(find "$work/root" -path '*/qsim/__init__.py')
if [ -n "$package" ] && /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    said=$(env -u QSIM_LIBRARY PYTHONPATH="$(dirname "$(dirname "$package")")" /usr/bin/python3 -B -c "
import qsim
print(qsim.Session('$model').output_names[0], qsim.__file__)")
    [ "$said" = "scores $package" ] || { echo "install: Python says '$said'"; exit 1; }
    [ -f "$(dirname "$package")/py.typed" ]
    echo "install: Python finds package and library"
fi
echo "install: shared, static${cxx:+, C++}$cmake_said and subproject agree"
