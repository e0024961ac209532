# SPDX-License-Identifier: Apache-2.0
"""Makes cores, reads them with sonde and with gdb, and compares what both say."""
import collections
import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import command
from cpu_time import cpu_seconds
from tap import Skip

HERE = os.path.dirname(os.path.abspath(__file__))
# The kernel keeps these of memory: /proc/PID/coredump_filter, core(5).
FILTER_NOTHING, FILTER_ANONYMOUS, FILTER_DEFAULT, FILTER_ALL = 0, 1, 0x33, 0x7f
GDB_SECONDS = 300  # for what hangs


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip("no " + program)


def run(argv, **options):
    """Whatever its status is."""
    return command.run(*argv, status=None, errors="replace", **options)


# --- making cores ------------------------------------------------------------------------------------------------------------


class Maker:
    """Makes programs and their cores in a folder of its own."""

    def __init__(self, program, workloads, folder):
        self.program = program
        self.workloads = workloads
        self.folder = folder
        self.number = 0

    def path(self, name):
        self.number += 1
        folder = os.path.join(self.folder, str(self.number))
        os.mkdir(folder)
        return os.path.join(folder, name)

    def build(self, compiler="gcc", name="crash", flags=("-g", "-O2")):
        need(compiler)
        out = self.path(name)
        subprocess.run([compiler, *flags, "-pthread", "-w", os.path.join(HERE, "crash.c"), "-o", out], check=True)
        return out

    def workload(self, name):
        path = os.path.join(self.workloads, name)
        if not os.path.exists(path):
            raise Skip("no workload " + name)
        return path

    def start(self, argv, core_filter=FILTER_DEFAULT, **options):
        folder = os.path.dirname(self.path("core"))

        def prepare():
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            with open("/proc/self/coredump_filter", "w", encoding="utf-8") as f:
                f.write(hex(core_filter))

        process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=prepare,
                                   **options)
        process.folder = folder
        return process

    @staticmethod
    def core_of(process):
        """The core of a process that has died; the kernel's core_pattern may lead elsewhere. Of what qemu ran, not of qemu."""
        process.wait(120)
        cores = sorted((name for name in os.listdir(process.folder) if "core" in name), key=lambda n: not n.startswith("qemu_"))
        if not cores:
            raise Skip("the kernel writes cores elsewhere: " + core_pattern())
        return os.path.join(process.folder, cores[0])

    def crash(self, exe, how, core_filter=FILTER_DEFAULT, before=()):
        return self.core_of(self.start([*before, exe, how], core_filter, stdout=subprocess.DEVNULL))

    def kill_at_work(self, argv, core_filter=FILTER_DEFAULT, signo=signal.SIGABRT):
        """A workload, killed in the midst of its work."""
        process = self.start(argv, core_filter, stdout=subprocess.DEVNULL)
        while cpu_seconds(process.pid) < 0.2 and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signo)
        return self.core_of(process)

    def standing(self, exe):
        """A process whose threads all stand."""
        process = self.start([exe, "stand"], stdout=subprocess.PIPE, text=True)
        if process.stdout.readline() != "ready\n":
            raise AssertionError("%s does not stand" % exe)
        return process


def core_pattern():
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as f:
        return f.read().strip()


# --- reading them ------------------------------------------------------------------------------------------------------------

Frame = collections.namedtuple("Frame", "name pc object inlined")


class Report:
    """What `sonde core --json` says."""

    def __init__(self, maker, core, *options, status=0):
        done = run([maker.program, "core", core, "--json", *options], timeout=300)
        self.errors = done.stderr
        if done.returncode != status:
            raise AssertionError("exit status %d: %s" % (done.returncode, done.stderr))
        self.json = json.loads(done.stdout)
        bias = {f["path"]: int(f["bias"], 16) for f in self.json["files"] if f["bias"]}
        if "vdso" in self.json:
            bias["[vdso]"] = int(self.json["vdso"], 16)
        self.threads = {}
        self.stops = {}
        self.problems = {}
        for thread in self.json["threads"]:
            self.threads[thread["tid"]] = [
                Frame(f["function"], int(f["address"], 16) + bias.get(f["object"], 0), f["object"], f["inlined"])
                for f in thread["frames"]]
            self.stops[thread["tid"]] = thread["stop"]
            self.problems[thread["tid"]] = thread["problem"]

    def first(self):
        """The frames of the thread that died."""
        return self.threads[self.json["threads"][0]["tid"]]

    def states(self):
        return {os.path.basename(f["path"]): f["state"] for f in self.json["files"]}


def pcs(frames):
    return [f.pc for f in frames if not f.inlined]


def names(frames):
    return [f.name for f in frames]


def gdb_frames(core, exe, folder, gdb="gdb", sysroot=None):
    """What gdb says: thread id -> frames."""
    need(gdb)
    output = tempfile.NamedTemporaryFile(dir=folder, suffix=".json", delete=False).name
    argv = [gdb, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"]
    if sysroot:
        argv += ["-iex", "set sysroot " + sysroot]
    argv += ["-ex", "file " + exe, "-ex", "core-file " + core, "-ex", "set backtrace past-main on",
             "-ex", "source " + os.path.join(HERE, "gdb_frames.py")]
    done = run(argv, timeout=GDB_SECONDS, env={**os.environ, "FRAMES": output})
    try:
        with open(output, encoding="utf-8") as f:
            return {int(tid): frames for tid, frames in json.load(f).items()}
    except ValueError:
        raise AssertionError("gdb: " + done.stderr[-500:]) from None


# --- comparing ---------------------------------------------------------------------------------------------------------------


def debug_file(path):
    """Where the distribution has the symbols of a stripped file; "" of that file itself."""
    if path.startswith("/usr/lib/debug/"):
        return ""
    found = re.search(r"Build ID: (\w\w)(\w+)", run(["readelf", "-n", path]).stdout)
    return "/usr/lib/debug/.build-id/%s/%s.debug" % found.groups() if found else ""


@functools.lru_cache(maxsize=None)
def symbols_at(path):
    """Value -> all names of that address."""
    found = collections.defaultdict(set)
    if os.path.exists(debug_file(path)):
        for value, at in symbols_at(debug_file(path)).items():
            found[value] |= at
    for option in ("--syms", "--dyn-syms"):
        for line in run(["readelf", "-W", option, "-C", path]).stdout.splitlines():
            fields = line.split(None, 7)
            if len(fields) == 8 and fields[0].endswith(":") and fields[3] in ("FUNC", "IFUNC", "NOTYPE"):
                found[int(fields[1], 16)].add(re.sub(r"@.*", "", fields[7]))
    return found


# What one of both writes and the other leaves out: clones, Rust's hashes; the vDSO's functions have two names each.
LEFT_OUT = re.compile(r" \[clone .*\]|\.(constprop|part|isra|cold).*|::h[0-9a-f]{16}|^__(vdso|kernel)_")


def same_name(ours, theirs, aliases):
    if ours == theirs or ours is None or theirs is None:
        return True
    plain = [LEFT_OUT.sub("", name) for name in (ours, theirs)]
    # C's functions, and gdb's way to write C++'s.
    if plain[0] == plain[1] or plain[0].split("(")[0] == plain[1].split("(")[0]:
        return True
    return any(ours in found and theirs in found for found in aliases)


def compare_thread(tid, ours, theirs, aliases):
    """Frame by frame; gdb may go on where the thread begins (it takes what is on the stack there for frames)."""
    real = [f for f in ours if not f.inlined]
    # A tail call leaves no frame: gdb makes them up, out of the debug information of both functions.
    other = [f for f in theirs if f["kind"] not in ("inline", "tail")]
    for i, (a, b) in enumerate(zip(real, other)):
        # A caller's address is its return address to gdb, the byte before it to us.
        if b["pc"] - a.pc not in (0, 1):
            return ["thread %d, frame %d: %s at 0x%x, gdb has %s at 0x%x" % (tid, i, a.name, a.pc, b["name"], b["pc"])]
        if b["kind"] != "signal" and not same_name(a.name, b["name"], aliases):
            return ["thread %d, frame %d: %s, gdb calls it %s" % (tid, i, a.name, b["name"])]
    while len(real) < len(other) and other[-1]["name"] is None:
        other.pop()
    if len(real) < len(other):
        return ["thread %d: %d frames, gdb has %d: %s" % (tid, len(real), len(other), [f["name"] for f in other[len(real):][:9]])]
    if len(real) > len(other) + 1:  # gdb leaves out what it takes for outermost
        return ["thread %d: %d frames, gdb has %d" % (tid, len(real), len(other))]
    return []


def inline_names(frames):
    return [f.name for f in frames if f.inlined]


def same_inlines(ours, theirs):
    """Equal functions; of Rust's generic ones the names differ: gdb makes them out of the debug information."""
    return len(ours) == len(theirs) and all(a == b or "::" in a for a, b in zip(ours, theirs))


def is_prefix(short, whole):
    return pcs(short) == pcs(whole)[:len(pcs(short))]


def compare(report, theirs, paths=(), complete=True):
    """Problems."""
    problems = []
    aliases = [s for path in paths for s in symbols_at(path).values()]
    if set(report.threads) != set(theirs):
        return ["threads %s, gdb has %s" % (sorted(report.threads), sorted(theirs))]
    for tid, frames in report.threads.items():
        problems += compare_thread(tid, frames, theirs[tid], aliases)
        if complete and report.stops[tid] != "complete":
            problems.append("thread %d: %s" % (tid, report.stops[tid]))
        # Where gdb sees a function inlined, so do we.
        inlined = [f["name"] for f in theirs[tid] if f["kind"] == "inline"]
        if not same_inlines(inline_names(frames), inlined):
            problems.append("thread %d: inlined %s, gdb has %s" % (tid, inline_names(frames), inlined))
    return problems


LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


def against_gdb(maker, core, exe, complete=True, paths=None):
    report = Report(maker, core)
    problems = compare(report, gdb_frames(core, exe, maker.folder), paths or [exe, LIBC], complete)
    return report, problems


def expect(problems, what, is_right):
    if not is_right:
        problems.append(what)
