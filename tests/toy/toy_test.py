#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
docs/adding-a-runtime.md, followed: `toy_test.py SOURCE_ROOT SONDE [TEST...]`, TAP.

A copy of the sources gets the folder runtime/toy and one line more in abi/runtimes.def; the sonde that is built of
it must show what the toy machine runs (program.toy) among native frames, exactly. Lines are those of the comments
"line of ..." in program.toy. Recording needs root.

Three more runtimes are made of the same folder, by another name, and machines for them: a stack may go through all.
"""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name) for name in ("lib", "live")]
import guard
import tap
from command import run
from folded_text import parse_line
from modes import burnt, recording_began
from tap import Skip, check

HERE = Path(__file__).resolve().parent
ROOT, ROOT_SONDE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TOP = Path(tempfile.mkdtemp(prefix="sonde-toy-"))
COPY, SONDE, MACHINE = TOP / "copy", TOP / "copy/build/sonde", TOP / "toy_machine"
PROGRAM = HERE / "program.toy"
CHAIN = TOP / "toy_chain"
MORE = ("toyb", "toyc", "toyd")
VERIFIED_MAX = 300_000  # of each program; verifier_test.c says why
TIMEOUT = 1700  # of what hangs: meson ends the test soon after
SECONDS = 1.5  # of CPU that a recording has


# --- the build ------------------------------------------------------------------------------------

def copy_sources():
    """What stands in the tree, committed or not; nothing that was built."""
    names = run("git", "ls-files", "-co", "--exclude-standard", "--", "meson.build", "meson_options.txt", "src", "web",
                cwd=ROOT).stdout.split("\n")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)  # with its time: web/build.sh looks at it
    (COPY / "web/node_modules").symlink_to(ROOT / "web/node_modules")


def add_the_runtime():
    """Steps 1 and 2 of the page: a line, a folder."""
    shutil.copytree(HERE / "runtime/toy", COPY / "src/runtime/toy")
    path = COPY / "src/abi/runtimes.def"
    ids = [int(n) for n in re.findall(r"^RUNTIME\(\w+, \w+, (\d+)\)$", path.read_text(), re.M)]
    with path.open("a") as f:
        f.write(f"RUNTIME(toy, TOY, {max(ids) + 1})\n")


def renamed(text, name):
    return text.replace("toy", name).replace("TOY", name.upper()).replace("native_", "native" + name[3:] + "_")


def add_more_runtimes():
    """What the page's reader would do three times more."""
    path = COPY / "src/abi/runtimes.def"
    for name in MORE:
        folder = COPY / "src/runtime" / name
        folder.mkdir()
        for file in (HERE / "runtime/toy").iterdir():
            (folder / file.name.replace("toy", name)).write_text(renamed(file.read_text(), name))
        ids = [int(n) for n in re.findall(r"^RUNTIME\(\w+, \w+, (\d+)\)$", path.read_text(), re.M)]
        with path.open("a") as f:
            f.write(f"RUNTIME({name}, {name.upper()}, {max(ids) + 1})\n")


def compile_chain():
    """A program of four machines, each a library of its own."""
    libraries = []
    for name in ("toy", *MORE):
        source, library = TOP / f"lib{name}.c", TOP / f"lib{name}.so"
        source.write_text(renamed((HERE / "toy_machine.c").read_text(), name) if name in MORE else
                          (HERE / "toy_machine.c").read_text())
        define = "-DTOY_LIBRARY" if name == "toy" else f"-D{name.upper()}_LIBRARY"
        run("gcc", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-D_GNU_SOURCE", define, source, "-o", library)
        libraries.append(library)
    run("gcc", "-O1", "-g", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", HERE / "toy_chain.c", *libraries,
        f"-Wl,-rpath,{TOP}", "-o", CHAIN)


def build():
    if not shutil.which("git") or subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True).returncode:
        raise Skip("what belongs to the sources is known to git only, and there is none")
    copy_sources()
    add_the_runtime()
    add_more_runtimes()
    # Not optimized: that takes a third less of the CPU. Its warnings are not those that everything else is built without.
    run("meson", "setup", COPY / "build", COPY, "-Dtests=false", "-Doptimization=0", "-Ddebug=false", "-Dwerror=false")
    run("ninja", "-C", COPY / "build", "-j2", "sonde", timeout=TIMEOUT)
    compile_machine(MACHINE)
    compile_chain()


def compile_machine(path, *flags):
    run("gcc", "-O1", "-g", "-rdynamic", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *flags,
        HERE / "toy_machine.c", "-o", path)


# --- what is expected -----------------------------------------------------------------------------

def read_program():
    """Of each function: its lines; and the lines that comments name."""
    lines, marks, function = collections.defaultdict(set), collections.defaultdict(set), None
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1):
        code, _, comment = text.partition("#")
        words = code.split()
        if words[:1] == ["function"]:
            function = words[1]
        elif words:
            lines[function].add(number)
        if words and comment.strip().startswith("line of "):
            marks[comment.strip()[8:]].add(number)
    return lines, {what: min(numbers) for what, numbers in marks.items()}


LINES, MARKS = read_program()
LINES["odd"] = LINES["even"]

# Functions from run_thread() on, and the lines in which scripts call the next one.
SPIN = [("mixed", "mixed"), ("work", "work's spin"), ("spin", None)]
BURN = [("mixed", "mixed"), ("work", "work"), ("native_apply", None), ("callback", "callback"), ("native_burn", None)]
EVEN = [("changes", "changes"), ("even", "even"), ("native_burn", None)]
ODD = [("changes", "changes"), ("odd", "even"), ("native_burn_odd", None)]
AGAIN = [("changes", None), ("native_again", None)]
CHAINS = {"mixed": [SPIN, BURN], "changes": [EVEN, ODD, AGAIN]}


class Machine:
    """A toy machine whose functions run, until the end of a `with`."""

    def __init__(self, *functions, machine=MACHINE, waits=("waits",)):
        self.process = subprocess.Popen([machine, PROGRAM, *functions, *waits], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def __enter__(self):
        check(self.process.stdout.readline() == b"ready\n", "the machine is ready")
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Recorder:
    """A `sonde record` that runs, until it is told to end."""

    def __init__(self, *args):
        self.output = tempfile.TemporaryFile()
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(arg) for arg in (SONDE, "record", *args)], stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=self.errors)

    def end(self):
        """What it has said."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(TIMEOUT)
        said = []
        for file in (self.output, self.errors):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
            file.close()
        check(not status, f"exit {status}: {said[1][-2000:]}")
        return said


def record(machine, *options):
    """{(comm, [(function, line), ...] from run_thread() on): samples}, and what was said."""
    if os.geteuid():
        raise Skip("recording needs root")
    recorder = Recorder("-p", machine.pid, "-F", 997, "--no-kernel", "--lines", "-f", "folded", "-o", "-", "--tracers", ",".join(("toy", *MORE)), *options)
    recording_began(recorder)
    burnt(machine.pid, SECONDS)
    out, err = recorder.end()
    stacks = collections.Counter()
    for text in out.splitlines():
        comm, frames, count = parse_line(text)
        frames = [(name, int(line or 0)) for name, line in (re.fullmatch(r"(.*?)(?::(\d+))?", f).groups() for f in frames)]
        begin = [name for name, _ in frames].index("run_thread") + 1 if "run_thread" in dict(frames) else None
        check(begin is not None or not any(name in LINES for name, _ in frames), f"no thread of the machine: {text}")
        if begin is not None:
            stacks[comm, tuple(frames[begin:])] += count
    return stacks, err


def fits(frames, chain):
    """Whether that is this chain, or its begin: then what comes behind is of libc."""
    for number, (name, line) in enumerate(frames):
        if number == len(chain) or (name not in LINES and not name.startswith("native_")):
            return all(name not in LINES and not name.startswith("native_") for name, _ in frames[number:])
        want, mark = chain[number]
        if name != want:
            return False
        is_leaf = number + 1 == len(frames) or not (frames[number + 1][0] in LINES or
                                                    frames[number + 1][0].startswith("native_"))
        if name in LINES and line not in (LINES[name] if is_leaf or not mark else {MARKS[mark]}):
            return False
    return True


def shown(stacks, comm):
    return "\n".join(f"{count} {frames}" for (c, frames), count in stacks.most_common() if c == comm)


def check_stacks(stacks, comm, without=lambda frames: False):
    """Every stack is one that there can be; how many samples each chain has as a whole."""
    sums, total, late = collections.Counter(), 0, 0
    for (c, frames), count in stacks.items():
        if c != comm:
            continue
        total += count
        if ("[toy: not_ready]", 0) in frames or without(frames):
            late += count
            continue
        check(any(fits(frames, chain) for chain in CHAINS[comm]), f"{comm}: {frames}, {count} samples")
        for number, chain in enumerate(CHAINS[comm]):
            if [name for name, _ in frames] == [name for name, _ in chain]:
                sums[number] += count
    check(total > 1000, f"{comm}: {total} samples")
    check(late <= total / 10 + 10, f"{comm}: {late} of {total} without their frames\n{shown(stacks, comm)}")
    return sums, total - late, f"{total} samples, {late} late, whole chains: {dict(sums)}"


def without_comments(text):
    return " ".join(re.sub(r"/\*.*?\*/", "", text, flags=re.S).split())


# --- tests ----------------------------------------------------------------------------------------

def test_scripts_and_native_functions_call_each_other():
    with Machine("mixed") as machine:
        stacks, _ = record(machine)
    sums, total, note = check_stacks(stacks, "mixed")
    check(sums[0] > total / 10 and sums[1] > total / 10, shown(stacks, "mixed"))
    check(sums[0] + sums[1] > total * 0.9, shown(stacks, "mixed"))
    return (), note


def test_a_stack_goes_through_four_runtimes():
    with Machine("chain", machine=CHAIN, waits=()) as machine:
        stacks, _ = record(machine)
    want, whole, late, total = [], 0, 0, 0
    for name in ("toy", *MORE):
        want += [(f"{name}_enter", 0), ("chain", MARKS["chain"]), (f"native{name[3:]}_next", 0)]
    names = [name for name, _ in want]
    for (comm, frames), count in stacks.items():
        if comm != "chain":
            continue
        total += count
        if any(": not_ready]" in name for name, _ in frames):
            late += count
            continue
        if [name for name, _ in frames] == names:
            check(all(line == MARKS["chain"] for name, line in frames if name == "chain"), frames)
            whole += count
    check(total > 1000, f"{total} samples")
    check(late <= total / 10 + 10, f"{late} of {total} without their frames\n{shown(stacks, 'chain')}")
    check(whole > (total - late) * 0.9, f"{whole} of {total - late} are whole\n{shown(stacks, 'chain')}")
    return (), f"{total} samples, {late} late, {whole} through four runtimes"


def programs_of(sonde):
    """What doctor says of each program that it loads: {program: instructions verified}."""
    said = run(sonde, "doctor").stdout
    return {name.strip(): int(n) for name, n in re.findall(r"^yes +(.+?) +(\d+) instructions verified", said, re.M)}


def test_the_sampler_does_not_grow_with_runtimes():
    if os.geteuid():
        raise Skip("loading programs needs root")
    grown, bare = programs_of(SONDE), programs_of(ROOT_SONDE)
    if "sampler" not in bare:
        raise Skip("this kernel has one program for all")
    check(set(grown) - set(bare) == {f"walker of {name}" for name in ("toy", *MORE)}, (grown, bare))
    check(grown["sampler"] <= bare["sampler"] * 1.02, (grown, bare))
    for name in bare:
        check(grown[name] <= bare[name] * 1.05, (grown, bare))
    check(max(grown.values()) < VERIFIED_MAX, grown)
    return (), str(grown)


def test_a_function_at_an_old_ones_address_has_its_own_name():
    def is_gone(frames):
        return ("[toy: unknown]", 0) in frames
    with Machine("changes") as machine:
        stacks, _ = record(machine)
    sums, total, note = check_stacks(stacks, "changes", without=is_gone)
    check(sums[0] > total / 10 and sums[1] > total / 10, shown(stacks, "changes"))
    return (), note


def test_the_interpreters_own_frames_are_shown_on_demand():
    with Machine("mixed") as machine:
        stacks, _ = record(machine, "--interpreter-frames")
    names = collections.Counter()
    for (comm, frames), count in stacks.items():
        if comm == "mixed":
            names[tuple(name for name, _ in frames)] += count
    want = ("toy_call", "mixed", "work", "toy_run", "native_apply", "toy_call", "callback", "toy_run", "native_burn")
    check(names[want] > 10, names.most_common(8))
    check(names["toy_call", "mixed", "work", "spin", "toy_run"] > 10, names.most_common(8))


def test_the_page_says_what_is_done():
    """Its pieces of code are the folder's, its output is what comes out."""
    page = (ROOT / "docs/adding-a-runtime.md").read_text()
    blocks = re.findall(r"(?:^    .*\n)+", page, re.M)
    files = {path.name: path.read_text() for path in (HERE / "runtime/toy").iterdir()}
    files["runtimes.def"] = (COPY / "src/abi/runtimes.def").read_text()
    code = without_comments("".join(files.values()))
    checked = 0
    for line in "".join(blocks).splitlines():
        line = without_comments(line)
        if re.match(r"#\d", line):
            name, place, number = re.fullmatch(r"#\d+ (\S+) (?:\(|at )(.*):(\d+)\)?", line).groups()
            check(not place.endswith(".toy") or MARKS[name] == int(number), line)
        elif line.startswith("RUNTIME("):
            check(line[:line.rindex(",")] in code, line)
        elif line.endswith(";") or line.startswith(("#define", "if")):
            check(line in code, line)
        else:
            continue
        checked += 1
    check(checked > 10, f"only {checked} lines of the page are known for what they are")


def test_stack_shows_a_thread_that_waits():
    with Machine() as machine:
        text = run(SONDE, "stack", "--no-kernel", machine.pid).stdout
        data = json.loads(run(SONDE, "stack", "--json", machine.pid).stdout)
    thread = text[text.index('"waits"'):]
    frames = re.findall(r"^  #\d+ +(.*)$", thread, re.M)
    begin = next(i for i, f in enumerate(frames) if f.startswith("native_wait "))
    check(re.match(r"run_thread at .*/toy_machine\.c:\d+$", frames[begin + 4]), frames)
    check(frames[begin + 1] == f"sleeper ({PROGRAM}:{MARKS['sleeper']})", frames)
    check(re.match(r"native_apply at .*/toy_machine\.c:\d+$", frames[begin + 2]), frames)
    check(frames[begin + 3] == f"waits ({PROGRAM}:{MARKS['waits']})", frames)
    frames = next(t for t in data["threads"] if t["name"] == "waits")["frames"]
    sleeper = next(f for f in frames if f["function"] == "sleeper")
    check(sleeper["kind"] == "toy" and sleeper["file"] == str(PROGRAM) and sleeper["line"] == MARKS["sleeper"], sleeper)


def test_an_unknown_version_is_said_once_and_has_native_frames():
    other = TOP / "toy_machine_2"
    compile_machine(other, "-DTOY_VERSION=2")
    with Machine("mixed", machine=other) as machine:
        stacks, said = record(machine)
    check(said.count("toyvm 2 is not supported (its version is not known)") == 1, said)
    names = {name for (comm, frames), _ in stacks.items() for name, _ in frames if comm == "mixed"}
    check({"toy_call", "toy_run", "native_burn"} <= names, names)
    check(not names & set(LINES) and not any(name.startswith("[toy") for name in names), names)


def main():
    wanted = sys.argv[3:]
    tests = [(name[5:], test) for name, test in globals().items() if name.startswith("test_")]
    try:
        build()
    except Skip as reason:
        return tap.skip_all(reason)
    return tap.run((name, test) for name, test in tests if not wanted or name in wanted)


if __name__ == "__main__":
    try:
        sys.exit(guard.run(main))
    finally:
        shutil.rmtree(TOP, ignore_errors=True)
