#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby programs that know their chains (ruby/cases.rb): exact names, files and lines, in the right order, with native
frames between them where there are any.

    ruby_test.py [--ruby PATH | --zoo VERSION] [--sonde PROGRAM] [--only REGEX]

SONDE_RUBIES, paths with colons between, restricts the rubies. docs/ruby.md says what is shown.
"""
import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys

import runtimes
from python_test import is_first, recorded
from runtimes import FrameRecorder, Program, Tally, stack_of
from folded import shorten
from tap import Skip

CASES = os.path.join(runtimes.HERE, "ruby", "cases.rb")
SECONDS = float(os.environ.get("SONDE_SECONDS", "1.5"))  # of CPU, of all programs of a recording

TOGETHER = (os.environ.get("SONDE_SCENARIOS") or "plain recursion dynamic singleton from_class blocks comparing enumerating symbol_proc method_object evaluated rescued thrown "
            "loaded extension umläute traced refined kernel_loop fibers threads forked").split()

OUTERMOST = re.compile(r"_start|__clone3?|clone3?|thread_start|.*coroutine.*|fiber_entry")

# Of embed.c's program.
EMBEDDED = [("run_ruby", "<main>"), ("Kernel#through_c", "call_back"), ("call_back", "Object#back"), ("Array#each", "rb_ary_each")]
# What must stand right below a method that is written in C, or what it calls: (method, function).
BETWEEN = {"rb-blocks": [("Array#each", "rb_ary_each")],
           "rb-in-main": [("main", "run_ruby"), *EMBEDDED],
           "rb-in-thread": [("start_thread", "in_thread"), ("in_thread", "run_ruby"), *EMBEDDED],
           "rb-fiddle": [("Fiddle::Function#call", "rb_nogvl"), ("rb_thread_call_with_gvl", "Fiddle::Closure::BlockCaller#call")]}


class Ruby:
    def __init__(self, path):
        self.path = path
        done = subprocess.run([path, "-e", "puts RUBY_VERSION"], capture_output=True, text=True, check=True)
        self.version = tuple(map(int, done.stdout.split(".")[:2]))

    def argv(self, case):
        return [self.path, "-Ku", CASES, case]

    def has(self, library):
        """Those of the zoo that are built from a clone are without extensions."""
        return not subprocess.run([self.path, "-r" + library, "-e", ""], capture_output=True, check=False).returncode


def unqualified(name):
    """As Ruby has it before 3.4: without the class."""
    return re.sub(r"(?:(?<=^)|(?<= in ))[\w:]+[#.](?=[^.])", "", name)


def same(truth, frame, version):
    """Does a frame say what Ruby says? Of a method in C Ruby tells the caller's line, since 4.0 also of its own ones that are written in Ruby."""
    label, path, line = truth
    if frame.name == "[unknown]":
        return True  # gone or moved before it was read: no wrong name, and counted
    name = frame.name if version >= (3, 4) else unqualified(frame.name)
    in_c = (not frame.line and frame.file == "[ruby]") or (version >= (4, 0) and frame.file.startswith("<internal:"))
    return name == label and (in_c or (frame.file == path and frame.line == line))


def merged(frames):
    """As Ruby has it since 3.4: a method that rescues or ensures is one frame, where that is."""
    ret = []
    for f in frames:
        name = re.sub(r"^((rescue|ensure) in )+", "", f.name)
        if name != f.name and ret:
            ret.pop()
        ret.append(f._replace(name=name))
    return ret


def judge(truth, version, stack):
    """What is wrong with a stack; None: nothing."""
    frames = [f for f in stack.user if f.runtime == "ruby"]
    if version >= (3, 4):
        frames = merged(frames)
    chain, lines = list(truth["chain"]), truth.get("lines")
    if not frames:
        return "no Ruby frame\n     all: " + " ; ".join(f.name for f in stack.user)
    # What the leaf itself calls is a frame of its own.
    while frames and len(frames) > len(chain) and frames[-1].name in ("Integer#*", "Integer#%", "Integer#+"):
        frames.pop()
    wrong = None
    if len(frames) != len(chain):
        wrong = "%d frames, not %d" % (len(frames), len(chain))
    else:
        for t, f in zip(chain[:-1], frames[:-1]):
            if not same(t, f, version):
                wrong = "%s is %s" % (t, tuple(f[:3]))
        leaf = frames[-1]
        if lines and leaf.name != "[unknown]" and not (same([chain[-1][0], leaf.file, leaf.line], leaf, version) and leaf.file == chain[-1][1]
                          and lines[0] <= leaf.line <= lines[1]):
            wrong = "the leaf is %s, not in %s" % (tuple(leaf[:3]), lines)
    names = truth.get("names")
    if names and not wrong and [f.name for f in frames][-len(names):] != names:
        wrong = "names are %s" % [f.name for f in frames]
    all_names = [f.name for f in stack.user]
    if not wrong and not OUTERMOST.fullmatch(all_names[0]) and not is_first(stack.user[0], all_names[0]) and not re.search("fiber|external|ractor", truth["comm"]):
        wrong = "it begins with " + all_names[0]
    for method, function in BETWEEN.get(truth["comm"], ()):
        if not wrong and (method not in all_names or function not in all_names[all_names.index(method):][:6]):
            wrong = "%s does not follow %s" % (function, method)
    return wrong and "%s\n     all: %s" % (wrong, " ; ".join(f.name for f in stack.user))


def started(stack, argvs, env=None):
    """Programs that have all said where they are; they end with the ExitStack."""
    programs = [stack.enter_context(Program(argv, {"LANG": "C.UTF-8", **(env or {})}, nice=5)) for argv in argvs]
    return [p.until_ready() for p in programs]


def begun(stack):
    """Not still telling where it is, or leaving that; nor a native thread that has no ractor to run."""
    if stack.comm == "rb-ractor" and not any(f.runtime == "ruby" or f.name.startswith("[ruby: ") for f in stack.user):
        return False
    return not any(re.search(r"#(tell|wait_for_go|rename)$", f.name) for f in stack.user)


def is_marked(stack):
    """Is something said to be missing?"""
    return any(re.fullmatch(r"\[ruby: \w+\]", f.name) for f in stack.user)


def tally_truths(ruby, recording, programs, least=10, may_be_marked=False, unknown_percent=5):
    problems, notes = list(recording.problems), []
    for program in programs:
        for truth in program.truths:
            t = Tally(truth["comm"])
            t.unknown = marked = 0
            for stack in recording.stacks or []:
                if stack.comm != truth["comm"] or not begun(stack):
                    continue
                if may_be_marked and is_marked(stack):
                    marked += stack.count
                else:
                    t.take(stack, functools.partial(judge, truth, ruby.version))
                    t.unknown += stack.count * any(f.name == "[unknown]" and f.runtime == "ruby" for f in stack.user)
            if marked > max(2, t.samples / 20):
                problems.append("%s: %d samples are marked, of %d" % (t.name, marked, t.samples))
            if t.unknown > max(2, t.samples * unknown_percent / 100):
                problems.append("%s: %d of %d samples have frames without names" % (t.name, t.unknown, t.samples))
            # Threads share the lock of the interpreter: it is Ruby's to say whose turn it is.
            problems += t.problems(least if len(program.truths) == 1 else 0)
            notes.append(t.summary())
    return problems, ", ".join(notes)


def test_chains(ruby, setup):
    """All cases at once; sonde comes long after they began."""
    with contextlib.ExitStack() as stack:
        cases = TOGETHER + ["ractor"] * (ruby.version >= (3, 0) and "SONDE_SCENARIOS" not in os.environ)
        if "extension" in cases and not ruby.has("date_core"):
            cases.remove("extension")
        programs = started(stack, [ruby.argv(c) + [setup.scratch] for c in cases])
        return tally_truths(ruby, recorded(setup, programs, SECONDS), programs)


def test_compacting(ruby, setup):
    """Functions are moved in memory: none has another one's name. What is moved before its name is read has none, which happens when
    compaction begins, for as long as sonde waits for a CPU; later they are where they will stay. Therefore there are two recordings of a
    program: in the second one a percent may be without names. A thread that is sampled while another one moves its functions is marked."""
    problems, notes = [], []
    with contextlib.ExitStack() as stack:
        programs = started(stack, [ruby.argv("compacting")])
        for unknown_percent in (50, 1):
            programs[0].resume()
            found, note = tally_truths(ruby, recorded(setup, programs, 1), programs, may_be_marked=True, unknown_percent=unknown_percent)
            problems += found
            notes.append(note)
    return problems, ", then ".join(notes)


def churn_wrong(stack):
    """The leaf says which function must have called it."""
    frames = [f for f in stack.user if f.runtime == "ruby"]
    if any("unknown" in f.name for f in frames):
        return None
    for f in frames:
        m = re.fullmatch(r"(?:caller|leaf)_(\d+)", unqualified(f.name))
        if m and (f.file != "/churn/%s.rb" % m[1] or not 1 <= f.line <= 9):
            return "%s\n     all: %s" % (tuple(f[:3]), " ; ".join(f.name for f in stack.user))
    numbers = {m[1] for f in frames for m in [re.fullmatch(r".*(?:caller|leaf)_(\d+)", f.name)] if m}
    return "several at once: %s" % [f.name for f in frames] if len(numbers) > 1 else None


def test_fiddle(ruby, setup):
    """C code of another library, called through libffi, calls back into Ruby."""
    if not ruby.has("fiddle"):
        raise Skip("no fiddle")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [ruby.argv("fiddle")])
        return tally_truths(ruby, recorded(setup, programs, 0.5), programs)


def test_churn(ruby, setup):
    """Methods made and dropped all the time, at a high frequency: no wrong name."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [ruby.argv("churn")] * 2)
        recording = recorded(setup, programs, 1, 4999)
    t = Tally("churn")
    unknown = named = 0
    for s in recording.stacks or []:
        t.take(s, churn_wrong)
        unknown += s.count * any("unknown" in f.name for f in s.user if f.runtime == "ruby")
        named += s.count * any(re.search(r"leaf_\d+$", f.name) for f in s.user)
    problems = recording.problems + t.problems(500)
    if named < 100:
        problems.append("%d samples in generated methods with names" % named)
    return problems, "%d samples, %d in named generated methods, %d with unknown ones" % (t.samples, named, unknown)


# Of ruby/busy.rb: who calls a method or a block, and whether native frames are between the two, those of a method in C.
ROUND = ("plain blocks maps times sorts compares adds strings yields misses sends lambdas procs rescues ensures throws breaks returns evals execs taps "
         "hashes injects symbols gsubs loops defined_by enums fibers").split()
BUSY = {
    **{"Object#" + name: (("Object#round",), False) for name in ROUND},
    **{"block in Object#" + name: ((method,), True) for name, method in (
        ("blocks", "Array#each"), ("maps", "Array#map"), ("times", "Integer#times"), ("sorts", "Array#sort"), ("breaks", "Array#each"),
        ("returns", "Array#each"), ("evals", "BasicObject#instance_eval"), ("execs", "BasicObject#instance_exec"), ("hashes", "Hash#each"),
        ("injects", "Array#each"), ("gsubs", "String#gsub"), ("loops", "Kernel#loop"), ("throws", "Kernel#catch"))},
    "block in Object#maps": (("Array#map", "Array#each"), True),
    "block in Object#yields": (("Num#each",), False),
    "block in Object#lambdas": (("Object#lambdas",), False),
    "block in Object#procs": (("Object#procs",), False),
    "block in Object#taps": (("Kernel#tap",), False),
    "block in <main>": (("Object#defined_by",), True),
    "block (2 levels) in Object#throws": (("Array#each",), True),
    "Object#round": (("<main>",), False),
    "Object#fib": (("Object#plain", "Object#fib"), False),
    "Object#even": (("Object#plain", "Object#odd"), False),
    "Object#odd": (("Object#even",), False),
    "Object#raises": (("Object#rescues", "Object#raises"), False),
    "rescue in Object#rescues": (("Object#rescues",), False),
    "Num#initialize": (("Class#new",), True),
    "Num#<=>": (("Comparable#<",), True),
    "Num#+": (("Object#adds",), False),
    "Num#to_s": (("Object#strings",), False),
    "Num#each": (("Object#yields",), False),
    "Num#method_missing": (("Object#misses",), False),
    "Array#each": (("Object#blocks", "Object#breaks", "Object#returns", "Object#enums", "block in Object#throws", "Enumerable#inject",
                    "Enumerable#sort_by"), None),
    "Kernel#throw": (("block (2 levels) in Object#throws",), False),
    "Object#small": (("Object#plain", "Object#sends", "Object#ensures", "rescue in Object#rescues", "Num#<=>", "Num#to_s", "Num#method_missing",
                      "block in <main>", "block in Object#fibers", "block (2 levels) in Object#throws", "Method#call",
                      *("block in Object#" + n for n in ROUND if n != "throws")), False),
}
# What is written in C before that version, in Ruby since then; or called by C.
IN_RUBY_SINCE = {"block in Object#times": (3, 3), "block in Object#taps": (3, 0), "block in Object#loops": (3, 3), "block in <main>": (3, 3)}
BUSY_RB = os.path.join(runtimes.HERE, "ruby", "busy.rb")


def busy_lines():
    """Method or block -> its line in busy.rb: each is in one."""
    with open(BUSY_RB, encoding="utf-8") as f:
        lines = f.read().rstrip("\n").split("\n")
    found, inside = {"<main>": len(lines)}, "Object"
    for number, line in enumerate(lines, 1):
        if line.startswith("class Num"):
            inside = "Num"
        for name in re.findall(r"def ([^\s(;]+)", line):
            for block in ("", "block in ", "block (2 levels) in ", "rescue in "):
                found["%s%s#%s" % (block, inside, name)] = number
        if line == "end":
            inside = "Object"
        if line.startswith("define_method"):
            found["block in <main>"] = number
    return found


MJIT = ("--jit", "--mjit")

# Methods in C up to 3.3; then in Ruby where YJIT is at work.
IN_RUBY_WITH_YJIT = ("Array#each", "Array#map")


@functools.lru_cache
def busy_of(version, jit):
    """BUSY as such a Ruby has it."""
    ret = {name: (callers, version < IN_RUBY_SINCE[name] if name in IN_RUBY_SINCE else native)
           for name, (callers, native) in BUSY.items()}
    if version < (3, 3):  # what calls it has no name where names were stripped, else it is hidden
        ret["block in <main>"] = (BUSY["block in <main>"][0], None)
    if version >= (4, 0):  # Class#new is an instruction of its own
        ret["Num#initialize"] = (("Class#new", "Num#+", *("Object#" + n for n in ("compares", "adds", "strings", "yields", "misses"))), None)
    if jit and version >= (3, 4):
        ret.update({name: (callers, None) for name, (callers, _) in ret.items() if set(callers) & set(IN_RUBY_WITH_YJIT)})
    if jit in MJIT:  # its functions are native code, which is between them where the caller is compiled
        ret = {name: (callers, native or None) for name, (callers, native) in ret.items()}
    if jit == "--rjit":  # it calls a function for Proc#call (rjit_optimized_call())
        ret.update({name: (ret[name][0], None) for name in ("block in Object#lambdas", "block in Object#procs")})
    return ret


def busy_wrong(version, lines, jit, stack):
    """What is wrong with a stack of busy.rb, at whatever instruction."""
    frames, busy = stack.user, busy_of(version, jit)
    at = [i for i, f in enumerate(frames) if f.runtime == "ruby"]
    text = "\n     all: " + " ; ".join("%s:%d" % (f.name, f.line) for f in frames)
    if not at:
        return "no Ruby frame" + text if any(f.name == "ruby_run_node" for f in frames) else None  # a fiber of C code
    first = {"<main>", "block in Object#fibers"}
    if jit and version >= (3, 4):
        first.add("Array#each")  # an enumerator's fiber
    if frames[at[0]].name not in first:
        return "it begins with %s%s" % (frames[at[0]].name, text)
    for caller, i in zip(at, at[1:]):
        name = frames[i].name
        # RJIT's compiler calls Array#each and others, too.
        if name not in busy or "RubyVM::RJIT" in frames[caller].name:
            continue
        callers, native = busy[name]
        if frames[caller].name not in callers:
            return "%s called by %s%s" % (name, frames[caller].name, text)
        if frames[caller].name == "Method#call":
            native = True
        if native is not None and native != (i > caller + 1):
            return "%s frames before %s%s" % ("native" if not native else "no native", name, text)
    for f in (frames[i] for i in at):
        if jit and not f.line and f is frames[at[-1]]:
            continue  # code of YJIT's does not keep it
        if f.name in lines and f.line != lines[f.name]:
            return "%s in line %d%s" % (f.name, f.line, text)
    return None


def test_yjit(ruby, setup):
    """test_busy(), compiled by YJIT."""
    code = "exit defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?"
    if subprocess.run([ruby.path, "--yjit", "-e", code], capture_output=True, check=False).returncode:
        raise Skip("no YJIT")
    return test_busy(ruby, setup, ["--yjit"])


def test_rjit(ruby, setup):
    """test_busy(), compiled by RJIT, of 3.3 and 3.4. Where the program lies out of reach of its code, RJIT itself raises errors."""
    code = "def more(n); n + 1; end; 1000.times { |i| more(i) }; exit defined?(RubyVM::RJIT::Compiler) && RubyVM::RJIT.enabled?"
    if subprocess.run([ruby.path, "--rjit", "-e", code], capture_output=True, check=False).returncode:
        raise Skip("no RJIT")
    return test_busy(ruby, setup, ["--rjit"])


def test_mjit(ruby, setup):
    """test_busy(), compiled by a C compiler, of 2.6 to 3.2: functions of libraries that are made all the time."""
    option = MJIT[ruby.version >= (3, 1)]
    code = "def more(n); n + 1; end; 1000.times { |i| more(i) }; exit !Dir.glob(\"/tmp/_ruby_mjit_p#{$$}*\").empty?"
    if subprocess.run([ruby.path, option, option + "-wait", option + "-save-temps", "-e", code], capture_output=True, check=False).returncode:
        raise Skip("no MJIT")
    return test_busy(ruby, setup, [option, option + "-wait", option + "-min-calls=100"], 120)


def test_busy(ruby, setup, options=(), rounds=0):
    """Methods and blocks that are entered and left all the time: right at every instruction, or marked."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[ruby.path, *options, BUSY_RB, str(rounds)]])
        recording = recorded(setup, programs, 2, 4999)
    t, lines, marked = Tally("busy"), busy_lines(), 0
    for s in recording.stacks or []:
        if is_marked(s):
            marked += s.count
        else:
            t.take(s, functools.partial(busy_wrong, ruby.version, lines, (options or [""])[0]))
    wrong = sum(t.wrong.values())
    # Some single instruction of another compiler's order; up to 2.7 frames that are not filled yet: docs/ruby.md.
    least = 500 if ruby.version < (3, 0) else 10000 if "--yjit" in options else 2000  # RJIT's compiler is Ruby, too
    if wrong <= t.samples / least:
        t.wrong.clear()
    problems = recording.problems + t.problems(1000)
    compiled = sum(s.count for s in recording.stacks or [] if any(re.match("_mjit\\d", f.name) for f in s.user))
    if marked > t.samples / 20:
        problems.append("%d samples are marked, of %d" % (marked, t.samples))
    if set(options) & set(MJIT) and compiled < t.samples / 2:
        problems.append("%d samples of %d in code that MJIT made" % (compiled, t.samples))
    return problems, "%s, %d wrong, %d marked, %d in MJIT's" % (t.summary(), wrong, marked, compiled)


def test_stack(ruby, setup):
    """`sonde stack` of threads that wait."""
    problems, nr = [], 0
    with contextlib.ExitStack() as stack:
        program, = started(stack, [ruby.argv("waiting")])
        threads = stack_of(setup, program.pid)
        for truth in program.truths:
            mine = [t for t in threads.values() if t["name"] == truth["comm"]]
            if len(mine) != 1 or not mine[0]["complete"]:
                problems.append("%s: %s" % (truth["comm"], shorten(str(mine), 500)))
                continue
            names = [unqualified(f["function"]) for f in mine[0]["frames"] if f["kind"] == "ruby"][::-1]
            want = [unqualified(c[0]) for c in truth["chain"]]
            nr += len(names)
            if names[:len(want)] != want:
                problems.append("%s: %s is not %s" % (truth["comm"], names, want))
    return problems, "%d frames" % nr


def test_command(ruby, setup):
    """A command is recorded from its beginning; whatever is in the leaf is right."""
    recorder = FrameRecorder(setup, [], ruby.argv("plain"), stdout=subprocess.PIPE, env={"CPU_SECONDS": "2", "LANG": "C.UTF-8"})
    recording = recorder.wait(250, 128 + signal.SIGXCPU)
    with_ruby = sum(s.count for s in recording.stacks or [] if any(f.name == "Object#leaf" for f in s.user))
    notes = sum(s.count for s in recording.stacks or [] if any(re.fullmatch(r"\[ruby: \w+\]", f.name) for f in s.user))
    problems = list(recording.problems)
    if with_ruby < 50:
        problems.append("%d samples in the leaf" % with_ruby)
    return problems, "%d samples in the leaf, %d with notes" % (with_ruby, notes)


def libruby(ruby):
    """Of a program of this machine: the name by which it needs libruby, and where that is; or two times None."""
    with open(ruby.path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            raise Skip("it runs in a root of its own")
    ldd = subprocess.run(["ldd", ruby.path], capture_output=True, text=True, check=False).stdout
    m = re.search(r"^\s*(libruby\S*) => (/\S+)", ldd, re.M)
    return m.groups() if m else (None, None)


def test_renamed(ruby, setup):
    """Copies under other names, of the program and of its library."""
    name, library = libruby(ruby)
    program, other = setup.file("worker-bee"), "worker-bees-library"
    with open(ruby.path, "rb") as f:
        text = f.read()
    if library:
        other = other[:len(name)].ljust(len(name), "s")
        text = text.replace(name.encode() + b"\0", other.encode() + b"\0")
        shutil.copy(library, setup.file(other))
    with open(program, "wb") as f:
        f.write(text)
    os.chmod(program, 0o755)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[program, "-Ku", CASES, c] for c in ("plain", "blocks")], {"LD_LIBRARY_PATH": setup.scratch})
        if library:
            with open("/proc/%d/maps" % programs[0].pid, encoding="utf-8") as f:
                maps = f.read()
            if "libruby" in maps or other not in maps:
                raise AssertionError("libruby is what it maps: " + maps)
        return tally_truths(ruby, recorded(setup, programs, 0.5), programs)


def test_embedded(ruby, setup):
    """A C program that is linked to libruby, which runs in its first thread, or in another one; from C to Ruby to C to Ruby."""
    _, library = libruby(ruby)
    if not library:
        raise Skip("no libruby")
    program = setup.file("embed")
    subprocess.run(["gcc", "-O1", "-g", "-pthread", os.path.join(runtimes.HERE, "ruby", "embed.c"), "-o", program, library], check=True)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[program, where, CASES, "embedded", where] for where in ("main", "thread")])
        return tally_truths(ruby, recorded(setup, programs, 0.5), programs)


TESTS = (("chains", test_chains), ("compacting", test_compacting), ("fiddle", test_fiddle), ("churn", test_churn), ("busy", test_busy),
         ("yjit", test_yjit), ("rjit", test_rjit), ("mjit", test_mjit), ("stack", test_stack), ("command", test_command),
         ("renamed", test_renamed), ("embedded", test_embedded))


def arguments(parser):
    parser.add_argument("--ruby", default=shutil.which("ruby"), help="another one than the machine's")
    parser.add_argument("--zoo", metavar="VERSION", help="one of tests/zoo instead of this machine's")


def tests(_setup, args):
    paths = [runtimes.from_zoo("ruby", args.zoo)] if args.zoo else (os.environ.get("SONDE_RUBIES") or args.ruby or "").split(":")
    if not paths[0]:
        raise Skip("no ruby")
    for ruby in map(Ruby, paths):
        for name, test in TESTS:
            yield "ruby-%d.%d-%s" % (*ruby.version, name), functools.partial(test, ruby)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests, arguments, "ruby"))
