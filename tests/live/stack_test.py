#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`sonde stack` on real processes: against gdb, on many threads, in namespaces, on threads at work, killed at any
moment, and what it says when it can't. TAP on standard output.

    stack_test.py --sonde PROGRAM [--only REGEX]

Needs root; builds its own programs (tests/live/stack) with gcc and g++. docs/stack.md says what is promised.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import tap
from tap import Skip, check

SOURCES = Path(__file__).resolve().parent / "stack"
TIMEOUT = 900  # of what hangs
NOBODY = 65534
# As root; as somebody who may not load BPF; nor use events; nor any of both.
WAYS = ((), ("--without-bpf",), ("--without-events",), ("--without-bpf", "--without-events"))


class Setup:
    def __init__(self, program, scratch):
        self.scratch = Path(scratch)
        # Where users other than root can run it.
        self.program = str(self.scratch / "sonde")
        shutil.copy(program, self.program)
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.scratch / "cache"))

    def build(self, name, source, *flags):
        """Compiles tests/live/stack/SOURCE into the scratch folder; its path."""
        path = self.scratch / name
        if not path.exists():
            compiler = ["g++", "-std=gnu++20"] if source.endswith(".cc") else ["gcc", "-std=gnu17"]
            subprocess.run([*compiler, "-w", "-pthread", *flags, str(SOURCES / source), "-o", str(path)], check=True)
        return path

    def run(self, *args, before=(), status=0):
        done = subprocess.run([*before, self.program, "stack", *map(str, args)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=TIMEOUT, env=self.env)
        check(status is None or done.returncode == status, f"status {done.returncode}: {done.stderr[-2000:]}")
        return done

    def stacks(self, pid, *options, before=()):
        """{tid: thread} of `sonde stack --json`."""
        text = self.run("--json", *options, pid, before=before).stdout
        report = json.loads(text)
        check(report["pid"] == pid, "another process")
        return {t["tid"]: t for t in report["threads"]}

    def error(self, *args, says, before=(), status=1):
        """One line on stderr that has these words in it, nothing on stdout."""
        done = self.run(*args, before=before, status=status)
        check(done.stdout == "", f"it printed {done.stdout[:500]}")
        check(done.stderr.startswith("sonde: ") and done.stderr.count("\n") == 1, f"not one line: {done.stderr}")
        for word in says:
            check(word in done.stderr, f"'{word}' is not in: {done.stderr}")


class Process:
    """A program of ours that has said "ready"; killed at the end."""

    def __init__(self, *command, **more):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        text=True, **more)
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        check(line == "ready\n", f"{command} said {line!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()

    def undisturbed(self):
        """It runs, and no wait of it was interrupted."""
        if self.process.poll() is not None:
            raise AssertionError(f"it ended: {self.process.stdout.read()}")

    def tids(self):
        return sorted(map(int, os.listdir(f"/proc/{self.pid}/task")))

    def states(self, pid=None):
        """The letters of all threads."""
        found = []
        for tid in os.listdir(f"/proc/{pid or self.pid}/task"):
            text = Path(f"/proc/{pid or self.pid}/task/{tid}/stat").read_text()
            found.append(text[text.rindex(")") + 2])
        return found

    def wait_until_all_stand(self, pid=None):
        """Every thread has got where it stays: none has run since the last look."""
        last = None
        while True:
            now = []
            for tid in sorted(os.listdir(f"/proc/{pid or self.pid}/task"), key=int):
                task = Path(f"/proc/{pid or self.pid}/task/{tid}")
                now.append((tid, (task / "syscall").read_text(), re.findall(r"ctxt_switches:\s*(\d+)",
                                                                            (task / "status").read_text())))
            # "-1": it waits, but in no system call: for a page.
            if now == last and not any(call.startswith(("running", "-1")) for _, call, _ in now):
                return
            last = now


def user_frames(thread):
    return [f for f in thread["frames"] if f["kind"] != "kernel"]


def complete(thread):
    return thread["complete"] and not thread["problem"] and thread["frames"]


def names(thread):
    return [f["linkage_name"] for f in user_frames(thread)]


# --- against gdb ---


# gdb also shows who must have been there before a tail call; there are no frames of these any more.
GDB_TAIL_CALLS = """python
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame = gdb.newest_frame()
    number = 0
    while frame:
        if frame.type() == gdb.TAILCALL_FRAME:
            print("tail-call", thread.ptid[1], number)
        frame = frame.older()
        number += 1
end
"""


def gdb_stacks(setup, pid):
    """{tid: [function]} by `thread apply all bt`."""
    script = setup.scratch / "tail_calls.gdb"
    script.write_text(GDB_TAIL_CALLS)
    done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "set width 0", "-ex", "set pagination off",
                           "-ex", "set backtrace past-main on", "-ex", "set print frame-arguments none",
                           "-ex", "thread apply all bt", "-x", str(script)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
    stacks, current = {}, None
    for line in done.stdout.splitlines():
        thread = re.match(r"Thread \d+ \(.*?(?:LWP|process) (\d+)\b", line)
        frame = re.match(r"#\d+\s+(?:0x[0-9a-f]+ in )?(.*)", line)
        if thread:
            current = stacks.setdefault(int(thread[1]), [])
        elif frame and current is not None:
            current.append(frame[1])
    check(stacks, f"gdb said nothing: {done.stdout[-500:]} {done.stderr[-500:]}")
    for tid, number in reversed(re.findall(r"^tail-call (\d+) (\d+)$", done.stdout, re.M)):
        del stacks[int(tid)][int(number)]
    return stacks


def without(text, opening, closing):
    """The text without what stands between such brackets."""
    depth, kept = 0, []
    for c in text:
        depth += c == opening
        if not depth:
            kept.append(c)
        depth -= c == closing and depth > 0
    return "".join(kept)


def plain(name):
    """A function's own name: without scopes, parameters, template arguments, clones, and what libc puts before it."""
    if name is None:
        return "??"
    operator = re.search(r"\boperator\s*(\(\)|<<|>>|<=>|->\*?|[-+*/%^&|~!=<>]+|\[\])", name)
    if operator:
        return "operator" + operator[1]
    name = re.sub(r" \[clone .*|@.*|\.(isra|part|constprop|cold|lto_priv)\b.*", "", name)
    name = without(without(name.replace("(anonymous namespace)", "anonymous"), "<", ">"), "(", ")").strip()
    name = re.split(r" (?:at|from) ", name)[0].strip()
    name = name.split("::")[-1].split(" ")[-1]
    return re.sub(r"^(_*GI_+|_*libc_|_+)+", "", name)


def demangled(found):
    done = subprocess.run(["c++filt"], input="\n".join(n or "??" for n in found) + "\n", capture_output=True, text=True,
                          check=True)
    return done.stdout.splitlines()


# One function under several names at one address, or libc's own name beside its public one.
ALIASES = {"start_main": "start_main_impl"}


def same(a, b):
    return a == b or "??" in (a, b) or ALIASES.get(a, a) == ALIASES.get(b, b)


def differences(ours, gdb):
    mine, theirs = [plain(n) for n in demangled(ours)], [plain(n) for n in gdb]
    # Behind the last frame that both know, gdb goes on where it has no name: "?? ()".
    while len(theirs) > len(mine) and theirs[-1] == "??":
        theirs.pop()
    if len(mine) == len(theirs) and all(map(same, mine, theirs)):
        return None
    return f"sonde: {' < '.join(mine)}\n  gdb:   {' < '.join(theirs)}"


def as_gdb_says(setup, program, *args):
    if not shutil.which("gdb"):
        raise Skip("no gdb")
    with Process(program, *args) as p:
        p.wait_until_all_stand()
        found = setup.stacks(p.pid)
        p.undisturbed()
        check(sorted(found) == p.tids(), f"threads {sorted(found)}, not {p.tids()}")
        gdb = gdb_stacks(setup, p.pid)
        problems, nr = [], 0
        for tid, thread in found.items():
            check(complete(thread), f"not complete: {thread}")
            difference = differences(names(thread), gdb[tid])
            nr += len(thread["frames"])
            if difference:
                problems.append(f"thread {tid}:\n  {difference}")
        check(not problems, "\n".join(problems))
        return f"{len(found)} threads, {nr} frames"


def test_c_as_gdb_says(setup):
    return as_gdb_says(setup, setup.build("standing", "standing.c", "-O2", "-g"), 14)


def test_without_inlines_as_gdb_says(setup):
    """-O0: nothing is inlined."""
    return as_gdb_says(setup, setup.build("standing_o0", "standing.c", "-O0", "-g"), 14)


def test_cxx_as_gdb_says(setup):
    return as_gdb_says(setup, setup.build("standing_cxx", "standing_cxx.cc", "-O2", "-g"))


def test_static_as_gdb_says(setup):
    return as_gdb_says(setup, setup.build("standing_static", "standing.c", "-O2", "-g", "-static"), 14)


def test_debuglink_as_gdb_says(setup):
    """No build-id, stripped; names come from a file beside it alone."""
    program = setup.build("standing_link", "standing.c", "-O2", "-g", "-Wl,--build-id=none")
    debug = setup.scratch / "standing_link.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", "--remove-section=.gnu_debuglink", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    return as_gdb_says(setup, program, 14)


# --- many threads, other namespaces ---

STANDS = ["sleep", "read", "poll", "epoll", "select", "semaphore", "condition"]


def check_standing(found, nr):
    """Thread number N of standing.c stands where it has to."""
    # As they were made: numbers begin anew when all were used, and the low ones are the later ones then.
    tids = sorted(found, key=lambda tid: (max(found) - tid >= 1 << 14, tid))
    check(len(tids) == nr + 1, f"{len(tids)} threads, not {nr + 1}")
    for i, tid in enumerate(tids[1:]):
        which, chain = i % len(STANDS), names(found[tid])
        check(complete(found[tid]), f"not complete: {found[tid]}")
        check(f"stand_in_{STANDS[which]}" in chain, f"thread {i} is in {chain}")
        check(chain.count("descend") == which + 1, f"thread {i} is in {chain}")
        check(("in_callback" in chain) == (i // len(STANDS) % 2 == 1), f"thread {i} is in {chain}")
        check(chain.index("with_room") < chain.index("thread"), f"thread {i} is in {chain}")


def test_a_thousand_threads(setup):
    notes = []
    program = setup.build("standing", "standing.c", "-O2", "-g")
    for nr in (100, 1000):
        with Process(program, nr) as p:
            p.wait_until_all_stand()
            setup.stacks(p.pid)
            begin = time.monotonic()
            found = setup.stacks(p.pid)
            notes.append(f"{nr} threads: {(time.monotonic() - begin) * 1000:.0f} ms")
            check_standing(found, nr)
            check(all(f["kind"] == "kernel" for f in (t["frames"][0] for t in found.values())), "no kernel frames")
            p.undisturbed()
    return ", ".join(notes)


def test_without_kernel_and_text(setup):
    with Process(setup.build("standing", "standing.c", "-O2", "-g"), 7) as p:
        p.wait_until_all_stand()
        found = setup.stacks(p.pid, "--no-kernel")
        check_standing(found, 7)
        check(all(user_frames(t) == t["frames"] for t in found.values()), "kernel frames")
        text = setup.run(p.pid).stdout
        check(text.startswith(f"process {p.pid} (standing), 8 threads\n\nthread {p.pid} \"standing\" sleeping\n"), text)
        check("(kernel)" in text and "stand_in_epoll at " in text and "standing.c:" in text, text)
        check("descend" in text and "\033" not in text, text)


def test_in_other_namespaces(setup):
    """In a PID and a mount namespace of its own, its program in a file that only these can see."""
    program = setup.build("standing", "standing.c", "-O2", "-g")
    inside = setup.scratch / "inside"
    inside.mkdir(exist_ok=True)
    script = f"mount -t tmpfs none {inside} && cp {program} {inside}/hidden && exec {inside}/hidden 7"
    with Process("unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script) as p:
        pid = int(Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text())
        p.wait_until_all_stand(pid)
        check(not (inside / "hidden").exists(), "it can be seen from here")
        for way in WAYS:
            check_standing(setup.stacks(pid, *way), 7)
        # And from within, where it has another number.
        done = setup.run("--json", 1, before=("nsenter", "-t", str(pid), "-p", "-m"))
        check_standing({t["tid"]: t for t in json.loads(done.stdout)["threads"]}, 7)
        # Why kernel frames are missing there is not that root or BPF were.
        text = setup.run(1, before=("nsenter", "-t", str(pid), "-p", "-m")).stdout.splitlines()
        check("namespace" in text[1] and "root" not in text[1], text[1])
        p.undisturbed()


def test_max_frames(setup):
    with Process(setup.build("standing", "standing.c", "-O2", "-g"), 3) as p:
        p.wait_until_all_stand()
        for way in WAYS:
            whole = setup.stacks(p.pid, *way, "--no-inlines")
            cut = setup.stacks(p.pid, *way, "--no-inlines", "--max-frames", 2)
            for tid, thread in cut.items():
                check(user_frames(thread) == user_frames(whole[tid])[:2], thread)
                check(thread["stop"] == "max_frames", thread)


# --- threads at work ---


def check_busy(pid, found, nr_spin, nr_nap):
    tids = sorted(found, key=lambda tid: (tid < pid, tid))  # in the order in which they began, also where numbers begin anew
    check(len(tids) == 1 + nr_spin + nr_nap, f"{len(tids)} threads")
    for i, tid in enumerate(tids[1:]):
        chain = names(found[tid])
        check(complete(found[tid]), f"thread {i} is not complete: {found[tid]['stop']} {found[tid]['problem']} {chain}")
        if i >= nr_spin:
            check("nap" in chain and chain[chain.index("nap") + 1] == "napper", f"thread {i} is in {chain}")
            continue
        if chain[0] == "spin":
            chain = chain[1:]
        first = "spin_odd" if i % 3 == 1 else "spin_even"
        check(chain[0] == first, f"thread {i} is in {chain}")
        deep = 101 if i % 3 == 2 else 0
        check(chain[1:1 + deep] == ["spin_deep"] * deep and chain[1 + deep] == "spinner", f"thread {i} is in {chain}")


def busy(setup):
    return setup.build("busy", "busy.c", "-O1", "-g", "-fno-optimize-sibling-calls", "-fno-omit-frame-pointer")


def test_threads_at_work(setup):
    with Process(busy(setup), 3, 2) as p:
        for way in WAYS:
            try:
                check_busy(p.pid, setup.stacks(p.pid, *way), 3, 2)
            except AssertionError as e:
                raise AssertionError(f"{way}: {e}") from None
            check(not set(p.states()) & set("Tt"), "it was left stopped")


def test_more_threads_at_work_than_cpus(setup):
    with Process(busy(setup), 30, 10) as p:
        check_busy(p.pid, setup.stacks(p.pid), 30, 10)


def test_threads_at_work_under_another_tracer(setup):
    """Nobody can stop them then: an event has to do."""
    if not shutil.which("strace"):
        raise Skip("no strace")
    with Process(busy(setup), 2, 0) as p:
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(p.pid)])
        try:
            while any("TracerPid:\t0\n" in Path(f"/proc/{p.pid}/task/{tid}/status").read_text() for tid in p.tids()):
                check(tracer.poll() is None, "strace ended")
            for way in WAYS[:2]:
                check_busy(p.pid, setup.stacks(p.pid, *way), 2, 0)
        finally:
            tracer.terminate()
            tracer.wait()


def test_a_stopped_process_stays_stopped(setup):
    with Process(setup.build("standing", "standing.c", "-O2", "-g"), 7) as p:
        p.wait_until_all_stand()
        os.kill(p.pid, signal.SIGSTOP)
        while set(p.states()) != {"T"}:
            pass
        for way in WAYS:
            found = setup.stacks(p.pid, *way)
            check({t["state"] for t in found.values()} == {"stopped"}, "not stopped")
            check_standing(found, 7)
            # Let go, a thread goes back to where it was by itself.
            while set(p.states()) != {"T"}:
                pass


# --- no harm ---


def test_no_wait_is_interrupted(setup):
    with Process(setup.build("standing", "standing.c", "-O2", "-g"), 14) as p:
        p.wait_until_all_stand()
        for way in WAYS:
            for _ in range(10):
                check_standing(setup.stacks(p.pid, *way), 14)
                p.undisturbed()


def test_as_an_ordinary_user(setup):
    """One's own process, without any privilege."""
    user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all")
    cache = setup.scratch / "nobodys"
    cache.mkdir(0o700)
    os.chown(cache, NOBODY, NOBODY)
    roots, setup.env = setup.env, dict(setup.env, XDG_CACHE_HOME=str(cache))
    try:
        check_as_user(setup, user)
    finally:
        setup.env = roots


def check_as_user(setup, user):
    with Process(*user, setup.build("standing", "standing.c", "-O2", "-g"), 14) as p:
        p.wait_until_all_stand()
        for _ in range(5):
            check_standing(setup.stacks(p.pid, before=user), 14)
            p.undisturbed()
        check("no kernel frames" in setup.run(p.pid, before=user).stdout, "it does not say what is missing")
    with Process(*user, busy(setup), 3, 2) as p:
        check_busy(p.pid, setup.stacks(p.pid, before=user), 3, 2)
    setup.error(os.getpid(), says=["no permission", str(os.getpid()), "root"], before=user)
    setup.error(2, says=["thread of the kernel", "root"], before=user)


def kill_at_random(setup, pid, way):
    p = subprocess.Popen([setup.program, "stack", *way, str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, env=setup.env)
    try:
        p.wait(random.uniform(0, 0.12))
    except subprocess.TimeoutExpired:
        p.kill()
    return p.wait() == -signal.SIGKILL


def kill_many(setup, way):
    """How many of 30 were killed before they were done."""
    killed = 0
    with Process(setup.build("standing", "standing.c", "-O2", "-g"), 14) as standing, \
            Process(busy(setup), 3, 2) as working:
        standing.wait_until_all_stand()
        for i in range(30):
            p = working if i % 2 else standing
            killed += kill_at_random(setup, p.pid, way)
            # Without BPF, threads that wait are stopped; killed in that very moment, sonde can't make the wait go on:
            # the program sees it and ends, be it while we look.
            may_end = p is standing and "--without-bpf" in way
            try:
                check(not set(p.states()) & set("Tt"), f"left stopped: {p.states()}")
                p.undisturbed()
            except (FileNotFoundError, ProcessLookupError):
                check(may_end, f"a thread ended: {p.process.poll()}")
            except AssertionError:
                if not may_end or p.process.poll() is None:
                    raise
            if may_end and p.process.poll() is not None:
                break
        working.undisturbed()
    return killed


def test_killed_at_any_moment(setup):
    return ", ".join(f"{kill_many(setup, way)} of 30 killed" for way in WAYS)


# --- what it can't ---


def test_errors(setup):
    free = next(n for n in range(3000000, 4194304) if not os.path.exists(f"/proc/{n}"))
    setup.error(free, says=["no process", str(free)])
    setup.error(says=["one PID"], status=2)
    setup.error("12x", says=["'12x'", "no PID"], status=2)
    setup.error("-5", says=["-5"], status=2)
    setup.error("0", says=["'0'", "no PID"], status=2)
    setup.error("--max-frames", "0", "1", says=["--max-frames"], status=2)
    setup.error("1", "2", says=["one PID"], status=2)
    setup.error("--names", "odd", "1", says=["odd"], status=2)
    zombie = subprocess.Popen(["true"])
    while Path(f"/proc/{zombie.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        pass
    setup.error(zombie.pid, says=["already ended", "zombie"])
    zombie.wait()
    with Process(setup.build("standing", "standing.c", "-O2", "-g"), 3) as p:
        setup.error(p.tids()[-1], says=["a thread of process", f"sonde stack {p.pid}"])


def test_kernel_thread(setup):
    done = setup.run(2)
    check(done.stdout.startswith("kernel thread 2 (kthreadd), 1 thread\n"), done.stdout)
    check("kthreadd (kernel)" in done.stdout and "cut" not in done.stdout, done.stdout)


def test_leader_that_has_ended(setup):
    """The first thread is a zombie; the others live on."""
    with Process(setup.build("headless", "headless.c", "-O2", "-g")) as p:
        while sorted(p.states()) != ["S", "Z"]:
            pass
        for way in WAYS:
            found = setup.stacks(p.pid, *way)
            check(found[p.pid]["problem"] == "it has ended", found[p.pid])
            other = found[max(found)]
            check(complete(other) and "stand_alone" in names(other), other)


def test_32_bit_process(setup):
    path = setup.scratch / "compat32"
    source = SOURCES.parent.parent / "workloads/compat32.S"
    if subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-Wl,--build-id", "-DROUNDS=1000", str(source), "-o", str(path)],
                      capture_output=True).returncode:
        raise Skip("no 32-bit assembler here")
    p = subprocess.Popen([path])
    try:
        while os.readlink(f"/proc/{p.pid}/exe") != str(path):
            pass
        for way in WAYS:
            thread = setup.stacks(p.pid, *way)[p.pid]
            check(thread["stop"] == "compat_task" and not user_frames(thread), thread)
        check("32-bit" in setup.run(p.pid).stdout, "it does not say so")
    finally:
        p.kill()
        p.wait()


def test_process_that_ends_meanwhile(setup):
    program = setup.build("standing", "standing.c", "-O2", "-g")
    ended = 0
    for i in range(24):
        with Process(program, 50) as p:
            s = subprocess.Popen([setup.program, "stack", *WAYS[i % 4], str(p.pid)], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=setup.env)
            time.sleep(random.uniform(0, 0.08))  # any moment will do
            p.process.kill()
            out, err = s.communicate(timeout=TIMEOUT)
            check(s.returncode in (0, 1), f"status {s.returncode}")
            check((s.returncode == 1) == (out == ""), f"status {s.returncode}: {out[:300]} {err}")
            check(s.returncode == 0 or err.startswith("sonde: ") and err.count("\n") == 1, err)
            ended += s.returncode
    return f"{ended} of 24 ended"


# --- running them ---


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sonde", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists("/sys/kernel/btf/vmlinux"):
        return tap.skip_all("not root, or a kernel without BTF")
    tests = [(n[5:], t) for n, t in globals().items() if n.startswith("test_") and re.search(args.only, n)]
    scratch = tempfile.mkdtemp(prefix="sonde-stack-")
    os.chmod(scratch, 0o755)
    setup = Setup(args.sonde, scratch)
    status = tap.run((name.replace("_", " "), lambda test=test: ((), test(setup))) for name, test in tests)
    shutil.rmtree(scratch, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(guard.run(main))
