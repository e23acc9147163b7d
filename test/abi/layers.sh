#!/bin/sh
# SPDX-License-Identifier: MIT
# The layer rule: a file includes only its own layer and those to its left, and of onnx and {pass, exec}
# neither includes the other; tools, bench and examples include only the public headers; zip.h and
# nanopb stay in their one layer. File names are unique. calls.sh checks the same of calls.
# Usage: layers.sh SOURCE_ROOT
set -eu
cd "$1"
layers="base tensor quant kernel graph op onnx pass exec ptq package"
bad=0
checked=0

fail() {
    echo "layers: $1"
    bad=1
}

check_includes() { # FILE LAYER
    for target in $(sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$1"); do
        case "$target" in
        */*) ;;
        *) fail "$1 includes \"$target\": write it with its layer" && continue ;;
        esac
        case "$2 ${target%%/*}" in
        "pass onnx" | "exec onnx") fail "$1 ($2) includes \"$target\"" ;;
        esac
        case " $allowed " in
        *" ${target%%/*} "*) ;;
        *) fail "$1 ($2) includes \"$target\"" ;;
        esac
    done
    [ "$2" = package ] || ! grep -q '^ *# *include *<zip' "$1" || fail "$1 includes <zip.h>"
    [ "$2" = base ] ||
        ! grep -qE '^ *# *include *<(pthread|sched|unistd|fcntl|dirent|sys/[a-z]+|windows)\.h' "$1" ||
        fail "$1 includes what stays behind lib/base"
    [ "$2" = onnx ] || ! grep -q '^ *# *include *<pb' "$1" || fail "$1 includes nanopb"
}

# Memory comes from the context, and a library neither prints nor exits; assert() is allowed, since
# release builds leave it out (exports.sh checks that). lib/base/ctx.c holds the default allocator; windows.c is a part of the system.
check_calls() { # FILE
    case "$1" in lib/base/ctx.c | lib/base/windows.c) return 0 ;; esac
    calls=$(sed -e 's@/\*.*\*/@@' -e 's@^ *\*.*@@' -e 's@/\*.*@@' -e 's@"[^"]*"@@g' "$1" |
        grep -nE '(^|[^_a-zA-Z0-9.>])(malloc|calloc|realloc|free|abort|exit|printf|puts|getenv) *\(' || true)
    [ -z "$calls" ] || fail "$1 calls what a library must not: $calls"
}

allowed=""
for layer in $layers; do
    allowed="$allowed $layer"
    for file in lib/"$layer"/*.[ch] lib/"$layer"/*/*.[ch]; do
        [ -f "$file" ] || continue
        checked=$((checked + 1))
        check_includes "$file" "$layer"
        check_calls "$file"
    done
done

for file in $(find tools bench -name '*.[ch]' 2>/dev/null); do
    checked=$((checked + 1))
    if grep -E '^ *# *include *"(base|tensor|quant|kernel|graph|op|onnx|pass|exec|ptq|package)/' "$file"; then
        fail "$file includes an internal header"
    fi
done

for name in $(find lib tools test bench -name '*.[ch]' -exec basename {} \; 2>/dev/null | sort | uniq -d); do
    fail "two files are called $name"
done

[ "$checked" -gt 0 ] || fail "no file found"
echo "layers: $checked files"
exit $bad
