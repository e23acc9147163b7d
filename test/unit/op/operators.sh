#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of operators is the one that the table gives: operators.sh PROGRAM PAGE
set -eu
"$1" | diff "$2" - >&2 || {
    echo "docs/OPERATORS.md is stale: $1 >docs/OPERATORS.md" >&2
    exit 1
}
