# SPDX-License-Identifier: MIT
"""threads.py OUT ORT SECONDS [MODEL...] : see threads.sh."""
import os
import sys

from benchlib import Report, duel
from variants import sources, stem, variants

SMALL = ("fashion_lenetlite", "fashion_resnet8", "fashion_mobilenetv2_tiny", "mlptiny_ic_resnet8_fp32",
         "mlptiny_kws_dscnn_fp32", "mlptiny_kws_dscnn_int8")
LARGE = ("resnet50", "mobilenetv2", "squeezenet")
PAUSE = "pause=5000"


def counts():
    """1, 2, 4, … and all CPUs."""
    most = len(os.sched_getaffinity(0))
    found = [1]
    while found[-1] * 2 <= most:
        found.append(found[-1] * 2)
    return found if found[-1] == most else found + [most]


def commands(out, ort, file, threads):
    """Ours, ours after pauses, and ONNX Runtime where there is one."""
    ours = [f"{out}/gcc/bench/worker", "qsim", file]
    many = f"threads={threads}"
    found = [ours + [many], ours + [many, PAUSE]]
    return found + ([[ours[0], "ort", file, many, f"library={ort}"]] if ort else [])


def rows(report, out, ort, name, form, file, seconds):
    alone = None
    for threads in counts():
        ours, rested, *theirs = duel(commands(out, ort, file, threads), threads, seconds, 20000.0)
        if "refused" in ours:
            report.text("", f"{name} {form}: {ours['refused']}")
            return
        alone = alone or ours["min_us"]
        peer = theirs[0] if theirs and "refused" not in theirs[0] else None
        report.row(name, form, threads, f"{ours['min_us'] / 1e3:.4f}", f"{ours['median_us'] / 1e3:.4f}",
                   f"{alone / ours['min_us']:.2f}", f"{rested['min_us'] / 1e3:.4f}",
                   f"{rested['median_us'] / 1e3:.4f}", f"{peer['min_us'] / 1e3:.4f}" if peer else "",
                   f"{peer['min_us'] / ours['min_us']:.2f}" if peer else "")
        yield {"model": name, "form": form, "threads": threads, "min_us": ours["min_us"],
               "median_us": ours["median_us"], "paused_min_us": rested["min_us"],
               "paused_median_us": rested["median_us"], "ort_min_us": peer["min_us"] if peer else None}


def main():
    out, ort, seconds, files = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
    report = Report(out, "threads", "Threads")
    report.text("One thread in processor time, more by the clock; scale: one thread's time / this one's, of the "
                "minima. Paused: each run after 5 ms of sleep. Peer: ONNX Runtime with as many threads.", "")
    report.table_head("network", "form", "threads", "min ms", "median ms", "scale", "paused min", "paused median",
                      "peer min", "peer / ours")
    every = sources(out)
    report.data["rows"] = []
    for source in files or [s for s in every if stem(s) in LARGE + SMALL]:
        for form, (file, why) in variants(out, source, ["fp32", "u8"]).items():
            if file:
                report.data["rows"] += rows(report, out, ort, stem(source), form, file, seconds)
            else:
                report.text("", f"{stem(source)} {form}: {why}")
    report.save()


main()
