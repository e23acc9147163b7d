#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual page names every verb and option that the program has, and its text no other option; every
# verb is described: manual.sh QSIM PAGE TEMPLATE
set -u
qsim=$1 template=$3
page=$(mktemp)
trap 'rm -f "$page"' EXIT
sed 's/\\//g' "$2" >"$page"
bad=0 seen=' --completions '
for verb in $("$qsim" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
    grep -qi "^\.SH QSIM $verb$" "$page" || { echo "no section for $verb"; bad=1; }
    grep -qx "\.B qsim $verb" "$page" || { echo "SYNOPSIS has no $verb"; bad=1; }
    for list in USAGE OPTIONS; do
        grep -qx "@$list $verb@" "$template" || { echo "$template: no @$list $verb@"; bad=1; }
    done
    # What stands between the usage and the options of a verb says what it does.
    text=$(sed -n "/^@USAGE $verb@\$/,/^@OPTIONS $verb@\$/p" "$template" | grep -cv '^[@.]')
    [ "$text" -gt 0 ] || { echo "$template: $verb is not described"; bad=1; }
    for option in $("$qsim" "$verb" --help | sed -nE 's/^  (-., | +)(--[a-z0-9-]*).*/\2/p'); do
        seen="$seen$option "
        grep -q -e "^\.BR .*$option[ \"]*" "$page" || { echo "$verb: no $option"; bad=1; }
    done
done
for option in $(sed 's/\\//g' "$template" | grep -oE -e '(^|[ (])--[a-z][a-z0-9-]*' | tr -d ' (' | sort -u); do
    case "$seen" in
    *" $option "*) ;;
    *) echo "the text has $option, the program has not" && bad=1 ;;
    esac
done
! grep -n '^@' "$page" || bad=1
exit $bad
