# SPDX-License-Identifier: Apache-2.0
"""How the tests in Python run: one after the other, in TAP on standard output, for meson.

A test that raises has failed, with the exception as its diagnostics; the others still run. One that raises Skip is
skipped. One that returns something returns its problems (none: it passed) and a note for who reads the log, or None.
"""
import os
import signal
import tempfile
import time
import traceback

import guard


LONGEST = 1500
"""Seconds that no test takes, however busy the machine is: one that does hangs."""


class Skip(Exception):
    """This machine has not got what the test needs."""


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def in_own_folder(test, prefix):
    """The test, in an empty folder that is current while it runs and gone afterwards."""
    def run_there():
        home = os.getcwd()
        with tempfile.TemporaryDirectory(prefix=prefix) as folder:
            os.chmod(folder, 0o755)
            os.chdir(folder)
            try:
                return test()
            finally:
                os.chdir(home)
    return run_there


def skip_all(reason):
    """The exit status of a file of tests none of which can run here."""
    print("1..0 # SKIP %s" % reason)
    return 0


def hangs(*_):
    raise TimeoutError("it has not ended within %d s" % LONGEST)


def run(tests):
    """Runs pairs of a name and a function; the exit status."""
    tests = list(tests)
    print("1..%d" % len(tests), flush=True)
    failed = 0
    signal.signal(signal.SIGALRM, hangs)
    for number, (name, test) in enumerate(tests, 1):
        begin, skip, others = time.monotonic(), "", set(guard.descendants(os.getpid()))
        signal.alarm(LONGEST)
        try:
            problems, note = test() or ((), None)
        except Skip as e:
            problems, note, skip = (), None, " # SKIP %s" % e
        except Exception:  # whatever it was, the others still run
            problems, note = traceback.format_exc().splitlines(), None
        signal.alarm(0)
        failed += bool(problems)
        if problems:  # what it leaves running would be in the others' way
            guard.send(set(guard.descendants(os.getpid())) - others, signal.SIGKILL)
        print("%s %d - %s%s" % ("not ok" if problems else "ok", number, name, skip))
        for line in problems:
            print("#   %s" % str(line)[:2000].replace("\n", "\n#   "))
        print("#   %.1f s%s" % (time.monotonic() - begin, ": " + note if note else ""), flush=True)
    return 1 if failed else 0
