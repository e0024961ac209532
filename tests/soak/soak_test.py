#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of cuts while processes, executables, JIT code and Python functions come and go. TAP on standard output.

    soak_test.py SOAK CHURN [--cuts N] [--cut-ms MS] [--executables N] [--memory MB] [--keep FILE]

SOAK (soak.c) records and compares each cut with what the kernel counted; this starts the churn and judges whether what
the recorder takes stays flat: memory, maps, descriptors, children. It goes on until there were so many different executables,
or three times as many cuts. A long run (1,000 cuts or more) must be flat after its first
tenth; in a short one everything still grows to its size, and only what is out of all proportion is a failure.
Needs root and BPF.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import guard
import tap
from tap import check

LONG = 1000  # cuts
MIB = 1 << 20

PYTHON = """
import time
n = 0
while True:
    scope = {}
    exec("def made_%d(n):\\n    s = 0\\n    for i in range(n):\\n        s += i\\n    return s\\n" % n, scope)
    scope["made_%d" % n](30000)
    n += 1
    time.sleep(0.005)
"""


def churn(program, folder):
    commands = [[program, "executables", folder], [program, "processes"], [program, "jit"],
                [sys.executable, "-S", "-c", PYTHON]]
    return [subprocess.Popen(command, stdin=subprocess.DEVNULL) for command in commands]


def last_executable(folder):
    """How many different ones have been made: each has its number, and is there while it runs."""
    for _ in range(1000):
        numbers = [int(name.split("-")[1]) for name in os.listdir(folder) if name.startswith("program-")]
        if numbers:
            return max(numbers)
        time.sleep(0.01)
    return 0


def soak(options):
    """The cuts, as dictionaries; the other lines; how many executables there were; the exit status and messages."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, open(options.keep or os.path.join(folder, "lines"), "w+",
                                                                     encoding="utf-8") as kept:
        loads = churn(options.churn, folder)
        try:
            with open(os.path.join(folder, "errors"), "w+", encoding="utf-8") as errors:
                recorder = subprocess.Popen([options.soak, str(options.cuts), str(options.cut_ms), str(options.memory), "97"],
                                            stdin=subprocess.PIPE, stdout=kept, stderr=errors, text=True,
                                            env=dict(os.environ, XDG_CACHE_HOME=folder))
                while recorder.poll() is None and last_executable(folder) < options.executables:
                    time.sleep(0.2)
                recorder.stdin.close()  # it may end
                recorder.wait()
                errors.seek(0)
                messages = errors.read()
            executables = last_executable(folder)
            alive = [load.poll() is None for load in loads]
        finally:
            for load in loads:
                load.kill()
                load.wait()
        kept.seek(0)
        lines = kept.read().splitlines()
    check(all(alive), "some of the churn ended by itself: %s" % alive)
    cuts = [{k: int(v) for k, v in re.findall(r"(\w+) (\d+)", line)} for line in lines if line.startswith("cut ")]
    return cuts, [line for line in lines if not line.startswith("cut ")], executables, (recorder.returncode, messages)


def growth(cuts, what):
    """The medians of both halves of what follows the first tenth. What nobody has used for long is given up now and then, so each curve is a
    saw: shorter parts may be its low or its high end. Peaks are those of the machine's load, and have a limit of their own."""
    rest = cuts[len(cuts) // 10:]
    return tuple(statistics.median(c[what] for c in half) for half in (rest[:len(rest) // 2], rest[len(rest) // 2:]))


def test_sums_and_curves(options):
    cuts, rest, executables, (status, messages) = soak(options)
    check(status == 0, "%s\n%s" % ("\n".join(rest), messages[-2000:]))
    check(len(cuts) >= options.cuts, "%d cuts" % len(cuts))
    end = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", rest[-1])}
    check(end["samples"] > len(cuts), "hardly a sample: %s" % rest[-1])
    # Where events are lost (each 97th look) a record that waited long may be of mappings that were given up since.
    check(end["unknown_stack"] <= end["runs"] / 50, "hits found no stack: %s" % rest[-1])
    problems, notes = [], [rest[-1], "%d cuts" % len(cuts), "%d executables" % executables]
    is_long = len(cuts) >= LONG
    for what, part, more in (("rss", 0.1, 2 * MIB), ("heap", 0.1, 2 * MIB), ("maps", 0.25, 20), ("fds", 0.25, 20),
                             ("children", 0, 4)):
        before, after = growth(cuts, what)
        notes.append("%s %d -> %d, at most %d" % (what, before, after, max(c[what] for c in cuts)))
        if is_long and after > before * (1 + part) + more:
            problems.append("%s grew from %d to %d" % (what, before, after))
    most = max(c["rss"] + c["kernel"] for c in cuts) / MIB
    notes.append("at most %.1f of %d MiB" % (most, options.memory))
    if most > (1.25 if is_long else 1.5) * options.memory:
        problems.append(notes[-1])
    return problems, "; ".join(notes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("soak")
    parser.add_argument("churn")
    parser.add_argument("--cuts", type=int, default=40)
    parser.add_argument("--cut-ms", type=int, default=100)
    parser.add_argument("--executables", type=int, default=0)
    parser.add_argument("--memory", type=int, default=64)
    parser.add_argument("--keep")
    options = parser.parse_args()
    if os.geteuid():
        return tap.skip_all("needs root")
    return tap.run([("%d_cuts_while_everything_comes_and_goes" % options.cuts, lambda: test_sums_and_curves(options))])


if __name__ == "__main__":
    sys.exit(guard.run(main))
