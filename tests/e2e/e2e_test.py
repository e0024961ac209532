#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The program as a person uses it: `e2e_test.py SONDE [TEST...]`, TAP on standard output.

A test is a function test_NAME(); it fails by an exception and runs in a folder of its own. Nothing
here sleeps: recordings are ended by what they record, or by a signal once the progress line says
that samples arrive.
"""
import ctypes
import errno
import fcntl
import gzip
import json
import os
import platform
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import tap
from command import of_native_code
from cpu_time import cpu_seconds
from folded_text import stacks_of
from tap import check

SONDE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "sonde"
TIMEOUT = 300  # seconds for what hangs

# About a second of CPU, whatever the machine's load.
BURN = "i=0; while [ $i -lt 700000 ]; do i=$((i+1)); done"


class Run:
    """What a finished sonde said."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.out[-2000:]}\n--- stderr\n{self.err[-3000:]}"


def sonde(*args, **more):
    """Runs `sonde ARGS`, without frames of runtimes, see run_sonde()."""
    return run_sonde(*of_native_code(args), **more)


def run_sonde(*args, before=(), **more):
    """Runs `sonde ARGS`, behind the words of `before` (setpriv ...)."""
    done = subprocess.run([*before, SONDE, *args], stdin=subprocess.DEVNULL, timeout=TIMEOUT,
                          capture_output=True, text=True, errors="replace", **more)
    return Run(done.returncode, done.stdout, done.stderr)


def check_error(run, status, *says):
    """One line on stderr that has these words in it, nothing on stdout."""
    check(run.status == status, f"exit {status} expected: {run}")
    check(run.err.startswith("sonde: ") and run.err.count("\n") == 1, f"not one line: {run}")
    check(run.out == "", f"something on stdout: {run}")
    for words in says:
        check(words in run.err, f"'{words}' expected: {run}")


def check_ok(run):
    check(run.status == 0, f"exit 0 expected: {run}")
    return run


def read(path):
    with open(path, encoding="utf-8", errors="strict") as file:
        return file.read()


class OnTerminal:
    """A sonde with a terminal, in a session of its own: its progress line tells when samples arrive."""

    def __init__(self, *args, columns=80):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen([SONDE, *of_native_code(args)], stdin=subprocess.DEVNULL, stderr=slave,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.err = ""

    def read_more(self):
        """Waits for what it writes next; False: it has ended."""
        if not select.select([self.master], [], [], TIMEOUT)[0]:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"nothing came for {TIMEOUT} s after: {self.err[-500:]!r}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: the other side is closed
            data = b""
        self.err += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)

    def read_until(self, pattern):
        while not (pattern and re.search(pattern, self.err)):
            if not self.read_more():
                check(not pattern, f"ended without '{pattern}': {self.err!r}")
                return

    def type(self, keys):
        os.write(self.master, keys)

    def wait_for_samples(self):
        self.read_until(r"[1-9]\d* samples")

    def wait_for_samples_of(self, process):
        """Whatever else this machine is busy with: the process runs for 0.2 s while it is recorded."""
        self.wait_for_samples()
        enough = cpu_seconds(process.pid) + 0.2
        while cpu_seconds(process.pid) < enough:
            check(self.read_more(), f"it ended: {self.err!r}")

    def finish(self):
        self.read_until(None)
        out = self.process.stdout.read()
        status = self.process.wait(TIMEOUT)
        os.close(self.master)
        return Run(status, out, self.err)


class Burner:
    """A process that runs until it is let go; `with` kills it."""

    def __init__(self, comm="burner"):
        shutil.copy("/bin/dash", comm)
        self.process = subprocess.Popen([f"./{comm}", "-c", "while :; do :; done"])

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


INLINES = """\
#include <cstdlib>
#include <type_traits>
namespace shop {
template <typename T> struct counter {
	T value = 0;
	__attribute__((noipa)) void run(T rounds);
};
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void innermost(unsigned long i)
{
	for (int n = 0; n < 100; n++) sink = sink + i; // line 11: all its work, whichever instruction the processor charges
}
static inline __attribute__((always_inline)) void middle(unsigned long i)
{
	innermost(i); // line 15
}
template <typename T> void counter<T>::run(T rounds)
{
	for (T i = 0; i < rounds; i++)
		middle(i); // line 20
}
}
int main(int argc, char **argv)
{
	shop::counter<unsigned long> counter;
	counter.run(strtoul(argv[argc - 1], nullptr, 10)); // line 26
}
"""


def build_inlines(*flags):
    """./inlines ROUNDS: main -> shop::counter<unsigned long>::run -> (inlined) middle -> innermost."""
    with open("inlines.cpp", "w") as file:
        file.write(INLINES)
    subprocess.run(["g++", "-O2", "-g", *flags, "-o", "inlines", "inlines.cpp"], check=True)


def record_inlines(*args, cache="cache"):
    """What `sonde record` writes of it, as folded text: {stack: count}, and the run."""
    env = dict(os.environ, XDG_CACHE_HOME=os.path.abspath(cache))
    run = check_ok(sonde("record", "-F", "499", "--no-kernel", "-o", "-", *args, "--", "./inlines",
                         "3000000", env=env))
    return {";".join(frames): count for _, frames, count in stacks_of(run.out)}, run


# --- help, and command lines that make no sense ---------------------------------------------------

def test_help_and_version():
    check("record" in check_ok(sonde("--help")).out, "--help")
    check("--frequency" in check_ok(sonde("help", "record")).out, "help record")
    check(re.fullmatch(r"sonde \d+\.\d+\.\d+\n", check_ok(sonde("--version")).out), "--version")
    check(sonde().status == 2, "no command")


def test_help_of_frames_of_runtimes():
    for command in "record", "top", "stack", "core":
        text = check_ok(sonde("help", command)).out
        check(re.search(r"--interpreter-frames +show an interpreter's own C functions", text), text)
        check(re.search(r"--tiers +tell the versions of a compiled function", text), text)
        check(re.search(r"--async +continue the stack of a task", text), text)
        check(re.search(r"--threads os\|virtual +count a virtual thread", text), text)
    check_error(sonde("record", "--tiers=1"), 2, "--tiers")
    check_error(sonde("stack", "--threads", "green", "1"), 2, "--threads takes 'os' or 'virtual', not 'green'")


def test_usage_errors():
    for args, says in [
        (["nope"], "nope"),
        (["record", "-F", "0"], "from 1"),
        (["record", "-F", "many"], "many"),
        (["record", "-d", "-1"], "-1"),
        (["record", "-p", "x"], "process ids"),
        (["record", "--memory-limit", "1k"], "at least"),
        (["record", "--memory-limit", "lots"], "64M"),
        (["record", "--max-frames", "0"], "from 1"),
        (["record", "--frobnicate"], "--frobnicate"),
        (["record", "-o"], "--output"),
        (["record", "-p", "1", "--", "true"], "not both"),
    ]:
        check_error(sonde(*args), 2, says)


def test_what_was_meant():
    for args, meant in [
        (["--versoin"], "unknown option '--versoin'; did you mean '--version'?"),
        (["version"], "unknown command 'version'; did you mean '--version'?"),
        (["--hlep"], "unknown option '--hlep'; did you mean '--help'?"),
        (["-d", "1"], "options of a command stand behind it"),
        (["record", "-f", "htm"], "did you mean 'html'?"),
        (["record", "-f", "foldd", "-o", "x"], "did you mean 'folded'?"),
        (["convert", "--from", "prof", "a", "b.html"], "did you mean 'pprof'?"),
        (["record", "--names", "shrt"], "did you mean 'short'?"),
        (["top", "--by", "proc"], "did you mean 'process'?"),
        (["top", "--sort", "totl"], "did you mean 'total'?"),
        (["record", "--threads", "virtul"], "(did you mean 'virtual'?), not 'virtul'"),
        (["record", "--off-cpu", "weight=1ms"], "--off-cpu takes a number from 0 to 1, or weighted=TIME, not 'weight=1ms'"),
        (["record", "--off-cpu", "1", "--type", "of_cpu"], "did you mean 'off_cpu'?"),
        (["record", "--type", "of_cpu"], "'of_cpu' (did you mean 'off_cpu'?) without --off-cpu"),
        (["record", "--type", "off_cpu"], "no samples of type 'off_cpu' without --off-cpu"),
        (["record", "--event", "cs", "--type", "nope"], "'nope', but of: samples, context-switches"),
        (["record", "--no"], "'--no' may be any of --no-kernel, --no-inlines"),
        (["record", "--frobnicate"], "unknown option '--frobnicate'"),
    ]:
        check_error(sonde(*args), 2, meant)


def test_processes_that_are_none():
    """What was given, what it takes, how to come by it."""
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    for command in "record", "top", "doctor", "stack":
        more = {"record": ["-o", "x.folded"], "top": ["-b", "1"]}.get(command, [])
        check_error(sonde(command, *more, "-p", "bash"), 2, "not 'bash'", "'pgrep -d, bash' tells")
        check_error(sonde(command, *more, "-p", "9999999999"), 2, "at most 2147483647, not '9999999999'")
        check_error(sonde(command, *more, "-p", str(ended_pid())), 1, "there is no process", "'ps -e' lists those that run")
        check_error(sonde(command, *more, "-p", str(thread.native_id)), 1, f"{thread.native_id} is a thread of process {os.getpid()}")
    check_error(sonde("stack", "bash"), 2, "'bash' is no PID", "pgrep")
    check_error(sonde("stack", "-p", "1", "2"), 2, "give one PID")
    check_error(sonde("top", "1234"), 2, "-p PID")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    powerless = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    with subprocess.Popen([*nobody, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        cat.stdin.write(b"x")
        cat.stdin.flush()
        cat.stdout.read(1)  # it is nobody's by now
        for command in ["doctor", "-p"], ["stack"]:
            check_error(sonde(*command, "1", before=nobody), 1, "process 1", "as root, or as its user")
        check_error(sonde("stack", str(cat.pid), before=powerless), 1, f"process {cat.pid}", "though we are root: without CAP_SYS_PTRACE")
        cat.stdin.close()
    if read("/proc/2/comm") == "kthreadd\n":  # not in a container
        run = check_ok(sonde("doctor", "-p", "2"))
        check(run.out == "process 2:\n     a thread of the kernel: its frames are the kernel's\n", run)


def test_unknown_format():
    check_error(sonde("record", "-f", "nope"), 2, "'nope'", "folded", "html")
    check_error(sonde("record", "-o", "x.nope"), 2, "x.nope", "folded", "html")


def fields(data):
    """The fields of a protobuf message: (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            at += value
            value = data[at - value:at]
        yield key >> 3, value


def test_kernel_locations_of_pprof_lie_in_their_mapping():
    check_ok(sonde("record", "-F", "999", "-o", "x.pb.gz", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=3000"))
    with gzip.open("x.pb.gz") as file:
        profile = list(fields(file.read()))
    mappings = {m[1]: (m.get(2, 0), m.get(3, 0)) for m in (dict(fields(v)) for n, v in profile if n == 3)}
    kernel = [m for m in (dict(fields(v)) for n, v in profile if n == 4) if m.get(3, 0) >> 63]
    check(kernel, "no kernel frame was sampled")
    outside = [m for m in kernel if not mappings[m[2]][0] <= m[3] < mappings[m[2]][1]]
    check(not outside, f"{len(outside)} of {len(kernel)} lie outside: {outside[:3]}, {mappings}")


def test_an_idle_machine_is_said_to_be_idle():
    """It hardly is, while this runs: at 1 Hz few samples come. Sonde's own do not count."""
    run = check_ok(sonde("record", "-F", "1", "-d", "0.3", "-o", "x.folded", "--stats", "s.json"))
    stats = json.loads(read("s.json"))
    busy = (stats["samples"] - stats["own"]) / (stats["duration_s"] * os.sysconf("SC_NPROCESSORS_ONLN"))
    if not 0.04 < busy < 0.06:
        check(("'sonde record -- COMMAND' records a program" in run.err) == (busy < 0.05), run)


def test_a_recording_that_did_not_begin_does_not_call_the_machine_idle():
    deadline = time.monotonic() + TIMEOUT
    while True:  # a busy machine may let it go on for longer
        run = check_ok(sonde("record", "-d", "0.001", "-F", "1", "-o", "x.folded", "--stats", "s.json"))
        stats = json.loads(read("s.json"))
        if not stats["samples"] and stats["duration_s"] < 0.05:
            break
        check(time.monotonic() < deadline, f"it never ends at once: {stats}")
    check("idle" not in run.err and "over before it had begun" in run.err, run)


def test_the_progress_line_fits_a_narrow_terminal():
    """A line that wraps is not overwritten by the next one."""
    with Burner() as burner:
        recording = OnTerminal("record", "-p", str(burner.pid), "-o", "x.folded", columns=24)
        recording.wait_for_samples_of(burner)
        recording.type(b"\x03")
        run = recording.finish()
    lines = re.findall(r"([^\r\n]*)\x1b\[K\r", run.err.replace("^C", ""))
    check(lines and max(map(len, lines)) == 23, lines)


def test_a_selection_that_nothing_is_of_is_said():
    with Burner():
        run = check_ok(sonde("record", "--include", "comm=no-such-name", "-d", "0.5", "-o", "x.folded"))
    check("no samples: nothing that --include and --exclude leave ran" in run.err, run)


def test_own_samples_are_told():
    check_ok(sonde("record", "-F", "1999", "-d", "1", "-o", "x.folded", "--stats", "s.json"))
    stats = json.loads(read("s.json"))
    named = sum(count for comm, _, count in stacks_of(read("x.folded")) if comm.startswith("sonde"))
    check(0 < stats["own"] <= named, (stats, named))


def test_full_stdout():
    with open("/dev/full", "w") as full:
        done = subprocess.run([SONDE, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 1 and "No space left" in done.stderr, done)


# --- what the machine lacks -----------------------------------------------------------------------

def test_not_root():
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    check_error(sonde("record", "-d", "1", before=nobody), 1, "not root", "sudo")
    run = sonde("doctor", before=nobody)
    check(run.status == 1, run)
    check(re.search(r"^no +privileges .*not root", run.out, re.M), run)


def test_doctor():
    run = check_ok(sonde("doctor"))
    for name in ["BTF", "ring buffers", "raw tracepoints", "memory-lock limit"]:
        check(re.search(rf"^yes +{name}", run.out, re.M), run)
    # What is known, by the tables that the walkers have.
    for row in ["Python +CPython 3.6 to 3", "Java +HotSpot 8 and later", "Ruby +Ruby 2.5 to 2.7, 3", "PHP +PHP 7.3, 7.4, 8", "Perl +Perl 5.28 to 5",
                "JavaScript +V8 7.8, 7.9, 8.3", "Go +go 1.16 to 1"]:
        check(re.search(rf"^ +{row}", run.out, re.M), run)
    check_error(sonde("doctor", "x"), 2, "no arguments", "-p PID")


def test_doctor_of_a_process():
    with subprocess.Popen(["sleep", "1000"]) as sleep:
        try:
            both = sonde("doctor", "-p", f"{sleep.pid},{os.getpid()}")
        finally:
            sleep.kill()
    check(f"process {sleep.pid}:\n     no runtime: its frames are native ones\nprocess {os.getpid()}:\nyes  Python   " in both.out, both)
    check(both.status == 0, both)
    check_error(sonde("doctor", "-p", str(sleep.pid)), 1, "no process")


def test_missing_capability():
    drop = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    check_error(sonde("record", "-d", "1", before=drop), 1, "without CAP_SYS_PTRACE")


def test_user_namespace():
    check_error(sonde("record", "-d", "1", before=["unshare", "--user", "--map-root-user"]), 1,
                "bpf()", "Operation not permitted")


def test_pid_namespace():
    before = ["unshare", "--pid", "--fork", "--mount-proc"]
    check_error(sonde("record", "-d", "1", before=before), 1, "PID namespace", "--pid=host")


def test_no_btf():
    hide = ["unshare", "--mount", "sh", "-c",
            'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]
    check_error(sonde("record", "-d", "1", before=hide), 1, "BTF", "CONFIG_DEBUG_INFO_BTF")
    run = sonde("doctor", before=hide)
    check(run.status == 1 and re.search("^no +BTF", run.out, re.M), run)


def forbid(system_call, error):
    """For preexec_fn: a seccomp filter that answers the system call with `error`."""
    number = {"x86_64": {"bpf": 321, "perf_event_open": 298},
              "aarch64": {"bpf": 280, "perf_event_open": 241}}[platform.machine()][system_call]
    instructions = [(0x20, 0, 0, 0),  # load the system call's number
                    (0x15, 0, 1, number),
                    (0x06, 0, 0, 0x00050000 | error),  # SECCOMP_RET_ERRNO
                    (0x06, 0, 0, 0x7fff0000)]  # SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(instructions),
                                                      ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")
        return code  # both buffers must live until here
    return install


def test_no_bpf():
    check_error(sonde("record", "-d", "1", preexec_fn=forbid("bpf", errno.ENOSYS)), 1,
                "BPF", "CONFIG_BPF_SYSCALL")
    check_error(sonde("record", "-d", "1", preexec_fn=forbid("bpf", errno.EPERM)), 1,
                "BPF", "seccomp")


def test_no_perf_events():
    check_error(sonde("record", "-d", "1", preexec_fn=forbid("perf_event_open", errno.ENOSYS)), 1,
                "perf", "CONFIG_PERF_EVENTS")


def test_the_manual_names_files_and_variables():
    text = sonde("help", "--man").out
    for words in ".SH FILES", "/var/cache/sonde", ".SH ENVIRONMENT", "XDG_CACHE_HOME", "NO_COLOR":
        check(words in text, words)


def test_frequency_out_of_range():
    check_error(sonde("record", "-F", "10000000"), 1, "perf_event_max_sample_rate")


# --- targets --------------------------------------------------------------------------------------

def test_unknown_pid():
    child = subprocess.Popen(["true"])
    pid = child.pid
    child.wait()
    check_error(sonde("record", "-p", str(pid)), 1, f"no process {pid}")


def test_zombie_pid():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    check_error(sonde("record", "-p", str(child.pid)), 1, "has already ended")
    child.wait()


def ended_pid():
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def record_a_second(pids):
    """Of these, as folded text. One in which none of them had a CPU says nothing: then there is another one."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        run = check_ok(sonde("record", "-F", "999", "-d", "1", "-o", "x.folded", "-p", pids))
        if read("x.folded") or time.monotonic() > deadline:
            return run


def test_list_with_pids_that_have_ended():
    gone, other = ended_pid(), ended_pid()
    check_error(sonde("record", "-p", f"{gone},{other}"), 1, "none of the processes")
    with Burner() as burner:
        run = record_a_second(f"{gone},{burner.pid},{other}")
    check("burner;" in read("x.folded"), run)
    for pid in gone, other:
        check(f"there is no process {pid}; -p goes on without it" in run.err, run)


def test_list_with_a_pid_that_exits_at_once():
    """As in test_pid_that_exits_at_once()."""
    os.mkfifo("s.json")
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    with Burner() as burner:
        process = subprocess.Popen([SONDE, "record", "-F", "999", "-d", "1", "-p", f"{child.pid},{burner.pid}", "-o", "x.folded",
                                    "--stats", "s.json"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = process.stderr.readline()
        check("waiting for somebody to read" in said, said)  # it has looked at the processes
        child.stdin.close()
        child.wait()
        with open("s.json") as stats:
            stats.read()
        out, err = process.communicate(timeout=TIMEOUT)
    run = check_ok(Run(process.returncode, out, err))
    check(f"process {child.pid} has ended before the recording began" in run.err, run)
    check("burner;" in read("x.folded"), run)


def test_pid_that_exits():
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    recording = OnTerminal("record", "-p", str(child.pid), "-o", "x.folded")
    recording.read_until(r"\d+ samples")
    child.stdin.close()
    child.wait()
    run = recording.finish()  # it ends by itself
    check(run.status == 0, run)


def test_pid_that_exits_at_once():
    """Between the check of the command line and the recording: that is where the outputs are opened."""
    os.mkfifo("x.folded")
    os.mkfifo("s.json")
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    process = subprocess.Popen([SONDE, "record", "-p", str(child.pid), "-o", "x.folded", "--stats",
                                "s.json"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open("x.folded"):  # sonde has opened it for writing: it knows the process
        child.stdin.close()
        child.wait()
        with open("s.json"):
            out, err = process.communicate(timeout=TIMEOUT)
    err = re.sub(r"sonde: waiting for somebody to read the FIFO '[xs].(folded|json)'\n", "", err)
    check_error(Run(process.returncode, out, err), 1, f"process {child.pid}")


def test_command_not_found():
    check_error(sonde("record", "--", "no-such-command-anywhere"), 1, "not found", "$PATH")
    check_error(sonde("record", "--", "./nothing"), 1, "./nothing")
    with open("text", "w") as file:
        file.write("no program\n")
    check_error(sonde("record", "--", "./text"), 1, "no executable file")
    check_error(sonde("record", "--", "/"), 1, "no executable file")
    check(os.listdir(".") == ["text"], "something was written")


# --- outputs --------------------------------------------------------------------------------------

def test_unwritable_output_is_known_before():
    for output in ["no/such/folder/x.folded", "/", "/proc/version"]:
        run = sonde("record", "-f", "folded", "-o", output, "--", "touch", "ran")
        check_error(run, 1, f"'{output}'")
    check_error(sonde("record", "-o", "x.folded", "--stats", "no/such/x.json", "--", "touch", "ran"),
                1, "no/such/x.json")
    check(os.listdir(".") == [], os.listdir("."))


def test_full_device():
    run = sonde("record", "-f", "folded", "-o", "/dev/full", "--", "sh", "-c", BURN)
    check(run.status == 1 and "/dev/full" in run.err and "No space left" in run.err, run)


def test_full_disk_keeps_the_old_file():
    os.mkdir("disk")
    script = """
        mount -t tmpfs -o size=64k none disk || exit 99
        echo old >disk/x.folded
        cat /dev/zero >disk/fill 2>/dev/null
        "$@"
        status=$?
        ls -A disk
        cat disk/x.folded
        exit $status
    """
    run = sonde("record", "-o", "disk/x.folded", "--", "sh", "-c", BURN,
                before=["unshare", "--mount", "sh", "-c", script, "sh"])
    check(run.status == 1 and "No space left" in run.err, run)
    check(run.out == "fill\nx.folded\nold\n", run)


def into_closed_pipe(*words):
    """Status and standard error of a sonde whose standard output nobody reads, from the beginning."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([SONDE, *words], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
    os.close(writing)
    return done.returncode, done.stderr


def test_closed_pipe():
    status, err = into_closed_pipe("record", "-o", "-", "--", "sh", "-c", BURN)
    check(status == 1 and "Broken pipe" in err, err)
    with open("x.folded", "w") as file:
        file.write("a;b 1\n")
    # A pager that was left.
    check(into_closed_pipe("help", "record") == (1, ""), "a pager is told that it was left")
    # Of ourselves: what else runs here may be more than there is room for, and that would be said, too.
    for words in ["convert", "x.folded", "-"], ["top", "-b", "2", "--delay", "0.1", "-p", str(os.getpid())]:
        status, err = into_closed_pipe(*words)
        check(status == 1 and err.count("\n") == 1 and "standard output: Broken pipe" in err, err)


def test_default_output():
    run = check_ok(run_sonde("record", "-d", "0.5"))
    check(re.search(r"^sonde: wrote profile\.html \(html, \d+ kB\)$", run.err, re.M), run)
    check(read("profile.html").lstrip().lower().startswith("<!doctype html>"), "no page")


# --- recordings -----------------------------------------------------------------------------------

def test_summary_and_stats():
    run = check_ok(sonde("record", "-F", "199", "-o", "x.folded", "--stats", "s.json", "--", "sh",
                         "-c", BURN))
    stats = json.loads(read("s.json"))
    check(sorted(stats) == sorted([
        "samples", "complete", "truncated", "lost", "kernel_walks", "unknown_runtimes", "own", "frames", "processes", "files",
        "others", "limited", "reads_given_up", "rejected", "rejected_others", "undecided",
        "bpf_ns_per_sample", "rss_kb", "map_bytes", "duration_s", "frequency_hz"]), stats)
    check(stats["samples"] > 20, stats)
    check(stats["samples"] == stats["complete"] + sum(stats["truncated"].values()), stats)
    check(stats["frequency_hz"] == 199, stats)
    check(stats["frames"] >= stats["samples"] and stats["processes"] >= 1, stats)
    check(stats["bpf_ns_per_sample"] > 0 and stats["duration_s"] > 0, stats)
    check(0 < stats["rss_kb"] * 1024 + stats["map_bytes"] < 64 << 20, stats)
    check(sum(count for _, _, count in stacks_of(read("x.folded"))) == stats["samples"], stats)
    lines = run.err.splitlines()
    check(re.fullmatch(rf"sonde: {stats['samples']} samples? in [\d.]+ s at 199 Hz: [\d.]+ % complete, "
                       r"\d+ lost; \d+ process(?:es)?, \d+ files?", lines[0]), run)
    check(re.fullmatch(r"sonde: cost: [\d.]+ % of a CPU in the kernel, [\d.]+ % of one in sonde, [\d.]+ MB of memory, "
                       r"[\d.]+ MB of BPF maps", lines[1]), run)
    check(run.out == "", run)


def test_stdout_has_only_folded_lines():
    run = check_ok(sonde("record", "-o", "-", "--", "sh", "-c", BURN))
    check(stacks_of(run.out), run)
    check("wrote" not in run.err, run)
    check(os.listdir(".") == [], os.listdir("."))


def test_stats_on_stdout():
    run = check_ok(sonde("record", "-o", "x.folded", "--stats", "-", "--", "sh", "-c", BURN))
    check(json.loads(run.out)["samples"] > 10, run)


def test_tracers():
    """Frames of those runtimes alone that are asked for: of others, what their interpreters do."""
    script = "def outer():\n  for _ in range(9000000): pass\nouter()"
    for words, wanted in ([], True), (["--tracers", "ruby, python"], True), (["--tracers", "ruby"], False), (["--tracers", "native"], False):
        run = check_ok(run_sonde("record", "-F", "499", "-o", "-", *words, "--", "python3", "-S", "-c", script))
        stacks = stacks_of(run.out)
        scripts = sum(count for _, frames, count in stacks if "outer" in frames)
        everything = sum(count for _, _, count in stacks)
        check(everything > 20 and (scripts > 0.5 * everything if wanted else not scripts), f"{words}: {run}")
    for command in "record", "top":
        check_error(sonde(command, "--tracers", "pythn"), 2, "--tracers knows no 'pythn' (did you mean 'python'?)", f"sonde help {command}")


def test_top():
    run = check_ok(sonde("record", "-o", "x.folded", "--top", "3", "--", "sh", "-c", BURN))
    rows = re.findall(r"^ +\d+ +[\d.]+ % +\d+ +[\d.]+ % +\S", run.out, re.M)
    check(2 <= len(rows) <= 6, run)


def test_exit_status_is_the_commands():
    for script, status in [("exit 0", 0), ("exit 1", 1), ("exit 42", 42), ("kill -TERM $$", 143),
                           ("kill -KILL $$", 137)]:
        run = sonde("record", "-o", "x.folded", "--", "sh", "-c", script)
        check(run.status == status, f"{script}: {run}")
        check(os.path.exists("x.folded"), f"{script}: nothing written")
    check(sonde("record", "-o", "x.folded", "sh", "-c", "exit 7").status == 7, "without --")


def test_the_command_gets_a_clean_start():
    """What it would have without sonde: a shell in the background, for one, has SIGINT ignored."""
    for command in (["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], ["ls", "/proc/self/fd"]):
        plain = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
        run = sonde("record", "-o", "x.folded", "--", *command)
        check(plain.stdout and run.out == plain.stdout, f"{plain.stdout} expected: {run}")


def test_only_the_command_and_its_descendants():
    with Burner("outsider"):
        check_ok(sonde("record", "-o", "x.folded", "--", "sh", "-c", f"sh -c '{BURN}'; {BURN}"))
    comms = {comm for comm, _, _ in stacks_of(read("x.folded"))}
    check("sh" in comms and comms <= {"sh", "sonde"}, comms)


def test_the_whole_machine_while_a_command_runs():
    with Burner("outsider"):
        run = sonde("record", "-a", "-o", "x.folded", "--", "sh", "-c", f"{BURN}; {BURN}; exit 3")
    check(run.status == 3, run)
    comms = {comm for comm, _, _ in stacks_of(read("x.folded"))}
    check({"outsider", "sh"} <= comms, comms)
    check_error(sonde("record", "-a", "-p", str(os.getpid())), 2, "either -p or -a")


def test_only_the_given_process():
    with Burner("chosen") as chosen, Burner("other"):
        record_a_second(str(chosen.pid))
    stacks = stacks_of(read("x.folded"))
    check(stacks and {comm for comm, _, _ in stacks} == {"chosen"}, stacks)


def test_the_whole_machine():
    with Burner("one") as one, Burner("two") as two:
        recording = OnTerminal("record", "-o", "x.folded")
        for burner in one, two:
            recording.wait_for_samples_of(burner)
        recording.process.send_signal(signal.SIGINT)
        check_ok(recording.finish())
    comms = {comm for comm, _, _ in stacks_of(read("x.folded"))}
    check({"one", "two"} <= comms, comms)


def test_no_kernel():
    command = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000", "status=none"]
    check_ok(sonde("record", "-F", "499", "-o", "with.folded", *command))
    check("_[k]" in read("with.folded"), "no kernel frames at all")
    check_ok(sonde("record", "-F", "499", "--no-kernel", "-o", "without.folded", *command))
    check("_[k]" not in read("without.folded"), "kernel frames")


def test_max_frames():
    check_ok(sonde("record", "--max-frames", "3", "--no-kernel", "-o", "x.folded", "--", "sh", "-c",
                   BURN))
    stacks = stacks_of(read("x.folded"))
    # A process in exec has no frames at all.
    check(any(frames[:1] == ["[truncated: max_frames]"] for _, frames, _ in stacks), stacks)
    for _, frames, _ in stacks:
        check(len([f for f in frames if not f.startswith("[truncated") and not f.endswith("_[i]")]) <= 3, frames)


def test_memory_limit():
    for limit, what in [(32, ["--", "sh", "-c", BURN]), (64, ["-d", "1"])]:
        run = check_ok(sonde("record", "--memory-limit", f"{limit}M", "-o", "x.folded", "--stats", "-",
                             *what))
        stats = json.loads(run.out)
        check(stats["rss_kb"] * 1024 + stats["map_bytes"] <= limit << 20, stats)


FULL = "main;shop::counter<unsigned long>::run(unsigned long)"


def most(stacks):
    return max(stacks, key=stacks.get)


def test_inlined_functions_are_frames():
    build_inlines()
    stacks, _ = record_inlines()
    # Functions that were never compiled on their own have no linkage name, so no parameters.
    check(most(stacks).endswith(FULL + ";shop::middle_[i];shop::innermost_[i]"),
          stacks)
    stacks, _ = record_inlines("--no-inlines")
    check(most(stacks).endswith(FULL) and "_[i]" not in str(stacks), stacks)


def test_lines():
    build_inlines()
    stacks, _ = record_inlines("--lines")
    check(most(stacks).endswith("main:26;shop::counter<unsigned long>::run(unsigned long):20;"
                                "shop::middle:15_[i];shop::innermost:11_[i]"),
          stacks)
    stacks, _ = record_inlines("--lines", "--no-inlines")
    check(FULL.replace("main", "main:26") + ":" in str(stacks) and "_[i]" not in str(stacks), stacks)


def test_short_names():
    build_inlines()
    stacks, _ = record_inlines("--names", "short")
    check(most(stacks).endswith("main;shop::counter::run;shop::middle_[i];shop::innermost_[i]"), stacks)
    check_error(sonde("record", "--names", "long"), 2, "'full' or 'short'", "'long'")


def test_names_from_a_separate_file():
    build_inlines()
    subprocess.run("objcopy --only-keep-debug inlines inlines.debug && objcopy --strip-all inlines && "
                   "objcopy --add-gnu-debuglink=inlines.debug inlines", shell=True, check=True)
    stacks, _ = record_inlines()
    check(most(stacks).endswith("shop::innermost_[i]"), stacks)
    # Of another build: said, and not used.
    build_inlines("-O1")
    subprocess.run("objcopy --only-keep-debug inlines another.debug", shell=True, check=True)
    build_inlines("-O3")
    subprocess.run("cp another.debug inlines.debug; objcopy --strip-all inlines && "
                   "objcopy --add-gnu-debuglink=inlines.debug inlines; "
                   "echo changed >> inlines.debug", shell=True, check=True)
    stacks, run = record_inlines(cache="another")
    check("shop::" not in str(stacks), stacks)
    check(run.err.count("inlines.debug") == 1, run)


def test_symbols_are_cached():
    build_inlines()
    stacks, _ = record_inlines()
    folder = "cache/sonde/symbols"
    before = {name: os.stat(f"{folder}/{name}") for name in os.listdir(folder)}
    check(len(before) >= 1, "nothing was cached")
    record_inlines()
    for name, stat in before.items():
        check(os.stat(f"{folder}/{name}").st_ino == stat.st_ino, f"{name} was built again")
    own = [name for name in before if b"innermost" in open(f"{folder}/{name}", "rb").read()]
    # Cut off, as by a crash: built again, same names. Whether a library's table is needed, too, is chance.
    for name in before:
        os.truncate(f"{folder}/{name}", max(0, before[name].st_size // 2))
    again, run = record_inlines()
    check(most(again) == most(stacks), again)
    check(len(own) == 1, before)
    check(os.stat(f"{folder}/{own[0]}").st_size == before[own[0]].st_size, run)


def test_works_without_a_cache():
    build_inlines()
    os.mkdir("cache")
    with open("cache/sonde", "w"):
        pass  # where a folder should be
    stacks, run = record_inlines()
    check(most(stacks).endswith("shop::innermost_[i]"), stacks)
    check(run.err.count("cache/sonde") == 1, run)


def test_two_at_once():
    with Burner("shared") as shared:
        recordings = [OnTerminal("record", "-o", f"{i}.folded") for i in range(2)]
        for recording in recordings:
            recording.wait_for_samples_of(shared)
        for recording in recordings:
            recording.process.send_signal(signal.SIGINT)
            check(recording.finish().status == 0, recording.err)
    for i in range(2):
        check("shared;" in read(f"{i}.folded"), f"recording {i}")


# --- signals --------------------------------------------------------------------------------------

def check_signal_writes(number):
    with Burner() as burner:
        recording = OnTerminal("record", "-o", "x.folded")
        recording.wait_for_samples_of(burner)
        recording.process.send_signal(number)
        run = recording.finish()
    check(run.status == 0, run)
    check("burner;" in read("x.folded"), "the burner is missing")
    # The progress line was cleared before the summary.
    check(re.search(r"\x1b\[K(?:sonde: .*\n)*sonde: \d+ samples in", run.err), run)
    check(os.listdir(".").count("x.folded") == 1 and len(os.listdir(".")) == 2, os.listdir("."))


def test_sigint_writes_what_there_is():
    check_signal_writes(signal.SIGINT)


def test_sigterm_writes_what_there_is():
    check_signal_writes(signal.SIGTERM)


def test_ctrl_c_at_a_terminal():
    with Burner() as burner:
        recording = OnTerminal("record", "-o", "x.folded")
        recording.wait_for_samples_of(burner)
        recording.type(b"\x03")
        run = recording.finish()
    check(run.status == 0 and "burner;" in read("x.folded"), run)


def test_ctrl_c_while_symbols_are_read():
    """strace holds up the programs that read symbols; who does not want to wait goes without."""
    os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")  # an empty one
    try:
        with Burner() as burner:
            os.kill(burner.pid, signal.SIGSTOP)
            terminal = OnTerminal("record", "-p", str(burner.pid), "-o", "x.folded")
            terminal.read_until(" 0 samples")
            strace = subprocess.Popen(["strace", "-f", "-o", "/dev/null", "-p", str(terminal.process.pid), "-e",
                                       "inject=execve:delay_enter=600000000"], stderr=subprocess.PIPE, text=True)
            check("attached" in strace.stderr.readline(), "strace does not attach")
            os.kill(burner.pid, signal.SIGCONT)
            terminal.wait_for_samples()
            terminal.type(b"\x03")
            terminal.read_until(r"reading symbols: 0 of \d+ files.*Ctrl-C")
            terminal.type(b"\x03")
            run = check_ok(terminal.finish())
            strace.kill()
            strace.wait()
    finally:
        del os.environ["XDG_CACHE_HOME"]
    check("[burner+0x" in read("x.folded"), run)


def test_ctrl_c_with_a_command():
    """The command gets it too, and ends; or does not, and the recording goes on."""
    recording = OnTerminal("record", "-o", "x.folded", "--", "sh", "-c", "while :; do :; done")
    recording.wait_for_samples()
    recording.type(b"\x03")
    run = recording.finish()
    check(run.status == 128 + signal.SIGINT, run)
    check("sh;" in read("x.folded"), "nothing recorded")
    os.mkfifo("trapping")
    script = "trap 'echo trapped; exit 3' INT; : >trapping; while :; do :; done"
    recording = OnTerminal("record", "-o", "x.folded", "--", "sh", "-c", script)
    with open("trapping"):
        pass  # the first samples may be from before the trap
    recording.wait_for_samples()
    recording.type(b"\x03")
    run = recording.finish()
    check(run.status == 3 and run.out == "trapped\n", run)


def test_sigterm_with_a_command():
    recording = OnTerminal("record", "-o", "x.folded", "--", "sh", "-c", "while :; do :; done")
    recording.wait_for_samples()
    recording.process.terminate()
    run = recording.finish()
    check(run.status == 128 + signal.SIGTERM, run)
    check("sh;" in read("x.folded"), "nothing recorded")


# --- the runner -----------------------------------------------------------------------------------

def main():
    tests = {name[5:]: value for name, value in globals().items() if name.startswith("test_")}
    wanted = sys.argv[2:] or list(tests)
    if os.geteuid():
        return tap.skip_all("recording takes root")
    return tap.run((name, tap.in_own_folder(tests[name], "sonde_e2e_")) for name in wanted)


if __name__ == "__main__":
    sys.exit(guard.run(main))
