# SPDX-License-Identifier: Apache-2.0
"""Runs sonde for the live tests, and what every recording must fulfil."""
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import with_tracers
from folded import parse_folded

STATS_KEYS = {
    "samples": int,
    "complete": int,
    "truncated": dict,
    "lost": dict,
    "frames": int,
    "processes": int,
    "bpf_ns_per_sample": (int, float),
    "rss_kb": int,
    "map_bytes": int,
    "duration_s": (int, float),
    "frequency_hz": int,
}

FREQUENCY = 999
# Limits of time that only what hangs should reach are so many times as long: an emulated machine (tests/vm) is slow.
PATIENCE = float(os.environ.get("SONDE_PATIENCE", "1"))
# Who is recorded is judged, and how soon sonde knows it: the other tests that run meanwhile are no part of that.
AHEAD = ["nice", "-n", "-5"]
HANGS = 900  # seconds: a recording of 3 s of CPU takes two minutes where forty processes want a CPU


TRIES = 3  # to record a single sleep


def told_of(record):
    """
    Records until the kernel tells of a single sleep: of some it does not tell that they ended (docs/off-cpu.md), which is counted and
    says nothing of what is tested. `record()` returns whether all is as it should be, what the recording counted as lost or said of
    it, and what the test wants, which is returned.
    """
    for _ in range(TRIES):
        good, lost, result = record()
        if good or "sleep_missed" not in lost:
            break
    return result


class Setup:
    """
    Where things are: the program under test, the built workloads, a folder for files. `tracers`: whose frames recordings look for; a
    second of CPU is spent on loading the programs of all runtimes, so that tests load those that they are about.
    """

    def __init__(self, program, workloads, scratch, tracers="all"):
        self.tracers = tracers
        self.program = program
        self.workloads = workloads
        self.scratch = scratch

    def record_argv(self, frequency, options):
        """`sonde record` as all tests begin it; --tracers is the setup's unless the options have their own."""
        return [*AHEAD, self.program, *with_tracers(["record", "-F", frequency, *options], self.tracers)]

    def path(self, suffix):
        fd, path = tempfile.mkstemp(suffix=suffix, dir=self.scratch)
        os.close(fd)
        return path

    def workload(self, name):
        return os.path.join(self.workloads, name)


class Recorder:
    """A running `sonde record`. `kept`: where its output is kept with samples of all types, as OTLP. `terminal`: a descriptor of the
    terminal that it gets for itself and what it starts; None: no terminal."""

    kept = None

    def __init__(self, setup, options=(), command=(), frequency=FREQUENCY, stdout=subprocess.DEVNULL, kept=None, terminal=None):
        self.program = setup.program
        self.output = setup.path(".folded")
        self.kept = kept
        self.stats = setup.path(".json")
        self.errors = setup.path(".err")
        written = ["-f", "otlp", "-o", kept] if kept else ["-f", "folded", "-o", self.output]
        self.argv = setup.record_argv(frequency, ["--no-inlines", *written, "--stats", self.stats, *options])
        if command:
            self.argv += ["--", *command]
        self.frequency = frequency
        for path in (self.output, self.stats):
            os.unlink(path)
        with open(self.errors, "wb") as err:
            if terminal is None:
                self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=err)
            else:
                self.process = subprocess.Popen(self.argv, stdin=terminal, stdout=stdout, stderr=err, start_new_session=True,
                                                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def wait(self, timeout=HANGS):
        try:
            self.process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.kept:
            done = subprocess.run([self.program, "convert", self.kept, self.output, "--type", "samples"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, check=False)
            if "has no samples of type" in done.stderr:  # who only sleeps may have none of the clock
                with open(self.output, "w", encoding="utf-8"):
                    pass
        return Recording(self)


class Recording:
    """What a `sonde record` left behind: exit status, stacks, statistics, and what is wrong with them."""

    def __init__(self, recorder):
        self.problems = []
        self.status = recorder.process.returncode
        self.argv = recorder.argv
        with open(recorder.errors, encoding="utf-8", errors="replace") as f:
            self.errors = f.read()
        self.stacks = self._read_stacks(recorder.output)
        self.stats = self._read_stats(recorder.stats)
        if self.stats and self.stacks is not None:
            self._compare(recorder.frequency)
        for path in (recorder.errors, recorder.output, recorder.stats):
            if os.path.exists(path):
                os.unlink(path)

    def expect_status(self, status):
        if self.status != status:
            self.problems.append("exit status %s, expected %d" % (self.status, status))
            self.problems += ["  " + line for line in self.errors.splitlines()[-8:]]

    def _read_stacks(self, path):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                return parse_folded(f.read())
        except (OSError, ValueError) as e:
            self.problems.append("output: %s" % e)
            return None

    def _read_stats(self, path):
        try:
            with open(path, encoding="utf-8") as f:
                stats = json.load(f)
        except (OSError, ValueError) as e:
            self.problems.append("statistics: %s" % e)
            return None
        for key, kind in STATS_KEYS.items():
            if not isinstance(stats.get(key), kind):
                self.problems.append("statistics: %s is %r" % (key, stats.get(key)))
                return None
        return stats

    def _compare(self, frequency):
        s = self.stats
        samples = sum(x.count for x in self.stacks)
        complete = sum(x.count for x in self.stacks if not x.reason)
        self._same("samples and the folded file's", s["samples"], samples)
        self._same("complete and the folded file's", s["complete"], complete)
        self._same("samples and complete + truncated", s["samples"], s["complete"] + sum(s["truncated"].values()))
        self._same("frequency_hz", s["frequency_hz"], frequency)
        for key in ("rss_kb", "map_bytes", "duration_s"):
            if s[key] <= 0:
                self.problems.append("statistics: %s is %r" % (key, s[key]))

    def _same(self, what, a, b):
        if a != b:
            self.problems.append("statistics: %s differ: %s and %s" % (what, a, b))

    def lost(self):
        return {k: v for k, v in (self.stats or {}).get("lost", {}).items() if v}


def missing():
    """Why no test that records can run on this machine, or None."""
    if os.geteuid() != 0:
        return "not root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "no BTF: the kernel was built without it"
    return None
