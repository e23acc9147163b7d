# SPDX-License-Identifier: MIT
"""What calibrating costs beside running: milliseconds a sample, one thread, the least of five.

    QSIM_LIBRARY=build/lib/libqsim.so PYTHONPATH=tools/python python3 bench/calibrate.py MODEL.onnx...

Data is made up, of a model's own input shape; ReLU makes zeros of about half of it, as of real data.
"""
import sys
import time

import numpy as np
import qsim


def batch_of(model, count):
    shape = [d if isinstance(d, int) else None for d in model.inputs[0].shape]
    sizes = [count if shape[0] is None else shape[0]] + [d or 224 for d in shape[1:]]
    return np.random.default_rng(1).uniform(0, 1, sizes).astype(np.float32)


def least(call, x, samples):
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(max(1, samples // len(x))):
            call(x)
        times.append(time.perf_counter() - start)
    return min(times) / max(1, samples // len(x)) / len(x) * 1e3


def main():
    context = qsim.Context(threads=1)
    print("| network | batch | float run, ms | calibration, ms | ratio |\n|---|---|---|---|---|")
    for path in sys.argv[1:]:
        model = qsim.Model.load(path, context=context)
        for count in (1, 8):
            x = batch_of(model, count)
            if len(x) != count:
                continue
            run = least(qsim.Session(model).run, x, 8)
            feed = least(qsim.Calibration(model).feed, x, 8)
            print(f"| {path.rsplit('/', 1)[-1][:-5]} | {count} | {run:.3f} | {feed:.3f} | {feed / run:.1f} |", flush=True)


if __name__ == "__main__":
    main()
