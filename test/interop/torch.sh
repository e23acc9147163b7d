#!/bin/sh
# SPDX-License-Identifier: MIT
# What PyTorch exports beside what it computes. Skipped by name without it. Usage: torch.sh SOURCE_ROOT PYTHON QSIM
set -eu
"$2" -c 'import numpy' 2>/dev/null || { echo "skipped: $2 has no NumPy"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$2" "$1/test/interop/torch_exports.py" "$3" "$work"
