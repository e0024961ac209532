#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test that fails, hangs or is killed leaves no process behind: of guard.py. TAP on standard output."""
import contextlib
import io
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guard
import tap
from tap import check

TEST = """
import os, signal, subprocess, sys, time
sys.path.insert(0, {here!r})
import guard

def main():
    # Two that nobody waits for, and one in a session of its own.
    shell = subprocess.Popen(["sh", "-c", "setsid sh -c 'sleep 1000 & sleep 1000 & wait' & wait"], stdout=subprocess.DEVNULL)
    while len(found := guard.descendants(os.getpid())) < 4:
        pass
    shell.kill()
    try:
        print(*found, flush=True)  # what comes after it may be cut short at any moment
        {then}
    finally:
        open("put-back", "w").close()

sys.exit(guard.run(main))
"""
# A signal that comes just before a pause() would never be looked at.
HANG = """
        while True:
            time.sleep(0.1)
"""


def start(then):
    process = subprocess.Popen([sys.executable, "-c", TEST.format(here=HERE, then=then)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    return process, [int(pid) for pid in process.stdout.readline().split()]


def is_there(pid):
    with contextlib.suppress(OSError), open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0] != "Z"
    return False


def check_all_end(process, started, status):
    check(len(started) == 4, started)
    check(process.wait() == status, "exit status %s, not %s" % (process.returncode, status))
    end = time.monotonic() + 60
    while any(is_there(pid) for pid in started) or not os.path.exists("put-back"):
        check(time.monotonic() < end, "still there: %s" % [pid for pid in started if is_there(pid)])
        time.sleep(0.01)


def test_of_one_that_passes():
    check_all_end(*start("return 0"), 0)


def test_of_one_that_fails():
    check_all_end(*start("raise TimeoutError"), 1)


def test_of_one_that_is_told_to_end():
    process, started = start(HANG)
    process.terminate()
    check_all_end(process, started, 128 + signal.SIGTERM)


def test_of_one_that_is_killed():
    """With all of its group, as meson does."""
    process, started = start(HANG)
    os.killpg(process.pid, signal.SIGKILL)
    check_all_end(process, started, -signal.SIGKILL)


def test_of_a_process_with_a_session_below_it():
    """What left its group ends, too, and before the test does."""
    shell = subprocess.Popen(["sh", "-c", "setsid sleep 1000 & wait"], start_new_session=True)
    while not (below := guard.descendants(shell.pid)) or os.getsid(below[0]) == shell.pid:
        time.sleep(0.01)
    guard.Guard(shell).end()
    end = time.monotonic() + 60
    while is_there(below[0]):
        check(time.monotonic() < end, "it is still there")
        time.sleep(0.01)


def test_of_a_subtest():
    """What one started that failed is gone when the next begins, and nothing else."""
    left = []

    def fails():
        left.append(subprocess.Popen(["sleep", "1000"]))
        return ["a problem"], None

    shared = subprocess.Popen(["sleep", "1000"])
    with contextlib.redirect_stdout(io.StringIO()):
        tap.run([("fails", fails), ("passes", lambda: check(left[0].wait() == -signal.SIGKILL, "it runs still"))])
    check(shared.poll() is None, "somebody else's was killed")
    shared.kill()
    shared.wait()


def main():
    tests = {name[5:]: value for name, value in globals().items() if name.startswith("test_")}
    return tap.run((name, tap.in_own_folder(test, "sonde-guard-")) for name, test in tests.items())


if __name__ == "__main__":
    sys.exit(main())
