#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
How many faults in parsing and checking code do the tests catch? Puts one fault at a time into a copy of
the sources (a comparison off by one or turned round, a check that is dropped, && for ||), compiles that
file, with assertions, AddressSanitizer and UBSan as one of the ordinary builds has them, and runs the
ordinary tests that reach the changed line, as gcov counted once for each test, until one fails: those of the file's own layer
first, then the fast ones. What is left when all faults were tried goes to the long tests, the command's
cases and the hostile corpus. Prints each fault with the test that caught it, and the share that was
caught. The same seed gives the same faults, as far as their lines are still there.

    python3 test/mutate.py [--count 200] [--seed 1] [--only lib/onnx] [--work build-test/mutate] [--jobs 2]

The compiled file is a library of its own that is loaded before the others, so nothing is linked anew. What
was found is kept in WORK/results.tsv: a run that was interrupted goes on where it ended. --fresh forgets
it; --again first tries those that survived with the tests that are new or have changed since. Uses $CC (cc), gcov, and shared data at
$QSIM_SHARED or ../shared. A fault with which the optimizing compiler makes the same object code as without it
(trivial compiler equivalence) is counted apart and another one drawn. Not run are ONNX's own tests and long tests of
other layers, and any other fault that changes nothing that can be seen counts as missed: the share is a lower bound.
--short ends after the short tests, of at most five seconds of CPU each: a first look, whose survivors are tried by
the next run without it.
"""
import argparse
import collections
import concurrent.futures
import filecmp
import glob
import gzip
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Readers and checks: files, archives, tables, configurations, operators' attributes and shapes.
FILES = [
    "lib/onnx/*.c", "lib/tensor/*.c", "lib/package/*.c", "lib/base/file*.c", "lib/base/tree.c",
    "lib/base/utf8*.c", "lib/graph/order.c", "lib/graph/names.c", "lib/op/infer.c", "lib/op/rules.c",
    "lib/ptq/lines.c", "lib/ptq/recipe_parse.c", "lib/ptq/recipe_words.c", "lib/ptq/calibration_parse.c",
    "tools/common/csv.c", "tools/common/config.c", "tools/common/json.c", "tools/common/image_own.c",
    "tools/common/preprocess.c", "tools/common/args.c", "tools/common/numbers.c", "tools/qsim/job_read.c", "tools/qsim/job_keys.c",
]
UNCHANGED = "lib/base/file.c"  # stands for a fault where tests are measured
NOT_MUTATED = ["lib/package/no_zip.c"]
# Other builds (no_zip, verify), much work (ptq_memory, conv), clocks and memory under other sanitizers.
LEFT_OUT = ["test_no_zip", "test_verify", "test_ptq_memory", "test_memory_use", "test_conv", "test_in_place",
            "test_convtranspose", "test_pool", "test_same_bits", "test_thread_pool", "test_threads", "test_i8_pack",
            "test_float_jobs"]
AIM = 0.9  # fewer that are caught are a failure
LONG = 5.0  # seconds of CPU; a longer test is run only for its own layer's faults, after the others
LATE = ["test_fork", "test_fault_api"]  # known to be long before they are measured
PIECE = 20  # cases of the command that are one test here, since few of them reach a line
LEFT = "left to long tests"
BROKEN, SAME = "does not compile", "the same object code"  # faults that are not counted
SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "),
         (" != ", " == "), (" && ", " || "), (" || ", " && "), (" + 1", " + 2"), (" - 1", " - 2"),
         (" + 1", ""), (" - 1", "")]
CHECK = re.compile(r"^(\s*)((?:\} else )?if) \((.*)\)( \{)?$")
LEAVES = re.compile(r"^\s*(return\b|goto\b|break;|continue;)")


def code_only(line):
    """The line with its texts, characters and comments blanked out."""
    def blank(found):
        return " " * len(found.group(0))
    line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', blank, line)
    return re.sub(r"/\*.*?(\*/|$)|//.*$", blank, line)


# `key` stays the same when other lines change: it has the texts and which of several alike it is.
Fault = collections.namedtuple("Fault", "path n old new what key")


def faults_of(path):
    """All faults of a file."""
    found = []
    with open(os.path.join(ROOT, path)) as f:
        lines = f.read().split("\n")
    inside = False
    for n, line in enumerate(lines):
        if inside or line.lstrip().startswith(("/*", "*", "#")) or line.endswith("\\"):
            inside = (inside or "/*" in line) and "*/" not in line
            continue
        code = code_only(line)
        if code.lstrip().startswith(("assert(", "_Static_assert(")):  # not in the builds that are tried
            continue
        for old, new in SWAPS:
            at = code.find(old)
            while at >= 0:
                if not re.match(r"[.\w]", code[at + len(old):at + len(old) + 1] if old[-1] == "1" else ""):
                    found.append((n, line[:at] + new + line[at + len(old):], (old + "->" + new).strip()))
                at = code.find(old, at + 1)
        check = CHECK.match(code)
        if check and check.group(3).count("(") == check.group(3).count(")") and n + 1 < len(lines) \
                and LEAVES.match(lines[n + 1]):
            condition = line[check.start(3):check.end(3)]
            tail = check.group(4) or ""
            found.append((n, f"{check.group(1)}{check.group(2)} (0 && ({condition})){tail}", "check dropped"))
    seen = collections.Counter()
    for at, (n, new, what) in enumerate(found):
        same = (path, what, lines[n].strip(), new.strip())
        found[at] = Fault(path, n, lines[n], new, what, "\t".join(same + (str(seen[same]),)))
        seen[same] += 1
    return found


def all_faults(only):
    paths = sorted({os.path.relpath(p, ROOT) for g in FILES for p in glob.glob(os.path.join(ROOT, g))})
    return [f for p in paths if p not in NOT_MUTATED and (not only or only in p) for f in faults_of(p)]


def call(command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **how)


class Build:
    """A library of lib, one of the tools, and tests linked with them, from a copy of the sources."""

    def __init__(self, work, paths):
        self.work, self.src, self.counted = work, os.path.join(work, "src"), paths
        self.unchanged = {}  # object code of unchanged files
        self.cc = os.environ.get("CC", "cc").split()
        self.flags = ["-std=c11", "-O1", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w",
                      "-D_POSIX_C_SOURCE=200809L", "-D_FILE_OFFSET_BITS=64", "-DNDEBUG",
                      "-Iinclude", "-Ilib", "-Itools", "-Itest", "-Itest/unit"]
        self.libs = ["-lprotobuf-nanopb", "-lzip", "-lm", "-pthread"]
        for define, package in (("ZLIB", "zlib"), ("JANSSON", "jansson"), ("PNG", "libpng"),
                                ("JPEG", "libjpeg"), ("WEBP", "libwebp"), ("SNDFILE", "sndfile")):
            p = call(["pkg-config", "--cflags", "--libs", package])
            if p.returncode == 0:
                self.flags.append("-DTOOL_" + define)
                self.libs += p.stdout.split()
        self.checked = ["-fsanitize=address"]
        self.faulty = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-UNDEBUG"]

    def run(self, command):
        p = call(command, cwd=self.src)
        if p.returncode:
            sys.exit(" ".join(command) + "\n" + p.stdout)

    def object(self, path, counted=False):
        folder = "counted/obj" if counted else "obj"
        out = os.path.join(self.work, folder, path.replace("/", "_")[:-2] + ".o")
        if not os.path.exists(out):
            # It is linked with all, but only a fault's file is compiled with it: what asks for it is told. Arenas call it,
            # and what is counted is also linked with a tool that does not have it.
            asks, arenas = "__SANITIZE_ADDRESS__" in self.text(path), path.startswith("lib/base/")
            more = ["-D__SANITIZE_ADDRESS__"] if asks or (arenas and not counted) else []
            if counted and path in self.counted:
                more = more + ["-O0", "--coverage", "-fprofile-update=atomic"]
            elif counted and not arenas:
                return self.object(path)
            self.run(self.cc + self.flags + more + ["-c", path, "-o", out])
        return out

    def library(self, name, paths, more):
        """Twice: with AddressSanitizer, and with gcov's counts of the files that get faults."""
        for folder, kind, counted in ((".", self.checked, False), ("counted", ["--coverage"], True)):
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                objects = list(pool.map(lambda p: self.object(p, counted), paths))
            self.run(self.cc + kind + ["-shared", "-Wl,-soname," + name, "-o", os.path.join(self.work, folder, name)]
                     + objects + [os.path.join(self.work, folder, n) for n in more] + self.libs)

    def link(self, name, paths, archives=()):
        out = os.path.join(self.work, name)
        self.run(self.cc + self.checked + ["-o", out] + [self.object(p) for p in paths] + list(archives)
                 + [os.path.join(self.work, n) for n in ("libtools.so", "libqsim.so.0")] + self.libs)
        return out

    def text(self, path):
        with open(os.path.join(self.src, path)) as f:
            return f.read()

    def fault(self, path, text, slot):
        """The library of one changed file; False: it does not compile."""
        changed = os.path.join(os.path.dirname(path), f"fault-{slot}.c")
        with open(os.path.join(self.src, changed), "w") as f:
            f.write(text)
        p = call(self.cc + self.flags + self.checked + self.faulty
                 + ["-shared", "-o", fault_library(self.work, slot), changed], cwd=self.src)
        os.remove(os.path.join(self.src, changed))
        return p.returncode == 0

    def optimized(self, path, text, slot):
        """The object code as a release has it, without assertions, sanitizers and file names; None: it does not compile."""
        out = os.path.join(self.work, f"optimized-{slot}.o")
        p = call(self.cc + self.flags + ["-O2", "-iquote", os.path.dirname(path), "-x", "c", "-c", "-", "-o", out],
                 cwd=self.src, input=text)
        if p.returncode:
            return None
        with open(out, "rb") as f:
            return f.read()

    def same(self, path, text, slot):
        """Whether a changed file has the object code of the unchanged one."""
        if path not in self.unchanged:
            self.unchanged[path] = self.optimized(path, self.text(path), slot)
        return self.optimized(path, text, slot) == self.unchanged[path]

    def all(self):
        """All tests; those of them that are new or changed."""
        for folder in ("obj", "counted/obj"):
            os.makedirs(os.path.join(self.work, folder), exist_ok=True)
        files = call(["git", "-C", ROOT, "ls-files", "lib", "include", "tools", "test"]).stdout.split("\n")
        changed = []
        for f in files:
            source, to = os.path.join(ROOT, f), os.path.join(self.src, f)
            if os.path.isfile(source) and not (os.path.exists(to) and filecmp.cmp(source, to, shallow=False)):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(source, to)
                changed.append(f)
        everything = any(f.endswith(".h") for f in changed)
        gone = {f.replace("/", "_")[:-2] for f in changed}
        for folder in (os.path.join(self.work, n) for n in ("obj", "counted/obj")):
            for name in os.listdir(folder):
                if everything or name.split(".")[0] in gone:
                    os.remove(os.path.join(folder, name))
        have = [f for f in files if f.endswith(".c")]
        self.library("libqsim.so.0", [f for f in have if f.startswith("lib/") and f not in NOT_MUTATED], [])
        self.library("libtools.so", [f for f in have if f.startswith(("tools/common/", "tools/qsim/"))
                                     and f != "tools/qsim/main.c"], ["libqsim.so.0"])
        tests = self.tests(have)
        if any(f.startswith(("lib/", "tools/", "include/")) for f in changed):
            return tests, {t[0] for t in tests}
        named = {os.path.basename(f).split(".")[0] for f in changed}
        return tests, {t[0] for t in tests if t[0] in named or "test_" + t[0] in named or t[0].replace("replay_", "fuzz_") in named
                       or re.sub(r"^cli_|_\d+$", "", t[0]) in named or (t[1] == "cli" and "fixtures" in named)}

    def tests(self, have):
        """(name, folder that it looks after, command)"""
        tests = []
        seeds = {"qcal": ["seed.qcal"], "recipe": ["seed.qrecipe"], "config": ["seed.json", "seed_flat.json"]}
        times = {"nodes": ["-n", "10"], "onnx": ["-n", "200"]}  # as test/fuzz/meson.build has them
        # Seeds, mutators and the program that replays: each test takes what it lacks.
        parts = [f for f in have if f.startswith("test/fuzz/") and f != "test/fuzz/wire_libfuzzer.c"
                 and (f == "test/fuzz/fuzz_heap.c" or not f.startswith("test/fuzz/fuzz_"))]
        shared = os.path.join(self.work, "libparts.a")
        if os.path.exists(shared):
            os.remove(shared)
        self.run(["ar", "rc", shared] + [self.object(f) for f in parts])
        for f in have:
            name = os.path.basename(f)[:-2]
            if name in LEFT_OUT:
                continue
            if f.startswith("test/unit/") and name.startswith("test_") and "/tools/" not in f \
                    and name not in ("test_random_graphs", "test_random_inside"):
                tests.append((name, f.split("/")[2], [self.link(name, [f])]))
            elif f.startswith("test/fault/test_"):
                more = ["test/fuzz/fuzz_npz.c"] if name == "test_fault_api" else []
                tests.append((name, "fault", [self.link(name, [f] + more, [shared])]))
            elif f.startswith("test/fuzz/fuzz_") and name not in ("fuzz_heap", "fuzz_kernels", "fuzz_large"):
                kind = name[5:]
                arguments = times.get(kind, []) + [os.path.join(self.src, "test/fuzz", s) for s in seeds.get(kind, [])]
                tests.append(("replay_" + kind, "tools" if kind in ("args", "config", "csv", "picture") else "fuzz",
                              [self.link("replay_" + kind, [f], [shared])] + arguments))
        calls = os.path.join(self.work, "nulls")
        self.run(["env", "PROGRAM=" + calls, "sh", "test/abi/nulls.sh", ".", os.path.join(self.work, "libqsim.so.0")]
                 + self.cc + self.checked)
        tests.append(("nulls", "abi", [calls]))
        tests += [(name, "tools", [self.link("test_" + name, [f"test/cli/test_{name}.c"])]) for name in ("args", "images", "tables")]
        sh = lambda script, *rest: ["sh", os.path.join(self.src, script)] + list(rest)
        one = self.link("one_node", ["test/conform/one_node.c"])
        tests.append(("one_node", "conform", sh("test/conform/one_node.sh", one, "1")))
        tool, fixtures = self.link("qsim", ["tools/qsim/main.c"]), self.link(
            "cli_fixtures", ["test/cli/fixtures.c", "test/cli/fixtures_data.c"])
        for cases in ("edges", "messages", "samples", "config", "run_config", "cases"):
            for piece, path in self.pieces(cases):
                tests.append((piece, "last" if cases == "cases" else "cli", sh("test/cli/cli.sh", tool, fixtures, path)))
        for kind in ("onnx", "mut", "npy", "npz", "idx", "zip", "json"):
            tests.append(("hostile_" + kind, "last", sh("test/hostile/hostile.sh", tool, "1", kind)))
        return tests

    def pieces(self, name):
        """(name, file) of each piece of a file of cases"""
        with open(os.path.join(self.src, "test/cli", name + ".txt")) as f:
            cases = re.split(r"^(?=== )", f.read(), flags=re.M)[1:]
        found = []
        for at in range(0, len(cases), PIECE):
            piece = f"cli_{name}_{at // PIECE + 1}"
            path = os.path.join(self.work, piece + ".txt")
            with open(path, "w") as f:
                f.write("".join(cases[at:at + PIECE]))
            found.append((piece, path))
        return found


def fault_library(work, slot):
    return os.path.join(work, f"fault-{slot}.so")


def environment(work, slot, fault, counts):
    shared = os.path.abspath(os.environ.get("QSIM_SHARED", os.path.join(ROOT, "..", "shared")))
    env = dict(os.environ, QSIM_SHARED=shared, LD_LIBRARY_PATH=work, JOBS="1",
               ASAN_OPTIONS="detect_leaks=1:verify_asan_link_order=0")
    if counts:
        env.update(LD_LIBRARY_PATH=os.path.join(work, "counted"), GCOV_PREFIX=counts)
    return dict(env, LD_PRELOAD=fault_library(work, slot)) if fault else env


def run_test(test, work, slot, limit, fault=True, counts=None):
    """None, or how it failed, and its seconds of CPU, which a busy machine does not change; gcov's counts in a folder."""
    folder = os.path.join(work, f"run-{slot}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    env = environment(work, slot, fault, counts)
    command = test[2]
    if fault and command[0] == "sh":  # the shell itself is not to load it
        tool = os.path.join(folder, "qsim")  # by this name cases call it
        with open(tool, "w") as f:
            f.write(f'#!/bin/sh\nLD_PRELOAD={env.pop("LD_PRELOAD")} exec {command[2]} "$@"\n')
        os.chmod(tool, 0o755)
        command = command[:2] + [tool] + command[3:]
    p = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.time() + limit
    done, status, used = 0, 0, None
    try:
        while not done and time.time() < end:
            time.sleep(0.01)
            done, status, used = os.wait4(p.pid, os.WNOHANG)
    finally:  # a run that is ended leaves no test behind
        if not done:
            os.killpg(p.pid, 9)
            _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    if not done:
        return "time", seconds
    return None if p.returncode in (0, 77) else f"exit {p.returncode}", seconds


def reached(test, work, slot, limit):
    """The lines of each file that a test executes, {file: [line]}, and all lines that have code, the same."""
    counts = os.path.join(work, f"counts-{slot}")
    shutil.rmtree(counts, ignore_errors=True)
    run_test(test, work, slot, limit, fault=False, counts=counts)
    objects = os.path.join(work, "counted", "obj")
    at = counts + objects
    hit, code = {}, {}
    if not os.path.isdir(at):
        return hit, code
    for name in os.listdir(objects):
        if name.endswith(".gcno"):
            os.symlink(os.path.join(objects, name), os.path.join(at, name))
    names = [os.path.join(at, n) for n in os.listdir(at) if n.endswith(".gcda")]
    gcov = subprocess.run(["gcov", "--json-format", "--stdout"] + names, cwd=at, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)  # whose messages may part a line
    for line in gcov.stdout.split("\n"):
        if line.startswith("{"):
            for f in json.loads(line)["files"]:
                code[f["file"]] = [n["line_number"] for n in f["lines"]]
                hit[f["file"]] = [n["line_number"] for n in f["lines"] if n["count"]]
    return hit, code


class Reach:
    """Which tests execute a line."""

    def __init__(self, work):
        self.hit, self.code = {}, {}
        self.work = os.path.join(work, "reach")
        os.makedirs(self.work, exist_ok=True)

    def path(self, test):
        return os.path.join(self.work, test[0] + ".json.gz")

    def load(self, test):
        with gzip.open(self.path(test), "rt") as f:
            hit, code = json.load(f)
        self.hit[test[0]] = {file: set(lines) for file, lines in hit.items()}
        for file, lines in code.items():
            self.code.setdefault(file, set()).update(lines)

    def by(self, test, path, n):
        """Statements of several lines have the number of their first, or of an operand's."""
        if path not in self.code:
            return True
        before = [i for i in self.code[path] if i <= n]
        return bool(before) and max(before) in self.hit[test].get(path, ())


class Slots:
    """Runs a function for each of a list, several at a time, each with a slot: files and folders of its own."""

    def __init__(self, jobs):
        self.jobs, self.free = jobs, queue.Queue()
        for slot in range(jobs):
            self.free.put(slot)

    def each(self, function, items):
        def one(item):
            slot = self.free.get()
            try:
                return function(item, slot)
            finally:
                self.free.put(slot)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            waiting = [pool.submit(one, item) for item in items]
            try:
                for w in waiting:
                    yield w.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def measure(tests, build, fresh, reach, slots):
    """
    Tests that pass with an unchanged file in a fault's place, with their seconds; measured once, and with
    them the lines they reach.
    """
    work = build.work
    path = os.path.join(work, "tests.tsv")
    known = {}
    if os.path.exists(path):
        with open(path) as f:
            known = {name: (float(s), how) for name, s, how in (line.rstrip("\n").split("\t") for line in f)}

    new = set()

    def one(test, slot):
        if test[0] not in known or test[0] in fresh:
            new.add(test[0])
            if not build.fault(UNCHANGED, build.text(UNCHANGED), slot):
                sys.exit("cannot compile " + UNCHANGED)
            how, seconds = run_test(test, work, slot, 900)
            known[test[0]] = (seconds, how or "")
            if os.path.exists(reach.path(test)):
                os.remove(reach.path(test))
        seconds, how = known[test[0]]
        if not how and not os.path.exists(reach.path(test)):
            lines = reached(test, work, slot, 20 + 30 * seconds)
            with gzip.open(reach.path(test), "wt") as f:
                json.dump(lines, f)
        return test

    good = []
    for test in slots.each(one, tests):
        seconds, how = known[test[0]]
        if test[0] in new:
            with open(path, "a") as f:
                f.write("%s\t%.2f\t%s\n" % ((test[0],) + known[test[0]]))
        if how:
            print(f"left out: {test[0]} fails without a fault ({how})", flush=True)
        else:
            good.append((test, seconds))
            reach.load(test)
    return good


def is_long(item):
    return is_late(item[0]) or item[1] >= LONG


def is_late(test):
    return test[1] == "last" or test[0] in LATE


def order(timed, path, n, reach):
    """Of the tests that reach a line those of the file's folder first, then by their seconds."""
    parts = path.split("/")
    own = [parts[1], "fuzz"] if parts[0] == "lib" else ["tools", "cli"]
    def key(item):
        return (item[0][1] not in own, item[1])
    return sorted((i for i in timed if reach.by(i[0][0], path, n)
                   and (not is_long(i) or i[0][1] in own + ["cli", "fault", "last"])), key=key)


def try_fault(build, timed, reach, fault, slot):
    lines = build.text(fault.path).split("\n")
    assert lines[fault.n] == fault.old
    lines[fault.n] = fault.new
    text = "\n".join(lines)
    if not build.fault(fault.path, text, slot):
        return BROKEN
    if build.same(fault.path, text, slot):
        return SAME
    for test, seconds in order(timed, fault.path, fault.n + 1, reach):
        how, _ = run_test(test, build.work, slot, 20 + 12 * seconds)
        if how:
            return f"{test[0]} ({how})"
    return None


def shown(fault):
    return f"{fault.path}:{fault.n + 1}: {fault.what}: {fault.new.strip()}"


class Results:
    """What was found for each fault; kept in a file, to which each result is added when it is there."""

    def __init__(self, path, fresh):
        self.known = {}
        if os.path.exists(path) and not fresh:
            with open(path) as f:
                self.known = dict(line.rstrip("\n").rsplit("\t", 1) for line in f)
        self.file = open(path, "w" if fresh else "a")

    def of(self, fault):
        return self.known.get(fault.key)

    def add(self, fault, result):
        self.known[fault.key] = result
        self.file.write(f"{fault.key}\t{result}\n")
        self.file.flush()
        print(f"{shown(fault)}: {result}", flush=True)


def round_of(build, tests, reach, faults, results, slots, left):
    """Tries faults with tests; what survives is left to the next round, or has survived."""
    def one(fault, slot):
        results.add(fault, try_fault(build, tests, reach, fault, slot) or left)
    for _ in slots.each(one, faults):
        pass


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="")
    p.add_argument("--work", default=os.path.join(ROOT, "build-test", "mutate"))
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--fresh", action="store_true")
    p.add_argument("--again", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--short", action="store_true")
    p.add_argument("--without", default="^$", help="a pattern of tests that are not run")
    o = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends the tests that run
    faults = all_faults(o.only)
    paths = sorted({f.path for f in faults})
    faults.sort(key=lambda f: hashlib.sha256(f"{o.seed} {f.key}".encode()).digest())
    if o.list:
        print(f"{len(faults)} faults in {len(paths)} files")
        return 0
    work = os.path.abspath(o.work)
    build = Build(work, sorted({f.path for f in all_faults("")}))
    reach, slots = Reach(work), Slots(o.jobs)
    tests, changed = build.all()
    tests = [t for t in tests if not re.search(o.without, t[0])]
    fresh = {t[0] for t in tests} if o.fresh else changed
    early = measure([t for t in tests if not is_late(t)], build, fresh, reach, slots)
    print(f"{len(faults)} faults in {len(paths)} files, {len(early)} tests, {sum(s for _, s in early):.0f} s", flush=True)
    results = Results(os.path.join(work, "results.tsv"), o.fresh)
    def chosen():
        return [f for f in faults if results.of(f) not in (BROKEN, SAME)][:o.count]
    if o.again:
        new = [t for t in early if t[0][0] in fresh]
        for kind in (LEFT, "SURVIVED"):
            round_of(build, new, reach, [f for f in chosen() if results.of(f) == kind], results, slots, kind)
    while True:  # more than once if some are not counted
        new = [f for f in chosen() if results.of(f) is None]
        if not new:
            break
        round_of(build, [t for t in early if not is_long(t)], reach, new, results, slots, LEFT)
    left = [f for f in chosen() if results.of(f) == LEFT]
    if left and not o.short:
        late = measure([t for t in tests if is_late(t)], build, fresh, reach, slots)
        round_of(build, [t for t in early + late if is_long(t)], reach, left, results, slots, "SURVIVED")
    tried = chosen()
    for kind in (SAME, LEFT, "SURVIVED"):
        drawn = faults[:faults.index(tried[-1]) + 1] if tried and kind == SAME else tried
        named = [shown(f) for f in drawn if results.of(f) == kind]
        print("\n".join(["", kind.lower() + ":"] + named))
    caught = sum(results.of(f) not in (LEFT, "SURVIVED") for f in tried)
    print(f"{caught} of {len(tried)} caught, {100.0 * caught / max(len(tried), 1):.1f} %")
    return 0 if caught >= AIM * len(tried) else 1


if __name__ == "__main__":
    sys.exit(main())
