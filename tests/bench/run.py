# SPDX-License-Identifier: Apache-2.0
"""Runs sonde, perf and loads for the benchmarks, and reads from outside what they cost."""
import contextlib
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import folded_text
from footprint import read

PROG_TYPE_PERF_EVENT = "7"
# On a machine that others use too, the samples shall be the measured load's, and the tools shall get the little that
# they need: real-time priorities, for a few seconds each. (A nice value counts only within a session. Not from the
# start: what the kernel does in threads of its own, such as RCU, would starve, and sonde wait for it.)
LOAD_PRIORITY = 1
TOOL_PRIORITY = 2
OWN_PRIORITY = 3


class Setup:
    """Where things are."""

    def __init__(self, sonde, programs, workloads, scratch, rounds):
        self.sonde = sonde
        self.programs = programs
        self.workloads = workloads
        self.scratch = scratch
        self.rounds = rounds

    def path(self, suffix):
        fd, path = tempfile.mkstemp(suffix=suffix, dir=self.scratch)
        os.close(fd)
        return path

    def program(self, name):
        return os.path.join(self.programs, name)


def cpu_ns(pid):
    """CPU time of a process, user and system, to the nanosecond (/proc/PID/stat has steps of 10 ms)."""
    process_cpu_clock = (~pid << 3) | 2  # as clock_getcpuclockid()
    return time.clock_gettime_ns(process_cpu_clock)


def ticks(pid):
    """(user, system) as /proc/PID/stat has them: how the exact CPU time is shared among the two."""
    fields = read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


def bpf_run_time(pid):
    """The kernel's statistics of the perf_event programs that the process holds: (nanoseconds, runs)."""
    progs = {}
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError):
            text = read(path)
            if re.search(r"^prog_type:\s+%s$" % PROG_TYPE_PERF_EVENT, text, re.M):
                number = {key: int(re.search(r"^%s:\s+(\d+)" % key, text, re.M).group(1))
                          for key in ("prog_id", "run_time_ns", "run_cnt")}
                progs[number["prog_id"]] = (number["run_time_ns"], number["run_cnt"])
    return tuple(sum(p[i] for p in progs.values()) for i in (0, 1))


def idle_seconds():
    """Of all CPUs together."""
    return sum(int(x) for x in read("/proc/stat").split("\n", 1)[0].split()[4:6]) / os.sysconf("SC_CLK_TCK")


def at_priority(priority):
    """For preexec_fn: nothing but a system call."""

    def apply():
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))

    return apply


def cpus():
    return sorted(os.sched_getaffinity(0))


# What happened between two looks at a running sonde.
class Span:
    def __init__(self, pid):
        self.pid = pid
        self.begin = self._look()
        self.user_ticks, self.system_ticks = ticks(pid)

    def _look(self):
        return (time.monotonic(), cpu_ns(self.pid), idle_seconds(), *bpf_run_time(self.pid))

    def end(self):
        now = self._look()
        self.seconds, self.cpu_ns, idle, self.bpf_ns, self.runs = (b - a for a, b in zip(self.begin, now))
        now = ticks(self.pid)
        self.user_ticks, self.system_ticks = now[0] - self.user_ticks, now[1] - self.system_ticks
        self.busy = 1 - idle / (self.seconds * len(cpus()))
        return self

    def bpf_ns_per_run(self):
        return self.bpf_ns / max(self.runs, 1)

    def cpu_ms_per_1000(self):
        return self.cpu_ns / max(self.runs, 1) / 1000


@contextlib.contextmanager
def alone(pids):
    """The processes have the CPUs nearly for themselves (the kernel leaves a twentieth to all others)."""
    normal = os.sched_getscheduler(0), os.sched_getparam(0)
    # Else this program would hardly run before they end. Its children do not inherit it.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(OWN_PRIORITY))
        for pid in pids:
            os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(LOAD_PRIORITY))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            for pid in pids:
                os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setscheduler(0, *normal)


class Sonde:
    """A running `sonde record` of the whole machine (or of what `options` say)."""

    def __init__(self, setup, hz, options=()):
        self.folded, self.json, self.errors = (setup.path(s) for s in (".folded", ".json", ".err"))
        argv = [setup.sonde, "record", "-F", str(hz), "-f", "folded", "-o", self.folded, "--stats", self.json, *options]
        with open(self.errors, "wb") as err:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=err,
                                            preexec_fn=at_priority(TOOL_PRIORITY))
        self.pid = self.process.pid
        end = time.monotonic() + 20
        while self._events() < len(cpus()):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("sonde does not record: %s" % read(self.errors))
            time.sleep(0.01)

    def _events(self):
        n = 0
        for path in glob.glob("/proc/%d/fd/*" % self.pid):
            with contextlib.suppress(OSError):
                n += "perf_event" in os.readlink(path)
        return n // 2  # the side band's, too

    def span(self, seconds):
        span = Span(self.pid)
        time.sleep(seconds)
        return span.end()

    def stop(self):
        """Its statistics, with the resources it used in all."""
        self.process.send_signal(signal.SIGINT)
        _, status, usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            raise RuntimeError("sonde failed: %s" % read(self.errors))
        with open(self.json, encoding="utf-8") as f:
            stats = json.load(f)
        stats["cpu_ms"] = (usage.ru_utime + usage.ru_stime) * 1000
        stats["bytes"] = os.path.getsize(self.folded)
        return stats

    def stacks(self):
        """(comm, frames outermost first, count)."""
        with open(self.folded, encoding="utf-8", errors="replace") as f:
            for line in f:
                yield folded_text.parse_line(line.rstrip("\n"))


@contextlib.contextmanager
def stacks_on_all_cpus(setup, frames, kib=0):
    """`stack` on each CPU. Yields (PIDs, a list which receives (leaves, cpu ns) of each at the end)."""
    running, results = [], []
    normal = os.sched_getscheduler(0), os.sched_getparam(0)
    # Else this program would hardly run before the load ends.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(OWN_PRIORITY))

    for cpu in cpus():
        running.append(subprocess.Popen([setup.program("stack"), str(frames), str(kib)], stdout=subprocess.PIPE,
                                        text=True, preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, [cpu])))
    try:
        time.sleep(0.1)
        yield [p.pid for p in running], results
    finally:
        for p in running:
            p.terminate()
        for p in running:
            out = p.communicate()[0].split()
            results.append((int(out[0]), int(out[1])))


# User shells that sleep, and a few busy interpreters and a compressor: a hundred ordinary processes.
SLEEPER = "while :; do sleep 1; done"
BUSY = [
    ["python3", "-c", "import json\nwhile True: json.loads(json.dumps([{str(i): [i, i * .5]} for i in range(500)]))"],
    ["python3", "-c", "import re\nwhile True: [re.sub('a+(b|c)', 'x', 'aaab' * n) for n in range(200)]"],
    ["perl", "-e", "while (1) { my %h; $h{$_ % 977} .= $_ for 1..20000; join ',', sort keys %h; }"],
    ["sh", "-c", "while :; do head -c 20000000 /dev/urandom | gzip -c > /dev/null; done"],
]


@contextlib.contextmanager
def processes(commands):
    """Runs them all, each with its children in a group of its own, and ends just these groups."""
    running = [subprocess.Popen(c, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True) for c in commands]
    try:
        yield [p.pid for p in running]
    finally:
        for p in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
        for p in running:
            p.wait()


class Perf:
    """`perf record` of the whole machine for some seconds: samples, its CPU time, its bytes."""

    def __init__(self, setup, hz, graph, seconds):
        self.data = setup.path(".data")
        argv = ["perf", "record", "-a", "-e", "cpu-clock", "-F", str(hz), "--call-graph", graph, "-o", self.data,
                "--", "sleep", str(seconds)]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=at_priority(TOOL_PRIORITY))

    def wait(self):
        errors = self.process.stderr.read()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        self.bytes = os.path.getsize(self.data)
        os.unlink(self.data)
        found = re.search(r"\((\d+) samples\)", errors)
        self.samples = int(found.group(1)) if found else 0
        self.cpu_ms = (usage.ru_utime + usage.ru_stime) * 1000
        if not self.samples:
            raise RuntimeError("perf record: %s" % errors.strip())
        return self


def least_and_median(values):
    return min(values), statistics.median(values)
