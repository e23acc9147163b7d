#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every verb of the tool with failing memory, threads and system calls, and killed.

verbs.py FAILING FIXTURES KINDS TIMES [VERB...]

FAILING is the tool with failing.c linked in, FIXTURES makes models and data. KINDS: letters of
m (allocations), t (threads), s (system calls that concern files), k (killed at each of those),
i (interrupted there, as by Ctrl-C).
TIMES is how many requests of each kind fail at most, spread evenly over those that a verb makes;
0 takes all of them. Each of them fails once and, but for k, from then on.

A verb that fails says so in one clear line with the right exit code, leaves each output as it was
or complete, and nothing else; one that succeeds has made the output that it makes undisturbed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

MEMORY, USAGE, DATA, IO, INTERNAL = 6, 2, 4, 5, 1
OLD = b"what was there before"

# Name: arguments and outputs. What measures time prints other numbers each time.
VERBS = {
    "info": (["info", "--json", "--nodes", "--tensors", "q.onnx"], []),
    "info ops": (["info", "--ops", "--json"], []),
    "check": (["check", "q.onnx"], []),
    "run": (["run", "q.onnx", "--input", "x1.npy", "-f", "-o", "out.npy"], ["out.npy"]),
    "run package": (["run", "p.zip", "--input", "x1.npy", "-f", "-o", "out.npy"], ["out.npy"]),
    "run tensors": (
        ["run", "q.onnx", "--input", "x1.npy", "-f", "--tensors", "*", "-o", "out.npy"],
        ["out.npy"],
    ),
    "optimize": (["optimize", "mlp.onnx", "-f", "-o", "out.onnx"], ["out.onnx"]),
    "convert": (["convert", "q.onnx", "--to", "float", "-f", "-o", "out.onnx"], ["out.onnx"]),
    "convert dynamic": (["convert", "d.onnx", "--to", "float", "-f", "-o", "out.onnx"], ["out.onnx"]),
    "convert onnx": (["convert", "n.onnx", "--to", "onnx", "-f", "-o", "out.onnx"], ["out.onnx"]),
    "calibrate": (["calibrate", "mlp.onnx", "-d", "x4.npy", "-f", "-o", "out.qcal"], ["out.qcal"]),
    "quantize": (["quantize", "mlp.onnx", "-d", "x4.npy", "-f", "-o", "out.onnx"], ["out.onnx"]),
    "quantize weights": (
        ["quantize", "mlp.onnx", "--mode", "weights", "--weights", "float16", "-f", "-o", "out.onnx"],
        ["out.onnx"],
    ),
    "compare": (["compare", "mlp.onnx", "q.onnx", "-d", "x4.npy", "--layers"], []),
    "compare files": (["compare", "img.onnx", "img.onnx", "-d", "picture*.pgm"], []),
    "eval": (
        ["eval", "q.onnx", "-d", "x4.npy,y4.npy", "-f", "--csv", "out.csv", "--svg", "out.svg"],
        ["out.csv", "out.svg"],
    ),
    "eval against": (
        ["eval", "q.onnx", "-d", "x4.npy,y4.npy", "-f", "--against", "mlp.onnx", "--csv", "out.csv", "--html",
         "out.html"],
        ["out.csv", "out.html"],
    ),
    "sensitivity": (["sensitivity", "mlp.onnx", "-d", "x4.npy"], []),
    "saturation": (["saturation", "q.onnx", "-d", "x4.npy"], []),
    "selftest": (["selftest", "q.onnx"], []),
    "selftest networks": (["selftest", "--networks", "1"], []),
    "auto": (
        ["auto", "mlp.onnx", "-d", "x4.npy", "--budget", "60s", "--max-drop", "99", "-f", "-o", "out.onnx"],
        ["out.onnx", "out.onnx.qrecipe"],
    ),
    "sweep": (["sweep", "mlp.onnx", "-d", "x4.npy", "--methods", "minmax"], []),
    "bench": (["bench", "q.onnx", "--runs", "2", "--warmup", "0"], []),
    "bench data": (["bench", "q.onnx", "-d", "x4.npy", "--runs", "2", "--warmup", "0"], []),
    "profile": (["profile", "q.onnx", "--runs", "2", "-f", "-o", "out.json"], ["out.json"]),
    "package": (
        ["package", "q.onnx", "--calibration", "m.qcal", "-f", "-o", "out.zip"],
        ["out.zip"],
    ),
    "unpack": (
        ["unpack", "p.zip", "-f", "-o", "below"],
        ["below/q.onnx", "below/manifest.json", "below/SHA256SUMS"],
    ),
    "run-config": (["run-config", "rc.json", "-f"], ["o/model.onnx", "o/metrics.json"]),
}
SOMETIMES = {"out.onnx.qrecipe"}  # written where options cannot say what was found
TALKS_OF_TIME = {"quantize"}  # prints it; its file is always the same
TIMED = {"auto", "sweep", "sensitivity", "bench", "bench data", "profile", "eval", "eval against", "run-config",
         "compare", "compare files"}
CONFIG = """{"input_model": {"type": "OnnxModel", "model_path": "mlp.onnx"},
"passes": {"q": {"type": "OnnxDynamicQuantization"}}, "output_dir": "o"}"""


def npy(path, dtype, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)
    head += " " * (117 - len(head)) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data)


def prepare(folder, tool, fixtures):
    def qsim(*args):
        subprocess.run([tool, *args], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    subprocess.run([fixtures], cwd=folder, check=True)
    labels = b"".join((i % 3).to_bytes(8, "little") for i in range(32))
    npy(folder + "/y4.npy", "<i8", "(32,)", labels)
    with open(folder + "/x4.npy", "rb") as f:
        npy(folder + "/x1.npy", "<f4", "(1, 4)", f.read()[128:144])
    with open(folder + "/rc.json", "w") as f:
        f.write(CONFIG)
    qsim("calibrate", "-q", "mlp.onnx", "-d", "x4.npy", "-o", "m.qcal")
    qsim("quantize", "-q", "mlp.onnx", "-d", "x4.npy", "-o", "q.onnx")
    qsim("quantize", "-q", "mlp.onnx", "--mode", "weights", "--weights", "int4", "--set", "*=int4", "--format", "qoperator",
         "-o", "n.onnx")
    qsim("quantize", "-q", "mlp.onnx", "--mode", "dynamic", "-o", "d.onnx")
    qsim("package", "-q", "q.onnx", "-o", "p.zip")
    used = set("mlp.onnx q.onnx n.onnx d.onnx p.zip m.qcal x1.npy x4.npy y4.npy rc.json img.onnx "
               "picture0.pgm picture1.pgm".split())
    for name in os.listdir(folder):
        if name not in used:
            os.unlink(folder + "/" + name)


class Verb:
    """One verb in a folder of its own, started once: each failure is a fork of it."""

    def __init__(self, name, tool, made, folder):
        self.name, self.work = name, folder + "/here"
        self.args, self.outputs = VERBS[name]
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(made, self.work)
        self.inputs = self.files()
        try:
            os.close(os.open(self.work, os.O_TMPFILE | os.O_WRONLY))
            self.nameless = True
        except OSError:
            self.nameless = False
        down, up = os.pipe(), os.pipe()
        os.dup2(down[0], 100, inheritable=True)
        os.dup2(up[1], 101, inheritable=True)
        threads = [] if name == "unpack" else ["-T", "2" if name == "run" else "1"]
        self.server = subprocess.Popen(
            [tool, *self.args, *threads],
            cwd=self.work,
            env=dict(os.environ, QSIM_FAILING="1"),
            stdin=subprocess.DEVNULL,
            pass_fds=(100, 101),
        )
        for fd in (down[0], up[1], 100, 101):
            os.close(fd)
        self.commands, self.answers = os.fdopen(down[1], "w"), os.fdopen(up[0])

    def close(self):
        self.commands.close()
        self.answers.close()
        self.server.wait()

    def files(self):
        found = {}
        for folder, _, names in os.walk(self.work):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, self.work)] = f.read()
        return found

    def reset(self, old):
        for name in self.files():
            if name not in self.inputs:
                os.unlink(os.path.join(self.work, name))
        for name in os.listdir(self.work):
            path = os.path.join(self.work, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
        for name in self.outputs if old else ():
            path = os.path.join(self.work, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(OLD)

    def run(self, kind, at, sticky, error, old):
        self.reset(old)
        self.commands.write("%s %d %d %d\n" % (kind, at, sticky, error))
        self.commands.flush()
        answer = self.answers.readline().split()
        if not answer:
            sys.exit(self.name + ": the tool with failures does not answer")
        status = int(answer[0])
        with open(self.work + "/../err", "rb") as f:
            self.err = f.read()
        with open(self.work + "/../out", "rb") as f:
            self.out = f.read()
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return code, int(answer[1])


def moving(verb, name, data, reference, old):
    """Whether a complete output was on its way: beside the old one, or in a folder that is to be
    named, when the process was killed or could remove nothing any more. A new file has no other name
    before its own, where the system knows files without a name; auto replaces what it has written."""
    folder, _, file = name.rpartition("/")
    for output in verb.outputs:
        to, _, base = output.rpartition("/")
        if folder == to and re.fullmatch(re.escape(base) + r"\.([a-z]{6}|qs-new)", file):
            replaced = old or not verb.nameless or os.path.exists(os.path.join(verb.work, output))
            return replaced and (verb.name in TIMED or data == reference[1].get(output))
        if to and re.fullmatch(re.escape(to) + r"(/\.)?\.[a-z]{6}", folder) and file == base:
            return True
    return False


def fault_of(verb, kind, sticky, code, old, reference):
    """What is wrong with how a run ended; None if nothing."""
    left = verb.files()
    litter = [n for n in left if n not in verb.inputs and n not in verb.outputs]
    lines = verb.err.decode(errors="replace").splitlines()
    said = " | ".join(lines)
    for name, bytes_ in verb.inputs.items():
        if left.get(name) != bytes_:
            return "the input %s was changed" % name
    if kind in "ki" or (kind == "s" and sticky):
        litter = [n for n in litter if not moving(verb, n, left[n], reference, old)]
    if kind == "s" and code != 0 and not sticky and not old:
        litter += [folder for folder, below, names in os.walk(verb.work) if not below + names]
    if litter:
        return "litter: %s" % litter
    for name in verb.outputs:
        complete = left.get(name) == reference[1].get(name)
        if verb.name in TIMED and left.get(name, OLD) != OLD:
            complete = looks_whole(name, left[name])
        if name in SOMETIMES and left.get(name) in (None, OLD):
            complete = True
        if code == 0 and not complete:
            return "success, but %s is not what it should be" % name
        if not complete and left.get(name) != (OLD if old else None):
            return "%s is neither the old nor the new one" % name
    if kind == "k":
        # Of two processes that bench has, the one that measures may be killed alone.
        return None if code in (0, -9) or "process that measures died" in said else "ended with %d: %s" % (code, said)
    if kind == "i":
        good = code == 0 or code == -2 or (code == 130 and said)
        return None if good else "ended with %d: %s" % (code, said)
    if code < 0 or code >= 128 or code == 99:
        return "crashed with %d: %s" % (code, said[:2000])
    if code == 0:
        if verb.name not in TIMED | TALKS_OF_TIME and verb.out != reference[0]:
            return "success, but it printed something else"
        return None
    # A warning may have been right before; then one line says what failed, and one may be a hint.
    lines = [l for l in lines if not l.startswith("qsim: warning: ")]
    if not any(l.startswith("qsim: ") for l in lines):
        return "%d without a message: %s" % (code, said)
    if len(lines) > 2 and kind != "s":
        return "%d lines: %s" % (len(lines), said)
    if kind == "m" and "files that were written before this are complete" not in said and any(
            left.get(n) not in (None, OLD) for n in verb.outputs):
        return "nothing is said of the outputs, which are new: %s" % said
    if kind == "m" and (code != MEMORY or not re.search("memory|Cannot allocate", said)):
        return "exit code %d for want of memory: %s" % (code, said)
    if kind == "s" and code not in (IO, DATA, USAGE, MEMORY):
        return "exit code %d for a failing system call: %s" % (code, said)
    if kind == "t":
        return "exit code %d for want of threads: %s" % (code, said)
    return None


def looks_whole(name, data):
    ends = {".csv": b"\n", ".svg": b"</svg>", ".json": (b"}", b"]")}
    end = ends.get(os.path.splitext(name)[1], b"")
    return data.endswith(end) or data.strip().endswith(end)


def fail_verb(verb, kinds, times):
    faults, runs = [], 0
    for kind in kinds:
        event = "s" if kind in "ki" else kind
        code, count = verb.run(event, 1 << 40, 0, 5, False)
        if code == 77:
            print("%s: %s: this system traps no calls" % (verb.name, kind))
            continue
        reference = (verb.out, verb.files())
        if code != 0:
            return runs, ["undisturbed: exit code %d: %s" % (code, verb.err.decode()[:300])]
        step = max(1, count // times) if times else 1
        modes = {"k": ((0, 0),), "i": ((0, -2),), "s": ((0, 5), (0, 28), (1, 5))}.get(kind, ((0, 12), (1, 12)))
        for sticky, error in modes:
            # Others of each residue in each mode: together they are denser.
            for at in range(1 + (step // 2 if sticky else 0), count + 1, step):
                old = (at // step + sticky) % 2 == 1
                code, _ = verb.run(event, at, sticky, error, old)
                runs += 1
                fault = fault_of(verb, kind, sticky, code, old, reference)
                if fault:
                    how = "%s %d of %d%s" % (kind, at, count, " and all later" * sticky)
                    faults.append("%s (errno %d): %s" % (how, error, fault))
    return runs, faults


def main():
    tool, fixtures = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    kinds, times = sys.argv[3], int(sys.argv[4])
    bad = total = 0
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/made")
        prepare(folder + "/made", tool, fixtures)
        for name in sys.argv[5:] or VERBS:
            verb = Verb(name, tool, folder + "/made", folder)
            runs, faults = fail_verb(verb, kinds, times)
            verb.close()
            print("%s: %d failures, %d faults" % (name, runs, len(faults)), flush=True)
            for fault in faults[:20]:
                print("    " + fault)
            bad, total = bad + len(faults), total + runs
    print("%d failures injected, %d faults" % (total, bad))
    sys.exit(1 if bad or not total else 0)


main()
