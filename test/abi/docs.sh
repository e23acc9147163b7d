#!/bin/sh
# SPDX-License-Identifier: MIT
# The pages agree with each other and with the code: README.md has at most 170 lines; every relative link leads to a file, and to
# a heading where it names one; every file that is named in backquotes exists; what the code cites of
# docs/ is there, down to the section's number; nothing cites pages that are not part of the project;
# ARCHITECTURE names every folder, README the number of ONNX's tests that run, model.h the versions of ONNX.
# Usage: docs.sh SOURCE_ROOT
set -eu
export LC_ALL=C
cd "$1"
bad=0
fail() {
    echo "docs: $1"
    bad=1
}

lines=$(wc -l <README.md)
[ "$lines" -le 170 ] || fail "README.md has $lines lines"

# Anchors of a page as the usual viewers make them: lower case, no punctuation, '-' for each space.
anchors() {
    sed -n 's/^##* //p' "$1" | sed -e "s@[],.:;!?()'\"*/\`[]@@g" -e 's/«//g' -e 's/»//g' -e 's/¿//g' -e 's/¡//g' -e 's/ /-/g' \
        -e 's/Á/á/g' -e 's/É/é/g' -e 's/Í/í/g' -e 's/Ó/ó/g' -e 's/Ú/ú/g' -e 's/Ñ/ñ/g' | tr 'A-Z' 'a-z'
}

links=0
for page in README.md docs/*.md; do
    folder=$(dirname "$page")
    for link in $(sed 's/```.*//' "$page" | grep -oE '\]\([^) ]+\)|src="[^"]+"' | sed -e 's/^](//' -e 's/)$//' -e 's/^src="//' -e 's/"$//'); do
        case "$link" in
        http://* | https://* | mailto:*) continue ;;
        esac
        links=$((links + 1))
        file=${link%%#*}
        target=$page
        [ -z "$file" ] || target=$folder/$file
        [ -e "$target" ] || { fail "$page links to $link, which is not there"; continue; }
        case "$link" in
        *'#'*) anchors "$target" | grep -qxF "${link#*#}" || fail "$page: no heading for $link" ;;
        esac
    done
done
[ "$links" -gt 0 ] || fail "no link found"

# `lib/op/op.h`, `i8_avx2.c`, `verb_*.c`: paths from the root, or names of one file anywhere.
names=$(find lib include tools test bench docs subprojects -type f)
for page in README.md docs/*.md; do
    for name in $(grep -oE '`[a-zA-Z0-9_*./-]+\.(c|h|sh|py|md|in|txt|build|map|js)`' "$page" | tr -d '`' | sort -u); do
        case "$name" in
        *_ISA.* | *FAMILY* | *NAME* | run_*.py | main.py) continue ;; # placeholders, and others' files
        esac
        pattern=$(printf '%s' "$name" | sed -e 's/\./\\./g' -e 's/\*/[^\/]*/g')
        case "$name" in
        */*) printf '%s\n' "$names" | grep -qE "^$pattern\$" ;;
        *) printf '%s\n' "$names" meson.build meson_options.txt | grep -qE "(^|/)$pattern\$" ;;
        esac || fail "$page names $name, which is not there"
    done
done

# ARCHITECTURE names every folder, by its path or as `name/` beside its parent.
for folder in $(find include lib tools test bench docs -maxdepth 2 -type d); do
    case "$folder" in
    */__pycache__ | */pictures | include | test/unit/*) continue ;;
    esac
    grep -qE "\`($folder|$(basename "$folder")/)\`" docs/ARCHITECTURE.md ||
        fail "docs/ARCHITECTURE.md does not name $folder"
done

# README tells how many of ONNX's backend tests run.
number=$(sed -n "s/^ *'\([0-9]*\)',\$/\1/p" test/conform/meson.build | head -n 1)
[ -z "$number" ] || grep -q " $number run" README.md ||
    fail "README.md does not say that $number of ONNX's backend tests run"

# The header says which versions of ONNX are read.
opset=$(sed -n 's/^#define QS_OPSET_NEWEST \([0-9]*\)$/\1/p' lib/op/rules.h)
ir=$(sed -n 's/^#define ONNX_IR_NEWEST \([0-9]*\)$/\1/p' lib/onnx/onnx_fields.h)
grep -q "ir_version 1 to $ir and ai.onnx opsets 1 to $opset\." include/qsim/model.h &&
    grep -q "imports ai.onnx \`opset\`, 1 to $opset\." include/qsim/model.h &&
    grep -q "at least its own; 13 to $opset)" include/qsim/model.h ||
    fail "include/qsim/model.h does not say that opsets up to $opset and IR versions up to $ir are read"

# "docs/QUANTIZATION.md, section 14" or "docs/QUANTIZATION.md section 14".
cites() {
    find lib include tools test bench -type f ! -name docs.sh -exec cat {} + | tr '\n' ' ' | sed 's/ \* / /g; s/  */ /g' |
        grep -aoE "$1" | sort -u
}
for page in $(cites 'docs/[A-Za-z._]*\.md'); do
    [ -f "$page" ] || fail "the code cites $page, which is not there"
done
cites 'docs/[A-Z]*\.md,? section [0-9]+' >"${TMPDIR:-/tmp}/docs.$$"
while read -r page _ number; do
    grep -q "^## $number\. " "${page%,}" || fail "${page%,} has no section $number"
done <"${TMPDIR:-/tmp}/docs.$$"
rm -f "${TMPDIR:-/tmp}/docs.$$"
foreign='ONNX_QUANTIZATION|KERNELS_INTEL|DESIGN(\.md)?,? ("|section)|\.\./shared/docs'
found=$(grep -rnE "$foreign" lib include tools test bench README.md docs --include='*.[ch]' --include='*.sh' --include='*.py' \
    --include='*.js' --include='*.md' --exclude=docs.sh || true)
[ -z "$found" ] || fail "cited from outside of the project: $found"

echo "docs: $links links"
exit $bad
