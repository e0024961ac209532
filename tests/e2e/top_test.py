#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`sonde top` on a real terminal: `top_test.py SONDE [TEST...]`, TAP on standard output.

Each test types into a tmux window of a given size and reads what it shows. Nothing here sleeps:
tmux's control mode tells when the window's contents have changed, and then it is looked at again.
"""
import collections
import itertools
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import tap
from tap import check

SONDE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "sonde"
# What is shown here is native code; to load all runtimes' programs takes a second of CPU each time.
TOP = f"{SONDE} top --tracers native"
TIMEOUT = 300  # seconds for what hangs
NUMBERS = itertools.count()

WORKLOAD = r"""
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static volatile unsigned long sink;
static __attribute__((noinline)) void hot_function_one(void)
{
	for (unsigned long i = 0; i < 100000; i++)
		sink += i;
}
static __attribute__((noinline)) void hot_function_two(void)
{
	for (unsigned long i = 0; i < 100000; i++)
		sink ^= i;
}
static void *second(void *arg)
{
	prctl(PR_SET_NAME, "worker-two");
	for (;;)
		hot_function_two();
	return arg;
}
int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, second, NULL);
	write(1, "x", 1);
	for (;;) {
		hot_function_one();
		getppid();
	}
}
"""


class Window:
    """A tmux server of its own with one window, and a client in control mode that hears of changes."""

    def __init__(self, command, columns=100, rows=24):
        # The server of the test before may still be ending.
        self.socket = f"sonde-test-{os.getpid()}-{next(NUMBERS)}"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), command + "; echo ended $?; exec cat")
        self.control = subprocess.Popen(["tmux", "-L", self.socket, "-C", "attach"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT,
                              env=dict(os.environ, TERM="screen-256color", LC_ALL="C.UTF-8"))
        check(done.returncode == 0, f"tmux {words}: {done.stderr}")
        return done.stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, columns, rows):
        self.control.stdin.write(f"refresh-client -C {columns},{rows}\n".encode())
        self.control.stdin.flush()
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def text(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, what, condition):
        """Until `condition(text)` is true of what the window shows; the text. All that is wanted belongs into the condition:
        a look may come between the first and the last line of what is drawn."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            text = self.text()
            if condition(text):
                return text
            left = deadline - time.monotonic()
            check(left > 0, f"the window never shows {what}; it shows\n{text}")
            if select.select([self.control.stdout], [], [], left)[0]:
                check(os.read(self.control.stdout.fileno(), 65536), f"tmux has ended; it showed\n{text}")

    def wait_for(self, words):
        return self.wait(repr(words), lambda text: words in text)

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], stderr=subprocess.DEVNULL)
        self.control.kill()
        self.control.wait()


class Workload:
    def __init__(self):
        with open("workload.c", "w") as file:
            file.write(WORKLOAD)
        subprocess.run(["gcc", "-O1", "-g", "-pthread", "-o", "hotworkload", "workload.c"], check=True)
        self.process = subprocess.Popen(["./hotworkload"], stdout=subprocess.PIPE)
        self.process.stdout.read(1)
        self.pid = self.process.pid

    def close(self):
        self.process.kill()
        self.process.wait()


def on_workload(function, columns=100, rows=24):
    workload = Workload()
    window = Window(f"{TOP} -p {workload.pid} -F 499", columns, rows)
    try:
        window.wait_for("hot_function_one")
        function(window, workload)
    finally:
        window.close()
        workload.close()


def rows_of(text):
    """[(self %, total %, CPUs, name)] of the rows below the heading."""
    return [(float(m[1]), float(m[2]), float(m[3]), m[4].rstrip())
            for m in re.finditer(r"(?m)^ *(\d+\.\d\d) +(\d+\.\d\d) +(\d+\.\d\d)  (.*)$", text)]


def hot_rows(text):
    """{name: (self %, total %)} of the two functions that are always at work."""
    return {name: (own, total) for own, total, _, name in rows_of(text) if re.fullmatch(r"hot_function_(one|two) \[hotworkload\]", name)}


def test_shows_what_runs_and_quits():
    def body(window, workload):
        window.wait("more than 80 % in the two", lambda text: len(hot_rows(text)) == 2
                    and sum(total for _, total in hot_rows(text).values()) > 80)
        window.type("q")
        window.wait_for("ended 0")
        check("SELF%" not in window.text(), "the screen was not given back: " + window.text())
    on_workload(body)


def test_groups_by_process_and_thread():
    def body(window, workload):
        window.type("p")
        window.wait("processes", lambda text: f"hotworkload (pid {workload.pid})" in text and "PROCESS" in text
                    and "processes" in text)
        window.wait("the CPUs that it keeps busy", lambda text: any(
            0 < cpus <= os.cpu_count() for *_, cpus, name in rows_of(text) if name.startswith("hotworkload")))
        window.type("t")
        window.wait("threads", lambda text: f"worker-two (pid {workload.pid}, tid " in text and "THREAD" in text)
        window.type("Tab")
        window.wait_for("hot_function_one")
    on_workload(body)


def test_sorts():
    def body(window, workload):
        window.type("s")

        def by_total(text):
            totals = [row[1] for row in rows_of(text)]
            return "by total" in text and totals == sorted(totals, reverse=True) and len(totals) > 2
        window.wait("rows by total", by_total)
        window.type("s")

        def by_name(text):
            names = [row[-1].split(" [")[0] for row in rows_of(text)]
            return "by name" in text and names == sorted(names) and len(names) > 2
        window.wait("rows by name", by_name)
    on_workload(body)


def test_filters():
    def body(window, workload):
        window.type("/", "F", "U", "N", "C", "T", "I", "O", "N", "_", "t", "w", "o", "x", "BSpace", "Enter")
        window.wait("only one of the two",
                    lambda text: re.search("filter: FUNCTION_two *$", text, re.M) and "hot_function_one" not in text
                    and rows_of(text) and all("hot_function_two" in row[-1] for row in rows_of(text)))
        # q within a filter is a letter.
        window.type("/", "q")
        window.wait_for("filter: FUNCTION_twoq_")
        window.type("Escape")
        window.wait_for("hot_function_one")
    on_workload(body)


def test_user_and_kernel():
    def body(window, workload):
        window.type("k")
        window.wait_for("user, by self")
        window.type("k")
        text = window.wait("only kernel functions",
                           lambda text: "kernel, by self" in text and "hot_function" not in text)
        window.type("k")
        window.wait_for("user and kernel, by self")
        window.wait_for("hot_function_one")
    on_workload(body)


def test_pauses():
    def body(window, workload):
        window.wait("both functions", lambda text: len(hot_rows(text)) == 2)
        window.type("Space")
        window.wait_for("[paused]")

        def redrawn():
            window.type("p")
            window.wait("processes", lambda text: "PROCESS" in text and "hot_function" not in text)
            window.type("f")
            return hot_rows(window.wait("functions", lambda text: "FUNCTION" in text and len(hot_rows(text)) == 2))
        before = redrawn()
        os.kill(workload.pid, signal.SIGSTOP)
        # The rows stand still although keys redraw the screen.
        after = redrawn()
        check(before == after, f"{before}\n{after}")
        os.kill(workload.pid, signal.SIGCONT)
        window.type("Space")
        window.wait("no pause", lambda text: "[paused]" not in text)
    on_workload(body)


def test_begins_anew_and_helps():
    def body(window, workload):
        def samples(text):
            found = re.search(r" (\d+) samples?,", text)
            return int(found[1]) if found else 0
        before = samples(window.wait("many samples", lambda text: samples(text) >= 2000))
        window.type("r")
        text = window.wait("fewer samples", lambda text: "sonde top" in text and samples(text) < before)
        check(samples(text) or "complete" not in text, text)
        window.wait_for("hot_function_one")
        window.type("?")
        window.wait_for("pause")
        window.type("?")
        window.wait_for("hot_function_one")
    on_workload(body)


def test_stops_and_goes_on():
    window = Window("PS1='prompt: ' bash --norc -i")
    try:
        window.wait_for("prompt:")
        window.type(TOP, "Enter")
        window.wait_for("FUNCTION")
        window.type("C-z")
        window.wait("the shell", lambda text: "Stopped" in text and "FUNCTION" not in text)
        window.type("stty -a | grep -c ' echo '", "Enter")
        window.wait("an echo", lambda text: re.search(r"(?m)^1$", text))
        window.type("fg", "Enter")
        window.wait_for("FUNCTION")
        window.type("q")
        window.wait("the shell", lambda text: "FUNCTION" not in text and "prompt:" in text)
    finally:
        window.close()


def test_follows_the_size():
    def body(window, workload):
        for columns, rows in (30, 8), (140, 40), (10, 3), (100, 24):
            window.resize(columns, rows)
            text = window.wait(f"a heading of {columns} columns",
                               lambda text: f"{'  SELF%  TOTAL%'[:columns].rstrip()}" in text
                               and len(text.rstrip("\n").split("\n")) <= rows)
            check(max(map(len, text.split("\n"))) <= columns, text)
        window.wait_for("hot_function_one")
        window.type("q")
        window.wait_for("ended 0")
    on_workload(body)


def test_narrow_from_the_start():
    workload = Workload()
    window = Window(f"{TOP} -p {workload.pid}", 24, 6)
    try:
        window.wait_for("hot_f")
        check(max(map(len, window.text().split("\n"))) <= 24, window.text())
        window.type("C-c")
        window.wait_for("ended 0")
    finally:
        window.close()
        workload.close()


def test_ends_with_its_processes():
    workload = Workload()
    window = Window(f"{TOP} -p {workload.pid}")
    try:
        window.wait_for("hot_function_one")
        workload.close()
        text = window.wait_for("ended 0")
        check("all processes of -p have ended" in text, text)
    finally:
        window.close()
        workload.close()


def on_pty(function):
    """`function(process, master, slave)` with a top that draws on a terminal that is nobody's controlling one."""
    workload = Workload()
    master, slave = os.openpty()
    process = subprocess.Popen([*TOP.split(), "-p", str(workload.pid)], stdin=slave, stdout=slave,
                               env=dict(os.environ, TERM="xterm"), start_new_session=True)
    try:
        seen = b""
        while b"hot_function" not in seen:
            check(select.select([master], [], [], TIMEOUT)[0], f"top shows nothing but {seen}")
            seen += os.read(master, 65536)
        function(process, master, slave)
    finally:
        process.kill()
        process.wait()
        workload.close()


def test_signals_give_the_terminal_back():
    def body(number):
        def end(process, master, slave):
            check(not termios.tcgetattr(slave)[3] & termios.ECHO, "it has the terminal echo")
            process.send_signal(number)
            # What it writes must be read, or it would wait for room.
            while process.poll() is None:
                if select.select([master], [], [], 0.1)[0]:
                    os.read(master, 65536)
            check(process.returncode == 0, f"{number}: {process.returncode}")
            check(termios.tcgetattr(slave)[3] & termios.ECHO, f"{number}: the terminal does not echo")
        return end
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
        on_pty(body(number))


def test_ends_when_its_terminal_goes():
    def body(process, master, slave):
        os.close(slave)
        os.close(master)
        check(process.wait(TIMEOUT) == 0, f"{process.returncode}")
    on_pty(body)


def run_plain(*args, **more):
    return subprocess.run([*TOP.split(), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT, **more)


def run_until(what, condition, *args):
    """A plain run whose tables are so: in a second of one a busy machine may have had no CPU for what they are to show."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        done = run_plain(*args)
        check(done.returncode == 0, done.stderr)
        if condition(done.stdout):
            return done.stdout
        check(time.monotonic() < deadline, f"no tables with {what}, but\n{done.stdout}")


def test_plain_tables():
    workload = Workload()
    try:
        # The tables of its symbols are made when the machine has nothing else to do: a second does not always do. A recording waits.
        subprocess.run([SONDE, "record", "--tracers", "native", "-F", "999", "-d", "1", "-p", str(workload.pid), "-o", "names.folded"], stderr=subprocess.DEVNULL,
                       timeout=TIMEOUT, check=True)
        text = run_until("functions", lambda text: "hot_function_" in text,
                         "-b", "2", "--delay", "0.5", "-n", "3", "-F", "999", "-p", str(workload.pid))
        check(text.count("function\n") == 2 and "\033" not in text, text)
        text = run_until("a thread", lambda text: "worker-two" in text,
                         "-b", "1", "--delay", "3", "-F", "999", "--by", "thread", "--filter", "WORKER", "-p", str(workload.pid))
        check("hotworkload" not in text, text)
        text = run_until("functions", lambda text: "hot_function_" in text, "-b", "2", "--no-kernel", "--sort", "total", "-p", str(workload.pid))
        check(not re.search(r"sys_getppid|entry_SYSCALL", text), text)
    finally:
        workload.close()


def test_what_sonde_itself_takes_is_told():
    """Of the whole machine; of some of its processes it is no part."""
    text = run_plain("-b", "1", "-F", "1999").stdout
    told = re.search(r"([\d.]+) of \d+ CPUs? busy \(sonde: ([\d.]+)\), ", text)
    check(told and 0 < float(told[2]) <= float(told[1]), text)
    check(float(told[1]) <= os.sysconf("SC_NPROCESSORS_ONLN"), text)
    workload = Workload()
    try:
        text = run_plain("-b", "1", "-F", "1999", "-p", str(workload.pid)).stdout
    finally:
        workload.close()
    check("busy, " in text, text)


def test_its_memory_is_not_looked_at_while_it_runs():
    """Each map has a file in /proc, and the kernel writes them anew for each look. Its start and its end look, tables don't."""
    subprocess.run(["strace", "-f", "-qq", "-e", "trace=openat", "-o", "trace", *TOP.split(), "-b", "5", "--delay", "1"],
                   stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=True)
    with open("trace") as file:
        opened = collections.Counter(re.findall(r'"(/proc/self/(?:fdinfo/\d+|smaps))"', file.read()))
    check(opened, "nothing was looked at, not even at the end")
    check(max(opened.values()) <= 2, opened.most_common(3))


def test_mistakes_are_said():
    for args, status, words in (
            ([], 1, "needs a terminal"),
            (["-b", "1", "--by", "colour"], 2, "--by takes one of: function, process, thread"),
            (["-b", "0"], 2, "batch"),
            (["-b", "1", "-p", "2147483646"], 1, "2147483646"),
            (["extra"], 2, "takes no arguments")):
        done = run_plain(*args)
        check(done.returncode == status and words in done.stderr and not done.stdout, f"{args}: {done}")
    done = subprocess.run(["script", "-qec", f"env TERM=no-such-terminal {SONDE} top", "/dev/null"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    check(done.returncode == 1 and "TERM=no-such-terminal" in done.stdout, done.stdout)


def main():
    tests = {name[5:]: value for name, value in globals().items() if name.startswith("test_")}
    wanted = sys.argv[2:] or list(tests)
    if os.geteuid() or not shutil.which("tmux"):
        return tap.skip_all("needs root and tmux")
    return tap.run((name, tap.in_own_folder(tests[name], "sonde-top-")) for name in wanted)


if __name__ == "__main__":
    sys.exit(guard.run(main))
