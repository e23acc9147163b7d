# SPDX-License-Identifier: MIT
"""Compares the texts that a notebook's cells printed with those that are stored in it; with --store, puts
them there, without what differs from run to run. Usage: notebooks.py [--store] STORED EXECUTED"""

import json
import sys

store = sys.argv[1] == "--store"
stored_path, executed_path = sys.argv[-2:]


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def clean(output):
    """An output as it is stored; warnings on stderr are none."""
    if output["output_type"] == "stream":
        return None if output["name"] == "stderr" else output
    output.pop("execution_count", None)
    return {**output, "metadata": {}, **({"execution_count": None} if output["output_type"] == "execute_result" else {})}


stored, executed = read(stored_path), read(executed_path)
bad = False
for number, (old, new) in enumerate(zip(stored["cells"], executed["cells"])):
    if old["cell_type"] != "code":
        continue
    outputs = [clean(o) for o in new["outputs"] if clean(o)]
    if store:
        old["outputs"] = outputs
    elif outputs != old["outputs"]:
        bad = True
        print(f"{stored_path}, cell {number}: stored\n{json.dumps(old['outputs'], indent=1, ensure_ascii=False)}\n"
              f"printed\n{json.dumps(outputs, indent=1, ensure_ascii=False)}")
if store:
    with open(stored_path, "w", encoding="utf-8") as f:
        f.write(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
sys.exit(1 if bad else 0)
