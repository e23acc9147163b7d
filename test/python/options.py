# SPDX-License-Identifier: MIT
"""Each option of the verbs that quantize is there in C, in Python and in run-config: the table of docs/PYTHON.md has a
row for it, and each place that the row names in backquotes is tried. So is each row of its table of ONNX Runtime's
quantizer, in Python and by the command: the models have the same bytes.
Usage: options.py SOURCE_ROOT QSIM (QSIM_LIBRARY set)."""

import glob
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

root, tool = sys.argv[1:]
sys.path.insert(0, os.path.join(root, "tools", "python"))
try:
    import numpy as np
    import qsim
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

# Verbs, and the passes of a configuration that take their options; calibrate and sweep have none.
VERBS = {"quantize": "QsimQuantize", "auto": "QsimAuto", "sensitivity": "QsimSensitivity", "sweep": None, "calibrate": None}
# Of all verbs: the context's, or about what is printed and replaced.
COMMON = {"force", "threads", "isa", "memory", "time", "json", "quiet", "verbose", "help", "version"}
# Choices of an option that are no words of quantize(), but searches, which the table names.
SEARCHED = {"method": {"auto"}}

bad = []


def wrong(what):
    bad.append(what)
    print(f"BAD {what}")


def options_of(verb):
    """Names of a verb's options, and the choices of each."""
    text = subprocess.run([tool, verb, "--help"], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        match = re.match(r" +(?:-\w, )?--([\w-]+)", line)
        if match and match[1] not in COMMON:
            choices = re.search(r"one of (\S+)$", line)
            found[match[1]] = choices[1].split("|") if choices else []
    return found


def rows_under(heading):
    """The cells of a table's rows, without its heads."""
    with open(os.path.join(root, "docs", "PYTHON.md"), encoding="utf-8") as f:
        part = f.read().split(heading + "\n")[1].split("\n## ")[0]
    return [[c.strip() for c in line.strip("|").split(" | ")] for line in part.splitlines() if line.startswith("| ")][1:]


def table():
    """Rows of the table: option, and the cells for C, Python and run-config."""
    found = {}
    for option, *cells in rows_under("## Options everywhere"):
        if option in found or len(cells) != 3 or not all(cells):
            wrong(f"the row of '{option}'")
        found[option] = cells
    return found


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def try_c(option, cell, headers):
    for place in quoted(cell):
        if place.startswith("qsim "):
            continue
        for word in place.split("."):
            if not re.search(rf"\b{word}\b", headers):
                wrong(f"{option}: no '{word}' in include/qsim")


def try_python(option, cell, choices):
    for place in quoted(cell):
        match = re.match(r'([\w.]+)\((?:(\w+)=|"(\w+)")?\)$', place)
        if not match:
            wrong(f"{option}: '{place}' is no call")
            continue
        name, argument, method = match.groups()
        thing = qsim
        for part in name.split("."):
            thing = getattr(thing, part, None)
        if not callable(thing):
            wrong(f"{option}: no qsim.{name}")
            continue
        if method and method not in qsim.search_methods():
            wrong(f"{option}: no search '{method}'")
        if not argument:
            continue
        if name == "quantize":
            known = {**inspect.signature(qsim.Model.quantize).parameters, **qsim.QUANTIZE_OPTIONS}
            words = qsim.QUANTIZE_OPTIONS.get(argument)
            if isinstance(words, list) and words[0] not in (True, False):
                for choice in set(choices) - set(words) - SEARCHED.get(option, set()):
                    wrong(f"{option}: quantize({argument}=) has no '{choice}'")
        else:
            known = inspect.signature(thing).parameters
        if argument not in known:
            wrong(f"{option}: {name}() has no {argument}=")


def commands(kind, settings):
    """The plan of run-config with the command that it makes of a pass, or "", and what is wrong."""
    config = {"input_model": {"type": "OnnxModel", "model_path": "m.onnx"}, "passes": {"p": {"type": kind, **settings}}}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump(config, f)
        f.flush()
        done = subprocess.run([tool, "run-config", "--dry-run", f.name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else "", done.stderr.strip()


def try_config(option, cell, verbs):
    """`verbs`: those that have the option, and its choices there, each of which is tried."""
    for place in quoted(cell):
        if place.startswith("qsim ") or not place.startswith('"'):
            continue
        settings = json.loads("{" + place + "}")
        tried = 0
        for verb, choices in verbs.items():
            kind = VERBS[verb]
            # A search's own settings go without the search where the verb is one.
            own = {k: v for k, v in settings.items()
                   if k in ("data_config", "bias_correction") or k.replace("_", "-") in options_of(verb)}
            if not kind:
                continue
            for choice in [None, *choices]:
                key = option.replace("-", "_")
                given = own if choice is None else {**own, key: choice}
                if choice is not None and key not in own:
                    continue
                (got, why), want = commands(kind, given), f" --{option}" + (f" {choice}" if choice else "")
                tried += 1
                if want not in got:
                    wrong(f"{option}: {kind} {json.dumps(given)} makes no '{want.strip()}'; {why}")
        if not tried:
            wrong(f"{option}: no pass tries {place}")


def small_network():
    """A convolution and two products, of names that the table uses."""
    rng = np.random.default_rng(5)
    b = qsim.Builder("small").input("x", "float[N,1,8,8]")
    for name, shape in (("w", (4, 1, 3, 3)), ("f", (144, 32)), ("g", (32, 64)), ("h", (64, 5))):
        b.constant(name, rng.normal(size=shape).astype(np.float32))
    b.node("Conv", "x,w", "c", name="conv").node("Relu", "c", "r").node("Flatten", "r", "flat")
    b.node("MatMul", "flat,f", "f1", name="fc1").node("Relu", "f1", "r1")
    b.node("MatMul", "r1,g", "g1", name="fc2").node("Relu", "g1", "r2")
    return b.node("MatMul", "r2,h", "y", name="fc3").output("y").finish(), rng.random((64, 1, 8, 8), np.float32)


def try_elsewhere():
    """Each row of the table of ONNX Runtime's quantizer whose options stand alone; the number of them."""
    model, x = small_network()
    plain, tried = model.quantize(data=x).dumps(), 0
    with tempfile.TemporaryDirectory() as folder:
        at = {name: os.path.join(folder, name) for name in ("m.onnx", "m.qcal", "q.onnx")}
        model.save(at["m.onnx"])
        calibration = qsim.Calibration(model).feed(x)
        calibration.save(at["m.qcal"])
        for there, python, shell in rows_under("### From ONNX Runtime's quantizer"):
            given = re.match(r"`([a-z_]+=.*?)`(, the default)?$", python)
            options = re.match(r"`(--.*)`$", shell)
            if not given or not options or given[1].endswith("="):
                continue
            keywords = eval(f"dict({given[1]})")  # pylint: disable=eval-used
            known = [] if keywords.get("mode") else ["--calibration", at["m.qcal"]]
            here = model.quantize(calibration if known else None, **keywords).dumps()
            command = [tool, "quantize", at["m.onnx"], *known, *shlex.split(options[1]), "-q", "-f", "-o", at["q.onnx"]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            tried += 1
            if done.returncode:
                wrong(f"{there}: {shell}: {done.stderr.strip()}")
                continue
            with open(at["q.onnx"], "rb") as f:
                if f.read() != here:
                    wrong(f"{there}: Python and the command make different models")
            if here == plain and "the default" not in python:
                wrong(f"{there}: {python} changes nothing")
    return tried


def main():
    headers = "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(root, "include/qsim/*.h")))
    options, rows = {verb: options_of(verb) for verb in VERBS}, table()
    every = {name for found in options.values() for name in found}
    for option in sorted(every - set(rows)):
        wrong(f"--{option}: no row in the table of docs/PYTHON.md")
    for option in sorted(set(rows) - every):
        wrong(f"'{option}' is in the table, and an option of no verb")
    for option, (c, python, config) in rows.items():
        verbs = {verb: found[option] for verb, found in options.items() if option in found}
        try_c(option, c, headers)
        try_python(option, python, sorted({x for choices in verbs.values() for x in choices}))
        try_config(option, config, verbs)
    elsewhere = try_elsewhere()
    if elsewhere < 17:
        wrong(f"only {elsewhere} rows of ONNX Runtime's quantizer are tried")
    print(f"{len(rows)} options, {elsewhere} of ONNX Runtime's quantizer, {len(bad)} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
