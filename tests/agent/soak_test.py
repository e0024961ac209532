#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
An agent that runs for long, beside a collector that fails now and then, while executables, processes and code come and go:
`soak_test.py SONDE BUILD_FOLDER [TEST...]`, TAP. SONDE_SOAK_REPORTS says for how many reports of half a second (`make soak`: 7200,
an hour; else 240, two minutes).

What it takes stays flat, memory, descriptors, threads; nothing is lost on the way.
"""
import contextlib
import os
import re
import statistics
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import receiver
from receiver import Receiver
from running import BUILD, State, agent, run_tests, samples_of, workload
from tap import check

REPORTS = int(os.environ.get("SONDE_SOAK_REPORTS", 240))
LONG = 2000  # reports, from which on everything has its size after the first tenth
MEDIUM = 200  # from which on everything but the profile, which fills its share first, has it after the first half
MIB = 1 << 20
LIMIT = 64 * MIB
CHURN = f"{BUILD}/tests/soak/soak_churn"


class Failing(list):
    """Answers without end: each 7th is no answer, or a refusal for now."""

    def popleft(self):
        self.append(len(self))
        turn = len(self)
        return 200 if turn % 7 else (503, 429, receiver.hang_up, receiver.die_midway)[turn // 7 % 4]

    def __bool__(self):
        return True


def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}


class Curves:
    def __init__(self, a, port):
        self.agent, self.port, self.points = a, port, []

    def look(self):
        """`rest`: of memory, without what is known of stacks and names."""
        m = metrics(self.port)
        proc = f"/proc/{self.agent.process.pid}"
        self.points.append({"rss": m["sonde_resident_memory_bytes"], "maps": m["sonde_bpf_memory_bytes"],
                            "fds": len(os.listdir(f"{proc}/fd")), "threads": len(os.listdir(f"{proc}/task")),
                            "spool": m["sonde_queue_bytes"], "rest": m["sonde_resident_memory_bytes"] - m["sonde_profile_bytes"]})

    def check(self):
        problems = []
        nr = len(self.points)
        part = 10 if nr >= LONG else 8
        begin = nr // part if nr >= LONG else nr // 2 - nr // part
        for what, times, more in (("rss", 0.1, 2 * MIB), ("rest", 0.1, 2 * MIB), ("maps", 0.1, 2 * MIB), ("fds", 0.25, 20), ("threads", 0, 0),
                                  ("spool", 0.5, MIB)):
            values = [point[what] for point in self.points]
            before, after = statistics.median(values[begin:begin + nr // part]), statistics.median(values[-(nr // part):])
            print(f"# {what}: {before:.0f} -> {after:.0f}, at most {max(values):.0f}")
            judged = nr >= LONG or (nr >= MEDIUM and what != "rss")
            if judged and after > before * (1 + times) + more:
                problems.append(f"{what} grew from {before} to {after}")
        most = max(point["rss"] + point["maps"] for point in self.points)
        if most > 1.25 * LIMIT:
            problems.append(f"{most / MIB:.1f} MiB")
        return problems


def test_it_stays_as_it_is():
    os.mkdir("churn")
    with contextlib.ExitStack() as stack:
        r = stack.enter_context(Receiver())
        r.answers = Failing()
        for command in ([CHURN, "executables", "churn"], [CHURN, "processes"], [CHURN, "jit"]):
            stack.enter_context(workload(*command))
        a = stack.enter_context(agent("--otlp-endpoint", f"http://127.0.0.1:{r.port}", "--spool", "spool", "--retry-delay", "50ms",
                                      "--reporter-interval", "0.5", "--samples-per-second", "49", "--memory-limit", "64M",
                                      "-off-cpu-threshold", "0.05", "--metrics-listen", "127.0.0.1:0", "-v"))
        curves = Curves(a, a.wait_for(r"metrics are at http://127\.0\.0\.1:(\d+)/metrics")[1])
        a.wait_for("the agent samples")
        taken = 0
        for _ in range(REPORTS):
            a.wait_for(r"report \d+: ")
            curves.look()
            # What it said and what came is checked and forgotten: this test stays as it is, too.
            a.lines = a.lines[-1000:]
            while not r.requests.empty():
                r.requests.get()
            if len(r.all) > 100:
                # But for the last ones, which are just being answered.
                done, r.all[:-5] = r.all[:-5], []
                taken += samples_of(request.plain for request in done if request.answer == 200)
        state = State(a.end())
        taken += samples_of(r.bodies())
    state.check_sum()
    problems = curves.check()
    check(not problems, problems)
    check(state.delivered == state.samples and state.retries >= REPORTS // 14, vars(state))
    check(taken == state.samples, f"{taken} samples arrived, {state.samples} were taken")
    check(os.listdir("spool") == [], os.listdir("spool"))


if __name__ == "__main__":
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-soak-")))
