#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python programs that know their chains (python/cases.py), under every Python of this machine: exact names, files and
lines, in the right order, with native frames between them where there are any.

    python_test.py [--family 6-10 | --zoo 3.14] [--sonde PROGRAM] [--only REGEX]

SONDE_PYTHONS, paths with colons between, restricts the Pythons. docs/python.md says what is shown.
"""
import collections
import contextlib
import functools
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import runtimes
from modes import burnt, cpu_seconds, recording_began, wait_until
from runtimes import FrameRecorder, Program, Tally, stack_of
from folded import shorten
from tap import Skip

PROGRAMS = os.path.join(runtimes.HERE, "python")
CASES = os.path.join(PROGRAMS, "cases.py")
AWAITS = os.path.join(PROGRAMS, "awaits.py")
PATTERNS = ("/root/.pyenv/versions/3.*/bin/python3", "/usr/bin/python3")
SECONDS = 1  # of CPU, of all programs of a recording
EACH = 0.025  # of each
EARLY = 0.02  # of each, before sonde knows all that it needs

# What the programs of one recording do at the same time; less on an emulated machine (tests/vm).
TOGETHER = (os.environ.get("SONDE_SCENARIOS") or "plain recursion generator coroutine asyncio_task comprehension methods decorators callbacks exceptions "
            "executed with_strings umlaute imported finalizer in_signal ctypes_qsort threads no_gil greenlets forked "
            "multiprocessing_fork reexec").split()

# Modules that a small build may lack.
NEEDS = {"ctypes_qsort": "ctypes", "no_gil": "zlib", "greenlets": "greenlet"}

# Of --async (python/awaits.py); some need a version.
AWAITING = ("root nobody nested gather gather_in_gather wait_for wait shield several callback both no_longer deep async_generator "
            "generator context subclasses python_task by_hand timer").split()
AWAITING_SINCE = {11: ["group", "group_body", "group_nested"], 12: ["eager"]}

# Functions that only implement a Python call: their frames are left out.
FOLDED = re.compile(r"_?PyEval_(EvalFrame|EvalFrameDefault|EvalFrameEx|EvalCodeEx|Vector|EvalCodeWithName)|fast_function|call_function|"
                    r"_PyFunction_(Vectorcall|FastCall\w*)|_PyObject_Vectorcall(Tstate)?|function_code_fastcall|method_vectorcall|"
                    r"gen_send_ex2?|gen_iternext")
OUTERMOST = re.compile(r"_start|__clone3?|clone3?|thread_start")


class Python:
    """An interpreter: where it is, which one."""

    def __init__(self, path):
        self.path = path
        text = subprocess.run([path, "-c", "import sys, sysconfig as s; print(sys.version_info[0], sys.version_info[1], "
                               "s.get_config_var('LIBDIR'), s.get_config_var('LDVERSION'), sys.prefix, s.get_config_var('CC'))"],
                              capture_output=True, text=True, check=True).stdout.split()
        self.minor = int(text[1])
        self.major = int(text[0])
        self.libdir, self.ldversion, self.prefix = text[2:5]
        self.compiler = shutil.which(text[5]) or "cc"
        self.free_threaded = "t" in self.ldversion
        kind = "debian" if path.startswith("/usr") else "pyenv" if "pyenv" in path else "python"
        self.name = "%s-3.%d%s" % (kind, self.minor, self.ldversion.replace("3.%d" % self.minor, "").replace("m", ""))

    def cases(self, names):
        """Those of the cases whose modules it has."""
        lacking = [c for c, m in NEEDS.items() if c in names and
                   subprocess.run([self.path, "-c", "import " + m], capture_output=True, check=False).returncode]
        return [c for c in names if c not in lacking]

    def include(self):
        found = glob.glob(os.path.join(self.prefix, "include", "python" + self.ldversion, "Python.h"))
        return os.path.dirname(found[0]) if found else None

    def static_library(self):
        found = glob.glob(os.path.join(self.libdir, "python3.%d" % self.minor, "config-*", "libpython*.a"))
        return found[0] if found else None

    def shared_library(self):
        path = os.path.join(self.libdir, "libpython%s.so.1.0" % self.ldversion)
        return path if os.path.exists(path) else None


def pythons(paths=None):
    only = os.environ.get("SONDE_PYTHONS")
    paths = paths or (only.split(":") if only else [p for pattern in PATTERNS for p in sorted(glob.glob(pattern))])
    found = []
    for path in paths:
        with contextlib.suppress(OSError, subprocess.CalledProcessError, ValueError, IndexError):
            python = Python(path)
            if python.major == 3 and python.minor >= 6:
                found.append(python)
    return sorted(found, key=lambda p: p.minor)


# --- what a stack must be ---


class PythonTally(Tally):
    """Until a process is shown to the kernel, its samples are walked later, in a copy of their stack: they have no Python
    frames, or are cut, and say so. Those of -p are shown before the first sample, but for files that they map later."""

    def __init__(self, name):
        super().__init__(name)
        self.early = 0
        self.why_early = collections.Counter()

    def take(self, stack, judge_stack):
        is_early = any(f.name.endswith(": not_ready]") for f in stack.user) or stack.reason in ("no_process", "file_pending")
        if is_early:
            self.early += stack.count
            self.why_early[stack.reason or "not_ready"] += stack.count
        else:
            super().take(stack, judge_stack)

    def problems(self, least=20, complete_percent=99.0):
        found = super().problems(least, complete_percent)
        if self.early > max(EARLY * runtimes.FREQUENCY, (self.samples + self.early) / 10):
            found.append("%s: %d samples were early, and %d not: %s" % (self.name, self.early, self.samples, dict(self.why_early)))
        return found

    def summary(self):
        return super().summary() + ("+%d" % self.early if self.early else "")



def chain_text(chain):
    return " ; ".join("%s (%s:%s)" % tuple(c[:3]) for c in chain)


def wrong_chain(truth, found):
    """What is wrong with Python frames (name, file, line), outermost first, or None."""
    want = truth.get("before", []) + truth["chain"]
    low, high = truth["lines"]
    inside, beyond = found[:len(want)], [f[0] for f in found[len(want):]]
    if len(inside) == len(want) and [list(f) for f in inside[:-1]] == want[:-1] and list(inside[-1][:2]) == want[-1][:2]:
        # Telling it, the leaf calls others; back from that, it is in the line of that call for a moment.
        line = inside[-1][2]
        if beyond[0] in ("tell", "wait_for_go") if beyond else low <= line <= high or line == want[-1][2]:
            return None
    return "%s\n     not %s in line %d to %d" % (chain_text(found), chain_text(want), low, high)


def is_inlined(frame):
    return frame["inlined"] if isinstance(frame, dict) else frame.inlined


def is_first(frame, name):
    """Whether a thread may begin with this frame: its name says so, or it is libc's, stripped."""
    library = frame["object"] if isinstance(frame, dict) else frame.file
    return OUTERMOST.fullmatch(name) or (not name or name.startswith("[")) and re.search(r"libc\b|ld-musl", library or "")


def wrong_natives(truth, frames, name, is_python, minor):
    """What is wrong with native frames around and between: `name` and `is_python` of a frame."""
    folded = [name(f) for f in frames if not is_python(f) and FOLDED.fullmatch(name(f))]
    if folded:
        return "interpreter frames: %s" % " ".join(folded)
    if not (re.match(truth["outermost"], name(frames[0])) if "outermost" in truth else is_first(frames[0], name(frames[0]))):
        return "it begins with %s" % name(frames[0])
    for first, second, pattern in truth.get("between", []):
        at = [i for i, f in enumerate(frames) if is_python(f) and name(f).split(".")[-1] in (first, second)]
        between = [name(f) for f in frames[at[0] + 1:at[1]]] if len(at) >= 2 else []
        at_end = truth["between"][-1][:2] == [first, second]
        if at_end and len(at) >= 2:
            between = [name(f) for f in frames[at[-2] + 1:at[-1]]]
        if not any(re.search(pattern, n) for n in between):
            return "no %s between %s and %s, but %s" % (pattern, first, second, between)
    if truth.get("adjacent") and minor >= 11:
        at = [i for i, f in enumerate(frames) if is_python(f)][:len(truth["chain"])]
        if at != list(range(at[0], at[0] + len(at))):
            return "native frames between: %s" % " ; ".join(map(name, frames[at[0]:at[-1]]))
    return None


def judge(truth, minor, stack):
    is_python = lambda f: f.runtime == "python"
    found = [(f.name, f.file, f.line) for f in stack.user if is_python(f)]
    wrong = wrong_chain(truth, found) or wrong_natives(truth, stack.user, lambda f: f.name, is_python, minor)
    if wrong:
        wrong += "\n     all: " + " ; ".join("%s(%s)" % (f.name, os.path.basename(f.file)) for f in stack.user)
    return wrong


def tally_truths(recording, programs, minor, least=10):
    """Problems and a note of a recording of programs."""
    problems, notes = list(recording.problems), []
    for program in programs:
        found = []
        for truth in program.truths:
            t = PythonTally(truth["comm"])
            for stack in recording.stacks or []:
                if stack.comm == truth["comm"]:
                    t.take(stack, functools.partial(judge, truth, minor))
            # Threads share the GIL: it is Python's to say whose turn it is.
            problems += t.problems(least if len(program.truths) == 1 else 0)
            notes.append(t.summary())
            found.append(t.samples)
        if len(found) > 1 and (sum(found) < least or sum(n > 0 for n in found) < 2):
            problems.append("samples of threads that share the GIL: %s" % found)
    return problems, ", ".join(notes)


# --- tests ---


def recorded(setup, programs, seconds, frequency=runtimes.FREQUENCY, options=()):
    """A recording of programs that were there before; they begin to work when it does. It ends when they have had so much
    CPU time together, and each of them some."""
    pids = {p.process.pid for p in programs} | {p.pid for p in programs if p.pid}
    recorder = FrameRecorder(setup, ["-p", ",".join(map(str, sorted(pids))), *options], frequency=frequency)
    recording_began(recorder)
    before = [cpu_seconds(p.pid) for p in programs]
    for program in programs:
        program.go()

    def all_ran():
        used = [cpu_seconds(p.pid) - b for p, b in zip(programs, before)]
        if sum(used) >= seconds and min(used) >= EACH:
            return True
        ended = [(u, p) for u, p in zip(used, programs) if p.process.poll() is not None]
        if len(ended) == len(programs) or any(u < EACH for u, p in ended):
            raise AssertionError("%s ended" % ", ".join(shorten(" ".join(p.argv)) for u, p in ended))
        return False
    wait_until("%g s of CPU" % seconds, all_ran, 900)
    recorder.process.send_signal(signal.SIGINT)
    for program in programs:
        program.pause()
    return recorder.wait(300)


def started(stack, argvs, env=None):
    """Programs that have all said where they are; they end with the ExitStack."""
    # They are more than CPUs, and sonde is to have its share of these.
    programs = [stack.enter_context(Program(argv, env, nice=5)) for argv in argvs]
    return [p.until_ready() for p in programs]


def argv_of(python, case, *options):
    return [python.path, *options, CASES, case]


def test_chains(python, setup):
    """All cases at once; sonde comes long after they began."""
    cases = python.cases(TOGETHER + (["subinterpreter", "interpreters"] if python.minor >= 8 else []))
    with contextlib.ExitStack() as stack:
        argvs = [argv_of(python, c) for c in cases]
        if python.minor >= 12:
            argvs.append(argv_of(python, "plain", "-X", "perf"))
            argvs[-1][-1] = "perf_plain"
        programs = started(stack, argvs)
        return tally_truths(recorded(setup, programs, SECONDS), programs, python.minor)


def settled_stacks(setup, program, *options):
    """The threads of a program, all of them beyond saying where they are."""
    program.go()
    for _ in range(50):
        threads = stack_of(setup, program.pid, *options)
        if not any(f["function"] in ("tell", "wait_for_go") for t in threads.values() for f in t["frames"]):
            break
    return threads


def wrong_thread(python, truth, thread):
    """What is wrong with a thread of `sonde stack --json`, or None; and its Python frames."""
    is_python = lambda f: f["kind"] == "python"
    frames = [f for f in thread["frames"][::-1] if f["kind"] != "kernel"]
    # What stands in place of frames has no file.
    found = [(f["function"], f["file"] or "[python]", f["line"] or 0) for f in frames if is_python(f)]
    wrong = wrong_chain(truth, found)
    return wrong or wrong_natives(truth, frames, lambda f: f["function"] or "", is_python, python.minor), found


def test_stack(python, setup):
    """`sonde stack` of programs that work and of threads that wait: files and lines as well."""
    problems, nr = [], 0
    with contextlib.ExitStack() as stack:
        for program in started(stack, [argv_of(python, c) for c in
                                      python.cases(["waiting", "recursion", "umlaute", "ctypes_qsort"])]):
            threads = settled_stacks(setup, program)
            for truth in program.truths:
                mine = [t for t in threads.values() if t["name"] == truth["comm"]]
                if len(mine) != 1 or not mine[0]["complete"]:
                    problems.append("%s: %s" % (truth["comm"], shorten(str(mine), 500)))
                    continue
                wrong, found = wrong_thread(python, truth, mine[0])
                problems += ["%s: %s" % (truth["comm"], shorten(wrong, 1500))] if wrong else []
                nr += len(found)
    return problems, "%d frames" % nr


def awaits_argvs(python):
    names = AWAITING + [n for minor, names in AWAITING_SINCE.items() if python.minor >= minor for n in names]
    return [[python.path, AWAITS, n] for n in names]


def check_has_async(python):
    if python.minor < 7 or (python.free_threaded and python.minor != 13):
        raise Skip("--async doesn't know its tasks")


def test_async(python, setup):
    """Tasks of asyncio, with those that wait for them."""
    check_has_async(python)
    with contextlib.ExitStack() as stack:
        programs = started(stack, awaits_argvs(python))
        return tally_truths(recorded(setup, programs, SECONDS, options=["--async"]), programs, python.minor)


def test_async_stack(python, setup):
    """Async stacks by `sonde stack`."""
    check_has_async(python)
    problems = []
    for argv in [[python.path, AWAITS, n] for n in ("nested", "gather", "several", "deep")]:
        with contextlib.ExitStack() as stack:
            program = started(stack, [argv])[0]
            threads = settled_stacks(setup, program, "--async")
            truth = program.truths[0]
            for thread in (t for t in threads.values() if t["name"] == truth["comm"]):
                wrong = wrong_thread(python, truth, thread)[0]
                problems += ["%s: %s" % (truth["comm"], shorten(wrong, 1500))] if wrong else []
    return problems, "4 programs"


def test_async_top(python, setup):
    """And by `sonde top`: a function that waits has the time of what it waits for, and takes none itself."""
    check_has_async(python)
    with contextlib.ExitStack() as stack:
        program = started(stack, [[python.path, AWAITS, "nested"]])[0]
        program.go()
        argv = "top -b 2 --delay 2 -F 997 -n 100 --sort total --async -p".split()
        done = subprocess.run([setup.program, *argv, str(program.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=True, timeout=300)
    rows = {m[3]: (int(m[1]), int(m[2])) for m in
            re.finditer(r"^ *(\d+) +[\d.]+ % +(\d+) +[\d.]+ % +[\d.]+ +(.+?)(?: \[\w+\.py:\d+\])?$", done.stdout.rpartition("self ")[2], re.M)}
    chain = [name for name, _, _ in program.truths[0]["chain"]]
    waiting = chain[:len(chain) - chain[::-1].index("[python: awaited_by]")]
    total = max([n for _, n in rows.values()], default=0)
    problems = [] if total else ["no rows: " + shorten(done.stdout + done.stderr, 1000)]
    problems += ["%s: %s of %d" % (name, rows.get(name), total) for name in waiting
                 if total and (rows.get(name, (0, 0))[0] or rows.get(name, (0, 0))[1] < 0.9 * total)]
    return problems, "%d samples of %d functions that wait" % (total, len(waiting))


def async_churn_wrong(stack):
    """Who waits for a task that works must be its own."""
    names = [f.name for f in stack.user if f.runtime == "python"]
    if "spin" not in names or "[python: awaiter_unknown]" in names:
        return None
    names = names[:names.index("spin")]
    names = names[max(i for i, n in enumerate(names) if n in ("Handle._run", "_run")) + 1:]
    n = names[-1].split("_")[-1]
    awaited = "[python: awaited_by]"
    want = ["churn", awaited, "top_" + n, awaited, "wait_" + n, awaited, "work_" + n]
    return None if names == want else "%s\n     all: %s" % (names, " ; ".join(f.name for f in stack.user))


def test_async_churn(python, setup):
    """Tasks made and gone all the time."""
    check_has_async(python)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[python.path, AWAITS, "churn"]])
        recording = recorded(setup, programs, 1, 4999, ["--async"])
    t = PythonTally("churn")
    unknown = told = 0
    for s in recording.stacks or []:
        t.take(s, async_churn_wrong)
        names = [f.name for f in s.user]
        unknown += s.count * ("[python: awaiter_unknown]" in names)
        told += s.count * (names.count("[python: awaited_by]") == 3)
    problems = recording.problems + t.problems(200)
    if told < 100 or unknown > told / 50:
        problems.append("%d samples with awaiters, %d without" % (told, unknown))
    return problems, "%d samples, %d with awaiters, %d in doubt" % (t.samples, told, unknown)


def churn_wrong(stack):
    """The leaf says which function must have called it."""
    frames = [f for f in stack.user if f.runtime == "python"]
    if not frames:
        return "no Python frame\n     all: " + " ; ".join(f.name for f in stack.user)
    if any("unknown" in f.name or f.file == "[python]" for f in frames):
        return None  # said to be unknown: no wrong name, and counted by the test
    m = re.fullmatch(r"leaf_(\d+)", frames[-1].name)
    names = [f.name for f in frames]
    if m and (names[-2] != "caller_" + m[1] or frames[-1].file != "/churn/%s.py" % m[1]
              or frames[-2].file != frames[-1].file or frames[-2].line != 7 or names[:-2] != ["<module>", "churn"]
              or not 1 <= frames[-1].line <= 5):
        return "%s\n     all: %s" % ([tuple(f[:3]) for f in frames], " ; ".join(f.name for f in stack.user))
    m = re.fullmatch(r"caller_(\d+)", frames[-1].name)
    if m and (names[:-1] != ["<module>", "churn"] or frames[-1].file != "/churn/%s.py" % m[1]):
        return "%s\n     all: %s" % ([tuple(f[:3]) for f in frames], " ; ".join(f.name for f in stack.user))
    return None


def test_churn(python, setup):
    """Functions made and freed all the time, at a high frequency: no wrong name."""
    seconds = int(os.environ.get("SONDE_CHURN_SECONDS", "1"))
    with contextlib.ExitStack() as stack:
        programs = started(stack, [argv_of(python, "churn")] * 2)
        recording = recorded(setup, programs, seconds, 9997)
    t = PythonTally("churn")
    unknown = generations = 0
    for s in recording.stacks or []:
        t.take(s, churn_wrong)
        if any("unknown" in f.name for f in s.user if f.runtime == "python"):
            unknown += s.count
        elif any(f.name.startswith("caller_") for f in s.user):
            generations += s.count
    problems = recording.problems + t.problems(500)
    if generations < 100:
        problems.append("%d samples in generated functions with names" % generations)
    return problems, "%d samples, %d in named generated functions, %d in unknown ones" % (t.samples, generations, unknown)


def test_command(python, setup):
    """A command is recorded from its beginning: whatever is in the leaf is right, and its start is complete."""
    code = "import runpy, signal, sys; signal.setitimer(signal.ITIMER_PROF, 4); sys.argv = %r; runpy.run_path(%r, run_name='__main__')" % ([CASES, "plain"], CASES)
    recorder = FrameRecorder(setup, [], [python.path, "-c", code], stdout=subprocess.PIPE)
    truth = json.loads(recorder.process.stdout.readline().decode("utf-8"))
    truth["adjacent"] = False
    recording = recorder.wait(250, 128 + signal.SIGPROF)
    t = PythonTally("command")
    for s in recording.stacks or []:
        if s.comm == truth["comm"]:
            t.take(s, lambda s: judge(truth, python.minor, s) if any(f.name == "leaf" for f in s.user) else None)
    return recording.problems + t.problems(30), t.summary()


# --- interpreters in other programs ---

def compiled(python, setup, source, name, *libraries):
    output = setup.file("%s-%s" % (name, python.name))
    if not os.path.exists(output):
        include = python.include()
        if not include:
            raise Skip("no headers")
        subprocess.run([python.compiler, "-O1", "-g", "-w", "-fno-optimize-sibling-calls", "-o", output, os.path.join(PROGRAMS, source),
                        "-I" + include, *libraries, "-lpthread", "-ldl", "-lutil", "-lm"], check=True)
    return output


def in_program(python, setup, program, truths=("plain", "threads", "methods"), env=None):
    home = {"PYTHONHOME": python.prefix, **(env or {})}
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[program, CASES, c] for c in truths], home)
        recording = recorded(setup, programs, 1)
        problems, note = tally_truths(recording, programs, python.minor)
        inside = [s for s in recording.stacks or [] if s.comm.startswith("py-plain")]
        if not all(any(f.name == "run_it" for f in s.user) for s in inside if not s.reason):
            problems.append("the program's own frames are missing")
        return problems, note


def test_embedded(python, setup):
    """A C program that is linked to libpython."""
    library = python.shared_library()
    if not library:
        raise Skip("no shared library")
    return in_program(python, setup, compiled(python, setup, "embed.c", "embed", library,
                                              "-Wl,-rpath," + os.path.dirname(library)))


def test_static(python, setup):
    """A C program that has CPython in itself, of any name."""
    library = python.static_library()
    if not library:
        raise Skip("no static library")
    program = compiled(python, setup, "embed.c", "worker", "-Wl,--export-dynamic", library)
    return in_program(python, setup, program)


def test_later(python, setup):
    """A running program loads libpython while it is recorded."""
    library = python.shared_library()
    if not library:
        raise Skip("no shared library")
    program = compiled(python, setup, "later.c", "later")
    go = setup.path(".go")
    os.unlink(go)
    with contextlib.ExitStack() as stack:
        env = {"PYTHONHOME": python.prefix}
        programs = [stack.enter_context(Program([program, go, library, CASES, "plain"], env))]
        programs[0].line()  # it runs
        recorder = FrameRecorder(setup, ["-p", str(programs[0].process.pid)])
        recording_began(recorder)
        burnt(programs[0].process.pid, 0.5)  # sonde has seen it without
        with open(go, "w", encoding="ascii"):
            pass
        programs[0].until_ready().go()
        burnt(programs[0].process.pid, 2)
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.wait()
    t = PythonTally("later")
    for s in recording.stacks or []:
        if s.comm == programs[0].truths[0]["comm"]:
            t.take(s, lambda s: judge(programs[0].truths[0], python.minor, s) if any(f.name == "leaf" for f in s.user) else None)
    with_python = sum(s.count for s in recording.stacks or [] if any(f.runtime == "python" for f in s.user))
    if with_python < 100:
        t.wrong["%d samples with Python frames" % with_python] += 1
    return recording.problems + t.problems(100), t.summary()


def test_renamed(python, setup):
    """The interpreter's own executable under another name, where CPython is in it."""
    target = os.path.realpath(python.path)
    linked = subprocess.run(["ldd", target], capture_output=True, text=True, check=False).stdout
    if "libpython" in linked:
        raise Skip("its executable has no CPython in it")
    program = setup.file("worker-bee")
    shutil.copy(target, program)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[program, CASES, c] for c in ("plain", "methods", "threads")],
                           {"PYTHONHOME": python.prefix})
        recording = recorded(setup, programs, 1)
        return tally_truths(recording, programs, python.minor)


TESTS = (("chains", test_chains), ("stack", test_stack), ("churn", test_churn), ("renamed", test_renamed),
         ("async", test_async), ("async-stack", test_async_stack), ("async-top", test_async_top), ("async-churn", test_async_churn))
# Under the last Python of this machine's alone; the others have OF_EACH, one of tests/zoo more of it. SONDE_ALL=1: all under each.
OF_EACH = {"chains", "stack", "async", "async-stack"}
OF_ZOO = {"renamed", "churn", "async-churn"}
MORE_TESTS = (("command", test_command), ("embedded", test_embedded), ("static", test_static), ("later", test_later))
FAMILIES = ((6, 9), (10, 10), (11, 12), (13, 99))


def arguments(parser):
    parser.add_argument("--family", default="6-99", help="minor versions, for example 6-10")
    parser.add_argument("--zoo", metavar="VERSION", help="one of tests/zoo instead of this machine's")


def tests(_setup, args):
    low, high = map(int, args.family.split("-"))
    found = pythons([runtimes.from_zoo("python", args.zoo)] if args.zoo else None)
    found = [p for p in found if low <= p.minor <= high]
    if not os.environ.get("SONDE_ALL") and not os.environ.get("SONDE_PYTHONS"):  # of two alike the system's
        found = list({p.minor: p for p in sorted(found, key=lambda p: (p.minor, p.path.startswith("/usr/bin/")))}.values())
    for python in found:
        family = next(f for f in FAMILIES if f[0] <= python.minor <= f[1])
        others = [p for p in found if family[0] <= p.minor <= family[1] and p.include()]
        wanted = set(OF_EACH)
        if args.zoo and not os.environ.get("SONDE_ALL"):
            wanted |= OF_ZOO
        elif os.environ.get("SONDE_ALL") or family == FAMILIES[-1] and (not others or python is others[-1]):
            wanted |= dict(TESTS + MORE_TESTS).keys()
        for name, test in TESTS + MORE_TESTS:
            if name not in wanted:
                continue
            yield "%s-%s" % (python.name, name), functools.partial(test, python)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests, arguments, "python"))
