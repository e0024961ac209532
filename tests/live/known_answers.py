# SPDX-License-Identifier: Apache-2.0
"""The known-answer workloads under `sonde record -- WORKLOAD`: every chain must be right."""
import contextlib
import functools
import os
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


def run(case, setup):
    directory = setup.workloads
    binary = setup.workload(case.binary)
    if not os.path.exists(binary):
        if case.optional and not shutil.which(case.optional):
            raise Skip("no %s" % case.optional)
        return ["%s was not built" % binary], None
    if case.binary == "compat32" and not runs(binary):
        raise Skip("this kernel runs no 32-bit programs")
    if case.copied:
        directory = setup.scratch
        shutil.copy(binary, directory)
    recorder = Recorder(setup, command=case.argv(directory))
    writers = writers_of_perf_maps(recorder) if case.expect.startswith("jit") else []
    recording = recorder.wait()
    remove_perf_maps(writers)
    recording.expect_status(0)
    problems = recording.problems
    if recording.stacks is None:
        return problems, None
    least = int(case.least * case.seconds * FREQUENCY)
    verdict = Verdict(expectation(setup, case), recording.stacks, case.comm, least)
    lost = recording.lost()
    if verdict.problems and lost:
        verdict.problems.append("  lost: %s" % lost)
    return problems + verdict.problems, verdict.summary()


def tests(_setup):
    return [(case.name, functools.partial(run, case)) for case in known_answers()]
