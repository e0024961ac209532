#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java as a user sees it: programs (jvm/*.java) whose leaves tell what the JVM itself says of their stacks, recorded by sonde.

    jvm_test.py [--sonde PROGRAM] [--jdk HOME...] [--only REGEX] [--results FILE]

A JDK is the folder that has bin/java; one inside of a root that tests/zoo made runs there by chroot. Without --jdk: the
environment's SONDE_JDKS (colons between them), else all in /usr/lib/jvm. All tests under the newest of them, under the others those
of OF_ALL_JDKS; SONDE_ALL=1: all under each.
"""
import collections
import contextlib
import functools
import glob
import json
import os
import re
import signal
import subprocess
import sys

from runtimes import FrameRecorder, Program, Recorder, main, stack_of, tally
from jvm_judge import EARLY, JDK, Chains, Frame, JavaTally
from jvm_record import (BUSY_CPUS, chains_of, judge_all, record, recorded_for, recorded_from_before, shares, start, threads_of,
                        until_warm, warm)
from jvm_scenarios import COLLECTORS, FEATURES, GC_THREADS, LEAST, MODES, MOST, NEEDS_SEGMENTS, OF_ALL_JDKS, SCENARIOS, SINCE, \
    SLOW
from jvm_toolchain import CLASSES, EXACT, SMALL, SOURCES, TELLING, jdks
from modes import wait_until
import tap


def options_of(mode, jdk):
    options = list(MODES[mode])
    if mode == "parallel-one-cache" and jdk.release < NEEDS_SEGMENTS:
        options.remove("-XX:-SegmentedCodeCache")
    if mode in ("zgc", "shenandoah", "compact-headers"):
        options.insert(0, "-XX:+UnlockExperimentalVMOptions")
    return options


def tier_problems(mode, recording):
    """Do the marks tell what the mode compiles with?"""
    problems = []
    wrong = {"interpreted": r"_\[[1j]\]", "c1": r"_\[j\]", "c2": r"_\[1\]"}.get(mode)
    marked, total = shares(recording, {"plain"}, lambda f: f.java and f.tier)
    if marked < LEAST.marked * total:
        problems.append("plain: %d of %d stacks have marks of tiers" % (marked, total))
    if wrong:
        bad = sum(s.count for s in recording.stacks or [] if any(re.match(wrong, Frame(f).tier or "") for f in s.user))
        if bad:
            problems.append("%d stacks have frames of tiers that do not run here" % bad)
    inlined, total = shares(recording, {"inlined"}, lambda f: f.inlined and f.name.startswith("Calls.in"))
    if mode == "interpreted" and inlined:
        problems.append("inlined: %d inlined frames in interpreted code" % inlined)
    if mode in ("c1", "c2") and inlined < LEAST.inlined * total:
        problems.append("inlined: %d of %d stacks have inlined frames" % (inlined, total))
    if mode in ("c1", "c2"):
        mark = {"c1": "_[1]", "c2": "_[j]"}[mode]
        compiled, total = shares(recording, {"plain"}, lambda f: f.tier == mark)
        if compiled < LEAST.compiled * total:
            problems.append("plain: %d of %d stacks are compiled" % (compiled, total))
    return problems


def feature_problems(mode, jdk, recording):
    """What is missing, and what there is, for who reads the log."""
    problems, notes = [], []
    for comm, pattern, part, modes, since in FEATURES:
        pattern = re.compile(pattern)
        have, total = shares(recording, {comm}, lambda f, p=pattern: p.match(f.text))
        notes += ["%s %d of %d" % (comm, have, total)] * (mode in modes)
        # What is rare is asked of many.
        if mode in modes and jdk.release >= since and have < part * total and part * total > 0.6:
            problems.append("%s: %d of %d stacks have %s" % (comm, have, total, pattern.pattern))
    return problems, ", features: " * bool(notes) + ", ".join(notes)


def collectors_seconds(program, mode):
    """CPU time of the garbage collector's threads."""
    pattern = GC_THREADS.get(mode, "$")
    return sum(t.seconds for t in threads_of(program.pid) if re.match(pattern, t.comm.replace(" ", "_")))


def calls(jdk, mode, setup):
    """Every way of calling, in one mode of the virtual machine."""
    options = options_of(mode, jdk)
    if jdk.release < SINCE.get(mode, 0) or not jdk.has(options):
        raise tap.Skip("JDK %s has no such mode" % jdk.version)
    seconds = 0.02 if mode == "interpreted" else 0.1
    with start(setup, jdk, [*options, warm(seconds)], "Calls", *SCENARIOS) as program:
        until_warm([program], seconds)
        collected = collectors_seconds(program, mode)
        recording = record(setup, [program], "--tiers")
        collected = collectors_seconds(program, mode) - collected
    problems, note = judge_all(recording, program.truths)
    missing, features = feature_problems(mode, jdk, recording)
    problems += tier_problems(mode, recording) + missing
    if any(s.comm == "write" for s in recording.stacks or []) and not any(s.comm == "write" and s.kernel for s in recording.stacks or []):
        problems.append("write: no kernel frames")
    comms = {s.comm for s in recording.stacks or []}
    if collected > 0.02 and not any(re.match(GC_THREADS[mode], c) for c in comms):
        problems.append("no thread of the garbage collector, which ran for %g s, among %s" % (collected, sorted(comms)))
    return problems, note + features


def collectors(jdk, setup):
    """Several virtual machines at a time."""
    with contextlib.ExitStack() as stack:
        programs = []
        for name, options, first, last in COLLECTORS:
            options = ["-XX:+UnlockExperimentalVMOptions", *options, "-Dprefix=%s-" % name, warm(0.1)]
            if first <= jdk.release <= last and jdk.has(options):
                # What allocates ends soon where nothing is collected, on a busy machine before it is sampled.
                scenarios = ["plain"] + ["recurse200", "lambda", "virtual", "allocate"] * (name != "eps")
                programs.append(stack.enter_context(start(setup, jdk, options, "Calls", *scenarios)))
        if not programs:
            raise tap.Skip("JDK %s has no other collectors" % jdk.version)
        until_warm(programs, 0.1)
        recording = record(setup, programs)
    problems, note = judge_all(recording, [t for p in programs for t in p.truths])
    missing = {t["comm"][:15] for p in programs for t in p.truths} - {s.comm for s in recording.stacks or []}
    if missing:
        problems.append("no samples of %s" % sorted(missing))
    return problems, note


def deopt(jdk, setup):
    """Code that is made not entrant while it runs."""
    with start(setup, jdk, ["-XX:PerMethodTrapLimit=100000"], "Deopt") as program:
        program.until_ready(600)
        recording = record(setup, [program])
    problems, note = judge_all(recording, program.truths)
    comms = {t["comm"] for t in program.truths}
    in_blob, total = shares(recording, comms, lambda f: re.match("DeoptimizationBlob|UncommonTrapBlob", f.name))
    if in_blob < LEAST.in_deoptimization * total and jdk.release >= 17:  # earlier ones are hardly ever there
        problems.append("%d of %d stacks are in a deoptimization" % (in_blob, total))
    compilers = JavaTally("compilers")
    for s in recording.stacks or []:
        if re.match("C[12]_Comp", s.comm):
            compilers.take(s, own_thread)
    return problems + compilers.problems(), "%s, %s, in blobs: %d" % (note, compilers.summary(), in_blob)


def own_thread(stack):
    """A thread of the VM's, from its first function on; it may call up to initialise what it compiles."""
    if re.match(r"(?:_*clone3?|\[libc[.-])", stack.user[0]) and not any(Frame(f).java for f in stack.user):
        return None
    return "not as a thread of the VM's is: %s" % ";".join(stack.user)


def jni(jdk, setup):
    """Native frames between Java frames, and on top of them; a thread that C made."""
    CLASSES.ensure(setup)
    if not CLASSES.library:
        raise tap.Skip("no jni.h")
    with start(setup, jdk, [], "Jni", os.path.join(CLASSES.folder, "libknown.so")) as program:
        program.until_ready(600)
        recording = record(setup, [program])
    problems, note = judge_all(recording, program.truths)
    t = tally(recording, "attached", "attached", attached, JavaTally)
    on_top = sum(s.count for s in recording.stacks or [] if s.comm == "native-leaf" and s.user[-1:] and
                 s.user[-1].startswith("jni_spin"))
    total = sum(s.count for s in recording.stacks or [] if s.comm == "native-leaf")
    if on_top < LEAST.native_leaf * total:
        problems.append("native-leaf: %d of %d stacks are in jni_spin()" % (on_top, total))
    child = JavaTally("forked")
    for s in recording.stacks or []:
        if s.comm == "forked":
            # What the JVM maps of a file (its archive of classes, with Thread.run()) the child has not touched yet: the
            # kernel cannot read it then, and a note says so.
            user = tuple("java.lang.Thread.run" if f == "[hotspot: unreadable]" else f for f in s.user)
            child.take(s._replace(user=user), forked)
    return problems + t.problems() + child.problems(), "%s, %s, %s" % (note, t.summary(), child.summary())


def forked(stack):
    """The only thread of a forked child."""
    frames = [Frame(f) for f in stack.user]
    names = [f.name for f in frames if f.java or f.name.startswith(("Java_Jni", "jni_child"))]
    expected = ["Jni.fork", "Java_Jni_fork", "jni_child", "Jni.inChild"]
    if "Jni.fork" in names and names[0] == "java.lang.Thread.run":
        rest = names[names.index("Jni.fork"):]
        if rest == expected[:len(rest)]:
            return None
    return "not as a child is: %s" % ";".join(stack.user)


def attached(stack):
    """C's thread: its own function, the VM's, then Java."""
    names = [Frame(f).name for f in stack.user]
    if "jni_thread" in names:
        rest = names[names.index("jni_thread") + 1:]
        java = [n for n in rest if n.startswith("Jni.")]
        if java in (["Jni.attached"], ["Jni.attached", "Jni.leaf"]):
            return None
    return "not as C's thread is: %s" % ";".join(stack.user)


VIRTUAL_FIRST = "jdk.internal.vm.Continuation.enterSpecial"
FROZEN = "[hotspot: frozen]"


def virtual_judge(chains, stack):
    """A carrier's frames, then the virtual thread's. Of these the outer ones may still be in the heap: a thread that is
    mounted again gets them back one by one, as it returns to them. Then a note stands for them."""
    frames = [Frame(f) for f in stack.user]
    names = [f.name for f in frames if f.java]
    text = ";".join(stack.user)
    if not names:
        return "no Java frame: %s" % text
    if names[0] == "java.util.concurrent.DelayScheduler.run":  # another thread of the pool
        return None
    if names[0] != "java.util.concurrent.ForkJoinWorkerThread.run":
        return "not a carrier's first frame: %s" % text
    if VIRTUAL_FIRST not in names:
        if any(n.startswith("Virtual.") for n in names):
            return "no %s: %s" % (VIRTUAL_FIRST, text)
        return None
    at = [i for i, f in enumerate(frames) if f.name == VIRTUAL_FIRST][0]
    carrier = [f.name for f in frames[:at] if f.java]
    if "java.lang.VirtualThread.runContinuation" not in carrier:
        return "not a carrier's frames: %s" % text
    frozen = frames[at + 1:at + 2] and frames[at + 1].name == FROZEN
    rest = frames[at + 1 + bool(frozen):]
    if not any(f.java for f in rest):
        return None
    wrong = chains.judge_nearly(rest, stack.count, bool(frozen))
    return wrong and "%s: %s" % (wrong, text)


def coloured(jdk):
    """The options of generational ZGC."""
    return ["-XX:+UseZGC", *["-XX:+ZGenerational"] * (jdk.release < 23)]


def virtual(jdk, scenario, zgc, setup):
    """Virtual threads with their carriers, mounted again and again, and pinned."""
    CLASSES.ensure(setup)
    if jdk.release < 21:
        raise tap.Skip("JDK %s has no virtual threads" % jdk.version)
    if not CLASSES.virtual:
        raise tap.Skip("no javac of 21 or later")
    with start(setup, jdk, coloured(jdk) if zgc else [], "Virtual", scenario) as program:
        program.until_ready(600)
        recording = record(setup, [program])
    chains = Chains([t["chain"] for t in program.truths], JDK)
    t = JavaTally("virtual")
    for s in recording.stacks or []:
        if s.comm.startswith("ForkJoi"):
            t.take(s, functools.partial(virtual_judge, chains))
    comms = {s.comm for s in recording.stacks or []}
    in_leaf, _ = shares(recording, comms, lambda f: f.name == "Virtual.leaf")
    if in_leaf < LEAST.seen_in_leaf:
        recording.problems.append("%d samples in the leaf" % in_leaf)
    if chains.near > MOST.near * t.samples:
        recording.problems.append("%d of %d samples have other inlined functions than were told" % (chains.near, t.samples))
    return recording.problems + t.problems(50), "%s near: %d, cut: %s, notes: %s" % (
        t.summary(), chains.near, dict(t.reasons), dict(t.notes))


UNKNOWN_THREAD = "[hotspot: unknown virtual thread]"
CARRIER = "ForkJoi"  # "ForkJoinPool-1-", or since 26 "ForkJoi..rker-1"


def thread_judge(threads, comm, names):
    """Is the stack with these functions counted under the thread that it is of? `threads`: thread -> its method."""
    methods = [n for n in names if n in threads.values()]
    if methods and comm != UNKNOWN_THREAD and threads.get(comm) != methods[0]:
        return "%s is counted under %s" % (methods[0], comm)
    if VIRTUAL_FIRST in names and comm.startswith(CARRIER):
        return "a virtual thread's frames are counted under its carrier"
    if comm in threads and comm != "platform" and VIRTUAL_FIRST not in names:
        return "%s has none of a virtual thread's frames" % comm
    if "VirtualNames.decoy" in names and comm != UNKNOWN_THREAD and not comm.startswith("decoy"):
        return "a short-lived thread is counted under %s" % comm
    return None


def virtual_names(jdk, scenario, setup):
    """--threads virtual: every sample is counted under the thread that its method says. "moved": generational ZGC moves the
    threads and their names, and others come to lie where they were."""
    CLASSES.ensure(setup)
    if jdk.release < 21 or not CLASSES.virtual:
        raise tap.Skip("no virtual threads, or no javac of 21 or later")
    counts, problems = collections.Counter(), []
    with start(setup, jdk, coloured(jdk) if scenario == "moved" else [], "VirtualNames", scenario) as program:
        program.until_ready(600)
        # As it is shown: of long names 64 characters.
        threads = {t["thread"] if len(t["thread"]) < 64 else t["thread"][:64] + "...": t["method"] for t in program.truths}
        recording = recorded_for(setup, program, setup.seconds * BUSY_CPUS, ["--threads", "virtual"], FrameRecorder)
        shown = stack_of(setup, program.pid, "--threads", "virtual")
        carriers = {tid for tid, t in shown.items() if t["name"].startswith(CARRIER)}
    for s in recording.stacks or []:
        counts[s.comm] += s.count
        wrong = not s.reason and thread_judge(threads, s.comm, [f.name for f in s.user])
        if wrong:
            problems.append("%d x %s: %s" % (s.count, wrong, ";".join(f.name for f in s.user)))
        if s.comm in threads and s.comm != "platform" and s.tid not in carriers:
            problems.append("%s has %d, which is no carrier" % (s.comm, s.tid))
    for t in shown.values():
        if t["complete"]:
            wrong = thread_judge(threads, t["virtual_thread"] or t["name"], [f["function"] for f in t["frames"]])
            problems += ["stack: " + wrong] if wrong else []
    native = sum(s.count for s in recording.stacks or [] if s.comm in threads and s.user and s.user[-1].runtime == "native")
    if scenario == "pinned" and not native:
        problems.append("no sample of native code that a virtual thread has called")
    seen = sum(counts[t] for t in threads)
    problems += ["no sample of %s" % t for t in threads if not counts[t]]
    if seen < 20 or counts[UNKNOWN_THREAD] > seen / 2:  # its first samples are walked afterwards: more, the busier the machine is
        problems.append("%d samples of known threads, %d of unknown ones" % (seen, counts[UNKNOWN_THREAD]))
    for name in [n for n in counts if n.startswith("decoy")]:
        counts["decoys"] += counts.pop(name)
    return recording.problems + problems[:5], "%d, %d unknown, %s" % (seen, counts[UNKNOWN_THREAD], dict(counts))


class ChurnTally(JavaTally):
    """Each name of a chain must have the number of the others."""

    def __init__(self):
        super().__init__("churn")
        self.unknown = self.numbered = 0
        self.classes = set()

    def judge(self, stack):
        names = [f.name for f in map(Frame, stack.user) if f.java]
        if any("\ufffd" in f for f in stack.user):
            return "not a name: %s" % ";".join(stack.user)
        names = [n for n in names if n.startswith("Churn$")]
        numbers = {n for name in names for n in re.findall(r"\d{8}", name)}
        slots = {int(n) for name in names for n in re.findall(r"Slot(\d{3})\.", name)}
        if not numbers:
            self.unknown += stack.count * bool(slots)
            return None
        self.numbered += stack.count
        self.classes |= numbers
        if any("Gen" in name and name.endswith((".<init>", ".<clinit>")) for name in names) and len(numbers) == 1:
            return None  # made, not run: there is no slot
        if len(numbers) > 1 or slots != {int(n) % 64 for n in numbers}:
            return "names of other classes: %s" % ";".join(stack.user)
        methods = [name.rpartition(".")[2].rstrip("0123456789") for name in names if "Gen" in name]
        if methods != ["run", "call", "leaf"][:len(methods)]:
            return "frames out of order: %s" % ";".join(stack.user)
        return None


def churn(jdk, setup):
    """Classes loaded and unloaded without end: no name of one that is gone, or has come since."""
    frequency, t, problems = 4999, ChurnTally(), []
    with start(setup, jdk, ["-XX:+UseSerialGC", "-Xmx64m", "-Xmn8m"], "Churn") as program:
        program.until_ready(600)
        for _ in range(4):  # compilers and collectors have their share of each
            recording = recorded_for(setup, program, setup.churn / frequency, frequency=frequency)
            problems += recording.problems
            for s in recording.stacks or []:
                if s.comm == "churn":
                    t.take(s, t.judge)
            if t.samples >= setup.churn or problems:
                break
    problems += t.problems(setup.churn // 4)
    if t.unknown > MOST.unknown_class * t.samples:
        problems.append("%d of %d samples have no name of their class" % (t.unknown, t.samples))
    return problems, "%s, %d with a class's number, of %d classes, %d unknown" % (
        t.summary(), t.numbered, len(t.classes), t.unknown)


def from_start(jdk, setup):
    """A JVM that starts while it is recorded: from its first instruction to its end."""
    CLASSES.ensure(setup)
    argv = jdk.argv(*SMALL, *TELLING, *EXACT, "-cp", CLASSES.folder, "Calls", "plain", "recurse200", "virtual")
    recorder = Recorder(setup, ["--lines"], argv, stdout=subprocess.PIPE, env={"LC_ALL": "C.UTF-8"})
    truths = []
    for line in recorder.process.stdout:
        said = json.loads(line.decode("utf-8"))
        if "ready" in said:
            comms = {t["comm"] for t in truths}
            wait_until("1 s of CPU of each", lambda: all(t.seconds >= 1 for t in threads_of(said["ready"]) if t.comm in comms), 900)
            os.kill(said["ready"], signal.SIGTERM)
            break
        truths.append(said)
    recording = recorder.wait()
    recorder.process.stdout.close()
    samples = sum(s.count for s in recording.stacks or [])
    complete = sum(s.count for s in recording.stacks or [] if not s.reason)
    early = sum(s.count for s in recording.stacks or [] if s.reason in EARLY)
    problems = list(recording.problems)
    if complete + early < LEAST.complete_of_start_percent / 100 * samples or early > MOST.early * samples:
        problems.append("%d of %d samples are complete: %s" % (complete, samples, recording.stats["truncated"]))
    for comm, chains in chains_of(truths).items():
        # Telling is Java, too.
        chains.beyond = re.compile(JDK + "|Truth|Calls")
        chains.starts = True
        t = tally(recording, comm, comm, chains.judge, JavaTally)
        problems += t.problems(20, LEAST.complete_of_start_percent)
    return problems, "%d/%d" % (complete, samples)


BOTH = ["--tracers", "hotspot,python"]


class Around:
    """The judge of a Java chain that begins in a Python."""

    JAVA = re.compile(JDK + r"|(?:Embedded|Truth)\b")  # CDLL.__init__ is Python's

    def __init__(self, truths, telling=False):
        self.chains = Chains([t["chain"] for t in truths], JDK + "|Truth|Embedded" if telling else None, starts=True)
        self.java = 0

    def judge(self, stack):
        names = [Frame(f).name for f in stack.user]
        if not any(map(self.JAVA.match, names)):
            return None  # the JVM begins: libjvm is loaded
        if any(n.startswith("[python: ") for n in names):
            return None  # it was new
        self.java += stack.count
        if "StubRoutines::call_stub" not in names:
            return "Java that nobody called: %s" % ";".join(stack.user)
        below = names[:names.index("StubRoutines::call_stub")]
        python = [n for n in below if n in ("main", "create", "python_outer", "python_inner")]
        whole = ["main", "python_outer", "python_inner"]
        # While the JVM starts, and a class is found, Java runs what was not told.
        told = any(n.startswith("Embedded.") for n in names)
        if python not in ([whole] if told else [whole, whole[:2], ["main", "create"]]):
            return "not the Python functions below: %s" % ";".join(stack.user)
        return self.chains.judge(stack) if told else None


def embedded(jdk, when, setup):
    """A Python with a JVM in it: two runtimes in one stack. It was there before; or libjvm comes while it is recorded, in the
    very process, or a child."""
    CLASSES.ensure(setup)
    library = glob.glob(os.path.join(jdk.home, "lib/server/libjvm.so")) + glob.glob(os.path.join(jdk.home, "jre/lib/*/server/libjvm.so"))
    if not library:
        raise tap.Skip("its libjvm is in another root")
    argv = ["/usr/bin/python3", os.path.join(SOURCES, "embed.py"), "in-python", when, library[0], *SMALL, *TELLING, *EXACT,
            "-Djava.class.path=" + CLASSES.folder]
    with Program(argv, env={"LC_ALL": "C.UTF-8"}) as program:
        if when == "now":
            program.until_ready(600)
            recording = record(setup, [program], *BOTH)
        else:
            recording = recorded_from_before(setup, program, 1, *BOTH)
    around = Around(program.truths, when != "now")
    t = tally(recording, when, "in-python", around.judge, JavaTally)
    problems = recording.problems + t.problems(20, LEAST.complete_of_start_percent)
    if around.java < LEAST.java_in_python * t.samples:
        problems.append("%d of %d samples have Java frames" % (around.java, t.samples))
    return problems, "%s, Java: %d" % (t.summary(), around.java)


def from_exec(jdk, setup):
    """A process that is recorded before it becomes a JVM."""
    CLASSES.ensure(setup)
    argv = jdk.argv(*SMALL, *TELLING, *EXACT, "-cp", CLASSES.folder, "Calls", "plain", "recurse200")
    for seconds in (0.5, 3, 10):  # on a machine that is busy more is cut until the JVM is known, but then nothing is
        with Program(["/bin/sh", "-c", 'read -r go; exec "$@"', "sh", *argv], env={"LC_ALL": "C.UTF-8"}) as program:
            recording = recorded_from_before(setup, program, seconds)
        problems, tallies = list(recording.problems), []
        for comm, chains in chains_of(program.truths).items():
            chains.beyond = re.compile(JDK + "|Truth|Calls")  # telling is Java, too
            chains.starts = True
            tallies.append(tally(recording, comm, comm, chains.judge, JavaTally))
            problems += tallies[-1].problems(20, LEAST.complete_of_start_percent)
        if not problems or recording.problems or any(t.wrong for t in tallies):
            break
    return problems, ", ".join(t.summary() for t in tallies)


def tests(setup, args):
    setup.seconds = args.seconds
    setup.churn = args.churn
    found = jdks(args)
    if not found:
        yield "jvm", no_jdk
    newest = max((jdk.release for jdk in found), default=0)
    for jdk in found:
        name = jdk.version + ("" if sum(j.version == jdk.version for j in found) == 1 else "-" + os.path.basename(jdk.home))
        for test, function in tests_of(jdk, args.part):
            if os.environ.get("SONDE_ALL") or (test not in SLOW and (jdk.release == newest or test in OF_ALL_JDKS)):
                yield "jdk-%s-%s" % (name, test), function


def tests_of(jdk, part):
    for mode in MODES if part != "others" else ():
        yield mode, functools.partial(calls, jdk, mode)
    if part == "modes":
        return
    for scenario in ("deep", "below", "pinned"):
        yield "virtual-" + scenario, functools.partial(virtual, jdk, scenario, False)
    yield "virtual-deep-zgc", functools.partial(virtual, jdk, "deep", True)
    for scenario in ("unpinned", "pinned", "wakes", "moved"):
        yield "threads-" + scenario, functools.partial(virtual_names, jdk, scenario)
    for when in ("now", "later", "fork"):
        yield "in-python-" + when, functools.partial(embedded, jdk, when)
    for test in (collectors, deopt, jni, churn, from_start, from_exec):
        yield test.__name__.replace("_", "-"), functools.partial(test, jdk)


def no_jdk(_setup):
    raise tap.Skip("no JDK in /usr/lib/jvm")


def arguments(parser):
    parser.add_argument("--jdk", action="append", help="a JDK's folder, perhaps in a root of tests/zoo")
    parser.add_argument("--seconds", type=float, default=1, help="of a recording (default 1)")
    parser.add_argument("--part", choices=("modes", "others"), help="every way of calling in each mode of the JVM; or all else")
    parser.add_argument("--churn", type=int, default=int(os.environ.get("SONDE_CHURN", 10000)), help="samples of a program that loads and drops classes")


if __name__ == "__main__":
    sys.exit(main(__doc__, tests, arguments, "hotspot"))
