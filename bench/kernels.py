# SPDX-License-Identifier: MIT
"""kernels.py OUT ROUNDS ISA... : see kernels.sh."""
import re
import sys

from benchlib import Report
from kernels_limits import best_of, measure_limits, output

MARK = 1.05  # one compiler's code this much slower than the other's is marked


def measure(out, compilers, isas, rounds):
    """{(isa, case, shape): {compiler: us, 'rate': ..., ...}}, compilers in turns, the best of all."""
    cases = {}
    for _ in range(rounds):
        for isa in isas:
            for compiler in compilers:
                command = [f"{out}/{compiler}/test/kernel/checkkernel", "--tsv", "--isa", isa]
                for line in output(command):
                    us, macs, size = (float(x) for x in line[3:6])
                    c = cases.setdefault(tuple(line[:3]), {"macs": macs / 1e3, "moved": size})
                    if len(line) > 6 and us <= c.get(compiler, us):
                        c["tile"] = float(line[6])  # ns for loading one, right after this time
                    c[compiler] = min(us, c.get(compiler, us))
    return cases


def mix(case):
    """Reads to writes of the cases that move bytes."""
    what = case.split()[-1]
    if what in ("add", "mul") or case.startswith(("ew scale", "ew normalize")):
        return "copy 2:1"
    if what == "quantize":
        return "copy 4:1"
    if what == "dequantize":
        return "copy 1:4"
    if case.startswith(("max", "average", "ew greatest", "ew sum", "ew magnitude", "ew range")):
        return "read"
    return "copy 1:1"


def level(limits, size):
    for name in ("L1", "L2", "L3", "16 MB"):
        # What fills a cache to the brim shares it with code and results.
        if size <= 0.9 * limits.get(("size", name), 0):
            return name
    return "DRAM"


def as_reads(case, shape, c):
    """A product of one row reads once each weight, the row, a bias and, of INT8, a multiplier for
    each column: that is what takes its time."""
    row = re.fullmatch(r"1x(\d+)x(\d+)", shape)
    if row and c["macs"] > 0:
        n, k = float(row[1]), float(row[2])
        c["moved"] = 4 * (n * k + k + n) if "f32" in case else n * k + k + 8 * n
        c["macs"] = 0.0


def limit_of(limits, isa, case, c):
    """What limits the case: (text, GMAC/s or GB/s)."""
    if c["macs"] > 0:
        kind = "f32" if "f32" in case else "int8"
        top, store = limits.get((kind, isa), 0.0), limits.get(("store", isa))
        if kind == "f32" and c["moved"] > 0 and store:  # moved: what is stored
            terms = 4e3 * c["macs"] / c["moved"]
            return f"f32 {isa}, {terms:.0f} per store", top * terms / (terms + store)
        return f"{kind} {isa}", top
    where, how = level(limits, c["moved"]), "read" if case.startswith("gemm") else mix(case)
    copy, ports = limits.get((where, how), 0.0), limits.get((f"ports {isa}", case), 0.0)
    if 0 < ports < copy:
        return "ports", ports
    return f"{where} {how}", copy


def print_limits(report, limits):
    report.text("Limits, measured before and after: registers only (GMAC/s), memory (GB/s).", "")
    report.table_head("limit", "", "GMAC/s or GB/s")
    for (kind, which), value in sorted(limits.items()):
        if kind != "size":
            report.row(kind, which, f"{value:.1f}")
    report.text("")


def print_cases(report, cases, limits, compilers):
    """The default compiler's times; beside them the other's."""
    head = ["case", "shape", f"{compilers[0]} us", "rate", "limit", "%"]
    if len(compilers) > 1:
        head += ["clang us", "gcc/clang", ""]
    isa_before, rows = None, []
    for (isa, case, shape), c in cases.items():
        if isa != isa_before:
            report.text("", f"### {isa}", "")
            report.table_head(*head)
            isa_before = isa
        us = c.get(compilers[0])
        if us is None:
            continue
        as_reads(case, shape, c)
        name, limit = limit_of(limits, isa, case, c)
        amount = c["macs"] if c["macs"] > 0 else c["moved"] / 1e3
        rate = amount / us
        percent = 100 * rate / limit if limit else None
        if "tile" in c:
            shape += f" (tile load {c['tile']:.1f} ns)"
        cells = [case, shape, f"{us:.2f}", f"{rate:.1f} {'GMAC/s' if c['macs'] > 0 else 'GB/s'}",
                 name, f"{percent:.0f}" if percent else ""]
        row = {"isa": isa, "case": case, "shape": shape, "us": us, "rate": rate, "limit": name,
               "percent": percent}
        if len(compilers) > 1 and "clang" in c:
            ratio = c["gcc"] / c["clang"]
            mark = "gcc" if ratio > MARK else "clang" if ratio < 1 / MARK else ""
            cells += [f"{c['clang']:.2f}", f"{ratio:.2f}", f"**{mark} slower**" if mark else ""]
            row.update(gcc_us=c["gcc"], clang_us=c["clang"], slower=mark)
        report.row(*cells)
        rows.append(row)
    return rows


def main():
    out, rounds, compilers, isas = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4:]
    report = Report(out, "kernels", "Kernels, one thread")
    limits = measure_limits(out)
    cases = measure(out, compilers, isas, rounds)
    limits = best_of(limits, measure_limits(out))
    print_limits(report, limits)
    rows = print_cases(report, cases, limits, compilers)
    marked = [r for r in rows if r.get("slower")]
    if len(compilers) > 1:
        report.text("", f"{len(marked)} of {len(rows)} cases differ by more than 5 % between the compilers.")
    report.data.update(limits={f"{k[0]} {k[1]}": v for k, v in limits.items()}, cases=rows)
    report.save()


main()
