#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`sonde core` on real cores of Perl and Ruby programs, which have said in what chains their threads are. TAP.

    scripts_test.py [--sonde PROGRAM] [--only REGEX] [--keep]

The programs and what is right are those of tests/runtimes. Cores are made here and now, by the kernel and by gcore.
SONDE_PERLS and SONDE_RUBIES (colons between them) choose the versions. See docs/core.md.
"""
import functools
import os
import shutil
import subprocess
import sys

import runtimes_test
from runtimes_test import by_gcore, by_kernel, core_of, threads_of
import perl_test
import ruby_test
import runtimes
from folded import shorten

BUSY = 0.2  # seconds of CPU: it is somewhere in its leaf then
PERL_CASES = "deep sort_in_sort block_eval tied_eval destroy pattern_code deferred threads".split()
# An interpreter that is being made: no signal gets through there.
PERL_BY_GCORE = ["threads", "cloning"]
RUBY_CASES = "recursion blocks fibers threads".split()
RUBY_BY_GCORE = ["plain", "threads"]


# --- what is wrong with a thread, and how many frames of the script's it has ---


def wrong_perl(_perl, truth, thread):
    wrong, found = perl_test.wrong_thread(truth, thread)
    return wrong, len(found)


def wrong_ruby(ruby, truth, thread):
    frames = [runtimes.Frame(f["function"] or "[unknown]", f["line"] or 0, f["file"] or "[ruby]" if f["kind"] == "ruby" else f["object"], f["kind"], f["inlined"])
              for f in thread["frames"][::-1] if f["kind"] != "kernel"]
    stack = runtimes.FrameStack(truth["comm"], None, tuple(frames), (), 1, thread["tid"])
    return ruby_test.judge(truth, ruby.version >= (3, 4), stack), sum(f.runtime == "ruby" for f in frames)


# --- tests ---


def check(judge, argvs, way, setup, env=None):
    """A core of each of these programs, at work: each thread that told where it is is there."""
    problems, frames = [], 0
    for argv in argvs:
        core = core_of(setup, argv, way, BUSY, env)
        threads = threads_of(setup, core)
        for truth in core.truths:
            mine = threads.get(truth["comm"], [])
            if len(mine) != 1 or not mine[0]["complete"]:
                problems.append("%s: %s" % (truth["comm"], shorten(str(mine), 800)))
                continue
            wrong, nr = judge(truth, mine[0])
            frames += nr
            problems += ["%s: %s" % (truth["comm"], shorten(wrong, 1500))] if wrong else []
        shutil.rmtree(os.path.dirname(core.path))
    return problems, "%d frames of %d programs" % (frames, len(argvs))


def cut_off(argv, setup, env=None):
    return runtimes_test.cut_off(setup, core_of(setup, argv, busy=BUSY, env=env))


def perl_tests():
    for perl in perl_test.perls():
        argvs = {c: [perl.path, perl_test.CASES, c] for c in perl.cases(PERL_CASES)}
        by_gdb = [[perl.path, perl_test.CASES, c] for c in (PERL_BY_GCORE if perl.threaded else PERL_CASES[:1])]
        judge = functools.partial(wrong_perl, perl)
        yield perl.name + "-working", functools.partial(check, judge, list(argvs.values()), by_kernel)
        yield perl.name + "-gcore", functools.partial(check, judge, by_gdb, by_gcore)
        yield perl.name + "-cut-off", functools.partial(cut_off, argvs["sort_in_sort"])


def ruby_tests(setup):
    env = {"LANG": "C.UTF-8"}
    for path in (os.environ.get("SONDE_RUBIES") or shutil.which("ruby") or "").split(":"):
        try:
            ruby = ruby_test.Ruby(path)
        except (OSError, subprocess.CalledProcessError):
            continue
        name, argvs = "ruby-%d.%d" % ruby.version, {c: ruby.argv(c) + [setup.scratch] for c in RUBY_CASES}
        judge = functools.partial(wrong_ruby, ruby)
        yield name + "-working", functools.partial(check, judge, list(argvs.values()), by_kernel, env=env)
        yield name + "-gcore", functools.partial(check, judge, [ruby.argv(c) + [setup.scratch] for c in RUBY_BY_GCORE], by_gcore, env=env)
        yield name + "-cut-off", functools.partial(cut_off, argvs["blocks"], env=env)


def tests(setup, _args):
    yield from perl_tests()
    yield from ruby_tests(setup)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
