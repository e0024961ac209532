#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`sonde core` on real cores of Python, Java, JavaScript and Go programs, which have said in what chains their threads are. TAP.

    runtimes_test.py [--sonde PROGRAM] [--only REGEX] [--keep]

The programs and what is right are those of tests/runtimes. Cores are made here and now: by the kernel, at work or
waiting, and by gcore. SONDE_PYTHONS and SONDE_JDKS (colons between them) choose the versions. See docs/core.md.
"""
import collections
import contextlib
import functools
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "runtimes"), os.path.join(HERE, "..", "lib")]
import go_test
import jvm_judge
import jvm_record
import jvm_test
import jvm_toolchain
import node_test
import python_test
import runtimes
from cpu_time import cpu_seconds
from folded import shorten
from runtimes import Program
from tap import Skip

# This machine's and the last; SONDE_ALL=1: a version of each way to keep frames. SONDE_PYTHONS: others.
PYTHONS = (8, 10, 11, 12, 13) if os.environ.get("SONDE_ALL") else (11, 13)
# What waits says so in its last frames; what works is somewhere in its leaf.
WAITING = "waiting umlaute ctypes_qsort asyncio_task".split()
WORKING = "recursion threads methods callbacks generator no_gil".split()
# gcore writes memory that was never touched, too.
SMALL = ["-XX:+UseSerialGC", "-Xmx32m", "-XX:ReservedCodeCacheSize=32m", "-XX:CompressedClassSpaceSize=16m", "-Xss2m"]
SCENARIOS = "plain recurse200 virtual lambda inlined reflection handle stream interface write".split()
# The JVM's own threads run these, and main() waits.
OWN = re.compile(r"(?:java|jdk|sun)\.|Calls\.main$|Virtual\.main$|Truth\.[a-zA-Z]+$")

Core = collections.namedtuple("Core", "path comms truths sysroot")
Stack = collections.namedtuple("Stack", "user count")


# --- making cores ------------------------------------------------------------------------------------------------------------


def comms_of(pid):
    """tid -> comm: a core does not have them."""
    found = {}
    for path in glob.glob("/proc/%d/task/*/comm" % pid):
        with open(path, encoding="utf-8") as f:
            found[int(path.split("/")[4])] = f.read().rstrip("\n")
    return found


def works(program, seconds):
    """It has used the CPU for so long since it may."""
    begin, end = cpu_seconds(program.pid), time.monotonic() + 300
    program.go()
    while cpu_seconds(program.pid) < begin + seconds:
        if program.process.poll() is not None or time.monotonic() > end:
            raise AssertionError("%s does not work" % program.argv)
        time.sleep(0.01)


def by_kernel(program, folder):
    os.kill(program.pid, signal.SIGABRT)
    program.process.wait(120)
    found = glob.glob(os.path.join(folder, "core*"))
    if not found:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as f:
            raise Skip("the kernel writes cores elsewhere: " + f.read().strip())
    return found[0]


def by_gcore(program, folder):
    if not shutil.which("gcore"):
        raise Skip("no gcore")
    done = subprocess.run(["gcore", "-o", os.path.join(folder, "core"), str(program.pid)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=600)
    path = os.path.join(folder, "core.%d" % program.pid)
    if not os.path.exists(path):
        raise AssertionError("gcore: " + done.stderr[-500:])
    # gdb 13 writes zeros for stacks with glibc 2.42's guard pages; the vsyscall page it never gets.
    failed = re.findall(r"Memory read failed for corefile section, \d+ bytes at (0x(?!ffff)\w+)", done.stderr)
    if failed:
        raise Skip("gcore could not read all memory: " + " ".join(failed))
    return path


def core_of(setup, argv, way=by_kernel, busy=0, env=None):
    """A core of what runs, waiting where it told its last truth, or after so many seconds of work."""
    folder = setup.path(".cores")
    os.unlink(folder)
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with Program(argv, env, cwd=folder) as program:
        program.until_ready(600)
        root = os.readlink("/proc/%d/root" % program.pid)
        if busy:
            works(program, busy)
        comms = comms_of(program.pid)
        path = way(program, folder)
    return Core(path, comms, program.truths, None if root == "/" else root)


def run_core(setup, core, *options):
    argv = [setup.program, "core", *options]
    if core.sysroot:
        argv += ["--sysroot", core.sysroot]
    return subprocess.run([*argv, core.path], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=600)


def threads_of(setup, core, *options):
    """What `sonde core` says of a whole core: comm -> threads."""
    done = run_core(setup, core, "--json", *options)
    if done.returncode or done.stderr:
        raise AssertionError("sonde core: status %d: %s" % (done.returncode, done.stderr[-500:]))
    found = {}
    for thread in json.loads(done.stdout)["threads"]:
        # One that was not there when these were read: the runtime starts one now and then.
        found.setdefault(core.comms.get(thread["tid"], "new"), []).append(thread)
    return found


# --- Python ------------------------------------------------------------------------------------------------------------------


def wrong_python(python, core, threads):
    problems, nr = [], 0
    for truth in core.truths:
        mine = threads.get(truth["comm"], [])
        if len(mine) != 1 or not mine[0]["complete"]:
            problems.append("%s: %s" % (truth["comm"], shorten(str(mine), 800)))
            continue
        wrong, found = python_test.wrong_thread(python, truth, mine[0])
        nr += len(found)
        if wrong:
            problems.append("%s: %s" % (truth["comm"], shorten(wrong, 1500)))
    return problems, nr


def python_argv(python, case):
    return [python.path, python_test.CASES, case]


def python_cores(python, way, cases, busy, setup):
    problems, frames = [], 0
    for case in python.cases(cases):
        core = core_of(setup, python_argv(python, case), way, busy)
        wrong, nr = wrong_python(python, core, threads_of(setup, core))
        problems += wrong
        frames += nr
        shutil.rmtree(os.path.dirname(core.path))
    return problems, "%d frames of %d programs" % (frames, len(cases))


def python_async(python, setup):
    """Tasks with those that wait for them."""
    python_test.check_has_async(python)
    problems, frames = [], 0
    for case in ("nested", "gather", "several", "deep"):
        core = core_of(setup, [python.path, python_test.AWAITS, case], busy=0.05)
        wrong, nr = wrong_python(python, core, threads_of(setup, core, "--async"))
        problems += wrong
        frames += nr
        shutil.rmtree(os.path.dirname(core.path))
    return problems, "%d frames" % frames


def is_shorter(frames, whole):
    """A cut core's frames are the whole one's, without the outer ones; what a name was made of may be missing."""
    shown = lambda f: (f["kind"], f["function"], f["line"], f["inlined"])
    names = [shown(f) for f in whole]
    return all(shown(f) in names or not f["function"] or re.match(r"\[[a-z]+: [a-z_]+\]$", f["function"]) for f in frames)


def cut_off(setup, core):
    """At any length: an error in a line, or stacks that are parts of the whole core's. Frames of scripts at full length?"""
    whole = {t["tid"]: t for t in json.loads(run_core(setup, core, "--json").stdout)["threads"]}
    size, problems = os.path.getsize(core.path), []
    for n in [*range(39, 0, -2), 0.2, 0.02]:
        os.truncate(core.path, int(size * n / 40))
        done = run_core(setup, core, "--json", "--interpreter-frames")
        if done.returncode:
            if done.returncode != 1 or done.stderr.count("\n") != 1:
                problems.append("%d/40: status %d: %s" % (n, done.returncode, done.stderr[-300:]))
            continue
        for t in json.loads(done.stdout)["threads"]:
            mine = [f for f in t["frames"] if f["kind"] != "native"]
            if not is_shorter(mine, whole[t["tid"]]["frames"]):
                problems.append("%d/40: thread %d: %s, whole: %s" % (n, t["tid"], mine, whole[t["tid"]]["frames"]))
    return problems, None


def python_cut(python, setup):
    return cut_off(setup, core_of(setup, python_argv(python, python.cases(["no_gil", "threads"])[0]), busy=0.2))


def python_tests():
    only = os.environ.get("SONDE_PYTHONS")
    found = {(p.name if only else p.minor): p for p in python_test.pythons() if only or p.minor in PYTHONS}
    for python in found.values():
        yield python.name + "-waiting", functools.partial(python_cores, python, by_kernel, WAITING, 0)
        yield python.name + "-working", functools.partial(python_cores, python, by_kernel, WORKING, 0.2)
        yield python.name + "-gcore", functools.partial(python_cores, python, by_gcore, ["waiting", "recursion"], 0)
        yield python.name + "-async", functools.partial(python_async, python)
        yield python.name + "-cut-off", functools.partial(python_cut, python)


# --- Java --------------------------------------------------------------------------------------------------------------------


def folded(thread):
    """Its frames as a folded stack has them, outermost first."""
    return ["%s%s%s" % (f["function"] or "[%s]" % f["object"], ":%d" % f["line"] if f["line"] else "", "_[i]" * f["inlined"])
            for f in thread["frames"][::-1]]


def is_java(thread):
    return any(f["kind"] == "hotspot" for f in thread["frames"])


def wrong_java(core, threads, judges):
    """What is wrong, what is cut, and how many frames there are. `judges`: comm -> what says what is wrong with a stack of it."""
    problems, cut, nr = [], [], 0
    for comm, mine in threads.items():
        for thread in filter(is_java, mine):
            text = ";".join(folded(thread))
            nr += sum(f["kind"] == "hotspot" for f in thread["frames"])
            names = [f["function"] for f in thread["frames"] if f["kind"] == "hotspot"]
            if not thread["complete"]:
                cut.append("%s: %s: %s" % (comm, thread["stop"], text))
            elif comm in judges:
                problems += filter(None, [judges[comm](Stack(folded(thread), 1))])
            else:
                problems += ["%s: %s" % (comm, text) for n in names if "." in n and not OWN.match(n) or n.startswith("[")][:1]
    missing = [c for c in judges if not any(map(is_java, threads.get(c, [])))]
    return problems + ["no Java frame in %s" % c for c in missing], cut, nr


def twice_if_cut(take):
    """take() makes a core: what is wrong, what is cut, a note. Live, one of some 16,000 samples of Java is cut, and a core has a
    dozen threads: if one is cut, that is said, and another core must be whole."""
    problems, cut, note = take()
    if cut and not problems:
        problems, again, note = take()
        note += ", cut in another core: %s" % cut
        problems += ["once more: %s" % x for x in again]
    else:
        problems += cut
    return [shorten(p, 1500) for p in problems], note


def java(jdk, way, options, setup):
    jvm_toolchain.CLASSES.ensure(setup)
    argv = jdk.argv(*SMALL, *jvm_toolchain.TELLING, *jvm_toolchain.EXACT, *options, "-cp", jvm_toolchain.CLASSES.folder, "Calls", *SCENARIOS)

    def take():
        core = core_of(setup, argv, way, 1, {"LC_ALL": "C.UTF-8"})
        judges = {comm: chains.judge for comm, chains in jvm_record.chains_of(core.truths).items()}
        problems, cut, nr = wrong_java(core, threads_of(setup, core), judges)
        if len(judges) < len(SCENARIOS):
            problems.append("truths of %s only" % ", ".join(judges))
        return problems, cut, "%d Java frames, %d MB" % (nr, os.path.getsize(core.path) >> 20)
    return twice_if_cut(take)


def java_cut(jdk, setup):
    jvm_toolchain.CLASSES.ensure(setup)
    argv = jdk.argv(*SMALL, "-cp", jvm_toolchain.CLASSES.folder, "Calls", "plain", "lambda", "recurse200")
    return cut_off(setup, core_of(setup, argv, busy=1, env={"LC_ALL": "C.UTF-8"}))


def java_virtual(jdk, setup):
    """Virtual threads on their carriers."""
    jvm_toolchain.CLASSES.ensure(setup)
    if jdk.release < 21 or not jvm_toolchain.CLASSES.virtual:
        raise Skip("no virtual threads")
    argv = jdk.argv(*SMALL, *jvm_toolchain.TELLING, *jvm_toolchain.EXACT, "-Dspin=20000000", "-cp", jvm_toolchain.CLASSES.folder,
                    "Virtual", "deep")

    def take():
        core = core_of(setup, argv, busy=0.5, env={"LC_ALL": "C.UTF-8"})
        judge = functools.partial(jvm_test.virtual_judge, jvm_judge.Chains([t["chain"] for t in core.truths], jvm_judge.JDK))
        threads = threads_of(setup, core)
        judges = {comm: judge for comm in threads if comm.startswith("ForkJoinPool")}
        problems, cut, nr = wrong_java(core, threads, judges)
        if "Virtual.leaf" not in str(threads):
            problems.append("no virtual thread's frames")
        return problems, cut, "%d Java frames" % nr
    return twice_if_cut(take)


def java_tests():
    homes = [h for h in os.environ.get("SONDE_JDKS", "").split(":") if h] or glob.glob("/usr/lib/jvm/*")
    homes = {os.path.realpath(h) for h in homes if os.path.exists(os.path.join(h, "bin/java"))}
    found = sorted(map(jvm_toolchain.Jdk, homes), key=lambda j: j.release)
    for jdk in found:
        name = "jdk-" + jdk.version
        yield name + "-compiled", functools.partial(java, jdk, by_kernel, [])
        if jdk is not found[-1] and not os.environ.get("SONDE_ALL"):
            continue
        yield name + "-interpreted", functools.partial(java, jdk, by_kernel, ["-Xint", "-Dspin=500", "-Dturns=60"])
        # gcore writes what the JVM has only reserved, too, in seven seconds of CPU.
        if os.environ.get("SONDE_ALL"):
            yield name + "-gcore", functools.partial(java, jdk, by_gcore, [])
        yield name + "-virtual", functools.partial(java_virtual, jdk)
        yield name + "-cut-off", functools.partial(java_cut, jdk)


# --- JavaScript --------------------------------------------------------------------------------------------------------------


def node_cores(node, way, setup):
    """A chain in a core: on another thread, with C++ between."""
    problems, env = [], node_test.make_addon(setup)
    cases = ("worker", "native") if way == by_kernel else ("methods",)
    for case in cases:
        core = core_of(setup, node.argv([], case), way, 0.2, env)
        wrong = node_test.wrong_stack(sum(threads_of(setup, core).values(), []), core.truths[0])
        problems += ["%s: %s" % (case, shorten(wrong, 1500))] if wrong else []
        shutil.rmtree(os.path.dirname(core.path))
    return problems, " ".join(cases)


def node_tests(setup):
    path = os.environ.get("SONDE_NODE") or shutil.which("node")
    if path:
        node = node_test.node_of(path, setup)
        yield "node-%s-working" % node.version, functools.partial(node_cores, node, by_kernel)
        # gcore writes what V8 has only reserved, too: a gigabyte.
        if os.environ.get("SONDE_ALL"):
            yield "node-%s-gcore" % node.version, functools.partial(node_cores, node, by_gcore)


# --- Go ----------------------------------------------------------------------------------------------------------------------


def go_core(name, setup):
    """Threads that work, by gcore: Go handles the signals that would make the kernel write one."""
    core = core_of(setup, go_test.build(setup, name), by_gcore, env={"GOGC": "off"})
    wrong = go_test.wrong_threads(core.truths, threads_of(setup, core), go_test.STRIPPED not in {**go_test.BUILDS, **go_test.MORE}[name][2])
    shutil.rmtree(os.path.dirname(core.path))
    return wrong, "%d threads" % len(core.truths)


def go_tests():
    if os.environ.get("SONDE_GO") or shutil.which("go"):
        for name in ("cgo", "stripped-pie"):  # no case has the name that the program's other threads have
            if name != "cgo" or shutil.which("gcc"):
                yield "go-" + name, functools.partial(go_core, name)


def tests(setup, _args):
    with contextlib.suppress(OSError):
        yield from python_tests()
    yield from java_tests()
    yield from node_tests(setup)
    yield from go_tests()


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
