# SPDX-License-Identifier: Apache-2.0
"""What a sample of 20 frames of each runtime costs in the kernel, and how much profilers slow down Python and Java."""
import collections
import contextlib
import glob
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time

from footprint import read
from run import LOAD_PRIORITY, OWN_PRIORITY, Sonde, cpus, least_and_median

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtimes")
FRAMES = 20
TARGET_NS = {"python": 4000, "java": 4000}
TARGET_NS_OF_OTHERS = 5000
LEAST_SHARE = 0.9  # of the samples that must be whole and have all 20 frames, or the round does not count
WARM_UP = 1.5  # seconds: JITs compile, sonde attaches and loads tables
SECONDS = {99: 4, 999: 1.5}
SLOW_HZ = 99
SLOW_SECONDS = 3
SLOW_ROUNDS = 5
SLOW_TARGET = 1.0  # per cent
LEAST_CPU = 0.5  # of a span that the load must not wait for a CPU, or the round does not count: its waiting is known too
# late, when it has one again
PY_SPY = "py-spy"
ASYNC_PROFILER = "tools.profiler:async-profiler:3.0"
COPY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
# C2 alone, and every method a frame of its own.
C2 = ["-XX:-TieredCompilation", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::*"]
INTERPRETER = ["-Xint"]

# The other runtimes: name, program, what prints its version, its options, and its load.
OTHERS = (("Ruby", "ruby", "-v", (), "chain.rb"), ("PHP", "php", "-v", (), "chain.php"), ("Perl", "perl", "-v", (), "chain.pl"),
          ("Node.js", "node", "--version", ("--no-turbo-inlining",), "chain.js"))

# kind: "python", "java", or "other". argv: a tuple, without the file for the progress, which comes last. home: of the JDK.
Load = collections.namedtuple("Load", "name kind argv home")


def answers(argv):
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout + done.stderr
    return ""


def pythons(wanted):
    """{"3.11": program} of the wanted versions that this machine has."""
    found = {}
    for program in ["/usr/bin/python3", *sorted(glob.glob("/root/.pyenv/versions/*/bin/python3"))]:
        version = re.match(r"Python (\d+\.\d+)\.", answers([program, "--version"]))
        if version and version.group(1) in wanted:
            found.setdefault(version.group(1), program)
    return found


def javas(wanted):
    """{"17": home} of the wanted versions."""
    found = {}
    for home in sorted(glob.glob("/usr/lib/jvm/*")):
        version = re.search(r'version "(\d+)', answers([os.path.join(home, "bin", "java"), "-version"]))
        if version and version.group(1) in wanted:
            found.setdefault(version.group(1), home)
    return found


def compile_java(homes, folder):
    """Once, for the oldest."""
    home = homes[min(homes, key=int)]
    subprocess.run([os.path.join(home, "bin", "javac"), "-d", folder, os.path.join(HERE, "Chain.java")], check=True,
                   stdin=subprocess.DEVNULL, capture_output=True)


def other_loads(setup, table):
    """Of the versions that this machine has."""
    for name, program, option, flags, source in OTHERS:
        version = re.search(r"\d+\.\d+", answers([program, option]))
        if version:
            yield Load("%s %s" % (name, version.group()), "other", (program, *flags, os.path.join(HERE, source)), None)
        else:
            table.add(name, "not measured", "", None, "it is not on this machine")
    program = os.path.join(setup.scratch, "chain")
    if answers(["go", "version"]) and not subprocess.run(["go", "build", "-o", program, os.path.join(HERE, "chain.go")], check=False,
                                                         stdin=subprocess.DEVNULL).returncode:
        yield Load("Go", "other", (program,), None)
    else:
        table.add("Go", "not measured", "", None, "it is not on this machine")


def all_loads(setup, table, python=("3.11", "3.13"), java=("17", "25"), interpreter=True):
    """Of those versions that are here; the table says which are not."""
    programs, homes = pythons(set(python)), javas(set(java))
    for name, wanted, found in (("Python", python, programs), ("Java", java, homes)):
        for version in wanted:
            if version not in found:
                table.add("%s %s" % (name, version), "not measured", "", None, "it is not on this machine")
    loads = [Load("Python %s" % v, "python", (p, os.path.join(HERE, "chain.py")), None)
             for v, p in sorted(programs.items())]
    if homes:
        compile_java(homes, setup.scratch)
    for version, home in sorted(homes.items()):
        for way, flags in (("interpreter", INTERPRETER), ("C2", C2)):
            if way == "interpreter" and not interpreter:
                continue
            argv = (os.path.join(home, "bin", "java"), "-XX:+UseSerialGC", *flags, "-cp", setup.scratch, "Chain")
            loads.append(Load("Java %s, %s" % (version, way), "java", argv, home))
    return loads


def threads(pid):
    with contextlib.suppress(OSError):
        return [int(tid) for tid in os.listdir("/proc/%d/task" % pid)]
    return []


def schedstat(tid):
    """(on a CPU, waiting for one): nanoseconds of a thread's life."""
    with contextlib.suppress(OSError, ValueError):
        fields = read("/proc/%d/schedstat" % tid).split()
        return int(fields[0]), int(fields[1])
    return 0, 0


def waited_for_cpu(tid):
    return schedstat(tid)[1] / 1e9


@contextlib.contextmanager
def alone(pids):
    """All threads of the processes have the CPUs nearly for themselves."""
    normal = os.sched_getscheduler(0), os.sched_getparam(0)
    tids = [tid for pid in pids for tid in threads(pid)]
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(OWN_PRIORITY))
    for tid in tids:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(tid, os.SCHED_RR, os.sched_param(LOAD_PRIORITY))
    try:
        yield
    finally:
        for tid in tids:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, *normal)


class Running:
    """A load on one CPU."""

    def __init__(self, setup, load, cpu):
        self.load = load
        self.path = setup.path(".progress")
        with open(self.path, "wb") as f:
            f.write(bytes(8))
        self.process = subprocess.Popen([*load.argv, self.path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL,
                                        preexec_fn=lambda: os.sched_setaffinity(0, [cpu]))
        self.pid = self.process.pid
        end = time.monotonic() + 30
        while not self.done():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError("%s does not run" % load.name)
            time.sleep(0.01)

    def done(self):
        with open(self.path, "rb") as f:
            return struct.unpack("<Q", f.read(8))[0]

    def look(self, tid):
        """(seconds, leaves): of the clock, for a profiler that stops the process slows it down too; but not those
        that the thread waits for a CPU, which others have."""
        return time.monotonic() - waited_for_cpu(tid), self.done()

    def rate(self, seconds):
        """Leaves a second; None if others had the CPU for most of it."""
        tid = max(threads(self.pid), key=lambda tid: schedstat(tid)[0])
        begin = self.look(tid)
        time.sleep(seconds)
        now = self.look(tid)
        span = now[0] - begin[0]
        return (now[1] - begin[1]) / span if LEAST_CPU * seconds < span <= 1.1 * seconds else None

    def stop(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def on_all_cpus(setup, load):
    running = []
    try:
        for cpu in cpus():
            running.append(Running(setup, load, cpu))
        yield [r.pid for r in running]
    finally:
        for r in running:
            r.stop()


# --- a sample in the kernel -------------------------------------------------------------------------------------------


Shares = collections.namedtuple("Shares", "whole deep")


def links(stack):
    """The numbers of the load's functions f1, f2 ... in a stack, outermost first."""
    return [int(m.group(1)) for f in stack for m in [re.search(r"\bf(\d+)\b", f)] if m]


def is_whole(stack):
    """Is it complete, and f1 ... fN without a gap, all of them below the leaf? The load is also on its way there and back, and counts
    its turns: then it has fewer of them, or none."""
    chain = links(stack)
    reaches = not any(re.search(r"\bleaf\b", f) for f in stack) or len(chain) == FRAMES - 2
    return not stack[0].startswith("[truncated") and chain == list(range(1, len(chain) + 1)) and reaches


def shares(sonde):
    """Which part of the samples are whole, and which also have (nearly: between two functions) all frames of the load."""
    whole = deep = total = 0
    for _, stack, count in sonde.stacks():
        total += count
        if is_whole(stack):
            whole += count
            deep += count if len(links(stack)) >= FRAMES - 3 else 0
    return Shares(whole / max(total, 1), deep / max(total, 1))


def in_words(rounds):
    return "whole stacks: %s, with all frames: %s" % tuple(
        " ".join("%.1f %%" % (100 * share) for share in column) for column in zip(*rounds))


def measure(setup, load, hz):
    """(ns a sample, Shares)."""
    with on_all_cpus(setup, load) as pids:
        time.sleep(0.5)
        sonde = Sonde(setup, hz, ["-p", ",".join(map(str, pids))])
        try:
            sonde.span(WARM_UP)
            with alone(pids):
                sonde.span(0.1)
                span = sonde.span(SECONDS[hz])
        finally:
            sonde.stop()
    return span.bpf_ns_per_run(), shares(sonde)


def us(ns):
    return "%.2f us" % (ns / 1000)


def kernel_rows(setup, table):
    cases = [(load, hz) for load in (*all_loads(setup, table), *other_loads(setup, table)) for hz in SECONDS]
    results = {case: [] for case in cases}
    for number in range(max(2, setup.rounds // 2)):
        table.progress("kernel cost of runtimes: round %d" % (number + 1))
        for case in cases:
            results[case].append(measure(setup, *case))
    for (load, hz), rounds in results.items():
        good = [ns for ns, share in rounds if share.deep >= LEAST_SHARE]
        note = in_words([share for _, share in rounds])
        what = "kernel, %d frames of %s, %d Hz, the load only (-p)" % (FRAMES, load.name, hz)
        target = TARGET_NS.get(load.kind, TARGET_NS_OF_OTHERS)
        if not good:
            table.add(what, "not measured", "at most %s" % us(target), None, note)
            continue
        least, median = least_and_median(good)
        table.add(what, "min %s, median %s" % (us(least), us(median)), "at most %s" % us(target), median <= target, note)


# --- slow-down --------------------------------------------------------------------------------------------------------


class Missing(Exception):
    """A tool that can't be had here."""


def get_py_spy(setup):
    folder = os.path.join(setup.scratch, PY_SPY)
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder, PY_SPY],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    program = shutil.which(PY_SPY) or os.path.join(folder, "bin", PY_SPY)
    if not os.path.exists(program):
        raise Missing("pip: %s" % done.stderr.strip()[-200:])
    return program


def get_async_profiler(setup):
    """Its library, out of the package."""
    if not shutil.which("mvn") or not shutil.which("unzip"):
        raise Missing("there is no mvn, or no unzip")
    done = subprocess.run(["mvn", "-q", "-B", COPY_PLUGIN, "-Dartifact=" + ASYNC_PROFILER,
                           "-DoutputDirectory=" + setup.scratch], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=300)
    jars = glob.glob(os.path.join(setup.scratch, "async-profiler-*.jar"))
    if not jars:
        raise Missing("mvn: %s" % (done.stdout + done.stderr).strip()[-200:])
    folder = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}[os.uname().machine]
    member = folder + "/libasyncProfiler.so"
    subprocess.run(["unzip", "-q", "-o", jars[0], member, "-d", setup.scratch], check=True)
    return os.path.join(setup.scratch, member)


def with_sonde(setup, running):
    sonde = Sonde(setup, SLOW_HZ, ["-p", str(running.pid)])

    def end():
        sonde.stop()
        return in_words([shares(sonde)])

    return end


def with_py_spy(program):
    def begin(setup, running):
        out = setup.path(".raw")
        process = subprocess.Popen([program, "record", "-r", str(SLOW_HZ), "-f", "raw", "-o", out, "-p",
                                    str(running.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)

        def end():
            process.send_signal(signal.SIGINT)
            process.wait()
            if not os.path.getsize(out):
                raise RuntimeError("py-spy wrote nothing")
            return ""

        return end

    return begin


def with_async_profiler(library):
    def begin(setup, running):
        out = setup.path(".collapsed")
        jcmd = os.path.join(running.load.home, "bin", "jcmd")

        def tell(text):
            subprocess.run([jcmd, str(running.pid), "JVMTI.agent_load", library, text], check=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=30)

        tell('"start,event=cpu,interval=%d"' % (10**9 // SLOW_HZ))

        def end():
            tell('"stop,collapsed,file=%s"' % out)
            if not os.path.getsize(out):
                raise RuntimeError("async-profiler wrote nothing")
            return ""

        return end

    return begin


def tools_for(setup, load, table):
    """{name: begin}: begin(setup, running) starts the tool and gives what ends it."""
    tools = {"sonde": with_sonde}
    others = {
        "python": (PY_SPY, get_py_spy, with_py_spy),
        "java": ("async-profiler", get_async_profiler, with_async_profiler),
    }
    if load.kind not in others:
        return tools
    name, get, way = others[load.kind]
    try:
        tools[name] = way(get(setup))
    except (Missing, OSError, subprocess.SubprocessError) as e:
        table.add("slow-down of %s by %s" % (load.name, name), "not measured", "", None, str(e))
    return tools


def loss(setup, running, begin):
    """Per cent, between two bare spans: the machine's own speed drifts. None: others disturbed it."""
    bare = running.rate(SLOW_SECONDS / 2)
    end = begin(setup, running)
    try:
        time.sleep(WARM_UP)
        speed = running.rate(SLOW_SECONDS)
    finally:
        note = end()
    behind = running.rate(SLOW_SECONDS / 2)
    if None in (bare, speed, behind):
        return None, note
    return 100 * (1 - 2 * speed / (bare + behind)), note


def slow_down_of(setup, table, load):
    tools = tools_for(setup, load, table)
    losses = {name: [] for name in tools}
    notes = {}
    running = Running(setup, load, cpus()[0])
    try:
        time.sleep(WARM_UP)
        for number in range(SLOW_ROUNDS):
            table.progress("slow-down of %s: round %d" % (load.name, number + 1))
            for name, begin in tools.items():
                with alone([running.pid]):
                    percent, notes[name] = loss(setup, running, begin)
                if percent is not None:
                    losses[name].append(percent)
    finally:
        running.stop()
    for name, values in losses.items():
        ours = name == "sonde"
        if not values:
            table.add("slow-down of %s, %d Hz, by %s" % (load.name, SLOW_HZ, name), "not measured", "", None,
                      "others used the CPUs")
            continue
        median = statistics.median(values)
        table.add("slow-down of %s, %d Hz, by %s" % (load.name, SLOW_HZ, name), "median %.2f %%" % median,
                  "below %.0f %%" % SLOW_TARGET if ours else "", median < SLOW_TARGET if ours else None,
                  "rounds: %s. %s" % (" ".join("%.2f" % x for x in values), notes[name]))


def slow_down_rows(setup, table):
    for load in (*all_loads(setup, table, interpreter=False), *other_loads(setup, table)):
        slow_down_of(setup, table, load)
