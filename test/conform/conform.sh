#!/bin/sh
# SPDX-License-Identifier: MIT
# ONNX's backend tests from the shared data. Usage: conform.sh CONFORM_PROGRAM MINIMUM
set -eu
tests=${QSIM_SHARED:-../shared}/conformance
if [ ! -f "$tests/dev.tar.xz" ]; then
    echo "missing: $tests/dev.tar.xz"
    [ "${QSIM_REQUIRE_SHARED:-0}" != 1 ] || exit 1
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar xf "$tests/dev.tar.xz" -C "$work"
"$1" "$work" "$tests/dev_core.txt" "$2"
