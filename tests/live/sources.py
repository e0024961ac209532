# SPDX-License-Identifier: Apache-2.0
"""
A second source of samples beside the CPUs' clocks: `record --also-at PLACE`, for tests only. The same walkers, as programs
of another type, show where tasks are that pass a tracepoint or a probe, and neither source spoils the other's walks.
"""
import collections
import os
import sys

from cases import Case
from folded import Verdict
from known_answers import expectation
from sonde import Recorder

BEHIND = "bpf_trace_run"
"""The kernel's function that calls programs at raw tracepoints; own samples end with the program, others go on from there."""
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


def record(setup, place, command):
    recording = Recorder(setup, ["--also-at", place], command).wait()
    recording.expect_status(0)
    return recording


def behind(stack):
    """The kernel's frames from the second source's program on."""
    at = next((i for i, frame in enumerate(stack.kernel) if frame.startswith(BEHIND)), None)
    return () if at is None else tuple(stack.kernel[at + 1:])


def split(stacks):
    """(samples at the tracepoint, samples of the clock that interrupted one of these) of a recording."""
    ends = collections.Counter()
    for stack in stacks:
        ends[behind(stack)] += stack.count
    del ends[()]
    if not ends:
        return 0, 0
    own = ends.most_common(1)[0][0]
    return ends[own], sum(count for end, count in ends.items() if len(end) > len(own))


def passes(setup, place, seconds):
    """A recording of the workload, what is wrong with it, how often it was switched out, and how often it waited."""
    told = setup.path(".switches")
    case = Case("passes", args=[told], seconds=seconds)
    recording = record(setup, place, case.argv(setup.workloads))
    verdict = Verdict(expectation(setup, case), recording.stacks or [], case.comm, 100)
    with open(told, encoding="utf-8") as f:
        switches, waits = map(int, (f.read() or "0 0").split())
    return recording, recording.problems + verdict.problems, switches, waits


def check_lost(recording, problems):
    """What is raw_throttled has no user part, but is there."""
    if recording.lost().get("no_scratch"):
        problems.append("lost: %s" % recording.lost())


def switched_out(setup):
    """sched_switch: a sample each time that the task leaves its CPU, with the stack that it waits in."""
    recording, problems, switches, _ = passes(setup, "sched_switch", 0.3)
    at, _ = split(recording.stacks or [])
    # The first one may come before the program begins, the last one when it has counted.
    if abs(at - switches) > 0.02 * switches + 10:
        problems.append("%d samples, %d times switched out" % (at, switches))
    check_lost(recording, problems)
    return problems, "%d samples, %d times switched out" % (at, switches)


def interrupted(setup):
    """sys_enter: the CPU's clock interrupts walks of the second source; both are right."""
    recording, problems, *_ = passes(setup, "sys_enter", 1)
    at, nested = split(recording.stacks or [])
    if at < 1000 or nested < 20:
        problems.append("%d samples at the tracepoint, %d of the clock in the midst of them" % (at, nested))
    check_lost(recording, problems)
    return problems, "%d samples at the tracepoint, %d of the clock in the midst of them" % (at, nested)


def probed(setup):
    """A probe in the program: a sample each time that it comes to the function, with its callers."""
    binary = os.path.join(setup.workloads, "passes")
    recording, problems, _, waits = passes(setup, "uprobe:%s:waits" % binary, 0.5)
    chain = ["main"] + ["descends"] * 10 + ["waits"]
    at = sum(stack.count for stack in recording.stacks or [] if list(stack.user[-len(chain):]) == chain)
    late = sum(stack.count for stack in recording.stacks or [] if stack.reason)
    # The clock may meet its first instruction, too.
    if waits < 100 or not waits - late <= at <= 1.02 * waits + 10:
        problems.append("%d samples, %d calls" % (at, waits))
    check_lost(recording, problems)
    return problems, "%d samples, %d calls" % (at, waits)


def python(setup):
    """Through a runtime's walker, to which only a program of the second source's type can change."""
    script = os.path.join(setup.scratch, "sleeper.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(SLEEPER)
    recording = record(setup, "sched_switch", [sys.executable, script])
    problems, whole = list(recording.problems), 0
    for stack in recording.stacks or []:
        names = [frame for frame in stack.user if frame in ("<module>", "outer", "inner")]
        if names == ["<module>", "outer", "inner"]:
            whole += stack.count if behind(stack) else 0
        elif "inner" in names and behind(stack) and not stack.reason:
            problems.append("%d times %s" % (stack.count, ";".join(stack.user)))
    if whole < 100:
        problems.append("%d samples with all functions" % whole)
        problems += ["  %d %s" % (s.count, ";".join(s.user)) for s in (recording.stacks or [])[:8]]
    return problems, "%d samples with all functions" % whole


def tests(_setup):
    yield "switched-out", switched_out
    yield "interrupted", interrupted
    yield "probed", probed
    yield "python", python
