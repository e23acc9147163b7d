#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the cases of a file, each in a folder of its own: cli.sh QSIM FIXTURES CASES
set -u
bin=$(cd "$(dirname "$1")" && pwd)
fixtures=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
cases=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PATH=$bin:$PATH
export PATH LC_ALL=C
mkdir "$dir/made"
(cd "$dir/made" && "$fixtures") || { echo "cannot make the fixtures"; exit 1; }
ran=0 failed=0 name=''

bad() {
    [ -n "$named" ] || echo "FAILED: $name"
    named=1
    echo "    $1"
}

check_json() { # KEYS
    command -v python3 >/dev/null 2>&1 || return 0
    python3 -c '
import json, sys
data = json.load(open(sys.argv[1]))
missing = [k for k in sys.argv[2:] if k not in data]
sys.exit("missing: %s" % missing if missing else 0)' "$dir/out" $1 2>&1 | tail -n 1
}

finish() {
    [ -n "$name" ] || return 0
    ran=$((ran + 1))
    [ "$code" -eq "$wanted" ] || bad "exit code $code, expected $wanted"
    # Whatever is there now and was neither made before nor named is litter.
    litter=$(cd "$dir/here" && find . -type f | sed 's,^\./,,' | sort | while read -r f; do
        [ -e "$dir/made/$f" ] || printf '%s\n' "$known" | grep -qxF "$f" || echo "$f"
    done)
    [ -z "$litter" ] || bad "left behind: $litter"
    if [ -n "$named" ]; then
        failed=$((failed + 1))
        sed 's/^/    stdout: /' "$dir/out" | head -n 5
        sed 's/^/    stderr: /' "$dir/err" | head -n 5
    fi
}

while IFS= read -r line || [ -n "$line" ]; do
    case "$line" in
    '' | '#'*) ;;
    '== '*)
        finish
        name=${line#== } wanted=0 code=0 named='' known=''
        rm -rf "$dir/here"
        cp -r "$dir/made" "$dir/here"
        ;;
    '$ '*)
        (cd "$dir/here" && eval "${line#??}") >"$dir/out" 2>"$dir/err" </dev/null
        code=$?
        ;;
    'exit '*) wanted=${line#exit } ;;
    'out '*) grep -qE -e "${line#out }" "$dir/out" || bad "stdout lacks: ${line#out }" ;;
    'err '*) grep -qE -e "${line#err }" "$dir/err" || bad "stderr lacks: ${line#err }" ;;
    '!out '*) ! grep -qE -e "${line#!out }" "$dir/out" || bad "stdout has: ${line#!out }" ;;
    '!err '*) ! grep -qE -e "${line#!err }" "$dir/err" || bad "stderr has: ${line#!err }" ;;
    'file '*)
        [ -e "$dir/here/${line#file }" ] || bad "no file ${line#file }"
        known="$known
${line#file }"
        ;;
    '!file '*) [ ! -e "$dir/here/${line#!file }" ] || bad "there is a file ${line#!file }" ;;
    'lines '*) [ "$(wc -l <"$dir/err")" -eq "${line#lines }" ] || bad "stderr has not ${line#lines } lines" ;;
    'json '*)
        trouble=$(check_json "${line#json }")
        [ -z "$trouble" ] || bad "JSON: $trouble"
        ;;
    *) bad "the case has a line of no kind: $line" ;;
    esac
done <"$cases"
finish
echo "$ran cases, $failed failed"
[ "$failed" -eq 0 ] && [ "$ran" -gt 0 ]
