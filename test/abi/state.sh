#!/bin/sh
# SPDX-License-Identifier: MIT
# What the command remembers is in its `tool`; only what a signal or a failed allocation has to find is of
# the whole program.
# Usage: state.sh PROGRAM
set -eu
command -v objdump >/dev/null 2>&1 || exit 77
# The two lines of names: tools/common/tool.c, text.c; the start files of gcc and clang.
found=$(objdump -t "$1" | awk '$4 ~ /^\.t?(data|bss)$/ && $3 == "O" && $2 == "l" { print $NF }' |
    grep -vxE 'interrupted|running|working|memory_limit|written' |
    grep -vxE 'completed\.0|__dso_handle|__TMC_END__' || true)
if [ -n "$found" ]; then
    echo "state: variables of the whole program, which belong into tool_state (tools/common/tool.h):"
    echo "$found"
    exit 1
fi
