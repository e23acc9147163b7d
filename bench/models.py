# SPDX-License-Identifier: MIT
"""models.py OUT SECONDS [MODEL...] : see models.sh."""
import os
import sys

from benchlib import Refused, Report, Worker, cpus_for, duel
from variants import sources, stem, variants

WANTED = ["fp32", "u8", "s8", "dynamic"]


def command(out, model, threads):
    return [f"{out}/gcc/bench/worker", "qsim", model, f"threads={threads}"]


def network(report, out, source, seconds, threads):
    """Rows of one network; what does not run goes to report.data["refused"]: {reason: [which]}."""
    files = variants(out, source, WANTED)
    runs = {v: f for v, (f, _) in files.items() if f}
    results = dict(zip(runs, duel([command(out, f, threads) for f in runs.values()], threads, seconds)))
    rows, first = [], next(iter(runs))
    for variant, (_, why) in files.items():
        r = results.get(variant, {"refused": why})
        if "refused" in r:
            which = report.data["refused"].setdefault(r["refused"], [])
            if f"{stem(source)} {variant}" not in which:
                which.append(f"{stem(source)} {variant}")
            if variant == first:
                break
            continue
        ratio = f"{1 / r['ratio']:.2f}x ({1 / r['ratio_high']:.2f}-{1 / r['ratio_low']:.2f})"
        report.row(stem(source), variant, threads, f"{r['min_us'] / 1e3:.4f}", f"{r['median_us'] / 1e3:.4f}",
                   "" if variant == first else ratio, f"{r['load_us'] / 1e3:.1f}", f"{r['peak_kb'] / 1024:.1f}")
        rows.append(dict(r, model=stem(source), variant=variant, threads=threads))
    return rows


def overhead(report, out, seconds):
    """A chain of 65 nodes against one of a single node, on one number."""
    one, many = duel([command(out, f"{out}/nets/chain{n}.onnx", 1) for n in (1, 65)], 1, seconds)
    per_node = (many["min_us"] - one["min_us"]) / 64 * 1e3
    report.text("", f"The executor: {one['min_us']:.2f} us for a run of one tiny node, "
                f"{per_node:.1f} ns for each further one (65 in a row: {many['min_us']:.2f} us; minima).")
    report.data["executor"] = {"run_us": one["min_us"], "node_ns": per_node}


def scaling(report, out, seconds):
    """ResNet-50 on 1 to all CPUs, in turns."""
    counts = list(range(1, len(os.sched_getaffinity(0)) + 1))
    for variant, (file, _) in variants(out, f"{out}/nets/resnet50.onnx", ["fp32", "u8"]).items():
        if not file:
            continue
        workers = [Worker(command(out, file, n), cpus_for(n)) for n in counts]
        best = [min(min(w.run(2)) for _ in range(max(3, int(seconds * 3)))) for w in workers]
        for w in workers:
            w.close()
        text = ", ".join(f"{n}: {b / 1e3:.2f} ms ({best[0] / b:.2f}x)" for n, b in zip(counts, best))
        report.text("", f"ResNet-50 {variant}, threads: {text} (minima).")
        report.data.setdefault("scaling", {})[variant] = dict(zip(counts, best))


def main():
    out, seconds, files = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    report = Report(out, "models", "Networks on libqsim")
    report.text("FP32 and our own quantizations of it, in turns; one thread in processor time (min: its tenth "
                "percentile), two by the clock. Ratio: FP32's time / this one's, median over rounds and its quartiles. "
                "Load: until the first run can start.", "")
    report.table_head("network", "form", "threads", "min ms", "median ms", "ratio", "load ms", "peak MB")
    rows, report.data["refused"] = [], {}
    for source in files or sources(out):
        for threads in (1, 2):
            if threads <= len(os.sched_getaffinity(0)):
                rows += network(report, out, source, seconds, threads)
    report.data["rows"] = rows
    for why, which in report.data["refused"].items():
        report.text("", f"Not run: {', '.join(which)}: {why}")
    try:
        overhead(report, out, seconds)
        if not files:
            scaling(report, out, seconds)
    except (Refused, KeyError) as e:
        report.text("", f"Not measured: {e}")
    report.save()


main()
