# SPDX-License-Identifier: Apache-2.0
"""
Off-CPU profiling: `record --off-cpu`. A workload whose threads sleep in every way, each in a function of its own, measures its
own sleeps; what was recorded below each function is the same. docs/off-cpu.md.
"""
import collections
import math
import os
import shutil
import subprocess
import sys

import folded_text
import pprof_file
from folded import parse_folded
from sonde import Recorder, told_of
from tap import Skip

PERCENT = 3
SLEEPS = 13000  # or more, of the workload's
UNCOUNTED = ("faults", "competes")  # what these tell is no number of sleeps
EACH_TIME = {"locks": 2}  # sleeps, of different lengths
LATE_MS = 4  # of a thread's preemption that the workload did not measure, or measured and was in no function of its
SLEEPER = """
import threading, time
def inner(): time.sleep(0.02)
def outer():
    for _ in range(5): inner()
def waits():
    with condition: condition.wait()
time.sleep(0.3)
for _ in range(20): outer()
condition = threading.Condition()
other = threading.Thread(target=waits)
other.start()
time.sleep(1)
with condition: condition.notify_all()
other.join()
time.sleep(1) # until a recorder that is late has read the names
"""
WAKER = """
import threading, time
def waits():
    for _ in range(20):
        with condition: condition.wait()
def rings():
    with condition: condition.notify()
condition = threading.Condition()
other = threading.Thread(target=waits)
other.start()
while other.is_alive():
    time.sleep(0.02)
    rings()
time.sleep(1)
"""
# The first one in Java.
JAVA_SLEEPER = """
public class Sleeper {
    static boolean done;
    static void inner() throws InterruptedException { Thread.sleep(20); }
    static void outer() throws InterruptedException {
        for (int i = 0; i < 5; i++)
            inner();
    }
    static synchronized void waits() {
        try {
            while (!done)
                Sleeper.class.wait();
        } catch (InterruptedException e) {
            return;
        }
    }
    static synchronized void ends() {
        done = true;
        Sleeper.class.notifyAll();
    }
    public static void main(String[] args) throws InterruptedException {
        Thread.sleep(300);
        for (int i = 0; i < 20; i++)
            outer();
        Thread other = new Thread(Sleeper::waits);
        other.start();
        Thread.sleep(1000);
        ends();
        other.join();
        Thread.sleep(1000);
    }
}
"""

Told = collections.namedtuple("Told", "ns nr")
"""What the workload says of a function: how long it slept in it in all, how often."""


class SleepRecorder(Recorder):
    """`mode`: of --off-cpu."""

    def __init__(self, setup, mode, options, command):
        super().__init__(setup, ["--off-cpu", mode, *options], command, kept=setup.path(".otlp"))


def record(setup, mode, options, command):
    """A recording, the sleeps in it as folded text, and the OTLP that both are out of."""
    return finish(setup, SleepRecorder(setup, mode, options, command))


def finish(setup, recorder):
    kept, recording = recorder.kept, recorder.wait()
    recording.expect_status(0)
    done = subprocess.run([setup.program, "convert", kept, "-", "-f", "folded", "--type", "off_cpu"], check=False,
                          capture_output=True, text=True)
    with open(kept, "rb") as f:
        otlp = f.read()
    os.unlink(kept)
    if done.returncode:
        recording.problems.append(done.stderr)
    # A kernel may not tell of every switch: docs/off-cpu.md.
    allowed = {"raw_throttled": math.inf, "sleep_missed": SLEEPS / 100}
    for reason, nr in recording.lost().items():
        if nr > allowed.get(reason, 0):
            recording.problems.append("lost: %s" % recording.lost())
    return recording, done.stdout, otlp


def parse_told(lines):
    return {name: Told(int(ns), int(nr)) for name, ns, nr in map(str.split, lines)}


def read_told(path):
    with open(path, encoding="utf-8") as f:
        return parse_told(f)


def of_sleeps(setup, mode, options):
    """A recording of the workload, its folded stacks, what it told, and the OTLP."""
    path = setup.path(".told")
    recording, text, otlp = record(setup, mode, options, [setup.workload("sleeps"), "0", path])
    told = read_told(path)
    # Not every machine has userfaultfd().
    if len(told) not in (10, 11):
        recording.problems.append("the workload told of %d functions" % len(told))
    return recording, text, told, otlp


def sleeps(setup, mode, options=()):
    """A recording of the workload, what it told, and by function what was recorded."""
    recording, text, told, otlp = of_sleeps(setup, mode, options)
    return recording, told, by_function(recording.problems, text, told), otlp


def by_function(problems, text, told, comm="sleeps"):
    found = collections.Counter()
    for stack in parse_folded(text):
        if stack.comm != comm:
            continue
        names = [frame for frame in stack.user if frame in told]
        found[names[0] if len(names) == 1 else ";".join(stack.user)] += stack.count
        if stack.kernel and stack.kernel[-1].removesuffix("_[k]").split(".")[0] not in ("__schedule", "schedule"):
            problems.append("%d ns of a sleep outside of the scheduler: %s" % (stack.count, stack.kernel[-1]))
    return found


def note_of(told, found):
    return ", ".join("%s %.1f of %.1f ms" % (name, found[name] / 1e6, told[name].ns / 1e6) for name in sorted(told))


def check(problems, what, found_ns, told_ns, deviation=0.0):
    """`deviation`: of the estimate by chance, one sigma; five are far enough."""
    allowed = told_ns * PERCENT / 100 + LATE_MS * 1e6 + 5 * deviation
    if abs(found_ns - told_ns) > allowed:
        problems.append("%s: %.2f ms recorded, %.2f ms slept" % (what, found_ns / 1e6, told_ns / 1e6))


def every_sleep(setup, options=()):
    """All are taken: each way to sleep, also of threads that go on on another CPU, is there with its time."""
    recording, told, found, otlp = sleeps(setup, "1", options)
    for name, t in told.items():
        check(recording.problems, name, found[name], t.ns)
    for word in (b"process.context.label.thread.state", b"interruptible", b"preempted", b"off_cpu"):
        if word not in otlp:
            recording.problems.append("no %s in the OTLP" % word)
    return recording.problems, note_of(told, found)


def states(setup):
    """thread.state: what its sleeps were of each function's time; in pprof, whose values the stacks share."""
    kept, pprof = setup.path(".otlp"), setup.path(".pb.gz")
    recording = Recorder(setup, ["--off-cpu", "1"], [setup.workload("sleeps"), "0", setup.path(".told")], kept=kept).wait()
    recording.expect_status(0)
    subprocess.run([setup.program, "convert", kept, pprof, "-f", "pprof"], check=True, capture_output=True)
    by = collections.defaultdict(collections.Counter)
    for sample in pprof_file.read(pprof):
        for name in sample.names:
            by[name][sample.labels.get("thread.state")] += sample.values[-1]
    for state, functions in {"interruptible": ["naps", "dozes", "hibernates", "polls", "reads", "travels"],
                             "uninterruptible": ["blocks"], "preempted": ["competes"]}.items():
        for function in functions:
            found = by[function]
            # A busy machine preempts what is about to sleep, too.
            if not found[state] or found[state] < 0.8 * sum(found.values()):
                recording.problems.append("%s: %s" % (function, dict(found)))
    return recording.problems, ", ".join("%s %.1f ms" % (f, sum(by[f].values()) / 1e6) for f in ("blocks", "competes"))


def by_interrupt(setup):
    """As on kernels that have no tracepoint where a thread goes on."""
    return every_sleep(setup, ["--off-cpu-kick"])


def by_chance(setup):
    """Three of four sleeps are taken, and each stands for one and a third: sums are what was slept."""
    chance = 0.75
    recording, told, found, _ = sleeps(setup, str(chance))
    for name, t in told.items():
        # Those of one function are about as long as each other.
        each = t.ns / t.nr
        deviation = each * math.sqrt(t.nr * (1 - chance) / chance)
        if t.nr >= 50 and name not in UNCOUNTED:
            check(recording.problems, name, found[name], t.ns, deviation)
    naps = told["naps"]
    if abs(found["naps"] - naps.ns) > naps.ns * PERCENT / 100:
        recording.problems.append("of %d short sleeps %.2f ms, slept %.2f ms" % (naps.nr, found["naps"] / 1e6, naps.ns / 1e6))
    return recording.problems, note_of(told, found)


def weighted_deviation(name, t, weight):
    """Of the estimate of a function's time, one sigma: sleeps shorter than the weight stand for that, or for nothing."""
    if name in UNCOUNTED:
        return math.sqrt(weight * t.ns)  # the most that there can be
    if name in EACH_TIME:  # their mean is no length of any: as if each had the one that is least certain
        return weight / 2 * math.sqrt(t.nr * EACH_TIME[name])
    chance = min(t.ns / t.nr / weight, 1)
    return weight * math.sqrt(t.nr * chance * (1 - chance))


def weighted(setup):
    """One sample for 2 ms of sleep: sums are right, what is longer is always there, and with its own time."""
    weight = 2e6
    recording, told, found, _ = sleeps(setup, "weighted=2ms")
    for name, t in told.items():
        check(recording.problems, name, found[name], t.ns, weighted_deviation(name, t, weight))
    check(recording.problems, "all", sum(found[name] for name in told), sum(t.ns for t in told.values()))
    return recording.problems, note_of(told, found)


def long_blocks(setup):
    """Of a single sleep of ten seconds nothing is left to chance, whatever the weight; each weight has a program of its own to record."""
    runs, problems = [], []
    for mode in ("weighted=1ms", "weighted=1s"):
        path = setup.path(".told")
        runs.append((mode, path, SleepRecorder(setup, mode, (), [setup.workload("sleeps"), "0", path, "once"])))
    for mode, path, recorder in runs:
        recording, text, _ = finish(setup, recorder)
        told = read_told(path)
        found = by_function(recording.problems, text, told)
        if len(told) not in (5, 6):
            problems.append("the workload told of %s" % told)
        missed = [name for name in told if not found[name]]
        # Those that the kernel does not tell of are counted.
        may_miss = len(missed) <= recording.lost().get("sleep_missed", 0)
        for name, t in told.items():
            if name not in missed or not may_miss:
                check(recording.problems, name, found[name], t.ns)
        problems += ["%s: %s" % (mode, problem) for problem in recording.problems]
    return problems, note_of(told, found)


def sleep_once(setup, argv):
    """A recording of a sleep of 0.3 s, and how long it was."""
    done = subprocess.run([setup.program, "record", *argv], check=False, capture_output=True, text=True)
    slept = sum(s.count for s in parse_folded(done.stdout) if any("nanosleep" in frame for frame in (*s.user, *s.kernel)))
    return slept >= 0.3e9, done.stderr, (done, slept)


def alone(setup):
    """--off-cpu without a value, before an option and before a command: a sleep of 0.3 s is there, with a command that is no value."""
    problems, found = [], []
    for argv in (["--off-cpu", "--type", "off_cpu", "-f", "folded", "-o", "-", "--", "sleep", "0.3"],
                 ["--type", "off_cpu", "-f", "folded", "-o", "-", "--off-cpu", "sleep", "0.3"]):
        done, slept = told_of(lambda argv=argv: sleep_once(setup, argv))
        found.append("%.1f ms" % (slept / 1e6))
        # Its end may be late, its begin cannot be early.
        if done.returncode or not 0.3e9 <= slept < 30e9:
            problems.append("%s: %.1f ms of 300: %s" % (argv, slept / 1e6, done.stderr))
    return problems, ", ".join(found)


def no_short_ones(setup):
    """--off-cpu-min: what sleeps for a millisecond is not there, what sleeps for two seconds is."""
    def record():
        recording, told, found, _ = sleeps(setup, "1", ["--off-cpu-min", "500ms"])
        return found["hibernates"] or recording.problems, recording.lost(), (recording, told, found)

    recording, told, found = told_of(record)
    if not found["hibernates"]:
        recording.problems.append("lost: %s; found: %s" % (recording.lost(), found.most_common(12)))
    check(recording.problems, "hibernates", found["hibernates"], told["hibernates"].ns)
    # On a machine where each of them waits half a second for a CPU it would be wrong to find none.
    if found["naps"] > 0.5 * told["naps"].ns:
        recording.problems.append("%.1f ms of short sleeps" % (found["naps"] / 1e6))
    return recording.problems, note_of(told, found)


def python(setup):
    """A sleeping thread has its script's frames, whether it sleeps or waits for another."""
    script = os.path.join(setup.scratch, "off_cpu.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(SLEEPER)
    return script_frames(setup, "python", [sys.executable, script], ["<module>", "outer", "inner"], "waits")


def java(setup):
    """A thread of Java that sleeps has the frames of its methods."""
    if not shutil.which("javac"):
        raise Skip("no JDK on this machine")
    source = os.path.join(setup.scratch, "Sleeper.java")
    with open(source, "w", encoding="utf-8") as f:
        f.write(JAVA_SLEEPER)
    subprocess.run(["javac", "-d", setup.scratch, source], check=True)
    return script_frames(setup, "hotspot", ["java", "-cp", setup.scratch, "Sleeper"], ["Sleeper.main", "Sleeper.outer", "Sleeper.inner"],
                         "Sleeper.waits")


def script_frames(setup, tracer, command, chain, waits):
    """Of a program that sleeps for two seconds below `chain`, and for one in a wait() below `waits`."""
    recording, text, _ = record(setup, "1", ["--tracers", tracer], command)
    stacks = parse_folded(text)
    slept = sum(s.count for s in stacks if [f for f in s.user if f in chain] == chain)
    waited = sum(s.count for s in stacks if waits in s.user and any(f.endswith(".wait") or f == "wait" for f in s.user))
    if slept < 1.9e9:
        recording.problems.append("%.1f ms of 2000 ms with all functions" % (slept / 1e6))
    if not 0.9e9 < waited < 1e10:
        recording.problems.append("%.1f ms of a second of waiting" % (waited / 1e6))
    return recording.problems, "%.1f ms asleep, %.1f ms waiting" % (slept / 1e6, waited / 1e6)


def wakers(text, function):
    """Of what was slept in that function: nanoseconds by the frames behind it from who woke on, outermost last."""
    by = collections.Counter()
    for line in text.splitlines():
        _, frames, ns = folded_text.parse_line(line)
        at = [i for i, frame in enumerate(frames) if frame.startswith("[woken by")]
        if function in frames[:at[0] if at else None]:
            by[tuple(frame.removesuffix("_[k]") for frame in frames[at[0]:]) if at else ()] += ns
    return by


def uncut_wakers(text, function):
    """Without those whose process or code was not known yet."""
    by = wakers(text, function)
    return collections.Counter({frames: ns for frames, ns in by.items() if not frames or not frames[-1].startswith("[waker truncated")})


def check_wakers(recording, text, told, wanted):
    """`wanted`: by function the marker, and functions of who wakes, in the order from the waking one."""
    for function, (marker, *chain) in wanted.items():
        by = uncut_wakers(text, function)
        right = sum(ns for frames, ns in by.items() if frames[:1] == (marker,) and [f for f in frames if f in chain] == chain)
        # Nobody has woken a thread that waited for its CPU only.
        if not right or right < 0.95 * (sum(by.values()) - by[()]):
            recording.problems.append("%s: %.1f of %.1f ms by %s, but also by %s" % (
                function, right / 1e6, told[function].ns / 1e6, [marker, *chain],
                [(";".join(frames), ns) for frames, ns in by.most_common(3)]))


def who_woke(setup):
    """--off-cpu-waker: timers, a thread that writes into a pipe, one that unlocks a mutex; with its stack, and as labels."""
    recording, text, told, otlp = of_sleeps(setup, "1", ["--off-cpu-waker"])
    wakes = ["try_to_wake_up"]
    check_wakers(recording, text, told, {
        "naps": ["[woken by an interrupt]"],
        "dozes": ["[woken by an interrupt]"],
        "hibernates": ["[woken by an interrupt]"],
        "polls": ["[woken by an interrupt]"],
        "travels": ["[woken by an interrupt]"],
        "reads": ["[woken by] sleeps", *wakes, "write", "writes", "start_thread"],
    })
    # It sleeps, too.
    by = collections.Counter({frames: ns for frames, ns in uncut_wakers(text, "locks").items() if frames[:1] == ("[woken by] sleeps",)})
    unlocked = sum(ns for frames, ns in by.items() if frames[1] == "try_to_wake_up" and "holds" in frames)
    if not unlocked or unlocked < 0.95 * sum(by.values()):
        recording.problems.append("locks: %.1f of %.1f ms by who holds the mutex: %s" % (
            unlocked / 1e6, sum(by.values()) / 1e6, by.most_common(3)))
    for word in (b"waker", b"interrupt", b"thread", b"waker.comm", b"waker.pid", b"waker.tid"):
        if word not in otlp:
            recording.problems.append("no %s in the OTLP" % word)
    return recording.problems, "%.1f ms by who unlocks a mutex" % (unlocked / 1e6)


def python_woke(setup):
    """Who wakes a thread has its script's frames, too."""
    script = os.path.join(setup.scratch, "waker.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(WAKER)
    recording, text, _ = record(setup, "1", ["--off-cpu-waker", "--tracers", "python"], [sys.executable, script])
    chain = ["notify", "rings", "<module>"] # with or without the class before it
    by = wakers(text, "waits")
    right = sum(ns for frames, ns in by.items() if [f.split(".")[-1] for f in frames if f.split(".")[-1] in chain] == chain)
    if right < 0.5 * sum(by.values()) or right < 0.2e9:
        recording.problems.append("%.1f of %.1f ms below a wait ended by %s, but by %s" % (
            right / 1e6, sum(by.values()) / 1e6, chain, by.most_common(3)))
    return recording.problems, "%.1f of %.1f ms" % (right / 1e6, sum(by.values()) / 1e6)


def tests(_setup):
    yield "every-sleep", every_sleep
    yield "states", states
    yield "by-interrupt", by_interrupt
    yield "by-chance", by_chance
    yield "weighted", weighted
    yield "long-blocks", long_blocks
    yield "alone", alone
    yield "no-short-ones", no_short_ones
    yield "who-woke", who_woke
    yield "python", python
    yield "java", java
    yield "python-woke", python_woke
