#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`sonde core` on real cores: what gdb says of them, and what is known of the program. TAP.

    core_test.py [--sonde PROGRAM] [--workloads DIR] [--only REGEX] [--keep]

Cores are made here and now: by the kernel, by gcore, and by qemu for aarch64. See docs/core.md.
"""
import argparse
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import arm64
import guard
import tap
from cores import (FILTER_ALL, FILTER_ANONYMOUS, FILTER_NOTHING, GDB_SECONDS, Maker, Report, against_gdb, expect, inline_names, is_prefix, names,
                   need, pcs, run)
from tap import Skip


# --- the tests: each a function of a Maker that returns problems -------------------------------------------------------------


def workload_test(name, args=()):
    def test(maker):
        exe = maker.workload(name)
        core = maker.kill_at_work([exe, "30", *args])
        report, problems = against_gdb(maker, core, exe)
        s = report.json["signal"]
        expect(problems, "signal: %s" % s, s["name"] == "SIGABRT" and s["sender_pid"] == os.getpid())
        expect(problems, "files: %s" % report.states(), set(report.states().values()) <= {"verified"})
        return problems
    return test


def frame_pointers(maker):
    """No unwind information: gdb guesses by prologues, and at some addresses wrong. Only what is known of the program counts."""
    report = Report(maker, maker.kill_at_work([maker.workload("chain_fp"), "30"]))
    problems = []
    chain = names(report.first())
    inner = chain[:chain.index("main")] if "main" in chain else chain
    expect(problems, "%s, %s" % (report.stops, chain), set(report.stops.values()) == {"complete"})
    expect(problems, "%s" % chain, chain[len(inner):] == ["main", "__libc_start_call_main", "__libc_start_main", "_start"] or
           chain[len(inner):] == ["main", None, "__libc_start_main", "_start"])
    expect(problems, "%s" % chain, [n for n in inner if n in ("leaf", "middle", "outer")] in
           (["leaf", "middle", "outer"], ["middle", "outer"], ["outer"], []))
    return problems


def crash_test(how, signo, middle, build=None):
    def test(maker):
        exe = maker.build(**(build or {}))
        core = maker.crash(exe, how)
        report, problems = against_gdb(maker, core, exe)
        expect(problems, "signal: %s" % report.json["signal"], report.json["signal"]["name"] == signo)
        chain = [n for n in names(report.first()) if n in ("main", "outer", "middle", "inner") or n in middle]
        expect(problems, "chain: %s" % names(report.first()), chain == [*middle, "inner", "middle", "outer", "main"])
        return problems
    return test


def segv_says_where(maker):
    exe = maker.build()
    report = Report(maker, maker.crash(exe, "segv"))
    s = report.json["signal"]
    problems = []
    expect(problems, "signal: %s" % s, s["address"] == "0x10" and s["code"] == 1 and s["tid"] == report.json["pid"])
    expect(problems, "description", "nothing is mapped" in s["description"])
    text = run([maker.program, "core", maker.crash(exe, "segv")]).stdout.splitlines()
    expect(problems, "headlines: %s" % text[:2], text[0].startswith("process ") and text[1].startswith("SIGSEGV at address 0x10"))
    return problems


def call_of_null(maker):
    """gdb finds the caller too."""
    exe = maker.build()
    report, problems = against_gdb(maker, maker.crash(exe, "call"), exe)
    expect(problems, "%s" % (report.first()[0],), report.first()[0].pc == 0)
    expect(problems, "%s" % names(report.first()), names(report.first())[1:5] == ["die_call", "inner", "middle", "outer"])
    return problems


def stack_overflow(maker):
    exe = maker.build()
    core = maker.crash(exe, "overflow")
    report, problems = against_gdb(maker, core, exe, complete=False)
    expect(problems, "%d frames" % len(report.first()), names(report.first()) == ["recurse"] * 8192)
    expect(problems, "%s" % report.stops, list(report.stops.values()) == ["max_frames"])
    expect(problems, "%s" % report.problems, "overflowed" in list(report.problems.values())[0])
    expect(problems, report.json["signal"]["description"], "its stack overflowed" in report.json["signal"]["description"])
    line = run([maker.program, "core", core]).stdout.splitlines()[1]
    expect(problems, line, line.startswith("SIGSEGV") and line.endswith(": its stack overflowed"))
    report = Report(maker, core, "--max-frames", "7")
    expect(problems, "--max-frames 7: %d" % len(report.first()), len(report.first()) == 7)
    return problems


GO_SIGNALS = """package main

import "syscall"

//go:noinline
func leaf() { syscall.Kill(syscall.Getpid(), syscall.SIGQUIT); select {} }

//go:noinline
func outer() { leaf(); println("never") }

func main() { outer() }
"""


def go_signal_frames(maker):
    """GOTRACEBACK=crash ends all threads in signal handlers; Go's restorer has CFI that does not say what it is."""
    need("go")
    exe = maker.path("gobin")
    with open(exe + ".go", "w", encoding="utf-8") as f:
        f.write(GO_SIGNALS)
    done = run(["go", "build", "-o", exe, exe + ".go"],
               env={"HOME": maker.folder, **os.environ, "GOCACHE": os.path.join(maker.folder, "go"), "GOFLAGS": "-mod=mod"})
    if done.returncode:
        raise Skip("go build: " + done.stderr[-300:])
    core = maker.core_of(maker.start([exe], env={**os.environ, "GOTRACEBACK": "crash"}, stdout=subprocess.DEVNULL))
    report = Report(maker, core)
    problems = []
    below = 0
    for tid, frames in report.threads.items():
        found = [n or "?" for n in names(frames)]
        at = [i for i, n in enumerate(found) if n.startswith("runtime.sigreturn__sigaction")]
        handlers = [i for i, n in enumerate(found) if n.startswith("runtime.sigtramp.")]
        # Each handler returns to the restorer; below it is what was interrupted, with its callers.
        expect(problems, "thread %d: %s" % (tid, found), at == [i + 1 for i in handlers])
        expect(problems, "thread %d ends there: %s" % (tid, found), not at or len(found) > at[-1] + 2)
        expect(problems, "thread %d: %s" % (tid, found), "?" not in found)
        below += bool(at)
    expect(problems, "%d threads in handlers" % below, below > 1)
    return problems


def hundred_threads(maker):
    exe = maker.build()
    report, problems = against_gdb(maker, maker.crash(exe, "threads"), exe)
    expect(problems, "%d threads" % len(report.threads), len(report.threads) == 101)
    expect(problems, "%s" % names(report.first()), names(report.first())[0] == "die_segv")
    waiting = [t for t in report.threads.values() if "wait_here" in names(t) and "thread" in names(t)]
    expect(problems, "%d wait" % len(waiting), len(waiting) == 100)
    return problems


def core_by_gcore(maker, exe):
    need("gcore")
    process = maker.standing(exe)
    done = run(["gcore", "-o", os.path.join(process.folder, "core"), str(process.pid)], timeout=GDB_SECONDS)
    process.kill()
    process.wait()
    core = os.path.join(process.folder, "core.%d" % process.pid)
    if not os.path.exists(core):
        raise Skip("gcore: " + done.stderr[-200:])
    return core


def gcore_test(maker):
    exe = maker.build()
    core = core_by_gcore(maker, exe)
    report, problems = against_gdb(maker, core, exe)
    expect(problems, "%d threads" % len(report.threads), len(report.threads) == 4)
    expect(problems, "files: %s" % report.states(), set(report.states().values()) == {"verified"})
    return problems


def gcore_without_build_id(maker):
    """gcore leaves code out, of which it tells only where it is mapped; that there is no build-id is another matter."""
    exe = maker.build(flags=("-g", "-O2", "-Wl,--build-id=none"))
    core = core_by_gcore(maker, exe)
    report, problems = against_gdb(maker, core, exe)
    expect(problems, "states: %s" % report.states(), report.states()["crash"] == "unverified")
    report = Report(maker, core, "--exe", "/bin/sh")
    expect(problems, "--exe /bin/sh: %s" % report.states(), report.json["files"][0]["found"] == exe)
    return problems


def cut_off(maker):
    """At any length: no stack that is not the whole core's, and as much of it as there is."""
    exe = maker.build()
    core = maker.crash(exe, "some")
    whole = Report(maker, core)
    size = os.path.getsize(core)
    cut = os.path.join(maker.folder, "cut")
    problems = []
    shutil.copy(core, cut)
    last = size
    for length in [size - 1, size - 4096, *[size * n // 20 for n in range(19, 0, -1)], 65536, 30000, 20000, 17000]:
        last = min(last, length)
        os.truncate(cut, last)
        report = Report(maker, cut)
        expect(problems, "%d: missing bytes" % last, report.json["missing_bytes"] > 0)
        for tid, frames in report.threads.items():
            expect(problems, "%d: thread %d: %s" % (last, tid, names(frames)), is_prefix(frames, whole.threads[tid]))
            expect(problems, "%d: thread %d has no frame" % (last, tid), frames)
    for length in (4000, 2500, 1000, 300, 100, 64, 63, 20, 17, 4, 1):
        os.truncate(cut, length)
        done = run([maker.program, "core", cut])
        lines = done.stderr.splitlines()
        expect(problems, "%d: status %d, %s" % (length, done.returncode, lines),
               done.returncode == 0 or (done.returncode == 1 and len(lines) == 1))
    return problems


def cut_keeps_the_first_thread(maker):
    """The stack of the first thread lies at the core's end, the other threads' before it."""
    exe = maker.build()
    core = maker.crash(exe, "some")
    whole = Report(maker, core)
    os.truncate(core, os.path.getsize(core) - (200 << 10))
    report = Report(maker, core)
    first = report.json["threads"][0]["tid"]
    problems = []
    for tid in whole.threads:
        if tid != first:
            expect(problems, "thread %d: %s" % (tid, names(report.threads[tid])),
                   names(report.threads[tid]) == names(whole.threads[tid]))
    expect(problems, "thread %d: %s" % (first, report.problems[first]), "cut off" in (report.problems[first] or ""))
    text = run([maker.program, "core", core]).stdout
    expect(problems, text[:400], "the core is cut off" in text)
    core = maker.crash(exe, "segv")
    os.truncate(core, os.path.getsize(core) - 45000)
    text = run([maker.program, "core", core]).stdout
    # Megabytes, if the machine gave it a huge page.
    expect(problems, text[:400],
           re.search(r"the core is cut off: 45 kB of [\d.]+ [kM]B of memory are missing \(\d+(\.\d)? %\)", text))
    return problems


def stack_pointers(notes):
    """Of a core's threads, in its order: struct elf_prstatus of x86-64, NT_PRSTATUS."""
    found, at = [], 0
    while at < len(notes):
        name, size, kind = struct.unpack_from("<III", notes, at)
        desc = at + 12 + (name + 3 & ~3)
        if kind == 1:
            found.append(struct.unpack_from("<Q", notes, desc + 112 + 19 * 8)[0])
        at = desc + (size + 3 & ~3)
    return found


def stacks_of_zeros(maker):
    """As gdb 13 writes stacks that it can't read: no return address is no end of a stack."""
    core = maker.crash(maker.build(), "some")
    whole = Report(maker, core)
    with open(core, "r+b") as f:
        head = f.read(64)
        f.seek(struct.unpack_from("<Q", head, 32)[0])
        segments = [struct.unpack("<IIQQQQQQ", f.read(56)) for _ in range(struct.unpack_from("<H", head, 56)[0])]
        f.seek(segments[0][2])
        for sp in stack_pointers(f.read(segments[0][5]))[1:]:
            _, _, offset, start, _, size, _, _ = next(s for s in segments if s[3] <= sp < s[3] + s[6])
            f.seek(offset + sp - start)
            f.write(bytes(start + size - sp))
    report = Report(maker, core)
    problems = []
    for tid in whole.threads:
        is_first = tid == report.json["threads"][0]["tid"]
        expect(problems, "thread %d: %s, %s" % (tid, report.problems[tid], names(report.threads[tid])),
               is_first or "zeros" in (report.problems[tid] or "") and len(report.threads[tid]) <= 2)
    expect(problems, "complete: %s" % [t["tid"] for t in report.json["threads"] if t["complete"]],
           all(t["stop"] == "stack_unreadable" for t in report.json["threads"] if "zeros" in (t["problem"] or "")))
    expect(problems, "%d threads" % len(whole.threads), len(whole.threads) > 1)
    return problems


def rebuilt(maker):
    """The executable is another one by now: said once, not used; the right one under another name is."""
    exe = maker.build()
    core = maker.crash(exe, "abort")
    whole = Report(maker, core)
    kept = maker.path("kept")
    shutil.move(exe, kept)
    shutil.copy(maker.build(flags=("-O1", "-g")), exe)
    problems = []
    report = Report(maker, core)
    said = [line for line in report.errors.splitlines() if "build-id differs" in line]
    expect(problems, "said: %s" % report.errors, len(said) == 1 and exe in said[0])
    expect(problems, "states: %s" % report.states(), report.states()["crash"] == "differs")
    expect(problems, "frames: %s" % names(report.first()), not {"main", "outer"} & set(names(report.first())))
    expect(problems, "libc's are there: %s" % names(report.first()), is_prefix(report.first(), whole.first()))
    expect(problems, "stop: %s" % report.stops, "file_unreadable" in report.stops.values())
    report = Report(maker, core, "--exe", kept)
    expect(problems, "--exe: %s" % names(report.first()), report.threads == whole.threads and not report.errors)
    report = Report(maker, core, "--exe", "/bin/sh")
    expect(problems, "--exe /bin/sh: %s" % report.errors, report.errors.count("not used") == 1)
    return problems


def exe_that_is_not_used(maker):
    """It is said, also if the right one is found by its path, and if nobody knows which it was."""
    exe = maker.build()
    core = maker.crash(exe, "segv")
    whole = Report(maker, core)
    problems = []
    for other, words in (("/bin/ls", "build-id differs"), ("/nonexistent", "cannot be read")):
        report = Report(maker, core, "--exe", other)
        expect(problems, "%s: %s" % (other, report.errors), report.errors.count("\n") == 1 and other in report.errors)
        expect(problems, "%s: %s" % (other, report.errors), words in report.errors and "not used" in report.errors)
        expect(problems, "%s: %s" % (other, names(report.first())), report.threads == whole.threads)
    expect(problems, "the right one: %s" % whole.errors, not Report(maker, core, "--exe", exe).errors)
    return problems


def where_missing_files_are(maker):
    """The core has the program's ELF header, and so the addresses in the file, although there is no file."""
    exe = maker.build()
    core, bare = maker.crash(exe, "segv"), maker.crash(exe, "segv", FILTER_ANONYMOUS)
    whole, whole_bare = Report(maker, core), Report(maker, bare)
    problems = []

    def first(report):
        return report.json["threads"][0]["frames"][0]

    def bias(report):
        return [f["bias"] for f in report.json["files"] if f["path"] == exe]

    for what, change in (("missing", lambda: os.unlink(exe)), ("differs", lambda: shutil.copy("/bin/ls", exe))):
        change()
        report = Report(maker, core)
        expect(problems, "%s: %s" % (what, report.states()), report.states()["crash"] == what)
        expect(problems, "%s: %s" % (what, first(report)), first(report)["address"] == first(whole)["address"])
        expect(problems, "%s: %s" % (what, bias(report)), bias(report) == bias(whole))
        report = Report(maker, bare)
        expect(problems, "%s, bare: %s" % (what, bias(report)), bias(report) == [None])
        expect(problems, "%s, bare: %s" % (what, report.first()), report.first()[0].pc == whole_bare.first()[0].pc)
    return problems


def sysroot_and_build_ids(maker):
    exe = maker.build()
    core = maker.crash(exe, "abort")
    whole = Report(maker, core)
    root = maker.path("root")
    problems = []
    os.makedirs(root + os.path.dirname(exe))
    shutil.move(exe, root + exe)
    report = Report(maker, core)
    expect(problems, "states: %s" % report.states(), report.states()["crash"] == "missing")
    expect(problems, run([maker.program, "core", core]).stdout[:300],
           "not found: " + exe in run([maker.program, "core", core]).stdout)
    report = Report(maker, core, "--sysroot", root)
    expect(problems, "--sysroot: %s" % report.states(), report.threads == whole.threads)
    expect(problems, "--sysroot: %s" % report.json["files"][0], report.json["files"][0]["found"] == root + exe)
    build_id = whole.json["files"][0]["build_id"]
    folder = root + "/usr/lib/debug/.build-id/" + build_id[:2]
    os.makedirs(folder)
    shutil.move(root + exe, os.path.join(folder, build_id[2:]))
    report = Report(maker, core, "--sysroot", root)
    expect(problems, ".build-id: %s" % report.states(), report.threads == whole.threads)
    return problems


def debug_files_beside(maker):
    """A stripped program: its debug file is beside what --exe names, or below --sysroot."""
    exe = maker.build()
    whole = Report(maker, maker.crash(exe, "abort"))
    debug = maker.path("crash.debug")
    subprocess.run(["objcopy", "--only-keep-debug", exe, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", "--add-gnu-debuglink=" + debug, exe], check=True)
    core = maker.crash(exe, "abort")
    problems = []
    report = Report(maker, core)
    expect(problems, "without: %s" % names(report.first()), "outer" not in names(report.first()))
    kept = os.path.join(os.path.dirname(debug), "crash")
    shutil.copy(exe, kept)
    report = Report(maker, core, "--exe", kept)
    expect(problems, "--exe: %s" % names(report.first()), names(report.first()) == names(whole.first()))
    root = maker.path("root")
    os.makedirs(root + os.path.dirname(exe))
    shutil.move(exe, root + exe)
    shutil.copy(debug, root + os.path.dirname(exe))
    os.unlink(debug)
    shutil.rmtree(os.path.join(os.environ["XDG_CACHE_HOME"], "sonde"), ignore_errors=True)
    report = Report(maker, core, "--sysroot", root)
    expect(problems, "--sysroot: %s" % names(report.first()), names(report.first()) == names(whole.first()))
    return problems


def nothing_but_registers(maker):
    exe = maker.build()
    report = Report(maker, maker.crash(exe, "segv", FILTER_NOTHING))
    problems = []
    expect(problems, "%s" % names(report.first()), names(report.first())[0] == "die_segv")
    expect(problems, "%s" % report.problems, "left out" in list(report.problems.values())[0])
    expect(problems, "states: %s" % report.states(), set(report.states().values()) == {"unverified"})
    text = run([maker.program, "core", maker.crash(exe, "segv", FILTER_NOTHING)]).stdout
    expect(problems, text[:300], "not verified" in text)
    return problems


def without_elf_headers(maker):
    """No build-ids: found by path, and the auxiliary vector tells another program from it."""
    exe = maker.build()
    core = maker.crash(exe, "some", FILTER_ANONYMOUS)
    report, problems = against_gdb(maker, core, exe)
    expect(problems, "states: %s" % report.states(), set(report.states().values()) == {"unverified"})
    report = Report(maker, core, "--exe", "/bin/sh")
    expect(problems, "--exe /bin/sh: %s" % report.states(), report.json["files"][0]["found"] == exe)
    shutil.copy("/bin/ls", exe)
    report = Report(maker, core)
    expect(problems, "ls in its place: %s" % report.states(), report.states()["crash"] == "differs")
    return problems


def everything_in_the_core(maker):
    """All memory is in the core: it needs no file. (Names: only what the dynamic symbols have.)"""
    exe = maker.build()
    core = maker.crash(exe, "some", FILTER_ALL)
    whole, problems = against_gdb(maker, core, exe)
    os.unlink(exe)
    report = Report(maker, core)
    expect(problems, "states: %s" % report.states(), report.states()["crash"] == "memory")
    for tid, frames in report.threads.items():
        expect(problems, "thread %d: %s" % (tid, names(frames)),
               pcs(frames) == pcs(whole.threads[tid]))
    return problems


def deleted(maker):
    """The kernel writes the path with " (deleted)"; a file of that path with the build-id is the one."""
    exe = maker.build()
    process = maker.standing(exe)
    kept = maker.path("kept")
    shutil.copy2(exe, kept)
    os.unlink(exe)
    process.send_signal(signal.SIGABRT)
    core = maker.core_of(process)
    problems = []
    report = Report(maker, core)
    expect(problems, "states: %s" % report.states(), report.states()["crash"] == "missing")
    shutil.copy2(kept, exe)
    report = Report(maker, core)
    expect(problems, "states: %s" % report.states(), report.states()["crash"] == "verified")
    expect(problems, "%s" % names(report.first()), "stand" in names(report.first()))
    return problems


def text_and_json_agree(maker):
    exe = maker.build()
    core = maker.crash(exe, "some")
    report = Report(maker, core)
    text = run([maker.program, "core", core]).stdout
    shown = {}
    for line in text.splitlines():
        thread = re.match(r"thread (\d+)", line)
        frame = re.match(r"  #\d+ +(\S+)", line)
        if thread:
            shown[int(thread[1])] = []
            last = int(thread[1])
        elif frame:
            shown[last].append(frame[1])
    problems = []
    for tid, frames in report.threads.items():
        expect(problems, "thread %d: %s" % (tid, shown[tid]),
               [n for n in shown[tid] if not n.startswith("[")] == [n for n in names(frames) if n])
    report = Report(maker, core, "--no-inlines")
    expect(problems, "--no-inlines", not any(inline_names(t) for t in report.threads.values()))
    return problems


def short_names(maker):
    problems = []
    for _ in range(30):  # now and then it is not in its own functions
        core = maker.kill_at_work([maker.workload("cxxnames"), "30"])
        full, short = (Report(maker, core, "--names", style).first() for style in ("full", "short"))
        if any("(" in (n or "") for n in names(full)):
            break
    expect(problems, "full: %s" % names(full), any("(" in (n or "") for n in names(full)))
    expect(problems, "short: %s" % names(short),
           not any((n or "").removesuffix("operator()").endswith(")") for n in names(short)))
    expect(problems, "the same frames", pcs(full) == pcs(short))
    return problems


def refused(maker):
    """One line each, exit status 1, and what to do."""
    need("zstd", "xz")
    exe = maker.build()
    core = maker.crash(exe, "abort")
    os.truncate(core, 1 << 16)
    folder = os.path.dirname(maker.path("x"))

    def file(name, data):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
        return os.path.join(folder, name)

    with open(core, "rb") as f:
        data = bytearray(f.read())
    other, big = bytearray(data), bytearray(data)
    other[18:20] = (243).to_bytes(2, "little")
    big[5] = 2
    big[16:20] = b"\0\4\0\x16"
    run(["zstd", "-qk", core])
    run(["xz", "-k", core])
    os.mkfifo(os.path.join(folder, "fifo"))
    cases = [
        (file("empty", b""), "is empty"), (file("text", b"hello\n"), "no core file"), (folder, "no regular file"),
        (os.path.join(folder, "fifo"), "but a pipe"), (os.path.join(folder, "none"), "No such file"),
        ("-", "standard input"), (exe, "no core: an executable"), (core + ".zst", "zstd -d"), (core + ".xz", "xz -dk"),
        (file("lz4", b"\x04\x22\x4d\x18abcdef"), "lz4 -d"), (file("other", other), "another machine (RISC-V)"),
        (file("big", big), "another machine (s390x)"), (file("head", data[:100]), "cut off"), (file("h", data[:18]), "cut off"),
    ]
    compat = os.path.join(maker.workloads, "compat32")
    if os.path.exists(compat):
        cases.append((maker.kill_at_work([compat, "30"]), "32-bit core (i386)"))
    problems = []
    for path, words in cases:
        done = run([maker.program, "core", path], timeout=GDB_SECONDS)
        lines = done.stderr.splitlines()
        expect(problems, "%s: %d %s" % (words, done.returncode, lines),
               done.returncode == 1 and len(lines) == 1 and words in lines[0] and not done.stdout)
    whole = maker.crash(exe, "abort")
    for root in ("/nonexistent", exe):
        done = run([maker.program, "core", "--sysroot", root, whole])
        expect(problems, "--sysroot: %d %s" % (done.returncode, done.stderr),
               done.returncode == 1 and done.stderr.count("\n") == 1 and root in done.stderr and not done.stdout)
    for argv in ([], [core, core], ["--names", "long", core], ["--nonsense", core]):
        done = run([maker.program, "core", *argv])
        expect(problems, "%s: %d" % (argv, done.returncode), done.returncode == 2 and done.stderr.count("\n") == 1)
    return problems


WORKLOADS = ["chain", "chain_nopie", "chain_spie", "chain_strip", "chain_clang", "chain_o0", "calls", "calls.static",
             "deep", "sigasync", "sigasync.static", "threads", "threads.static", "callback", "cxxthrow", "cxxnames", "realign",
             "dynframe", "tailcall", "vdso", "plt_lazy", "ucontext", "noreturn", "rust_chain"]

TESTS = [
    *[("workload-" + name, workload_test(name)) for name in WORKLOADS],
    ("workload-sigasync-alt", workload_test("sigasync", ["alt"])),
    ("frame-pointers", frame_pointers),
    ("segv", crash_test("segv", "SIGSEGV", ["die_segv"])),
    ("fpe", crash_test("fpe", "SIGFPE", ["die_fpe"])),
    ("abort-static", crash_test("abort", "SIGABRT", ["die_abort"], {"flags": ("-g", "-O2", "-static")})),
    ("abort-clang", crash_test("abort", "SIGABRT", ["die_abort"], {"compiler": "clang", "flags": ("-g", "-O1")})),
    ("handler", crash_test("handler", "SIGABRT", ["die_abort", "on_signal", "die_handler"])),
    ("segv-says-where", segv_says_where),
    ("call-of-null", call_of_null),
    ("stack-overflow", stack_overflow),
    ("go-signal-frames", go_signal_frames),
    ("hundred-threads", hundred_threads),
    ("gcore", gcore_test),
    ("gcore-without-build-id", gcore_without_build_id),
    ("cut-off", cut_off),
    ("cut-off-within-stacks", cut_keeps_the_first_thread),
    ("rebuilt", rebuilt),
    ("exe-that-is-not-used", exe_that_is_not_used),
    ("where-missing-files-are", where_missing_files_are),
    ("sysroot-and-build-ids", sysroot_and_build_ids),
    ("debug-files-beside", debug_files_beside),
    ("filter-nothing", nothing_but_registers),
    ("stacks-of-zeros", stacks_of_zeros),
    ("filter-anonymous", without_elf_headers),
    ("filter-all", everything_in_the_core),
    ("deleted", deleted),
    ("text-and-json", text_and_json_agree),
    ("short-names", short_names),
    ("refused", refused),
    ("aarch64-static", arm64.crash_test("some", "SIGABRT", ["die_abort"], "-static")),
    ("aarch64", arm64.crash_test("some", "SIGABRT", ["die_abort"], "-no-pie")),
    ("aarch64-pie", arm64.crash_test("some", "SIGABRT", ["die_abort"])),
    ("aarch64-segv", arm64.crash_test("segv", "SIGSEGV", ["die_segv"], "-static")),
    ("aarch64-segv-static-pie", arm64.crash_test("segv", "SIGSEGV", ["die_segv"], "-static-pie")),
    ("aarch64-signed", arm64.crash_test("some", "SIGABRT", ["die_abort"], "-static", arm64.SIGNED)),
    ("aarch64-handler", arm64.handler),
    ("aarch64-other-exe", arm64.other_exe),
    ("aarch64-missing-files", arm64.missing_files),
    ("aarch64-cut-off", arm64.cut_off),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    root = os.environ.get("SONDE_BUILD_ROOT", "build")
    parser.add_argument("--sonde", default=os.path.join(root, "sonde"))
    parser.add_argument("--workloads", default=os.path.join(root, "tests", "workloads"))
    parser.add_argument("--only", default="", help="run the tests whose name this matches")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="sonde-core-")
    # Symbol tables of what this test builds are of no use to others.
    os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    maker = Maker(os.path.abspath(args.sonde), os.path.abspath(args.workloads), folder)
    tests = [t for t in TESTS if re.search(args.only, t[0])]
    status = tap.run((name, lambda test=test: (test(maker)[:20], None)) for name, test in tests)
    if args.keep:
        print("# files: %s" % folder)
    else:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(guard.run(main))
