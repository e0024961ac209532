#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PHP programs that know their chains (php/cases.php): exact names, files and lines, in the right order.

    php_test.py [--php PROGRAM | --zoo VERSION] [--sonde PROGRAM] [--only REGEX]

SONDE_PHPS, paths with colons between, restricts the PHPs. docs/php.md says what is shown.
"""
import contextlib
import functools
import os
import platform
import re
import shutil
import subprocess
import sys

import runtimes
from folded import shorten
from python_test import PythonTally, chain_text, is_first, recorded, started, settled_stacks
from runtimes import Tally
from tap import Skip

CASES = os.path.join(runtimes.HERE, "php", "cases.php")
SECONDS = float(os.environ.get("SONDE_SECONDS", "1.5"))  # of CPU, of all programs of a recording

ALL = (os.environ.get("SONDE_SCENARIOS") or "plain methods recursion closures callbacks generator send_generator yield_from interfaces destructor top_destructor "
       "unset_destructor exceptions in_handler included autoload in_shutdown anonymous forked fiber").split()
JIT_CASES = "jit plain methods recursion closures generator yield_from callbacks destructor exceptions fiber".split()
SINCE = {"fiber": (8, 1)}
NEEDS = {"forked": "pcntl_fork"}
# What the leaf itself calls, beyond where the chain was told.
OF_LEAF = {"tell", "primes", "strlen", "str_repeat", "abs", "substr", "preg_match", "preg_match_all", "preg_replace_callback"}
MARK = re.compile(r"\[\w+: \w+\]")
HIDDEN = re.compile(r"execute_ex|zend_execute|zend_call_function|zend_generator_resume")


class Php:
    """An interpreter: where it is, which one."""

    def __init__(self, path, options=()):
        self.path, self.options = path, list(options)
        told = self.run("echo PHP_MAJOR_VERSION, ' ', PHP_MINOR_VERSION, ' ', (int)PHP_ZTS;")
        major, minor, zts = map(int, told.split()[-3:])  # behind what it may say of an extension
        self.version, self.zts = (major, minor), bool(zts)
        self.name = "%d.%d%s" % (major, minor, "-zts" if zts else "")

    def run(self, code):
        return subprocess.run([self.path, *self.options, "-r", code], capture_output=True, text=True, check=True).stdout

    def cases(self, names):
        have = self.run("foreach (%s as $f) if (function_exists($f)) echo $f, ' ';"
                        % ("['" + "', '".join(NEEDS.values()) + "']")).split()
        return [n for n in names if self.version >= SINCE.get(n, (0, 0)) and NEEDS.get(n, have and have[0]) in have + [None]]

    def argv(self, case, setup):
        return [self.path, *self.options, CASES, case, setup.scratch]


def is_php(frame):
    return frame.runtime == "php"


def wrong_chain(truth, found):
    """What is wrong with PHP frames (name, file, line), outermost first, or None."""
    want, (low, high) = truth["chain"], truth["lines"]
    inside, beyond = found[:len(want)], [f[0] for f in found[len(want):]]
    if len(inside) == len(want) and [list(f) for f in inside[:-1]] == want[:-1] and list(inside[-1][:2]) == want[-1][:2]:
        line = inside[-1][2]
        if truth.get("jit") and not line:
            line = low  # code of the JIT's does not keep it
        # It goes on from where it has told its chain.
        if (set(beyond[:1]) <= OF_LEAF) and want[-1][2] <= line <= high:
            return None
    return "%s\n     not %s in line %d to %d" % (chain_text(found), chain_text(want), low, high)


def judge(truth, stack):
    found = [(f.name, f.file, f.line) for f in stack.user if is_php(f)]
    wrong = wrong_chain(truth, found)
    if not wrong and any(HIDDEN.fullmatch(f.name) for f in stack.user if not is_php(f)):
        wrong = "frames of the interpreter"
    if not wrong and "in_fiber" not in truth and not is_first(stack.user[0], stack.user[0].name):
        wrong = "it begins with %s" % stack.user[0].name
    if wrong:
        wrong += "\n     all: " + " ; ".join("%s(%s)" % (f.name, os.path.basename(f.file)) for f in stack.user)
    return wrong


def truths_of(program):
    """A fiber's stack is its own: who resumed it is on another one."""
    for truth in program.truths:
        if truth["comm"] == "php-fiber":
            at = [c[0] for c in truth["chain"]].index("Fiber::resume") + 1
            truth["chain"].insert(at, ["[php: other_stack]", "[php]", 0])
            truth["in_fiber"] = True
    return program.truths


# Nothing tells there whose chain it is while fibers change: all that may be on the stack then is marked (docs/php.md).
CHANGES_ARE_MARKED = platform.machine() == "aarch64"
# Stacks of the case `fibers`: PHP's names. On the program's own native stack, and on a fiber's, behind who has begun it or gone on with it. As
# soon as it has said that it will be left, nobody has.
OTHER = re.escape(";[php: other_stack]")
ON_FIRST = re.compile(r"\{main\};fibers(;tell(;\w+)?|(;fiber_resume){1,16}(;Fiber::resume)?|;Fiber::(__construct|start))?")
ON_FIBERS = [re.compile(pattern) for pattern in (
    r"\{main\};fibers;Fiber::start" + OTHER + r"(;fiber_brief|;str_repeat|;fiber_nested(;Fiber::(__construct|start))?)?",
    r"\{main\};fibers;Fiber::start" + OTHER + r";fiber_nested;Fiber::start" + OTHER + "(;fiber_brief)?",
    r"\{main\};fibers(;fiber_resume){16};Fiber::resume" + OTHER + r"(;fiber_deep){16}(;Fiber::suspend)?",
    OTHER[1:] + r"(;fiber_deep){16};Fiber::suspend")]


def fibers_wrong(switches, stack):
    """Which native stack it is, its outermost frame tells; and who has called zend_fiber_switch_context(), whose chain it must be (`switches`):
    until that has written it, PHP has the other one's."""
    names = [f.name for f in stack.user if is_php(f)]
    text = ";".join(names)
    if CHANGES_ARE_MARKED and "[php: mismatch]" in names:
        return None
    if not names or "[php: unreadable]" in names:
        # A moment after the stack pointer was changed, nothing tells where that stack goes on.
        marked = any(MARK.fullmatch(f.name) for f in stack.user)
        return None if marked else "no frame of PHP's and no mark: " + " ; ".join(f.name for f in stack.user)
    first = is_first(stack.user[0], stack.user[0].name)
    if not (ON_FIRST.fullmatch(text) if first else any(p.fullmatch(text) for p in ON_FIBERS)):
        return "%s: %s" % ("the first stack" if first else "a fiber's", " ; ".join(f.name for f in stack.user))
    own = [n for n in names if not n.startswith("Fiber::")][-1]
    for caller, frame in zip(stack.user, stack.user[1:]):
        if frame.name == "zend_fiber_switch_context" and not is_php(caller) and own in ("fiber_deep", "fiber_resume") \
                and switches.setdefault(caller.address, own) != own:
            return "what calls it for %s: %s" % (switches[caller.address], " ; ".join(f.name for f in stack.user))
    return None


class PhpTally(PythonTally):
    """Memory that was not there for a moment (a kernel that takes cold pages away has that) is said where frames are missing."""

    def take(self, stack, judge_stack):
        if not stack.reason and any(f.name == "[php: unreadable]" for f in stack.user):
            stack = stack._replace(reason="unreadable")
        super().take(stack, judge_stack)


def tally_truths(recording, programs, least=20, complete_percent=99.0):
    problems, notes = list(recording.problems), []
    for program in programs:
        for truth in truths_of(program):
            t = PhpTally(truth["comm"])
            for stack in recording.stacks or []:
                if stack.comm == truth["comm"]:
                    t.take(stack, functools.partial(judge, truth))
            problems += t.problems(least, complete_percent)
            notes.append(t.summary())
    return problems, ", ".join(notes)


def test_chains(php, setup):
    """All cases at once; sonde comes after they began."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [php.argv(c, setup) for c in php.cases(ALL)])
        return tally_truths(recorded(setup, programs, SECONDS), programs)


def test_stack(php, setup):
    """`sonde stack` of programs that work."""
    problems, nr = [], 0
    with contextlib.ExitStack() as stack:
        for program in started(stack, [php.argv(c, setup) for c in ("methods", "callbacks")]):
            threads = settled_stacks(setup, program)
            truth = program.truths[0]
            mine = [t for t in threads.values() if t["name"] == truth["comm"]]
            found = [(f["function"], f["file"] or "[php]", f["line"] or 0) for t in mine for f in t["frames"][::-1]
                     if f["kind"] == "php"]
            wrong = wrong_chain(truth, found) if len(mine) == 1 and mine[0]["complete"] else shorten(str(mine), 500)
            problems += ["%s: %s" % (truth["comm"], wrong)] if wrong else []
            nr += len(found)
    return problems, "%d frames" % nr


def test_patterns(php, setup):
    """PCRE's JIT code, in no file and without frame pointers: PHP's frames are around it, once the walker has learned its functions.
    What these call within themselves is cut until then, which takes as long as the agent waits for a CPU."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [php.argv("patterns", setup)])
        return tally_truths(recorded(setup, programs, 1), programs, 500, complete_percent=95)


def test_fibers(php, setup):
    """Fibers that begin, are left and gone on with, and end: each sample has its PHP frames, or says why not, and those of its native stack."""
    if php.version < SINCE["fiber"]:
        raise Skip("no fibers")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [php.argv("fibers", setup)])
        recording = recorded(setup, programs, 2, 4999)
    t = PhpTally("fibers")
    switches = {}
    bare = begun = 0
    for s in recording.stacks or []:
        t.take(s, functools.partial(fibers_wrong, switches))
        names = [f.name for f in s.user if is_php(f)]
        begun += s.count * (names[-1:] == ["[php: other_stack]"])
        bare += s.count * bool(s.user and (not names or "[php: mismatch]" in names))
    note = "%s, %d where a fiber begins or ends, %d in no frame of PHP's" % (t.summary(), begun, bare)
    # Of the code that changes the stack pointer, half a percent is cut and as much is marked.
    problems = recording.problems + t.problems(200, complete_percent=95)
    if begun < t.samples / 200 or bare > t.samples / 20 or (len(switches) < 2 and not CHANGES_ARE_MARKED):
        problems.append(note)
    return problems, note


def churn_wrong(stack):
    """A caller's class was made in one eval() and the leaf in another one: their numbers are the same."""
    frames = [f for f in stack.user if is_php(f)]
    names = [f.name for f in frames]
    if not frames or any("unknown" in n or n.startswith("[php:") for n in names):
        return None  # said to be unknown: no wrong name, and counted by the test
    callers = [n for n in names if n.startswith("class@anonymous::caller_")]
    if names[:1] != ["{main}"] or len(callers) > 1 or (callers and names[1:3] != ["churn", callers[0]]):
        return "%s\n     all: %s" % ([tuple(f[:3]) for f in frames], " ; ".join(f.name for f in stack.user))
    return None


def test_churn(php, setup):
    """Functions made and dropped all the time, at a high frequency: no wrong name."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [php.argv("churn", setup)])
        # Longer than what comes before it is known: on a busy machine that was seen to be two tenths of a second.
        recording = recorded(setup, programs, 4, 4999)
    t = PythonTally("churn")
    unknown = named = 0
    for s in recording.stacks or []:
        t.take(s, churn_wrong)
        unknown += s.count * any("unknown" in f.name for f in s.user)
        named += s.count * any("::caller_" in f.name for f in s.user)
    problems = recording.problems + t.problems(200)
    if named < 50:
        problems.append("%d samples in generated methods with names" % named)
    return problems, "%d samples, %d in generated methods with names, %d unknown" % (t.samples, named, unknown)


def brief_wrong(chains, stack):
    """A sample in the leaf is in one of the chains; those above it may be in any of their frames, in any line."""
    frames = [f for f in stack.user if is_php(f)]
    names = [f.name for f in frames]
    chain = [[f.name, f.file, f.line] for f in frames]
    at = names.index("brief_leaf") if "brief_leaf" in names else None
    if names[2:3] == ["tell"] or any(n == "[unknown]" or n.startswith("[php:") for n in names):
        return None  # it is being told to go on; or no name, and the test counts these
    if at is not None:
        # The chains were told from another line of the program.
        right = any(names[:2] == [f[0] for f in c[:2]] and chain[2:at] == c[2:] for c in chains)
    else:
        known = {c[0] for whole in chains for c in whole} | {"Brief::make", "Closure::call", "strlen", "array_map"}
        right = set(names) <= known
    return None if right else "%s\n     all: %s" % (chain_text([tuple(c) for c in chain]), " ; ".join(f.name for f in stack.user))


def judge_brief(php, setup, case, what, is_it):
    """A case whose chains are gone as soon as they were run: at most a percent of its samples lacks a name, half have `what`. Apart from
    the first ones, before sonde has read the process: how many these are depends on what else the machine does."""
    with contextlib.ExitStack() as stack:
        programs = started(stack, [php.argv(case, setup)])
        chains = programs[0].truths[0]["lines"]
        recording = recorded(setup, programs, 2, 4999)
    t = PhpTally(case)
    unknown = named = early = 0
    for s in recording.stacks or []:
        t.take(s, functools.partial(brief_wrong, chains))
        is_early = any(f.name == "[php: not_ready]" for f in s.user)
        early += s.count * is_early
        unknown += s.count * (not is_early and any(is_php(f) and (f.name == "[unknown]" or MARK.fullmatch(f.name)) for f in s.user))
        named += s.count * any(is_it(f.name) for f in s.user)
    note = "%d samples, %d in %s with names, %d early, %d unknown or marked" % (t.samples, named, what, early, unknown)
    problems = recording.problems + t.problems(200)
    if unknown > t.samples / 100 or early > t.samples / 5 or named < t.samples / 2:
        problems.append(note)
    return problems, note


def test_brief(php, setup):
    """Closures that are made, called and dropped at once: their names are what their declarations say, and there."""
    return judge_brief(php, setup, "brief", "closures", lambda name: "{closure" in name)


def test_brief_files(php, setup):
    """Files that have run as soon as they are included: what opcache keeps of them says which they were, and where."""
    made = with_opcache(php, ("opcache.file_update_protection=0", "opcache.jit=off"), "opcache_get_status()['opcache_enabled'] ?? false")
    return judge_brief(made, setup, "brief_files", "files", lambda name: name in ("include", "require"))


def embedding(php, setup):
    """embed.c, linked to that PHP's library, and the flags that its headers need."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(php.path)))
    if not php.zts and php.version == (8, 2) and shutil.which("php-config8.2") and os.path.exists("/usr/lib/libphp8.2.so"):
        flags = subprocess.run(["php-config8.2", "--includes"], capture_output=True, text=True, check=True).stdout.split() + ["-lphp8.2"]
    elif php.zts and os.path.exists(os.path.join(prefix, "lib/libphp.so")):
        flags = ["-I%s/include/php/%s" % (prefix, part) for part in ("", "main", "Zend", "TSRM")]
        flags += ["-L%s/lib" % prefix, "-Wl,-rpath,%s/lib" % prefix, "-lphp"]
    else:
        raise Skip("no libphp")
    program = setup.file("embed")
    subprocess.run(["gcc", "-w", os.path.join(runtimes.HERE, "php", "embed.c"), "-o", program, *flags], check=True)
    return program


def test_embedded(php, setup):
    """A C program that is linked to libphp, and has variables of that in itself (copy relocations): executor_globals; thread-safe, executor_globals_offset."""
    program = embedding(php, setup)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[program, CASES, c, setup.scratch] for c in ("plain", "callbacks")])
        return tally_truths(recorded(setup, programs, 1), programs)


def test_fpm(php, setup):
    """Workers of PHP-FPM, forked by its master, at work for a request."""
    folder, name = os.path.split(php.path)
    fpm = shutil.which("php-fpm%d.%d" % php.version) if name == "php" else os.path.join(folder, name.replace("php", "php-fpm", 1))
    if not fpm or not os.path.exists(fpm):
        raise Skip("no PHP-FPM")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[sys.executable, os.path.join(runtimes.HERE, "php", "fpm.py"), fpm, CASES, case, setup.scratch]
                                   for case in php.cases(("plain", "methods", "callbacks", "included", "destructor", "fiber"))])
        return tally_truths(recorded(setup, programs, 1), programs)


def test_renamed(php, setup):
    """The interpreter under another name."""
    program, start = setup.file("worker-bee"), None
    with open(php.path, "rb") as f:
        text = f.read(4096)
    if text[:4] == b"\x7fELF":
        shutil.copy(os.path.realpath(php.path), program)
        start = program
    else:  # a script of the zoo's, for its libraries
        m = re.search(rb'exec (/\S+) "\$@"', text)
        if not m:
            raise Skip("it runs in a root of its own")
        shutil.copy(m.group(1).decode(), program)
        start = setup.file("start")
        with open(start, "wb") as f:
            f.write(text.replace(m.group(1), program.encode()))
        os.chmod(start, 0o755)
    with contextlib.ExitStack() as stack:
        programs = started(stack, [[start, CASES, c, setup.scratch] for c in ("plain", "callbacks")])
        return tally_truths(recorded(setup, programs, 1), programs)


def with_opcache(php, options, condition):
    """That PHP with opcache, which those that were built from sources load if they are told to; Skip: `condition` does not hold."""
    options = [o for setting in ("opcache.enable_cli=1", *options) for o in ("-d", setting)]
    for load in ([], ["-d", "zend_extension=opcache"]):
        made = Php(php.path, load + options)
        if made.run("if (function_exists('opcache_get_status') && (%s)) echo 'it is so';" % condition).endswith("it is so"):
            return made
    raise Skip("no opcache, or not " + condition)


def with_jit(php, mode, *more):
    """That PHP with opcache's JIT; Skip: it has none."""
    return with_opcache(php, ("opcache.jit_buffer_size=64M", "opcache.jit=" + mode, *more), "opcache_get_status()['jit']['on'] ?? false")


def test_jit(php, setup):
    """Code that opcache's JIT made, in functions and in traces: chains are right, and native frames around them."""
    modes = [with_jit(php, mode) for mode in ("tracing", "function")]
    with contextlib.ExitStack() as stack:
        programs = started(stack, [made.argv(case, setup) for made in modes for case in JIT_CASES if php.version >= SINCE.get(case, (0, 0))])
        for program in programs:
            for truth in program.truths:
                truth["jit"] = True
        return tally_truths(recorded(setup, programs, SECONDS), programs)


def exits_wrong(stack):
    """Code that the JIT made is on the stack, and what runs it, or there is a mark. (What has begun anew has no names to read.)"""
    names = [f.name for f in stack.user if is_php(f)]
    if not names and not any(os.path.basename(f.file) == "anon" for f in stack.user):
        return None  # PHP begins, or ends
    if any(MARK.fullmatch(f.name) for f in stack.user) or (names and set(names[:1]) <= {"{main}", "[unknown]"} and set(names[1:2]) <= {"exits", "[unknown]"}):
        return None
    return " ; ".join("%s(%s)" % (f.name, os.path.basename(f.file)) for f in stack.user)


def test_jit_exits(php, setup):
    """The JIT makes code of traces and of the ways out of them, at all times: no frames are lost without a mark, and few with one."""
    made = with_jit(php, "tracing", "opcache.jit_hot_side_exit=1", "opcache.jit_hot_loop=2", "opcache.jit_hot_func=2",
                    "opcache.jit_max_root_traces=8192", "opcache.jit_max_side_traces=8192", "opcache.jit_max_exit_counters=65536")
    with contextlib.ExitStack() as stack:
        programs = started(stack, [made.argv("exits", setup)])
        recording = recorded(setup, programs, 1, 4999)
    t = PythonTally("exits")
    marked = found = 0
    for s in recording.stacks or []:
        t.take(s, exits_wrong)
        marked += s.count * any(MARK.fullmatch(f.name) for f in s.user)
        found += s.count * any(f.name == "exits" for f in s.user)
    # In its first moment a process is not known, and stacks below the JIT's code are cut then.
    problems = recording.problems + t.problems(200, complete_percent=98)
    if found < 200 or marked > t.samples / 10:
        problems.append("%d samples of %d in the program, %d marked" % (found, t.samples, marked))
    return problems, "%d samples, %d of them in the program, %d marked" % (t.samples, found, marked)


def threads_of(php, setup):
    """The arguments that run cases in threads of one process, and how many these are."""
    include = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(php.path))), "include", "php")
    if not php.zts or not os.path.isdir(include):
        raise Skip("not thread-safe, or without headers")
    library = setup.file("threads.so")
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-O1", *["-I" + os.path.join(include, part) for part in ("", "main", "Zend", "TSRM")],
                    os.path.join(runtimes.HERE, "php", "threads.c"), "-o", library], check=True)
    cases = php.cases(("plain", "methods", "recursion", "closures", "callbacks", "generator", "yield_from", "destructor", "exceptions", "fiber"))
    code = "in_threads(%s);" % ", ".join("'%s'" % word for word in (CASES, setup.scratch, *cases))
    return [php.path, *php.options, "-d", "extension=" + library, "-r", code], len(cases)


def test_threads(php, setup):
    """A request in each of the threads: each one's chain is its own."""
    argv, nr = threads_of(php, setup)
    with runtimes.Program(argv, nice=5) as program:
        for _ in range(nr):
            program.pid = None
            program.until_ready()
        return tally_truths(recorded(setup, [program], 1), [program])


TESTS = (("chains", test_chains), ("stack", test_stack), ("fibers", test_fibers), ("patterns", test_patterns), ("churn", test_churn), ("brief", test_brief), ("brief-files", test_brief_files), ("renamed", test_renamed), ("embedded", test_embedded),
         ("fpm", test_fpm), ("threads", test_threads),
         ("jit", test_jit), ("jit-exits", test_jit_exits))


def arguments(parser):
    parser.add_argument("--php", default="php", help="the interpreter")
    parser.add_argument("--zoo", metavar="VERSION", help="one of tests/zoo instead of this machine's")


def tests(_setup, args):
    paths = [runtimes.from_zoo("php", args.zoo)] if args.zoo else (os.environ.get("SONDE_PHPS") or shutil.which(args.php) or "").split(":")
    if not paths[0]:
        raise Skip("no PHP here")
    for php in map(Php, paths):
        for name, test in TESTS:
            yield "php-%s-%s" % (php.name, name), functools.partial(test, php)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests, arguments, "php"))
