#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What an agent has to bear: `load_test.py SONDE BUILD_FOLDER [TEST...]`, TAP: 2,000 processes, 5,000 short ones a minute,
100,000 mappings, 20,000 threads, half a minute each; storms of forks and of executions, for a few seconds, with SONDE_ALL (make
test-all) as long as the others.

Of each: --memory-limit holds, for memory and BPF maps together, whenever it is asked; what was taken, lost and left out is what the
kernel's program was called for, to the last one; and whoever has samples is who he says he is.
"""
import contextlib
import gzip
import os
import re
import signal
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
from running import BUILD, EVERY_RUNTIME, PROFCHECK, State, agent, of_native_code, places, resources, run_tests, workload
from tap import check

CROWD = f"{BUILD}/tests/agent/crowd"
HZ = 97
LIMIT = 64 << 20
# As tests/soak has it: what was just asked for and not yet given back.
MEMORY_SLACK = 1.25
REPORTS = 60  # of half a second
# Reports of these take long: they leave no CPU to anybody.
STORM_REPORTS = REPORTS if os.environ.get("SONDE_ALL") else 6


RUNS = re.compile(r"of (\d+) runs of the sampling program (\d+) gave samples, (\d+) were lost, (\d+) not selected, (\d+) not wanted, (\d+) undecided")


@contextlib.contextmanager
def crowd(kind, number):
    """It works; `names`: of the processes that it told of by now."""
    # Its threads are of another session: they have no more of the CPUs together than this test has.
    process = subprocess.Popen(["nice", CROWD, kind, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    process.names = {}
    try:
        for line in process.stdout:
            if line == "ready\n":
                break
            pid, name = line.split()
            process.names[int(pid)] = name
        check(process.poll() is None, f"crowd {kind} {number} ended")
        yield process
    finally:
        guard.Guard(process).end()


def busy_seconds():
    """Of all CPUs, but idle, waiting for disks, and not there: what a hypervisor has others do meanwhile is not sampled."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def check_runs(said):
    """What the runs gave: samples, lost, ... They are 0 where the kernel does not count them."""
    runs, *became = map(int, RUNS.findall(said)[-1])
    check(not runs or runs == sum(became), f"of {runs} runs there are {became}")
    return became


class Load:
    """An agent that has seen REPORTS reports of it, or STORM_REPORTS."""

    def __init__(self, *storms, **variables):
        """Without sources other than the clocks: their losses would be among these. `storms` begin when it samples: they take all CPUs."""
        self.most = 0
        with agent("--output-dir", "out", "--reporter-interval", "0.5", "--samples-per-second", HZ, "--memory-limit", "64M",
                   "--kernel-threads", "--metrics-listen", "127.0.0.1:0", "-v", **variables) as a, contextlib.ExitStack() as stack:
            port = a.wait_for(r"metrics are at http://127\.0\.0\.1:(\d+)/metrics")[1]
            a.wait_for("the agent samples")
            before = busy_seconds()
            for kind in storms:
                stack.enter_context(crowd(kind, 2))
            for _ in range(STORM_REPORTS if storms else REPORTS):
                a.wait_for(r"report \d+: ")
                self.ask(port)
            self.said = a.end()
            self.busy = busy_seconds() - before
        self.state = State(self.said)
        self.lost = int(re.findall(r"state: \d+ s, \d+ samples, [\d.]+ % complete, (\d+) lost", self.said)[-1])
        self.files = []
        for name in sorted(os.listdir("out")):
            with gzip.open(f"out/{name}") as packed, open(f"{name}.plain", "wb") as out:
                out.write(packed.read())
            self.files.append(f"{name}.plain")
        self.check()

    def ask(self, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        value = lambda name: int(float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1]))
        self.most = max(self.most, value("sonde_resident_memory_bytes") + value("sonde_bpf_memory_bytes"))

    def check(self):
        s = self.state
        print(f"# {s.samples} samples, {self.lost} lost, {self.busy:.1f} s of CPUs, at most {self.most / 1e6:.1f} MB")
        s.check_sum()
        check(s.delivered == s.samples, vars(s))
        found = self.samples_of(None)
        check(found == s.samples, f"{found} samples are in the reports, {s.samples} were taken")
        check(self.most <= MEMORY_SLACK * LIMIT, f"{self.most / 1e6:.1f} MB")
        # A clock that ticks while something runs. How many ticks a hypervisor, or who holds interrupts back, has swallowed nobody knows ...
        check(s.samples + self.lost > 0.5 * HZ * self.busy, f"{s.samples} and {self.lost} lost in {self.busy} s")
        # ... but of each tick that came the kernel counts a run of the program, whatever that made of it.
        check_runs(self.said)

    def samples_of(self, pids):
        """None: of all."""
        return sum(resource["samples"] for path in self.files for resource in resources(path)
                   if pids is None or resource["attributes"]["process.pid"] in pids)

    def places(self):
        return [resource for path in self.files for resource in places(path)]

    def check_many(self, seen, number, pids):
        """An eighth of the crowd, at least, has samples. They work in turn, so that a few samples, as on a busy machine, are of as many of them."""
        samples = self.samples_of(pids)
        check(len(seen) > min(number, samples) / 8, f"{samples} samples are of {len(seen)} of {number}")

    def check_names(self, names, also=("crowd",)):
        """Each process of `names` has samples under its own name only; many have any."""
        seen = set()
        for resource in self.places():
            pid = resource["attributes"]["process.pid"]
            if pid in names:
                others = set(resource["threads"]) - {names[pid], *also}
                check(not others, f"{pid} is {names[pid]}, and has samples of {others}")
                check(resource["attributes"].get("process.executable.name", "crowd") == "crowd", resource["attributes"])
                seen.add(pid)
            else:
                mine = [thread for thread in resource["threads"] if thread in names.values()]
                check(not mine, f"{pid} is none of them, and has samples of {mine}")
        self.check_many(seen, len(names), names)


def test_many_processes():
    number = 2000
    with crowd("processes", number) as c:
        load = Load(**EVERY_RUNTIME)  # their programs take of the limit, too
        names = c.names
    check(len(names) == number, f"{len(names)} processes")
    load.check_names(names)


def test_short_processes():
    with crowd("short", 5000) as c:
        load = Load()
        rest = c.communicate("")[0]
    names = {int(pid): name for pid, name in (line.split() for line in rest.splitlines())}
    load.check_names(names)


@contextlib.contextmanager
def system_setting(path, least):
    """At least that, and afterwards what it was."""
    with open(path, encoding="ascii") as file:
        before = int(file.read())
    try:
        if before < least:
            with open(path, "w", encoding="ascii") as file:
                file.write(str(least))
        yield
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(before))


def test_many_mappings():
    number = 100000
    with system_setting("/proc/sys/vm/max_map_count", 2 * number + 10000), crowd("mappings", number) as c:
        load = Load()
        pid = c.pid
    mine = [resource for resource in load.places() if resource["attributes"]["process.pid"] == pid]
    check(mine, "it has no samples")
    functions = set().union(*(resource["functions"] for resource in mine))
    check("crowd_work" in functions, functions)
    check(set().union(*(resource["threads"] for resource in mine)) <= {"m-0"}, mine)


def test_many_threads():
    with open("/proc/sys/kernel/threads-max", encoding="ascii") as file:
        number = min(20000, int(file.read()) // 2)
    with system_setting("/proc/sys/kernel/pid_max", 65536), system_setting("/proc/sys/vm/max_map_count", 65530), \
            crowd("threads", number) as c:
        load = Load()
        pid = c.pid
    seen = set()
    for resource in load.places():
        threads = {name for name in resource["threads"] if re.fullmatch(r"t-\d+", name)}
        check(not threads or resource["attributes"]["process.pid"] == pid, resource["attributes"])
        seen |= threads
    load.check_many(seen, number, {pid})


def test_storms():
    load = Load("forks", "execs")
    for resource in load.places():
        if resource["attributes"].get("process.executable.name") == "crowd":
            check(set(resource["threads"]) <= {"crowd", ""}, resource)


def test_a_ring_that_runs_over():
    """While the agent stands still: what found no room is counted, one by one."""
    with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as file:
        rate = min(int(file.read()), 20000)
    with agent("--output-dir", "out", "--samples-per-second", rate, "-v") as a, contextlib.ExitStack() as stack:
        a.wait_for("the agent samples")
        a.send(signal.SIGSTOP)
        # Each ends when it has had so much of a CPU.
        for burner in [stack.enter_context(workload(PROFCHECK, "burn", "1.2")) for _ in range(os.cpu_count())]:
            burner.wait()
        a.send(signal.SIGCONT)
        a.wait_for(r"report \d+: ")
        said = a.end()
    samples, lost, *_ = check_runs(said)
    check(samples == State(said).samples > 0, vars(State(said)))
    return (), f"{samples} samples, {lost} lost at {rate} Hz"


if __name__ == "__main__":
    of_native_code()
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-load-")))
