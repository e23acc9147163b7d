#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the operators of ONNX models, inner graphs and functions included, as a build's option takes them:

meson setup build -Doperators=$(python3 tools/operators_of.py model.onnx other.onnx)
"""
import mmap
import sys

# Numbers of fields in onnx.proto.
MODEL_GRAPH, MODEL_FUNCTION = 7, 25
GRAPH_NODE = 1
FUNCTION_NAME, FUNCTION_NODE, FUNCTION_DOMAIN = 1, 7, 10
NODE_TYPE, NODE_ATTRIBUTE, NODE_DOMAIN = 4, 5, 7
ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS = 6, 11


class Broken(Exception):
    pass


def varint(data, at, end):
    value = shift = 0
    while at < end and shift < 64:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
    raise Broken


def fields(data, message):
    """Yields (number, (begin, end)) of each field that has a length."""
    at, end = message
    while at < end:
        key, at = varint(data, at, end)
        size = {1: 8, 5: 4}.get(key & 7, 0)
        if key & 7 == 2:
            size, at = varint(data, at, end)
        elif key & 7 == 0:
            _, at = varint(data, at, end)
        elif not size:
            raise Broken
        if at + size > end:
            raise Broken
        if key & 7 == 2:
            yield key >> 3, (at, at + size)
        at += size


def inside(data, message, *numbers):
    return [span for number, span in fields(data, message) if number in numbers]


def text(data, message, number):
    spans = inside(data, message, number)
    return data[spans[-1][0] : spans[-1][1]].decode() if spans else ""


def label(domain, name):
    return name if domain in ("", "ai.onnx") else f"{domain}.{name}"


def operators(data, nodes):
    found = set()
    for node in nodes:
        found.add(label(text(data, node, NODE_DOMAIN), text(data, node, NODE_TYPE)))
        for attribute in inside(data, node, NODE_ATTRIBUTE):
            for graph in inside(data, attribute, ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS):
                found |= operators(data, inside(data, graph, GRAPH_NODE))
    return found


def operators_of(data):
    """Those of a model's bytes; what calls a function of the model is none."""
    whole = (0, len(data))
    found, functions = set(), set()
    for graph in inside(data, whole, MODEL_GRAPH):
        found |= operators(data, inside(data, graph, GRAPH_NODE))
    for function in inside(data, whole, MODEL_FUNCTION):
        found |= operators(data, inside(data, function, FUNCTION_NODE))
        functions.add(label(text(data, function, FUNCTION_DOMAIN), text(data, function, FUNCTION_NAME)))
    return found - functions


def main():
    found = set()
    for path in sys.argv[1:] or sys.exit(__doc__.strip()):
        try:
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                here = operators_of(data)
        except OSError as error:
            sys.exit(f"operators_of.py: {path}: {error.strerror}")
        except (Broken, ValueError):
            here = set()
        if not here:
            sys.exit(f"operators_of.py: {path} is no ONNX model")
        found |= here
    print(",".join(sorted(found)))


if __name__ == "__main__":
    main()
