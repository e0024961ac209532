# SPDX-License-Identifier: Apache-2.0
"""The known-answer workloads under `sonde record -- COMMAND`: every chain must be right."""
import contextlib
import functools
import os
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
from cases import WORKLOADS, known_answers
from folded import Expectation, Verdict
from sonde import FREQUENCY, Recorder
from tap import Skip


COMM_MAX = 15
THROTTLED_MAX = 25  # percent of a program's samples; many that begin at once on a busy machine had 15


def expectation(setup, case):
    path = os.path.join(WORKLOADS, case.expect + ".expect")
    return Expectation(path, case.flavour, os.path.basename(case.binary), setup.workloads)


def remove_perf_maps(pids):
    """Those of these processes: any other may be somebody's who has not read it yet."""
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            os.unlink("/tmp/perf-%d.map" % pid)


def writers_of_perf_maps(recorder):
    """Which of the processes that run below a recorder wrote one, when one has or all have ended."""
    while recorder.process.poll() is None:
        found = [pid for pid in guard.descendants(recorder.process.pid) if os.path.exists("/tmp/perf-%d.map" % pid)]
        if found:
            return found
        time.sleep(0.02)
    return []


def runs(binary):
    try:
        return subprocess.run([binary], check=False).returncode == 0
    except OSError:
        return False


def path_of(case, setup):
    """The built workload; raises Skip, or says what is missing."""
    binary = setup.workload(case.binary)
    if not os.path.exists(binary):
        if case.optional and not shutil.which(case.optional):
            raise Skip("no %s" % case.optional)
        return None
    if case.binary == "compat32" and not runs(binary):
        raise Skip("this kernel runs no 32-bit programs")
    return binary


def judge(expected, comm, recording, least):
    """Problems of the stacks of one program in a recording that has stacks, and how many there are."""
    lost = recording.lost()
    # Of processes that nobody knows yet stacks come along, until the ring is full of them: that is counted, and said of the sample.
    samples = sum(stack.count for stack in recording.stacks if stack.comm == comm)
    expected.complete -= min(THROTTLED_MAX, 100 * lost.get("raw_throttled", 0) / max(1, samples))
    verdict = Verdict(expected, recording.stacks, comm, least)
    if verdict.problems and lost:
        verdict.problems.append("  lost: %s" % lost)
    return verdict.problems, verdict.summary()


def least_of(case):
    """How many samples it has at least."""
    return int(case.least * case.seconds * FREQUENCY)


def run(case, setup):
    """A recording of its own."""
    directory = setup.workloads
    binary = path_of(case, setup)
    if not binary:
        return ["%s was not built" % case.binary], None
    if case.copied:
        directory = setup.scratch
        shutil.copy(binary, directory)
    recorder = Recorder(setup, command=case.argv(directory))
    writers = writers_of_perf_maps(recorder) if case.expect.startswith("jit") else []
    recording = recorder.wait()
    remove_perf_maps(writers)
    recording.expect_status(0)
    if recording.stacks is None:
        return recording.problems, None
    problems, summary = judge(expectation(setup, case), case.comm, recording, least_of(case))
    return recording.problems + problems, summary


class Together:
    """One recording of the cases that need none of their own: that costs as much CPU as a case. They run one after the other, each for half
    of its time, at twice the frequency: samples are what is judged, CPU time is what they cost."""

    # A case whose stacks are all alike; of half as many samples the first ones, before its table is there, are twice the share.
    ALIKE, SECONDS, COMPLETE = 50, 0.5, 99
    HURRY = 2
    PATIENT = {"deep"}  # cases.SECONDS tells why

    def __init__(self, cases):
        self.cases = {case.name: case for case in cases}
        self.recording = None
        self.expected = {}

    def tests(self):
        yield "one-recording", self.record
        for case in self.cases.values():
            yield case.name, functools.partial(self.judge, case)

    def _command(self, case, setup):
        """Its line of the script, under a name that none of the others has; None if it cannot run."""
        try:
            binary = path_of(case, setup)
        except Skip:
            binary = None
        if not binary:
            return None
        expected = self.expected[case.name] = expectation(setup, case)
        if min(percent for percent, *_ in expected.need) >= self.ALIKE and case.seconds == 1 and case.least == 0.9:
            case.seconds = self.SECONDS
            expected.only_complete(self.COMPLETE)
        if case.name not in self.PATIENT:
            case.seconds /= self.HURRY
        directory = setup.workloads
        if case.link:
            directory = setup.scratch
            os.symlink(binary, os.path.join(directory, case.link))
        return "%s || echo FAILED %s" % (shlex.join(case.argv(directory)), case.name)

    def record(self, setup):
        seen = set()
        for case in self.cases.values():
            if case.comm in seen:
                case.link = case.comm = case.name[-COMM_MAX:]
            seen.add(case.comm)
        commands = [self._command(case, setup) for case in self.cases.values()]
        recorder = Recorder(setup, command=["sh", "-c", "\n".join(filter(None, commands))], frequency=self.HURRY * FREQUENCY,
                            stdout=subprocess.PIPE)
        said = recorder.process.stdout.read().decode(errors="replace")
        self.recording = recorder.wait()
        self.recording.expect_status(0)
        problems = self.recording.problems + [line for line in said.splitlines() if line.startswith("FAILED")]
        return problems, "%d samples" % sum(stack.count for stack in self.recording.stacks or ())

    def judge(self, case, setup):
        if not path_of(case, setup):
            return ["%s was not built" % case.binary], None
        if not self.recording:
            self.record(setup)
        if self.recording.stacks is None:
            return ["there is no recording"], None
        return judge(self.expected[case.name], case.comm, self.recording, self.HURRY * least_of(case))


def tests(_setup):
    alone, together = [], []
    for case in known_answers():
        (alone if case.own else together).append(case)
    yield from Together(together).tests()
    for case in alone:
        yield case.name, functools.partial(run, case)
