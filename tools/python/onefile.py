# SPDX-License-Identifier: MIT
"""Writes the package as one module, for those who copy a file: its modules one after the other,
without their imports of each other. Usage: onefile.py OUTPUT __init__.py MODULE.py..."""

import ast
import sys
import textwrap


def cut(lines, node):
    """Takes the lines of a statement away."""
    for i in range(node.lineno - 1, node.end_lineno):
        lines[i] = None


def split(path):
    """(docstring, imports of other packages, the rest) of a module."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    tree, lines, imports = ast.parse(text), text.split("\n"), []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            if any(alias.asname not in (None, alias.name) for alias in node.names):
                sys.exit(f"{path}:{node.lineno}: one file has one name for one thing")
            cut(lines, node)
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not getattr(node, "level", 0):
            imports.append(node)
            cut(lines, node)
    cut(lines, tree.body[0])
    rest = "\n".join(line for line in lines if line is not None and "SPDX" not in line)
    return ast.get_docstring(tree, clean=False), imports, rest.strip("\n")


def ordered(paths):
    """Modules so that each stands behind those that it imports while it is loaded."""
    names, done = {path.rsplit("/", 1)[-1][:-3]: path for path in paths}, []

    def visit(name):
        with open(names[name], encoding="utf-8") as f:
            for node in ast.parse(f.read()).body:
                if isinstance(node, ast.ImportFrom) and node.level and node.module not in done:
                    visit(node.module)
        done.append(name)

    for name in names:
        if name not in done:
            visit(name)
    return [names[name] for name in done]


def merged(imports):
    """Each module once, with all the names that are imported from it."""
    whole, names = set(), {}
    for node in imports:
        if isinstance(node, ast.Import):
            whole.add(ast.unparse(node))
        elif node.module != "__future__":
            names.setdefault(node.module, set()).update(map(ast.unparse, node.names))
    lines = sorted(whole)
    for module, which in sorted(names.items()):
        lines += textwrap.wrap(f"from {module} import ({', '.join(sorted(which))})", 98,
                               subsequent_indent="    ")
    return "\n".join(lines)


def main():
    output, front, *paths = sys.argv[1:]
    doc, imports, end = split(front)
    parts = []
    for path in ordered(paths):
        about, more, body = split(path)
        imports += more
        rule = "# ---- " + about.split("\n")[0].rstrip(".") + " "
        parts.append(f"{rule}{'-' * max(4, 98 - len(rule))}\n\n\n{body}")
    text = "\n\n\n".join([
        f'# SPDX-License-Identifier: MIT\n# Generated from the modules of tools/python/qsim.\n"""{doc}"""',
        "from __future__ import annotations\n\n" + merged(imports), *parts, end]) + "\n"
    compile(text, output, "exec")
    with open(output, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
