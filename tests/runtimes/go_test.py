#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Go programs that know their chains (go/known.go), built with and without symbols, by Go's linker and by gcc's, as
programs, plugins and libraries of C programs: exact names and lines, inlined calls among them, from the goroutine's first
function to the leaf, through C and back; who has started it; labels.

    go_test.py [--sonde PROGRAM] [--only REGEX] [--all]

SONDE_GO is a go command other than that of the PATH, SONDE_GO_PROGRAMS a folder of programs that were built elsewhere: only they are run. docs/go.md says what is shown.
"""
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import types

import runtimes
import pprof_file
from modes import burnt, recording_began
from runtimes import FrameRecorder, Program, Tally
from tap import Skip

SECONDS = float(os.environ.get("SONDE_SECONDS", "0.4"))  # of CPU, of all cases of a program
LEAST = 4

STRIPPED = "-s -w"
# name: cgo, build mode, flags of the linker; "large" has more code than is followed instruction by instruction
BUILDS = {
    "plain": ("0", "exe", ""),
    "stripped-pie": ("0", "pie", STRIPPED),
    "cgo": ("1", "exe", ""),
    "cgo-stripped": ("1", "pie", STRIPPED),
    "large-stripped": ("1", "exe", STRIPPED),
}
# What takes long to build, since the standard library is compiled anew for it.
MORE = {
    "stripped": ("0", "exe", STRIPPED),
    "race": ("1", "exe", ""),
    "cgo-pie": ("1", "pie", ""),
    "shared": ("1", "c-shared", ""),
    "shared-stripped": ("1", "c-shared", STRIPPED),
    "plugin": ("1", "plugin", ""),
    "plugin-stripped": ("1", "plugin", STRIPPED),
}
# Recorded with --async: who has started each goroutine is told as well.
ASYNC = ("plain", "cgo-stripped", "shared", "plugin")

# Why a walk in a copy of the top of a stack ends.
EARLY = ("no_process", "file_pending", "stack_unreadable", "stack_copy_end") + (("walker_pending",) if os.environ.get("SONDE_GO_PROGRAMS") else ())

# C's part, from Go's last function to its next one. Without symbols most of it has no names.
C_PART = re.compile(r"runtime\.asmcgocall|_cgo_\w+|in_c|c_leaf|back|crosscall2|\[unknown\]")
# What the race detector's leaf calls: Go's function that goes over to the thread's stack, the detector, which is C.
RACE = re.compile(r"racecall(addr)?$|runtime\.race\w+$")
CREATED_BY = "[go: created_by]"
OTHER_STACK = "[native: other_stack]"
READY = os.environ.get("SONDE_GO_PROGRAMS")
CASES = os.environ.get("SONDE_SCENARIOS", "").split()
Shown = collections.namedtuple("Shown", "name line")  # a frame of sonde stack


def go_command():
    go = os.environ.get("SONDE_GO") or shutil.which("go")
    if not go:
        raise Skip("no go")
    return go


def go(*argv, **env):
    # The C compiler by its name alone: 1.16 does not know a CC of two words ("ccache gcc").
    done = subprocess.run([go_command(), *argv], cwd=os.path.join(runtimes.HERE, "go"), capture_output=True, text=True, check=False,
                          env=dict(os.environ, GO111MODULE="off", GOFLAGS="", GOENV="off", GOTOOLCHAIN="local", **{"CC": "gcc", **env}))
    if done.returncode:
        raise AssertionError("go %s: %s" % (argv[0], done.stderr[-2000:]))


def build(setup, name):
    """How it is started."""
    cgo, mode, link = {**BUILDS, **MORE}[name]
    if READY:
        return [os.path.join(READY, "go-" + name)]
    made = setup.file("go-" + name)
    go("build", *["-race"] * (name == "race"), "-buildmode=" + mode, "-ldflags=" + link, "-tags=" + name.split("-")[0], "-o", made, ".", CGO_ENABLED=cgo)
    if mode == "plugin":
        host = setup.file("go-plugin-host")
        go("build", "-o", host, "host/plugin.go", CGO_ENABLED="1")
        return [host, made]
    if mode == "c-shared":
        host = setup.file("go-shared-host")
        subprocess.run(["gcc", "-O1", "-o", host, os.path.join(runtimes.HERE, "go", "host", "shared.c"), "-ldl"], check=True)
        return [host, made]
    return [made]


# --- what a stack must be ---


def plain_name(name):
    """As the runtime prints it: without the suffix of a calling convention, and without types of instances."""
    return re.sub(r"\[go\.shape\..*?\](?=\.|$)", "[...]", name.removesuffix(".abi0"))


def wanted_of(truth):
    """(name, line), outermost first; a line that is not to be the same is None."""
    # goexit is not shown; systemstack_switch, and up to 1.16 asmcgocall: how the runtime calls the place where it went over
    # to C, whose frames are looked at as ways through C.
    not_asked = ("runtime.goexit", "runtime.systemstack_switch", "runtime.asmcgocall")
    found = [(name, line) for name, _, line in truth["chain"] if name not in not_asked]
    if truth["comm"] == "go-c-leaf":
        found[-1] = (found[-1][0], None)
        found += [(found[-1][0].split(".")[0] + "._Cfunc_c_leaf", None), ("runtime.cgocall", None)]
    return found[:-1] + [(found[-1][0], None)]  # the last one has gone on


def split_c(frames):
    """Go's frames, and the runs of those from one of Go's to another that are C's."""
    go, runs, in_c = [], [], False
    for f in frames:
        if C_PART.fullmatch(plain_name(f.name)):
            if not in_c:
                runs.append([])
            runs[-1].append(f.name)
            in_c = True
        else:
            go.append(f)
            in_c = False
    return go, runs


class Judge:
    def __init__(self, truth, has_symbols, creators):
        self.comm, self.wanted, self.has_symbols = truth["comm"], wanted_of(truth), has_symbols
        self.creator = [truth["creator"], CREATED_BY] if creators else []
        self.bare = 0
        self.runs = {"go-callback": 1, "go-c-leaf": 2}.get(self.comm, 0)

    def __call__(self, stack):
        names = [plain_name(f.name) for f in stack.user]
        # The scheduler, on the thread's own stack: it has taken the goroutine off, and begins there.
        # (A new thread has the name of the one that has made it.)
        if names[0] in ("runtime.mcall", "runtime.mstart", "runtime.rt0_go", "runtime.clone") or "runtime.mstart" in names[:8]:
            return None
        if names[0] == "runtime.morestack" and "runtime.schedule" in names:
            return None
        # It is about to go on in another goroutine.
        if names[:2] == [OTHER_STACK, "gogo"]:
            return None
        skipped = 0
        if self.creator and CREATED_BY in names:
            skipped = 2
            if [names[0], stack.user[0].line, names[1]] != [self.creator[0][0], self.creator[0][2], CREATED_BY]:
                return "started by %s, not %s" % (stack.user[:2], self.creator)
        elif self.creator:
            self.bare += stack.count  # walked in a copy of the stack: who has started it is not known
        go, runs = split_c(stack.user[skipped:])
        found = [(plain_name(f.name), f.line) for f in go]
        shown = " ; ".join("%s:%d" % (f.name, f.line) for f in stack.user)
        for i, (name, line) in enumerate(self.wanted):
            if i >= len(found) or found[i][0] != name or (line and found[i][1] != line):
                return "no %s:%s at %d: %s" % (name, line, i, shown)
        # Behind the leaf: a signal that has interrupted it, which the runtime sends to preempt it, and what its handler calls.
        behind = found[len(self.wanted):]
        if self.comm == "go-race" and behind and RACE.match(behind[0][0]):
            return self._wrong_runs(runs, shown)
        if behind and not re.match(r"runtime\.(sigreturn|asyncPreempt)|__restore_rt|__kernel_rt_sigreturn", behind[0][0]):
            return "more than the leaf: " + shown
        return self._wrong_runs(runs, shown)

    def _wrong_runs(self, runs, shown):
        if len(runs) != self.runs or any(plain_name(r[0]) != "runtime.asmcgocall" for r in runs):
            return "%d ways through C, not %d: %s" % (len(runs), self.runs, shown)
        if self.runs and self.has_symbols and not {"in_c", "back", "crosscall2"} <= set(runs[0]):
            return "C's functions are missing: " + shown
        if self.runs == 2 and self.has_symbols and runs[1][-1] != "c_leaf":
            return "no c_leaf: " + shown
        return None


class GoTally(Tally):
    """Samples that come before a file's table is there are walked in a copy of the top of their stack: where they go over to
    another stack they end, and say so. How many these are is the machine's matter; enough others are to follow."""

    def __init__(self, name):
        super().__init__(name)
        self.early = 0

    def take(self, stack, judge):
        if stack.reason in EARLY:
            self.early += stack.count
        else:
            super().take(stack, judge)

    def problems(self, least=LEAST, complete_percent=99.0):
        return super().problems(least, complete_percent)

    def summary(self):
        return super().summary() + ("+%d" % self.early if self.early else "")


def wrong_mcall(names):
    """
    What is wrong with a stack, outermost first, that has mcall(): by the time that it calls something the goroutine is anybody's. But not of
    save_g(), which it calls before, on aarch64.
    """
    names = list(map(plain_name, names))
    at = names.index("runtime.mcall") if "runtime.mcall" in names else 0
    inner = names[at + 1:at + 2]
    return "mcall() was called: " + ";".join(names) if at and inner and inner != ["runtime.save_g"] else None


def known(setup, name):
    with Program(build(setup, name), env={"GOGC": "off"}) as running:
        running.until_ready()
        creators = name in ASYNC
        recorder = FrameRecorder(setup, ["-p", str(running.pid)] + ["--async"] * creators)
        recording_began(recorder)
        burnt(running.pid, SECONDS)
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.wait()
    problems = list(recording.problems)
    problems += [w for s in recording.stacks or [] for w in [wrong_mcall([f.name for f in s.user])] if w and s.reason not in EARLY][:3]
    tallies = []
    for truth in (t for t in running.truths if not CASES or t["comm"].removeprefix("go-") in CASES):
        judge = Judge(truth, STRIPPED not in {**BUILDS, **MORE}[name][2], creators)
        tallies.append(runtimes.tally(recording, truth["comm"], truth["comm"], judge, GoTally))
        problems += tallies[-1].problems()
        # In an emulated machine it takes long until the kernel walks.
        if judge.bare > (max(0, tallies[-1].samples - LEAST) if READY else max(5, tallies[-1].samples / 10)):
            problems.append("%s: %d samples of %d say nothing of who has started it" % (truth["comm"], judge.bare, tallies[-1].samples))
    return problems, ", ".join(t.summary() for t in tallies)


def wrong_threads(truths, threads, has_symbols=True):
    """What is wrong with threads that work, comm -> list of what --json has; those of truths, each once."""
    problems = []
    for truth in truths:
        mine = threads.get(truth["comm"], [])
        if len(mine) != 1 or not mine[0]["complete"]:
            problems.append("%s: %s" % (truth["comm"], str(mine)[:500]))
            continue
        frames = [Shown(f["function"] or "[unknown]", f["line"] or 0) for f in mine[0]["frames"][::-1] if f["kind"] != "kernel"]
        wrong = Judge(truth, has_symbols, False)(types.SimpleNamespace(user=frames, count=1))
        problems += ["%s: %s" % (truth["comm"], wrong)] if wrong else []
    return problems[:5]


def stacks(setup, name):
    """`sonde stack` of threads that work, each once."""
    with Program(build(setup, name), env={"GOGC": "off"}) as running:
        running.until_ready()
        threads = {}
        for thread in runtimes.stack_of(setup, running.pid).values():
            threads.setdefault(thread["name"], []).append(thread)
        problems = wrong_threads(running.truths, threads)
        # Those that wait for work stand in mcall().
        every = [t for ts in threads.values() for t in ts]
        problems += [w for t in every for w in [wrong_mcall([f["function"] or "[unknown]" for f in t["frames"][::-1] if f["kind"] != "kernel"])] if w][:3]
        return problems, "%d threads of %d" % (len(running.truths), len(every))


MANY = {"key%d" % i: "x" * i * 20 if i <= 4 else "x" * 80 + "..." for i in range(1, 7)}


def wrong_labels(sample):
    """What is wrong with the labels of a sample of go/labels.go, or None. The function tells what they are to be; in
    pprof.Do() itself, before and after it, they are another's."""
    labels = {k: v for k, v in sample.labels.items() if k in ("of", "request") or k.startswith("key")}
    if "main.withOne" in sample.names or "main.inherited" in sample.names:
        right = labels.keys() == {"of", "request"} and labels["of"] == "one" and re.fullmatch(r"request-\d{1,3}", labels["request"])
    elif "main.withMany" in sample.names:
        right = labels == {"of": "many", **MANY}
    elif "main.without" in sample.names:
        right = not labels
    else:
        return None
    return None if right else "%s of %s" % (labels, ";".join(sample.names))


def labelled(setup, name):
    """Each stack has the labels of the moment, and no others; without CPU time of its own nothing has some."""
    output = setup.file("labels.pb.gz")
    with Program(build(setup, name) + ["labels"]) as running:
        running.until_ready()
        recorder = runtimes.Recorder(setup, ["-p", str(running.pid), "-f", "pprof", "-o", output])
        recording_began(recorder)
        burnt(running.pid, 2 * SECONDS)
        recorder.process.send_signal(signal.SIGINT)
        if recorder.process.wait(300 * runtimes.sonde.PATIENCE):
            return ["sonde failed"], ""
    counts, problems, requests = collections.Counter(), [], set()
    for sample in pprof_file.read(output):
        inside = [n for n in ("withOne", "withMany", "without", "inherited") if "main." + n in sample.names]
        counts[(inside or ["others"])[0]] += sample.values[0]
        requests.add(sample.labels.get("request"))
        wrong = wrong_labels(sample)
        # A process's first samples are walked in a copy, and have none.
        if wrong and (sample.labels.keys() & {"of"} or not inside):
            problems.append(wrong)
        elif wrong:
            counts["bare"] += sample.values[0]
    known = sum(counts[n] for n in ("withOne", "withMany", "inherited"))
    for n in ("withOne", "withMany", "without", "inherited"):
        if counts[n] < 50:
            problems.append("%d samples in %s" % (counts[n], n))
    if counts["bare"] > max(10, known / 100):
        problems.append("%d of %d samples have no labels" % (counts["bare"], known))
    if len(requests) < 20:
        problems.append("%d distinct requests" % len(requests))
    return problems[:5], "%s, %d requests" % (dict(counts), len(requests))


PLUGIN = r"^(_/.*/|plugin/unnamed-)[^./]*\."  # what the functions of a plugin's main have in its place


def is_whole(chain):
    """Is that, outermost first, a goroutine of go/grow.go that has called what has too small a stack?"""
    if chain[:1] == ["main.grown"]:
        while chain[1:] and chain[1] == "main.descend":
            chain = chain[1:]
        return all(n.startswith("runtime.") for n in chain[1:])
    main = ["runtime.main", "main.main", "main.run", "main.grow"]
    return bool(chain) and (chain[:4] == main or all(n.startswith("runtime.") for n in chain))


def wrong_growth(names):
    """What is wrong with the stack (outermost first) of a sample in newstack(); None: nothing, or it is cut and says so."""
    below = names[:names.index("runtime.newstack")]
    if "runtime.schedule" in names:  # the goroutine was taken off, and another one may be its thread's
        right = below == ["runtime.morestack"]
    elif OTHER_STACK in names:  # it is about to be, or its stack is just the new one, and where it is in that is not said yet
        right = below == [OTHER_STACK, "runtime.morestack"]
    else:
        right = below[-1] == "runtime.morestack" and is_whole(below[:-1])
    return None if right else ";".join(names)


def growing(setup, name):
    """Where a stack grows, which is on the thread's own stack, and does not return, the goroutine's functions are below."""
    with Program(build(setup, name) + ["grow"], env={"GOGC": "off", "GODEBUG": "asyncpreemptoff=1"}) as running:
        running.until_ready()
        recorder = FrameRecorder(setup, ["-p", str(running.pid)])
        recording_began(recorder)
        burnt(running.pid, SECONDS)
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.wait()
    problems, counts = list(recording.problems), collections.Counter()
    for stack in recording.stacks:
        names = [re.sub(PLUGIN, "main.", plain_name(f.name)) for f in stack.user]
        if stack.reason or "runtime.newstack" not in names:
            counts["cut" if stack.reason else "others"] += stack.count
            continue
        counts["newstack"] += stack.count
        counts["copystack"] += stack.count * ("runtime.copystack" in names and "main.descend" in names)
        counts["unknown"] += stack.count * (OTHER_STACK in names)
        counts["host"] += stack.count * any(f.name == "main.descend" for f in stack.user)
        wrong = wrong_growth(names)
        if wrong:
            problems.append(wrong)
    if counts["copystack"] < 20:
        problems.append("%d samples in copystack" % counts["copystack"])
    if name.startswith("plugin") and counts["host"] < 20:
        problems.append("%d samples of the plugin's host" % counts["host"])
    if counts["unknown"] > max(5, counts["newstack"] / 20):
        problems.append("the goroutine is not known in %(unknown)d samples of %(newstack)d" % counts)
    return problems[:5], str(dict(counts))


def arguments(parser):
    parser.add_argument("--all", action="store_true", help="also what takes long to build")


def tests(_setup, args):
    if not READY:
        go_command()
    everything = args.all or os.environ.get("SONDE_GO_BUILDS") == "all"
    for name in {**BUILDS, **MORE} if everything else BUILDS:
        if not os.path.exists(os.path.join(READY, "go-" + name)) if READY else {**BUILDS, **MORE}[name][0] == "1" and not shutil.which("gcc"):
            continue
        yield "known-" + name, lambda setup, name=name: known(setup, name)
        if "large" not in name and "plugin" not in name and (everything or name in ("plain", "cgo-stripped")):
            yield "labels-" + name, lambda setup, name=name: labelled(setup, name)
        if name == "cgo":  # no case has the name that the program's other threads have
            yield "stack-" + name, lambda setup, name=name: stacks(setup, name)
        if name in ("plain", "large-stripped") or (everything and name in ("cgo", "plugin", "plugin-stripped")):
            yield "growing-" + name, lambda setup, name=name: growing(setup, name)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests, arguments, "go,labels"))
