# SPDX-License-Identifier: Apache-2.0
"""
A second source of samples beside the CPUs' clocks: `record --also-at PLACE`, for tests only. The same walkers, as programs
of another type, show where tasks are that pass a tracepoint or a probe, and neither source spoils the other's walks.
"""
import collections
import os
import subprocess
import sys

from cases import Case
from folded import Verdict, parse_folded
from known_answers import expectation
from sonde import Recorder

BEHIND = "bpf_trace_run"
"""The kernel's function that calls programs at raw tracepoints."""
SLEEPER = """
import time
def inner():
    time.sleep(0.001)
def outer():
    for _ in range(50):
        inner()
for _ in range(20):
    outer()
"""


Told = collections.namedtuple("Told", "switches calls amount cpu_ns")
"""What the workload says of itself."""


def record(setup, place, value, command):
    """A recording of the clock's samples, and the stacks of the second source's, with what they measured."""
    kept = setup.path(".otlp")
    recording = Recorder(setup, ["--also-at", place, "--also-value", value], command, kept=kept).wait()
    recording.expect_status(0)
    done = subprocess.run([setup.program, "convert", kept, "-", "-f", "folded", "--type", value], check=False,
                          capture_output=True, text=True)
    os.unlink(kept)
    if done.returncode:
        recording.problems.append(done.stderr)
    return recording, parse_folded(done.stdout)


def passes(setup, place, value, seconds):
    """A recording of the workload, the second source's stacks, what is wrong with any, and what the workload told."""
    told = setup.path(".told")
    case = Case("passes", args=[told], seconds=seconds)
    recording, stacks = record(setup, place, value, case.argv(setup.workloads))
    expected = expectation(setup, case)
    verdict = Verdict(expected, recording.stacks or [], case.comm, 100)
    other = Verdict(expected, stacks, case.comm, 100)
    with open(told, encoding="utf-8") as f:
        told = Told(*map(int, (f.read() or "0 0 0 0").split()))
    return recording, stacks, recording.problems + verdict.problems + other.problems, told


def total(stacks):
    return sum(stack.count for stack in stacks)


def check_lost(recording, problems):
    """What is raw_throttled has no user part, but is there."""
    if recording.lost().get("no_scratch"):
        problems.append("lost: %s" % recording.lost())


def switched_out(setup):
    """sched_switch: a sample each time that the task leaves its CPU, with the stack that it waits in."""
    recording, stacks, problems, told = passes(setup, "sched_switch", "events", 0.3)
    at = total(stacks)
    # The first one may come before the program begins, the last one when it has counted.
    if abs(at - told.switches) > 0.02 * told.switches + 10:
        problems.append("%d samples, %d times switched out" % (at, told.switches))
    check_lost(recording, problems)
    return problems, "%d samples, %d times switched out" % (at, told.switches)


def measured(setup):
    """sched_switch: for how long it ran each time, which is its CPU time."""
    recording, stacks, problems, told = passes(setup, "sched_switch", "on_cpu", 0.3)
    at = total(stacks)
    # What it did before exec and when it had told is not in one of them.
    if abs(at - told.cpu_ns) > 0.02 * told.cpu_ns + 1e7:
        problems.append("%.3f ms between switches, %.3f ms of CPU time" % (at / 1e6, told.cpu_ns / 1e6))
    check_lost(recording, problems)
    return problems, "%.3f ms between switches, %.3f ms of CPU time" % (at / 1e6, told.cpu_ns / 1e6)


def interrupted(setup):
    """sys_enter: the CPU's clock interrupts walks of the second source; both are right."""
    recording, stacks, problems, _ = passes(setup, "sys_enter", "events", 1)
    at = total(stacks)
    nested = sum(stack.count for stack in recording.stacks or [] if any(f.startswith(BEHIND) for f in stack.kernel))
    if at < 1000 or nested < 20:
        problems.append("%d samples at the tracepoint, %d of the clock in the midst of them" % (at, nested))
    check_lost(recording, problems)
    return problems, "%d samples at the tracepoint, %d of the clock in the midst of them" % (at, nested)


def probed(setup):
    """A probe in the program: a sample each time that it comes to the function, with its callers."""
    place = "uprobe:%s:waits" % os.path.join(setup.workloads, "passes")
    recording, stacks, problems, told = passes(setup, place, "events", 0.5)
    at = total(stacks)
    if told.calls < 100 or at != told.calls:
        problems.append("%d samples, %d calls" % (at, told.calls))
    chain = ["main"] + ["descends"] * 10 + ["waits"]
    problems += ["wrong: %s" % ";".join(s.user) for s in stacks if not s.reason and list(s.user[-len(chain):]) != chain]
    check_lost(recording, problems)
    return problems, "%d samples, %d calls" % (at, told.calls)


def argument(setup):
    """What the function was called with, each time."""
    place = "uprobe:%s:waits" % os.path.join(setup.workloads, "passes")
    recording, stacks, problems, told = passes(setup, place, "argument", 0.5)
    at = total(stacks)
    if told.amount < 1000 or at != told.amount:
        problems.append("%d bytes, %d were told" % (at, told.amount))
    check_lost(recording, problems)
    return problems, "%d bytes, %d were told" % (at, told.amount)


def python(setup):
    """Through a runtime's walker, to which only a program of the second source's type can change."""
    script = os.path.join(setup.scratch, "sleeper.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(SLEEPER)
    recording, stacks = record(setup, "sched_switch", "events", [sys.executable, script])
    problems, whole = list(recording.problems), 0
    for stack in stacks:
        names = [frame for frame in stack.user if frame in ("<module>", "outer", "inner")]
        if names == ["<module>", "outer", "inner"]:
            whole += stack.count
        elif "inner" in names and not stack.reason:
            problems.append("%d times %s" % (stack.count, ";".join(stack.user)))
    if whole < 900:
        problems.append("%d samples with all functions" % whole)
        problems += ["  %d %s" % (s.count, ";".join(s.user)) for s in stacks[:8]]
    return problems, "%d samples with all functions" % whole


def tests(_setup):
    yield "switched-out", switched_out
    yield "interrupted", interrupted
    yield "measured", measured
    yield "probed", probed
    yield "argument", argument
    yield "python", python
