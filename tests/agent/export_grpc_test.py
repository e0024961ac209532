#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What `sonde agent` sends over gRPC, and what it does when the collector fails: `export_grpc_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

The server is grpcio's (Google's C++), which decodes requests with what protoc made of our .proto files; the OpenTelemetry
collector's library checks them once more, with every rule that binds a producer.
"""
import contextlib
import os
import re
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import certificates
import grpc_receiver
import guard
import receiver
import tap
from command import run
from grpc_receiver import Server
from running import ENDED_BEFORE_AN_ANSWER, EVERY_SECOND, FAST, SONDE, State, agent, of_native_code, outage, run_tests, samples_of, simmer
from tap import check

def code(number, **more):
    return dict(more, code=number)


def sending(port, *args):
    return agent("-collection-agent", f"127.0.0.1:{port}", *FAST, *args)


PLAIN = ("-disable-tls",)


def test_requests_keep_every_rule_and_lose_nothing():
    with Server() as server, sending(server.port, *PLAIN, "--otlp-headers", "Api-Key=s%3Dcret") as a, simmer():
        a.wait_for(r"the agent samples at 199 Hz and reports every 0.1 s to '127.0.0.1:\d+'")
        server.wait(8)
        state = State(a.end())
        server.close()
    state.check_sum()
    check(state.reports == len(server.all) and state.delivered == state.samples and state.retries == 0, vars(state))
    check(server.samples() == state.samples, vars(state))
    for told in server.all:
        metadata = told["metadata"]
        check(metadata["api-key"] == "s=cret" and metadata["user-agent"].startswith("OTel-OTLP-Exporter-Sonde/"), metadata)
        check(5 < told["left"] <= 10, f"a deadline of {told['left']} s")
    check(len({told["peer"] for told in server.all}) == 1, "the connection is kept")


def test_codes_say_whether_a_request_is_sent_again():
    again = [code(1), code(4), code(10), code(11), code(14), code(15), code(8, delay=0), None]
    final = [code(number) for number in (2, 3, 5, 6, 7, 8, 9, 12, 13, 16)]
    said = code(3, message="bad\nrequest \u00fc")
    with Server(again + final + [said]) as server, sending(server.port, *PLAIN) as a, simmer():
        server.wait(len(again) + len(final) + 3)
        state = State(a.end())
        server.close()
    state.check_sum()
    check(state.retries == len(again) - 1 and state.refused_reports == len(final) + 1, vars(state))
    check(server.samples() == state.delivered, vars(state))
    first = set(server.bodies(lambda answer: answer in again[:-1]))
    check(len(first) == 1, "the same request is sent again")
    check(len(set(server.bodies(lambda answer: True))) == len(server.all) - len(again) + 1, "what was refused, or taken, is not")
    check("".join(a.lines).count("refused a report (gRPC status 2: no): 1 lost so far, with") == 1, a.lines)


def test_a_status_is_told_without_its_control_characters():
    with Server([code(3, message="bad\nrequest \u00fc 100% %4")]) as server, sending(server.port, *PLAIN) as a, simmer():
        a.wait_for(re.escape("(gRPC status 3: bad?request \u00fc 100% %4): 1 lost"))
        a.end()


def test_the_server_says_when_to_come_again():
    with Server([code(14, delay=2), code(8, delay=1)]) as server, sending(server.port, *PLAIN) as a, simmer():
        server.wait(3)
        State(a.end()).check_sum()
    first, second, third = (told["time"] for told in server.all[:3])
    check(second - first >= 1.9 and third - second >= 0.9, [told["time"] for told in server.all])


def test_partial_success_is_told_and_not_sent_again():
    # The first one's answer is packed, as Go's servers do it with each: what is shorter than gzip's own head C-core leaves as it is.
    partial = {"rejected": 3, "message": "bad ones" * 10}
    with Server([dict(partial, packed=True), partial]) as server, sending(server.port, *PLAIN) as a, simmer():
        a.wait_for(f"took a report and rejected 3 profiles of it: {'bad ones' * 10}")
        server.wait(4)
        state = State(a.end())
        server.close()
    state.check_sum()
    check(state.rejected == 6 and state.delivered == state.samples and not state.retries, vars(state))
    check(len(set(server.bodies(lambda answer: True))) == len(server.all), "nothing is sent twice")


def test_a_server_that_begins_anew_costs_nothing():
    with Server() as server, sending(server.port, *PLAIN) as a, simmer():
        for _ in range(3):
            server.wait(2)
            server.listen_anew()
        server.wait(3)
        state = State(a.end())
        server.close()
    state.check_sum()
    check(state.delivered == state.samples == server.samples(), vars(state))
    check(len({told["peer"] for told in server.all}) == 4, "a connection each time")


def test_a_server_that_is_killed_in_the_middle_of_a_request_gets_it_again():
    with Server([None, None, "never"]) as server, sending(server.port, *PLAIN) as a, simmer():
        server.wait(3)
        server.process.kill()
        server.close()
        a.wait_for("cannot deliver to ")
        with Server(port=server.port) as later:
            later.wait(4)
            state = State(a.end())
            later.close()
    state.check_sum()
    check(state.delivered == state.samples and state.retries, vars(state))
    # What it had, without an answer, is the first that the other one gets.
    lost = list(server.bodies(lambda answer: answer == "never"))
    check(len(lost) == 1 and next(later.bodies()) == lost[0], "another request came")
    check(samples_of([*server.bodies(), *later.bodies()]) == state.samples, vars(state))


def test_a_server_that_is_away_costs_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sending(port, *PLAIN, *EVERY_SECOND) as a, simmer():
        a.wait_for("cannot deliver to .*, reports wait: cannot connect: Connection refused")
        waiting = outage(a)
        with Server(port=port) as server:
            a.wait_for("answers again")
            server.wait(waiting + 1)
            state = State(a.end())
            server.close()
    state.check_sum()
    check(state.delivered == state.samples == server.samples(), vars(state))


def test_deadlines():
    with Server(["never"]) as server, sending(server.port, *PLAIN, "--otlp-timeout", "2") as a, simmer():
        a.wait_for("cannot deliver to .*: (no answer in time|gRPC status 4)")
        server.wait(3)
        state = State(a.end())
        server.close()
    state.check_sum()
    check(server.all[0]["left"] <= 2 and state.delivered == state.samples == server.samples(), vars(state))
    with Server(["never"] * 50) as server, sending(server.port, *PLAIN, "--otlp-timeout", "60") as a, simmer():
        server.wait()
        said = a.end(status=1)
        state = State(said)
    check(ENDED_BEFORE_AN_ANSWER.search(said) and state.dropped and not state.delivered, said[-1000:])


@contextlib.contextmanager
def raw_server(answer):
    """One that is no gRPC server: `answer` is given each connection; how many there were is in the list."""
    connections = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                connections.append(connection)
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection):
        with contextlib.suppress(OSError), connection:
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1], connections
    finally:
        listener.close()


SETTINGS = b"\0\0\0\4\0\0\0\0\0"


def frames(frame):
    def answer(connection):
        connection.sendall(SETTINGS)
        while True:
            connection.sendall(frame * 1000)
    return answer


def drip(connection):
    connection.sendall(SETTINGS)
    while True:
        connection.sendall(b"\0")
        time.sleep(0.3)


def test_what_is_no_server_of_grpc_is_left():
    def hang_up(connection):
        connection.recv(10)

    def http1(connection):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    def data(connection):
        """Of a call's answer there is no end."""
        connection.sendall(SETTINGS + b"\0\0\1\1\4\0\0\0\1\x88")
        while True:
            connection.sendall(b"\0\x40\0\0\0\0\0\0\1" + b"x" * 16384)

    over = "(answers without end|the connection was lost|does not speak HTTP/2|no answer in time)"
    for answer, words in ((hang_up, "the connection was lost"), (http1, over),
                          (frames(b"\0\0\x08\6\1\0\0\0\0" + b"x" * 8), over),
                          (data, over),
                          (drip, "no answer in time")):
        # However late it comes to that; of the others the end of the time is an answer, too.
        timeout = "60" if answer is hang_up else "0.9"
        with raw_server(answer) as (port, connections), sending(port, *PLAIN, "--otlp-timeout", timeout) as a, simmer():
            a.wait_for(f"(cannot deliver to|refused a report).*{words}")
            check(connections, "it was never there")


def test_tls():
    certificates.make_ca("ca")
    certificates.make_ca("other")
    certificates.make("server", "ca", "IP:127.0.0.1")
    certificates.make("named", "ca", "DNS:collector.example")
    certificates.make("client", "ca", "DNS:client")
    ours = ("--otlp-certificate", "ca.pem")
    with Server(cert="server.pem", key="server.key") as server, simmer():
        with sending(server.port, *ours) as a:
            server.wait(2)
            state = State(a.end())
        for args, words in (((), "TLS: .*certificate"), (("--otlp-certificate", "other.pem"), "TLS: .*certificate"),
                            ((*ours, "--otlp-server-name", "collector.example"), "TLS: hostname mismatch"),
                            (PLAIN, "connection was lost|HTTP/2")):
            with sending(server.port, *args) as a:
                a.wait_for(f"cannot deliver to .*({words})")
        server.close()
    state.check_sum()
    check(state.delivered == state.samples == server.samples(), vars(state))
    with Server(cert="named.pem", key="named.key", client_ca="ca.pem") as server, simmer():
        named = (*ours, "--otlp-server-name", "collector.example")
        with sending(server.port, *named) as a:
            a.wait_for("cannot deliver to .*")
        with sending(server.port, *named, "--otlp-client-certificate", "client.pem", "--otlp-client-key", "client.key") as a:
            server.wait(2)
            State(a.end()).check_sum()
    # HTTP/1.1 behind TLS.
    with receiver.Receiver(tls=receiver.server_tls("server.pem", "server.key")) as r, simmer(), sending(r.port, *ours) as a:
        a.wait_for("cannot deliver to .*: the server does not speak HTTP/2 over TLS")


def test_mistakes_are_said():
    for args, status, words in (
            (["--collection-agent", "x:1/path"], 2, "--collection-agent: an endpoint of gRPC has no path ('/path')"),
            (["--otlp-endpoint", "x:1/path?key=secret"], 2, "--otlp-endpoint: an endpoint of gRPC has no path ('/path')"),
            (["--collection-agent", "x", "--otlp-certificate", "missing"], 1, "cannot use the certificate 'missing'"),
            (["--collection-agent", "x", "--otlp-client-key", "/dev/null", "--otlp-client-certificate", "/dev/null"], 1,
             "cannot use the certificate '/dev/null'"),
            (["--collection-agent", "x", "--disable-tls", "--otlp-server-name", "y"], 2, "no TLS")):
        done = run(SONDE, "agent", *args, status=status)
        check(words in done.stderr and done.stderr.count("\n") == 1, f"{args}: {done}")


def main():
    if not grpc_receiver.is_there():
        return tap.skip_all(grpc_receiver.MISSING)
    of_native_code()
    return run_tests(globals(), "sonde-grpc-")


if __name__ == "__main__":
    sys.exit(guard.run(main))
