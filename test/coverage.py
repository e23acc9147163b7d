#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
What share of the lines and branches of readers and writers the ordinary tests reach, and what share the fuzz
targets alone, replayed, as gcov counts at -O0. The files and the tests are those of test/mutate.py, and the verbs
of the tool with failing allocations and system calls (test/fault/verbs.py).

    python3 test/coverage.py [--work build-test/coverage] [--jobs 2] [--keep] [--missing TEXT [--fuzz]]

--keep takes the counts of the last run; --missing prints what is not reached, with --fuzz by
the fuzz targets, of files whose path has TEXT.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import threading

import mutate

KINDS = ("fuzz", "tests")
AIMS = (95, 90, 90)  # per cent of lines and branches by the tests, of lines by the fuzz targets alone


def uncounted(build, path):
    """A copy of a list of cases where programs that may not write files are not counted: they would spoil the counts."""
    with open(path) as f:
        text = f.read()
    copy = os.path.join(build.work, os.path.basename(path))
    with open(copy, "w") as f:
        f.write(text.replace("ulimit -f", f"export LD_LIBRARY_PATH={build.work}; ulimit -f"))
    return copy


def counted_tests(build, tests):
    """Of mutate.py's tests, and the failing tool, (name, kind, command)."""
    found = [(name, "fuzz" if name.startswith("replay_") else "tests",
              [uncounted(build, c) if c.endswith(".txt") else c for c in command]) for name, _, command in tests]
    main, failing = build.object("tools/qsim/main.c"), build.object("test/fault/failing.c")
    tool = os.path.join(build.work, "qsim_failing")
    build.run(build.cc + ["-o", tool, main, failing, "-Wl,--wrap=pthread_create"]
              + [os.path.join(build.work, "counted", n) for n in ("libtools.so", "libqsim.so.0")] + build.libs)
    fixtures = os.path.join(build.work, "cli_fixtures")
    verbs = os.path.join(build.src, "test/fault/verbs.py")
    for kind, times in (("m", "40"), ("s", "40")):
        found.append(("fault_" + kind, "tests", [sys.executable, verbs, tool, fixtures, kind, times]))
    return found


def run_all(tests, work, jobs):
    """Runs each test with gcov's counts below WORK/counts/KIND; the names of those that fail."""
    here, failed = threading.local(), []

    def run(test):
        if not hasattr(here, "folder"):
            here.folder = os.path.join(work, "run-" + str(threading.get_ident()))
        name, kind, command = test
        shutil.rmtree(here.folder, ignore_errors=True)
        os.makedirs(here.folder)
        env = mutate.environment(work, None, False, os.path.join(work, "counts", kind))
        p = subprocess.run(command, cwd=here.folder, env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        shutil.rmtree(here.folder, ignore_errors=True)
        if p.returncode not in (0, 77):
            failed.append(name)
            print(f"{name} fails with {p.returncode}:\n{p.stdout[-2000:]}", flush=True)

    shutil.rmtree(os.path.join(work, "counts"), ignore_errors=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, tests))
    return failed


def counts_of(work, kind):
    """{file: {line: (count, [count of each branch])}}"""
    objects = os.path.join(work, "counted", "obj")
    at = os.path.join(work, "counts", kind) + objects
    for name in os.listdir(objects):
        if name.endswith(".gcno") and not os.path.lexists(os.path.join(at, name)):
            os.symlink(os.path.join(objects, name), os.path.join(at, name))
    found = {}
    for name in sorted(glob.glob(os.path.join(at, "*.gcno"))):
        for text in mutate.call(["gcov", "-b", "--json-format", "--stdout", name], cwd=at).stdout.split("\n"):
            for f in json.loads(text)["files"] if text.startswith("{") else ():
                if f["file"].startswith("/") or not f["file"].endswith(".c"):
                    continue
                lines = found.setdefault(f["file"], {})
                for n in f["lines"]:
                    count, branches = lines.get(n["line_number"], (0, []))
                    lines[n["line_number"]] = (count + n["count"], branches + [b["count"] for b in n["branches"]])
    return found


def numbers(lines):
    branches = [b for _, bs in lines.values() for b in bs]
    return (len(lines), sum(c > 0 for c, _ in lines.values()), len(branches), sum(b > 0 for b in branches))


def merged(a, b):
    return {n: (c + b.get(n, (0, []))[0], [x + y for x, y in zip(bs, b[n][1])] if n in b else bs)
            for n, (c, bs) in a.items()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--work", default=os.path.join(mutate.ROOT, "build-test", "coverage"))
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--keep", action="store_true")
    p.add_argument("--missing", metavar="TEXT")
    p.add_argument("--fuzz", action="store_true")
    o = p.parse_args()
    work = os.path.abspath(o.work)
    build = mutate.Build(work, sorted({f[0] for f in mutate.all_faults("")}))
    failed = []
    if not o.keep:
        tests, _ = build.all()
        failed = run_all(counted_tests(build, tests), work, o.jobs)
    fuzz, tests = (counts_of(work, kind) for kind in KINDS)
    rows = []
    for path in sorted(tests):
        with open(os.path.join(build.src, path)) as f:
            source = [""] + f.read().split("\n")
        both = merged(tests[path], fuzz.get(path, {}))
        rows.append((path, numbers(both), numbers(fuzz.get(path, {}))))
        if o.missing is not None and o.missing in path:
            for n, (count, branches) in sorted((fuzz.get(path, {}) if o.fuzz else both).items()):
                if not count or not all(branches):
                    marks = "".join("+" if b else "-" for b in branches)
                    print(f"{path}:{n}: {'' if count else 'NEVER '}{marks} {source[n].strip()}")
    share = lambda part, whole: 100.0 * part / max(whole, 1)
    print(f"{'lines':>6} {'branch':>6} {'fuzz lines':>10}")
    total = [0] * 6
    for path, (lines, hit, branches, taken), (_, fuzz_hit, _, fuzz_taken) in sorted(rows, key=lambda r: share(r[1][3], r[1][2])):
        print(f"{share(hit, lines):6.1f} {share(taken, branches):6.1f} {share(fuzz_hit, lines):10.1f}  "
              f"{hit}/{lines} {taken}/{branches} {path}")
        total = [a + b for a, b in zip(total, (lines, hit, branches, taken, fuzz_hit, fuzz_taken))]
    lines, hit, branches, taken, fuzz_hit, fuzz_taken = total
    print(f"tests: lines {share(hit, lines):.1f} % of {lines}, branches {share(taken, branches):.1f} % of {branches}")
    print(f"fuzz targets alone: lines {share(fuzz_hit, lines):.1f} %, branches {share(fuzz_taken, branches):.1f} %")
    print(f"tests that fail: {' '.join(failed)}" if failed else "no test fails")
    reached = (share(hit, lines), share(taken, branches), share(fuzz_hit, lines))
    return 1 if failed or any(r < aim for r, aim in zip(reached, AIMS)) else 0


if __name__ == "__main__":
    sys.exit(main())
