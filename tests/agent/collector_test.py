#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`sonde agent` and the OpenTelemetry Collector, for a minute: `collector_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

The Collector is built of its own modules (tests/agent/collector). It receives over gRPC and over HTTP, each plain, in TLS, and in
TLS with a client's certificate, and writes what it took into a file for each kind of security: what is in these files is what the
agents say they delivered.
"""
import contextlib
import json
import os
import re
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import certificates
import go_program
import guard
import tap
from running import BUILD, State, agent, burn, run_tests, samples_of
from tap import check

COLLECTOR = os.path.join(BUILD, "tests/agent/collector")
REPORTS = 60  # of a second each
SECURITY = ("plain", "tls", "mtls")
PROTOCOLS = ("grpc", "http")


def free_ports(number):
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(number)]


def configuration(ports):
    """The Collector's; JSON is YAML. `ports` by (security, protocol)."""
    tls = {"plain": {}, "tls": {"cert_file": "server.pem", "key_file": "server.key"}}
    tls["mtls"] = dict(tls["tls"], client_ca_file="ca.pem")
    receivers, exporters, pipelines = {}, {"debug": {}}, {}
    for security in SECURITY:
        receivers[f"otlp/{security}"] = {"protocols": {
            protocol: {"endpoint": f"127.0.0.1:{ports[security, protocol]}"} | ({"tls": tls[security]} if tls[security] else {})
            for protocol in PROTOCOLS}}
        exporters[f"file/{security}"] = {"path": os.path.abspath(f"{security}.taken"), "format": "proto"}
        pipelines[f"profiles/{security}"] = {"receivers": [f"otlp/{security}"], "exporters": [f"file/{security}", "debug"]}
    return {"receivers": receivers, "exporters": exporters,
            "service": {"pipelines": pipelines, "telemetry": {"metrics": {"level": "none"}, "logs": {"encoding": "json"}}}}


class Collector:
    """It runs; `said` is its log when it has ended."""

    def __init__(self, ports):
        with open("collector.yaml", "w", encoding="ascii") as file:
            json.dump(configuration(ports), file)
        self.process = subprocess.Popen([COLLECTOR, "--config", "file:collector.yaml", "--feature-gates=service.profilesSupport"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env={name: value for name, value in os.environ.items() if not name.startswith("OTEL_")})
        self.said = ""
        while "Everything is ready" not in self.said:
            line = self.process.stderr.readline()
            check(line, f"the Collector does not start: {self.said[-3000:]}")
            self.said += line

    def end(self):
        """In order: what it took is in the files."""
        self.process.terminate()
        self.said += self.process.communicate(timeout=120)[1]
        check(self.process.returncode == 0, self.said[-3000:])


def taken(path):
    """The requests in a file of the Collector's: each behind its size, four bytes."""
    with open(path, "rb") as file:
        while head := file.read(4):
            yield file.read(int.from_bytes(head, "big"))


def arguments(security, protocol, port):
    if protocol == "grpc":
        yield from ("-collection-agent", f"127.0.0.1:{port}")
        if security == "plain":
            yield "-disable-tls"
    else:
        yield from ("--otlp-endpoint", f"{'http' if security == 'plain' else 'https'}://127.0.0.1:{port}")
    if security != "plain":
        yield from ("--otlp-certificate", "ca.pem")
    if security == "mtls":
        yield from ("--otlp-client-certificate", "client.pem", "--otlp-client-key", "client.key")


def test_the_collector_takes_all():
    certificates.make_ca("ca")
    certificates.make("server", "ca", "IP:127.0.0.1")
    certificates.make("client", "ca", "DNS:client")
    kinds = [(security, protocol) for security in SECURITY for protocol in PROTOCOLS]
    ports = dict(zip(kinds, free_ports(len(kinds))))
    states = dict.fromkeys(SECURITY, 0)
    collector = Collector(ports)
    with contextlib.ExitStack() as stack:
        stack.callback(collector.process.kill)
        stack.enter_context(burn())
        agents = {kind: stack.enter_context(agent(*arguments(*kind, ports[kind]), "--reporter-interval", "1", "-off-cpu-threshold", "0.1",
                                                  "-v")) for kind in kinds}
        for kind, running in agents.items():
            running.wait_for(r"report \d+: ", times=REPORTS)
        for kind, running in agents.items():
            state = State(running.end())
            state.check_sum()
            check(state.delivered == state.samples and state.reports >= REPORTS and not state.rejected and not state.retries,
                  f"{kind}: {vars(state)}")
            check(not re.search(r"cannot deliver|refused|took a report|[1-9]\d* profiles were rejected", "".join(running.lines)),
                  f"{kind}: {running.lines[-20:]}")
            states[kind[0]] += state.delivered
        collector.end()
    for security in SECURITY:
        # The Collector moves names of resources' attributes into the dictionary, where nothing else refers to them.
        arrived = samples_of(taken(f"{security}.taken"), ours=False)
        check(arrived == states[security], f"{security}: {arrived} samples are in the file, {states[security]} were delivered")
    wrong = [line for line in collector.said.splitlines() if '"level":"error"' in line or '"level":"warn"' in line]
    check(not wrong, wrong[:10])


def main():
    try:
        go_program.build(os.path.join(HERE, "collector"), COLLECTOR, "-ldflags=-s -w")
    except tap.Skip as reason:
        return tap.skip_all(reason)
    return run_tests(globals(), "sonde-collector-")


if __name__ == "__main__":
    sys.exit(guard.run(main))
