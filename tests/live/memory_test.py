#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fifty different executables of 100 MB, recorded under --memory-limit. TAP on standard output.

    memory_test.py [--sonde PROGRAM] [--limit SIZE] [--keep]

Each has 153,600 functions, whose unwind tables together are several times the limit. They run at the same time and then
one by one. sonde's memory and BPF maps, watched from outside, stay inside the limit, no stack is wrong, and the summary
says what was given up. Then a program whose tables are larger than all the room that there is. Needs root, BPF, gcc and clang. The files are sparse: 16 MB of disk each.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("bench", "lib")]
import guard
from cases import WORKLOADS, Case
from folded import Verdict
from footprint import Watcher, total
from known_answers import expectation
from sonde import FREQUENCY, Recorder, Setup

COUNT = 50
SECONDS = 0.1  # of CPU, each time that one runs
MEGABYTE = 1 << 20
BUILD_ID = "5" * 40

# Functions of a page of code together, then one of nearly 80 KiB, all zeros: a hole in the file.
PADDING = """
	.text
	.set n, 0
	.macro function bytes
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	sub $64, %rsp
	.cfi_def_cfa_offset 32 + 8 * (n % 61)
	.skip \\bytes, 0
	add $64, %rsp
	.cfi_def_cfa_offset 16
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.p2align 4
	.set n, n + 1
	.endm
	.rept 1200
	.rept 127
	function 16
	.endr
	function 79600
	.endr
	.section .note.GNU-stack,"",@progbits
"""


def build(folder):
    """The first of the executables: the workload `chain`, and 100 MB of code that is never called."""
    source, padding, program = (os.path.join(folder, name) for name in ("padding.S", "padding.o", "big"))
    with open(source, "w", encoding="utf-8") as f:
        f.write(PADDING)
    subprocess.run(["gcc", "-c", source, "-o", padding], check=True)
    flags = ["-O2", "-std=gnu17", "-w", "-fomit-frame-pointer", "-fPIE", "-pie", "-Wl,--build-id=0x" + BUILD_ID]
    subprocess.run(["gcc", *flags, os.path.join(WORKLOADS, "chain.c"), padding, "-o", program], check=True)
    for path in (source, padding):
        os.unlink(path)
    return program


def data_ranges(fd, size):
    end = 0
    while end < size:
        try:
            start = os.lseek(fd, end, os.SEEK_DATA)
        except OSError:  # no data up to the end
            return
        end = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, end


def copy(source, path, build_id):
    """A copy with holes where the source has them, and with a build-id of its own."""
    with open(source, "rb") as old, open(path, "wb") as new:
        size = os.fstat(old.fileno()).st_size
        os.truncate(new.fileno(), size)
        for start, end in data_ranges(old.fileno(), size):
            while start < end:
                start += os.copy_file_range(old.fileno(), new.fileno(), end - start, start, start)
        head = os.pread(old.fileno(), 4096, 0)
        os.pwrite(new.fileno(), bytes.fromhex(build_id), head.index(bytes.fromhex(BUILD_ID)))
    os.chmod(path, 0o755)


def build_all(folder):
    big = build(folder)
    sparse = big + ".sparse"
    subprocess.run(["cp", "--sparse=always", big, sparse], check=True)
    os.unlink(big)
    programs = [os.path.join(folder, "big%d" % i) for i in range(COUNT)]
    for i, path in enumerate(programs):
        copy(sparse, path, "%040x" % (i + 1))
    os.unlink(sparse)
    return programs


class Run:
    """One recording of all programs."""

    def __init__(self, setup, programs, limit):
        self.cpu_file = setup.path(".times")
        script = "for p; do $p %g & done; wait; for p; do $p %g; done; times > %s" % (SECONDS, SECONDS, self.cpu_file)
        recorder = Recorder(setup, ["--memory-limit", limit], ["sh", "-c", script, "sh", *programs])
        watcher = Watcher(recorder.process.pid)
        self.recording = recorder.wait()
        self.largest = watcher.stop()
        self.looks = watcher.looks
        self.stats = self.recording.stats or {}

    def cpu_seconds(self):
        """Of all programs: the second line of `times`, as in 0m4.990s 0m0.520s."""
        with open(self.cpu_file, encoding="utf-8") as f:
            times = f.read().splitlines()[1].split()
        return sum(int(t.split("m")[0]) * 60 + float(t.split("m")[1][:-1]) for t in times)


def recorded(run, _setup, _limit):
    """The recording ended well, and its numbers agree with each other."""
    run.recording.expect_status(0)
    return run.recording.problems, "%.1f s" % run.stats.get("duration_s", 0)


def inside_limit(run, _setup, limit):
    m = run.largest
    if not m:
        return ["sonde's memory was never seen"], None
    note = "%.1f MB in all: %.1f MB resident (%.1f MB of them BPF maps), %.1f MB of BPF maps; %d looks" % (
        total(m) / MEGABYTE,
        m.rss / MEGABYTE,
        m.mapped / MEGABYTE,
        m.maps / MEGABYTE,
        run.looks,
    )
    bad = total(m) > limit
    return ["more than the limit of %.0f MB: %s" % (limit / MEGABYTE, note)] if bad else [], note


def says_what_it_gave_up(run, _setup, _limit):
    truncated, lost = run.stats.get("truncated", {}), run.stats.get("lost", {})
    problems = []
    given_up = {"table_evicted": truncated.get("table_evicted", 0), "files_evicted": lost.get("files_evicted", 0)}
    if not any(given_up.values()):
        problems.append("nothing was given up: truncated %s, lost %s" % (truncated, lost))
    for reason, count in given_up.items():
        if count and reason not in run.recording.errors:
            problems.append("the summary does not speak of %s:" % reason)
            problems += ["  " + line for line in run.recording.errors.splitlines()]
    return problems, "%d of %d complete, truncated %s, lost %s" % (
        run.stats.get("complete", 0),
        run.stats.get("samples", 0),
        truncated,
        lost,
    )


def samples_arrive(run, _setup, _limit):
    """What is given up is unwinding, not samples."""
    comms = {os.path.basename(p) for p in run.programs}
    arrived = sum(s.count for s in run.recording.stacks or [] if s.comm in comms)
    expected = run.cpu_seconds() * FREQUENCY
    note = "%d of %.0f samples" % (arrived, expected)
    return [] if arrived >= 0.9 * expected else [note], note


def no_wrong_stack(run, setup, _limit):
    """Complete or cut: what there is of each stack is right."""
    problems, samples, complete = [], 0, 0
    for path in run.programs:
        e = expectation(setup, Case(os.path.basename(path), expect="chain"))
        e.complete = e.total = 0
        e.need = [(0, *p[1:]) for p in e.need]
        verdict = Verdict(e, run.recording.stacks or [], os.path.basename(path), 1)
        problems += verdict.problems
        samples += verdict.samples
        complete += verdict.complete
    return problems[:20], "%d samples, %d complete" % (samples, complete)


def no_room_at_all(_run, setup, _limit):
    """The tables of clang's libraries, 9 MB, where all there is are 2: they are read from the disk, and nothing is cut. With few samples
    their stacks have room, however long a busy machine takes."""
    folder = os.path.dirname(setup.path(".c"))
    source = os.path.join(folder, "many.c")
    with open(source, "w", encoding="utf-8") as f:
        f.writelines("int f%d(int a, int *p) { for (int i = 0; i < a; i++) p[i] += p[a - i] * %d; return p[a]; }\n" % (i, i) for i in range(1500))
    recording = Recorder(setup, ["--memory-limit", "32M"], ["clang", "-O2", "-c", source, "-o", source + ".o"], frequency=199).wait()
    recording.expect_status(0)
    s = recording.stats
    note = "%d of %d complete, truncated %s" % (s["complete"], s["samples"], s["truncated"])
    problems = recording.problems
    if s["samples"] < 250 or s["complete"] < 0.9 * s["samples"]:
        problems.append(note)
    if "no room for its unwind table" in recording.errors:
        problems += recording.errors.splitlines()
    return problems, note


def what_comes_late(_run, setup, _limit):
    """The profile is full of stacks that are met once each when another program begins: it is whole, and they are shorter."""
    branches = os.path.join(os.environ.get("SONDE_BUILD_ROOT", "build"), "tests", "workloads", "branches")
    recording = Recorder(setup, ["--memory-limit", "32M"], [branches, "5", "1"], frequency=4999).wait()
    recording.expect_status(0)
    s = recording.stats
    problems = recording.problems
    late = [x for x in recording.stacks if x.comm == "late"]
    whole = sum(x.count for x in late if x.user[-2:] == ("main", "comes_late") and not x.reason)
    note = "%d of %d samples not kept whole, late %d of %d, lost %s" % (
        s["truncated"].get("not_kept", 0), s["samples"], whole, sum(x.count for x in late), s["lost"])
    if s["truncated"].get("not_kept", 0) < 1000:
        problems.append("the profile was not full")
    if s["lost"].get("out_of_memory", 0) or whole < 0.95 * 4999 * 0.9:
        problems.append("lost, or not there")
    way = re.compile(r"main;(branches_on;goes_(left|right);)*(branches_on;)?(goes_(left|right);|arrives;)?$|main;work_left;")
    for x in recording.stacks:
        if x.comm == "branches" and x.reason == "not_kept" and x.user[-1] == "[native: not_kept]" and "main" in x.user:
            text = ";".join(x.user[x.user.index("main"):-1]) + ";"
            if not way.match(text):
                problems.append("wrong: %s" % text)
    return problems, note


TESTS = [recorded, inside_limit, says_what_it_gave_up, samples_arrive, no_wrong_stack, no_room_at_all, what_comes_late]


def size(text):
    return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0)


def main():
    root = os.environ.get("SONDE_BUILD_ROOT", "build")
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sonde", default=os.path.join(root, "sonde"))
    parser.add_argument("--limit", default="64M")
    parser.add_argument("--keep", action="store_true", help="keep the executables and the recording")
    args = parser.parse_args()
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        print("1..0 # SKIP not root, or not x86-64")
        return 0
    # Not in /tmp, which may be memory itself.
    scratch = tempfile.mkdtemp(prefix="memory-test-", dir=root if os.path.isdir(root) else None)
    failed = 0
    try:
        setup = Setup(os.path.abspath(args.sonde), scratch, scratch, "native")
        programs = build_all(scratch)
        run = Run(setup, programs, args.limit)
        run.programs = programs
        print("1..%d" % len(TESTS))
        for i, test in enumerate(TESTS, 1):
            problems, note = test(run, setup, size(args.limit))
            failed += bool(problems)
            print("%s %d - memory-%s" % ("not ok" if problems else "ok", i, test.__name__.replace("_", "-")))
            for line in problems + ([note] if note else []):
                print("#   %s" % line)
    finally:
        if args.keep:
            print("# files: %s" % scratch)
        else:
            shutil.rmtree(scratch)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(guard.run(main))
