# SPDX-License-Identifier: Apache-2.0
"""An agent that runs, and who reads what it delivers. The test's arguments are SONDE BUILD_FOLDER [TEST...]."""
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

import guard
import profcheck_program
import tap
from command import run
from tap import check

SONDE, BUILD = (os.path.abspath(arg) for arg in sys.argv[1:3])
PROFCHECK = profcheck_program.path(BUILD)
TIMEOUT = 300  # seconds for what hangs
FAST = ("--reporter-interval", "0.1", "--samples-per-second", "199", "--retry-delay", "20ms", "-v")
EVERY_RUNTIME = {"SONDE_TRACERS": "all"}
DEFAULTS = {}  # of an agent's environment
# The call is given up at the end's own time; on a busy machine whoever waits for that may see no CPU until his time is over, too.
ENDED_BEFORE_AN_ANSWER = re.compile("it took too long for an end in order|the end does not wait for .*, which does not answer")
STATE = re.compile(r"state: \d+ s, (\d+) samples, (?:.|\n)*?state: (\d+) reports with (\d+) samples, \d+ kB, were delivered, (\d+) with "
                   r"(\d+) samples were not, (\d+) with (\d+) were dropped; (\d+) of \d+ kB wait; (\d+) tries failed, (\d+) profiles")


class Agent:
    """One that runs; what it says is read all the time, since a pipe that is full would stop it, and told line by line."""

    def __init__(self, *args, **variables):
        # A system call that the filter does not allow ends it, and the test.
        env = {**os.environ, "SONDE_SANDBOX_KILL": "true", **DEFAULTS, **variables}
        self.process = subprocess.Popen([SONDE, "agent", *map(str, args)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        self.lines = []
        self.said = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.said.put(line)
        self.said.put(None)

    def wait_for(self, pattern, times=1):
        """Until it has said that so often from what was told before on; the last match."""
        end = time.monotonic() + TIMEOUT
        while times:
            try:
                line = self.said.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"in {TIMEOUT} s it has not said '{pattern}': {self.lines[-5:]}") from None
            if line is None:
                self.said.put(None)
            check(line, f"it ended before it said '{pattern}': {self.lines[-5:]}")
            self.lines.append(line)
            match = re.search(pattern, line)
            times -= match is not None
        return match

    def send(self, number):
        self.process.send_signal(number)

    def rest(self):
        """What it said from what was told before on, once it has ended; `lines` has that, too."""
        self.process.wait(TIMEOUT)
        before = len(self.lines)
        self.lines += iter(lambda: self.said.get(timeout=TIMEOUT), None)
        self.said.put(None)
        return "".join(self.lines[before:])

    def end(self, number=signal.SIGTERM, status=0):
        """All that it said."""
        self.send(number)
        self.rest()
        check(self.process.returncode == status, f"status {self.process.returncode}: {self.lines[-5:]}")
        return "".join(self.lines)


@contextlib.contextmanager
def agent(*args, **variables):
    running = Agent(*args, **variables)
    try:
        yield running
    finally:
        guard.Guard(running.process).end()


@contextlib.contextmanager
def workload(*argv, **options):
    process = subprocess.Popen([str(arg) for arg in argv], stdout=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def resources(path):
    return [json.loads(line) for line in run(PROFCHECK, "resources", path).stdout.splitlines()]


def places(path):
    """The resources of a report, with the files, functions, threads, kinds and types of samples of each."""
    return [json.loads(line) for line in run(PROFCHECK, "places", path).stdout.splitlines()]


class State:
    """What the agent said last of itself."""

    def __init__(self, said):
        numbers = [int(number) for number in STATE.findall(said)[-1]]
        (self.samples, self.reports, self.delivered, self.refused_reports, self.refused, self.dropped_reports, self.dropped, self.waiting,
         self.retries, self.rejected) = numbers

    def check_sum(self):
        check(self.delivered + self.refused + self.dropped == self.samples and not self.waiting, vars(self))


def of_native_code():
    """For a file of tests that are not about runtimes: to load their programs is most of what an agent of some seconds costs. One that is
    about them gives its agent EVERY_RUNTIME."""
    DEFAULTS["SONDE_TRACERS"] = "native"


# What waits in two minutes has room in the queue, on a busy machine, too.
EVERY_SECOND = ("--reporter-interval", "1")


def outage(a):
    """The collector of `a`, which reports EVERY_SECOND and has said that nobody answers, is away for two minutes. How many reports wait then."""
    time.sleep(120)
    a.send(signal.SIGUSR1)
    waiting = int(a.wait_for(r"were dropped; (\d+) of \d+ kB wait")[1])
    check(waiting > 60, f"{waiting} reports of a second each")
    return waiting


def burn():
    return workload(PROFCHECK, "burn", "600")


def simmer():
    """Something that is in each report, for who asks how reports travel: it need not take a whole CPU from the other tests."""
    return workload(PROFCHECK, "simmer", "600")


def samples_of(bodies, ours=True):
    """How many samples are in these requests, each of which keeps every rule, if it is as we sent it."""
    total = 0
    for number, body in enumerate(bodies):
        with open(f"request{number}", "wb") as file:
            file.write(body)
        if ours:
            run(PROFCHECK, "otlp", f"request{number}")
        total += sum(resource["samples"] for resource in resources(f"request{number}"))
    return total


def run_tests(tests, prefix):
    tests = {name[5:]: value for name, value in tests.items() if name.startswith("test_")}
    wanted = sys.argv[3:] or list(tests)
    if os.geteuid():
        return tap.skip_all("needs root")
    try:
        profcheck_program.build(BUILD)
    except tap.Skip as reason:
        return tap.skip_all(reason)
    return tap.run((name, tap.in_own_folder(tests[name], prefix)) for name in wanted)
