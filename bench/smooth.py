# SPDX-License-Identifier: MIT
"""What smoothing brings to language models: KL to the float model and agreement with it, each token a row.
Texts are drawn from the model itself, 24 to calibrate and to search with, 24 others to judge.

    QSIM_LIBRARY=... PYTHONPATH=tools/python python3 bench/smooth.py [MODEL...]
"""
import os
import sys

import numpy as np

import qsim
from benchlib import SHARED

NETS = [("stories260k/fp32", 64), ("tinystories656k/fp32", 64), ("tinystories656k/std23", 64), ("babyllama105/fp32", 96)]
START = 1  # the token that texts begin with
TEXTS, BATCH = 48, 4


def inputs(model, ids):
    """A model's inputs for whole texts: nothing of the past."""
    rows, length = ids.shape
    places = np.broadcast_to(np.arange(length), ids.shape)
    known = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": places}
    return {i.name: np.ascontiguousarray(known[i.name], np.int64) if i.name in known else
            np.zeros((rows, i.shape[1], 0, i.shape[3]), np.float32) for i in model.inputs}


def draw(model, length):
    random, ids = np.random.default_rng(0), np.full((TEXTS, 1), START)
    with qsim.Session(model) as session:
        while ids.shape[1] < length:
            logits = np.array(session.run(inputs(model, ids))[0])[:, -1].astype(np.float64)
            p = np.exp(logits - logits.max(-1, keepdims=True))
            chosen = (random.random((TEXTS, 1)) > (p / p.sum(-1, keepdims=True)).cumsum(1)).sum(1, keepdims=True)
            ids = np.concatenate([ids, chosen.clip(0, logits.shape[1] - 1)], 1)
    return ids


def logits(model, batches):
    with qsim.Session(model) as session:
        found = [np.array(session.run(x)[0]) for x in batches]
    return [y.reshape(-1, y.shape[-1]) for y in found]


def judge(name, length):
    model = qsim.Model.load(os.path.join(SHARED, "llm", name + ".onnx"))
    ids = draw(model, length)
    batches = [inputs(model, ids[i:i + BATCH]) for i in range(0, TEXTS, BATCH)]
    half = len(batches) // 2
    calibration = qsim.Calibration(model).feed_all(batches[:half])
    wanted, cells = logits(model, batches[half:]), []
    for options in ({}, {"smooth": True}, {"method": "mse"}, {"mode": "dynamic"}, {"mode": "weights"}):
        if options.pop("smooth", False):
            options["recipe"] = model.search(calibration, "smooth", inputs=batches[:half]).recipe
        sums = qsim.Divergence()
        for a, b in zip(wanted, logits(model.quantize(calibration, **options), batches[half:])):
            sums.add(a, b)
        cells.append("%.5f (%.1f)" % (sums.loss, sums.agreement))
    print("| " + name + " | " + " | ".join(cells) + " |", flush=True)


def main():
    print("| KL (agreement, %) | minmax | smoothed | mse | dynamic | weights |\n|---|---|---|---|---|---|")
    for name, length in NETS:
        if not sys.argv[1:] or name in sys.argv[1:]:
            judge(name, length)


if __name__ == "__main__":
    main()
