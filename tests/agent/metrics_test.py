#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
What `sonde agent --metrics-listen` answers, to Prometheus' own parser and to clients that nobody wishes for: `metrics_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

By the system's python, of which the parser is a package.
"""
import contextlib
import gzip
import http.client
import os
import re
import shutil
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import tap
from running import EVERY_RUNTIME, SONDE, TIMEOUT, agent, burn, of_native_code, places, run_tests, workload
from command import run
from tap import check

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

ARGS = ("--output-dir", "out", "--reporter-interval", "0.2", "--samples-per-second", "199", "--metrics-listen", "127.0.0.1:0", "-v")


def port_of(a):
    return int(a.wait_for(r"metrics are at http://127\.0\.0\.1:(\d+)/metrics")[1])


def get(port, path, method="GET"):
    """Status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


class Metrics:
    def __init__(self, port):
        status, headers, self.text = get(port, "/metrics")
        check(status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", (status, str(headers)))
        self.types, self.values = {}, {}
        for family in text_string_to_metric_families(self.text):
            check(family.name.startswith("sonde_") and family.documentation and family.type in ("counter", "gauge"), family)
            self.types[family.name] = family.type
            for sample in family.samples:
                key = (sample.name, *sorted(sample.labels.items()))
                check(key not in self.values and sample.name.endswith("_total") == (family.type == "counter"), sample)
                self.values[key] = sample.value

    def __getitem__(self, name):
        return self.values[(name,)]

    def all(self, name):
        """Of a family with labels: the values by the labels' values."""
        return {tuple(value for _, value in key[1:]): found for key, found in self.values.items() if key[0] == name}

    def check_not_less_than(self, before):
        for key, value in before.values.items():
            if key[0].endswith("_total"):
                check(self.values[key] >= value, f"{key} went from {value} to {self.values[key]}")


def test_metrics_are_read_by_prometheus_and_agree():
    with agent(*ARGS, **EVERY_RUNTIME) as a, burn(), workload(sys.executable, "-c", "while True: pass"):
        port = port_of(a)
        a.wait_for("the agent samples")
        m = Metrics(port)
        while not (m.all("sonde_runtime_samples_total")[("python",)] and m.all("sonde_exports_total")[("delivered",)]):
            a.wait_for(r"report \d+: ")
            now = Metrics(port)
            now.check_not_less_than(m)
            m = now
        check(get(port, "/metrics", "HEAD")[2] == "", "HEAD has no body")
        said = a.end()
    check(m["sonde_samples_total"] == m["sonde_samples_complete_total"] + sum(m.all("sonde_samples_truncated_total").values()), m.text)
    check({reason for reason, _ in m.all("sonde_lost_total")} >= {"ring_full", "out_of_memory", "side_band"}, m.text)
    kinds, frames = m.all("sonde_runtime_samples_total"), m.all("sonde_runtime_frames_total")
    check(kinds[("native",)] > 0 and kinds[("python",)] <= frames[("python",)] and kinds.keys() == frames.keys(), m.text)
    check(max(kinds.values()) <= m["sonde_samples_total"] and m.all("sonde_export_samples_total")[("delivered",)] <= m["sonde_samples_total"], m.text)
    check(m["sonde_frequency_hertz"] == 199 and m["sonde_output_dir_files"] > 0 and m["sonde_export_bytes_total"] > 0, m.text)
    for name in ("sonde_bpf_cpu_seconds_total", "sonde_bpf_runs_total", "sonde_cpu_seconds_total", "sonde_resident_memory_bytes",
                 "sonde_bpf_memory_bytes", "sonde_profile_bytes", "sonde_sampling_seconds_total"):
        check(m[name] > 0, m.text)
    last = re.findall(r"state: \d+ s, (\d+) samples, ", said)[-1]
    check(m["sonde_samples_total"] <= int(last), f"{last} samples at the end, {m['sonde_samples_total']} before")
    check(m.all("sonde_http_requests_total")[("broken",)] == 0, m.text)


def ticks(pid):
    """CPU time of this process, and of its children that ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])


def stop_a_child(parent, least):
    """The first one found that has had so many ticks of CPU time."""
    while True:
        with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
            pids = [int(pid) for pid in file.read().split()]
        for pid in pids:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if ticks(pid)[0] >= least:
                    os.kill(pid, signal.SIGSTOP)
                    return pid


def test_children_that_run_count():
    """They load walkers: one of them is stopped in the midst of it."""
    with agent(*ARGS, **EVERY_RUNTIME) as a, workload(sys.executable, "-c", "while True: pass"):
        port = port_of(a)
        a.wait_for("the agent samples")
        child = stop_a_child(a.process.pid, 8)
        try:
            had, ended, before = ticks(child)[0], ticks(a.process.pid)[1], None
            # Until none of the others ends meanwhile.
            while ended != before:
                told, before, ended = Metrics(port)["sonde_children_cpu_seconds_total"] * os.sysconf("SC_CLK_TCK"), ended, ticks(a.process.pid)[1]
        finally:
            os.kill(child, signal.SIGCONT)
        a.end()
    check(told >= ended + had - 1, f"{told} ticks are told, a child has had {had}, those that ended {ended}")


CALLS = """
import os
for name, times in (("others", 30), ("calls", 50)):
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)
    for _ in range(times):
        os.getppid()
"""


def test_each_source_has_its_counts():
    """Of a process that is selected while it calls itself so: what probes took of it and what not."""
    probes = ("uprobe:libc.so.6:getppid", "tracepoint:syscalls:sys_enter_getppid", "uprobe:libc.so.6:getpid,rate=1")
    with agent(*ARGS, "--include", "comm=calls", *(arg for probe in probes for arg in ("--probe", probe))) as a:
        port = port_of(a)
        a.wait_for("the agent samples")
        run("/usr/bin/python3", "-c", CALLS)
        run("/usr/bin/python3", "-c", CALLS.replace("os.getppid()", "ctypes.CDLL(None).getpid()").replace("import os", "import ctypes"))
        while (m := Metrics(port)).all("sonde_source_samples_total")[("uprobe:getppid",)] < 50 or not m.all("sonde_samples_limited_total")[("uprobe:getpid",)]:
            pass
        a.end()
    samples, complete = m.all("sonde_source_samples_total"), m.all("sonde_source_samples_complete_total")
    rejected, limited = m.all("sonde_samples_rejected_total"), m.all("sonde_samples_limited_total")
    sources = {("clock",), ("uprobe:getppid",), ("tracepoint:syscalls:sys_enter_getppid",), ("uprobe:getpid",)}
    check(samples.keys() == complete.keys() == rejected.keys() == limited.keys() == sources, samples)
    check(samples[("uprobe:getppid",)] == samples[("tracepoint:syscalls:sys_enter_getppid",)] == 50, samples)
    check(samples[("clock",)] == m["sonde_samples_total"] and complete[("clock",)] == m["sonde_samples_complete_total"], m.text)
    check(sum(samples.values()) - samples[("clock",)] == m["sonde_samples_other_total"], m.text)
    check(all(0 <= complete[source] <= samples[source] for source in sources), complete)
    check(rejected[("uprobe:getppid",)] >= 30 and rejected[("tracepoint:syscalls:sys_enter_getppid",)] >= 30 and rejected[("clock",)] > 0, rejected)
    lost, in_all = m.all("sonde_source_lost_total"), m.all("sonde_lost_total")
    check({source for _, source in lost} == {source for source, in sources}, lost)
    for reason in {reason for reason, _ in lost}:
        of_all = sum(number for (why, what), number in in_all.items() if why == reason)
        check(sum(number for (why, _), number in lost.items() if why == reason) == of_all, (reason, lost, in_all))
    check(samples[("uprobe:getpid",)] + limited[("uprobe:getpid",)] == 50 and limited[("clock",)] == 0, (samples, limited))


FLOOD = """
import ctypes
libc = ctypes.CDLL(None)
with open("/proc/self/comm", "w") as comm:
    comm.write("calls")
for _ in range(100000):
    libc.getppid()
"""


def test_what_is_lost_is_told_by_source():
    """Of an agent that stands still while a probe is passed more often than there is room for: each call is a sample, or lost."""
    with agent(*ARGS, "--include", "comm=calls", "--probe", "uprobe:libc.so.6:getppid") as a:
        port = port_of(a)
        a.wait_for("the agent samples")
        a.send(signal.SIGSTOP)
        try:
            run("/usr/bin/python3", "-c", FLOOD)
        finally:
            a.send(signal.SIGCONT)
        while True:
            m = Metrics(port)
            # That one is a sample all the same, without its user part.
            lost = {reason: number for (reason, source), number in m.all("sonde_source_lost_total").items()
                    if source == "uprobe:getppid" and reason != "raw_throttled"}
            seen = m.all("sonde_source_samples_total")[("uprobe:getppid",)] + sum(lost.values())
            if seen >= 100000:
                break
        a.end()
    check(seen == 100000 and lost["ring_full"] > 1000, lost)
    check(m.all("sonde_source_lost_total")[("ring_full", "clock")] == 0, "a part of the ring is for the clocks' samples alone")


def kernels_own(path):
    """Threads of kthreadd, and it, in what is written there."""
    with gzip.open(path) as packed, open("plain", "wb") as out:
        shutil.copyfileobj(packed, out)
    return {thread for r in places("plain") if 2 in (r["attributes"]["process.pid"], r["attributes"].get("process.parent_pid"))
            for thread in r["threads"]}


def test_kernel_threads_are_left_out_and_counted():
    """A kernel thread takes network namespaces away."""
    if run("unshare", "-n", "true", status=None).returncode:
        raise tap.Skip("no network namespaces can be made here")
    args = (*ARGS, "--samples-per-second", "999", "--probe", "tracepoint:workqueue:workqueue_execute_start,rate=100")
    with workload("sh", "-c", "while :; do unshare -n true; done"):
        with agent(*args) as a:
            port = port_of(a)
            a.wait_for("the agent samples")
            while not all((m := Metrics(port)).all("sonde_samples_rejected_total").values()):
                a.wait_for(r"report \d+: ")
            a.end()
        check(m["sonde_samples_total"] > 0, m.text)
        for name in sorted(os.listdir("out")):
            check(not kernels_own(f"out/{name}"), f"{name} has {kernels_own(f'out/{name}')}")
        seen = set()
        with agent(*args, "--kernel-threads") as a:
            port = port_of(a)
            while not any(thread.startswith("kworker/") for thread in seen):
                a.wait_for(r"report \d+: ")
                seen |= kernels_own(f"out/{sorted(os.listdir('out'))[-1]}")
            check(not any(Metrics(port).all("sonde_samples_rejected_total").values()), "none is rejected")
            a.end()


def test_what_was_drawn_is_told():
    for threshold, enabled in ((0, 0), (100, 1)):
        with agent(*ARGS, "--probabilistic-threshold", threshold, "--probabilistic-interval", "100ms") as a, burn():
            port = port_of(a)
            a.wait_for("the agent samples")
            a.wait_for(r"report \d+: " if enabled else r"profiling: \d+ was drawn", times=2)
            m = Metrics(port)
            drawn = m.all("sonde_probabilistic_intervals_total")
            check(m["sonde_probabilistic_profiling_enabled"] == enabled and (m["sonde_samples_total"] > 0) == bool(enabled), m.text)
            check(drawn[("yes",)] == 0 and (drawn[("no",)] > 0) == (not enabled), drawn)
            a.end()


def test_the_spool_is_told():
    """Nobody listens there: what an agent leaves, with a file that is cut, the next one finds."""
    args = ("--collection-agent", "127.0.0.1:1", "--disable-tls", "--spool", "spool", "--reporter-interval", "0.1", "--samples-per-second", "199",
            "--metrics-listen", "127.0.0.1:0", "-v")
    with agent(*args) as a, burn():
        port = port_of(a)
        a.wait_for("the agent samples")
        while (m := Metrics(port))["sonde_spool_files"] < 3:
            check(a.process.poll() is None, "it ended")
        check(m["sonde_spool_bytes"] > 0 and not m["sonde_spool_found_reports_total"] and not m["sonde_spool_failed_writes_total"], m.text)
        a.end()
    names = sorted(name for name in os.listdir("spool") if not name.startswith("."))
    os.truncate(f"spool/{names[0]}", os.path.getsize(f"spool/{names[0]}") - 1)
    with agent(*args) as a:
        port = port_of(a)
        a.wait_for("the agent samples")
        m = Metrics(port)
        a.end()
    check(m["sonde_spool_found_reports_total"] >= 2 and m["sonde_spool_found_samples_total"] > 0 and m["sonde_spool_corrupt_total"] == 1, (names, m.text))


def test_it_is_ready_when_it_samples():
    with agent(*ARGS) as a:
        port = port_of(a)
        # Asked while it begins, it answers when it comes to that.
        status, _, body = get(port, "/readyz")
        check((status, body) in ((503, "Service Unavailable\n"), (200, "OK\n")), (status, body))
        a.wait_for("the agent samples")
        check(get(port, "/readyz")[0] == get(port, "/healthz")[0] == 200, "it samples")
        check(get(port, "/")[0] == get(port, "/metrics/")[0] == 404, "there is nothing else")
        check(get(port, "/metrics", "POST")[0] == 405, "nothing can be changed")
        a.end()


def exchange(port, data):
    """All that comes for it."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as client:
        client.sendall(data)
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_bad_clients_stop_nobody():
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with agent(*ARGS) as a, burn():
        port = port_of(a)
        a.wait_for("the agent samples")
        for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 100, b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /\n", os.urandom(64) + b"\n"):
            check(exchange(port, garbage).startswith(b"HTTP/1.1 400 "), garbage)
        check(exchange(port, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 8192).startswith(b"HTTP/1.1 431 "), "large headers")
        with socket.create_connection(("127.0.0.1", port), TIMEOUT) as slow:
            for i, byte in enumerate(request):
                slow.sendall(bytes([byte]))
                if i % 8 == 0:
                    Metrics(port)
            check(slow.recv(12) == b"HTTP/1.1 200", "a slow one is answered, too")
        silent = [socket.create_connection(("127.0.0.1", port), TIMEOUT) for _ in range(50)]
        half = [socket.create_connection(("127.0.0.1", port), TIMEOUT) for _ in range(50)]
        for client in half:
            client.sendall(request[:20])
        m = Metrics(port)
        check(m.all("sonde_http_requests_total")[("pushed_out",)] > 0, m.text)
        check(len(os.listdir(f"/proc/{a.process.pid}/task")) <= 3, "no thread serves them")
        # Reports go on meanwhile. Some that it has said by now were made before.
        while Metrics(port).all("sonde_exports_total")[("delivered",)] <= m.all("sonde_exports_total")[("delivered",)]:
            a.wait_for(r"report \d+: ")
        for client in silent + half:
            client.close()
        a.end()


def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = "127.0.0.1:%d" % taken.getsockname()[1]
        done = run(SONDE, "agent", "--output-dir", "out", "--metrics-listen", place, status=1)
        check(done.stderr == f"sonde: cannot listen at '{place}': Address already in use\n", done)
    # A mistake of the configuration, which no new start mends.
    for place in ("9464", "metrics:9464", "127.0.0.1", "127.0.0.1:65536", "::1:x"):
        done = run(SONDE, "agent", "--output-dir", "out", env=dict(os.environ, SONDE_METRICS_LISTEN=place), status=2)
        check(done.stderr == f"sonde: SONDE_METRICS_LISTEN takes an address and a port such as 127.0.0.1:9464, not '{place}'\n", done)


if __name__ == "__main__":
    if text_string_to_metric_families is None:
        sys.exit(tap.skip_all("the system's python has no prometheus_client (package python3-prometheus-client)"))
    of_native_code()
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-metrics-")))
