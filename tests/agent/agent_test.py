#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`sonde agent`, run as a service manager runs it: `agent_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

What it writes is read by the OpenTelemetry collector's library, which checks every rule that binds a producer (tests/formats/go).
Nothing here sleeps: a test waits for what the agent says.
"""
import contextlib
import gzip
import json
import os
import re
import signal
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import profcheck_program
import tap
from command import run
from tap import check

SONDE, BUILD = (os.path.abspath(arg) for arg in sys.argv[1:3])
PROFCHECK = profcheck_program.path(BUILD)
TIMEOUT = 300  # seconds for what hangs


class Agent:
    """One that runs; what it says is read line by line."""

    def __init__(self, *args):
        self.process = subprocess.Popen([SONDE, "agent", *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        self.lines = []

    def wait_for(self, pattern, times=1):
        """Until it has said that so often from now on; the last match."""
        while times:
            line = self.process.stderr.readline()
            check(line, f"it ended before it said '{pattern}': {self.lines[-5:]}")
            self.lines.append(line)
            match = re.search(pattern, line)
            times -= match is not None
        return match

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM, status=0):
        """All that it said."""
        self.send(number)
        self.lines += self.process.communicate(timeout=TIMEOUT)[1].splitlines(keepends=True)
        check(self.process.returncode == status, f"status {self.process.returncode}: {self.lines[-5:]}")
        return "".join(self.lines)


@contextlib.contextmanager
def agent(*args):
    running = Agent(*args)
    try:
        yield running
    finally:
        guard.Guard(running.process).end()


@contextlib.contextmanager
def workload(*argv, **options):
    process = subprocess.Popen([str(arg) for arg in argv], stdout=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def reports(folder):
    """The files there, unpacked beside it, in their order."""
    plain = []
    for name in sorted(name for name in os.listdir(folder) if not name.startswith(".")):
        check(re.fullmatch(r"\d{12}-\d{8}T\d{6}Z\.otlp\.gz", name), f"'{name}' is no report's name")
        plain.append(f"{name}.plain")
        with gzip.open(f"{folder}/{name}") as packed, open(plain[-1], "wb") as out:
            shutil.copyfileobj(packed, out)
    return plain


def resources(path):
    return [json.loads(line) for line in run(PROFCHECK, "resources", path).stdout.splitlines()]


def test_reports_keep_every_rule_and_lose_nothing():
    stacks = set()
    with agent("--output-dir", "out", "--reporter-interval", "0.5", "--samples-per-second", "97", "-v") as a:
        a.wait_for("the agent samples at 97 Hz")
        with workload(PROFCHECK, "burn", "600") as go:
            # Its symbols are read when the machine has time for that; until then its functions are addresses.
            while not any("main.spin" in stack for stack in stacks):
                a.wait_for(r"report \d+: ", times=4)
                stacks.update(run(PROFCHECK, "otlp", reports("out")[-1]).stdout.split("\n"))
        said = a.end()
    counts = re.findall(r"state: \d+ s, (\d+) samples, ", said)[-1]
    written = re.search(r"state: (\d+) reports with (\d+) samples, \d+ kB, were written, 0 with 0 samples were not", said)
    check(written and written[2] == counts, said[-1000:])
    files = reports("out")
    check(len(files) == int(written[1]), f"{len(files)} files")
    total = 0
    for path in files:
        run(PROFCHECK, "otlp", path)
        found = resources(path)
        total += sum(r["samples"] for r in found)
        keys = [(r["attributes"]["process.pid"], r["attributes"].get("process.creation.time")) for r in found]
        check(len(set(keys)) == len(keys), f"a process has two resources: {keys}")
        check(len({(r["time"], r["duration"]) for r in found}) == 1, "a request has one time")
    check(total == int(counts), f"{total} samples in the files, {counts} were taken")
    mine = [r["attributes"] for path in files for r in resources(path) if r["attributes"]["process.pid"] == go.pid]
    check(mine, "the Go program's resource is missing")
    for attributes in mine:
        check(attributes["process.executable.name"] == "profcheck" and attributes["process.parent_pid"] == os.getpid() and
              attributes["process.executable.path"] == str(PROFCHECK) and
              attributes["service.name"] == "unknown_service:profcheck" and attributes["host.name"] == os.uname().nodename,
              attributes)


def test_cuts_follow_each_other():
    """What was on its way when a cut began makes it begin earlier; it never reaches into the one before that."""
    with agent("--output-dir", "out", "--reporter-interval", "0.2", "--samples-per-second", "499", "-v") as a, \
            workload(PROFCHECK, "burn", "600"):
        a.wait_for(r"report \d+: ", times=10)
        a.end()
    starts = [resources(path)[0]["time"] for path in reports("out")]
    check(starts == sorted(starts), starts)


def test_the_state_is_told_when_asked():
    with agent("--output-dir", "out", "--reporter-interval", "600") as a:
        a.wait_for("the agent samples at 20 Hz and reports every 600 s into 'out'")
        a.send(signal.SIGUSR1)
        a.wait_for(r"state: \d+ s, \d+ samples, [\d.]+ % complete, \d+ lost; CPU time")
        a.wait_for(r"state: 0 reports with 0 samples, 0 kB, were written")
        # What there was is written all the same.
        with workload(PROFCHECK, "burn", "600"):
            deadline = os.times()[4] + TIMEOUT
            while True:
                a.send(signal.SIGUSR1)
                if int(a.wait_for(r"state: \d+ s, (\d+) samples")[1]) > 10:
                    break
                check(os.times()[4] < deadline, "no samples come")
        check(re.search(r"1 reports with \d+ samples, .* 0 with 0 samples were not; 1 files", a.end(signal.SIGINT)), a.lines)


def test_it_ends_in_order_while_it_begins():
    with agent("--output-dir", "out") as a:
        # It has blocked its signals as soon as the folder is there, which comes second.
        while not os.path.isdir("out"):
            check(a.process.poll() is None, "it ended")
        a.end()


def test_what_cannot_be_written_is_said_once_and_counted():
    os.mkdir("out")
    run("mount", "-t", "tmpfs", "-o", "size=8k", "none", "out")
    try:
        with agent("--output-dir", "out", "--reporter-interval", "0.2", "--samples-per-second", "499", "-v") as a, \
                workload(PROFCHECK, "burn", "600"):
            a.wait_for("cannot write a report into 'out': 1 lost so far, with [0-9]+ samples: No space left")
            lost = 1
            while lost < 4:
                a.send(signal.SIGUSR1)
                lost = int(a.wait_for(r"were written, (\d+) with \d+ samples were not")[1])
            run("mount", "-o", "remount,size=64m", "out")
            a.wait_for("reports can be written into 'out' again")
            said = a.end()
        check(said.count("cannot write") == 1, said)
        check(not [name for name in os.listdir("out") if name.startswith(".")], os.listdir("out"))
        for path in reports("out"):
            run(PROFCHECK, "otlp", path)
    finally:
        run("umount", "-l", "out")


def test_a_unit_file_of_the_opentelemetry_profiler_will_do():
    with open("conf", "w", encoding="ascii") as file:
        file.write("# ours\noutput-dir = out\nmonitor-interval = 5s\nreporter-interval = 1m\n")
    done = run(SONDE, "agent", "-config", "conf", "-samples-per-second=97", "-map-scale-factor", "2", "-no-kernel-version-check",
               "-print-config", env=dict(os.environ, SONDE_REPORTER_INTERVAL="250ms"))
    check(done.stderr == "sonde: ignored, since there is no need of it here: map-scale-factor, monitor-interval, "
                         "no-kernel-version-check\n", done.stderr)
    for words in ("# conf:2\noutput-dir = out\n", "# SONDE_REPORTER_INTERVAL\nreporter-interval = 250ms\n",
                  "# --samples-per-second\nsamples-per-second = 97\n", "# default\nmemory-limit = 64M\n"):
        check(words in done.stdout, done.stdout)
    with open("printed", "w", encoding="utf-8") as file:
        file.write(done.stdout)
    with agent("-config", "printed") as a:
        a.wait_for("the agent samples at 97 Hz and reports every 0.25 s into 'out'")
        a.end()


def test_mistakes_are_said():
    os.symlink("/dev/null", "file")
    for args, status, words in (
            ([], 2, "--output-dir DIR"),
            (["--output-dir", "out", "more"], 2, "takes no arguments"),
            (["-collection-agent", "127.0.0.1:11000"], 2, "unknown or ambiguous option '-collection-agent'"),
            (["--config", "/dev/null"], 2, "--output-dir DIR"),
            (["--config", "missing"], 2, "cannot read the configuration 'missing'"),
            (["--output-dir", "file"], 1, "cannot write into 'file'"),
            (["--output-dir", "no/such"], 1, "cannot write into 'no/such'"),
            (["--output-dir", "out", "--samples-per-second", "0"], 2, "--samples-per-second takes a whole number"),
            (["--output-dir", "out", "--output-dir-size", "1k"], 2, "--output-dir-size takes")):
        done = run(SONDE, "agent", *args, status=status)
        check(words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{args}: {done}")


def main():
    tests = {name[5:]: value for name, value in globals().items() if name.startswith("test_")}
    wanted = sys.argv[3:] or list(tests)
    if os.geteuid():
        return tap.skip_all("needs root")
    try:
        profcheck_program.build(BUILD)
    except tap.Skip as reason:
        return tap.skip_all(reason)
    return tap.run((name, tap.in_own_folder(tests[name], "sonde-agent-")) for name in wanted)


if __name__ == "__main__":
    sys.exit(guard.run(main))
