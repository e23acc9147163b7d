# SPDX-License-Identifier: MIT
"""peers.py OUT ORT SECONDS BATCH [MODEL...] : see peers.sh."""
import os
import sys

from benchlib import Report, both, cpus_for, duel, starts
from variants import is_quantized, sources, stem, variants

# ONNX Runtime's time / ours that the project aims at: (network, form).
TARGETS = {
    ("resnet50", "u8"): 1.10,
    ("mobilenetv2", "u8"): 1.7,
    ("squeezenet", "u8"): 1.35,
    ("bert", "u8"): 1.2,
    ("coral_mobilenet_v2_1.0_224_qdq", "as is"): 3,
    ("shufflenet-v2-12-int8", "as is"): 2.5,
    ("mlptiny_ic_resnet8_int8", "as is"): 3,
    ("mlptiny_kws_dscnn_int8", "as is"): 2.5,
    ("fashion_lenetlite", "u8"): 4,
    ("mobilenetv2", "fp32"): 1.2,
    ("fashion_lenetlite", "fp32"): 1.2,
    ("fashion_resnet8", "fp32"): 1.2,
    ("fashion_mobilenetv2_tiny", "fp32"): 1.2,
    ("mlptiny_ic_resnet8_fp32", "fp32"): 1.2,
    ("mlptiny_kws_dscnn_fp32", "fp32"): 1.2,
}
# The same on a CPU with AMX, where both sides multiply by tiles.
TARGETS_AMX = {
    ("resnet50", "u8"): 4,
    ("bert", "u8"): 3.5,
    ("bert", "dynamic"): 2.5,
    ("mobilenetv2", "u8"): 2.8,
    ("squeezenet", "u8"): 3,
}
GENERATED_FORMS = ["fp32", "u8", "s8", "dynamic"]
OTHER_FORMS = ["fp32", "u8"]
MB = 1024.0
# A side whose spread is above that was slowed down by something else in a quarter of its rounds.
DISTURBED = 1.2


def has_amx():
    """What the system says of the CPU."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            return any(" amx_int8" in line for line in f if line.startswith("flags"))
    except OSError:
        return False


AIMS = {**TARGETS, **TARGETS_AMX} if has_amx() else TARGETS


def target_of(model, form):
    return AIMS.get((model, form), 1.0 if form == "fp32" else None)


def mark(row):
    return " *" if row["disturbed"] else ""


def misses(row):
    """What the row does not reach, as texts."""
    found = []
    aim = target_of(row["model"], row["form"])
    if aim and row["ratio"] < aim:
        found.append(f"time {row['ratio']:.2f} < {aim}")
    if row["threads"] == 1:
        small = row["bytes"] < 5e6
        part = 3 if row["form"] == "fp32" and row["bytes"] > 50e6 else 4
        if row["load_us"][0] > row["load_us"][1] / part:
            found.append(f"load {row['load_us'][0] / row['load_us'][1]:.2f} > 1/{part}")
        if small and row["peak_kb"][0] > row["peak_kb"][1] / 3:
            found.append(f"peak memory {row['peak_kb'][0] / row['peak_kb'][1]:.2f} > 1/3")
    return found


def measure(out, ort, file, threads, batch, seconds):
    """The row's figures, or the refusal's text."""
    pair = both(out, ort, file, f"threads={threads}", f"batch={batch}")
    ours, theirs = duel(pair, threads, seconds)
    for name, result in (("qsim", ours), ("ONNX Runtime", theirs)):
        if "refused" in result:
            return f"{name}: {result['refused']}"
    row = {"threads": threads, "bytes": os.path.getsize(file), "ratio": theirs["ratio"],
           "ratio_low": theirs["ratio_low"], "ratio_high": theirs["ratio_high"],
           "min_ratio": theirs["min_ratio"], "min_us": [ours["min_us"], theirs["min_us"]],
           "median_us": [ours["median_us"], theirs["median_us"]],
           "spread": [ours["spread"], theirs["spread"]]}
    row["disturbed"] = max(row["spread"]) > DISTURBED
    begun = starts(pair) if threads == 1 else [ours, theirs]
    row["load_us"] = [r["load_us"] for r in begun]
    row["peak_kb"] = [r["peak_kb"] for r in begun]
    return row


def print_row(report, row):
    def pair(values, unit, digits):
        return " / ".join(f"{v / unit:.{digits}f}" for v in values)
    once = row["threads"] == 1
    report.row(row["model"], row["form"], row["threads"], pair(row["min_us"], 1e3, 4),
               pair(row["median_us"], 1e3, 4),
               f"{row['ratio']:.2f} ({row['ratio_low']:.2f}-{row['ratio_high']:.2f})",
               f"{row['min_ratio']:.2f}", pair(row["spread"], 1, 2) + mark(row),
               target_of(row["model"], row["form"]) or "",
               pair(row["load_us"], 1e3, 1) if once else "",
               pair(row["peak_kb"], MB, 1) if once else "")


def call_overhead(report, out, ort, seconds):
    """What a run costs on each side beside its arithmetic: one node on one number."""
    ours, theirs = duel(both(out, ort, f"{out}/nets/chain1.onnx", "threads=1"), 1, seconds)
    if "refused" in ours or "refused" in theirs:
        return
    report.data["call_us"] = [ours["min_us"], theirs["min_us"]]
    report.text(f"Both are called from C (ONNX Runtime through its C interface; no other language in "
                f"between). One run of a one-node network on one number costs {ours['min_us']:.2f} / "
                f"{theirs['min_us']:.2f} us: what a call costs beside its arithmetic; it is part of each time.", "")


def across(report, rows):
    """Comparisons between rows: s8 with our u8, INT8 with our FP32, LeNetLite's INT8 with ORT's FP32."""
    by = {(r["model"], r["form"], r["threads"]): r for r in rows}
    for (model, form, threads), r in by.items():
        ours, fp32, u8 = r["min_us"][0], by.get((model, "fp32", threads)), by.get((model, "u8", threads))
        if form == "s8" and u8 and ours > 1.05 * u8["min_us"][0]:
            yield [model, form, threads, f"{ours / u8['min_us'][0]:.2f} x our u8 time > 1.05"]
        if form in ("u8", "s8", "dynamic") and fp32 and ours >= fp32["min_us"][0]:
            yield [model, form, threads, f"not faster than our FP32: {fp32['min_us'][0] / ours:.2f}"]
        if model == "fashion_lenetlite" and form == "u8" and fp32:
            ratio = fp32["min_us"][1] / ours
            report.text("", f"{model}, {threads} thread(s): our INT8 is {ratio:.2f} times as fast as ONNX "
                        "Runtime's FP32 (aim: 2; minima).")
            if ratio < 2:
                yield [model, form, threads, f"against ONNX Runtime's FP32 {ratio:.2f} < 2"]
    for (model, form, threads), r in by.items():
        one = by.get((model, form, 1))
        if threads == 2 and one and r["min_us"][0] > 1.02 * one["min_us"][0]:
            yield [model, form, 2, f"two threads slower than one: {one['min_us'][0] / r['min_us'][0]:.2f} (minima)"]


def print_aims(report, rows):
    """Which aims at a time with one thread are reached."""
    aimed = [(r, target_of(r["model"], r["form"])) for r in rows if r["threads"] == 1]
    aimed = [(r, aim) for r, aim in aimed if aim]
    if not aimed:
        return
    reached = sum(r["ratio"] >= aim for r, aim in aimed)
    report.text("", f"### Aims {'with AMX' if has_amx() else 'without AMX'}, one thread: {reached} of {len(aimed)} "
                "reached", "")
    report.table_head("network", "form", "aim", "ratio", "")
    for r, aim in aimed:
        report.row(r["model"], r["form"], aim, f"{r['ratio']:.2f}", "reached" if r["ratio"] >= aim else "missed")


def main():
    out, ort, seconds, batch, given = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], sys.argv[5:]
    report = Report(out, "peers", f"libqsim and ONNX Runtime 1.30, batch {batch}")
    call_overhead(report, out, ort, seconds)
    report.text("Turns of some 10 ms each in one run, ours / theirs in ms; one thread in processor time (min: its "
                "tenth percentile), two by the clock. Ratio: their time / ours, the median over rounds with its "
                "quartiles, and of the minima. Spread: the rounds' upper quartile / the fastest round, of each "
                "side. Load: until the first run can start, file in the page cache, least of 3 fresh processes; "
                "peak memory after one run there.", "")
    report.table_head("network", "form", "threads", "min ms", "median ms", "ratio", "of minima", "spread", "aim",
                      "load ms", "peak MB")
    rows, refused, missed = [], {}, []
    for source in given or sources(out):
        generated = os.path.dirname(source).startswith(out)
        forms = ["fp32"] if given else GENERATED_FORMS if generated else OTHER_FORMS
        for form, (file, why) in variants(out, source, forms).items():
            for threads in (t for t in (1, 2) if t <= len(cpus_for(t))):
                row = measure(out, ort, file, threads, batch, seconds) if file else why
                if isinstance(row, str):
                    refused.setdefault(row, []).append(f"{stem(source)} {form}")
                    break
                row.update(model=stem(source), form="as given" if given and not is_quantized(source) else form)
                rows.append(row)
                print_row(report, row)
                missed += [[row["model"], row["form"], threads, text + mark(row)] for text in misses(row)]
    if any(row["disturbed"] for row in rows):
        report.text("", f"*: a spread above {DISTURBED}: something else held the CPU for a part of this row. Its times "
                    "are too long; its ratio, of neighbours in time, suffers less.")
    for why, which in refused.items():
        report.text("", f"Not compared: {', '.join(which)}: {why}")
    missed += list(across(report, rows))
    print_aims(report, rows)
    if missed:
        report.text("", "### What the aims miss", "")
        report.table_head("network", "form", "threads", "what")
        for line in missed:
            report.row(*line)
    report.data.update(disturbed_above=DISTURBED, rows=rows, refused=refused, missed=missed)
    report.save()


main()
