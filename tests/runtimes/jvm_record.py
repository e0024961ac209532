# SPDX-License-Identifier: Apache-2.0
"""Starts the programs of jvm/*.java and records them, and judges what was recorded by what they told."""
import collections
import contextlib
import glob
import os
import re
import signal
import time

from runtimes import Program, Recorder, tally
from jvm_judge import BETWEEN, BEYOND, EARLY, Chains, Frame, JavaTally, is_early
from jvm_scenarios import COLLECTORS, LEAST, MOST
from jvm_toolchain import CLASSES, COMPILERS_FIRST, EXACT, SMALL, TELLING
from modes import burnt, cpu_seconds, recording_began, wait_until
from sonde import PATIENCE

BUSY_CPUS = 1.5  # on average, of two on a machine of its own: so many seconds of CPU are recorded, for each that is asked for
NICE = int(os.environ.get("SONDE_NICE", "0"))
OPTIONS = os.environ.get("SONDE_JAVA_OPTIONS", "").split()  # that code is compiled sooner, for example


def chains_of(truths):
    """comm -> Chains"""
    told = {}
    for t in truths:
        told.setdefault(t["comm"], []).append(t["chain"])
    # With several virtual machines at a time each has a prefix.
    scenario = {c: re.sub("^(?:%s)-" % "|".join(x[0] for x in COLLECTORS), "", c) for c in told}
    return {c[:15]: Chains(chains, BEYOND.get(scenario[c]), BETWEEN.get(scenario[c]), c.startswith("deopt"))
            for c, chains in told.items()}


def start(setup, jdk, options, *program):
    CLASSES.ensure(setup)
    logging = ["-Xlog:disable", "-Xlog:all=warning:stderr"] * (jdk.release >= 9)
    argv = jdk.argv(*SMALL, *TELLING, *EXACT, *COMPILERS_FIRST, *OPTIONS, *logging, *options, "-cp", CLASSES.folder, *program)
    return Program(argv, env={"LC_ALL": "C.UTF-8"}, nice=NICE)


class Thread:
    """What /proc says of a thread."""

    def __init__(self, path):
        self.tid = os.path.basename(path)
        with open(path + "/stat", encoding="utf-8", errors="replace") as f:
            head, _, rest = f.read().rpartition(")")
        fields = rest.split()
        self.comm = head.partition("(")[2]
        self.sleeps = fields[0] == "S"
        self.seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads_of(pid):
    found = []
    for path in glob.glob("/proc/%d/task/*" % pid):
        try:
            found.append(Thread(path))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def until_warm(programs, seconds):
    """Programs that were started with warm() are ready, and each thread has had its CPU time since all was told: what is hot is compiled
    then, also where it had been compiled for telling. Threads that are warm rest until all are, and those that could not begin."""
    for program in programs:
        program.until_ready(600)
    for program in programs:
        warmed_up(program, seconds, resting=True)
    for program in programs:
        program.go()
        program.said("running")


def warm(seconds):
    """The option for that."""
    return "-Dwarm=%d" % (100 * seconds)


def warmed_up(program, seconds, limit=600, resting=False):
    """Waits until every thread that told something has had so much CPU time since all was told, and the compilers nothing to
    do: what is hot is compiled then, also where it had been compiled for telling. `resting`: a thread that sleeps has had its time."""
    comms, idle, end = {t["comm"][:15] for t in program.truths}, 0, time.monotonic() + limit * PATIENCE
    before = {t.tid: t.seconds for t in threads_of(program.pid)}
    while idle < 3 and time.monotonic() < end:
        threads = threads_of(program.pid)
        busy = any(not t.sleeps for t in threads if re.match("C[12] Comp", t.comm))
        cold = any(t.seconds < before.get(t.tid, 0) + seconds and not (resting and t.sleeps) for t in threads if t.comm in comms)
        idle = 0 if busy or cold else idle + 1
        time.sleep(0.05)


def family(pid):
    """A process and its children."""
    found = [str(pid)]
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        # A thread may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path, encoding="ascii") as f:
            found += f.read().split()
    return found


def cpu_of(pids):
    used = 0
    for pid in pids:
        # It may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            used += cpu_seconds(int(pid))
    return used


def recorded_from_before(setup, program, seconds, *options):
    """A recording that begins before the program has a JVM, and ends when each thread has had so much CPU time."""
    recorder = Recorder(setup, ["-p", str(program.process.pid), "--lines", *options])
    recording_began(recorder)
    program.go()
    program.until_ready(600)
    warmed_up(program, seconds)
    return ended(recorder, program)


def ended(recorder, *programs):
    """What was recorded; meanwhile its programs rest."""
    recorder.process.send_signal(signal.SIGTERM)
    for program in programs:
        program.pause()
    recording = recorder.wait()
    for program in programs:
        program.resume()
    return recording


def recorded_for(setup, program, seconds, options=(), kind=Recorder, **more):
    """A recording of one that is ready, until it has had so much CPU time."""
    recorder = kind(setup, ["-p", str(program.pid), *options], **more)
    recording_began(recorder)
    burnt(program.pid, seconds)
    recording = ended(recorder, program)
    recording.expect_status(0)
    return recording


def record(setup, programs, *options):
    """A recording, until the programs have had their CPU time together; and a longer one if there is little in it: what is right
    must be so in either. The programs rest until it has begun, when their standard inputs end."""
    for seconds in (setup.seconds, 3 * setup.seconds):
        pids = [p for program in programs for p in family(program.process.pid)]
        for program in programs:
            program.pause()
        recorder = Recorder(setup, ["-p", ",".join(pids), "--lines", *options])
        recording_began(recorder)
        for program in programs:
            program.go()
            program.resume()
        end = cpu_of(pids) + seconds * BUSY_CPUS
        wait_until("%g s of CPU" % (seconds * BUSY_CPUS), lambda pids=pids, end=end: cpu_of(pids) >= end, 900)
        recording = ended(recorder, *programs)
        recording.expect_status(0)
        counts = collections.Counter()
        for s in recording.stacks or []:
            counts[s.reason in EARLY] += s.count
        if counts[False] > max(4 * counts[True], 600 * setup.seconds):
            break
    return recording


def shares(recording, comms, test):
    """How many samples of these comms have a frame that passes the test, and how many there are, without early ones."""
    passed = total = 0
    for s in recording.stacks or []:
        if s.comm in comms and not is_early(s):
            total += s.count
            passed += s.count * any(test(Frame(f)) for f in s.user)
    return passed, total


def judge_all(recording, truths, least=1):
    """Problems and a note about all scenarios of a recording."""
    problems, notes = list(recording.problems), []
    total = sum(s.count for s in recording.stacks or [])
    near = samples = complete = 0
    if total < 200:
        problems.append("only %d samples" % total)
    if total < 1500:
        least = 0  # a busy machine gives no time to each thread
    lost = {k: v for k, v in recording.lost().items() if v}
    for comm, chains in chains_of(truths).items():
        t = tally(recording, comm, comm, chains.judge, JavaTally)
        problems += t.problems(least, LEAST.complete_of_comm_percent)
        notes.append(t.summary())
        near += chains.near
        samples += t.samples
        complete += t.complete
    if complete < LEAST.complete * samples:
        problems.append("%d of %d samples are complete" % (complete, samples))
    if near > MOST.near * total:
        problems.append("%d of %d samples have other inlined functions than were told" % (near, total))
    return problems, ", ".join(notes) + " near: %d" % near + (" lost: %s" % lost if lost else "")
