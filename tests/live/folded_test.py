#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The checker of the live tests, fed with right and with wrong stacks: it must be able to fail."""
import glob
import os
import sys

from cases import static_list
from folded import Expectation, FoldedError, SuffixMatcher, Verdict, parse_folded, parse_line

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads")
START = "_start;__libc_start_main;[libc.so.6+0x2724a];main"
CHAIN = "chain;%s;outer;middle;leaf" % START


def expectation(name="chain", **kwargs):
    return Expectation(os.path.join(WORKLOADS, name + ".expect"), **kwargs)


def problems(text, name="chain", comm=None, **kwargs):
    e = expectation(name, **kwargs)
    return Verdict(e, parse_folded(text), comm or e.file).problems


def refused(line):
    try:
        parse_line(line)
    except FoldedError:
        return True
    return False


def lines():
    yield "comm, frames, count", parse_line("a b;f(int);g_[k] 12") == ("a b", None, ("f(int)",), ("g_[k]",), 12)
    yield "a truncated stack", parse_line("a;[truncated: no_rule];f 1") == ("a", "no_rule", ("f",), (), 1)
    yield "a comm alone", parse_line("a 3") == ("a", None, (), (), 3)
    yield "no count is refused", refused("a;b")
    yield "a count of 0 is refused", refused("a;b 0")
    yield "an empty frame is refused", refused("a;;b 1")
    yield "a user frame below a kernel frame is refused", refused("a;f;g_[k];h 1")
    yield "a truncation in the middle is refused", refused("a;f;[truncated: no_rule];h 1")
    yield "a truncation without reason is refused", refused("a;[truncated];h 1")


def suffixes():
    m = SuffixMatcher(r"a;b(?:;[cd]\+0x[0-9a-f]+){1,2};(?:leaf|end)")
    for text in ("leaf", "c+0x1f;leaf", "c+0x1;d+0x2;end", "b;d+0x0;leaf", "a;b;c+0x1;leaf"):
        yield "suffix %s" % text, m.matches(text)
    for text in ("eaf", "0x1;leaf", "c+0x1", "c+0x1;c+0x1;c+0x1;leaf", "b;leaf", "x;leaf", "leaf;leaf", "a;c+0x1;leaf"):
        yield "no suffix %s" % text, not m.matches(text)


def verdicts():
    good = "%s 1000\n" % CHAIN
    yield "the chain", not problems(good)
    yield "the chain with kernel frames", not problems("%s;irq_[k];tick_[k] 1000\n" % CHAIN)
    yield "other comms do not matter", not problems(good + "other;nonsense 5000\n")
    yield "rare chains", not problems(good + "chain;%s;work_left;clock_gettime;__vdso_clock_gettime 20\n" % START)
    yield "rare chains that are not rare", problems(good + "chain;%s;work_left;clock_gettime 200\n" % START)
    yield "too few samples", problems("%s 50\n" % CHAIN)
    yield "none", problems("")
    yield "one sample with a missing frame", problems(good + "chain;%s;outer;leaf 1\n" % START)
    yield "one sample with an invented frame", problems(good + "chain;%s;outer;outer;middle;leaf 1\n" % START)
    yield "two frames for libc's one", problems(good + CHAIN.replace("[libc", "[libc.so.6+0x1];[libc") + " 1\n")
    yield "a wrong library", problems(good + CHAIN.replace("libc.so.6", "libm.so.6") + " 1\n")
    yield "one sample with a swapped order", problems(good + "chain;%s;middle;outer;leaf 1\n" % START)
    yield "one sample without its start, said to be complete", problems(good + "chain;outer;middle;leaf 1\n")
    yield "one sample with an unnamed frame", problems(good + CHAIN.replace("middle", "[chain+0x1180]") + " 1\n")
    yield "0.4 % truncated", not problems(good + "chain;[truncated: no_rule];middle;leaf 4\n")
    yield "0.6 % truncated", problems(good + "chain;[truncated: no_rule];middle;leaf 6\n")
    yield "one truncated and wrong", problems(good + "chain;[truncated: no_rule];outer;leaf 1\n")
    yield "truncated without frames", not problems(good + "chain;[truncated: no_registers] 1\n")
    yield "truncated at an unknown address", not problems(good + "chain;[truncated: no_mapping];[unknown+0x7f] 1\n")
    yield "truncated in no anonymous memory", problems(good + "chain;[truncated: no_mapping];[anon] 1\n")
    yield "an unknown caller", problems(good + "chain;[truncated: no_mapping];[unknown+0x7f];leaf 1\n")
    yield "kernel only", not problems(good + "chain;do_exit_[k] 10\n")
    yield "kernel only, too often", problems(good + "chain;do_exit_[k] 100\n")
    in_libc = "chain;%s;outer;longjmp;[libc.so.6+0x87952] %%d\n" % START
    yield "in a library below a right chain", not problems(good + in_libc % 5)
    yield "too often in a library", problems(good + in_libc % 6)
    yield "in a library below a wrong chain", problems(good + in_libc.replace("outer", "middle") % 1)
    # Of the C library: no pattern knows the name.
    yield "a library's function by its name here", not problems(good + "chain;%s;outer;vwprintf 5\n" % START)
    yield "truncated in one", not problems(good + "chain;[truncated: no_rule];vwprintf;wctrans 4\n")
    yield "below a wrong chain", problems(good + "chain;%s;middle;vwprintf 1\n" % START)
    yield "above a right chain", problems(good + "chain;%s;vwprintf;outer;middle;leaf 1\n" % START)
    yield "another workload's function", problems(good + "chain;%s;outer;compare 1\n" % START)
    start = "chain;_start;__libc_start_main;[ld-linux-x86-64.so.2+0x12309];[ld-linux-x86-64.so.2+0xff0d] 1\n"
    yield "in the loader before main", not problems(good + start)
    yield "in the C++ library", not problems(good + "chain;%s;outer;std::logic_error::what() const 5\n" % START)
    yield "a stub below a library's function", not problems(good + "chain;%s;outer;vwprintf;[chain+0x1010] 1\n" % START)
    yield "a stub below a workload's", problems(good + "chain;%s;outer;middle;[chain+0x1010] 1\n" % START)
    yield "a stub with a callee", problems(good + "chain;%s;vwprintf;[chain+0x1010];vwprintf 1\n" % START)
    yield "a library between its frames", problems(good + CHAIN.replace("middle", "[libc.so.6+0x1]") + " 1\n")
    yield "two chains, one missing", problems("jumpback;%s;jumps;after_jump;leaf 900\n" % START, "jumpback")
    handler = "[libc.so.6+0x1];on_tick;handler_middle;handler_leaf"
    ticks = "".join("sigasync;%s;outer;middle;%s 400\n" % (START, leaf) for leaf in ("leaf", handler))
    tick = "sigasync;%s%%s;%s 1\n" % (START, handler)
    yield "ticks", not problems(ticks, "sigasync")
    for where in ("", ";__setitimer", ";outer", ";_exit", ";work_left;clock_gettime;[vdso+0x1]"):
        yield "a tick in main%s" % where, not problems(ticks + tick % where, "sigasync")
    for where in (";leaf", ";outer;leaf", ";nonsense", ";" + handler):
        yield "no tick in main%s" % where, problems(ticks + tick % where, "sigasync")
    yield "a handler without its end", problems(ticks + tick.replace("handler_middle;", "") % ";outer", "sigasync")
    cut = "sigasync;[truncated: no_rule];%s;" + handler + " 1\n"
    yield "truncated, with a tick", not problems(ticks + cut % "outer;middle", "sigasync")
    yield "truncated, with a tick in nothing", problems(ticks + cut % "middle;outer", "sigasync")
    deep = "deep;%s%s;leaf 500\n" % (START, ";recurse" * 900)
    yield "900 frames", not problems(deep, "deep")
    yield "899 frames", problems(deep.replace(";recurse", "", 1), "deep")
    yield "901 frames", problems(deep.replace(";recurse", ";recurse;recurse", 1), "deep")
    yield "the end of 900 frames", not problems(
        deep + "deep;[truncated: max_frames]%s;leaf 2\n" % (";recurse" * 120), "deep"
    )
    yield "compat tasks", not problems("compat32;[truncated: compat_task] 500\n", "compat32")
    yield "compat tasks with invented frames", problems("compat32;[truncated: compat_task];main 500\n", "compat32")
    static = "chain.static;_start;__libc_start_main;__libc_start_call_main;main;outer;middle;leaf 500\n"
    yield "the static flavour", not problems(static, flavour="static", file="chain.static")
    yield "the wrong flavour", problems(static, flavour="musl", file="chain.static")


def files():
    flavours = {}
    for path in sorted(glob.glob(os.path.join(WORKLOADS, "*.expect"))):
        flavours[os.path.splitext(os.path.basename(path))[0]] = {"glibc"}
    del flavours["chain_strip"]  # wants its twin
    flavours["chain"] |= {"musl", "musl_dyn"}
    for entry in static_list():
        flavours[entry.expect].add(entry.flavour)
    suffixes = set()  # patterns that these can be matched by
    for name, flavour in sorted((n, f) for n in flavours for f in flavours[n]):
        e = expectation(name, flavour=flavour)
        # Every pattern is one that suffixes can be matched by, and accepts no nonsense.
        new = {p[3] for p in e.need + e.may} - suffixes
        for pattern in new:
            SuffixMatcher(pattern)
        suffixes |= new
        stacks = (START + ";_ZN4work4leafEv", START + ";_RNvC4work4leaf", "main", "nonsense", "_start;main;main", "[truncated]", "outer;outer")
        yield "%s.expect, %s" % (name, flavour), not any(e.match(t) is not None for t in stacks)


def main():
    number = failed = 0
    for group in (lines, suffixes, verdicts, files):
        for name, ok in group():
            number += 1
            failed += not ok
            print("%s %d - %s" % ("ok" if ok else "not ok", number, name))
    print("1..%d" % number)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
