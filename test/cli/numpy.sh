#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a script that uses numpy in a folder with the fixtures: numpy.sh PYTHON SCRIPT QSIM FIXTURES
set -eu
"$1" -c 'import numpy' 2>/dev/null || { echo "skipped: $1 has no numpy"; exit 77; }
script=$(realpath "$2") qsim=$(realpath "$3") fixtures=$(realpath "$4")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$fixtures"
"$1" -B "$script" "$qsim" "$dir"
