#!/bin/sh
# SPDX-License-Identifier: MIT
# Pages of --html hold all that they show: no address in them leads elsewhere, tags are closed, and a
# browser opens them without an error and without a request (skipped by name where there is none).
# Usage: pages.sh QSIM FIXTURES
set -u
qsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") fixtures=$(cd "$(dirname "$2")" && pwd)/$(basename "$2") failed=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" && "$fixtures" >/dev/null || exit 1

fail() {
    echo "$*"
    failed=1
}

"$qsim" quantize -q mlp.onnx -d x4.npy -o q.onnx --html quantize.html >quantize.txt 2>/dev/null || fail quantize
"$qsim" compare mlp.onnx q.onnx -d x4.npy --html compare.html >/dev/null || fail compare
"$qsim" eval id.onnx -d x3.npy,y3.npy --against blind.onnx --html eval.html >/dev/null || fail eval
"$qsim" bench mlp.onnx q.onnx --runs 3 --html bench.html >/dev/null 2>&1 || fail bench
"$qsim" profile mlp.onnx --runs 3 --html profile.html >/dev/null || fail profile
"$qsim" sensitivity mlp.onnx -d x4.npy --html sensitivity.html >sensitivity.txt 2>/dev/null || fail sensitivity
"$qsim" auto -q mlp.onnx -d x4.npy --budget 2 --max-drop 100 -o a.onnx --html auto.html >auto.txt 2>/dev/null || fail auto
echo '{"input_model": {"type": "OnnxModel", "model_path": "mlp.onnx"}, "passes": {"q":
{"type": "OnnxStaticQuantization", "data_config": {"data_dir": "x4.npy"}}}, "output_dir": "o"}' >c.json
"$qsim" run-config -q c.json --html run.html >/dev/null 2>&1 || fail run-config
echo '{"input_model": {"type": "OnnxModel", "model_path": "mlp.onnx"}, "evaluator": "e", "evaluators": {"e": {"metrics": [{"name":
"l", "type": "latency", "sub_types": [{"name": "avg"}]}]}}, "passes": {"q": {"type": "OnnxDynamicQuantization"}}, "output_dir": "t"}' >c.json
"$qsim" run-config -q c.json --html timed.html >/dev/null 2>&1 || fail "run-config with a latency"
grep -q 'Time of a run' timed.html || fail "no chart of the latency that run-config measures"

# The report is on the page as it was printed, and under --json there, too.
grep -q '^verdict .* held-out samples$' quantize.html || fail "no report on the page of quantize"
grep -q '^verdict' quantize.txt || fail "the page took the report from standard output"
grep -q 'before the knee' sensitivity.html && grep -q 'before the knee' sensitivity.txt || fail "no report of sensitivity"
grep -q 'Attempts' auto.html && grep -q 'samples to search with' auto.html && grep -q 'kept: better' auto.html && grep -q '^chosen' auto.html && grep -q '^chosen' auto.txt || fail "no report of auto"
grep -q 'Activations and the ranges chosen' run.html || fail "no histograms on the page of run-config"
echo '{"input_model": {"type": "OnnxModel", "model_path": "mlp.onnx"}, "evaluator": "e", "evaluators": {"e": {"metrics": [{"name": "d", "type":
"difference", "data_config": {"data_dir": "x4.npy"}, "sub_types": [{"name": "sqnr"}]}]}}, "passes": {"q": {"type": "OnnxStaticQuantization",
"data_config": {"data_dir": "x4.npy"}, "per_channel": [true, false]}}, "search_strategy": {"execution_order": "joint", "search_algorithm": "exhaustive"}, "output_dir": "s"}' >c.json
"$qsim" run-config -q c.json --html search.html >/dev/null 2>&1 || fail "run-config with a search"
grep -q '<h2>Candidates' search.html && grep -q '^2 .*weight-scheme tensor' search.html || fail "no candidates on the page of run-config"
[ "$(tr -d ' \n' <s/metrics.json | grep -o '"attempts":\[{"command":"qsimquantize[^"]*","d-sqnr":[0-9.]*,"goals_met":true,"best":' | wc -l)" = 1 ] ||
    fail "no candidates in metrics.json"
"$qsim" compare mlp.onnx q.onnx -d x4.npy --json -f --html json.html >json.txt || fail compare --json
grep -q '^{' json.txt && grep -q 'top-1 agreement' json.html || fail "--json and --html do not go together"
"$qsim" compare mlp.onnx q.onnx -d x4.npy --html compare.html >/dev/null 2>&1 && fail "a page was replaced without -f"

for page in *.html; do
    grep -q '<svg' "$page" || fail "$page: no chart"
    if grep -oE '(src|href|url|action)[=(]"?[^" >]*' "$page" | grep -vE '="?data:'; then
        fail "$page: leads elsewhere"
    fi
    [ "$(grep -o '<svg ' "$page" | wc -l)" = "$(grep -o '</svg>' "$page" | wc -l)" ] || fail "$page: <svg> is not closed"
    for name in 'a<b' '<script'; do
        grep -qF "$name" "$page" && fail "$page: $name is not escaped"
    done
done

browser=
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && browser=$name && break
done
if [ -z "$browser" ]; then
    [ $failed = 0 ] && echo "skipped: no chromium opens the pages" && exit 77
    exit 1
fi
for page in *.html; do
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$dir/profile" --enable-logging=stderr --v=0 --log-net-log="$dir/net.json" \
        --dump-dom "file://$dir/$page" >dom.txt 2>log.txt || fail "$page: $browser ends with $?"
    grep -q '</svg>' dom.txt || fail "$page: not shown"
    grep -E 'CONSOLE|Refused to' log.txt && fail "$page: the console has errors"
    if grep -oE '"(https?|wss?)://[^"]*' net.json | grep -vE 'chrome|google|gvt1' | grep .; then
        fail "$page: asks the network"
    fi
done
[ $failed = 0 ] && echo "$(ls *.html | wc -l) pages"
exit $failed
