# SPDX-License-Identifier: Apache-2.0
"""
Sources of samples beside the CPUs' clocks: `record --probe`, `--event`. The walkers, as programs of other types, show where
tasks are that pass a tracepoint or a probe; no source spoils another's walks, and what is known to come N times has N samples.
docs/probes.md.
"""
import collections
import glob
import os
import shutil
import signal
import subprocess
import sys

from cases import Case
from folded import Verdict, parse_folded
from known_answers import expectation
from modes import recording_began
from sonde import Recorder
from tap import Skip

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


Told = collections.namedtuple("Told", "switches calls amount cpu_ns parents parents_sum")
"""What the workload says of itself."""


def convert(setup, kept, type_, problems):
    done = subprocess.run([setup.program, "convert", kept, "-", "-f", "folded", "--type", type_], check=False,
                          capture_output=True, text=True)
    # A type of which there are none is not in the file.
    if done.returncode and "has no samples of type" not in done.stderr:
        problems.append(done.stderr)
    return parse_folded(done.stdout)


def record_all(setup, options, types, command):
    """A recording of the clock's samples, and the stacks of the other sources', by type, with what they measured."""
    kept = setup.path(".otlp")
    recording = Recorder(setup, options, command, kept=kept).wait()
    recording.expect_status(0)
    found = {type_: convert(setup, kept, type_, recording.problems) for type_ in types}
    os.unlink(kept)
    return recording, found


def record(setup, place, command, options=()):
    recording, found = record_all(setup, ["--probe", place + ",name=it", *options], ["it"], command)
    return recording, found["it"]


def passes(setup, place, seconds):
    """A recording of the workload, the second source's stacks, what is wrong with any, and what the workload told."""
    told = setup.path(".told")
    case = Case("passes", args=[told], seconds=seconds)
    recording, stacks = record(setup, place, case.argv(setup.workloads))
    expected = expectation(setup, case)
    verdict = Verdict(expected, recording.stacks or [], case.comm, 100)
    other = Verdict(expected, stacks, case.comm, 100)
    with open(told, encoding="utf-8") as f:
        told = Told(*map(int, (f.read() or "0 0 0 0 0 0").split()))
    return recording, stacks, recording.problems + verdict.problems + other.problems, told


def total(stacks):
    return sum(stack.count for stack in stacks)


def check_lost(recording, problems):
    """What is raw_throttled has no user part, but is there."""
    if recording.lost().get("no_scratch"):
        problems.append("lost: %s" % recording.lost())


def switched_out(setup):
    """sched_switch: a sample each time that the task leaves its CPU, with the stack that it waits in."""
    recording, stacks, problems, told = passes(setup, "tracepoint:sched:sched_switch", 0.3)
    at = total(stacks)
    # The first one may come before the program begins, the last one when it has counted.
    if abs(at - told.switches) > 0.02 * told.switches + 10:
        problems.append("%d samples, %d times switched out" % (at, told.switches))
    check_lost(recording, problems)
    return problems, "%d samples, %d times switched out" % (at, told.switches)


def measured(setup):
    """sched_switch: for how long it ran each time, which is its CPU time."""
    recording, stacks, problems, told = passes(setup, "tracepoint:sched:sched_switch,value=on-cpu", 0.3)
    at = total(stacks)
    # What it did before exec and when it had told is not in one of them.
    if abs(at - told.cpu_ns) > 0.02 * told.cpu_ns + 1e7:
        problems.append("%.3f ms between switches, %.3f ms of CPU time" % (at / 1e6, told.cpu_ns / 1e6))
    check_lost(recording, problems)
    return problems, "%.3f ms between switches, %.3f ms of CPU time" % (at / 1e6, told.cpu_ns / 1e6)


def interrupted(setup):
    """sys_enter: the CPU's clock interrupts walks of the second source; both are right."""
    recording, stacks, problems, _ = passes(setup, "tracepoint:raw_syscalls:sys_enter", 1)
    at = total(stacks)
    nested = sum(stack.count for stack in recording.stacks or [] if any(f.startswith(BEHIND) for f in stack.kernel))
    if at < 1000 or nested < 20:
        problems.append("%d samples at the tracepoint, %d of the clock in the midst of them" % (at, nested))
    check_lost(recording, problems)
    return problems, "%d samples at the tracepoint, %d of the clock in the midst of them" % (at, nested)


def probed(setup):
    """A probe in the program: a sample each time that it comes to the function, with its callers."""
    place = "uprobe:%s:waits" % os.path.join(setup.workloads, "passes")
    recording, stacks, problems, told = passes(setup, place, 0.5)
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
    recording, stacks, problems, told = passes(setup, place + ",value=arg1", 0.5)
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
    recording, stacks = record(setup, "tracepoint:sched:sched_switch", [sys.executable, script], ["--tracers", "python"])
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


COUNTED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for _ in range(123): libc.getppid()
for _ in range(7): libc.umask(0o22)
"""
"""Calls of the C library that nothing else makes so often."""


def counted(setup):
    """Several at once: a function's begin and end, a system call's tracepoint; each its own type, from the first call on."""
    libc = next(line.split()[-1] for line in open("/proc/self/maps", encoding="ascii") if "/libc.so" in line)
    types = ["uprobe:getppid", "uretprobe:getppid", "mine", "tracepoint:syscalls:sys_enter_getppid", "tracepoint:syscalls:sys_exit_umask"]
    options = ["--probe", "uprobe:%s:getppid" % libc, "--probe", "uretprobe:%s:getppid" % libc,
               "--probe", "uprobe:%s:umask,name=mine,value=arg1" % libc, "--probe", "; ".join(types[3:]), "--include", "comm=python3*",
               "--tracers", "python"]
    recording, found = record_all(setup, options, types, ["/usr/bin/python3", "-c", COUNTED])
    problems = list(recording.problems)
    for type_, wanted in zip(types, (123, 123, 7 * 0o22, 123, 7)):
        if total(found[type_]) != wanted:
            problems.append("%d of %s, wanted %d" % (total(found[type_]), type_, wanted))
    for type_ in types[:2]:
        for stack in found[type_]:
            # The first one may come before the interpreter is known.
            if "<module>" not in stack.user and "[python: not_ready]" not in stack.user and not stack.reason:
                problems.append("%s at %s" % (type_, ";".join(stack.user)))
    check_lost(recording, problems)
    return problems, ", ".join("%s %d" % (type_, total(found[type_])) for type_ in types)


MANY = 3000
CROWD = """
import ctypes, time
libc = ctypes.CDLL(None)
for i in range(%d):
    libc.getppid()
    if i %% 500 == 499: time.sleep(0.25)
""" % MANY
"""Calls of a program that nobody knows yet: each brings its stack along, if it is one of 500 in a quarter of a second."""


def crowded(setup):
    """A recorder that gets no turn: what finds no room with its stack is a sample without one."""
    kept = setup.path(".otlp")
    recorder = Recorder(setup, ["--probe", "uprobe:libc.so.6:getppid,name=it", "-p", str(os.getpid())], kept=kept)
    recording_began(recorder)
    recorder.process.send_signal(signal.SIGSTOP)
    try:
        subprocess.run(["/usr/bin/python3", "-c", CROWD], check=True)
    finally:
        recorder.process.send_signal(signal.SIGCONT)
    recorder.process.send_signal(signal.SIGINT)
    recording = recorder.wait()
    recording.expect_status(0)
    at, lost = total(convert(setup, kept, "it", recording.problems)), recording.lost()
    os.unlink(kept)
    problems = list(recording.problems)
    if at != MANY or set(lost) - {"side_band"} != {"raw_throttled"}:
        problems.append("%d samples of %d calls; lost: %s" % (at, MANY, lost))
    return problems, "%d samples, %d of them without their user part" % (at, lost.get("raw_throttled", 0))


FLOOD = """
import ctypes, os, sys, time, zlib
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
libc, data = ctypes.CDLL(None), bytes(1 << 20)
def spin(seconds):
    begin = time.process_time()
    while time.process_time() < begin + seconds: zlib.crc32(data)
    return time.process_time() - begin
def answer(what):
    print(what, flush=True)
    sys.stdin.readline()
answer("here")
libc.getppid()
answer(spin(1))
for _ in range(100000): libc.getppid()
answer(spin(2))
"""


def flooded(setup):
    """A recorder that gets no turn, while a probe is passed more often than there is room for: the clock's samples behind that are there."""
    kept, hz = setup.path(".otlp"), 99
    with subprocess.Popen(["/usr/bin/python3", "-c", FLOOD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        def go_on():
            program.stdin.write("\n")
            program.stdin.flush()
            return float(program.stdout.readline())

        program.stdout.readline()
        recorder = Recorder(setup, ["--probe", "uprobe:libc.so.6:getppid,name=it", "-p", str(program.pid)], frequency=hz, kept=kept)
        recording_began(recorder)
        spun = go_on()
        recorder.process.send_signal(signal.SIGSTOP)
        spun += go_on()
        recorder.process.send_signal(signal.SIGCONT)
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.wait()
    recording.expect_status(0)
    found, lost = convert(setup, kept, "samples", recording.problems), recording.lost()
    # Some have no user part, where their code was not known in time.
    at = total(stack for stack in found if not stack.user or any(frame.startswith("crc32") for frame in stack.user))
    os.unlink(kept)
    problems = list(recording.problems)
    if at < 0.65 * hz * spun or not lost.get("ring_full"):
        problems.append("%d samples of %.1f s; lost: %s" % (at, spun, lost))
    return problems, "%d samples of %.1f s" % (at, spun)


def limited(setup):
    """No more than the rate a second, and how many more there were."""
    recording, found = record_all(setup, ["--probe", "tracepoint:raw_syscalls:sys_enter,rate=50,name=it"], ["it"],
                                  [setup.workload("passes"), "0.3"])
    at, seconds = total(found["it"]), recording.stats["duration_s"]
    problems = list(recording.problems)
    # What several CPUs take at the same moment may be one too many, in each tenth of a second.
    if at < 5 or at > 10 * (seconds + 1) * (5 + os.cpu_count()) or recording.stats["limited"] < 100:
        problems.append("%d samples in %.1f s, %s more" % (at, seconds, recording.stats))
    return problems, "%d samples in %.1f s, %d more" % (at, seconds, recording.stats["limited"])


FAULTS = """
import mmap, sys
PAGES = 2000
memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
memory.madvise(mmap.MADV_NOHUGEPAGE)
def touches():
    for i in range(PAGES): memory[i * mmap.PAGESIZE] = 1
print("here", flush=True)
sys.stdin.readline()
touches()
"""


def faults(setup):
    """An event of perf: each page that is touched is a fault, in the function that does so. The interpreter runs before the recording does:
    what has begun with it may not be known yet when it touches them."""
    kept = setup.path(".otlp")
    with subprocess.Popen(["/usr/bin/python3", "-c", FAULTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        program.stdout.readline()
        recorder = Recorder(setup, ["--event", "page-faults", "--event", "cs:1", "--tracers", "python", "-p", str(program.pid)], kept=kept)
        recording_began(recorder, 2)
        program.stdin.write("\n")
        program.stdin.close()
        recording = recorder.wait()
    recording.expect_status(0)
    problems = list(recording.problems)
    found = {type_: convert(setup, kept, type_, problems) for type_ in ("page-faults", "context-switches")}
    os.unlink(kept)
    at = total(stack for stack in found["page-faults"] if "touches" in stack.user)
    # Those that were taken while there was no room for the stack.
    unclear = total(stack for stack in found["page-faults"] if "touches" not in stack.user and stack.reason)
    said = "%d faults of 2000 pages, %d unclear" % (at, unclear)
    if not 1990 <= at <= 2050 or at + unclear < 2000 or not found["context-switches"]:
        problems.append("%s; lost %s" % (said, recording.lost()))
        problems += ["  %d %s %s" % (s.count, ";".join(s.user), s.reason) for s in found["page-faults"][:8]]
    return problems, "%s, %d switches" % (said, total(found["context-switches"]))


def mistakes(setup):
    """Say what is wrong, where, and what was meant; nothing is recorded."""
    program, libc, python = setup.workload("passes"), "libc.so.6", os.path.realpath("/usr/bin/python3")
    problems = []
    for option, text, status, said in (
            ("--probe", "uprob:%s:waits" % program, 2, "did you mean 'uprobe'"),
            ("--probe", "uprobe:waits", 2, "FILE:FUNCTION"),
            ("--probe", "tracepoint:sched_switch", 2, "GROUP:NAME"),
            ("--probe", "uprobe:%s:waits,rat=1" % program, 2, "did you mean 'rate'"),
            ("--probe", "uprobe:%s:waits,rate=0" % program, 2, "rate takes"),
            ("--probe", "uprobe:%s:waits,arg0=a" % program, 2, "arg1, arg2"),
            ("--probe", "uprobe:%s:waits,arg1=%s" % (program, "x" * 64), 2, "62 characters"),
            ("--probe", "uprobe:%s:waits,arg9=a" % program, 1, "in registers"),
            ("--probe", "tracepoint:a:b,arg1=a", 2, "only usdt and uprobe"),
            ("--probe", "usdt:%s:python:function__entry,arg9=a" % python, 1, "cannot be looked at"),
            ("--probe", "uprobe:%s:waits; uprobe:%s:waits" % (program, program), 2, "name=NAME"),
            ("--probe", "uprobe:%s:wait" % program, 1, "did you mean 'waits'"),
            ("--probe", "uprobe:/no/such:waits", 1, "'/no/such'"),
            ("--probe", "uprobe:/etc/passwd:waits", 1, "is no ELF file"),
            ("--probe", "uprobe:no-such-program:waits", 1, "$PATH"),
            ("--probe", "uprobe:%s:getpppid" % libc, 1, "did you mean 'getppid'"),
            ("--probe", "usdt:%s:x" % program, 1, "has no USDT probes"),
            ("--probe", "usdt:%s:pythom:function__entry" % python, 1, "but of 'python'"),
            ("--probe", "usdt:%s:python:function_entry" % python, 1, "did you mean 'function__entry'"),
            ("--probe", "tracepoint:sched:sched_swich", 1, "did you mean 'sched:sched_switch'"),
            ("--probe", "tracepoint:shed:sched_swich", 1, "did you mean 'sched'"),
            ("--probe", "tracepoint:task:sched_switch", 1, "did you mean 'sched:sched_switch'"),
            ("--event", "page-fault", 2, "did you mean 'page-faults'"),
            ("--event", "page-faults:x", 2, "whole number")):
        done = subprocess.run([setup.program, "record", option, text, "-o", "/dev/null", "-f", "folded", "--", "true"], check=False,
                              capture_output=True, text=True)
        if done.returncode != status or said not in done.stderr or len(done.stderr.splitlines()) != 1:
            problems.append("%s: %d, %s" % (text, done.returncode, done.stderr))
    if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
        done = subprocess.run([setup.program, "record", "--probe", "kprobe:do_exit", "--", "true"], check=False, capture_output=True,
                              text=True)
        if done.returncode != 1 or "this kernel has no kprobes" not in done.stderr:
            problems.append("kprobe: %d, %s" % (done.returncode, done.stderr))
    return problems, None


CALLED = """<?php
function called($n) { return $n; }
function other($n) { return $n; }
for ($i = 0; $i < 100; $i++) called($i);
for ($i = 0; $i < 30; $i++) other($i);
"""
CALLS = 131
"""The script itself is called, too."""


def usdt(setup):
    """A probe that the program was built with; it looks if somebody wants to know."""
    php, script = shutil.which("php"), os.path.join(setup.scratch, "called.php")
    if not php:
        raise Skip("there is no php")
    with open(script, "w", encoding="utf-8") as f:
        f.write(CALLED)
    os.environ["USE_ZEND_DTRACE"] = "1"
    try:
        probe = "usdt:php:php:function__entry"
        options = [probe + ",name=it", probe + ",arg1=called,name=called", probe + ",arg1=o*,name=o"]
        recording, found = record_all(setup, ["--probe", ";".join(options)], ["it", "called", "o"], [php, script])
    finally:
        del os.environ["USE_ZEND_DTRACE"]
    problems, at = list(recording.problems), [total(found[type_]) for type_ in ("it", "called", "o")]
    if at != [CALLS, 100, 30]:
        problems.append("%s samples of %d calls, 100 and 30 of them" % (at, CALLS))
    check_lost(recording, problems)
    return problems, "%s samples of %d calls" % (at, CALLS)


def texts_of(setup, probe, wanted, command):
    """`wanted`: how many calls each filter lets through."""
    names = ["of%d" % i for i in range(len(wanted))]
    options = ["%s,%s,name=%s" % (probe, text, name) for text, name in zip(wanted, names)]
    recording, found = record_all(setup, ["--probe", ";".join(options)], names, command)
    problems, at = list(recording.problems), {text: total(found[name]) for text, name in zip(wanted, names)}
    if at != wanted:
        problems.append("%s samples, wanted %s" % (at, wanted))
    check_lost(recording, problems)
    return problems, "%s samples" % at


RUBY = """
def called = 1
def other = 2
TracePoint.new(:call) {}.enable
40.times { called }
7.times { other }
50.times { Dir.pwd }
"""


def ruby_probe(name):
    libraries = glob.glob("/usr/lib/*/libruby-3*.so.3.?")
    if not libraries or not shutil.which("ruby"):
        raise Skip("there is no ruby")
    return "usdt:%s:ruby:%s" % (libraries[0], name)


def ruby(setup):
    """A probe in a library, at several places, each with its arguments elsewhere."""
    return texts_of(setup, ruby_probe("cmethod__entry"), {"arg2=pwd": 50, "arg2=pwdx": 0}, ["ruby", "-e", RUBY])


def ruby_methods(setup):
    """Ruby comes to this one where its own tracing is on."""
    return texts_of(setup, ruby_probe("method__entry"), {"arg2=called": 40, "arg2=oth*": 7, "arg2=pwd": 0}, ["ruby", "-e", RUBY])


PYTHON = """
import sys
def called(): pass
def other(): pass
sys.setprofile(lambda *_: None)
for _ in range(40): called()
for _ in range(7): other()
sys.setprofile(None)
"""


def python_functions(setup):
    """Python 3.11 does, too."""
    program, script = os.path.realpath("/usr/bin/python3"), os.path.join(setup.scratch, "called.py")
    with open(program, "rb") as f:
        if b"function__entry" not in f.read():
            raise Skip("%s has no such probe" % program)
    with open(script, "w", encoding="utf-8") as f:
        f.write(PYTHON)
    return texts_of(setup, "usdt:%s:python:function__entry" % program,
                    {"arg2=called": 40, "arg2=oth*": 7, "arg1=%s*" % script[:40]: 47, "arg2=call": 0}, [program, script])


TEXTS = """
import ctypes
libc = ctypes.CDLL(None)
for _ in range(9): libc.getenv(b"SONDE_LIVE_A")
for _ in range(5): libc.getenv(b"SONDE_LIVE_AB")
libc.getenv(b"SONDE_LIVE_" + b"x" * 100)
"""


def texts(setup):
    """Of a function: what its argument points to."""
    probe, types = "uprobe:libc.so.6:getenv", ["whole", "begin", "long"]
    options = [probe + ",arg1=SONDE_LIVE_A,name=whole", probe + ",arg1=SONDE_LIVE_A*,name=begin",
               probe + ",arg1=SONDE_LIVE_%s,name=long" % ("x" * 51)]
    recording, found = record_all(setup, ["--probe", ";".join(options)], types, ["/usr/bin/python3", "-c", TEXTS])
    problems, at = list(recording.problems), [total(found[type_]) for type_ in types]
    # The whole text is longer than the one that is asked for.
    if at != [9, 14, 0]:
        problems.append("%s samples" % at)
    check_lost(recording, problems)
    return problems, "%s samples" % at


def kernel_probed(setup):
    if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
        raise Skip("this kernel has no kprobes")
    recording, found = record_all(setup, ["--probe", "kprobe:__x64_sys_getppid,name=it"], ["it"], ["/usr/bin/python3", "-c", COUNTED])
    problems = list(recording.problems)
    if total(found["it"]) != 123:
        problems.append("%d samples of 123 calls" % total(found["it"]))
    return problems, "%d samples" % total(found["it"])


def tests(_setup):
    yield "switched-out", switched_out
    yield "interrupted", interrupted
    yield "measured", measured
    yield "probed", probed
    yield "argument", argument
    yield "python", python
    yield "counted", counted
    yield "crowded", crowded
    yield "flooded", flooded
    yield "limited", limited
    yield "faults", faults
    yield "usdt", usdt
    yield "ruby", ruby
    yield "ruby-methods", ruby_methods
    yield "python-functions", python_functions
    yield "texts", texts
    yield "kernel-probed", kernel_probed
    yield "mistakes", mistakes
