#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""JavaScript programs that know their chains (node/cases.js), under this machine's Node.js: exact names, files and lines,
interpreted, compiled and inlined, in the right order with the native frames around them. Deno runs them, too (--zoo deno-2.9.6), and Electron
(--zoo electron-9.4).

    node_test.py [--node PROGRAM | --zoo VERSION] [--sonde PROGRAM] [--only REGEX]

docs/v8.md says what is shown.
"""
import collections
import contextlib
import copy
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import runtimes
from modes import burnt, cpu_seconds, recording_began, wait_until
from runtimes import FrameRecorder, Program, Tally, stack_of
from folded import shorten
from tap import Skip

CASES = os.path.join(runtimes.HERE, "node", "cases.js")
SECONDS = float(os.environ.get("SONDE_SECONDS", "3"))  # of CPU, of all programs of a recording
EACH = 0.08  # of each
RECORDINGS = int(os.environ.get("SONDE_RECORDINGS", "1"))  # at most, if names are put off
UNSURE_PERCENT = 4  # docs/v8.md
SAID = ("[native: caller_unsure]", "[v8: unreadable]")
KNOWN = ("7.8", "7.9", "8.3", "8.4", "8.6", "9.4", "9.6", "10.2", "10.8", "11.3", "11.8", "12.4", "12.9", "13.6", "14.1", "14.6")  # versions of V8: src/runtime/v8/v8_layout.c
KNOWN_IN_DENO = ("15.0.245",)
KNOWN_IN_ELECTRON = ("8.3.110",)
TOGETHER = (os.environ.get("SONDE_SCENARIOS") or "plain recursion methods getters sort replace json proxied generator evaluated script applied timer async worker secret"
            " module locals native deoptimized resumed").split()
TIERS = (os.environ.get("SONDE_TIERS") or "plain hot hot-calls").split()
MODES = {"interpreted": ["--no-opt", "--no-sparkplug", "--no-maglev"], "baseline": ["--no-opt", "--no-maglev", "--always-sparkplug"],
         "maglev": ["--maglev", "--no-turbofan"], "optimized": []}
WANTED_MODES = os.environ.get("SONDE_MODES", " ".join(MODES)).split()
# Functions of WebAssembly: in the order of chance, by its first compiler, and by that which optimizes.
WASM_MODES = {"any": [], "liftoff": ["--liftoff", "--no-wasm-tier-up", "--liftoff-only"], "turbofan": ["--no-liftoff"]}
# Where a module's code was interrupted itself, V8 does not tell which function it had put into another one.
WASM_APART = ["--no-wasm-inlining", "--no-experimental-wasm-inlining"]
WASM_CASES = ("wasm", "nameless", "spin", "spin-nameless", "hot-wasm", "busy-wasm")
# Of --async.
AWAITS = ("plain deep arrow all settled any race then finally generator rejected returned several nobody settling").split()
WAITED = "[v8: awaited_by]"
INLINED_UNKNOWN = "[v8: inlined_unknown]"  # of optimized code that was interrupted itself: docs/v8.md
# What only implements JavaScript's frames.
FOLDED = re.compile(r"Builtins_(InterpreterEntryTrampoline|\w+Handler)")
ENTRY = re.compile(r"Builtins_JS\w*Entry")
# Makes the frame of a function of WebAssembly.
FRAME_SETUP = "Builtins_WasmLiftoffFrameSetup"
# What the leaf calls when it has told its chain.
TELLING = ("telling", "tell", "readSync", "writeSync")


class Node:
    known = KNOWN
    lacks = ()  # cases

    def __init__(self, path):
        self.path = path
        said = subprocess.run([path, "-p", "[process.versions.v8, process.version, process.config.variables.node_shared === true].join(' ')"], capture_output=True, text=True, check=True)
        self.v8, self.version, shared = said.stdout.split()
        self.is_stripped = shared == "true"  # V8 is in a library, as Debian has it
        self.number = int(self.version[1:].split(".", maxsplit=1)[0])
        self.has_private_methods = [int(n) for n in re.findall(r"\d+", self.v8)[:2]] >= [8, 4]
        said = subprocess.run([path, "--v8-options"], capture_output=True, text=True, check=True)
        self.options = set(re.findall(r"^ +--([a-z-]+) ", said.stdout, re.M))
        if not any(self.v8.startswith(v + ".") for v in self.known):
            raise Skip("%s has V8 %s, which is not known" % (path, self.v8))

    def argv(self, options, *args):
        return [self.path, *options, CASES, *args]

    def copied(self, path):
        shutil.copy(os.path.realpath(self.path), path)
        other = copy.copy(self)
        other.path = path
        return other

    def renamed(self, setup):
        return self.copied(setup.file("worker-bee"))

    def knows(self, options):
        """Of options, those that this version has; --no-X of what it does not have says nothing."""
        return [o for o in options if re.sub("^--(no-)?", "", o) in self.options]

    def can_run(self, case):
        return case not in self.lacks and (case != "secret" or self.has_private_methods)

    def modes(self):
        """Of MODES, those that this version has."""
        for mode, options in MODES.items():
            if mode not in WANTED_MODES:
                continue
            known = self.knows(options)
            # Node.js 22 has Maglev, but neither lines nor inlined calls of its code are known.
            if all(o in known or o.startswith("--no-") for o in options) and (mode != "maglev" or self.number >= 23):
                yield mode, known


class Electron(Node):
    """Its own Node.js, without a display: pointers are compressed, and nothing but V8's version and builtins is exported."""

    known = KNOWN_IN_ELECTRON
    lacks = ("module",)

    def __init__(self, path):
        os.environ.update(ELECTRON_RUN_AS_NODE="1", CASES_FOREIGN="1")
        super().__init__(path)
        self.is_stripped = True

    def renamed(self, setup):
        """It looks for other files beside itself."""
        folder = setup.file("renamed")
        os.mkdir(folder)
        for name in os.listdir(os.path.dirname(self.path)):
            os.symlink(os.path.join(os.path.dirname(self.path), name), os.path.join(folder, name))
        return self.copied(os.path.join(folder, "worker-bee"))


class Deno(Node):
    """It runs what Node.js does if a package says that it is for that."""

    lacks = ("deoptimized", "resumed")  # V8's options cannot be set later

    def __init__(self, path, setup):
        self.path = path
        said = subprocess.run([path, "eval", "console.log(process.versions.v8, process.versions.deno)"], capture_output=True, text=True, check=True)
        self.v8, self.version = said.stdout.split()
        self.is_stripped = True
        self.number = 26  # what it says of Node.js
        self.has_private_methods = True
        self.cases = setup.file("deno-cases")
        if not os.path.exists(self.cases):
            shutil.copytree(os.path.dirname(CASES), self.cases)
            with open(os.path.join(self.cases, "package.json"), "w", encoding="utf-8") as f:
                f.write('{"type": "commonjs"}')
        if not any(self.v8.startswith(v + ".") for v in KNOWN_IN_DENO):
            raise Skip("%s has V8 %s, which is not known" % (path, self.v8))

    def argv(self, options, *args):
        flags = ["--v8-flags=" + ",".join(options)] if options else []
        return [self.path, "run", "-A", "--cached-only", *flags, os.path.join(self.cases, "cases.js"), *args]

    def knows(self, options):
        return list(options)


def node_of(path, setup):
    name = os.path.basename(path)
    return Deno(path, setup) if name == "deno" else Electron(path) if name == "electron" else Node(path)


def inside_v8(stack, truth):
    """Deno's and Electron's own functions have neither names nor unwind information, and notes stand between them: what is judged begins where
    JavaScript does."""
    first = next((i for i, f in enumerate(stack.user) if ENTRY.fullmatch(f.name)), None)
    if not truth["foreign"] or first is None:
        return stack
    return stack._replace(user=stack.user[first:])


class NodeTally(Tally):
    """Until a process is shown to the kernel, its samples are walked later, and say so."""

    def __init__(self, name, follows=False):
        """`follows`: the program's own code has no unwind information, and is followed when samples lie in it; those say so."""
        super().__init__(name)
        self.until_shown = ("no_process", "file_pending") + (("code_pending",) if follows else ())
        self.passed_over = collections.Counter()  # by what they say

    def take(self, stack, judge_stack):
        if any(f.name == "[v8: not_ready]" for f in stack.user) or stack.reason in self.until_shown:
            self.passed_over[stack.reason or "not_ready"] += stack.count
            return
        super().take(stack, judge_stack)

    def problems(self, *args, **kwargs):
        found = super().problems(*args, **kwargs)
        if found and self.passed_over:
            found.append("%s: passed over until it was shown: %s" % (self.name, dict(self.passed_over)))
        return found


def chain_text(chain):
    return " ; ".join("%s (%s:%s)" % tuple(c[:3]) for c in chain)


def is_function(found, want, with_line=True):
    """Whether a frame is the one that V8 told of; getters are called "get NAME" by it, or by their name."""
    name, file, line = want  # Deno has URLs for some
    # What a property says, V8's own account prefers to the function's name; and it calls the code of an eval() "eval".
    own = name is None or (name.startswith("[") or name == "eval") and found[0] == "(anonymous)"
    return ((own or found[0] == name or re.sub("^[gs]et ", "", name) == found[0]) and (file is None or found[1] in (file, "file://%s" % file, "inlined"))
            and (not with_line or found[2] == line))


def wrong_chain(truth, found, hot):
    """What is wrong with frames of JavaScript (name, file, line), outermost first, or None."""
    want = truth["chain"]
    low, high = truth["lines"]
    inside, beyond = found[:len(want)], [f[0] for f in found[len(want):]]
    least = len(want) - 6 if hot else len(want)  # it is on its way into the chain, or out
    # What was met before V8 made a function's positions has no line: it is asked for each place once.
    calls = [is_function(f, w, f[2] > 0 or not truth.get("early")) for f, w in zip(inside[:-1], want)]
    if len(inside) >= least and all(calls) and is_function(inside[-1], want[len(inside) - 1], False):
        line = inside[-1][2]
        if beyond[0] in TELLING if beyond else not line or len(inside) < len(want) or low <= line <= high:
            return None
    return "%s\n     not %s in line %d to %d" % (chain_text(found), chain_text(want), low, high)


def wrong_through_addon(stack, js):
    """What is wrong between functions that an addon calls and those that call it: each time its two functions, in node's own."""
    called = [i for i, (f, is_one) in enumerate(zip(stack.user, js)) if is_one and f.name in ("calledBack", "calledAgain")]
    if [stack.user[i].name for i in called] != ["calledBack", "calledAgain"]:
        return "it is not called back twice"
    for i in called:
        before = max(k for k in range(i) if js[k])
        inside = [f for f in stack.user[before + 1:i] if os.path.basename(f.file) == "addon.node"]
        if [re.sub(r"\(.*", "", f.name) for f in inside] != ["napi_value__* addon::call_back<addon::Caller>", "addon::Caller::call"]:
            return "the addon's frames are %s" % [f.name for f in inside]
    return None


def is_unnamed(f):
    """Native code without a name, as a module's is."""
    return f.name == "[unknown]" and f.runtime != "v8"


def is_unknown(f):
    """A function of JavaScript that was dropped."""
    return f.name == "[unknown]" and f.runtime == "v8"


def is_wasm_wrapper(f, with_unknown=False):
    """The way into an exported function of a module may be code of that, which V8 calls by its index; up to Node.js 15, or by nothing.
    The way out has the name of what is imported, or none in V8."""
    return f.runtime == "v8" and (re.fullmatch(r"\d+|wasm-stub", f.name) or (f.name, f.file) == ("leaf", "[v8]") or with_unknown and f.name == "[unknown]")


def through_wasm(truth):
    return "wasm" in truth["comm"]


def without_wrappers(truth, frames, js):
    """Which frames are functions, where ways into modules have names."""
    if not through_wasm(truth):
        return js
    return [is_one and not is_wasm_wrapper(f, not truth["wasm"]) for f, is_one in zip(frames, js)]


def wrong_through_wasm(truth, stack, js):
    """What is wrong between functions of JavaScript that call a module and those that it calls: ways in and out, without a name."""
    names = [f.name for f in stack.user]
    functions = [name for name, file, _ in truth["chain"] if file is None]
    if FRAME_SETUP in names[1:] and names[names.index(FRAME_SETUP) - 1] not in functions:
        return "the function is missing whose frame is made"
    first = next((i for i, n in enumerate(names) if n in ("callsWasm", "hotWasm", "spinsInWasm")), None)
    last = next((i for i, n in enumerate(names) if n in ("imported", "counting")), None)
    if first is None or last is None:
        return None
    others = [f for f, is_one in zip(stack.user[first + 1:last], js[first + 1:last]) if not is_one and not is_wasm_wrapper(f, not truth["wasm"])]
    unnamed = [f for f in others if is_unnamed(f)]
    odd = [f.name for f in others if f not in unnamed and "Wasm" not in f.name]
    if odd or not truth["wasm"] and len(unnamed) < 3 or len(unnamed) > (2 if truth["wasm"] else 4):
        return "between them are %s" % [f.name for f in others]
    return None


def wrong_waiting(truth, names):
    """What is wrong with where those begin that wait, and with what is said of them; `names`: JavaScript's, outermost first."""
    said = [n for n in names if n.startswith("[v8: await")]
    if truth["comm"].startswith("js-await-several"):
        want = ["[v8: awaited_by_several]"]
    else:
        want = [WAITED] if truth["waiting"] else []
    if said != want:
        return "it says %s, not %s" % (said, want)
    if said == [WAITED] and names.index(WAITED) < truth["waiting"]:
        return "%d functions wait, not %d" % (names.index(WAITED), truth["waiting"])
    return None


def waiting_first(truth, names, found):
    """Those that wait stand where the event loop goes on with what they wait for; V8's own account has them outside of all calls."""
    if WAITED not in names or names.index(WAITED) < truth["waiting"]:
        return found
    end = names.index(WAITED)
    begin = end - truth["waiting"]
    return found[begin:end] + found[:begin] + found[end:]


def wrong_natives(names, js, truth):
    """What is wrong with native frames around, from the outermost on."""
    stripped = truth["stripped"]  # local functions have no names, but V8's builtins
    folded = [n for n, is_one in zip(names, js) if not is_one and FOLDED.fullmatch(n)]
    if folded:
        return "the interpreter's own: %s" % " ".join(folded)
    first = js.index(True)
    entries = [i for i, n in enumerate(names[:first]) if ENTRY.fullmatch(n)]
    if entries and truth["foreign"]:
        return None
    if not entries or not any(("v8::internal::Execution::" if stripped else "::Invoke") in n for n in names[:entries[0]]):
        return "no way into JavaScript: %s" % " ; ".join(names[:first])
    if not (re.fullmatch(r"_start|__clone3?|clone3?|start_thread|thread_start", names[0]) or stripped and names[0] == "[unknown]"):
        return "it begins with %s" % names[0]
    return None


def which_are_js(frames):
    """Of frames, outermost first: inlined functions have no file in perf's text, and follow the one that they are in."""
    found, inside = [], False
    for f in frames:
        inside = f.runtime == "v8" or f.inlined and inside
        found.append(inside)
    return found


def wrong_outer(truth, found, has_line):
    """Where what is further in has no name: those that are there are right. The last one has no line if others may be inlined in it."""
    want = truth["chain"][:len(found)]
    if found and len(want) == len(found) and all(map(is_function, found[:-1], want)) and is_function(found[-1], want[-1], has_line) and (has_line or not found[-1][2]):
        return None
    return "%s\n     not the first ones of %s, the last %s" % (chain_text(found), chain_text(truth["chain"]), "in that line" if has_line else "without a line")


def judge_told(truth, hot, stack):
    js = without_wrappers(truth, stack.user, which_are_js(stack.user))
    names = [f.name for f, is_one in zip(stack.user, js) if is_one]
    js = [is_one and not f.name.startswith("[v8: await") for f, is_one in zip(stack.user, js)]
    found = [(f.name, f.file, f.line) for f, is_one in zip(stack.user, js) if is_one]
    if not found:
        # Threads that compile or collect have a name of their own, or none of JavaScript.
        return None if not any(ENTRY.fullmatch(f.name) for f in stack.user) else "no JavaScript"
    # It says itself that a caller may be missing, or which function is being entered or left; tally_truths() counts these.
    if any(f.name in SAID for f in stack.user):
        return None
    # Where a builtin calls a function whose frame is not there yet, the frame is the builtin's, which is no function of a script.
    if stack.user[-1].name == "Builtins_BaselineOutOfLinePrologue" and is_unknown(stack.user[-2]):
        return None
    # A function that was dropped before its name was read, as closures are: tally_truths() counts these.
    if is_unknown(stack.user[-1]):
        return wrong_outer(truth, found[:-1], True)
    if found[-1][0] == INLINED_UNKNOWN:
        return wrong_outer(truth, found[:-1], False)
    wrong = wrong_chain(truth, waiting_first(truth, names, found), hot) or wrong_natives([f.name for f in stack.user], js, truth) or wrong_waiting(truth, names)
    if truth["comm"] == "js-native" and not wrong:
        wrong = wrong_through_addon(stack, js)
    if through_wasm(truth) and not wrong:
        wrong = wrong_through_wasm(truth, stack, js)
    if wrong:
        wrong += "\n     all: " + " ; ".join("%s(%s)" % (f.name, os.path.basename(f.file)) for f in stack.user)
    return wrong


def judge(truth, hot, stack):
    """Of Deno and Electron, native code may say that a caller may be missing there: if none of JavaScript is, the others are right all the same."""
    plain = stack._replace(user=[f for f in stack.user if f.name != SAID[0]])
    if not truth["foreign"] or len(plain.user) == len(stack.user):
        return judge_told(truth, hot, stack)
    js = [f for f, is_one in zip(plain.user, which_are_js(plain.user)) if is_one]
    return judge_told(truth, hot, plain) if len(js) >= len(truth["chain"]) else None


def tally_truths(recording, programs, least=10, whole_percent=80, without_lines=(), noted=(), entering=()):
    """`entering`: programs that hardly do anything but call and return."""
    problems, notes = list(recording.problems), []
    for program in programs:
        truth = program.truths[0]
        hot = truth["comm"].startswith(("js-hot", "js-busy"))
        t = NodeTally(truth["comm"], truth["foreign"])
        whole = with_line = of_js = unsure = 0
        for stack in recording.stacks or []:
            if stack.tid not in program.threads:
                continue
            stack = inside_v8(stack, truth)
            t.take(stack, functools.partial(judge, truth, hot))
            frames = [f for f, is_one in zip(stack.user, which_are_js(stack.user)) if is_one]
            if frames and not stack.reason and frames[-1].name not in TELLING and "[v8: not_ready]" not in [f.name for f in frames]:
                of_js += stack.count
                whole += stack.count * (len(frames) >= len(truth["chain"]) or frames[-1].name == INLINED_UNKNOWN)
                with_line += stack.count * (frames[-1].line > 0)
                wrappers = through_wasm(truth) and not truth["wasm"]
                unsure += stack.count * any(f.name.startswith("[") and f.name != INLINED_UNKNOWN and not f.name.startswith("[v8: awaited_by") and not is_unnamed(f) and not (wrappers and is_wasm_wrapper(f, True))
                                            for f in stack.user)
        problems += t.problems(least)
        # What has neither JavaScript nor a way into it is right, too: so it would be if nothing was known.
        if of_js * 2 < t.complete:
            problems.append("%s: %d of %d samples have functions" % (t.name, of_js, t.complete))
        if of_js * whole_percent > whole * 100 and truth["comm"] not in entering:
            problems.append("%s: %d of %d samples have the whole chain" % (t.name, whole, of_js))
        if unsure > max(2, of_js * UNSURE_PERCENT / 100) and truth["comm"] not in (*noted, *entering) and not truth["foreign"]:
            problems.append("%s: %d of %d samples have a note" % (t.name, unsure, of_js))
        # V8 keeps those of calls only, if an embedder does not ask for all of them.
        without = truth["foreign"] and not truth["comm"].endswith(("-inter", "-basel", "calls-magle", "calls-optim"))
        if of_js * 75 > with_line * 100 and truth["comm"] not in (*without_lines, *entering) and not without:
            problems.append("%s: %d of %d samples have the leaf's line" % (t.name, with_line, of_js))
        notes.append("%s, lines %d%s" % (t.summary(), with_line, ", unsure %d" % unsure if unsure else ""))
    return problems, "; ".join(notes)


def recorded(setup, programs, seconds, options=()):
    """recorded_once(). On an emulated CPU that the host needs, too, names take more than their half of it, and what is put off stays
    without a name in stacks that are met again: sonde says so, and it is recorded again."""
    for _ in range(RECORDINGS):
        recording = recorded_once(setup, programs, seconds, options)
        if not recording.stats or not recording.stats["lost"].get("names_throttled"):
            break
    return recording


def recorded_once(setup, programs, seconds, options):
    """A recording of programs that were there before; it ends when they have had so much CPU time, and each some."""
    recorder = FrameRecorder(setup, ["-p", ",".join(str(p.pid) for p in programs), *options])
    recording_began(recorder)
    seconds, each = (2 * seconds, 6 * EACH) if programs[0].truths[0]["foreign"] else (seconds, EACH)  # its own code is followed first
    before = [cpu_seconds(p.pid) for p in programs]
    for program in programs:
        program.go()
        program.resume()

    def all_ran():
        used = [cpu_seconds(p.pid) - b for p, b in zip(programs, before)]
        return sum(used) >= seconds and min(used) >= each
    wait_until("%g s of CPU" % seconds, all_ran, 900)
    recorder.process.send_signal(signal.SIGINT)
    for program in programs:
        program.pause()
        program.threads = js_threads(program)
    return recorder.wait(300)


def js_threads(program):
    """The TIDs of those that run its JavaScript: the first one, or a worker (which some versions name "WorkerThread", others not)."""
    names = {}
    for tid in os.listdir("/proc/%d/task" % program.pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/comm" % (program.pid, tid), encoding="utf-8") as f:
            names[int(tid)] = f.read().rstrip("\n")
    if not program.truths[0]["worker"]:
        return {program.pid}
    named = {t for t, name in names.items() if name in ("WorkerThread", "worker-1")}
    return named or {t for t in names if t != program.pid}


def started(stack, argvs, env=None):
    programs = [stack.enter_context(Program(argv, nice=5, env=env)) for argv in argvs]
    return [p.until_ready() for p in programs]


def make_addon(setup):
    addon = setup.file("addon.node")
    subprocess.run(["c++", "-O2", "-shared", "-fPIC", "-fno-exceptions", "-o", addon, os.path.join(runtimes.HERE, "node", "addon.cc")], check=True)
    return {"CASES_ADDON": addon}


def test_chains(node, setup):
    """All cases at once; sonde comes long after they began."""
    env = make_addon(setup) if "native" in TOGETHER else None
    with contextlib.ExitStack() as stack:
        cases = [c for c in TOGETHER if node.can_run(c)]
        programs = started(stack, [node.argv([], c) for c in cases], env)
        return tally_truths(recorded(setup, programs, SECONDS), programs)


def test_tiers(node, setup):
    """One program by each way to run JavaScript: interpreted, compiled without optimization and with inlined calls."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [node.argv(options, case, "%s-%s" % (case, mode[:5])) for mode, options in node.modes()
                                   for case in TIERS])
        # Node.js 23 has Maglev, whose code has no source positions there: only calls that it makes have lines.
        without_lines = ("js-plain-magle", "js-hot-magle") if node.number == 23 else ()
        return tally_truths(recorded(setup, programs, SECONDS), programs, without_lines=without_lines)


def test_wasm(node, setup):
    """A module between functions of JavaScript, and one that works itself, by each way to run it."""
    with contextlib.ExitStack() as stack:
        argvs, spinning = [], []
        for mode, options in WASM_MODES.items():
            for case in WASM_CASES:
                name = "%s-wasm-%s" % (case, mode)
                spins = case.startswith("spin")
                if spins and node.number < 16:
                    continue  # functions of modules have no names
                argvs.append(node.argv(node.knows(options + (WASM_APART if spins else [])), case, name))
                spinning += ["js-" + name] if spins else []
        programs = started(stack, argvs)
        # What earlier calls left on the stack may look as if it were returned to, all of the time: it is said, and nothing is missing.
        noted = [s for s in spinning if node.number in (16, 17)]
        return tally_truths(recorded(setup, programs, SECONDS), programs, without_lines=spinning, noted=noted,
                            entering=["js-busy-wasm-wasm-" + mode for mode in WASM_MODES])


def test_async(node, setup):
    """Async functions and generators, with those that wait for them (--async)."""
    if node.number < 14:
        raise Skip("--async does not know its promises")
    with contextlib.ExitStack() as stack:
        # Up to V8 9.6 its own account does not go through allSettled().
        cases = [c for c in AWAITS if node.number >= (18 if c == "settled" else 15 if c == "any" else 0)]
        programs = started(stack, [node.argv([], "await-" + c) for c in cases], {"CASES_ASYNC": "1"})
        return tally_truths(recorded(setup, programs, SECONDS, ["--async"]), programs)


def test_collected(node, setup):
    """Functions that the collector moves while they are at work, and others that it drops, as many of them as there are."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [node.argv(["--max-semi-space-size=1"], "moving"), node.argv([], "churn"),
                                   node.argv(["--expose-gc"], "churn", "dropped"),
                                   node.argv(["--max-semi-space-size=1", "--no-opt", *node.knows(["--no-maglev"])], "closures")])
        recording = recorded(setup, programs, SECONDS / 2)
        problems, notes = tally_truths(recording, programs[:1])
        for program, name in zip(programs[1:], ("js-churn", "js-dropped", "js-closures")):
            t, unknown = NodeTally(name, program.truths[0]["foreign"]), 0
            for s in recording.stacks or []:
                if s.tid in program.threads:
                    s = inside_v8(s, program.truths[0])
                    t.take(s, judge_churn)
                    unknown += s.count * any(is_unknown(f) for f in s.user)
            problems += t.problems(20)
            notes += "; %s, %d unknown" % (t.summary(), unknown)
        return problems, notes


def judge_churn(stack):
    """Each function of a17 and b17 is below or above the other of that number; neither is said to have no name."""
    if any(f.name in SAID or is_unknown(f) for f in stack.user):
        return None
    names = " ".join(f.name for f, is_one in zip(stack.user, which_are_js(stack.user)) if is_one)
    # Before it says that it is ready.
    names = re.sub(r" short tell( \w+)*$", " short", names)
    numbers = set(re.findall(r"\b[ab](\d+)\b", names))
    if len(numbers) > 1 or not re.search(r"\b(churn|closures)( Function| \(anonymous\)| a\d+( b\d+( short)?)?)?$", names) and re.search("churn|closures", names):
        return names
    return None


def test_command(node, setup):
    """Started by sonde, and so met before it runs JavaScript."""
    program = Program([setup.program, "record", "-F", "997", "-f", "perf", "--lines", "-o", setup.file("command.perf"), "--",
                       *node.argv([], "plain")])
    with program:
        program.until_ready()
        before = cpu_seconds(program.pid)
        program.go()
        wait_until("1 s of CPU", lambda: cpu_seconds(program.pid) - before >= 1, 300)
        os.kill(program.pid, signal.SIGTERM)
        program.process.wait(300)
    with open(setup.file("command.perf"), encoding="utf-8") as f:
        stacks = runtimes.FrameText(f.read()).stacks
    t, without = NodeTally("command", program.truths[0]["foreign"]), 0
    truth = dict(program.truths[0], early=True)
    for s in stacks:
        s = inside_v8(s, truth)
        if s.comm in ("js-plain", "node", "deno", "electron") and "leaf" in [f.name for f in s.user]:
            t.take(s, functools.partial(judge, truth, False))
            without += s.count * any(f.name in ("plain", "executeUserEntryPoint") and not f.line for f in s.user)
    problems = t.problems(100)
    # Until something asks for the lines of a function there are none: of Node.js a moment, until the truth is told.
    if not truth["foreign"] and without > t.samples // 20:
        problems.append("%d of %d samples have no lines" % (without, t.samples))
    return problems, "%s, %d without lines" % (t.summary(), without)


def wrong_stack(threads, truth):
    """What is wrong with the threads that run JavaScript, as `sonde stack --json` and `sonde core --json` have them, or None."""
    threads = [t for t in threads if any(f["kind"] == "v8" for f in t["frames"])]
    if len(threads) != 1:
        return "%d threads with JavaScript" % len(threads)
    found = [(f["function"], f["file"] or "[v8]", f["line"] or 0) for f in threads[0]["frames"][::-1] if f["kind"] == "v8"]
    return wrong_chain(truth, found, False)


def test_core(node, setup):
    """`sonde core`."""
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as f:
        if f.read().strip() != "core":
            raise Skip("the kernel writes cores elsewhere")
    folder = setup.file("core-of-node")
    os.mkdir(folder)
    with Program(["sh", "-c", 'ulimit -c unlimited; exec "$@"', "-", *node.argv([], "methods")], cwd=folder) as program:
        truth = program.until_ready().truths[0]
        program.go()
        burnt(program.pid, 0.2)
        os.kill(program.pid, signal.SIGABRT)
        program.process.wait(300)
    cores = [os.path.join(folder, f) for f in os.listdir(folder)]
    if len(cores) != 1:
        raise Skip("no core was written: %s" % cores)
    done = subprocess.run([setup.program, "core", "--json", cores[0]], capture_output=True, text=True, timeout=300, check=True)
    os.unlink(cores[0])
    wrong = wrong_stack(json.loads(done.stdout)["threads"], truth)
    return [shorten(wrong, 1500)] if wrong else [], "methods"


def test_stack(node, setup):
    """`sonde stack`."""
    problems = []
    with contextlib.ExitStack() as stack:
        for program in started(stack, [node.argv([], c) for c in ("plain", "methods", "worker")]):
            truth = program.truths[0]
            program.go()
            burnt(program.pid, 0.1)
            wrong = wrong_stack(stack_of(setup, program.pid).values(), truth)
            problems += ["%s: %s" % (truth["comm"], shorten(wrong, 1500))] if wrong else []
    return problems, "3 programs"


def test_typed(node, setup):
    """TypeScript, which Deno makes JavaScript of, with other lines than the file has: none is shown."""
    typed = os.path.join(os.path.dirname(CASES), "typed.ts")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[node.path, "run", "-A", "--cached-only", "--no-config", typed]])
        recording = recorded(setup, programs, 0.5)
        problems, notes = tally_truths(recording, programs)
        ours = [f for s in recording.stacks or [] for f in s.user if f.file.endswith("typed.ts")]
        if not ours or any(f.line for f in ours):
            problems.append("%d frames of TypeScript, %d with lines" % (len(ours), sum(f.line > 0 for f in ours)))
        return problems, notes


def test_renamed(node, setup):
    """Under another name."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [node.renamed(setup).argv([], "plain")])
        return tally_truths(recorded(setup, programs, 0.5), programs)


def test_stripped(node, setup):
    """Without .symtab, as Debian has it: builtins are known by what V8 exports."""
    if node.is_stripped:
        raise Skip("it is already")
    if not 16 <= node.number <= 23:
        raise Skip("it does not export where its builtins are")
    if not shutil.which("strip"):
        raise Skip("no strip (binutils)")
    path = setup.file("stripped-node")
    subprocess.run(["strip", "-o", path, os.path.realpath(node.path)], check=True)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[path, CASES, case] for case in ("plain", "sort", "async", "hot")])
        for program in programs:
            program.truths[0]["stripped"] = True
        return tally_truths(recorded(setup, programs, 1), programs)


TESTS = (("chains", test_chains), ("tiers", test_tiers), ("wasm", test_wasm), ("async", test_async), ("collected", test_collected), ("command", test_command), ("stack", test_stack), ("core", test_core),
         ("renamed", test_renamed), ("typed", test_typed), ("stripped", test_stripped))


def arguments(parser):
    parser.add_argument("--node", default=os.environ.get("SONDE_NODE") or shutil.which("node"), help="the executable ($SONDE_NODE)")
    parser.add_argument("--zoo", metavar="VERSION", help="one of tests/zoo instead of this machine's")


def tests(setup, args):
    if not args.node and not args.zoo:
        raise Skip("no node here")
    kind, version = args.zoo.split("-", 1) if args.zoo and re.match("(deno|electron)-", args.zoo) else ("node", args.zoo)
    node = node_of(runtimes.from_zoo(kind, version) if args.zoo else args.node, setup)
    for name, test in TESTS:
        if isinstance(node, Deno) and test in (test_wasm, test_stripped):
            continue  # functions of modules are not known there
        if test == test_typed and not isinstance(node, Deno):
            continue
        # Cores are some hundred megabytes.
        if test == test_core and not os.environ.get("SONDE_ALL"):
            continue
        yield "%s-%s" % (node.version, name), functools.partial(test, node)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests, arguments, "v8"))
