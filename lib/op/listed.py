#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds the rows of a build with -Doperators: those of the list, and of all that the library makes of them.

What code makes is read from its source: each name of an operator that it spells, except where one of READERS
compares with it. A file with rows makes names for these rows, a function of another file of lib/op for the files
that call it, and any other file for every model, unless names.txt says of which operators alone.

Usage: listed.py HEADER QUANTIZER OPERATOR..., where QUANTIZER is 0 in a build without it. Writes HEADER, which
listed.h reads. An OPERATOR is Conv, or com.microsoft.FusedConv.
"""
import pathlib
import re
import sys

READERS = set(
    "core_is is_quantizing left_operand only_producer only_reader producer_of qs_node_is qs_node_is_onnx"
    " qs_pass_producer qs_pass_reader qs_same strcmp".split()
)
DOMAINS = {"ONNX": "", "MICROSOFT": "com.microsoft", "QSIM": "qsim"}
ROW = re.compile(r'QS_OP\((\w+),(?:(?!QS_OP)[^;])*?\.name = "(\w+)"[^;]*|^[A-Z_]+\((\w+), "(\w+)"[^;]*', re.M)


def called(text, at):
    """The name of the function whose argument text[at] is."""
    depth = 0
    while at > 0 and depth <= 0:
        at -= 1
        depth += (text[at] == "(") - (text[at] == ")")
    return re.search(r"\w*$", text[:at])[0]


class Library:
    def __init__(self, lib, quantizer):
        self.rows = {}  # id: (domain, name)
        self.home = {}  # id: file
        self.only_of = {}  # (file, name): sets of operators, one of which has to be there
        self.floats = {}  # name: that of the operator on floats, which a conversion makes
        self.quantizer = quantizer
        self.read_table((lib / "op/operators.c").read_text())
        texts = {path.relative_to(lib).as_posix(): path.read_text() for path in sorted(lib.rglob("*.c"))}
        texts = {
            file: self.read_rows(file, re.sub(r"/\*.*?\*/", "", text, flags=re.S))
            for file, text in texts.items()
            if file != "op/operators.c" and (quantizer or not file.startswith("ptq/"))
        }
        if lost := self.rows.keys() - self.home.keys():
            sys.exit("listed.py finds no definition of " + ", ".join(sorted(lost)))
        self.names = {name for _, name in self.rows.values()}
        self.bodies = {}  # function of a file of lib/op without rows: its text
        rest = {file: self.read_functions(file, text) for file, text in texts.items()}
        self.made = {file: self.spelled(text) | self.made_by_calls(text) for file, text in rest.items()}
        self.read_conditions((lib / "op/names.txt").read_text())

    def read_table(self, text):
        for key, domain in DOMAINS.items():
            block = re.search(r"#define OPERATORS_%s\(X\)((?:.*\\\n)*.*)" % key, text)[1]
            self.rows |= {row: (domain, "") for row in re.findall(r"X\((\w+)\)", block)}

    def read_rows(self, file, text):
        """Enters a file's rows; returns the rest of its text."""

        def enter(match):
            row, name = match[1] or match[3], match[2] or match[4]
            if row not in self.rows:
                return match[0]
            self.rows[row] = (self.rows[row][0], name)
            self.home[row] = file
            if prefix := re.search(r"\.prefix = (\d)", match[0]):
                self.floats[name] = name[int(prefix[1]) :]
            return ""

        return ROW.sub(enter, text) if file.startswith("op/") else text

    def spelled(self, text):
        found = re.finditer(r'"([A-Za-z0-9|]+)"', text)
        words = (word for match in found if called(text, match.start()) not in READERS for word in match[1].split("|"))
        return self.names.intersection(words)

    def read_functions(self, file, text):
        """Enters the functions that other files can call; returns the rest of the text."""

        def enter(match):
            self.bodies[match[1]] = match[0][match.start(2) - match.start() :]
            return ""

        if not file.startswith("op/") or file in self.home.values():
            return text
        return re.sub(r"^(?!static)\w[^;{]*?\b(qs_\w+)\(([^;{]*\) \{\n.*?^\})", enter, text, flags=re.M | re.S)

    def made_by_calls(self, text):
        found, new = set(), self.bodies.keys() & set(re.findall(r"\w+", text))
        while new:
            found |= new
            new = {name for each in new for name in self.bodies.keys() & set(re.findall(r"\w+", self.bodies[each]))} - found
        return set().union(*(self.spelled(self.bodies[each]) for each in found))

    def read_conditions(self, text):
        for line in text.splitlines():
            makes, _, of = line.split("#")[0].partition(" of ")
            file, *names = makes.split() or [""]
            for name in names if of else []:
                self.only_of[file, name] = [set(both.split("+")) for both in of.split()]

    def row_keys(self, name):
        """What a name that code spells may be: com.microsoft's only if ai.onnx has none."""
        domains = {domain for domain, each in self.rows.values() if each == name}
        keys = {(domain != "com.microsoft", name) for domain in domains}
        return keys - {(False, name)} if "" in domains else keys

    def brought_by(self, kept):
        """What operators that are kept bring; a row of qsim comes with that of ai.onnx of its name."""
        names = {name for _, name in kept}
        homes = {self.home[row] for row in self.kept_rows(kept)}
        brought = {self.floats.get(name, name) for name in names} if self.quantizer else set(names)
        for file, made in self.made.items():
            for name in made if file in homes or file not in self.home.values() else ():
                of = self.only_of.get((file, name))
                if not of or any(both <= names for both in of):
                    brought.add(name)
        return set().union(*map(self.row_keys, brought))

    def kept_rows(self, kept):
        return [row for row, (domain, name) in self.rows.items() if (domain != "com.microsoft", name) in kept]

    def public(self):
        """The operators that files may have, by row."""
        rows = {row: key for row, key in self.rows.items() if key[0] != "qsim"}
        return {row: f"{domain}.{name}" if domain else name for row, (domain, name) in rows.items()}

    def build(self, operators):
        """The rows of a build for files with these operators."""
        listed = [row for row, name in self.public().items() if name in operators]
        kept = {(self.rows[row][0] != "com.microsoft", self.rows[row][1]) for row in listed}
        while not (brought := self.brought_by(kept)) <= kept:
            kept |= brought
        return self.kept_rows(kept)


def main():
    header, quantizer, *operators = sys.argv[1:]
    library = Library(pathlib.Path(__file__).resolve().parents[1], quantizer != "0")
    public = library.public()
    if unknown := set(operators) - set(public.values()):
        sys.exit("-Doperators: libqsim has no " + ", ".join(sorted(unknown)))
    kept = library.build(operators)
    left = sorted({name for row, name in public.items() if row not in kept})
    lines = [f"#define QS_LISTED_{row} , 1" for row in kept]
    lines += ["#define QS_LEFT_OUT \\"] + [f'    "{name}\\0" \\' for name in left] + ['    ""']
    pathlib.Path(header).write_text("/* Written by lib/op/listed.py. */\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
