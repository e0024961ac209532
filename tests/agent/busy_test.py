#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every rule that binds a producer of OTLP, on real requests of a busy machine, by gRPC and by HTTP: `busy_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

The rules are those of tests/formats/go (rules.go, wire.go), read by the OpenTelemetry collector's library. What the machine does is
chosen for what it makes reports hold.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import grpc_receiver
import guard
import tap
from grpc_receiver import Server
from receiver import Receiver
from running import BUILD, State, agent, burn, places, run_tests, samples_of, workload
from tap import check

CHURN = f"{BUILD}/tests/soak/soak_churn"
PYTHON_THREADS = """
import threading

def größe(n):
    return sum(i * i for i in range(n))

def work():
    while True:
        größe(20000)

for i in range(2):
    threading.Thread(target=work, name=f"worker {i}", daemon=True).start()
work()
"""
# A name of a thread, and of a file, may be any bytes.
ODD_NAME = b"o\xff1\n2"
INTERPRETERS = {
    "perl": ["perl", "-e", "sub spin { my $n = 0; $n += $_ * $_ for 1..10000; } while (1) { spin(); }"],
    "ruby": ["ruby", "-e", "def spin; n = 0; 10000.times { |i| n += i }; end; loop { spin }"],
}
PROCESSES = 600 if os.environ.get("SONDE_ALL") else 50
ARGS = ("--reporter-interval", "0.5", "--samples-per-second", "199", "-off-cpu-threshold", "0.3", "-v")


@contextlib.contextmanager
def busy_machine():
    """Its processes come and go; some have names that nobody expects, or say things of themselves."""
    odd = os.path.join(os.fsencode(os.getcwd()), ODD_NAME)
    shutil.copy(CHURN, odd)
    os.mkdir("churn")
    told = dict(os.environ, OTEL_RESOURCE_ATTRIBUTES="service.name=shop%20%C3%A4,thread.id=7,code.function.name=x,zone=%FF")
    commands = [[sys.executable, "-c", PYTHON_THREADS], [CHURN, "executables", "churn"], [CHURN, "processes"], [CHURN, "jit"],
                ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "status=none"],
                ["sh", "-c", 'while :; do "$0" spin; /bin/true; done', odd],
                *(command for name, command in INTERPRETERS.items() if shutil.which(name))]
    with contextlib.ExitStack() as stack:
        stack.enter_context(burn())
        for command in commands:
            stack.enter_context(workload(*map(os.fsdecode, command), env=told, stderr=subprocess.DEVNULL))
        yield


class Seen:
    """What requests have had so far."""

    def __init__(self):
        self.sets = {name: set() for name in ("files", "functions", "threads", "kinds", "types")}
        self.pids = set()

    def add(self, body):
        with open("seen", "wb") as file:
            file.write(body)
        for resource in places("seen"):
            self.pids.add(resource["attributes"]["process.pid"])
            for name, seen in self.sets.items():
                seen.update(resource[name])

    def is_all(self):
        s = self.sets
        return ({"native", "kernel", "go", "cpython"} <= s["kinds"] and {"samples", "off_cpu"} <= s["types"] and "größe" in s["functions"] and
                any(name.startswith("o") and name.endswith("2") and len(name) < 9 for name in s["threads"]) and len(self.pids) > PROCESSES)


def test_every_rule_holds():
    """Two agents at once: what is wrong with one way out only is seen as well. One sends small requests, parts of reports."""
    seen = Seen()
    with Server() as server, Receiver() as r, busy_machine(), \
            agent("-collection-agent", f"127.0.0.1:{server.port}", "-disable-tls", *ARGS) as by_grpc, \
            agent("--otlp-endpoint", f"http://127.0.0.1:{r.port}", "--otlp-request-size", "64k", *ARGS) as by_http:
        server.wait(3)
        while not seen.is_all():
            seen.add(r.wait().plain)
            check(len(r.all) < 10000, f"{len(seen.pids)} processes; " + json.dumps({name: len(s) for name, s in seen.sets.items()}))
        states = [State(a.end()) for a in (by_http, by_grpc)]
        server.close()
    for state in states:
        state.check_sum()
        check(state.delivered == state.samples and not state.rejected, vars(state))
    check(samples_of(r.bodies()) == states[0].samples, vars(states[0]))
    check(server.samples() == states[1].samples, vars(states[1]))
    check(max(len(body) for body in r.bodies()) <= 64 << 10, "a request is too large")
    print(f"# {len(r.all)} requests by HTTP, {len(server.all)} by gRPC, {len(seen.pids)} processes, {len(seen.sets['functions'])} functions")


def main():
    if not grpc_receiver.is_there():
        return tap.skip_all(grpc_receiver.MISSING)
    return run_tests(globals(), "sonde-busy-")


if __name__ == "__main__":
    sys.exit(guard.run(main))
