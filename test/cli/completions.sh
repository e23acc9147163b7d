#!/bin/sh
# SPDX-License-Identifier: MIT
# Completion in the shells that are here: completions.sh QSIM
set -u
qsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
PATH=$(dirname "$qsim"):$PATH
touch first.npy second.npy
failed=0 tried=''

# is WHAT EXPECTED FOUND: words, in any order.
is() {
    expected=$(printf '%s' "$2" | tr ' ' '\n' | sort)
    found=$(printf '%s' "$3" | tr ' ' '\n' | sort)
    [ "$expected" = "$found" ] || { echo "$1: expected '$2', found '$3'" && failed=1; }
}

# The words that the bash script offers for a line, whose last word is the one to complete.
in_bash() {
    bash -c '. ./qsim.bash; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _qsim; echo "${COMPREPLY[@]}"' \
        bash "$@"
}

if command -v bash >/dev/null 2>&1; then
    tried="$tried bash"
    "$qsim" --completions bash >qsim.bash
    is "bash, verb" "calibrate" "$(in_bash qsim cal)"
    is "bash, option" "--min-ratio" "$(in_bash qsim bench --min-r)"
    is "bash, choice" "static" "$(in_bash qsim quantize --mode st)"
    is "bash, choice after =" "static" "$(in_bash qsim quantize --mode = st)"
    is "bash, choices after =" "static dynamic weights" "$(in_bash qsim quantize --mode =)"
    is "bash, second file" "first.npy,second.npy" "$(in_bash qsim eval m.onnx --data first.npy,sec)"
fi
if command -v fish >/dev/null 2>&1; then
    tried="$tried fish"
    "$qsim" --completions fish >qsim.fish
    in_fish() {
        HOME=$dir fish -c "source ./qsim.fish; complete -C '$1'" | cut -f 1
    }
    is "fish, verb" "calibrate" "$(in_fish 'qsim cal')"
    is "fish, option" "--min-ratio" "$(in_fish 'qsim bench --min-r')"
    is "fish, choice" "static" "$(in_fish 'qsim quantize --mode st')"
    is "fish, common option" "--threads" "$(in_fish 'qsim info --thr')"
fi
if command -v zsh >/dev/null 2>&1; then
    tried="$tried zsh"
    "$qsim" --completions zsh >_qsim
    zsh -n _qsim || failed=1
    # The completion system wants a terminal; what the script hands to it is looked at instead.
    cat >stub.zsh <<'EOF'
compdef() { :; }
_describe() { print -l -- $verbs; }
_arguments() { print -rl -- "$@"; }
. ./_qsim
words=("$@") CURRENT=$#
_qsim
EOF
    zsh -f stub.zsh qsim '' >verbs
    grep -q '^quantize:' verbs || { echo "zsh: no verbs" && failed=1; }
    zsh -f stub.zsh qsim quantize '' >options
    for line in '*--mode=[' ':(static dynamic weights)' '*--isa=[' '*-o+[' '*:file:_files'; do
        grep -qF -e "$line" options || { echo "zsh, quantize: no $line" && failed=1; }
    done
fi
[ -n "$tried" ] || { echo "skipped: no bash, zsh or fish" && exit 77; }
echo "completions:$tried"
exit $failed
