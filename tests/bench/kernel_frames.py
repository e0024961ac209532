# SPDX-License-Identifier: Apache-2.0
"""A server that mostly is in the kernel: a sample with the kernel's own stack walk and with ours by rows, in turns."""
import contextlib
import shutil
import socket
import statistics
import subprocess
import time

from run import Sonde, alone

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
    sonde = Sonde(setup, hz, ["-p", str(pids[0]), "--kernel-frames", way])
    sonde.span(WARM_UP)
    with alone(pids):
        span = sonde.span(SECONDS[hz])
    sonde.stop()
    return span.bpf_ns_per_run(), kernel_share(sonde)


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
                ns = statistics.median(v[0] for v in values)
                target = TARGET_NS.get(hz) if way == "1" else None
                table.add("redis-server under redis-benchmark, %d Hz, kernel stacks by %s" % (hz, WAYS[way]),
                          "median %.2f us, min %.2f us" % (ns / 1000, min(v[0] for v in values) / 1000),
                          "at most %.0f us" % (target / 1000) if target else "", ns <= target if target else None,
                          "rounds: %s; %.0f %% of the samples end in the kernel" % (
                              " ".join("%.2f" % (v[0] / 1000) for v in values),
                              100 * statistics.median(v[1] for v in values)))
