#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several runtimes on one stack: a C program with a Python and a Perl in it, which call each other through C (mixed/python.c).
Each says in the leaf what itself thinks its part of the chain is: frames of both must be so, in one stack, with the
program's functions between them.

    mixed_test.py [--sonde PROGRAM] [--only REGEX]
"""
import contextlib
import functools
import os
import shlex
import subprocess
import sys

import runtimes
from python_test import PythonTally, is_first, recorded, started
from runtimes import stack_of
from folded import shorten
from tap import Skip

MIXED = os.path.join(runtimes.HERE, "mixed")
CONFIG = "/usr/bin/python3-config"
BLOCKS = ("(sort block)",)  # caller() does not tell them
# What is between a frame and its caller of another language, of our functions.
BETWEEN = {"perl": "call_perl", "python": "call_python"}


def perl_config(name):
    return subprocess.run(["/usr/bin/perl", "-MConfig", "-e", "print $Config{%s}" % name], capture_output=True, text=True, check=True).stdout


def python_config(*options):
    return shlex.split(subprocess.run([CONFIG, *options], capture_output=True, text=True, check=True).stdout)


def program_path(setup):
    """The program, compiled; Skip if this machine has not what it takes."""
    path = setup.file("mixed")
    core, library = perl_config("archlib") + "/CORE", perl_config("libperl")
    if not os.path.exists(CONFIG) or not os.path.exists(core + "/perl.h") or not library.startswith("libperl.so"):
        raise Skip("no headers, or no library, of Python or Perl")
    if not os.path.exists(path):
        common = ["gcc", "-O1", "-g", "-w", "-fno-optimize-sibling-calls", "-c"]
        subprocess.run([*common, *python_config("--includes"), os.path.join(MIXED, "python.c"), "-o", path + "-python.o"], check=True)
        subprocess.run([*common, *shlex.split(perl_config("ccflags")), "-I" + core, os.path.join(MIXED, "perl.c"), "-o", path + "-perl.o"], check=True)
        # The library by its full name: that without a version is in another package than all the rest.
        subprocess.run(["gcc", path + "-python.o", path + "-perl.o", "-o", path, "-l:" + library, *python_config("--embed", "--ldflags")], check=True)
    return path


def wrong_chain(truth, found):
    """What is wrong with frames (runtime, name, file, line) of the two languages, outermost first, or None."""
    chain = []
    for frame in found:
        if frame[1] in BLOCKS and chain:
            chain[-1] = chain[-1][:3] + frame[3:]
        else:
            chain.append(tuple(frame))
    want = [tuple(c) for c in truth["chain"]]
    # Python's leaf goes on in the line behind the one in which it said so.
    lines = (want[-1][3], want[-1][3] + 1)
    if chain[:-1] == want[:-1] and chain and chain[-1][:3] == want[-1][:3] and chain[-1][3] in lines:
        return None
    return "%s\n     not %s" % (chain, want)


def wrong_natives(frames):
    """What is wrong between frames (runtime, name): each change from one language to the other goes through the program's own function."""
    language, between = None, []
    for runtime, name in frames:
        if runtime not in BETWEEN:
            between.append(name)
            continue
        want = BETWEEN[runtime] if language else "run_python"
        if runtime != language and want not in between:
            return "no %s before %s, but %s" % (want, name, between)
        language, between = runtime, []
    return None


def judge(truth, stack):
    languages = [(f.runtime, f.name, f.file, f.line) for f in stack.user if f.runtime in BETWEEN]
    wrong = wrong_chain(truth, languages) or wrong_natives([(f.runtime, f.name) for f in stack.user])
    if not wrong and not is_first(stack.user[0], stack.user[0].name):
        wrong = "it begins with %s" % stack.user[0].name
    return wrong and wrong + "\n     all: " + " ; ".join(f.name for f in stack.user)


def programs_of(setup, stack):
    """Whose leaf is in Perl, in Python, and in the first one of two interpreters of Perl, which the second one has called."""
    path = program_path(setup)
    leaves = [*BETWEEN, *["perls"] * bool(perl_config("usemultiplicity"))]
    return started(stack, [[path, os.path.join(MIXED, "program.py"), os.path.join(MIXED, "program.pl"), leaf] for leaf in leaves],
                   {"PYTHONHOME": "/usr"})


def test_record(setup):
    """Samples."""
    with contextlib.ExitStack() as stack:
        programs = programs_of(setup, stack)
        recording = recorded(setup, programs, 1)
    problems, notes = list(recording.problems), []
    for program in programs:
        t = PythonTally(program.argv[-1])
        for s in recording.stacks or []:
            if s.tid == program.pid:
                t.take(s, functools.partial(judge, program.truths[0]))
        problems += t.problems(100)
        notes.append(t.summary())
    return problems, ", ".join(notes)


def test_stack(setup):
    """`sonde stack` of the same."""
    problems, nr = [], 0
    with contextlib.ExitStack() as stack:
        for program in programs_of(setup, stack):
            thread = stack_of(setup, program.pid)[program.pid]
            frames = [f for f in thread["frames"][::-1] if f["kind"] != "kernel"]
            languages = [(f["kind"], f["function"], f["file"], f["line"]) for f in frames if f["kind"] in BETWEEN]
            wrong = wrong_chain(program.truths[0], languages) or wrong_natives([(f["kind"], f["function"]) for f in frames])
            problems += [shorten(wrong, 2000)] if wrong or not thread["complete"] else []
            nr += len(languages)
    return problems, "%d frames" % nr


def tests(_setup, _args):
    yield "mixed-record", test_record
    yield "mixed-stack", test_stack


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
