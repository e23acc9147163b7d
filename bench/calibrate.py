# SPDX-License-Identifier: MIT
"""What calibrating costs beside running: milliseconds of processor time a sample, one thread, the least of eight.

    QSIM_LIBRARY=build/lib/libqsim.so PYTHONPATH=tools/python python3 bench/calibrate.py MODEL.onnx...

Data is made up, of a model's own input shape; ReLU makes zeros of about half of it, as of real data.
"""
import sys
import time

import numpy as np
import qsim
import qsim._calibration


class NoProgress:
    """In place of a Python function that is called for each tensor, which would be counted, too."""
    hook = qsim._calibration._CalibrationOptions().progress

    def __init__(self, _=None):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def batch_of(model, count):
    shape = [d if isinstance(d, int) else None for d in model.inputs[0].shape]
    sizes = [count if shape[0] is None else shape[0]] + [d or 224 for d in shape[1:]]
    return np.random.default_rng(1).uniform(0, 1, sizes).astype(np.float32)


def least(calls, x):
    """Milliseconds a sample of each, taken in turns, since other work on the machine comes and goes."""
    times, repeats = [[] for _ in calls], max(1, 16 // len(x))
    for _ in range(9):
        for call, found in zip(calls, times):
            start = time.process_time()
            for _ in range(repeats):
                call(x)
            found.append(time.process_time() - start)
    return [min(found[1:]) / repeats / len(x) * 1e3 for found in times]


def main():
    qsim._calibration._Watch = NoProgress
    context = qsim.Context(threads=1)
    print("| network | batch | float run, ms | calibration, ms | ratio |\n|---|---|---|---|---|")
    for path in sys.argv[1:]:
        model = qsim.Model.load(path, context=context)
        for count in (1, 16, 64):
            x = batch_of(model, count)
            if len(x) != count:
                continue
            run, feed = least([qsim.Session(model).run, qsim.Calibration(model).feed], x)
            print(f"| {path.rsplit('/', 1)[-1][:-5]} | {count} | {run:.3f} | {feed:.3f} | {feed / run:.1f} |", flush=True)


if __name__ == "__main__":
    main()
