# SPDX-License-Identifier: MIT
"""Each option of the verbs that quantize is there in C, in Python and in run-config: the table of docs/PYTHON.md has a
row for it, and each place that the row names in backquotes is tried. Usage: options.py SOURCE_ROOT QSIM (QSIM_LIBRARY set)."""

import glob
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile

root, tool = sys.argv[1:]
sys.path.insert(0, os.path.join(root, "tools", "python"))
try:
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


def table():
    """Rows of the table: option, and the cells for C, Python and run-config."""
    with open(os.path.join(root, "docs", "PYTHON.md"), encoding="utf-8") as f:
        part = f.read().split("## Options everywhere")[1].split("\n## ")[0]
    rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in part.splitlines() if line.startswith("| ")]
    found = {}
    for option, *cells in rows[1:]:
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
    print(f"{len(rows)} options, {len(bad)} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
