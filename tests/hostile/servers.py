# SPDX-License-Identifier: Apache-2.0
"""Files behind servers that do not answer: nobody but their own stacks has to do without them."""
import contextlib
import ctypes
import os
import re
import shutil
import stat
import subprocess

import hostile
from hostile import PATIENCE
from tap import Skip

COMM = "behind"
SECONDS = 60 * PATIENCE  # of what hangs
MNT_DETACH = 2
LONG = 1000


class Server:
    """A FUSE file system that shows a copy of the known answer in C, and does as it is told."""

    def __init__(self, arena):
        self.arena = arena
        self.source, self.mount = (os.path.join(arena.folder, name) for name in ("source", "mount"))
        for path in (arena.folder, self.source, self.mount):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o755)
        shutil.copy(arena.program(os.path.join(hostile.WORKLOADS, "chain.c")), self.source)
        self.process = self.start_server(arena.program("file_server"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ok\n":
            raise Skip("no FUSE here")

    def start_server(self, program, **popen):
        return self.arena.start([program, self.mount, self.source], 0, **popen)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        # Whoever waits for it gets an error.
        self.arena.end_now(self.process)
        ctypes.CDLL(None).umount2(self.mount.encode(), MNT_DETACH)

    def tell(self, order):
        self.process.stdin.write(order + b"\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != b"ok\n":
            raise AssertionError("the server has ended")

    def wait_until_asked(self):
        """Waits for a request that has no answer."""
        if self.process.stdout.readline() != b"asked\n":
            raise AssertionError("the server has ended")

    def start_program(self, seconds=LONG, burn=0.1):
        process = self.arena.start([os.path.join(self.mount, "chain"), seconds, COMM], hostile.NOBODY)
        self.arena.wait_until_burnt(process, burn)
        return process


class OwnServer(Server):
    """One in namespaces of one's own, for which no privilege is needed; and an overlay above it, which does not tell."""

    def start_server(self, program, **popen):
        device = os.path.join(self.arena.folder, "device")  # /dev/fuse is everybody's, but here
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
        os.chmod(device, 0o666)
        return self.arena.start(["unshare", "--user", "--map-root-user", "--mount", program, self.mount, self.source, device],
                                hostile.NOBODY, **popen)

    def start_inside(self, *argv, **popen):
        return self.arena.start(["nsenter", "--target", self.process.pid, "--user", "--mount", "--preserve-credentials", *argv],
                                hostile.NOBODY, **popen)

    def start_jit(self):
        """A JIT whose /tmp, in which its perf map is, is an overlay above the server."""
        os.chmod(self.source, 0o777)
        script = ": > %s/perf-$$.map; exec 3< %s; mount -t overlay -o lowerdir=%s:/usr overlay /tmp && exec /proc/self/fd/3 -"
        script %= (self.source, self.arena.program("jit"), self.mount)
        process = self.start_inside("unshare", "--mount", "sh", "-c", script)  # the server needs the other /tmp
        self.arena.wait_until_burnt(process, 0.1)
        return process

    def start_program(self, seconds=LONG, burn=0.1):
        link, other, overlay = (os.path.join(self.arena.folder, name) for name in ("link", "other", "overlay"))
        os.symlink(self.mount, link)
        os.mkdir(other)
        os.mkdir(overlay)
        if self.start_inside("mount", "-t", "overlay", "-o", "lowerdir=%s:%s" % (link, other), "overlay", overlay).wait():
            raise Skip("no overlays here")
        process = self.start_inside(os.path.join(overlay, "chain"), seconds, COMM)
        self.arena.wait_until_burnt(process, burn)
        return process


def end(arena):
    """Ends the recording, which has not for ever to do so."""
    arena.watch.look()
    arena.recorder.process.send_signal(2)
    recording = arena.recorder.wait(SECONDS)
    arena.watch.stop()
    recording.expect_status(0)
    return recording


def counts(recording):
    """Of the program behind the server: all samples, the complete ones that have user frames, those with every name."""
    stacks = [s for s in recording.stacks or [] if s.comm == COMM]
    return tuple(sum(s.count for s in stacks if f(s))
                 for f in (lambda s: True, lambda s: s.user and not s.reason, lambda s: {"main", "outer"} <= set(s.user) and not s.reason))


def attack_that_answers(arena):
    """One that does its work: what runs from there has all its names."""
    with Server(arena) as server:
        arena.record("64M")
        program = hostile.Victim(COMM, arena.start([os.path.join(server.mount, "chain"), 1, COMM], hostile.NOBODY), arena._judge_c)
        arena.victims.append(program)
        arena.run_victim(seconds=1)
        return arena.judge(recording=end(arena))


def attack_that_hangs(arena, kind=Server):
    """One that does not answer from the start on."""
    with kind(arena) as server:
        program = server.start_program()
        server.tell(b"h")
        arena.record("64M", also=[program.pid])
        server.wait_until_asked()
        arena.run_victim(seconds=1)
        arena.end_now(program)
        recording = end(arena)
        problems, note = arena.judge(complete=99.5, recording=recording)
    samples, complete, _ = counts(recording)
    if not samples or complete:
        problems.append("the attack was none: %d samples of the program, %d complete" % (samples, complete))
    return problems, "%s; %d samples of the program" % (note, samples)


def attack_below_an_overlay(arena):
    """One that does not answer, of whom an overlay's options say nothing."""
    return attack_that_hangs(arena, OwnServer)


def attack_on_perf_maps(arena):
    """One that does not answer, below an overlay where a JIT's names are looked for."""
    with OwnServer(arena) as server:
        program = server.start_jit()
        server.tell(b"h")
        arena.record("64M", also=[program.pid])
        arena.run_victim(seconds=1)
        arena.wait_until_burnt(program, 1)
        arena.end_now(program)
        return arena.judge(complete=99.5, recording=end(arena))


def attack_and_the_lock_of_mappings(arena):
    """Threads that wait for one with the lock of their processes' mappings: whoever reads of these processes waits for that, too."""
    holder = arena.program("lock_holder")
    with OwnServer(arena) as server:
        shutil.copy(holder, os.path.join(server.source, "data"))
        # Who is known already is not looked at again: it shall not run before.
        arena.record("64M")
        program = server.start_inside(holder, os.path.join(server.mount, "data"), 6, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def expect(line):
            if program.stdout.readline() != line:
                raise AssertionError("the attacker has ended")

        def go_on():
            program.stdin.write(b"g\n")
            program.stdin.flush()

        expect(b"opened\n")
        server.tell(b"h")
        go_on()
        expect(b"reads.\n")
        server.wait_until_asked()
        go_on()
        expect(b"burnt.\n")
        arena.run_victim(seconds=1)
        recording = end(arena)
        problems, note = arena.judge(complete=99.5, recording=recording)
        server.tell(b"a")
    if "does not answer" not in recording.errors:
        problems.append("the attack was none: %s" % recording.errors)
    return problems, note


def attack_that_hangs_later(arena):
    """One that answered until its program was known."""
    with Server(arena) as server:
        arena.record("64M")
        program = server.start_program(burn=0.5)
        server.tell(b"h")
        arena.run_victim(seconds=1)
        arena.wait_until_burnt(program, 1)
        arena.end_now(program)
        recording = end(arena)
        problems, note = arena.judge(complete=99.5, recording=recording)
    samples, complete, named = counts(recording)
    if samples < 500 or named < 0.95 * samples:
        problems.append("of %d samples of the program %d are complete, %d have names" % (samples, complete, named))
    return problems, "%s; %d of %d samples of the program" % (note, named, samples)


def attack_that_answers_late(arena):
    """One that answers after seconds: its program has its names from then on."""
    with Server(arena) as server:
        program = server.start_program()
        server.tell(b"h")
        arena.record("64M", also=[program.pid])
        server.wait_until_asked()
        arena.run_victim(seconds=2)
        server.tell(b"a")
        with open("/proc/%d/stat" % program.pid, encoding="utf-8") as f:
            burnt = sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        arena.wait_until_burnt(program, burnt + 4)
        arena.end_now(program)
        recording = end(arena)
        problems, note = arena.judge(complete=99.5, recording=recording)
    samples, complete, named = counts(recording)
    # Half of the time after the answer.
    if named < 2 * arena.recorder.frequency or complete == samples:
        problems.append("of %d samples of the program %d are complete, %d have names" % (samples, complete, named))
    return problems, "%s; %d of %d samples of the program" % (note, named, samples)


def hanging(arena, *argv):
    """The output of a sonde that looks at a program behind a server that hangs; {PID} stands for it."""
    with Server(arena) as server:
        program = server.start_program()
        server.tell(b"h")
        argv = [arena.setup.program, *(a.replace("{PID}", str(program.pid)) for a in argv)]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None, ["%s: it hangs" % argv[1:]]
        problems = [] if not done.returncode else ["status %d: %s" % (done.returncode, done.stderr)]
        with contextlib.suppress(OSError):
            arena.end_now(program)
    return done.stdout, problems


def attack_and_stack(arena):
    """`sonde stack` of a program behind a server that hangs."""
    text, problems = hanging(arena, "stack", "{PID}")
    if not problems and not re.search("file_unreadable|could not be read", text):
        problems.append("it said %r" % text)
    return problems, None


def attack_and_top(arena):
    """`sonde top`, likewise."""
    _, problems = hanging(arena, "top", "-p", "{PID}", "-b", "3")
    return problems, None
