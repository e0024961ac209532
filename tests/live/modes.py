# SPDX-License-Identifier: Apache-2.0
"""Which processes are recorded, how a recording ends, and what sonde's exit status says."""
import contextlib
import functools
import glob
import os
import pty
import re
import shutil
import signal
import subprocess
import time

import known_answers
from cases import Case
from folded import Verdict
from known_answers import expectation, remove_perf_maps
from sonde import FREQUENCY, PATIENCE, Recorder
from cpu_time import cpu_seconds
from tap import Skip

CPU1 = "/sys/devices/system/cpu/cpu1/online"
LONG = 100  # seconds of CPU: the test ends the workload
# Of processes that are known before their first sample: samples are what is judged, CPU time is what they cost.
OFTEN = 2 * FREQUENCY
ATTACHED_SECONDS = 0.6  # of CPU, recorded of each, that often
# For recordings of the whole machine: what else runs here must not fill the memory that these tests' stacks need.
SYSTEM = ["--memory-limit", "512M"]
# Percent of complete stacks in these: all that runs here is new to sonde at once, and with more than it can take in (a machine
# that compiles and emulates beside) some are cut until it has.
SYSTEM_COMPLETE = 90


def wait_until(what, condition, seconds=300):
    """Polls: nothing else tells what another process does."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("waited %d s for: %s" % (seconds, what))
        time.sleep(0.02)


def burnt(pid, seconds):
    """Waits until a process has used so much more CPU time."""
    begin = cpu_seconds(pid)
    wait_until("%g s of CPU of %d" % (seconds, pid), lambda: cpu_seconds(pid) >= begin + seconds, 300)


def nr_events(recorder):
    """How many perf events sonde has."""
    nr = 0
    for fd in glob.glob("/proc/%d/fd/*" % recorder.process.pid):
        try:
            nr += "perf_event" in os.readlink(fd)
        except OSError:
            pass
    return nr


def sampling_links(recorder):
    """The numbers of the BPF links that hang on sonde's sampling events."""
    found = set()
    for path in glob.glob("/proc/%d/fdinfo/*" % recorder.process.pid):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as f:
            found.update(re.findall(r"link_type:\s*perf\w*\n(?:.*\n)*?link_id:\s*(\d+)", f.read()))
    if not found:
        raise Skip("this kernel's links have no numbers")
    return found


def recording_began(recorder, others=0):
    """Waits until sonde has a sampling event on every CPU, and of so many `--event`, beside that for processes' news, which it has before
    it looks at what runs."""
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    wait_until("the recording's begin", lambda: nr_events(recorder) >= (2 + others) * cpus or recorder.process.poll() is not None)


class Running:
    """A workload in the background, killed at the end of a `with`."""

    def __init__(self, setup, case):
        self.case = case
        directory = setup.workloads
        if case.copied:
            directory = setup.scratch
            shutil.copy(setup.workload(case.binary), directory)
        if case.link:
            directory = setup.scratch
            with contextlib.suppress(FileExistsError):
                os.symlink(setup.workload(case.binary), os.path.join(directory, case.link))
        self.process = subprocess.Popen(case.argv(directory, LONG), start_new_session=True)
        self.pid = self.process.pid

    def __enter__(self):
        if self.case.before == ["in_namespace"]:
            path = "/proc/%d/task/%d/children" % (self.pid, self.pid)
            wait_until("the child", lambda: self._read(path).strip())
            self.pid = int(self._read(path))
        burnt(self.pid, 0.3)
        return self

    @staticmethod
    def _read(path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def __exit__(self, *exc):
        # PID 1 of a namespace does not die of a signal of its group: by its own number.
        for pid in {self.pid, self.process.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        remove_perf_maps({self.pid, self.process.pid})


def judge(setup, recording, case, least, complete=None):
    """Problems of a recording and of the stacks of one workload in it."""
    if recording.stacks is None:
        return recording.problems, None
    e = expectation(setup, case)
    if complete:
        e.only_complete(complete)
    problems, summary = known_answers.judge(e, case.comm, recording, least)
    return recording.problems + problems, summary


def attach(cases, bystanders, setup):
    """-p PID,PID: the processes ran before."""
    with contextlib.ExitStack() as stack:
        # All begin at once: none need go on while the others begin.
        running = [stack.enter_context(r) for r in [Running(setup, case) for case in cases + bystanders]][:len(cases)]
        recorder = Recorder(setup, ["-p", ",".join(str(r.pid) for r in running)], frequency=OFTEN)
        recording_began(recorder)
        begun = [cpu_seconds(r.pid) for r in running]
        for r, begin in zip(running, begun):
            burnt(r.pid, begin + ATTACHED_SECONDS - cpu_seconds(r.pid))
        used = [cpu_seconds(r.pid) - begin for r, begin in zip(running, begun)]
        recorder.process.send_signal(signal.SIGINT)
        recording = recorder.wait()
    recording.expect_status(0)
    problems, notes = recording.problems, []
    if recording.stacks is None:
        return problems, None
    others = {s.comm for s in recording.stacks} - {case.comm for case in cases}
    if others:
        problems.append("samples of processes that were not asked for: %s" % sorted(others))
    for case, seconds in zip(cases, used):
        wrong, note = known_answers.judge(expectation(setup, case), case.comm, recording, int(0.8 * seconds * OFTEN))
        problems += wrong
        notes.append("%s: %s" % (case.comm, note))
    return problems, "; ".join(notes)


def system(setup):
    """The whole machine: processes that ran before, and one that starts meanwhile."""
    before, meanwhile = Case("threads", expect="threads_only").alone(), Case("chain.static", None, [], "chain", "static").alone()
    with Running(setup, before) as running:
        # With all runtimes, as there may be of any beside us.
        recorder = Recorder(setup, [*SYSTEM, "--tracers", "all"])
        recording_began(recorder)
        with Running(setup, meanwhile) as other:
            for pid in running.pid, other.pid:
                burnt(pid, 1)
            recorder.process.send_signal(signal.SIGINT)
            recording = recorder.wait()
    recording.expect_status(0)
    problems, summary = judge(setup, recording, before, int(0.8 * FREQUENCY), SYSTEM_COMPLETE)
    more, _ = judge(setup, recording, meanwhile, int(0.8 * FREQUENCY), SYSTEM_COMPLETE)
    return problems + [p for p in more if p not in problems], summary


def stop_by_signal(signo, options, setup):
    """A signal ends the recording, and what there is gets written."""
    case = Case("chain").alone()
    with Running(setup, case) as running:
        attached = options == "attach"
        recorder = Recorder(setup, ["-p", str(running.pid)] if attached else SYSTEM, frequency=OFTEN if attached else FREQUENCY)
        recording_began(recorder)
        burnt(running.pid, 0.5 if attached else 1)
        recorder.process.send_signal(signo)
        recording = recorder.wait()
    recording.expect_status(0)
    return judge(setup, recording, case, int(0.8 * FREQUENCY), None if attached else SYSTEM_COMPLETE)


def stop_command(at_terminal, setup):
    """Ctrl-C at a terminal reaches sonde and the command, SIGINT of another program sonde alone: the recording is written, the command's
    death passed on."""
    case = Case("chain")
    argv = case.argv(setup.workloads, LONG)
    keyboard, terminal = pty.openpty()
    try:
        # A shell that tells when the command runs.
        recorder = Recorder(setup, [], ["sh", "-c", 'echo $$; exec "$@"', "sh", *argv], stdout=subprocess.PIPE,
                            terminal=terminal if at_terminal else None)
        pid = int(recorder.process.stdout.readline())
        wait_until("the exec", lambda: Running._read("/proc/%d/comm" % pid).strip() == case.comm)
        burnt(pid, 1)
        if at_terminal:
            os.write(keyboard, b"\x03")
        else:
            recorder.process.send_signal(signal.SIGINT)
        recording = recorder.wait()
    finally:
        os.close(keyboard)
        os.close(terminal)
    recording.expect_status(128 + signal.SIGINT)
    return judge(setup, recording, case, int(0.8 * FREQUENCY))


def terminate_command(setup):
    """SIGTERM to sonde alone: written as well, and the command does not stay behind."""
    case = Case("chain")
    argv = case.argv(setup.workloads, LONG)
    recorder = Recorder(setup, [], ["sh", "-c", 'echo $$; exec "$@"', "sh", *argv], stdout=subprocess.PIPE)
    pid = int(recorder.process.stdout.readline())
    try:
        wait_until("the exec", lambda: Running._read("/proc/%d/comm" % pid).strip() == case.comm)
        burnt(pid, 1)
        recorder.process.send_signal(signal.SIGTERM)
        recording = recorder.wait()
        if recording.status not in (0, 128 + signal.SIGTERM):
            recording.expect_status(128 + signal.SIGTERM)
        if os.path.exists("/proc/%d" % pid):
            recording.problems.append("the command still runs")
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return judge(setup, recording, case, int(0.8 * FREQUENCY))


def command_status(command, status, setup):
    recording = Recorder(setup, command=command).wait()
    recording.expect_status(status)
    return recording.problems, None


def late_recorder(setup):
    """
    sonde gets no turn while the command becomes another program again and again, as on a machine that is too busy: its
    samples are walked afterwards, each in the image that was there.
    """
    case = Case("execself", seconds=4)
    argv = ["sh", "-c", 'echo $$; exec "$@"', "sh", *case.argv(setup.workloads)]
    recorder = Recorder(setup, [], argv, stdout=subprocess.PIPE)
    pid = int(recorder.process.stdout.readline())
    wait_until("the exec", lambda: Running._read("/proc/%d/comm" % pid).strip() == case.comm)
    for _ in range(3):
        burnt(pid, 0.1)
        recorder.process.send_signal(signal.SIGSTOP)
        try:
            burnt(pid, 0.2)
        finally:
            recorder.process.send_signal(signal.SIGCONT)
    recording = recorder.wait()
    recording.expect_status(0)
    return judge(setup, recording, case, int(0.7 * case.seconds * FREQUENCY))


def only_the_command(setup):
    """Its recording begins at its exec: what sonde's child does before that has sonde's name."""
    case, problems, others = Case("chain", seconds=0.1), [], set()
    for _ in range(4):
        recording = Recorder(setup, command=case.argv(setup.workloads), frequency=4999).wait()
        recording.expect_status(0)
        problems += recording.problems
        others |= {s.comm for s in recording.stacks or []} - {case.comm}
    if others:
        problems.append("samples of others than the command: %s" % sorted(others))
    return problems, None


def refused(options, command, word, setup):
    """Exit status 1 and a line that says what is wrong; no output file."""
    recording = Recorder(setup, options, command).wait()
    problems = []
    if recording.status != 1:
        problems.append("exit status %s, expected 1" % recording.status)
    if word not in recording.errors:
        problems.append("no '%s' in the message: %s" % (word, recording.errors.strip()))
    if recording.stacks is not None:
        problems.append("an output file was written")
    return problems, None


def no_kernel(setup):
    """--no-kernel: the same user stacks, no kernel frame."""
    case = Case("syscalls", seconds=1)
    recording = Recorder(setup, ["--no-kernel"], case.argv(setup.workloads)).wait()
    recording.expect_status(0)
    if any(s.kernel for s in recording.stacks or []):
        recording.problems.append("kernel frames in spite of --no-kernel")
    return judge(setup, recording, case, 800)


def kernel_frames(setup):
    """Kernel stacks follow the user's, begin where the kernel was entered, and have names."""
    case = Case("syscalls", seconds=1)
    recording = Recorder(setup, [], case.argv(setup.workloads)).wait()
    recording.expect_status(0)
    problems, _ = judge(setup, recording, case, 800)
    stacks = [s for s in recording.stacks or [] if s.comm == case.comm]
    frames = sum(s.count * len(s.kernel) for s in stacks)
    unnamed = sum(s.count * sum(f.startswith("[") for f in s.kernel) for s in stacks)
    in_call = [s for s in stacks if s.kernel and s.user and s.user[-1] in ("syscall", "read")]
    total = sum(s.count for s in in_call)
    entered = sum(s.count for s in in_call if s.kernel[0].startswith(("entry_SYSCALL_64", "asm_", "do_syscall_64")))
    if total < 300:
        problems.append("only %d samples in system calls" % total)
    if entered < 0.99 * total:
        problems.append("%d of %d kernel stacks begin at an entry" % (entered, total))
        problems += ["  %s" % ";".join(s.kernel) for s in in_call[:3]]
    if unnamed > 0.01 * frames:
        problems.append("%d of %d kernel frames have no name" % (unnamed, frames))
    return problems, "%d samples in system calls, %d kernel frames" % (total, frames)


def max_frames(setup):
    """--max-frames 100 on a stack of 905: the 100 innermost, and the reason."""
    case = Case("deep", seconds=1)
    recording = Recorder(setup, ["--max-frames", "100"], case.argv(setup.workloads)).wait()
    recording.expect_status(0)
    e = expectation(setup, case)
    e.truncated = ("max_frames", 95)
    verdict = Verdict(e, recording.stacks or [], case.comm, 800)
    deepest = max((len(s.user) for s in recording.stacks or []), default=0)
    if deepest != 100:
        verdict.problems.append("the deepest stack has %d user frames, expected 100" % deepest)
    return recording.problems + verdict.problems, verdict.summary()


def dead_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def target_exits(setup):
    """The process that was asked for ends: the recording ends too, with what there is."""
    case = Case("chain")
    with Running(setup, case) as running:
        recorder = Recorder(setup, ["-p", str(running.pid)], frequency=OFTEN)
        recording_began(recorder)
        burnt(running.pid, 0.25)
        running.process.kill()
        running.process.wait()
        recording = recorder.wait()
    recording.expect_status(0)
    return judge(setup, recording, case, int(0.4 * FREQUENCY))


def check_has_cpu1():
    if not os.access(CPU1, os.W_OK):
        raise Skip("CPU 1 cannot be taken offline here")


@contextlib.contextmanager
def without_cpu1():
    """CPU 1 is offline meanwhile."""
    try:
        with open(CPU1, "w", encoding="utf-8") as f:
            f.write("0")
    except OSError as e:
        raise Skip("CPU 1 cannot be taken offline: %s" % e) from e
    try:
        yield
    finally:
        with open(CPU1, "w", encoding="utf-8") as f:
            f.write("1")


def judge_back(setup, case, running, recorder, used):
    """CPU 1 has come back, and sonde knows: its samples are half of what follows. `used`: seconds of CPU that were sampled before."""
    begin = cpu_seconds(running.pid)
    burnt(running.pid, 3)
    used += cpu_seconds(running.pid) - begin
    recorder.process.send_signal(signal.SIGINT)
    recording = recorder.wait()
    recording.expect_status(0)
    return judge(setup, recording, case, int(0.8 * used * FREQUENCY), SYSTEM_COMPLETE)


def hotplug(setup):
    """
    A CPU goes and comes back during a recording of the whole machine: its samples come back too. What passes until sonde
    learns of the CPU is not sampled.
    """
    check_has_cpu1()
    case = Case("threads", expect="threads_only").alone()
    with Running(setup, case) as running:
        recorder = Recorder(setup, SYSTEM)
        recording_began(recorder)
        begin = cpu_seconds(running.pid)
        burnt(running.pid, 0.5)
        full = nr_events(recorder)
        with without_cpu1():
            # sonde looks now and then which CPUs there are; what came back between two looks is for hotplug_unseen().
            wait_until("sonde's news of the CPU that went", lambda: nr_events(recorder) <= full - 2)
            burnt(running.pid, 0.3)
            used = cpu_seconds(running.pid) - begin
        wait_until("sonde's news of the CPU that came", lambda: nr_events(recorder) >= full)
        return judge_back(setup, case, running, recorder, used)


def hotplug_unseen(setup):
    """A CPU goes and comes back between two looks at the list of CPUs, as all but one do when a machine is suspended."""
    check_has_cpu1()
    case = Case("threads", expect="threads_only").alone()
    with Running(setup, case) as running:
        recorder = Recorder(setup, SYSTEM)
        recording_began(recorder)
        before = sampling_links(recorder)
        with without_cpu1():
            pass
        wait_until("sonde's news of the CPU that came back", lambda: sampling_links(recorder) - before)
        return judge_back(setup, case, running, recorder, 0)


def tests(_setup):
    chain = {"expect": "chain"}
    attached = [
        Case("chain.static", None, [], "chain", "static"),
        Case("deep"),
        Case("sigasync"),
        Case("threads", expect="threads_only"),
        Case("later"),
        Case("jit"),
        Case("chain", args=["deleted", "unlink"], comm="deleted", copied=True, **chain),
        Case("chain", args=["in_memfd"], expect="memfd_exec", comm="in_memfd", before=["memfd_exec"]),
        Case("jit.static", None, [], "jit_namespace", "static", before=["in_namespace"]),
        Case("dlswap"),
        Case("vdso"),
    ]
    yield "attach-two", functools.partial(attach, [Case("chain"), Case("jumpback")], [Case("tailcall")])
    # Some at a time: each takes a CPU.
    for i in range(0, len(attached), 4):
        cases = attached[i:i + 4]
        yield "attach-" + "-".join(case.before[0] if case.before else case.comm for case in cases), functools.partial(attach, cases, [])
    yield "target-exits", target_exits
    yield "system", system
    yield "interrupt-attached", functools.partial(stop_by_signal, signal.SIGINT, "attach")
    yield "terminate-attached", functools.partial(stop_by_signal, signal.SIGTERM, "attach")
    yield "interrupt-system", functools.partial(stop_by_signal, signal.SIGINT, "system")
    yield "interrupt-command", functools.partial(stop_command, False)
    yield "interrupt-at-terminal", functools.partial(stop_command, True)
    yield "terminate-command", terminate_command
    yield "status-0", functools.partial(command_status, ["true"], 0)
    yield "status-7", functools.partial(command_status, ["sh", "-c", "exit 7"], 7)
    yield "status-signal", functools.partial(command_status, ["sh", "-c", "kill -9 $$"], 128 + 9)
    yield "late-recorder", late_recorder
    yield "only-the-command", only_the_command
    yield "command-not-found", functools.partial(refused, [], ["/nonexistent/x"], "/nonexistent/x")
    yield "unknown-pid", lambda setup: refused(["-p", str(dead_pid())], [], "process", setup)
    yield "no-kernel", no_kernel
    yield "kernel-frames", kernel_frames
    yield "max-frames", max_frames


def hotplug_tests(_setup):
    yield "hotplug", hotplug
    yield "hotplug-unseen", hotplug_unseen
