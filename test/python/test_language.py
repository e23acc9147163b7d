# SPDX-License-Identifier: MIT
"""Every form of the shared language models: a prompt, then single steps with the cache.

Ids are those of a float64 reference. Its logits are met within 1e-4; at accuracy level 4 activations
that lie at a rounding tie may fall either way, so there ids alone count. Usage:
test_language.py FOLDER_OF_QSIM FOLDER_OF_MODELS
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import qsim  # noqa: E402

STEPS = 8
ROUNDED = ("genai-int4/model.onnx", "int4-asym.onnx", "int4-head8.onnx", "int4-interleaved.onnx")


def feed(model, ids, position, past):
    """Inputs of a step: `ids` behind `position` tokens that `past` holds."""
    one = {"input_ids": np.array([ids], np.int64),
           "attention_mask": np.ones((1, position + len(ids)), np.int64),
           "position_ids": np.arange(position, position + len(ids), dtype=np.int64)[None]}
    for v in model.inputs:
        if v.name in one:
            yield one[v.name]
        elif past:
            yield past[v.name.replace("past_key_values", "present")]
        else:
            yield np.zeros((1, v.shape[1], 0, v.shape[3]), np.float32)


def check(path, prompts, reference, rounded):
    model = qsim.Model.load(path)
    session = qsim.Session(model)
    names = [v.name for v in model.outputs]
    row = 0
    for prompt in prompts:
        ids, position, past, made = list(prompt["prompt"]), 0, None, []
        for step in range(STEPS):
            past = dict(zip(names, session.run(*feed(model, ids, position, past))))
            logits = past.pop("logits")[0]
            if step == 0:
                away = float(np.abs(logits - reference[row:row + len(ids)]).max())
                if away > (1.0 if rounded else 1e-4):
                    return f"logits are {away} away"
                row += len(ids)
            position += len(ids)
            ids = [int(logits[-1].argmax())]
            made += ids
        if made != prompt["tokens"][:STEPS]:
            return f"ids {made}, expected {prompt['tokens'][:STEPS]}"
    return None


def main():
    failed = checked = 0
    for folder in sorted(os.listdir(sys.argv[2])):
        at = os.path.join(sys.argv[2], folder)
        if not os.path.exists(os.path.join(at, "golden.json")):
            continue
        with open(os.path.join(at, "golden.json"), encoding="utf-8") as f:
            golden = json.load(f)
        for name, prompts in golden.items():
            if not name.endswith(".onnx"):
                continue
            file = name.replace("/model.onnx", "").replace(".onnx", "") + ".logits.npy"
            reference = np.load(os.path.join(at, file))
            why = check(os.path.join(at, name), prompts, reference, name in ROUNDED)
            checked += 1
            failed += why is not None
            if why:
                print(f"{folder}/{name}: {why}")
    print(f"{checked} models, {failed} failed")
    return 1 if failed or checked < 23 else 0


sys.exit(main())
