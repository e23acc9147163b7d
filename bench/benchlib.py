# SPDX-License-Identifier: MIT
"""Workers in turns, tables and files: what the scripts of this folder share. Standard library only."""
import json
import os
import statistics
import subprocess
import time

SHARED = os.environ.get("QSIM_SHARED", os.path.join(os.path.dirname(__file__), "..", "..", "shared"))


class Refused(Exception):
    """An engine does not run a model; the text says why."""


class Worker:
    """A child process that holds one model on one engine and times runs on command."""

    def __init__(self, command, cpus):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True,
                                      preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        words = self.child.stdout.readline().split()
        if not words or words[0] != "ready":
            self.close()
            raise Refused(" ".join(words[1:]) or f"ended with {self.child.returncode}")
        self.load_us, self.first_us, self.peak_kb = float(words[1]), float(words[2]), int(words[3])

    def run(self, count):
        self.child.stdin.write(f"run {count}\n")
        self.child.stdin.flush()
        words = self.child.stdout.readline().split()
        if not words or words[0] == "refused":
            raise Refused(" ".join(words[1:]) or "the worker ended")
        return [float(w) for w in words]

    def settle(self, limit=0.5):
        """
        Until none of the worker's threads has run for a moment, at most `limit` seconds: an engine whose threads
        spin on after a run would hold the other one's CPUs.
        """
        end, before = time.monotonic() + limit, None
        while time.monotonic() < end:
            now = self.processor_time()
            if now == before:
                return
            before = now
            time.sleep(0.004)

    def processor_time(self):
        """Nanoseconds that all its threads have run."""
        total = 0
        folder = f"/proc/{self.child.pid}/task"
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        return total

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


def cpus_for(threads):
    """One thread: the last allowed CPU; more: the last ones."""
    return set(sorted(os.sched_getaffinity(0))[-threads:])


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def least(times, threads):
    """Of clock time the minimum; of processor time, which may err low in a virtual machine, the tenth percentile."""
    return sorted(times)[len(times) // 10 if threads == 1 else 0]


def duel(commands, threads, seconds, slice_us=10000.0):
    """
    Runs the commands' workers in turns for about `seconds` in all and returns one dictionary each:
    min_us, median_us, runs, spread (the rounds' upper quartile / the fastest round), load_us,
    first_us, peak_kb and, against the first that runs, ratio (median over rounds of its time / the
    first one's), ratio_low and ratio_high (quartiles of that), min_ratio (of the minima); or only
    refused.
    """
    results, lanes = [{} for _ in commands], []
    try:
        for result, command in zip(results, commands):
            try:
                lanes.append((result, Worker(command, cpus_for(threads)), []))
            except Refused as e:
                result["refused"] = str(e)
        turns(lanes, seconds, slice_us)
    finally:
        for _, worker, _ in lanes:
            worker.close()
    for result, worker, rounds in lanes:
        if "refused" in result or not rounds:
            continue
        times = [t for times in rounds for t in times]
        medians = [statistics.median(times) for times in rounds]
        result["spread"] = quartiles(medians)[2] / min(medians)
        result.update(min_us=least(times, threads), median_us=statistics.median(times), runs=len(times),
                      load_us=worker.load_us, first_us=worker.first_us, peak_kb=worker.peak_kb)
        base = lanes[0][2]
        ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(rounds, base)]
        result["ratio"], result["ratio_low"], result["ratio_high"] = quartiles(ratios)
        result["min_ratio"] = result["min_us"] / lanes[0][0]["min_us"]
    return results


def both(out, ort, model, *options):
    """The commands of two workers for a model: on qsim, and on ONNX Runtime."""
    worker = f"{out}/gcc/bench/worker"
    return [[worker, "qsim", model, *options], [worker, "ort", model, *options, f"library={ort}"]]


def beside_ort(out, ort, model, seconds, *options):
    """
    One thread of each in turns. Returns our result and ONNX Runtime's, as duel() has them, and its ratio as text;
    raises Refused, which names the engine.
    """
    ours, theirs = duel(both(out, ort, model, "threads=1", *options), 1, seconds)
    for name, result in (("qsim", ours), ("ONNX Runtime", theirs)):
        if "refused" in result:
            raise Refused(f"refused by {name}: {result['refused']}")
    return ours, theirs, f"{theirs['ratio']:.2f} ({theirs['ratio_low']:.2f}-{theirs['ratio_high']:.2f})"


def turns(lanes, seconds, slice_us):
    counts = []
    for result, worker, _ in lanes:
        once = min(worker.run(2))
        counts.append(max(1, min(20000, int(slice_us / max(once, 0.05)))))
        worker.run(counts[-1])
    end = time.monotonic() + seconds
    done = 0
    while lanes and (done < 5 or time.monotonic() < end):
        # The order changes, so that none always runs after the same neighbour.
        order = list(range(len(lanes)))
        for i in order if done % 2 == 0 else reversed(order):
            result, worker, rounds = lanes[i]
            rounds.append(worker.run(counts[i]))
            if len(lanes) > 1:
                worker.settle()
        done += 1


def starts(commands, count=3):
    """Fresh processes in turns: the least load time in us and the median peak in kB of each."""
    results = [{} for _ in commands]
    seen = [[] for _ in commands]
    for _ in range(count):
        for command, times in zip(commands, seen):
            try:
                worker = Worker(command, cpus_for(1))
                times.append((worker.load_us, worker.peak_kb))
                worker.close()
            except Refused:
                pass
    for result, times in zip(results, seen):
        if times:
            result["load_us"] = min(t[0] for t in times)
            result["peak_kb"] = statistics.median(t[1] for t in times)
    return results


def machine():
    """One line: the CPU, how many of it, and what else ran."""
    name = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    load = os.getloadavg()[0]
    return f"{name}, {len(os.sched_getaffinity(0))} CPUs allowed, load average {load:.1f} at the start"


def tile_load(folder):
    """
    Nanoseconds of loading a tile of AMX now, None without AMX: virtual machines swing between two speeds of it, so
    that figures of AMX need this one beside them.
    """
    program = f"{folder}/gcc/test/kernel/checkkernel"
    if not os.path.exists(program):
        return None
    done = subprocess.run([program, "--tile-load"], stdout=subprocess.PIPE, text=True, check=False)
    return float(done.stdout) if done.stdout else None


class Report:
    """Prints Markdown as it comes and leaves NAME.md and NAME.json behind."""

    def __init__(self, folder, name, title):
        self.path = os.path.join(folder, name)
        self.lines, self.data = [], {"machine": machine()}
        self.folder, self.tile = folder, tile_load(folder)
        self.text(f"## {title}", "", self.data["machine"] + ".", "")

    def text(self, *lines):
        for line in lines:
            self.lines.append(line)
            print(line, flush=True)

    def table_head(self, *columns):
        self.text("| " + " | ".join(columns) + " |",
                  "|" + "|".join("---" if i == 0 else "---:" for i in range(len(columns))) + "|")

    def row(self, *cells):
        self.text("| " + " | ".join(str(c) for c in cells) + " |")

    def save(self):
        if self.tile:
            now = tile_load(self.folder)
            self.data["tile_load_ns"] = [self.tile, now]
            self.text("", f"A tile of AMX was loaded in {self.tile:.1f} ns before these figures, in {now:.1f} after them.")
        with open(self.path + ".md", "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines) + "\n")
        with open(self.path + ".json", "w", encoding="utf-8") as f:
            json.dump(self.data, f, indent=1, sort_keys=True)
            f.write("\n")
