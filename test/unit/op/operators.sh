#!/bin/sh
# SPDX-License-Identifier: MIT
# docs/OPERATORS.md is what PROGRAM prints from the operator table. Usage: operators.sh PROGRAM PAGE
# MESON_EXE_WRAPPER runs programs of another system, which may end lines in two bytes.
set -eu
${MESON_EXE_WRAPPER:-} "$1" | tr -d '\r' | diff "$2" - >&2 || {
    echo "docs/OPERATORS.md is stale: $1 >docs/OPERATORS.md" >&2
    exit 1
}
