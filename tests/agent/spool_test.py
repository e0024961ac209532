#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`sonde agent --spool`: what waits is on the disk, over kills, ends, outages and full disks: `spool_test.py SONDE BUILD_FOLDER [TEST...]`,
TAP. The receiver keeps what it took; the OpenTelemetry collector's library reads it.
"""
import os
import re
import signal
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import guard
from command import run
from receiver import Receiver
from running import FAST, SONDE, State, agent, of_native_code, run_tests, samples_of, simmer
from tap import check

SPOOL = re.compile(r"state: the spool has (\d+) reports of (\d+) kB; (\d+) with (\d+) samples were there before, (\d+) files were corrupt, "
                   r"(\d+) times it could not be written")


class SpoolState(State):
    def __init__(self, said):
        super().__init__(said)
        (self.files, self.kilobytes, self.found_reports, self.found, self.corrupt,
         self.failed_writes) = (int(number) for number in SPOOL.findall(said)[-1])

    def check_sum(self):
        """Of what this agent took and found, nothing is missing."""
        check(not self.waiting and not self.files, vars(self))
        check(self.delivered + self.refused + self.dropped == self.samples + self.found, vars(self))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def sending(port, *args):
    return agent("--otlp-endpoint", f"http://127.0.0.1:{port}", *FAST, "--spool", "spool", *args)


def spooled():
    return sorted(name for name in os.listdir("spool") if not name.startswith("."))


def wait_for_files(a, number):
    """Waits until the spool has that many files."""
    files = 0
    a.wait_for("the agent samples at")
    while files < number:
        a.send(signal.SIGUSR1)
        files = int(a.wait_for(SPOOL)[1])


def fill(port, number):
    """A spool that an agent has left which was killed, and what was in it."""
    with sending(port) as a, simmer():
        wait_for_files(a, number)
        a.process.kill()
        a.process.wait()
    check(len(spooled()) >= number, spooled())


def test_what_a_killed_agent_had_is_sent_by_the_next():
    port = free_port()
    fill(port, 6)
    names = spooled()
    # What it did not finish.
    with open("spool/.000000999999.tmp", "wb") as file:
        file.write(b"half")
    with Receiver(port=port) as r, simmer(), sending(port) as a:
        found = a.wait_for(r"(\d+) reports with \d+ samples are in the spool 'spool' from before")
        r.wait(len(names) + 2)
        state = SpoolState(a.end())
    check(int(found[1]) == len(names) == state.found_reports, f"{found[0]}: {names}")
    state.check_sum()
    check(state.delivered == state.samples + state.found and not state.corrupt, vars(state))
    check(samples_of(r.bodies()) == state.delivered, vars(state))
    check(os.listdir("spool") == [], os.listdir("spool"))


def test_nothing_that_was_acknowledged_is_sent_again():
    known = set()
    with Receiver() as r, simmer():
        for _ in range(4):
            before = len(r.all)
            with sending(r.port) as a:
                a.wait_for(r"report \d+: ", times=5)
                a.process.kill()
                # The last words: it may have had more answers than we have read of.
                rest = a.rest()
            # A request of the one that was killed may be read still.
            r.wait_for_ends()
            acknowledged = 5 + len(re.findall(r"report \d+: ", rest))
            bodies = [request.body for request in r.all[before:]]
            check(not known & set(bodies), "what was acknowledged came again")
            known |= set(bodies[:acknowledged])
            check(len(bodies) - acknowledged <= 1, f"{len(bodies)} came, {acknowledged} were acknowledged")
        with sending(r.port) as a:
            r.wait(len(r.all) + 2)
            a.end()
        check(not known & {request.body for request in r.all[before + len(bodies):]}, "what was acknowledged came again")


def test_an_end_leaves_what_waits_to_the_next():
    port = free_port()
    with simmer():
        with sending(port) as a:
            wait_for_files(a, 3)
            first = SpoolState(a.end())
        check(first.waiting == first.files and not first.dropped and not first.delivered, vars(first))
        with Receiver(port=port) as r, sending(port) as a:
            r.wait(first.files + 2)
            second = SpoolState(a.end())
    second.check_sum()
    check(second.found == first.samples and second.delivered == first.samples + second.samples, f"{vars(first)} {vars(second)}")
    check(samples_of(r.bodies()) == second.delivered, vars(second))


def test_what_is_corrupt_is_left_out_and_counted():
    port = free_port()
    fill(port, 6)
    names = spooled()
    os.truncate(f"spool/{names[1]}", 100)
    with open(f"spool/{names[2]}", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    with open("spool/README", "w", encoding="ascii") as file:
        file.write("not ours")
    with Receiver(port=port) as r, simmer(), sending(port) as a:
        a.wait_for("1 files in the spool 'spool' were no reports, and are removed")
        a.wait_for(r"a report of \d+ samples in the spool 'spool' is lost: Bad message")
        r.wait(len(names))
        state = SpoolState(a.end())
    state.check_sum()
    check(state.corrupt == 2 and state.found_reports == len(names) - 1 and state.refused_reports == 1, vars(state))
    check(samples_of(r.bodies()) == state.delivered, vars(state))
    check(os.listdir("spool") == ["README"], os.listdir("spool"))


def test_a_full_disk_is_said_and_reports_wait_in_memory():
    port = free_port()
    os.mkdir("spool", 0o700)
    run("mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", "spool")
    try:
        with sending(port) as a, simmer():
            a.wait_for("cannot write into the spool 'spool', reports wait in memory: No space left on device")
            waiting = files = 0
            while waiting < files + 5 or not files:
                a.send(signal.SIGUSR1)
                waiting = int(a.wait_for(r"were dropped; (\d+) of \d+ kB wait")[1])
                files = int(a.wait_for(SPOOL)[1])
            check(not [name for name in os.listdir("spool") if name.startswith(".")] or files, os.listdir("spool"))
            with Receiver(port=port) as r:
                a.wait_for("reports can be written into the spool 'spool' again")
                r.wait(waiting)
                state = SpoolState(a.end())
        state.check_sum()
        check(state.delivered == state.samples == samples_of(r.bodies()) and state.failed_writes, vars(state))
        check(len(re.findall("cannot write into the spool", "".join(a.lines))) < state.failed_writes + 1, "it is said once a minute")
    finally:
        run("umount", "-l", "spool")


def test_the_spool_is_bounded():
    port = free_port()
    with sending(port, "--spool-size", "192k") as a, simmer():
        a.wait_for("the queue to .* is full: [12] reports dropped so far, with")
        dropped = 0
        while dropped < 4:
            a.send(signal.SIGUSR1)
            dropped = int(a.wait_for(r"were not, (\d+) with \d+ were dropped")[1])
            on_disk = 0
            for name in spooled():
                try:
                    on_disk += os.stat(f"spool/{name}").st_blocks * 512
                except FileNotFoundError:
                    continue
            check(on_disk <= 192 << 10, f"{on_disk} bytes are there")
        with Receiver(port=port) as r:
            a.wait_for("answers again")
            waiting = 1
            while waiting:
                a.send(signal.SIGUSR1)
                waiting = int(a.wait_for(r"were dropped; (\d+) of \d+ kB wait")[1])
            state = SpoolState(a.end())
    state.check_sum()
    check(state.dropped_reports >= 4 and samples_of(r.bodies()) == state.delivered, vars(state))


def test_mistakes_are_said():
    os.mkdir("others", 0o777)
    os.chmod("others", 0o777)
    to = ("--collection-agent", "127.0.0.1:1")
    for args, status, words in (
            (["--output-dir", "out", "--spool", "spool"], 2, "--spool is for reports that wait for a collector"),
            ([*to, "--spool", "no/such"], 1, "cannot make the spool 'no/such': No such file or directory"),
            ([*to, "--spool", "/dev/null"], 1, "cannot open the spool '/dev/null': Not a directory"),
            ([*to, "--spool", "others"], 1, "the spool 'others' must be a folder of ours that nobody else may write into"),
            ([*to, "--spool", "spool", "--spool-size", "1k"], 2, "--spool-size takes")):
        done = run(SONDE, "agent", *args, status=status)
        check(words in done.stderr and done.stderr.count("\n") == 1, f"{args}: {done}")


if __name__ == "__main__":
    of_native_code()
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-spool-")))
