#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runtimes of versions that are not known: real ones, in copies whose version says another thing; and programs that have only the texts of one. It is said once a file, however many
processes there are, and counted, and all of their native frames are there, and nothing else.

    unknown_test.py [--sonde PROGRAM] [--only REGEX]
"""
import argparse
import collections
import contextlib
import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import urllib.request

import go_test
import guard
import runtimes
from python_test import is_first, recorded, started
from folded import shorten
from jvm_toolchain import jdks
from modes import cpu_seconds, wait_until
from runtimes import Tally
from sonde import PATIENCE
from tap import Skip

PROGRAMS = os.path.join(runtimes.HERE, "unknown")
SECONDS = 0.3  # of CPU, of the programs of each
NEWER = 99
NATIVE = ": only its native frames are shown"
GO_CHAIN = ["main.main", "main.middle", "main.leaf"]
SYMTAB, RODATA, DYNSYM = 2, b".rodata", 11  # kinds of sections, a name of one


class Elf:
    """The bytes of a file, to be changed."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = bytearray(f.read())
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise Skip("%s is no program of this machine" % path)
        at, = struct.unpack_from("<Q", self.bytes, 40)
        size, nr, names = struct.unpack_from("<HHH", self.bytes, 58)
        # name, kind, flags, address, offset, size, link
        self.sections = [struct.unpack_from("<IIQQQQI", self.bytes, at + size * i) for i in range(nr)]
        self.names = self.sections[names][4]

    def section(self, name):
        """Its address, offset and size."""
        for s in self.sections:
            at = self.names + s[0]
            if self.bytes[at:at + len(name) + 1] == name + b"\0":
                return s[3:6]
        raise AssertionError("no section %s" % name)

    def symbols(self, name):
        """Where in the file the entries of a symbol are."""
        for s in self.sections:
            if s[1] not in (SYMTAB, DYNSYM):
                continue
            strings, size = self.sections[s[6]][4:6]
            number = self.bytes.find(b"\0" + name + b"\0", strings, strings + size) + 1 - strings
            for at in range(s[4], s[4] + s[5], 24):
                if number > 0 and struct.unpack_from("<I", self.bytes, at)[0] == number:
                    yield at

    def variable(self, name):
        """Where in the file a variable's value is."""
        at = next(self.symbols(name), None)
        if at is None:
            raise AssertionError("no %s" % name)
        value, = struct.unpack_from("<Q", self.bytes, at + 8)
        return next(value - s[3] + s[4] for s in self.sections if s[3] and s[3] <= value < s[3] + s[5])

    def replace(self, at, new):
        self.bytes[at:at + len(new)] = new


# --- versions, each as the runtime itself says it ---


def newer_ruby(elf):
    elf.replace(elf.variable(b"ruby_version"), b"9")


def newer_perl(elf):
    elf.replace(elf.variable(b"PL_version"), bytes([NEWER]))


def newer_php(elf):
    _, at, size = elf.section(RODATA)
    header = b"X-Powered-By: PHP/"
    elf.replace(elf.bytes.index(header, at, at + size) + len(header), b"9")


def newer_v8(elf):
    """What it exports of its version leads to another number: itself it compares the real one with that of its snapshot."""
    addr, at, size = elf.section(RODATA)
    number = next(i for i in range(at, at + size, 4) if elf.bytes[i:i + 4] == struct.pack("<I", NEWER))
    for symbol in elf.symbols(b"_ZN2v88internal7Version6major_E"):
        elf.replace(symbol + 8, struct.pack("<Q", number - at + addr))


def newer_go(elf):
    _, at, size = elf.section(b".go.buildinfo")
    elf.replace(elf.bytes.index(b"go1.", at, at + size) + 4, b"%d" % NEWER)


def newer_table(elf):
    """Of another kind, which the program itself expects."""
    newer_go(elf)
    elf.replace(elf.section(b".gopclntab")[1], b"\xf9")
    # runtime.moduledataverify1: cmp $-15, REGISTER
    _, at, size = elf.section(b".text")
    found = [m.start() for m in re.finditer(rb"\x83[\xf8-\xff]\xf1", bytes(elf.bytes[at:at + size]))]
    if len(found) != 1:
        raise Skip("%d places could be where Go compares what the table is" % len(found))
    elf.replace(at + found[0] + 2, b"\xf9")


def newer_python(elf):
    elf.replace(elf.variable(b"Py_Version") + 2, bytes([NEWER]))


def other_jvm(elf):
    """It tells of itself by names, whatever its version is: one of them is another."""
    name = b"\0_frame_complete_offset\0"
    elf.replace(elf.bytes.index(name), name.replace(b"offset", b"offzet"))


# --- programs ---


class Unknown:
    """How a program of a runtime is started, what must be said of which file, and what its stacks must have, in this order."""

    def __init__(self, name, argv, file, said, want, env=None):
        self.name, self.argv, self.file, self.said, self.want, self.env = name, argv, file, said, want, env


def copied(setup, name, program, library, change):
    """Starts a copy of what is the runtime, a program or its library: the program, that file, the environment."""
    path = shutil.which(program)
    if not path:
        raise Skip("no " + program)
    path = os.path.realpath(path)
    Elf(path)
    ldd = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    m = re.search(r"^\s*(%s\S*) => (/\S+)" % library, ldd, re.M)
    folder = setup.file("u-" + name + "-files")
    os.makedirs(folder, exist_ok=True)
    start = os.path.join(folder, "u-" + name)
    file = os.path.join(folder, m[1]) if m else start
    if m:
        shutil.copy(path, start)
    elf = Elf(m[2] if m else path)
    change(elf)
    with open(file, "wb") as f:
        f.write(elf.bytes)
    os.chmod(file, 0o755)
    return start, file, {"LD_LIBRARY_PATH": folder} if m else {}


def ruby(setup):
    start, file, env = copied(setup, "ruby", "ruby", "libruby", newer_ruby)
    return Unknown("ruby", [start, "--disable-gems", os.path.join(PROGRAMS, "spin.rb")], file, r"Ruby 9\.\S+ is not supported \(its version is not known\)" + NATIVE,
                   ["ruby_run_node", "rb_vm_exec"], env)


def python(setup):
    start, file, env = copied(setup, "python", "/usr/bin/python3", "libpython", newer_python)
    return Unknown("python", [start, os.path.join(PROGRAMS, "spin.py")], file, r"CPython 3\.99 is not supported \(its version is not known\)" + NATIVE,
                   ["Py_RunMain", "PyEval_EvalCode", "_PyEval_EvalFrameDefault"], env)


def hotspot(setup):
    """A JDK of links, but for the program and its library."""
    found = jdks(argparse.Namespace(jdk=None))
    if not found:
        raise Skip("no JDK")
    home, folder = found[0].home, setup.file("u-hotspot-files")
    start, library = os.path.join(folder, "bin/u-hotspot"), os.path.join(folder, "lib/server/libjvm.so")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(home, folder, copy_function=os.symlink)
    shutil.copy(os.path.join(home, "bin/java"), start)
    elf = Elf(os.path.join(home, "lib/server/libjvm.so"))
    other_jvm(elf)
    os.unlink(library)
    with open(library, "wb") as f:
        f.write(elf.bytes)
    subprocess.run(["javac", "-d", folder, os.path.join(PROGRAMS, "Spin.java")], check=True)
    said = r"HotSpot %d[.u]\S+ is not supported \(its vmStructs do not have what is needed of CodeBlob\)" % found[0].release + NATIVE
    return Unknown("hotspot", [start, "-Xint", "-XX:+UseSerialGC", "-Xmx64m", "-cp", folder, "Spin"], library, said, ["JavaMain", "jni_CallStaticVoidMethod", r"JavaCalls::call_helper\(.*", r"(\[unknown\])?"])  # code without a file


def perl(setup):
    start, file, env = copied(setup, "perl", "perl", "libperl", newer_perl)
    return Unknown("perl", [start, os.path.join(PROGRAMS, "spin.pl")], file, r"Perl 5\.99 is not supported \(its version is not known\)" + NATIVE,
                   ["perl_run", "Perl_runops_standard"], env)


def php(setup):
    start, file, env = copied(setup, "php", "php", "libphp", newer_php)
    return Unknown("php", [start, os.path.join(PROGRAMS, "spin.php")], file, r"PHP 9\.\d+ is not supported \(its version is not known\)" + NATIVE,
                   ["php_execute_script", "zend_execute", r"execute_ex|\[unknown\]"], env)  # its cold part has no name


def v8(setup):
    start, file, env = copied(setup, "v8", "node", "libnode", newer_v8)
    return Unknown("v8", [start, os.path.join(PROGRAMS, "spin.js")], file, r"V8 99\.\d+ is not supported \(its version or build is not known, or it has no symbols\)" + NATIVE,
                   [r"node::Start\(int, char\*\*\)", r"v8::Function::Call\(.*", "Builtins_JSEntry", "Builtins_InterpreterEntryTrampoline"], env)


def go(setup, name, change, said, want):
    start, built = setup.file("u-" + name), setup.file("spin-go")
    go_test.go("build", "-o", built, os.path.join(PROGRAMS, "spin.go"), CGO_ENABLED="0")
    elf = Elf(built)
    change(elf)
    with open(start, "wb") as f:
        f.write(elf.bytes)
    os.chmod(start, 0o755)
    return Unknown("go", [start], start, said, want)


def go_of_another_version(setup):
    return go(setup, "go", newer_go, r"go1\.99\.\d+ is not supported \(its version is not known\): labels of its goroutines .*", ["runtime.main", *GO_CHAIN])


def go_of_another_table(setup):
    return go(setup, "table", newer_table, r"go1\.99\.\d+ is not supported \(its table of functions is of another kind\): its functions have .*",
              [r"runtime\.goexit(\.abi0)?", "runtime.main", *GO_CHAIN])


def static(setup, name, how, product, texts):
    """A program in C that has the texts of a runtime which was linked statically and exports nothing."""
    start = setup.file("u-%s-s" % name)
    subprocess.run(["gcc", "-O1", how, "-DTEXTS=" + ", ".join('"%s"' % t for t in texts), os.path.join(PROGRAMS, "static.c"), "-o", start], check=True)
    return Unknown(name, [start], start, product + r" is not supported \(it is linked statically, and exports nothing that is looked for by its name\)" + NATIVE,
                   ["main"])


def static_ruby(setup):
    return static(setup, "ruby", "-static-pie", r"Ruby 3\.1\.2", ["ruby - Copyright (C) 1993-2022", "ruby 3.1.2p20 (2022-04-12)"])


def static_php(setup):
    return static(setup, "php", "-static", r"PHP 8\.2", ["X-Powered-By: PHP/8.2.1", "Zend Engine v4.2.1"])


ALL = {"python": python, "hotspot": hotspot, "ruby": ruby, "perl": perl, "php": php, "static-ruby": static_ruby, "static-php": static_php, "v8": v8, "go": go_of_another_version, "go-table": go_of_another_table}


def made(setup):
    """Those that can be made here, and why not the others."""
    found, missing = [], []
    for name, make in ALL.items():
        try:
            found.append(make(setup))
        except Skip as e:
            missing.append("%s: %s" % (name, e))
    if not found:
        raise Skip("; ".join(missing))
    return found, missing


# --- what is said, and what is shown ---


def wrong_messages(unknown, text):
    """It is a line, of a warning's level (without -v), once; what else has the file's name in it is none of ours."""
    lines = [line for line in text.splitlines() if unknown.file in line]
    want = "sonde: %s: %s; 'sonde doctor' lists what is supported" % (re.escape(unknown.file), unknown.said)
    return [] if len(lines) == 1 and re.fullmatch(want, lines[0]) else ["%s: said is %s, not %s" % (unknown.file, lines, want)]


def in_order(want, names):
    rest = iter(names)
    return all(any(re.fullmatch(pattern, name) for name in rest) for pattern in want)


def judge(unknown, stack):
    """What is wrong with a stack, or None."""
    names = [f.name for f in stack.user]
    if any(f.runtime != "native" for f in stack.user) or any(re.fullmatch(r"\[\w+: \w+\]", n) and n != "[native: caller_unsure]" for n in names):
        return "not only native frames: %s" % [tuple(f) for f in stack.user]
    if unknown.name == "go":  # between two calls the last ones are not there
        mine = [n for n in names if n.startswith("main.")]
        want = unknown.want[:len(unknown.want) - len(GO_CHAIN) + len(mine)]
        fits_it = len(names) >= len(want) and all(re.fullmatch(w, n) for w, n in zip(want, names))
    else:
        fits_it = is_first(stack.user[0], names[0]) and in_order(unknown.want, names)
    if not fits_it:
        return "%s are not in: %s" % (unknown.want, " ; ".join(names))
    return None


def works(unknown, stack, pids):
    """A goroutine wherever it is; not the first thread of a JVM, but of all others."""
    if unknown.name == "go":
        return any(f.name.startswith("main.") for f in stack.user)
    return (stack.tid in pids) != (unknown.name == "hotspot")


def tally_of(unknown, recording, pids):
    comm = os.path.basename(unknown.argv[0])
    t = Tally(comm)
    t.leaves = 0
    for stack in recording.stacks or []:
        if stack.comm == comm and works(unknown, stack, pids):
            t.take(stack, functools.partial(judge, unknown))
            t.leaves += stack.count * any(f.name == GO_CHAIN[-1] for f in stack.user)
    return t


def test_record(setup):
    """A recording of two processes of each."""
    found, missing = made(setup)
    with contextlib.ExitStack() as stack:
        programs = [p for u in found for p in started(stack, [u.argv] * 2, u.env)]
        recording = recorded(setup, programs, SECONDS * len(found))
    problems, notes = list(recording.problems), missing
    counts = collections.Counter(u.name for u in found)
    told = (recording.stats or {}).get("unknown_runtimes")
    if told != counts:
        problems.append("statistics: unknown_runtimes is %s, not %s" % (told, dict(counts)))
    for unknown in found:
        problems += wrong_messages(unknown, recording.errors)
        t = tally_of(unknown, recording, {p.pid for p in programs})
        problems += t.problems(50)
        notes.append(t.summary())
        if unknown.name == "go" and t.leaves < 0.9 * t.samples:
            problems.append("%s: %d of %d samples are in its leaf" % (t.name, t.leaves, t.samples))
    for name, nr in counts.items():
        line = "sonde: unknown: %d file%s of %s (" % (nr, "s" * (nr > 1), name)
        problems += ["no '%s' in: %s" % (line, shorten(recording.errors, 3000))] * (line not in recording.errors)
    return problems, ", ".join(notes)


def fits(thread, want):
    """Is a thread of `sonde stack` whole, native, and there?"""
    names = [f["function"] or "" for f in thread["frames"][::-1]]
    return thread["complete"] and {f["kind"] for f in thread["frames"]} <= {"kernel", "native"} and in_order(want, names)


def test_stack(setup):
    """`sonde stack` says it, and shows what is native."""
    found, missing = made(setup)
    problems = []
    with contextlib.ExitStack() as stack:
        for unknown in found:
            program, = started(stack, [unknown.argv], unknown.env)
            done = subprocess.run([setup.program, "stack", "--json", str(program.pid)], capture_output=True, text=True, check=False,
                                  timeout=300 * PATIENCE)
            problems += wrong_messages(unknown, done.stderr)
            problems += wrong_threads(unknown, program, done.stdout)
    return problems, ", ".join(missing)


def wrong_threads(unknown, program, text):
    """Of what `sonde stack` and `sonde core` say of one that waits for its input."""
    threads = [t for t in json.loads(text)["threads"] if t["tid"] == program.pid or unknown.name in ("go", "hotspot")]
    working = unknown.want[:-2] if unknown.name in ("go", "python") else unknown.want
    if sum(fits(t, working) for t in threads) == 1:
        return []
    return ["%s: no thread has %s: %s" % (unknown.argv[0], working, shorten(str(threads), 3000))]


def test_core(setup):
    """`sonde core` says it, and shows what is native."""
    if not shutil.which("gcore"):
        raise Skip("no gcore")
    found, missing = made(setup)
    problems = []
    with contextlib.ExitStack() as stack:
        for unknown in found:
            program, = started(stack, [unknown.argv], unknown.env)
            core = setup.file("core") + ".%d" % program.pid
            subprocess.run(["gcore", "-o", setup.file("core"), str(program.pid)], capture_output=True, check=True, timeout=300 * PATIENCE)
            program.guard.end()
            done = subprocess.run([setup.program, "core", "--json", core], capture_output=True, text=True, check=False, timeout=300 * PATIENCE)
            os.unlink(core)
            problems += wrong_messages(unknown, done.stderr)
            problems += wrong_threads(unknown, program, done.stdout)
    return problems, ", ".join(missing)


def test_top(setup):
    """`sonde top` says it, and how many there are in its first line."""
    found, missing = made(setup)
    with contextlib.ExitStack() as stack:
        programs = [p for u in found for p in started(stack, [u.argv] * 2, u.env)]
        for program in programs:
            program.go()
        done = subprocess.run([setup.program, *"top -b 2 --delay 1 -p".split(), ",".join(str(p.pid) for p in programs)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=300 * PATIENCE)
    problems = [wrong for u in found for wrong in wrong_messages(u, done.stderr)]
    status = [line for line in done.stdout.splitlines() if "% complete" in line]
    counted = ", %d runtimes not supported" % len(found)
    if len(status) != 2 or not status[-1].endswith(counted):
        problems.append("%s is not what ends: %s" % (counted, status))
    return problems, ", ".join(missing)


class Metrics:
    """Of an agent, by what its log says."""

    def __init__(self, log):
        self.address = re.search(r"http://127\.0\.0\.1:\d+/metrics", log)[0]

    def get(self, name):
        with urllib.request.urlopen(self.address, timeout=300 * PATIENCE) as answer:
            text = answer.read().decode()
        return int(re.search(r"^%s (\d+)$" % re.escape(name), text, re.M)[1])

    def unknown(self, runtime):
        return self.get('sonde_runtime_files_unknown_total{runtime="%s"}' % runtime)


def test_agent(setup):
    """The agent's log says it, and its metric counts it; what comes again is neither said nor counted again."""
    found, missing = made(setup)
    counts = collections.Counter(u.name for u in found)
    log = setup.file("agent.log")
    with contextlib.ExitStack() as stack, open(log, "w", encoding="utf-8") as to:
        said = lambda: open(log, encoding="utf-8").read()
        agent = guard.Guard(subprocess.Popen([setup.program, *"agent --reporter-interval 0.2 --tracers all --memory-limit 512M --metrics-listen 127.0.0.1:0 --include comm=u-* --output-dir".split(),
                                              setup.file("out")], stdin=subprocess.DEVNULL, stderr=to, start_new_session=True))
        stack.callback(agent.end)
        wait_until("an agent", lambda: "/metrics\n" in said() and "the agent samples" in said(), 300)
        metrics = Metrics(said())
        for _ in range(2):
            with contextlib.ExitStack() as both:
                programs = [p for u in found for p in started(both, [u.argv] * 2, u.env)]
                for program in programs:
                    program.go()
                wait_until("all to be at work", lambda p=programs: all(cpu_seconds(x.pid) > 0.3 for x in p), 300)
                cuts = metrics.get("sonde_cuts_total")
                wait_until("two reports", lambda c=cuts: metrics.get("sonde_cuts_total") >= c + 2, 300)
        told = {n: metrics.unknown(n) for n in counts}
    problems = [wrong for u in found for wrong in wrong_messages(u, said())]
    problems += [] if told == counts else ["the metric says %s, not %s" % (told, dict(counts))]
    return problems, ", ".join(missing)


def test_doctor(setup):
    """`sonde doctor -p` tells what these processes have, and `sonde doctor` does not list it."""
    found, missing = made(setup)
    problems = []
    with contextlib.ExitStack() as stack:
        programs = {u: started(stack, [u.argv], u.env)[0] for u in found}
        known, = started(stack, [["/usr/bin/python3", os.path.join(PROGRAMS, "spin.py")]])
        for unknown, program in programs.items():
            done = doctor(setup, program)
            rows = re.findall(r"^no   (\S+) +(.+), (.+)\n {29} (.+)$", done.stdout, re.M)
            said = re.compile(unknown.said)
            problems += [] if len(rows) == 1 and rows[0][2] == unknown.file and said.fullmatch(rows[0][3]) and rows[0][1] in rows[0][3] and done.returncode == 1 \
                else ["%s: doctor says: %s" % (unknown.name, shorten(done.stdout + done.stderr, 1000))]
        done = doctor(setup, known)
        version = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=True).stdout.split()[1].rpartition(".")[0]
        want = "process %d:\nyes  Python                   CPython %s, %s\n" % (known.pid, version, os.path.realpath("/usr/bin/python3"))
        problems += [] if done.stdout == want and done.returncode == 0 else ["said is %s, not %s" % (done, want)]
    return problems, ", ".join(missing)


def doctor(setup, program):
    return subprocess.run([setup.program, "doctor", "-p", str(program.pid)], capture_output=True, text=True, check=False, timeout=300 * PATIENCE)


def tests(_setup, _args):
    yield "record", test_record
    yield "doctor", test_doctor
    yield "stack", test_stack
    yield "core", test_core
    yield "top", test_top
    yield "agent", test_agent


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
