#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A kernel that refuses the walker of one runtime: its frames are left out, which is said once, and why; the rest of its stacks is
there, and another runtime's. The kernel is this one: refused/spoil.c changes an instruction of that program on its way to it.

    refused_test.py [--sonde PROGRAM] [--only REGEX]
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

import runtimes
from command import run
from folded import shorten
from modes import cpu_seconds, recording_began, wait_until
from python_test import PythonTally, started
from runtimes import FrameRecorder
from tap import Skip
from unknown_test import PROGRAMS, in_order

SECONDS = 1  # of CPU, of each program
NATIVE = ["Py_RunMain", "PyEval_EvalCode", r"\[python: off\]"]
PERL = ["(main)", "main::middle", "main::leaf"]
SAID = "sonde: the walker of python cannot be loaded (Permission denied): its frames are left out; see sonde doctor"
REASON = "R9 !read_ok"  # the verifier's words


def spoiled(setup):
    """What is before a command in which the kernel refuses the walker of Python."""
    program = setup.file("spoil")
    if not os.path.exists(program):
        subprocess.run(["gcc", "-O1", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                        os.path.join(runtimes.HERE, "refused", "spoil.c"), "-o", program], check=True)
    before = [program, "walker_python"]
    done = run(*before, "true", status=None)
    if done.returncode:
        raise Skip("no seccomp filter that asks another process: " + done.stderr.strip())
    return before


def record(setup, before, programs):
    """A recording, at two sources, of programs that begin to work when it does."""
    recorder = FrameRecorder(setup, ["-v", "--off-cpu", "-p", ",".join(str(p.pid) for p in programs)], before=before)
    recording_began(recorder)
    for program in programs:
        program.go()
    wait_until("%g s of CPU of each" % SECONDS, lambda: all(cpu_seconds(p.pid) >= SECONDS for p in programs), 900)
    recorder.process.send_signal(signal.SIGINT)
    for program in programs:
        program.pause()
    return recorder.wait(300)


def judge_python(stack):
    names = [f.name for f in stack.user]
    if any(f.runtime == "python" and not re.fullmatch(r"\[python: \w+\]", f.name) for f in stack.user):
        return "frames of Python: %s" % names
    return None if in_order(NATIVE, names) else "not in this order %s: %s" % (NATIVE, names)


def judge_perl(stack):
    found = [f.name for f in stack.user if f.runtime == "perl"]
    return None if found == PERL[:len(found)] else "not %s: %s, in %s" % (PERL, found, [f.name for f in stack.user])


def test_record(setup):
    """Said once, though two sources have walkers of their own; with the reason at -v."""
    if not shutil.which("perl"):
        raise Skip("no perl")
    before = spoiled(setup)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [["/usr/bin/python3", os.path.join(PROGRAMS, "spin.py")], ["perl", os.path.join(PROGRAMS, "spin.pl")]])
        recording = record(setup, before, programs)
    problems, notes = list(recording.problems), []
    for program, judge, leaf in zip(programs, (judge_python, judge_perl), (NATIVE[-1], PERL[-1])):
        t, nr = PythonTally(os.path.basename(program.argv[-2])), 0
        for s in recording.stacks or []:
            if s.tid == program.pid and s.user:
                t.take(s, judge)
                nr += s.count * any(re.fullmatch(leaf, f.name) for f in s.user)
        problems += t.problems(200)
        problems += ["%s: %d of %d samples have %s" % (t.name, nr, t.samples, leaf)] if nr < 0.9 * t.samples else []
        notes.append(t.summary())
    lines = recording.errors.splitlines()
    if lines.count(SAID) != 1:
        problems.append("%d times said: %s: %s" % (lines.count(SAID), SAID, shorten(recording.errors, 3000)))
    elif not any(REASON in line for line in lines[lines.index(SAID):]):
        problems.append("the reason is not said: %s" % shorten(recording.errors, 3000))
    problems += ["another one is refused: %s" % line for line in lines if "cannot be loaded" in line and "walker of python" not in line]
    return problems, ", ".join(notes)


def test_brief(setup):
    """Without -v it is one line."""
    done = run(*spoiled(setup), setup.program, "record", "-o", setup.file("brief.folded"), "--", "/usr/bin/python3", "-c", "pass")
    lines = done.stderr.splitlines()
    return [] if lines.count(SAID) == 1 and REASON not in done.stderr else ["said is: %s" % done.stderr], None


def test_doctor(setup):
    """`sonde doctor` says which, and why; it is no reason not to record."""
    done = run(*spoiled(setup), setup.program, "doctor")
    rows = dict(re.findall(r"^(?:yes|no ) +walker of (\w+) +(.*)$", done.stdout, re.M))
    problems = ["python: %s" % rows.get("python")] if rows.pop("python", "") != "Permission denied: " + REASON else []
    problems += ["%s: %s" % row for row in rows.items() if "instructions verified" not in row[1]]
    problems += ["doctor says: %s" % done.stdout] if "'sonde record' can run here." not in done.stdout else []
    return problems, "%d others" % len(rows)


def tests(_setup, _args):
    yield "record", test_record
    yield "brief", test_brief
    yield "doctor", test_doctor


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
