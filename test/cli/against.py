# SPDX-License-Identifier: MIT
"""qsim eval --against: every figure is computed here from the answers that qsim run writes.
Usage: against.py QSIM, in a folder with the fixtures."""
import json
import math
import subprocess
import sys

import numpy as np

SAMPLES = 7000  # shares of it are seldom binary fractions


def run(qsim, *args):
    return subprocess.run([qsim, *args], capture_output=True, text=True, check=False)


def answers(qsim, model):
    """The classes of each sample, best first; of equal scores the class of lower number is first."""
    assert run(qsim, "run", "-q", "-f", model, "-i", "x.npy", "-o", "y.npy").returncode == 0
    return np.argsort(-np.load("y.npy"), axis=1, kind="stable")


def mcnemar(b, c):
    tail = sum(math.comb(b + c, k) for k in range(min(b, c) + 1))
    return min(1.0, 2 * tail / 2 ** (b + c))


def error(p, n):
    return 100 * math.sqrt(p / 100 * (1 - p / 100) / n)


def expected(model, reference, labels):
    """The object "against", but for files and bounds, and top1 and its error of `model`."""
    n = len(labels)
    right, other = model[:, 0] == labels, reference[:, 0] == labels
    lost, won = int(np.sum(other & ~right)), int(np.sum(right & ~other))
    top1 = 100 * float(np.mean(other))
    difference = right.astype(float) - other
    return {
        "top1": top1, "top1_standard_error": error(top1, n), "top5": 100, "top5_standard_error": 0,
        "drop": -100 * float(np.mean(difference)),
        "standard_error": 100 * float(np.std(difference)) / math.sqrt(n),
        "only_against_right": lost, "only_file_right": won, "mcnemar_p": mcnemar(lost, won),
        "agreement": 100 * float(np.mean(model[:, 0] == reference[:, 0])),
        "per_class": [100 * float(np.mean(other[labels == c])) for c in range(3)],
    }, lost - won


def check_auto(qsim, data):
    """qsim auto meets a bound that its loss equals, also where the percentages differ by more."""
    def auto(n, bound):
        done = run(qsim, "auto", "mlp.onnx", "-d", data, "--limit", str(n), "-o", "a.onnx", "-f", "-q", "--bits", "8",
                   "--method", "percentile", "--percentile", "80", "--budget", "0.000001s", "--max-drop", repr(bound),
                   "--json")
        return done.returncode, json.loads(done.stdout)
    hard = wrong = 0
    for samples in range(60, 400, 10):
        trial = auto(samples, 0)[1]["trial"]
        n, plain = trial["samples"], trial["plain"]
        floats, share = (trial["float_top1"], plain["top1"]) if "," in data else (100, plain["agreement"])
        before, after = round(floats * n / 100), round(share * n / 100)
        bound = 100 * (before - after) / n
        if bound > 0 and 100 * before / n - 100 * after / n > bound:
            hard += 1
            code, got = auto(samples, bound)
            wrong += code != 0 or not got["met"]
    print("auto with %s: %d losses that equal their bound, %d wrong" % (data, hard, wrong))
    return wrong + (hard == 0)


def main():
    qsim = sys.argv[1]
    rng = np.random.default_rng(5)
    np.save("x.npy", rng.standard_normal((SAMPLES, 4)).astype(np.float32))
    assert run(qsim, "quantize", "-q", "-f", "mlp.onnx", "--mode", "weights", "--weights", "int4", "-o",
               "int4.onnx").returncode == 0
    floats, coarse = answers(qsim, "mlp.onnx"), answers(qsim, "int4.onnx")
    failed = 0
    for names, pair in ((("int4.onnx", "mlp.onnx"), (coarse, floats)),
                        (("mlp.onnx", "int4.onnx"), (floats, coarse))):
        labels = np.where(rng.random(SAMPLES) < 0.5, floats[:, 0], rng.integers(0, 3, SAMPLES))
        np.save("l.npy", labels.astype(np.int64))
        wanted, points = expected(*pair, labels)
        for bound in ([points * 100 / SAMPLES, (points - 0.5) * 100 / SAMPLES] if points > 0 else [0]):
            done = run(qsim, "eval", names[0], "--data", "x.npy,l.npy", "--against", names[1], "--max-drop",
                       repr(bound), "--json", "--batch", "7")
            got = json.loads(done.stdout)
            told = "qsim: %s: top-1 is %.4f points lower than that of %s, the bound is " % (
                names[0], 100 * points / SAMPLES, names[1])
            over = 100 * points / SAMPLES > bound
            wrong = [key for key in wanted if not np.allclose(got["against"][key], wanted[key], rtol=1e-6)]
            if not np.isclose(got["top1_standard_error"], error(got["top1"], SAMPLES), rtol=1e-6):
                wrong.append("top1_standard_error")
            if done.returncode != (3 if over else 0) or got["against"]["met"] == over:
                wrong.append("exit code %d" % done.returncode)
            if done.stderr.count("\n") != over or done.stderr.startswith(told) != over:
                wrong.append(done.stderr)
            if 0 in (points, wanted["only_against_right"], wanted["only_file_right"]):
                wrong.append("too few samples tell the models apart")
            print("%s against %s: %s" % (*names, ", ".join(wrong) or "ok"))
            failed += len(wrong)
    failed += check_auto(qsim, "x.npy,l.npy") + check_auto(qsim, "x.npy")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
