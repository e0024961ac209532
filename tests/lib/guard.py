# SPDX-License-Identifier: Apache-2.0
"""What a test starts ends with it, however the test ends."""
import contextlib
import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATIENCE = 10  # seconds for a test that is told to end: it has things to put back


class Guard:
    """Ends a Popen before the test does, its group if it has one of its own (start_new_session=True), and those of its descendants
    that have left that, as what could be a server does."""

    def __init__(self, process):
        self.process = process

    def send(self, number):
        """A signal to all of them."""
        outside = descendants(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        send(outside, number)

    def end(self):
        """Kills them, and waits for the first process."""
        self.send(signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants(pid):
    """The processes that a process has started, they too, and so on."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as f:
                for child in f.read().split():
                    found += [int(child), *descendants(int(child))]
    return found


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def end_all():
    """Kills whatever is below us, and waits for it."""
    with contextlib.suppress(ChildProcessError):
        while True:
            send(descendants(os.getpid()), signal.SIGKILL)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.01)  # nothing tells when a grandchild has become our child


def on_signals(handler):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handler)


def keep(test):
    """Waits for the end of the test, which is our child, and kills what it leaves behind. The exit status."""
    def tell(*_):
        with contextlib.suppress(ProcessLookupError):
            os.kill(test, signal.SIGTERM)
        signal.alarm(PATIENCE)

    on_signals(tell)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(test, signal.SIGKILL))
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == 1:
        tell()
    status = None
    while status is None:
        pid, ended = os.wait()  # those, too, that have nobody else any more
        status = ended if pid == test else None
    signal.alarm(0)
    end_all()
    return os.waitstatus_to_exitcode(status)


def run(main):
    """
    main(), in a process whose parent is there to kill what it leaves: processes that have become daemons and sessions of
    their own as well. It does so when main() is over, when it dies, and when this process is told to end or is killed, as
    meson does with what takes too long: then main() gets a SystemExit first.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    keeper = os.fork()
    if keeper:
        on_signals(lambda *_: os.kill(keeper, signal.SIGTERM))
        code = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
        os._exit(code if code >= 0 else 128 - code)  # what is to be done at the exit, main()'s process does
    os.setsid()  # what kills our parent's group leaves us
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    test = os.fork()
    if test:
        code = keep(test)
        os._exit(code if code >= 0 else 128 - code)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it for us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return main()
