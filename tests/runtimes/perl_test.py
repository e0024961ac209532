#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Perl programs that know their chains by caller() (perl/cases.pl): exact names, files and lines, in the right order, with
the native frames between them.

    perl_test.py [--zoo 5.36] [--sonde PROGRAM] [--only REGEX]

SONDE_PERLS, paths with colons between, restricts the perls. docs/perl.md says what is shown.
"""
import contextlib
import functools
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import runtimes
from python_test import PythonTally as EarlyTally
from python_test import is_first, recorded, settled_stacks, started
from runtimes import stack_of
from folded import shorten
from tap import Skip

CASES = os.path.join(runtimes.HERE, "perl", "cases.pl")
SECONDS = float(os.environ.get("SONDE_SECONDS", "1.5"))  # of CPU, of all programs of a recording

# What the programs of one recording do at the same time.
TOGETHER = (os.environ.get("SONDE_SCENARIOS") or "plain trying recursion deep method closure eval_block eval_text sort_block sort_sub sort_call sort_eval sort_in_sort block block_eval tied tied_xs tied_block tied_eval "
            "destroy destroy_end overloaded overloaded_text autoload signal warning dying going umlaut lexical pattern pattern_code "
            "map_grep lvalues frozen dumped compiled required hooked used forked line_file deferred defer_sort defer_nested finally branches in_branch threads " + "signal_late" * (platform.machine() == "x86_64")).split()
SINCE = {"trying": 34, "deferred": 36, "defer_sort": 36, "defer_nested": 36, "finally": 36}

# Functions that only implement a Perl call: their frames are left out.
FOLDED = re.compile(r"Perl_runops_\w+|(S|Perl)_docatch")
# Blocks that caller() does not tell: what is in them is in the sub around them.
BLOCKS = ("(sort block)", "(pattern block)", "(defer block)", "(finally block)")


class Perl:
    """An interpreter: where it is, which one."""

    def __init__(self, path):
        self.path = path
        text = subprocess.run([path, "-MConfig", "-e", "print \"$] \", $Config{usethreads} ? 1 : 0"], capture_output=True, text=True,
                              check=True).stdout.split()
        self.minor = int(text[0].split(".")[1][:3])
        self.threaded = text[1] == "1"
        self.name = "perl-5.%d%s" % (self.minor, "" if self.threaded else "-unthreaded")

    def cases(self, names):
        return [c for c in names if (self.threaded or c != "threads") and self.minor >= SINCE.get(c, 0)]


def perls(paths=None):
    paths = paths or (os.environ.get("SONDE_PERLS") or "/usr/bin/perl").split(":")
    found = []
    for path in paths:
        with contextlib.suppress(OSError, subprocess.CalledProcessError, ValueError, IndexError):
            found.append(Perl(path))
    return found


# --- what a stack must be ---


def chain_text(chain):
    return " ; ".join("%s (%s:%s)" % tuple(c) for c in chain)


def without_blocks(found):
    """As caller() has it: a sub is where its block is."""
    chain = []
    for name, file, line in found:
        if name in BLOCKS and chain:
            chain[-1] = (chain[-1][0], file, line)
        else:
            chain.append((name, file, line))
    return chain


def wrong_chain(truth, found):
    """What is wrong with Perl frames (name, file, line), outermost first, or None."""
    want, (low, high) = [tuple(c) for c in truth["chain"]], truth["lines"]
    inside = without_blocks(found)
    if len(inside) >= len(want) and inside[:len(want) - 1] == want[:-1] and inside[len(want) - 1][:2] == want[-1][:2]:
        # Telling it, the leaf calls others; back from that, it is in the line of that call for a moment.
        line, beyond = inside[len(want) - 1][2], [f[0] for f in inside[len(want):]]
        if beyond[0] in ("main::say_truth", "main::ready") if beyond else low - 1 <= line <= high or line in (want[-1][2], truth.get("condition")):
            return None
    return "%s\n     not %s in line %d to %d" % (chain_text(found), chain_text(want), low, high)


def wrong_natives(truth, frames, name, is_perl):
    """What is wrong with native frames around and between: `name` and `is_perl` of a frame."""
    folded = [name(f) for f in frames if not is_perl(f) and FOLDED.fullmatch(name(f))]
    if folded:
        return "interpreter frames: %s" % " ".join(folded)
    if not is_first(frames[0], name(frames[0])):
        return "it begins with %s" % name(frames[0])
    for inner, pattern in truth["natives"].items():
        at = max((i for i, f in enumerate(frames) if is_perl(f) and name(f) == inner), default=None)
        if at is None:
            return "no frame %s" % inner
        between = []
        while at and not is_perl(frames[at - 1]):
            at -= 1
            between.append(name(frames[at]))
        if not any(re.search(pattern, n) for n in between):
            return "no %s before %s, but %s" % (pattern, inner, between)
    return None


def judge(truth, stack):
    is_perl = lambda f: f.runtime == "perl"
    found = [(f.name, f.file, f.line) for f in stack.user if is_perl(f)]
    wrong = wrong_chain(truth, found) or wrong_natives(truth, stack.user, lambda f: f.name, is_perl)
    if wrong:
        wrong += "\n     all: " + " ; ".join("%s(%s)" % (f.name, os.path.basename(f.file)) for f in stack.user)
    return wrong


def wrong_thread(truth, thread):
    """What is wrong with a thread of `sonde stack` or `sonde core`, or None; and its Perl frames."""
    is_perl = lambda f: f["kind"] == "perl"
    frames = [f for f in thread["frames"][::-1] if f["kind"] != "kernel"]
    found = [(f["function"], f["file"] or "[perl]", f["line"] or 0) for f in frames if is_perl(f)]
    return wrong_chain(truth, found) or wrong_natives(truth, frames, lambda f: f["function"] or "", is_perl), found


def in_condition(truth, stack):
    """Is the leaf in the line of its condition?"""
    perl = [f for f in stack.user if f.runtime == "perl"]
    return bool(perl) and perl[-1].line == truth.get("condition")


def tally_truths(recording, programs, least=10):
    """Problems and a note of a recording of programs."""
    problems, notes = list(recording.problems), []
    for truth in (t for p in programs for t in p.truths):
        t, nr = EarlyTally(truth["comm"]), 0
        for stack in recording.stacks or []:
            if stack.comm == truth["comm"]:
                t.take(stack, functools.partial(judge, truth))
                nr += stack.count * in_condition(truth, stack)
        problems += t.problems(least)
        if nr > max(1, t.samples // 10):
            problems.append("%s: %d of %d samples are in line %d, where they are wrong but for a moment" % (t.name, nr, t.samples, truth["condition"]))
        notes.append(t.summary())
    return problems, ", ".join(notes)


# --- tests ---


def test_chains(perl, setup):
    """All cases at once; sonde comes long after they began."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[perl.path, CASES, c] for c in perl.cases(TOGETHER)])
        return tally_truths(recorded(setup, programs, SECONDS), programs)


def test_stack(perl, setup):
    """`sonde stack` of the same."""
    problems, nr = [], 0
    with contextlib.ExitStack() as stack:
        for program in started(stack, [[perl.path, CASES, c] for c in perl.cases(["plain", "deep", "sort_in_sort", "tied_eval"])]):
            threads = stack_of(setup, program.pid)
            for truth in program.truths:
                mine = [t for t in threads.values() if t["name"] == truth["comm"]]
                if len(mine) != 1 or not mine[0]["complete"]:
                    problems.append("%s: %s" % (truth["comm"], shorten(str(mine), 500)))
                    continue
                wrong, found = wrong_thread(truth, mine[0])
                problems += ["%s: %s" % (truth["comm"], shorten(wrong, 1500))] if wrong else []
                nr += len(found)
    return problems, "%d frames" % nr


# Of perl/busy.pl: who calls a sub, and native functions that are between the two, if there are any.
BUSY = {
    "main::round": (("(main)",), None),
    "main::fib": (("main::round", "main::fib"), None),
    "main::sorts": (("main::round",), None),
    "main::finds": (("main::round",), None),
    "main::ties": (("main::round",), None),
    "main::objects": (("main::round",), None),
    "main::evals": (("main::round",), None),
    "main::patterns": (("main::round",), None),
    "main::by_number": (("main::sorts",), "Perl_sortsv_flags"),
    "main::by_small": (("main::sorts",), "Perl_sortsv_flags"),
    "(sort block)": (("main::sorts",), "Perl_sortsv_flags"),
    "(pattern block)": (("main::patterns",), "Perl_regexec_flags"),
    "main::__ANON__": (("main::finds",), "."),
    "Tie::TIESCALAR": (("main::ties",), "Perl_call_sv"),
    "Tie::FETCH": (("main::ties",), "Perl_call_sv"),
    "Adds::plus": (("main::objects",), "Perl_amagic_call"),
    "Dies::DESTROY": (("(eval)",), None),
    "(eval)": (("main::evals", "main::objects"), None),
    "main::small": (("main::by_small", "(sort block)", "(pattern block)", "main::__ANON__", "Tie::FETCH", "Adds::plus", "Dies::DESTROY",
                     "(eval)"), None),
}


# Who may call whom in perl/leaving.pl.
LEAVING = {
    **{"main::" + name: (("main::round",), None)
       for name in "divides loops jumps target catches fetches cleanups texts autos replaces hooks lvalues nested dies".split()},
    "main::round": (("(main)",), None),
    "main::even": (("main::round", "main::odd"), None),
    "main::odd": (("main::even",), None),
    "main::deep": (("main::round", "(eval)"), None),
    "main::quotient": (("(eval)",), None),
    "main::gone": (("(eval)", "main::gone"), None),
    "main::hook": (("(eval)",), "Perl_call_sv"),
    "main::twice": (("main::replaces",), None),
    "main::held": (("main::lvalues",), None),
    "main::__ANON__": (("main::catches", "(eval)"), "."),
    "(sort block)": (("main::nested", "(sort block)"), "Perl_sortsv_flags"),
    "(eval)": (("main::divides", "main::catches", "main::fetches", "main::cleanups", "main::hooks", "main::deep", "main::dies"), None),
    "Throws::TIESCALAR": (("main::fetches",), "Perl_call_sv"),
    "Throws::FETCH": (("(eval)",), "Perl_call_sv"),
    "Fails::DESTROY": (("(eval)",), None),
    "Text::text": (("main::texts",), "Perl_amagic_call"),
    "Auto::AUTOLOAD": (("main::autos",), None),
    "main::leaf": (("main::loops", "main::target", "main::__ANON__", "(sort block)", "main::deep"), None),
}

# Who may call whom in perl/defers.pl.
DEFERRED = "deferred twice nested dies sorts finds compares objects evals".split()
DEFERS = {
    **{"main::" + name: (("main::round",), None) for name in [*DEFERRED, "finals"]},
    "main::round": (("(main)",), None),
    "(defer block)": (("main::deferred", "main::twice", "main::nested", "(eval)", "(sort block)", "main::__ANON__", "main::compares", "main::objects",
                       # As the block has ended: its cleaning up.
                       "main::sorts", "main::finds", "(defer block)",
                       "main::evals"), "Perl_leave_scope"),
    "(finally block)": (("main::finals",), "Perl_leave_scope"),
    "(sort block)": (("main::sorts", "(defer block)"), "Perl_sortsv_flags"),
    "main::__ANON__": (("main::finds",), "."),
    "Object::DESTROY": (("(eval)",), None),
    "(eval)": (("main::dies", "(defer block)", "main::objects"), None),
    "main::small": (("(defer block)", "(finally block)", "main::twice", "main::finals", "(sort block)", "(eval)", "Object::DESTROY"), None),
}

# Who may call whom in perl/closures.pl.
CLOSURES = {
    "main::round": (("(main)",), None),
    **{name: (("main::round",), None) for name in ("Each::each", "Made::make", "Deep::deep", "Sorts::sorts", "main::given", "main::inner")},
    "main::__ANON__": (("Each::each",), None),
    "Made::__ANON__": (("main::round",), None),
    "Deep::__ANON__": (("Deep::deep", "Deep::__ANON__"), None),
    "Sorts::__ANON__": (("Sorts::sorts",), "."),
    "Given::name": (("main::given",), None),
    "lexical": (("main::inner",), None),
    "main::small": (("main::__ANON__", "Made::__ANON__", "Deep::__ANON__", "Sorts::__ANON__", "Given::name", "lexical"), None),
}

# Program, its subs, where blocks without a name are.
BUSY_PROGRAMS = {
    "busy": (BUSY, {"(sort block)": "main::sorts", "(pattern block)": "main::patterns", "main::__ANON__": "main::finds"}),
    "leaving": (LEAVING, {"(sort block)": "main::nested", "main::__ANON__": "main::catches"}),
    "defers": (DEFERS, {}),
    "closures": (CLOSURES, {"main::__ANON__": "main::round", "Made::__ANON__": "Made::make", "Deep::__ANON__": "Deep::deep", "Sorts::__ANON__": "Sorts::sorts",
                            "Given::name": "main::given", "lexical": "main::inner"}),
}


def busy_path(program):
    return os.path.join(runtimes.HERE, "perl", program + ".pl")


def busy_lines(program):
    """Sub -> its lines in such a program: each is in one."""
    with open(busy_path(program), encoding="utf-8") as f:
        lines = f.read().split("\n")
    found = {}
    for number, line in enumerate(lines, 1):
        package = re.match(r"package (\w+) ", line)
        for name in re.findall(r"sub (\w+) ", line):
            found["%s::%s" % (package[1] if package else "main", name)] = number
    found["(main)"] = len(lines) - 1
    for block, around in BUSY_PROGRAMS[program][1].items():
        found[block] = found[around]
    return found


def busy_wrong(subs, lines, no_line, stack):
    """What is wrong with a stack of such a program, at whatever instruction."""
    frames = stack.user
    at = [i for i, f in enumerate(frames) if f.runtime == "perl"]
    text = "\n     all: " + " ; ".join("%s:%d" % (f.name, f.line) for f in frames)
    if not at:
        return None if not any(f.name == "perl_run" for f in frames) else "no Perl frame" + text
    if frames[at[0]].name != "(main)":
        return "it begins with %s%s" % (frames[at[0]].name, text)
    for caller, i in zip(at, at[1:]):
        callers, native = subs.get(frames[i].name, ((), None))
        if frames[caller].name not in callers:
            return "%s called by %s%s" % (frames[i].name, frames[caller].name, text)
        between = [f.name for f in frames[caller + 1:i]]
        if native and not any(re.search(native, n) for n in between):
            return "no %s before %s%s" % (native, frames[i].name, text)
        if not native and between and frames[i].name not in ("(eval)", "Dies::DESTROY", "Fails::DESTROY", "Object::DESTROY"):
            return "%s before %s%s" % (between, frames[i].name, text)
    for i in at:
        want = lines.get(frames[i].name)
        if want is None:  # an eval: where it is called
            want = next(lines[frames[k].name] for k in at[at.index(i)::-1] if frames[k].name in lines)
        # The innermost one may have no line yet, or no more; so may what is around a defer {} (docs/perl.md).
        if not frames[i].line and (i == at[-1] or frames[at[at.index(i) + 1]].name == "(defer block)"):
            no_line[0] += stack.count
        elif frames[i].line != want:
            return "%s in line %d%s" % (frames[i].name, frames[i].line, text)
    return None


def test_busy(program, perl, setup):
    """Subs that are entered and left all the time: right at every instruction, or marked."""
    if program == "defers" and perl.minor < 36:
        raise Skip("no defer {}")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[perl.path, busy_path(program)]])
        recording = recorded(setup, programs, 2, 4999)
    t, lines, no_line, marked = EarlyTally(program), busy_lines(program), [0], 0
    for s in recording.stacks or []:
        if any(f.name in ("[perl: mismatch]", "[perl: unreadable]") for f in s.user):
            marked += s.count
        else:
            t.take(s, functools.partial(busy_wrong, BUSY_PROGRAMS[program][0], lines, no_line))
    wrong = sum(t.wrong.values())
    problems = list(recording.problems)
    # Before 5.32 little tells contexts that are being made: docs/perl.md.
    if perl.minor < 32 and wrong <= t.samples / 1000:
        t.wrong.clear()
    # Some single instruction of another compiler's order.
    if wrong <= t.samples / 2000:
        t.wrong.clear()
    if marked > t.samples / (100 if perl.minor >= 32 else 50):
        problems.append("%d samples of %d are marked" % (marked, t.samples))
    return problems + t.problems(1000), "%s, %d wrong, %d marked, %d without a line" % (t.summary(), wrong, marked, no_line[0])


def test_cloning(perl, setup):
    """CLONE methods of a thread that is being created, and who creates it: two interpreters."""
    if not perl.threaded:
        raise Skip("no threads")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[perl.path, CASES, "cloning"]])
        return tally_truths(recorded(setup, programs, 0.5), programs)


def test_modules_ops(perl, setup):
    """Under Devel::NYTProf, which has functions of its own in place of many ops': loops run what is in another library."""
    if subprocess.run([perl.path, "-e", "exit !grep { -e qq($_/Devel/NYTProf.pm) } @INC"], check=False).returncode:
        raise Skip("no Devel::NYTProf")
    with contextlib.ExitStack() as stack:
        out = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "%d")
        programs = started(stack, [["env", "NYTPROF=file=" + out % i, perl.path, "-d:NYTProf", CASES, c]
                                   for i, c in enumerate(("plain", "deep", "method", "closure", "eval_block"))])
        return tally_truths(recorded(setup, programs, 1), programs)


# Who makes an interpreter, and takes it down: both run Perl code of that one, in the middle of their caller's. It may be gone
# before the names of its subs are read.
MAKERS = ("perl_clone", "perl_destruct")
MADE = ("Cloned::CLONE", "main::small", "(eval)", "Cloned::DESTROY", "[unknown]")


def creating_wrong(stack):
    """What is wrong with a stack of perl/cloning.pl: what makes or ends an interpreter is called by its sub, and calls the new one's."""
    makers = [i for i, f in enumerate(stack.user) if f.name in MAKERS]
    if not makers or not any(f.name == "perl_run" for f in stack.user):
        return None
    around = [f.name for f in stack.user[:makers[0]] if f.runtime == "perl"]
    inside = [f.name for f in stack.user[makers[0]:] if f.runtime == "perl"]
    if around == ["(main)", "main::outer", "main::creates"] and not set(inside) - set(MADE):
        return None
    return " ; ".join(f.name for f in stack.user)


def test_creating(perl, setup):
    """Threads created and joined all the time: nothing is missing while an interpreter is made or taken down."""
    if not perl.threaded:
        raise Skip("no threads")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[perl.path, busy_path("cloning")]])
        recording = recorded(setup, programs, 1, 4999)
    t, inside = EarlyTally("cloning"), 0
    for s in recording.stacks or []:
        t.take(s, creating_wrong)
        inside += s.count * any(f.name in MADE[:2] for f in s.user)
    problems = list(recording.problems) + t.problems(100)
    if not inside:
        problems.append("no CLONE method was seen")
    return problems, "%s, %d in CLONE methods" % (t.summary(), inside)


def test_churn(perl, setup):
    """Subs and evals made and dropped all the time: no stale name."""
    t, named, unknown = EarlyTally("churn"), 0, 0
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[perl.path, busy_path("churn")]])
        recording = recorded(setup, programs, 1, 4999)
    for s in recording.stacks or []:
        t.take(s, churn_wrong)
        unknown += s.count * any("unknown" in f.name for f in s.user if f.runtime == "perl")
        named += s.count * any(re.search(r"leaf_\d+$", f.name) for f in s.user)
    problems = list(recording.problems) + t.problems(500)
    if not named:
        problems.append("no sample in a generated sub has its name")
    return problems, "%d samples, %d in named generated subs, %d with unknown ones" % (t.samples, named, unknown)


def churn_wrong(stack):
    """What is wrong with a stack of perl/churn.pl: subs of one turn are of one number, in the file and line that tell it."""
    found = [f for f in stack.user if f.runtime == "perl"]
    turns = set()
    for f in found:
        m = re.fullmatch(r"(?:Made(\d+)|__ANON__)::(middle|leaf)_(\d+)", f.name)
        if m:
            turns |= {m[1] or m[3], m[3]}
            if f.line and (f.file, f.line) != ("made-%s" % m[3], 1 + int(m[3]) % 97 + (m[2] == "middle")):
                turns.add("%s:%d" % (f.file, f.line))
        elif f.name not in ("(main)", "(eval)", "main::turn", "main::small", "[unknown]", "[perl: unknown]", "[perl: mismatch]", "[perl: unreadable]"):
            turns |= {f.name, "?"}
    return None if len(turns) <= 1 else "%s\n     all: %s" % (turns, " ; ".join("%s:%s:%d" % (f.name, f.file, f.line) for f in stack.user))


def test_renamed(perl, setup):
    """A copy under another name."""
    with open(perl.path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            raise Skip("it runs in a root of its own")
    program = setup.file("worker-bee")
    shutil.copy(os.path.realpath(perl.path), program)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[program, CASES, c] for c in ("plain", "sort_block", "block_eval")])
        return tally_truths(recorded(setup, programs, 0.5), programs)


TESTS = (("chains", test_chains), *((p, functools.partial(test_busy, p)) for p in BUSY_PROGRAMS), ("churn", test_churn), ("cloning", test_cloning), ("creating", test_creating), ("modules-ops", test_modules_ops), ("stack", test_stack), ("renamed", test_renamed))


def arguments(parser):
    parser.add_argument("--zoo", metavar="VERSION", help="one of tests/zoo instead of this machine's")


def tests(_setup, args):
    for perl in perls([runtimes.from_zoo("perl", args.zoo)] if args.zoo else None):
        for name, test in TESTS:
            yield "%s-%s" % (perl.name, name), functools.partial(test, perl)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests, arguments, "perl"))
