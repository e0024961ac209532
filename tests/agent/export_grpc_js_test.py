#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What `sonde agent` sends over gRPC, to a server of grpc-js (HTTP/2 is Node.js's): `export_grpc_js_test.py SONDE BUILD_FOLDER [TEST...]`,
TAP. The server decodes requests with what proto-loader makes of our .proto files.
"""
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import certificates
import guard
import tap
from running import FAST, State, agent, burn, of_native_code, run_tests
from tap import check

FOLDER = os.path.join(HERE, "grpc-js")
PROTOS = os.path.join(HERE, "..", "..", "src/export/proto")
TIMEOUT = 300


def install():
    """The packages of package-lock.json, which several build folders share."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise tap.Skip("there is no node or no npm")
    lock, done = os.path.join(FOLDER, "package-lock.json"), os.path.join(FOLDER, "node_modules/.package-lock.json")
    folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.exists(done) and os.path.getmtime(done) >= os.path.getmtime(lock):
            return
        npm = subprocess.run(["npm", "ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=FOLDER,
                             capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600, check=False)
        if npm.returncode:
            raise tap.Skip("npm's packages cannot be fetched: " + (npm.stderr.strip().splitlines() or ["?"])[-1])
        os.utime(done)
    finally:
        os.close(folder)


class Server:
    """grpc-js/server.mjs; `all` is what it told of its requests so far."""

    def __init__(self, answers=(), **options):
        self.process = subprocess.Popen(["node", f"{FOLDER}/server.mjs", PROTOS, json.dumps(dict(options, answers=answers))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.all = []
        self.more = threading.Semaphore(0)
        # It is read all the time: a pipe that is full would stop the server.
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self):
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                self.all.append(json.loads(line))
                self.more.release()

    def wait(self, times=1):
        for _ in range(times):
            check(self.more.acquire(timeout=TIMEOUT), "no request comes")

    def close(self):
        """It ends; all that it told is there."""
        self.process.stdin.close()
        self.reader.join(TIMEOUT)

    def samples(self):
        return sum(told["samples"] for told in self.all if told["answer"] is None or "rejected" in told["answer"])


def sending(port, *args):
    return agent("-collection-agent", f"127.0.0.1:{port}", *FAST, *args)


def test_it_takes_all_in_the_clear():
    with Server() as server, sending(server.port, "-disable-tls", "--otlp-headers", "Api-Key=s%3Dcret") as a, burn():
        # The Go program's symbols are read when the machine has time for that.
        while not any(told["named"] for told in server.all) or len(server.all) < 4:
            server.wait()
        state = State(a.end())
        server.close()
    state.check_sum()
    check(state.reports == len(server.all) and state.delivered == state.samples == server.samples() and not state.retries, vars(state))
    check(all(told["tables"] >= 1 for told in server.all), "each table has its entry 0")
    check(all(told["metadata"]["api-key"] == "s=cret" for told in server.all), server.all[0]["metadata"])
    check(len({told["peer"] for told in server.all}) == 1, "the connection is kept")


def test_its_codes_and_partial_success():
    again = [dict(code=14), dict(code=4), dict(code=8, delay=1)]
    final = [dict(code=3, message="bad"), dict(code=8), dict(code=16)]
    with Server(again + final + [dict(rejected=2, message="two")]) as server, sending(server.port, "-disable-tls") as a, burn():
        a.wait_for(r"refused a report \(gRPC status 3: bad\)")
        a.wait_for("took a report and rejected 2 profiles of it: two")
        server.wait(len(again) + len(final) + 2)
        state = State(a.end())
        server.close()
    state.check_sum()
    check(state.retries == len(again) and state.refused_reports == len(final) and state.rejected == 2, vars(state))
    check(state.delivered == server.samples(), vars(state))


def test_tls_with_certificates_on_both_sides():
    certificates.make_ca("ca")
    certificates.make("server", "ca", "IP:127.0.0.1")
    certificates.make("client", "ca", "DNS:client")
    ours = ("--otlp-certificate", "ca.pem")
    for options, args in (({}, ours), ({"client_ca": "ca.pem"}, (*ours, "--otlp-client-certificate", "client.pem", "--otlp-client-key", "client.key"))):
        with Server(cert="server.pem", key="server.key", **options) as server, burn():
            if options:
                with sending(server.port, *ours) as a:
                    a.wait_for("cannot deliver to .*")
                check(not server.all, "a client without a certificate was let in")
            with sending(server.port, *args) as a:
                server.wait(2)
                state = State(a.end())
            server.close()
        state.check_sum()
        check(state.delivered == state.samples == server.samples(), vars(state))


def main():
    try:
        install()
    except tap.Skip as reason:
        return tap.skip_all(reason)
    of_native_code()
    return run_tests(globals(), "sonde-grpc-js-")


if __name__ == "__main__":
    sys.exit(guard.run(main))
