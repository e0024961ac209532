#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks folded stacks against a workload's expectations (tests/workloads/NAME.expect).

As a module: parse_folded(), Expectation, Verdict. As a program:

    folded.py NAME.expect FILE.folded [--flavour glibc|static|musl|musl_dyn] [--file BINARY] [--comm COMM]

prints what is wrong and exits 1, or exits 0. docs/testing.md has the language of the .expect files.
"""
import argparse
import bisect
import collections
import functools
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import folded_text
from folded_text import FoldedError

try:
    import re._parser as sre_parse
except ImportError:  # before Python 3.11
    import sre_parse

TRUNCATED = re.compile(r"^\[truncated: ([a-z_]+)\]$")
NOT_KEPT = re.compile(r"^\[(native|kernel): not_kept\](_\[k\])?$")

KERNEL_ONLY = -(1 << 30)
"""The match of a stack without user frames: a process in exec or exit has none."""

IN_LIBRARY = KERNEL_ONLY + 1
"""The match of a stack that is right down to a function of the workload's, and in a library from there on. No list
of what a library calls is ever whole, so that a few are right."""

IN_HANDLER = KERNEL_ONLY + 2
"""The match of a stack that ends in a signal's handler, where something was interrupted that a pattern matches."""

IN_LIBRARY_PERCENT = 0.5
ANY_NAME = r"[\w.]+"
"""What a pattern has where a frame may be of any name."""

Stack = collections.namedtuple("Stack", "comm reason user kernel count")
"""One folded line: comm, why it is truncated (None: complete), user frames outermost first, kernel frames,
and how many samples."""


def parse_line(line):
    """A Stack out of one folded line."""
    comm, frames, count = folded_text.parse_line(line)
    reason = None
    if frames:
        m = TRUNCATED.match(frames[0])
        if m:
            reason = m.group(1)
            frames = frames[1:]
    if frames and NOT_KEPT.match(frames[-1]):
        reason = reason or "not_kept"
    nr_user = len(frames)
    while nr_user and frames[nr_user - 1].endswith("_[k]"):
        nr_user -= 1
    for f in frames[:nr_user]:
        if f.endswith("_[k]"):
            raise FoldedError("a kernel frame calls a user frame: %r" % line)
        if f.startswith("[truncated"):
            raise FoldedError("'truncated' is not outermost, or malformed: %r" % line)
    return Stack(comm, reason, tuple(frames[:nr_user]), tuple(frames[nr_user:]), count)


def parse_folded(text):
    return [parse_line(line) for line in text.splitlines() if line]


class SuffixMatcher:
    """Does a string match the end of some string that a regular expression matches? It must begin
    at a frame: at the beginning or behind a ';'. The expression becomes a nondeterministic automaton, when it is first asked: repeats
    give it thousands of states. A suffix may begin in the initial state or in any state that a ';' leads to."""

    def __init__(self, pattern):
        """Raises ValueError if the pattern uses what there are no states for."""
        self.parsed = sre_parse.parse(pattern)
        self._check(self.parsed)
        self.empty = collections.defaultdict(list)  # state -> states, consuming nothing
        self.moves = {}  # state -> (test, state)
        self.nr = 0
        self.first = self.last = None

    def _check(self, items):
        for op, arg in items:
            op = str(op)
            if op == "SUBPATTERN":
                self._check(arg[3])
            elif op == "BRANCH":
                for branch in arg[1]:
                    self._check(branch)
            elif op in ("MAX_REPEAT", "MIN_REPEAT"):
                self._check(arg[2])
            else:
                self._test(op, arg)

    def _state(self):
        self.nr += 1
        return self.nr - 1

    def _sequence(self, items):
        first = last = self._state()
        for op, arg in items:
            a, b = self._item(str(op), arg)
            self.empty[last].append(a)
            last = b
        return first, last

    def _item(self, op, arg):
        if op == "SUBPATTERN":
            return self._sequence(arg[3])
        if op == "BRANCH":
            a, b = self._state(), self._state()
            for branch in arg[1]:
                first, last = self._sequence(branch)
                self.empty[a].append(first)
                self.empty[last].append(b)
            return a, b
        if op in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(*arg)
        a, b = self._state(), self._state()
        self.moves[a] = (self._test(op, arg), b)
        return a, b

    def _repeat(self, low, high, items):
        first = last = self._state()
        end = self._state()
        for _ in range(low):
            a, b = self._sequence(items)
            self.empty[last].append(a)
            last = b
        if high == sre_parse.MAXREPEAT:
            a, b = self._sequence(items)
            self.empty[last] += [a, end]
            self.empty[b] += [a, end]
            return first, end
        self.empty[last].append(end)
        for _ in range(high - low):
            a, b = self._sequence(items)
            self.empty[last].append(a)
            self.empty[b].append(end)
            last = b
        return first, end

    @staticmethod
    def _test(op, arg):
        if op == "LITERAL":
            return lambda c: ord(c) == arg
        if op == "NOT_LITERAL":
            return lambda c: ord(c) != arg
        if op == "ANY":
            return lambda c: True
        if op != "IN":
            raise ValueError("a pattern uses %s, which suffixes cannot be matched by" % op)
        negated = str(arg[0][0]) == "NEGATE"
        ranges, word, digit = [], False, False
        for kind, what in arg[negated:]:
            if str(kind) == "LITERAL":
                ranges.append((what, what))
            elif str(kind) == "RANGE":
                ranges.append(what)
            elif str(kind) == "CATEGORY" and str(what) == "CATEGORY_WORD":
                word = True
            elif str(kind) == "CATEGORY" and str(what) == "CATEGORY_DIGIT":
                digit = True
            else:
                raise ValueError("a pattern uses %s %s" % (kind, what))

        def test(c):
            r = (
                any(a <= ord(c) <= b for a, b in ranges)
                or (word and (c.isalnum() or c == "_"))
                or (digit and c.isdigit())
            )
            return r != negated

        return test

    def _closure(self, states):
        todo, seen = list(states), set(states)
        while todo:
            for s in self.empty[todo.pop()]:
                if s not in seen:
                    seen.add(s)
                    todo.append(s)
        return seen

    def matches(self, suffix):
        if self.first is None:
            self.first, self.last = self._sequence(self.parsed)
        begin = {self.first} | {b for test, b in self.moves.values() if test(";")}
        states = self._closure(begin)
        for c in suffix:
            states = self._closure({self.moves[s][1] for s in states if s in self.moves and self.moves[s][0](c)})
            if not states:
                return False
        return self.last in states


def _lines_of(argv):
    try:
        return subprocess.run(argv, check=False, capture_output=True, text=True, errors="replace").stdout.splitlines()
    except OSError:
        return []


def _functions_of(path):
    """The names of a file's functions and of its debug file's, of an archive's members too."""
    found = set()
    ids = [re.search(r"Build ID: (\w\w)(\w+)", line) for line in _lines_of(["readelf", "-n", path])]
    debug = ["/usr/lib/debug/.build-id/%s/%s.debug" % m.groups() for m in ids if m and not path.endswith(".a")]
    for line in _lines_of(["readelf", "-W", "-s", path, *filter(os.path.exists, debug)]):
        fields = line.split()
        if len(fields) > 7 and fields[3] in ("FUNC", "IFUNC"):
            found.add(fields[7].split("@")[0])
    return found


LIBRARIES = ("libc.so.6", "ld-linux-x86-64.so.2", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libc.a", "libgcc.a", "libgcc_eh.a")
DEFINITION = re.compile(r"^(?:[\w*()]+[ \t]+)*\**(\w+)(?:\([^;\n]*|:)$", re.M)


@functools.lru_cache(maxsize=None)
def library_functions():
    """What this machine's libc and loader call their functions, where their symbols are installed: some thousand names
    that `lib` of tests/workloads/flavours need not know. None that a workload has a function of."""
    found, own = set(), set()
    for library in LIBRARIES:
        path = "".join(_lines_of(["gcc", "-print-file-name=" + library]))
        if os.path.exists(path):
            found |= _functions_of(os.path.realpath(path))
    for path in glob.glob("/usr/lib/*-linux-musl/libc.a"):
        found |= _functions_of(path)
    for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads", "*.*")):
        with open(path, encoding="utf-8") as f:
            own.update(DEFINITION.findall(f.read()))
    return found - own


class Symbols:
    """The functions of a file with symbols, to name what its stripped twin cannot."""

    def __init__(self, path):
        out = subprocess.run(["nm", "-S", "--defined-only", path], check=True, capture_output=True, text=True)
        self.functions = []
        for line in out.stdout.splitlines():
            f = line.split()
            if len(f) == 4 and f[2] in "tTwW":
                self.functions.append((int(f[0], 16), int(f[1], 16), f[3]))
        self.functions.sort()

    def name(self, addr):
        i = bisect.bisect_right(self.functions, (addr, 1 << 62, "")) - 1
        if i >= 0 and addr < self.functions[i][0] + self.functions[i][1]:
            return self.functions[i][2]
        return None


class Expectation:
    """A parsed .expect file: `need` and `may` are lists of (percent, pattern text, compiled pattern)."""

    def __init__(self, path, flavour="glibc", file=None, directory=None, file_pattern=None):
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.file = file or self.name
        self.directory = directory
        self.total, self.complete = 95.0, 99.5
        self.need, self.may = [], []
        self.truncated = None  # (reason, percent): the stacks cannot be walked, and say so
        self.symbols = None
        self.signal = None  # in what any other stack may end: a handler of a signal that comes at any time
        self.alone = False  # without the patterns that every workload may match
        self.macros = self._read_flavour(os.path.join(os.path.dirname(path), "flavours"), flavour)
        self.macros["file"] = file_pattern or re.escape(self.file)
        with open(path, encoding="utf-8") as f:
            for line in f:
                self._read_line(line.strip())
        if not self.alone:
            self.may += [(0, text) for text in self.macros["every"].split("\n") if text]
        self.need = [self._compile(*p) for p in self.need]
        self.may = [self._compile(*p) for p in self.may]
        self._library = re.compile(self._expand("{library}"))
        self._stub = re.compile(self._expand("{stub}"))
        self._suffixes = {}
        self._verdicts, self._ends = {}, {}

    @staticmethod
    def _read_flavour(path, flavour):
        macros, section, found = {"every": ""}, "all", False
        with open(path, encoding="utf-8") as f:
            for line in f:
                line = line.strip()
                if line.startswith("[") and line.endswith("]") and " " not in line:
                    section = line[1:-1]
                    found |= section == flavour
                elif line and not line.startswith("#") and section in ("all", flavour):
                    name, value = line.split(" = ", 1)
                    macros[name] = macros["every"] + "\n" + value if name == "every" else value
        if not found:
            raise ValueError("%s has no flavour %s" % (path, flavour))
        return macros

    def _expand(self, text):
        for _ in range(20):
            new = re.sub(
                r"\{([a-z_]+)(?::([^{}]*))?\}",
                lambda m: self.macros[m.group(1)].replace("ARG", m.group(2) or ""),
                text,
            )
            if new == text:
                return text
            text = new
        raise ValueError("macros without end: %s" % text)

    def _compile(self, percent, text):
        expanded = self._expand(text)
        return percent, text, re.compile(expanded), expanded

    def _read_line(self, line):
        word, _, rest = line.partition(" ")
        if not line or line.startswith("#"):
            return
        if re.match(r"[a-z_]+ = ", line):
            self.macros[word] = rest[2:]
        elif word == "need":
            percent, _, text = rest.strip().partition(" ")
            self.need.append((float(percent), text.strip()))
        elif word == "may":
            self.may.append((0, rest.strip()))
        elif word in ("total", "complete"):
            setattr(self, word, float(rest))
        elif word == "truncated":
            reason, percent = rest.split()
            self.truncated = (reason, float(percent))
        elif word == "alone":
            self.alone = True
        elif word == "signal":
            self.signal = re.compile("(.*?);" + self._expand(rest.strip()))
        elif word == "symbols":
            self.symbols = Symbols(os.path.join(self.directory or ".", rest.strip()))
        else:
            raise ValueError("%s.expect: what is %r?" % (self.name, line))

    def only_complete(self, percent):
        """That many percent of the stacks are complete; the chains' shares are of these."""
        self.total *= percent / self.complete
        self.need = [(share * percent / self.complete, *rest) for share, *rest in self.need]
        self.complete = percent

    def named(self, user):
        """The frames as text, those of a stripped file named by its twin."""
        if self.symbols:
            unnamed = re.compile(r"^\[%s\+0x([0-9a-f]+)\]$" % re.escape(self.file))
            named = []
            for frame in user:
                m = unnamed.match(frame)
                named.append((m and self.symbols.name(int(m.group(1), 16))) or frame)
            user = named
        return ";".join(user)

    def match(self, text):
        """The first pattern that the whole stack matches: its index in need, -1 - its index in may, or None."""
        if text not in self._verdicts:
            index = KERNEL_ONLY if text == "" else self._match_whole(text)
            interrupted = self._interrupted(text)
            if index is None and interrupted and self._match_whole(interrupted) is not None:
                index = IN_HANDLER
            self._verdicts[text] = index
        return self._verdicts[text]

    def _interrupted(self, text):
        """What the signal interrupted, if the stack ends in its handler."""
        m = self.signal and self.signal.fullmatch(text)
        return m.group(1) if m else None

    def _match_whole(self, text):
        index = self._match(text)
        if index is not None:
            return index
        text = self._libraries_called_so(text)
        index = self._match(text)
        if index is not None:
            return index
        # The stub through which a library calls its own ifuncs has no symbol, and calls nothing.
        above, _, leaf = text.rpartition(";")
        if self._stub.fullmatch(leaf) and self._library.fullmatch(above.rpartition(";")[2]):
            text = above
        return IN_LIBRARY if self._match(text) is not None or self._match_above_library(text) else None

    def _libraries_called_so(self, text):
        """The stack with the functions of libraries by a name that `lib` matches, whatever it is here."""
        frames = text.split(";")
        return ";".join("_library" if not self._library.fullmatch(f) and f in library_functions() else f for f in frames)

    def _match_above_library(self, text):
        """Whether a stack's end may be taken off, library function by library function, until a pattern matches."""
        while True:
            text, _, leaf = text.rpartition(";")
            if not text or not self._library.fullmatch(leaf):
                return False
            if self._match(text) is not None:
                return True

    def _match(self, text):
        for i, p in enumerate(self.need):
            if p[2].fullmatch(text):
                return i
        for i, p in enumerate(self.may):
            if p[2].fullmatch(text):
                return -1 - i
        return None

    def match_suffix(self, text):
        """Whether the stack is the end of one that a pattern matches."""
        if text not in self._ends:
            self._ends[text] = self._match_suffix(text) or self._match_suffix(self._libraries_called_so(text))
        return self._ends[text]

    def _match_suffix(self, text):
        interrupted = self._interrupted(text)
        if interrupted and self._match_suffix(interrupted):
            return True
        for p in self.need + self.may:
            # The end of a pattern that takes any name would be the end of any stack.
            if ANY_NAME in p[1]:
                continue
            if p[3] not in self._suffixes:
                self._suffixes[p[3]] = SuffixMatcher(p[3])
            if self._suffixes[p[3]].matches(text):
                return True
        # Where the mapping of an address is not known, nothing can be said of it; as a caller it is an invention.
        return re.fullmatch(r"(\[unknown\+0x[0-9a-f]+\])?", text) is not None


class Verdict:
    """What is wrong with the stacks of one comm: `problems` is empty if all is well."""

    def __init__(self, expectation, stacks, comm, least_samples=100):
        self.problems = []
        self.samples = self.complete = 0
        self.reasons = collections.Counter()
        self.hits = collections.Counter()
        wrong = collections.Counter()
        for s in stacks:
            if s.comm == comm:
                self._take(expectation, s, wrong)
        self._judge(expectation, wrong, least_samples, comm)

    def _take(self, expectation, s, wrong):
        text = expectation.named(s.user)
        self.samples += s.count
        if s.reason:
            self.reasons[s.reason] += s.count
            if not expectation.match_suffix(text):
                wrong["truncated (%s), and wrong: %s" % (s.reason, shorten(text))] += s.count
            return
        self.complete += s.count
        index = expectation.match(text)
        if index is None:
            wrong["wrong: %s" % shorten(text)] += s.count
        else:
            self.hits[index] += s.count

    def _judge(self, e, wrong, least_samples, comm):
        if self.samples < least_samples:
            self.problems.append("%d samples of %s, expected at least %d" % (self.samples, comm, least_samples))
        if not self.samples:
            return
        nr_wrong = sum(wrong.values())
        if nr_wrong:
            self.problems.append("%d of %d samples have wrong frames" % (nr_wrong, self.samples))
            self.problems += ["  %d x %s" % (n, text) for text, n in wrong.most_common(5)]
        if e.truncated:
            self._at_least(e.truncated[1], self.reasons[e.truncated[0]], "truncated as %s" % e.truncated[0])
            return
        self._at_least(e.complete, self.complete, "complete")
        if self.hits[IN_LIBRARY] > max(2, self.samples * IN_LIBRARY_PERCENT / 100):
            self.problems.append("%d samples are in a library where none is expected" % self.hits[IN_LIBRARY])
        self._at_least(e.total, sum(n for i, n in self.hits.items() if i >= 0), "in the chains that are needed")
        for i, p in enumerate(e.need):
            self._at_least(p[0], self.hits[i], "in %s" % p[1])
        if not self.problems:
            return
        if self.complete < self.samples:
            self.problems.append("  truncated: %s" % dict(self.reasons))
        rare = collections.Counter({e.may[-1 - i][1]: n for i, n in self.hits.items() if -len(e.may) <= i < 0})
        self.problems += ["  %d in %s" % (n, text) for text, n in rare.most_common(3)]

    def _at_least(self, percent, count, what):
        if count * 100 < percent * self.samples:
            self.problems.append(
                "%d of %d samples (%.2f %%) %s, expected %g %%"
                % (count, self.samples, 100 * count / self.samples, what, percent)
            )

    def summary(self):
        return "%d samples, %d complete" % (self.samples, self.complete)


def shorten(text, limit=700):
    return text if len(text) <= limit else text[: limit // 2] + " ... " + text[-limit // 2 :]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("expect")
    parser.add_argument("folded")
    parser.add_argument("--flavour", default="glibc")
    parser.add_argument("--file", help="the program's file name (default: the name of the .expect file)")
    parser.add_argument("--comm", help="default: the file name, as far as a comm goes")
    parser.add_argument("--least", type=int, default=100, help="samples to demand")
    args = parser.parse_args()
    e = Expectation(args.expect, args.flavour, args.file, os.path.dirname(args.folded))
    with open(args.folded, encoding="utf-8", errors="replace") as f:
        stacks = parse_folded(f.read())
    verdict = Verdict(e, stacks, args.comm or e.file[:15], args.least)
    print(verdict.summary())
    for problem in verdict.problems:
        print(problem)
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
