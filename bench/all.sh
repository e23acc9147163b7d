#!/bin/sh
# SPDX-License-Identifier: MIT
# These benchmarks, one after the other: kernels, models, peers, threads, start, layers. Prints Markdown; leaves
# .md and .json of each, and all of it as all.md, in build-bench. Some 20 minutes; nothing else should run.
# Usage: sh bench/all.sh
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
failed=0
for part in kernels models peers threads start layers; do
    sh "bench/$part.sh" || { echo "all: $part did not end well" >&2; failed=1; }
done
for part in kernels models peers threads start layers; do
    [ ! -f "build-bench/$part.md" ] || cat "build-bench/$part.md"
done >build-bench/all.md
exit $failed
