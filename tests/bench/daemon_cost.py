# SPDX-License-Identifier: Apache-2.0
"""What `sonde agent` costs: CPU, memory, and what it sends, to a collector that only counts."""
import contextlib
import http.server
import re
import subprocess
import threading
import time
import urllib.request

from agent_cost import ORDINARY
from footprint import Watcher, total
from kernel_cost import us
from run import BUSY, SLEEPER, TOOL_PRIORITY, Span, at_priority, processes, read

MB = 1e6
HEADERS = 40  # of a segment, TCP and IP: one a request at least


class Collector(http.server.ThreadingHTTPServer):
    """Takes everything; `bytes` with the requests' lines and headers."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Collecting)
        self.bytes = self.requests = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Collecting(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bytes += len(self.requestline) + 2 + len(str(self.headers)) + int(self.headers["Content-Length"]) + HEADERS
        self.server.requests += 1
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Agent:
    """One that runs, with its defaults otherwise."""

    def __init__(self, setup, hz, collector):
        self.said = setup.path(".err")
        argv = [setup.sonde, "agent", "--otlp-endpoint", "http://127.0.0.1:%d" % collector.server_port, "--samples-per-second", str(hz),
                "--metrics-listen", "127.0.0.1:0"]
        with open(self.said, "wb") as err:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=err, preexec_fn=at_priority(TOOL_PRIORITY))
        self.pid = self.process.pid
        end = time.monotonic() + 60
        while "the agent samples" not in read(self.said):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the agent does not sample: %s" % read(self.said))
            time.sleep(0.01)
        self.port = int(re.search(r"metrics are at http://127\.0\.0\.1:(\d+)", read(self.said))[1])

    def metric(self, name):
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.port) as answer:
            return float(re.search(r"^%s (\S+)$" % re.escape(name), answer.read().decode(), re.M)[1])

    def delivered(self):
        return self.metric('sonde_export_samples_total{result="delivered"}')

    def span(self, seconds):
        span = Span(self.pid)
        time.sleep(seconds)
        return span.end()


@contextlib.contextmanager
def agent(setup, hz):
    collector = Collector()
    running = Agent(setup, hz, collector)
    try:
        yield running, collector
    finally:
        running.process.terminate()
        running.process.wait()
        collector.shutdown()
        collector.server_close()


def ordinary(setup, table, hz, seconds):
    what = "agent, %d ordinary processes, %d Hz" % (ORDINARY, hz)
    table.progress(what)
    with agent(setup, hz) as (a, collector):
        watcher = Watcher(a.pid, 0.1)
        a.span(10)
        samples, sent, requests = a.delivered(), collector.bytes, collector.requests
        span = a.span(seconds)
        samples, sent, requests = a.delivered() - samples, collector.bytes - sent, collector.requests - requests
        own, maps = (a.metric("sonde_%s_memory_bytes" % name) for name in ("resident", "bpf"))
        largest = watcher.stop()
    user = span.user_ticks / max(span.user_ticks + span.system_ticks, 1)
    both = span.cpu_ms_per_1000()
    table.add("%s: own CPU, a 1,000 samples" % what, "user %.1f ms of %.1f ms" % (both * user, both), "at most 4 ms user",
              both * user <= 4, "all threads, reports and sending among them; user's share from %d ticks; children that build tables are not in it; "
              "%.3f %% of a core" % (span.user_ticks + span.system_ticks, span.cpu_ns / span.seconds / 1e7))
    table.add("%s: kernel, a sample" % what, us(span.bpf_ns_per_run()))
    table.add("%s: resident memory" % what, "%.1f MB (%.1f MB of them BPF maps' pages)" % (largest.rss / MB, largest.mapped / MB),
              "at most 20 MB", largest.rss <= 20 * MB, "the largest; the agent says %.1f MB at the end, without these pages" % (own / MB))
    table.add("%s: BPF maps" % what, "%.1f MB" % (largest.maps / MB), "at most 12 MB", largest.maps <= 12 * MB,
              "the agent says %.1f MB with its programs; both together, pages counted once: %.1f MB" % (maps / MB, total(largest) / MB))
    table.add("%s: on the wire, a sample" % what, "%.0f bytes" % (sent / max(samples, 1)), "", None,
              "%.0f bytes a request, packed, with headers; %.0f samples a request" % (sent / max(requests, 1), samples / max(requests, 1)))


def idle(setup, table):
    table.progress("agent, %d sleeping processes" % ORDINARY)
    with processes([["sleep", "1000"]] * ORDINARY), agent(setup, 20) as (a, _):
        a.span(10)
        span = a.span(30)
    share = (span.cpu_ns + span.bpf_ns) / span.seconds / 1e7
    table.add("agent, %d sleeping processes, 20 Hz, idle machine" % ORDINARY, "%.3f %% of a core" % share, "at most 0.02 %", share <= 0.02,
              "user and system %.3f %%, BPF %.3f %%; the CPUs were %.0f %% busy with others" % (
                  span.cpu_ns / span.seconds / 1e7, span.bpf_ns / span.seconds / 1e7, 100 * span.busy))


def rows(setup, table):
    shells = (ORDINARY - len(BUSY)) // 2
    with processes(BUSY + [["sh", "-c", SLEEPER]] * shells):
        for hz, seconds in ((20, 30), (99, 20)):
            ordinary(setup, table, hz, seconds)
    idle(setup, table)
