# SPDX-License-Identifier: MIT
"""layers.py OUT ORT SECONDS ISA : see layers.sh."""
import os
import re
import subprocess
import sys

from benchlib import Report, duel
from kernels_limits import best_of, measure_limits
import onenode

OURS = {"gemm_u8s8": "int8", "conv_u8s8": "int8", "gemm-f32": "f32", "depthwise-f32": "f32", "conv-f32": "f32"}


def layer_of(case, shape):
    """
    ('gemm', M, N, K) or ('conv', groups, c, n, kernel, stride, size) of a case's shape, or None. The
    float cases write products as M x K x N.
    """
    m = re.fullmatch(r"(\d+)x(\d+)x(\d+)", shape)
    if m:
        rows, second, third = (int(x) for x in m.groups())
        return ("gemm", rows, third, second) if OURS.get(case) == "f32" else ("gemm", rows, second, third)
    m = re.fullmatch(r"(?:depthwise )?(\d+)x\1(?: s(\d+))? (?:(\d+)->)?(\d+) @(\d+)", shape)
    if not m:
        return None
    k, s, c, n, size = (int(x) if x else None for x in m.groups())
    return ("conv", n, 1, 1, k, s or 1, size) if c is None else ("conv", 1, c, n, k, s or 1, size)


def macs_of(layer):
    if layer[0] == "gemm":
        return layer[1] * layer[2] * layer[3]
    _, g, c, n, k, s, size = layer
    out = (size + 2 * (k // 2) - k) // s + 1
    return out * out * g * c * n * k * k


def cases(out, isa):
    done = subprocess.run([f"{out}/gcc/test/kernel/checkkernel", "--shapes", "--isa", isa],
                          stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        _, case, shape, _, macs, _ = line.split("\t")
        layer = layer_of(case, shape)
        if case in OURS and layer:
            yield case, shape, float(macs), layer


def commands(out, ort, isa, case, shape, layer):
    """Ours first; None where a peer is not there."""
    kind = OURS[case]
    ours = [f"{out}/gcc/test/kernel/checkkernel", "--isa", isa, "--case", case, "--serve", shape]
    found = [ours, None, None]
    if ort:
        file = f"{out}/nets/layer_{kind}_{'_'.join(str(x) for x in layer)}.onnx"
        if not os.path.exists(file):
            make = onenode.gemm if layer[0] == "gemm" else onenode.conv
            with open(file, "wb") as f:
                f.write(make(kind == "int8", *layer[1:]))
        found[1] = [f"{out}/gcc/bench/worker", "ort", file, "threads=1", f"library={ort}"]
    if os.path.exists(f"{out}/gcc/bench/worker_onednn"):
        text = " ".join(str(x) for x in (kind,) + layer)
        found[2] = [f"{out}/gcc/bench/worker_onednn", "onednn", text]
    return found


def row(report, case, shape, layer, macs, results, limit):
    """GMAC/s of the minima, ours also as a share of the limit; peers' times against ours, per MAC."""
    full = macs_of(layer)
    ours = results[0]
    rate = macs / ours["min_us"] / 1e3
    cells = [case, shape, f"{ours['min_us']:.2f}", f"{rate:.1f}", f"{100 * rate / limit:.0f}" if limit else ""]
    data = {"case": case, "shape": shape, "us": ours["min_us"], "gmacs": rate,
            "percent": 100 * rate / limit if limit else None}
    for name, r in zip(("ort", "onednn"), results[1:]):
        if not r or "refused" in r:
            cells += ["", ""]
            continue
        theirs = full / r["min_us"] / 1e3
        scale = macs / full
        low, high = r["ratio_low"] * scale, r["ratio_high"] * scale
        cells += [f"{theirs:.1f}", f"{r['ratio'] * scale:.2f} ({low:.2f}-{high:.2f})"]
        data[name] = {"gmacs": theirs, "ratio": r["ratio"] * scale, "low": low, "high": high}
    report.row(*cells)
    return data


def main():
    out, ort, seconds, isa = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    os.environ["OMP_NUM_THREADS"] = "1"
    report = Report(out, "layers", f"Single layers, {isa}, one thread")
    report.text("Our kernel, ONNX Runtime on a network of the one node (int8: channels last, as it runs inside; "
                "float: with its reordering of the borders; a call costs it 1 to 3 us) and oneDNN's primitive alone, in "
                "turns, in processor time. GMAC/s of its tenth percentile; ratio: their time / ours, median and quartiles of "
                "rounds.", "")
    report.table_head("case", "layer", "us", "GMAC/s", "% of limit", "ORT GMAC/s", "ORT ratio", "oneDNN GMAC/s",
                      "oneDNN ratio")
    limits = measure_limits(out)
    rows = []
    for case, shape, macs, layer in cases(out, isa):
        lanes = commands(out, ort, isa, case, shape, layer)
        present = [c for c in lanes if c]
        found = iter(duel(present, 1, seconds, 3000.0))
        results = [next(found) if c else None for c in lanes]
        if "refused" not in results[0]:
            rows.append(row(report, case, shape, layer, macs, results, limits.get((OURS[case], isa), 0.0)))
    limits = best_of(limits, measure_limits(out))
    report.data.update(rows=rows, limits={f"{k[0]} {k[1]}": v for k, v in limits.items()})
    report.save()


main()
