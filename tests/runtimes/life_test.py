#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The lives of processes of five runtimes, from their first instruction on: one recording of a command that starts a program
of each. It works, forks a child that works, and executes itself anew, which works; each time in functions of its own. Their
stacks, and what each format and `sonde top` make of them.

    life_test.py [--sonde PROGRAM] [--only REGEX]
"""
import collections
import contextlib
import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys

import go_test
import runtimes
from folded import shorten
from runtimes import FrameText, Program
from tap import Skip

LIFE = os.path.join(runtimes.HERE, "life")
SECONDS = 0.5  # of CPU, of each phase
FREQUENCY = 499
# How the names of their functions begin.
LANGUAGES = {"go": "main.go", "v8": "node", "ruby": "Object#ruby_", "perl": "main::perl_", "php": "php_"}
PHASES = ("begun", "forked", "executed")
CAPITALS = ("go", "v8")  # in names


def name_of(language, what):
    return LANGUAGES[language] + (what.capitalize() if language in CAPITALS else what)


def commands(setup):
    """language -> how its program is started."""
    found = {language: [shutil.which(program), os.path.join(LIFE, "life." + ending)]
             for language, program, ending in (("v8", "node", "js"), ("ruby", "ruby", "rb"), ("perl", "perl", "pl"), ("php", "php", "php"))
             if shutil.which(program)}
    with contextlib.suppress(Skip):
        program = setup.file("life-go")
        go_test.go("build", "-o", program, os.path.join(LIFE, "life.go"))
        found["go"] = [program]
    if not found:
        raise Skip("none of these runtimes is here")
    return found


def recording_of(setup):
    """The recording, made once, and of which languages it is."""
    kept, found = setup.file("life.otlp"), commands(setup)
    if not os.path.exists(kept):
        line = " ".join(shlex.join(c) + " &" for c in found.values()) + " wait"
        done = subprocess.run([setup.program, "record", "-F", str(FREQUENCY), "-o", kept, "--", "/bin/sh", "-c", line], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ, SECONDS=str(SECONDS)))
        if done.returncode:
            raise AssertionError("sonde record: status %d: %s" % (done.returncode, done.stderr[-1000:]))
    return kept, found


def converted(setup, kept, ending):
    path = setup.file("life." + ending)
    subprocess.run([setup.program, "convert", kept, path], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return path


def judge(language, names):
    """Which phase a stack is of, or None, and what is wrong with it, or None."""
    phase = next((p for p in PHASES if name_of(language, p) in names), None)
    if not phase:
        return None, None
    want = [name_of(language, w) for w in ("life", phase)]
    at = names.index(want[1])
    caller = [n for n in names[:at] if not n.startswith("block in ") and n != "Kernel#fork"][-1:]
    if names.count(want[1]) != 1 or caller != want[:1]:
        return phase, "%s is not called by %s" % (want[1], want[0])
    return phase, None


def test_stacks(setup):
    """Of each language and phase about all samples are there, and who called whom is so."""
    kept, found = recording_of(setup)
    with open(converted(setup, kept, "perf"), encoding="utf-8") as f:
        stacks = FrameText(f.read()).stacks
    samples, wrong, problems = collections.Counter(), collections.Counter(), []
    for stack in stacks:
        for language in found:
            names = [f.name for f in stack.user if f.runtime == ("native" if language == "go" else language)]
            if not names:
                continue
            phase, fault = judge(language, names)
            samples[language, phase] += stack.count
            if fault:
                wrong["%s: %s, but %s" % (language, fault, shorten(" ; ".join(names), 1000))] += stack.count
    for language in found:
        for phase in PHASES:
            if samples[language, phase] < 0.7 * SECONDS * FREQUENCY:
                problems.append("%s: %d samples of what was %s, expected %d" % (language, samples[language, phase], phase,
                                                                                SECONDS * FREQUENCY))
    problems += ["wrong: %d x %s" % (n, text) for text, n in wrong.most_common(3)]
    return problems, ", ".join("%s %s" % (language, "/".join(str(samples[language, p]) for p in PHASES)) for language in found)


def test_formats(setup):
    """Each format has each function."""
    kept, found = recording_of(setup)
    problems = []
    for ending in ("folded", "perf", "pb.gz", "speedscope.json", "firefox.json", "html"):
        with open(converted(setup, kept, ending), "rb") as f:
            data = f.read()
        if ending == "pb.gz":
            data = gzip.decompress(data)
        elif ending == "html":
            # It is packed in the page; who reads it is the browser's test.
            continue
        problems += ["%s: no %s" % (ending, name_of(language, p)) for language in found for p in PHASES
                     if name_of(language, p).encode() not in data]
    return problems, None


def test_top(setup):
    """A table of functions while they run."""
    found = commands(setup)
    with contextlib.ExitStack() as stack:
        for language, argv in found.items():
            stack.enter_context(Program(argv, env={"SECONDS": "1000"}))
        done = subprocess.run([setup.program, "top", "-b", "2", "--sort", "total", "-n", "1000", "--filter", "egun"], check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
    return ["no %s: %s" % (name_of(language, "begun"), done.stdout[-1500:] + done.stderr[-500:]) for language in found
            if name_of(language, "begun") not in done.stdout], None


def tests(_setup, _args):
    yield "stacks", test_stacks
    yield "formats", test_formats
    yield "top", test_top


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
