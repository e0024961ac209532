# SPDX-License-Identifier: Apache-2.0
"""Cores of aarch64 programs, written by qemu. Each test is a function of a cores.Maker that returns problems."""
import os
import shutil

from cores import Report, compare, expect, gdb_frames, is_prefix, names, need
from tap import Skip

SYSROOT = "/usr/aarch64-linux-gnu"
# Return addresses carry a code in their upper bits. qemu writes no NT_ARM_PAC_MASK, which gdb goes by.
SIGNED = "-mbranch-protection=standard"


def build(maker, *flags):
    need("qemu-aarch64", "aarch64-linux-gnu-gcc")
    return maker.build("aarch64-linux-gnu-gcc", flags=("-g", "-O2", *flags))


def crash(maker, exe, how):
    before = ["qemu-aarch64", "-L", SYSROOT]
    try:
        return maker.crash(exe, how, before=before)
    except Skip:
        raise Skip("qemu writes no cores here") from None


def crash_test(how, signo, middle, *flags):
    """gdb does not see where a position-independent program is, when the core has not got its headers (qemu's cores)."""
    def test(maker):
        exe = build(maker, *flags)
        core = crash(maker, exe, how)
        report = Report(maker, core, "--sysroot", SYSROOT, "--exe", exe)
        problems = []
        if ("-static" in flags or "-no-pie" in flags) and SIGNED not in flags:
            theirs = gdb_frames(core, exe, maker.folder, "gdb-multiarch", SYSROOT)
            problems = compare(report, theirs, [exe, SYSROOT + "/lib/libc.so.6"])
        chain = [n for n in names(report.first()) if n in ("main", "outer", "middle", "inner") or n in middle]
        expect(problems, "chain: %s" % names(report.first()), chain == [*middle, "inner", "middle", "outer", "main"])
        for tid, stop in report.stops.items():
            expect(problems, "thread %d: %s, %s" % (tid, stop, names(report.threads[tid])), stop == "complete")
        expect(problems, "signal: %s" % report.json["signal"], report.json["signal"]["name"] == signo)
        expect(problems, report.json["machine"], report.json["machine"] == "aarch64")
        expect(problems, "states: %s" % report.states(), set(report.states().values()) == {"unverified"})
        return problems
    return test


def handler(maker):
    """qemu's trampoline is in no file; gdb 13 does not come past it."""
    exe = build(maker, "-static")
    report = Report(maker, crash(maker, exe, "handler"))
    chain = [n for n in names(report.first()) if n in ("die_abort", "on_signal", "die_handler", "middle", "main")]
    problems = []
    expect(problems, "%s" % names(report.first()), chain == ["die_abort", "on_signal", "die_handler", "middle", "main"])
    expect(problems, "%s" % report.stops, set(report.stops.values()) == {"complete"})
    return problems


def other_exe(maker):
    """An aarch64 core, but not this program's: its entry point tells. One of this machine is none at all."""
    exe = build(maker, "-static")
    core = crash(maker, exe, "abort")
    problems = []
    for other in (build(maker, "-static", "-O0"), "/bin/sh"):
        report = Report(maker, core, "--exe", other, "--sysroot", SYSROOT)
        expect(problems, "%s: %s" % (other, report.errors), report.errors.count("not used") == 1)
        expect(problems, "%s: %s" % (other, names(report.first())), not any(names(report.first())))
    return problems


def missing_files(maker):
    """Code of files that are not there can't be followed, and no stack through it is complete."""
    problems = []
    empty = os.path.dirname(maker.path("nothing"))
    for flags in ((), ("-static",)):
        exe = build(maker, *flags)
        core = crash(maker, exe, "some")
        whole = Report(maker, core, "--sysroot", SYSROOT, "--exe", exe)
        kept = maker.path("kept")
        shutil.move(exe, kept)
        cases = [("no program", ["--sysroot", SYSROOT])]
        if not flags:
            cases.append(("no libraries", ["--sysroot", empty, "--exe", kept]))
        for what, options in cases:
            report = Report(maker, core, *options)
            expect(problems, "%s: %s" % (what, report.stops), set(report.stops.values()) == {"file_unreadable"})
            for tid, frames in report.threads.items():
                expect(problems, "%s: thread %d: %s" % (what, tid, frames), frames and is_prefix(frames, whole.threads[tid]))
        objects = {f.object for frames in report.threads.values() for f in frames}
        expect(problems, "%s: %s" % (what, objects), objects == ({exe} if flags else {"/lib/libc.so.6"}))
    return problems


def cut_off(maker):
    exe = build(maker)
    core = crash(maker, exe, "some")
    options = ["--sysroot", SYSROOT, "--exe", exe]
    whole = Report(maker, core, *options)
    problems = []
    size = os.path.getsize(core)
    for n in (9, 7, 5, 3, 1):
        os.truncate(core, size * n // 10)
        report = Report(maker, core, *options)
        for tid, frames in report.threads.items():
            expect(problems, "%d0 %%: thread %d: %s" % (n, tid, names(frames)), is_prefix(frames, whole.threads[tid]))
            expect(problems, "%d0 %%: thread %d: %s" % (n, tid, names(frames)),
                   frames == whole.threads[tid] or report.stops[tid] != "complete")
    return problems
