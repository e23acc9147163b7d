# SPDX-License-Identifier: MIT
"""What Python believes of the C interface, compared with the headers: each struct's size and offsets
as a compiler has them, each function's result and parameters, and the numbers behind words.

Usage: abi.py SOURCE_ROOT FOLDER_OF_QSIM CC... (QSIM_LIBRARY set)
"""

import ctypes as C
import os
import re
import subprocess
import sys
import tempfile

root, folder, *cc = sys.argv[1:]
sys.path.insert(0, folder)
import qsim  # noqa: E402
from qsim import _abi, _library, _words  # noqa: E402

# Functions that Python does not call, and why.
UNUSED = {
    "qsim_version": "version() is the same as text",
    "qsim_dtype_bits": "known here", "qsim_tensor_size": "numpy knows",
    "qsim_values_quantize": "arrays go through qsim_tensor_quantize",
    "qsim_values_dequantize": "arrays go through qsim_tensor_dequantize",
    "qsim_npy_header": "numpy.save", "qsim_tensor_convert": "ndarray.astype",
    "qsim_npz_open": "numpy.load", "qsim_npz_free": "numpy.load", "qsim_npz_count": "numpy.load",
    "qsim_npz_name": "numpy.load", "qsim_npz_array": "numpy.load", "qsim_npz_read": "numpy.load",
    "qsim_file_open": "open()", "qsim_file_data": "open()", "qsim_file_size": "open()",
    "qsim_file_close": "open()", "qsim_file_write": "open()",
    "qsim_builder_input": "the form with a text", "qsim_builder_output": "the form with a text",
    "qsim_builder_constant_as": "an array has type and shape",
    "qsim_package_sniff": "Model.load() does it",
    "qsim_run_set_timing": "Session.profile()", "qsim_grade_name": "known here",
    "qsim_model_pairs": "Verdict has the layers",
}

bad = []


def read_headers():
    text = ""
    for name in sorted(os.listdir(os.path.join(root, "include", "qsim"))):
        if name.endswith(".h"):
            with open(os.path.join(root, "include", "qsim", name), encoding="utf-8") as f:
                text += f.read()
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def structs():
    found = []
    for value in list(vars(_abi).values()) + list(vars(_library).values()):
        if isinstance(value, type) and issubclass(value, C.Structure) and "_c_" in vars(value):
            found.append(value)
    return sorted(set(found), key=lambda kind: kind._c_)


def check_layout():
    """A C program prints what the compiler made of each struct and field."""
    lines = []
    for kind in structs():
        lines.append(f'printf("{kind._c_} . %zu %zu\\n", sizeof({kind._c_}), (size_t)0);')
        for field, *_ in kind._fields_:
            lines.append(f'printf("{kind._c_} {field} %zu %zu\\n", offsetof({kind._c_}, {field}), '
                         f'sizeof((({kind._c_} *)0)->{field}));')
    program = ('#include <qsim/qsim.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n' +
               "\n".join(lines) + "\nreturn 0;\n}\n")
    with tempfile.TemporaryDirectory() as work:
        source, binary = os.path.join(work, "layout.c"), os.path.join(work, "layout")
        with open(source, "w", encoding="utf-8") as f:
            f.write(program)
        subprocess.run([*cc, "-std=c11", "-I", os.path.join(root, "include"), source, "-o", binary],
                       check=True)
        said = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    compiled = {tuple(line.split()[:2]): tuple(map(int, line.split()[2:]))
                for line in said.splitlines()}
    for kind in structs():
        if compiled[kind._c_, "."] != (C.sizeof(kind), 0):
            bad.append(f"{kind._c_}: {C.sizeof(kind)} bytes, in C {compiled[kind._c_, '.'][0]}")
        for field, *_ in kind._fields_:
            here = getattr(kind, field)
            if compiled[kind._c_, field] != (here.offset, here.size):
                bad.append(f"{kind._c_}.{field}: at {here.offset}, {here.size} bytes; in C "
                           f"{compiled[kind._c_, field]}")


def check_fields(text):
    """Every field of the header's structs is here, by its name."""
    for kind in structs():
        body = re.search(r"typedef struct \w+ \{([^}]*)\} " + kind._c_ + ";", text)
        if not body:
            bad.append(f"{kind._c_} is in no header")
            continue
        names = []
        for line in body.group(1).split(";"):
            line = re.sub(r"\[[^]]*\]", "", line)
            if "(*" in line:
                names.append(re.search(r"\(\*(\w+)\)", line).group(1))
            elif line.strip():
                names += [re.findall(r"\w+", part)[-1] for part in line.split(",")]
        if names != [field for field, *_ in kind._fields_]:
            bad.append(f"{kind._c_}: fields {names}, here {[f for f, *_ in kind._fields_]}")


SCALARS = {"int": C.c_int, "int32_t": C.c_int32, "int64_t": C.c_int64, "uint64_t": C.c_uint64,
           "uint32_t": C.c_uint32, "size_t": C.c_size_t, "float": C.c_float, "double": C.c_double,
           "void": None}
POINTED = {"char": C.c_char_p, "float": C.POINTER(C.c_float), "int32_t": C.POINTER(C.c_int32),
           "int64_t": C.POINTER(C.c_int64), "size_t": C.POINTER(C.c_size_t),
           "double": C.POINTER(C.c_double), "uint64_t": C.POINTER(C.c_uint64)}


def fits(declared, c_type):
    """Whether a ctypes type stands for a type of C."""
    c_type = re.sub(r"\bconst\b", "", c_type).strip()
    stars = c_type.count("*") + c_type.count("[")
    base = re.match(r"\w+", c_type).group()
    if base.endswith("_fn"):
        return declared is C.c_void_p or issubclass(declared, C._CFuncPtr)
    if stars == 0:
        return base in SCALARS and declared is SCALARS[base]
    if stars == 2:
        return declared in (C.POINTER(C.c_void_p), C.POINTER(C.c_char_p))
    known = {kind._c_: C.POINTER(kind) for kind in structs()}
    if base in known:
        return declared is known[base] or (declared is C.c_void_p and base != "qsim_error")
    if base in POINTED:
        return declared in (POINTED[base], C.c_void_p)
    return declared is C.c_void_p


def check_functions(text):
    found = {}
    for result, name, parameters in re.findall(r"QSIM_API\s+([\w\s*]+?)\s*\b(qsim_\w+)\(([^;]*)\);", text):
        found[name] = (result, [p.strip() for p in parameters.split(",") if p.strip() != "void"])
    for name, (result, parameters) in sorted(found.items()):
        if name not in _abi._FUNCTIONS:
            if name not in UNUSED:
                bad.append(f"{name}: declare it in _abi.py, or say in UNUSED why Python does not call it")
            continue
        here, *kinds = _abi._FUNCTIONS[name]
        types = [re.sub(r"\b(\w+)((\[\w*\])?)$", r"\2", p) for p in parameters]
        if len(kinds) != len(types):
            bad.append(f"{name}: {len(types)} parameters, here {len(kinds)}")
        elif not fits(here, result):
            bad.append(f"{name} returns {result}, here {here}")
        else:
            bad.extend(f"{name}: {p} is {k.__name__} here" for p, t, k in zip(parameters, types, kinds)
                       if not fits(k, t))
    bad.extend(f"{name} is in no header" for name in _abi._FUNCTIONS if name not in found)
    bad.extend(f"{name} is declared or gone: take it from UNUSED" for name in UNUSED
               if name in _abi._FUNCTIONS or name not in found)
    return len(found)


def check_numbers(text):
    numbers = {name: int(value) for name, value in re.findall(r"#define (QSIM_\w+)\s+(\d+)\b", text)}
    same = {"float32": "FLOAT", "float64": "DOUBLE"}
    tables = [("", {w: n for w, n in _words._DTYPES.items()}), ("METHOD_", _words._METHODS),
              ("LEVEL_", _words._LEVELS), ("FORMAT_", _words._FORMATS), ("MODE_", _words._MODES),
              ("ROLE_", _words._ROLES), ("RECIPE_", _words._KINDS),
              ("GRANULARITY_", _words._GRANULARITIES), ("ROUNDING_", _words._ROUNDINGS),
              ("ANSWER_", _words._ANSWERS), ("GOAL_", _words._GOALS), ("GRADE_", _words._GRADES),
              ("MEASURE_", _words._MEASURES), ("BIAS_CORRECTION_", _words._CORRECTIONS), ("RECIPE_", _words._ENTRY_ACTIONS)]
    for prefix, words in tables:
        for word, number in words.items():
            name = f"QSIM_{prefix}{same.get(word, word).upper().replace('-', '_')}"
            if numbers.get(name) != number:
                bad.append(f"{word!r} is {number}, {name} {numbers.get(name)}")
    for name, number in [("WEIGHT_CHANNEL_SYMMETRIC", _words._SCHEMES["channel"]),
                         ("WEIGHT_TENSOR_SYMMETRIC", _words._SCHEMES["tensor"]),
                         ("WEIGHT_TENSOR_ASYMMETRIC", _words._SCHEMES["tensor-asymmetric"]),
                         ("RULE_FLOAT", _words._ACTIONS["fp32"]),
                         ("RULE_INT8", _words._ACTIONS["int8"]), ("MAX_RANK", _abi._MAX_RANK)]:
        if numbers.get(f"QSIM_{name}") != number:
            bad.append(f"QSIM_{name} is {numbers.get(f'QSIM_{name}')}, here {number}")


text = read_headers()
check_layout()
check_fields(text)
functions = check_functions(text)
check_numbers(text)
for line in bad:
    print(f"abi: {line}")
print(f"abi: {len(structs())} structs, {functions} functions, {functions - len(UNUSED)} of them called; "
      f"qsim {qsim.__version__}")
sys.exit(1 if bad else 0)
