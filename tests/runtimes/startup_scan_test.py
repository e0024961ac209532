#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that ran before a recording of the whole system began: their frames are there from its first sample on.

    startup_scan_test.py [--sonde PROGRAM] [--only REGEX]

More of them than CPUs, each with a session of its own, as the scheduler then gives the recorder no more of a CPU than
each of them: what it has to find out takes it seconds.
"""
import collections
import contextlib
import shutil
import signal
import subprocess
import sys

import runtimes
from modes import SYSTEM, cpu_seconds, recording_began, wait_until
from python_test import pythons
from runtimes import FrameRecorder, Program
from tap import Skip

BUSY = 12
SECONDS, EACH = 3, 0.2  # of CPU: of all, and of each at least
PYTHON = """
import json, os
def work():
    for i in range(100000):
        i * i
def outer():
    work()
open("/proc/self/comm", "w").write("present-python")
print(json.dumps({"ready": os.getpid()}), flush=True)
while True:
    outer()
"""
JAVA = """
public class Present {
    static volatile long sink;
    static void work() { for (int i = 0; i < 100000; i++) sink += i; }
    public static void main(String[] args) throws Exception {
        new Thread(() -> {
            for (int i = 0; i < 100; i++)
                work();
            System.out.println("{\\"ready\\": " + ProcessHandle.current().pid() + "}");
            while (true)
                work();
        }, "present-java").start();
    }
}
"""


def judge(recording, comm, wanted, least):
    """Problems, and a summary, of what was recorded of one kind of program."""
    samples = early = without = 0
    how = collections.Counter()
    for stack in recording.stacks or []:
        if stack.comm != comm or not stack.user:
            continue
        names = [f.name for f in stack.user]
        samples += stack.count
        if stack.reason in ("no_process", "file_pending") or any(n.endswith(": not_ready]") for n in names):
            early += stack.count
            how[stack.reason or next(n for n in names if n.endswith(": not_ready]"))] += stack.count
        elif not stack.reason and wanted not in names:
            without += stack.count
    problems = []
    if samples < least:
        problems.append("%s: %d samples, expected %d" % (comm, samples, least))
    # Without the scan it was a third. On a busy machine what is new can be more than sonde takes in at a time, and the scan
    # ends after 10 s, which is said.
    if early > max(1, samples / 10) and "were not read in time" not in recording.errors:
        problems.append("%s: %d of %d samples were early: %s" % (comm, early, samples, dict(how)))
    if without > samples / 20:
        problems.append("%s: %d of %d samples without %s" % (comm, without, samples, wanted))
    return problems, "%s %d/%d" % (comm, samples - early, samples)


def record(setup, programs):
    """All that runs, while these do."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Program(*p)) for p in programs]
        for program in running:
            program.until_ready(600)
        recorder = FrameRecorder(setup, SYSTEM)
        recording_began(recorder)
        before = [cpu_seconds(p.pid) for p in running]

        def all_ran():
            used = [cpu_seconds(p.pid) - b for p, b in zip(running, before)]
            return sum(used) >= SECONDS and min(used) >= EACH
        wait_until("%g s of CPU" % SECONDS, all_ran, 900)
        recorder.process.send_signal(signal.SIGINT)
        for program in running:
            program.pause()
        recording = recorder.wait(600)
    return recording


def test_pythons(setup):
    found = pythons()
    if not found:
        raise Skip("no Python here")
    recording = record(setup, [([found[i % len(found)].path, "-c", PYTHON],) for i in range(BUSY)])
    problems, summary = judge(recording, "present-python", "work", 1000)
    return recording.problems + problems, summary


def test_jvm(setup):
    if not shutil.which("javac") or not shutil.which("java"):
        raise Skip("no JDK here")
    source = setup.file("Present.java")
    with open(source, "w", encoding="ascii") as f:
        f.write(JAVA)
    subprocess.run(["javac", "-d", setup.scratch, source], check=True)
    spin = [sys.executable, "-c", PYTHON]
    java = ["java", "-Xmx64m", "-XX:-TieredCompilation", "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=dontinline,Present.work", "-cp", setup.scratch, "Present"]
    recording = record(setup, [(java,)] + [(spin,)] * (BUSY // 2))
    problems, summary = judge(recording, "present-java", "Present.work", 100)
    more, other = judge(recording, "present-python", "work", 500)
    return recording.problems + problems + more, summary + ", " + other


def tests(setup, args):
    yield "pythons", test_pythons
    yield "jvm", test_jvm


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
