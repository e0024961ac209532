# SPDX-License-Identifier: Apache-2.0
"""Hundreds of processes of 10 ms of CPU each (SONDE_ALL=1: a thousand): no sample is lost because a process is new."""
import functools
import os
import shutil
import signal
import subprocess
import tempfile

from cases import WORKLOADS
from folded import Expectation, Verdict
from modes import SYSTEM, SYSTEM_COMPLETE, recording_began
from sonde import FREQUENCY, Recorder

COUNT = 1000 if os.environ.get("SONDE_ALL") else 400
SECONDS = "0.01"


def names():
    """Names that no other process of this machine has: of the spawner, of the files, of the processes."""
    return tuple("%s%d" % (what, os.getpid()) for what in ("sp", "ch", "sh"))


def copies(setup, count):
    """Executables, each with content of its own, and the spawner: in a folder, as a pattern for the spawner."""
    folder = tempfile.mkdtemp(dir=setup.scratch)
    spawner, file, _ = names()
    shutil.copy(setup.workload("spawner"), os.path.join(folder, spawner))
    with open(setup.workload("chain"), "rb") as f:
        content = f.read()
    for i in range(count):
        path = os.path.join(folder, "%s_%d" % (file, i))
        with open(path, "wb") as f:
            f.write(content + b"%016d" % i)
        os.chmod(path, 0o755)
    return os.path.join(folder, spawner), os.path.join(folder, file + ("_%d" if count > 1 else "_0"))


def run(different, mode, share, setup):
    """The samples of the spawner and its children, against the CPU time that the kernel accounts to them."""
    spawner, program = copies(setup, COUNT if different else 1)
    command = [spawner, str(COUNT), program, SECONDS, names()[2]]
    if mode == "command":
        recorder = Recorder(setup, [], command, stdout=subprocess.PIPE)
        line = recorder.process.stdout.readline().decode()
        recording = recorder.wait()
    else:
        recorder = Recorder(setup, SYSTEM)
        recording_began(recorder)
        line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.wait()
    recording.expect_status(0)
    if recording.stacks is None or not line.startswith("cpu "):
        return recording.problems + ["spawner said %r" % line], None
    return judge(recording, sum(float(x) for x in line.split()[1:]), share, different, mode)


def judge(recording, cpu, share, different, mode):
    # Between fork and exec a child is called spawner, between exec and prctl as its file.
    spawner, file, comm = names()
    ours = [s for s in recording.stacks if s.comm in (spawner, comm) or s.comm.startswith(file)]
    arrived = sum(s.count for s in ours)
    expected = cpu * FREQUENCY
    problems = recording.problems
    if arrived < share * expected:
        problems.append(
            "%d samples arrived, expected %g %% of %.0f (%.2f s of CPU)" % (arrived, 100 * share, expected, cpu)
        )
        problems.append("  lost: %s" % recording.lost())
    e = Expectation(os.path.join(WORKLOADS, "short.expect"), file_pattern=file + "_[0-9]*")
    if mode == "system":
        e.only_complete(SYSTEM_COMPLETE)
    if different:
        e.complete = 95.0
    verdict = Verdict(e, recording.stacks, comm, int(share * 0.8 * COUNT * float(SECONDS) * FREQUENCY))
    note = "%d of %.0f samples arrived; %s" % (arrived, expected, verdict.summary())
    return problems + verdict.problems, note


def tests(_setup):
    yield "same-executable-command", functools.partial(run, False, "command", 0.99)
    yield "same-executable-system", functools.partial(run, False, "system", 0.99)
    yield "different-executables-command", functools.partial(run, True, "command", 0.95)
