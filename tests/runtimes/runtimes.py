# SPDX-License-Identifier: Apache-2.0
"""The base of the tests of runtimes: programs that say which chains they are in, and recordings of them.

A program builds the chain of a case, finds out in its leaf what the runtime itself thinks the chain is, and prints that
as a line of JSON, its "truth":

    {"comm": "py-plain", "chain": [[NAME, FILE, LINE], ... outermost first], ...}

then {"ready": PID}, and stays in the leaf until it is killed. The comm is the thread's own (at most 15 bytes), by which
its samples are found, so that one recording serves many programs. What else a truth holds is between a program and its
test.
"""
import argparse
import collections
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "lib")]
import sonde
import guard
import tap
from folded import shorten

# Samples are what is judged, CPU time is what they cost.
FREQUENCY = int(os.environ.get("SONDE_FREQUENCY", "1997"))


class Setup(sonde.Setup):
    """The program under test, a folder for files, and what the command line asks for."""

    def __init__(self, program, scratch, tracers):
        super().__init__(program, None, scratch, tracers)

    def file(self, name):
        return os.path.join(self.scratch, name)


class Program:
    """A program that tells its truths and stays there; killed, with all of its group, at the end of a `with`, or of the test."""

    def __init__(self, argv, env=None, cwd=None, nice=0):
        self.argv = ["nice", "-n", str(nice)] * bool(nice) + [str(a) for a in argv]
        self.truths = []
        self.pid = None
        self._rest = b""
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd,
                                        env={**os.environ, **(env or {})}, start_new_session=True)
        self.guard = guard.Guard(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdout.close()
        self.guard.end()
        self.go()

    def go(self):
        """Ends its standard input, which is how a program is told, if it cares, that it may use the CPU from now on."""
        self.process.stdin.close()

    def pause(self, number=signal.SIGSTOP):
        """It is there still, for who wants to read it, but takes no CPU from what goes on now."""
        self.guard.send(number)

    def resume(self):
        self.pause(signal.SIGCONT)

    def line(self, seconds=300):
        """The next line of its output as JSON; None at the end of it."""
        seconds *= sonde.PATIENCE
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("%s said nothing for %d s" % (shorten(" ".join(self.argv)), seconds))
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line.decode("utf-8"))

    def said(self, word, seconds=600):
        """Waits until it says no truth, but this."""
        said = self.line(seconds)
        if said is None or word not in said:
            raise AssertionError("%s said %s, not '%s'" % (shorten(" ".join(self.argv)), said, word))

    def until_ready(self, seconds=300):
        """Reads truths until it says that it is ready; self.pid is the process that said so."""
        while self.pid is None:
            said = self.line(seconds)
            if said is None:
                raise AssertionError("%s ended: status %s" % (shorten(" ".join(self.argv)), self.process.wait()))
            if "ready" in said:
                self.pid = said["ready"]
            else:
                self.truths.append(said)
        return self


class Recorder(sonde.Recorder):
    """A running `sonde record` into a folded file."""

    def __init__(self, setup, options=(), command=(), frequency=FREQUENCY, stdout=subprocess.DEVNULL, env=None, before=()):
        self.output, self.stats, self.errors = setup.path(".folded"), setup.path(".json"), setup.path(".err")
        self.frequency = frequency
        written = ["-f", "folded", "-o", self.output, "--stats", self.stats]
        self.argv = [*before, *setup.record_argv(frequency, [*written, *options])]
        if command:
            self.argv += ["--", *map(str, command)]
        for path in (self.output, self.stats):
            os.unlink(path)
        with open(self.errors, "wb") as err:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=err,
                                            env={**os.environ, **(env or {})})


# What perf's text tells of a frame beyond its name: the line, if known, else 0; its file (source file of a script's
# function, else what was mapped); the runtime that it is of: "python", "kernel", "native"; whether it is inlined; its address in memory.
Frame = collections.namedtuple("Frame", "name line file runtime inlined address", defaults=(0,))
FrameStack = collections.namedtuple("FrameStack", "comm reason user kernel count tid")
"""Like a folded Stack, of Frames."""


class FrameText:
    """Reads what `sonde record -f perf --lines` writes: each frame with its kind, file and line."""

    def __init__(self, text):
        self.sources = {m[1]: m[0] for m in re.findall(r"^# sonde functions of (\S+) : (.*)$", text, re.M)}
        self.frames = {}
        counts = collections.Counter()
        for block in text[re.match(r"(#.*\n)*", text).end():].split("\n\n"):
            head, _, lines = block.lstrip("\n").partition("\n")
            if head:
                # The comm may have anything in it but what follows it here.
                comm, tid = re.match(r"(.*?) +\d+/(\d+) +\[\d+\] ", head).groups()
                counts[(comm, int(tid), lines)] += 1
        self.stacks = [self._stack(*key, n) for key, n in counts.items()]

    def _frame(self, line):
        if line not in self.frames:
            address, name, file = re.fullmatch(r"\s*([0-9a-f]+) (.*) \((.*?)\)", line).groups()
            m = re.fullmatch(r"(.+):(\d+)", name)
            runtime = self.sources.get(file, "native")
            if file == "[kernel.kallsyms]" or line.split()[0].startswith("ffff"):
                runtime = "kernel"
            elif re.fullmatch(r"\[[a-z][a-z0-9]+\]", file) and file not in ("[vdso]", "[unknown]"):
                runtime = file[1:-1]
            self.frames[line] = Frame(m.group(1) if m else name, int(m.group(2)) if m else 0, file, runtime,
                                      file == "inlined", int(address, 16))
        return self.frames[line]

    def _stack(self, comm, tid, lines, count):
        frames, reason = [self._frame(x) for x in lines.split("\n")[::-1] if x], None
        m = frames and re.fullmatch(r"\[truncated: ([a-z_]+)\]", frames[0].name)
        if m:
            reason = m.group(1)
            frames = frames[1:]
        user = tuple(f for f in frames if f.runtime != "kernel")
        return FrameStack(comm, reason, user, tuple(frames[len(user):]), count, tid)


class FrameRecording(sonde.Recording):
    def _read_stacks(self, path):
        try:
            with open(path, encoding="utf-8") as f:
                return FrameText(f.read()).stacks
        except (OSError, ValueError) as e:
            self.problems.append("output: %s" % e)
            return None


class FrameRecorder(Recorder):
    """A running `sonde record` whose stacks have Frames, in perf's text."""

    def __init__(self, setup, options=(), command=(), **kwargs):
        super().__init__(setup, ["-f", "perf", "--lines", *options], command, **kwargs)

    def wait(self, timeout=sonde.HANGS, status=0):
        try:
            self.process.wait(timeout * sonde.PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        recording = FrameRecording(self)
        recording.expect_status(status)
        return recording


def stack_of(setup, pid, *options):
    """`sonde stack --json`: tid -> thread, as docs/stack.md has it."""
    done = subprocess.run([setup.program, "stack", "--json", *map(str, options), str(pid)], capture_output=True,
                          text=True, timeout=300 * sonde.PATIENCE)
    if done.returncode:
        raise AssertionError("sonde stack: status %d: %s" % (done.returncode, done.stderr[-500:]))
    return {t["tid"]: t for t in json.loads(done.stdout)["threads"]}


class Tally:
    """What became of the samples of one case: all of them, the complete ones, the wrong ones and why."""

    def __init__(self, name):
        self.name = name
        self.samples = self.complete = 0
        self.reasons = collections.Counter()
        self.wrong = collections.Counter()

    def take(self, stack, judge):
        """judge(stack) says what is wrong with a complete stack, or None. A cut one counts as cut."""
        self.samples += stack.count
        if stack.reason:
            self.reasons[stack.reason] += stack.count
            return
        self.complete += stack.count
        if not stack.user:  # a kernel stack only, in exec or exit
            return
        wrong = judge(stack)
        if wrong:
            self.wrong[wrong] += stack.count

    def problems(self, least=20, complete_percent=99.0):
        """What is wrong with the case; nothing: all is well."""
        found = []
        if self.samples < least:
            found.append("%s: %d samples, expected %d" % (self.name, self.samples, least))
        nr_wrong = sum(self.wrong.values())
        if nr_wrong:
            found.append("%s: %d of %d samples are wrong" % (self.name, nr_wrong, self.samples))
            found += ["  %d x %s" % (n, shorten(text, 1500)) for text, n in self.wrong.most_common(2)]
        # Of few samples one may always be the odd one.
        if self.samples - self.complete > max(1, self.samples * (100 - complete_percent) / 100):
            found.append("%s: %d of %d samples are complete; cut: %s"
                         % (self.name, self.complete, self.samples, dict(self.reasons)))
        return found

    def summary(self):
        cut = " (%s)" % ", ".join("%s %d" % x for x in self.reasons.items()) if self.reasons else ""
        return "%s %d/%d%s" % (self.name, self.complete, self.samples, cut)


def tally(recording, name, comm, judge, kind=Tally):
    """The tally of a recording's stacks of one comm."""
    t = kind(name)
    for stack in recording.stacks or []:
        if stack.comm == comm:
            t.take(stack, judge)
    return t


def from_zoo(kind, version):
    """The path of a version of tests/zoo, made if need be; tap.Skip if it cannot be had here."""
    zoo = os.path.join(HERE, "..", "zoo", "zoo.sh")
    done = subprocess.run([zoo, kind, version], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        raise tap.Skip((done.stderr.strip().splitlines() or ["%s %s: no reason given" % (kind, version)])[-1])
    return done.stdout.strip().splitlines()[-1]


def main(description, tests, arguments=None, tracers="all"):
    """The main() of a file of tests: `tests(setup, args)` yields pairs of a name and a function that takes the setup.
    `arguments(parser)` adds options of its own; `tracers` are those of its recordings."""
    return guard.run(lambda: run_tests(description, tests, arguments, tracers))


def run_tests(description, tests, arguments, tracers):
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("--sonde", default=os.path.join(os.environ.get("SONDE_BUILD_ROOT", "build"), "sonde"))
    parser.add_argument("--only", default="", help="run the tests whose name this matches")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    if arguments:
        arguments(parser)
    args = parser.parse_args()
    reason = sonde.missing()
    if reason:
        return tap.skip_all(reason)
    scratch = tempfile.mkdtemp(prefix="sonde-runtimes-")
    os.chmod(scratch, 0o755)
    try:
        setup = Setup(os.path.abspath(args.sonde), scratch, tracers)
        try:
            chosen = [t for t in tests(setup, args) if re.search(args.only, t[0])]
        except tap.Skip as e:
            return tap.skip_all(str(e))
        return tap.run((name, lambda test=test: test(setup)) for name, test in chosen)
    finally:
        if args.keep:
            print("# files: %s" % scratch)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
