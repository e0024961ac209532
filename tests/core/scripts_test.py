#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`sonde core` on real cores of Perl, Ruby and PHP programs, which have said in what chains their threads are. TAP.

    scripts_test.py [--sonde PROGRAM] [--only REGEX] [--keep]

The programs and what is right are those of tests/runtimes. Cores are made here and now, by the kernel and by gcore.
SONDE_PERLS, SONDE_RUBIES and SONDE_PHPS (colons between them) choose the versions. See docs/core.md.
"""
import functools
import os
import shutil
import subprocess
import sys
import types

import runtimes_test
from runtimes_test import by_gcore, by_kernel, core_of, threads_of
import perl_test
import php_test
import ruby_test
import runtimes
from folded import shorten

BUSY = 0.2  # seconds of CPU: it is somewhere in its leaf then
RUBY_BUSY = 1  # its threads take turns of 0.1 s: each of them had one
PERL_CASES = "deep sort_in_sort block_eval tied_eval destroy pattern_code deferred threads".split()
# An interpreter that is being made: no signal gets through there.
PERL_BY_GCORE = ["threads", "cloning"]
RUBY_CASES = "recursion blocks fibers threads".split()
RUBY_BY_GCORE = ["plain", "threads"]
PHP_CASES = "methods callbacks yield_from fiber".split()
PHP_SMALL = ("opcache.jit_buffer_size=4M", "opcache.memory_consumption=16", "opcache.interned_strings_buffer=2")  # it is all in the core
PHP_BY_GCORE = ["plain", "callbacks"]


# --- what is wrong with a thread, and how many frames of the script's it has ---


def wrong_perl(_perl, truth, thread):
    wrong, found = perl_test.wrong_thread(truth, thread)
    return wrong, len(found)


def wrong_ruby(ruby, truth, thread):
    stack = runtimes.FrameStack(truth["comm"], None, frames_of(thread, "ruby"), (), 1, thread["tid"])
    return ruby_test.judge(truth, ruby.version, stack), sum(f.runtime == "ruby" for f in stack.user)


def frames_of(thread, runtime):
    """As a recording has them."""
    return tuple(runtimes.Frame(f["function"] or "[unknown]", f["line"] or 0,
                                f["file"] or "[%s]" % runtime if f["kind"] == runtime else f["object"] or "", f["kind"], f["inlined"])
                 for f in thread["frames"][::-1] if f["kind"] != "kernel")


def wrong_php(jit, truth, thread):
    truth["jit"] = jit
    php_test.truths_of(types.SimpleNamespace(truths=[truth]))
    stack = runtimes.FrameStack(truth["comm"], None, frames_of(thread, "php"), (), 1, thread["tid"])
    return php_test.judge(truth, stack), sum(f.runtime == "php" for f in stack.user)


# --- tests ---


def check(judge, argvs, way, setup, env=None, busy=BUSY):
    """A core of each of these programs, at work: each thread that told where it is is there."""
    problems, frames = [], 0
    for argv in argvs:
        core = core_of(setup, argv, way, busy, env)
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
        yield name + "-working", functools.partial(check, judge, list(argvs.values()), by_kernel, env=env, busy=RUBY_BUSY)
        yield name + "-gcore", functools.partial(check, judge, [ruby.argv(c) + [setup.scratch] for c in RUBY_BY_GCORE], by_gcore, env=env, busy=RUBY_BUSY)
        yield name + "-cut-off", functools.partial(cut_off, argvs["blocks"], env=env)


def php_jit(php, setup):
    """Code that opcache's JIT made, in functions and in traces."""
    argvs = [php_test.with_jit(php, mode, *PHP_SMALL).argv(case, setup) for mode, case in (("function", "callbacks"), ("tracing", "methods"))]
    return check(functools.partial(wrong_php, True), argvs, by_kernel, setup)


def php_tests(setup):
    for path in filter(None, (os.environ.get("SONDE_PHPS") or shutil.which("php") or "").split(":")):
        php = php_test.Php(path)
        name, judge = "php-" + php.name, functools.partial(wrong_php, False)
        yield name + "-working", functools.partial(check, judge, [php.argv(c, setup) for c in php.cases(PHP_CASES)], by_kernel)
        yield name + "-jit", functools.partial(php_jit, php)
        yield name + "-gcore", functools.partial(check, judge, [php.argv(c, setup) for c in PHP_BY_GCORE], by_gcore)
        yield name + "-cut-off", functools.partial(cut_off, php.argv("callbacks", setup))


def tests(setup, _args):
    yield from perl_tests()
    yield from ruby_tests(setup)
    yield from php_tests(setup)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
