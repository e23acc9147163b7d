# SPDX-License-Identifier: MIT
"""What this core can do at most, from the program `limits`."""
import subprocess

from benchlib import cpus_for


def output(command):
    pin = ["taskset", "-c", str(max(cpus_for(1)))]
    done = subprocess.run(pin + command, stdout=subprocess.PIPE, text=True, check=False)
    return [line.split("\t") for line in done.stdout.splitlines()]


def measure_limits(out):
    """{(what, which): GMAC/s or GB/s} of this core."""
    limits = {}
    for kind, which, value in output([f"{out}/gcc/bench/limits"]):
        limits[(kind, which)] = float(value)
    return limits


def best_of(a, b):
    """Of two measurements, before and after what they limit."""
    return {k: max(a.get(k, 0.0), b.get(k, 0.0)) for k in a.keys() | b.keys()}
