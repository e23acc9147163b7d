# SPDX-License-Identifier: MIT
"""Ctrl-C on a terminal while a progress bar is shown: the bar goes, the exit code is 130, one line tells of it,
and partial results that are of use are kept. Usage: interrupt.py QSIM FOLDER_OF_FIXTURES"""
import csv
import io
import os
import pty
import re
import select
import signal
import sys
import time

import numpy as np

LIMIT = 300  # seconds, on a busy machine


def run(args, wanted):
    """Presses Ctrl-C once `wanted` is on the terminal. Exit code and all that was written."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(args[0], args)
    out, pressed, start = b"", False, time.monotonic()
    while True:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                more = os.read(fd, 65536)
            except OSError:
                break
            if not more:
                break
            out += more
        if not pressed and wanted in out:
            os.write(fd, b"\x03")
            pressed = True
        if time.monotonic() - start > LIMIT:
            os.kill(pid, signal.SIGKILL)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode()


def screen(text):
    """Lines as a terminal shows them in the end: \\r goes back, ESC [ K clears what is behind."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        shown, at = "", 0
        for part in re.split(r"(\r|\x1b\[K)", line):
            if part == "\r":
                at = 0
            elif part == "\x1b[K":
                shown = shown[:at]
            else:
                shown = shown[:at] + part + shown[at + len(part):]
                at += len(part)
        lines.append(shown)
    return lines


def main():
    qsim = sys.argv[1]
    os.chdir(sys.argv[2])
    rng = np.random.default_rng(1)
    np.lib.format.open_memmap("many.npy", "w+", np.float32, (20000000, 3))  # a file with holes
    np.lib.format.open_memmap("labels.npy", "w+", np.uint8, (20000000,))
    np.save("few.npy", rng.standard_normal((300000, 4)).astype(np.float32))
    endless = ["-d", "random", "--limit", "2000000000"]
    cases = {
        "eval": (["eval", "id.onnx", "-d", "many.npy,labels.npy", "--batch", "1"], b"evaluating",
                 r"id\.onnx: interrupted; the figures are of \d+ of 20000000 samples"),
        "eval against": (["eval", "id.onnx", "-d", "many.npy,labels.npy", "--batch", "1", "--against", "blind.onnx"],
                         b"evaluating", r"id\.onnx: interrupted; the figures are of \d+ of 20000000 samples"),
        "calibrate": (["calibrate", "mlp.onnx", "-o", "m.qcal", *endless], b"calibrating",
                      r"mlp\.onnx: interrupted after \d+ samples"),
        "quantize": (["quantize", "mlp.onnx", "-o", "q.onnx", *endless], b"calibrating",
                     r"mlp\.onnx: interrupted after \d+ samples"),
        "compare": (["compare", "mlp.onnx", "mlp.onnx", *endless], b"comparing", r"mlp\.onnx: interrupted"),
        "sweep": (["sweep", "mlp.onnx", *endless], b"calibrating", r"mlp\.onnx: interrupted after \d+ samples"),
        "sweep, later": (["sweep", "mlp.onnx", "-d", "few.npy", "--limit", "64", "--held-out", "299000", "--batch", "1",
                          "--csv", "s.csv"], b"] ", r"mlp\.onnx: interrupted; the table has \d+ of \d+ combinations"),
    }
    failed = 0
    for name, (args, wanted, told) in cases.items():
        code, text = run([qsim, *args], wanted)
        lines = screen(text)
        problems = []
        if code != 130:
            problems.append("exit code %d" % code)
        if any(re.search(r"\[[#-]{30}\]", line) for line in lines):
            problems.append("a bar is left")
        if len([line for line in lines if re.fullmatch("qsim: " + told, line)]) != 1:
            problems.append("not told")
        if sum("interrupted" in line or "cancelled" in line for line in lines) != 1:
            problems.append("told more than once")
        if name.startswith("eval") and not any(re.match(r"id\.onnx: \d+ samples, top-1 ", line) for line in lines):
            problems.append("no figures")
        if name == "calibrate" and not (os.path.exists("m.qcal") and "holds the first" in text and
                                         "this command with --skip " in text):
            problems.append("the calibration is lost")
        if name == "quantize" and os.path.exists("q.onnx"):
            problems.append("a file is left")
        if name == "sweep" and "| tensor" in text:
            problems.append("combinations that were not tried are shown")
        if name == "sweep, later":
            counts = re.search(r"the table has (\d+) of (\d+)", text)
            with open("s.csv", encoding="utf-8") as f:
                rows = len(list(csv.reader(io.StringIO(f.read())))) - 1
            if not counts or not 0 < int(counts[1]) == rows < int(counts[2]):
                problems.append("the table and what is told of it differ")
        print("%s: %s" % (name, ", ".join(problems) or "ok"), flush=True)
        if problems:
            failed = 1
            print("\n".join("    " + line for line in lines[-12:]))
    return failed


if __name__ == "__main__":
    sys.exit(main())
