# SPDX-License-Identifier: Apache-2.0
"""
A server that mostly is in the kernel: a sample with the kernel's own stack walk and with ours by rows, in turns.

Inside the program, of the server's samples only: the kernel's statistics have the client's samples, which are not taken (`-p`), in their mean.
"""
import contextlib
import shutil
import socket
import statistics
import subprocess
import time

from run import Sonde, alone
from yardstick import STEP_NS, counts_of, in_words, map_of, percentiles

SECONDS = {99: 8, 999: 3}
WARM_UP = 1.5  # seconds: rows and tables are loaded
WAYS = {"0": "bpf_get_stack", "1": "rows"}
TARGET_NS = {99: 6000}


def wait_for_server(port):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError("redis-server does not answer")


@contextlib.contextmanager
def redis_under_load():
    """(server, client), with 50 connections that get and set."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with contextlib.ExitStack() as stack:
        def start(*argv):
            process = subprocess.Popen(argv, **quiet)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process.pid

        server = start("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "")
        wait_for_server(port)
        yield server, start("redis-benchmark", "-p", str(port), "-c", "50", "-n", "1000000000", "-t", "get,set")


def kernel_share(sonde):
    total = inside = 0
    for _, stack, count in sonde.stacks():
        total += count
        inside += count if stack[-1].endswith("_[k]") else 0
    return inside / max(total, 1)


def measure(setup, hz, way, pids):
    """(times of the server's samples, which part of them ends in the kernel)."""
    sonde = Sonde(setup, hz, ["--measure", "-p", str(pids[0]), "--kernel-frames", way])
    times = map_of(sonde.pid, "times")
    sonde.span(WARM_UP)
    with alone(pids):
        before = counts_of(times)
        sonde.span(SECONDS[hz])
        after = counts_of(times)
    sonde.stop()
    return percentiles([b - a for a, b in zip(before, after)], STEP_NS), kernel_share(sonde)


def rows(setup, table):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        table.add("redis-server under redis-benchmark", "not measured", "", None, "redis is not installed")
        return
    with redis_under_load() as pids:
        for hz in SECONDS:
            results = {way: [] for way in WAYS}
            for number in range(setup.rounds):
                table.progress("redis-server, %d Hz: round %d of %d" % (hz, number + 1, setup.rounds))
                for way, values in results.items():
                    values.append(measure(setup, hz, way, pids))
            for way, values in results.items():
                values = [v for v in values if v[0].samples]
                p50 = statistics.median(v[0].times[50] for v in values)
                target = TARGET_NS.get(hz) if way == "1" else None
                table.add("redis-server under redis-benchmark, %d Hz, kernel stacks by %s: p10 / p50 / p90" % (hz, WAYS[way]),
                          in_words([v[0] for v in values]), "p50 at most %.0f us" % (target / 1000) if target else "",
                          p50 <= target if target else None,
                          "rounds' p50: %s; %d samples, %.0f %% of them end in the kernel" % (
                              " ".join("%.2f" % (v[0].times[50] / 1000) for v in values), sum(v[0].samples for v in values),
                              100 * statistics.median(v[1] for v in values)))
