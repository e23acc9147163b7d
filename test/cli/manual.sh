#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual page names every verb and option that the program has, and no other option:
# manual.sh QSIM PAGE
set -u
qsim=$1
page=$(mktemp)
trap 'rm -f "$page"' EXIT
sed 's/\\//g' "$2" >"$page"
bad=0 seen=' '
for verb in $("$qsim" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
    grep -qi "^\.SH QSIM $verb$" "$page" || { echo "no section for $verb"; bad=1; }
    for option in $("$qsim" "$verb" --help | sed -nE 's/^  (-., | +)(--[a-z0-9-]*).*/\2/p'); do
        seen="$seen$option "
        grep -q -e "^\.BR .*$option[ \"]*" "$page" || { echo "$verb: no $option"; bad=1; }
    done
done
for option in $(sed -n 's/^\.BR .*\(--[a-z0-9-]*\).*/\1/p' "$page"); do
    case "$seen" in
    *" $option "*) ;;
    *) echo "the page has $option, the program has not" && bad=1 ;;
    esac
done
[ "$seen" != ' ' ] || bad=1
exit $bad
