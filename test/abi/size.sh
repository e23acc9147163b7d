#!/bin/sh
# SPDX-License-Identifier: MIT
# The release library, stripped, stays small: a program that embeds it carries all of it.
# Usage: size.sh SHARED_LIBRARY [BYTES]
set -eu
bound=${2:-1202072}
command -v strip >/dev/null 2>&1 || exit 77
small=$(mktemp)
trap 'rm -f "$small"' EXIT
strip -o "$small" "$1"
bytes=$(wc -c <"$small")
echo "size: $bytes bytes stripped, at most $bound"
if [ "$bytes" -gt "$bound" ]; then
    echo "size: nm --size-sort -S shows what grew"
    exit 1
fi
