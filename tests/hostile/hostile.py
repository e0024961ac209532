# SPDX-License-Identifier: Apache-2.0
"""The base of tests/hostile: an attacker without privileges, and its victims beside it, in one recording.

An attack is a function attack_NAME(arena) of any file here; hostile_test.py finds it. The common form is

    def attack_name(arena):
        arena.program("name")               # compiled now: the compiler must not be recorded
        arena.record("32M")                 # sonde record --memory-limit 32M, which has begun when this returns
        arena.attack("name", "1000")        # tests/hostile/name.c 1000, as nobody, until the end
        arena.run_victim(seconds=1)         # the known answer: outer, middle, leaf (run_python_victim: a Python one)
        return arena.judge()                # ends the recording; problems and a note, for tap

A victim may also be started before the attack (start_victim, then wait_for_victims). What was started, the recording
too, is ended with the arena, or with the test, however that ends.

Recorded are the processes that the test starts, not the rest of the machine (unless whole_machine is given), so that what
else runs here takes none of the memory that is attacked.
"""
import os
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("runtimes", "live", "lib", "bench")]
import sonde
from cases import WORKLOADS
from folded import Expectation, Verdict
from footprint import status_bytes
from guard import Guard
from modes import recording_began, wait_until
from runtimes import Recorder

FREQUENCY, PATIENCE = sonde.FREQUENCY, sonde.PATIENCE
NOBODY, VICTIM = 65534, 1  # whose the attackers are, and the victims: neither is root
MEGABYTE = 1 << 20
FLAGS = ["-O2", "-g0", "-std=gnu17", "-D_GNU_SOURCE", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-w", "-pthread"]
CHAIN = os.path.join(WORKLOADS, "chain.c")  # the victim
PYTHON = ["/usr/bin/python3", "-S", "-E", os.path.join(HERE, "victim_of_python.py")]
PYTHON_CHAIN = ("<module>", "main", "outer", "middle", "leaf")


def megabytes(text):
    return int(text.rstrip("MG")) * (1024 if text.endswith("G") else 1)


def wait4(process):
    """Waits for a Popen; the CPU time of it and of its children."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def add_symbols(program, symbols, names):
    """Adds a symbol table to an ELF file: Elf64_Syms, and their names or the size of a hole of the file in place of them."""
    with open(program, "r+b") as f:
        header = bytearray(f.read(64))
        offset, = struct.unpack_from("<Q", header, 40)
        nr, = struct.unpack_from("<H", header, 60)
        f.seek(offset)
        sections = f.read(64 * nr)
        at = f.seek(0, os.SEEK_END) + 63 & ~63
        f.seek(at)
        f.write(symbols)
        size = names if isinstance(names, int) else f.write(names)
        sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at, len(symbols), nr + 1, 0, 8, 24)  # SHT_SYMTAB
        sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at + len(symbols), size, 0, 0, 1, 0)  # SHT_STRTAB
        at += len(symbols) + size + 63 & ~63
        f.seek(at)
        f.write(sections)
        struct.pack_into("<Q", header, 40, at)
        struct.pack_into("<H", header, 60, nr + 2)
        f.seek(0)
        f.write(header)


def address_of(program, symbol):
    """Where `nm` has a symbol."""
    text = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[0], 16) for line in text.splitlines() if line.endswith(" " + symbol))


class Watch(threading.Thread):
    """Looks at sonde again and again: most resident memory, of it and of any child of its; most open descriptors."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.memory = self.child_memory = self.descriptors = 0
        self.first_descriptors = self._descriptors()
        with open("/proc/%d/clear_refs" % pid, "w", encoding="ascii") as f:
            f.write("5")  # the most from now on
        self._over = threading.Event()

    def _descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def _children(self):
        with open("/proc/%d/task/%d/children" % (self.pid, self.pid), encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def look(self):
        try:
            self.descriptors = max(self.descriptors, self._descriptors())
            self.memory = max(self.memory, status_bytes(self.pid)[1])
            for child in self._children():
                self.child_memory = max(self.child_memory, status_bytes(child)[1])
        except (OSError, AttributeError):
            pass  # it has ended meanwhile

    def run(self):
        while not self._over.wait(0.02):
            self.look()

    def stop(self):
        self._over.set()
        self.join()


class Victim:
    """A running workload with a known answer, and, when it has ended, the CPU time that it had."""

    def __init__(self, comm, process, judge):
        self.comm, self.process, self.judge = comm, process, judge
        self.cpu = None


class Arena:
    """One recording, its attackers and its victims."""

    def __init__(self, setup, name):
        self.setup, self.name = setup, name
        self.folder = os.path.join(setup.scratch, name)  # the attackers' own
        self.recorder = self.watch = self.limit = None
        self.is_recording = False
        self.victims, self._guards = [], []
        os.mkdir(self.folder)
        os.chown(self.folder, NOBODY, NOBODY)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.watch:
            self.watch.stop()
        for guard in reversed(self._guards):
            guard.end()

    # --- what takes part ---

    def program(self, source, *flags):
        """The program made of a source: a file of tests/hostile without its .c, or a path."""
        folder, path = self.setup.scratch, source
        if os.sep not in source:  # an attacker may have the name of a workload
            folder, path = os.path.join(folder, "attackers"), os.path.join(HERE, source + ".c")
            os.makedirs(folder, 0o755, exist_ok=True)
        out = os.path.join(folder, os.path.basename(path).rpartition(".")[0])
        if not os.path.exists(out) or flags:
            # Its compiler would be recorded, which takes more memory and time than many an attack.
            assert not self.is_recording, "%s is to be compiled before the recording begins" % source
            subprocess.run(["gcc", *FLAGS, "-I", WORKLOADS, path, "-o", out, *flags], check=True)
        return out

    def end_now(self, process):
        """Ends what was started before the arena does."""
        guard = next(g for g in self._guards if g.process is process)
        self._guards.remove(guard)
        guard.end()

    def start(self, argv, user, **popen):
        """Runs a program until it ends or the arena does."""
        process = subprocess.Popen([str(a) for a in argv], user=user, group=user, extra_groups=[], start_new_session=True,
                                   **{"cwd": "/", "stdin": subprocess.DEVNULL, **popen})
        self._guards.append(Guard(process))
        return process

    def record(self, limit, *options, whole_machine=False, also=(), frequency=FREQUENCY, before=()):
        """Starts `sonde record`, which has begun when this returns. `before`: a command that runs it; `also`: processes
        that run already."""
        self.program(CHAIN)
        who = [] if whole_machine else ["-p", ",".join(map(str, [os.getpid(), *also]))]
        self.limit = megabytes(limit)
        self.recorder = Recorder(self.setup, ["--no-inlines", "--memory-limit", limit, *who, *options], frequency=frequency, before=before)
        self._guards.append(Guard(self.recorder.process))
        recording_began(self.recorder)
        self.is_recording = True
        self.watch = Watch(self.recorder.process.pid)
        self.watch.start()
        return self.recorder

    def attack(self, program, *args, until_line=False, **popen):
        """Starts an attacker as nobody, in a folder that is nobody's: a source of tests/hostile, or a path. `until_line`:
        returns when it has written a line, which is `.line` of the result then."""
        argv = [self.program(program) if os.sep not in program else program, *args]
        process = self.start(argv, NOBODY, cwd=self.folder, stdout=subprocess.PIPE, **popen)
        if until_line:
            process.line = process.stdout.readline().decode()
        return process

    def start_victim(self, seconds=1, comm="victim"):
        """The known answer in C: outer, middle, leaf."""
        argv = [self.program(CHAIN), seconds, comm]
        victim = Victim(comm, self.start(argv, VICTIM), self._judge_c)
        self.victims.append(victim)
        return victim

    def start_python_victim(self, seconds=1, comm="python-victim"):
        victim = Victim(comm, self.start([*PYTHON, seconds, comm], VICTIM, env={}), self._judge_python)
        self.victims.append(victim)
        return victim

    def wait_for_victims(self):
        for v in self.victims:
            if v.cpu is None:
                v.cpu = wait4(v.process)

    def run_victim(self, seconds=1, comm="victim"):
        self.start_victim(seconds, comm)
        self.wait_for_victims()

    def run_python_victim(self, seconds=1, comm="python-victim"):
        self.start_python_victim(seconds, comm)
        self.wait_for_victims()

    def wait_until_burnt(self, process, seconds):
        """Waits until a process has had so much CPU, or has ended."""
        ticks = os.sysconf("SC_CLK_TCK")

        def enough():
            with open("/proc/%d/stat" % process.pid, encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
            return fields[0] == "Z" or sum(map(int, fields[11:13])) >= seconds * ticks

        wait_until("%g s of CPU" % seconds, enough, 120)

    # --- the judgement ---

    def end(self):
        """Ends the recording as Ctrl-C does: what it left behind, with problems that have nothing to do with the victims."""
        self.watch.look()
        self.recorder.process.send_signal(2)
        recording = self.recorder.wait()
        self.is_recording = False
        self.watch.stop()
        recording.expect_status(0)
        return recording

    def judge(self, delivered=0.9, complete=95.0, memory=None, child_memory=256, descriptors=100, recording=None):
        """
        Ends the recording. Every victim has `delivered` of the samples that its CPU time makes, `complete` percent of these
        complete, no wrong frame or name in any; sonde's memory stayed below `memory` (MB; the limit and what names take at the end), that of each child
        below `child_memory`; it had never more than so many `descriptors` beyond those of the recording's begin.
        """
        recording = recording or self.end()
        problems, notes = list(recording.problems), []
        for v in self.victims:
            stacks = [s for s in recording.stacks or [] if s.comm == v.comm]
            found, note = v.judge(v, stacks, complete)
            samples, expected = sum(s.count for s in stacks), v.cpu * self.recorder.frequency
            if samples < delivered * expected:
                found.append("%s: %d of %.0f samples arrived" % (v.comm, samples, expected))
            problems += found
            notes.append("%s: %s of %.0f" % (v.comm, note, expected))
        watch, stats = self.watch, recording.stats or {}
        for what, value, most in (("MB of memory", watch.memory / MEGABYTE, memory or self.limit + 16),
                                  ("MB in its own account", (stats.get("rss_kb", 0) * 1024 + stats.get("map_bytes", 0)) / MEGABYTE, self.limit),
                                  ("MB of memory of a child", watch.child_memory / MEGABYTE, child_memory),
                                  ("descriptors more", watch.descriptors - watch.first_descriptors, descriptors)):
            notes.append("%.0f %s" % (value, what))
            if value > most:
                problems.append("%.0f %s, expected at most %.0f" % (value, what, most))
        if problems:
            problems += ["  lost: %s" % recording.lost(), "  truncated: %s" % stats.get("truncated")]
            problems += ["  " + line for line in recording.errors.splitlines()[-12:]]
        return problems, "; ".join(notes)

    def _judge_c(self, victim, stacks, complete):
        expect = Expectation(os.path.join(WORKLOADS, "chain.expect"), file="chain", directory=self.setup.scratch)
        expect.only_complete(complete)
        verdict = Verdict(expect, stacks, victim.comm, 1)
        return verdict.problems, verdict.summary()

    @staticmethod
    def _judge_python(victim, stacks, complete):
        whole = wrong = samples = 0
        problems = []
        for s in stacks:
            samples += s.count
            if s.reason or "leaf" not in s.user:
                whole += s.count if not s.reason else 0
                continue
            whole += s.count
            at = s.user.index("leaf") + 1
            if s.user[max(0, at - len(PYTHON_CHAIN)):at] != PYTHON_CHAIN or s.user[0] != "_start":
                wrong += s.count
                problems.append("  %s" % ";".join(s.user)[:700])
        known = sum(s.count for s in stacks if "leaf" in s.user)
        if wrong:
            problems.insert(0, "%s: %d of %d samples are wrong" % (victim.comm, wrong, samples))
        if whole * 100 < complete * samples or known * 2 < samples:
            problems.append("%s: %d of %d samples are complete, %d in the chain" % (victim.comm, whole, samples, known))
        return problems, "%d samples, %d complete, %d in the chain" % (samples, whole, known)
