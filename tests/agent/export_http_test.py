#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What `sonde agent` sends over HTTP, and what it does when the collector fails: `export_http_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

Requests are decoded by the OpenTelemetry collector's library, which checks every rule that binds a producer (tests/formats/go).
"""
import collections
import email.utils
import os
import re
import signal
import socket
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import certificates
import guard
import receiver
from command import run
from receiver import Receiver, replying
from running import (ENDED_BEFORE_AN_ANSWER, EVERY_SECOND, FAST, PROFCHECK, SONDE, State, agent, burn, of_native_code, outage, places, resources,
                     run_tests, samples_of, simmer, workload)
from tap import check


def sending(port, *args, scheme="http"):
    return agent("--otlp-endpoint", f"{scheme}://127.0.0.1:{port}", *FAST, *args)


def test_requests_keep_every_rule_and_lose_nothing():
    with Receiver() as r, sending(r.port, "--otlp-headers", "Api-Key=s%3Dcret, x-scope-orgid = 7") as a, simmer():
        a.wait_for(r"the agent samples at 199 Hz and reports every 0.1 s to 'http://127.0.0.1:\d+/v1development/profiles'")
        r.wait(8)
        state = State(a.end())
    state.check_sum()
    check(state.reports == len(r.all) and state.delivered == state.samples and state.retries == 0, vars(state))
    check(samples_of(r.bodies()) == state.samples, vars(state))
    for request in r.all:
        h = request.headers
        check(request.path == "/v1development/profiles" and h["Content-Type"] == "application/x-protobuf" and
              h["Content-Encoding"] == "gzip" and h["api-key"] == "s=cret" and h["x-scope-orgid"] == "7" and "Expect" not in h and
              re.fullmatch(r"OTel-OTLP-Exporter-Sonde/[\d.]+", h["User-Agent"]), str(h))
    check(len({request.peer for request in r.all}) == 1, "the connection is kept")


def test_older_schemas():
    """Decoded by the code of schema 1.9, whose samples are those of 1.8; and by our own reader, which tells schemas apart."""
    for schema in ("1.9", "1.8", "1.10"):
        with Receiver() as r, simmer(), sending(r.port, "--otlp-schema", schema, "-off-cpu-threshold", "1") as a:
            r.wait(4)
            state = State(a.end())
        state.check_sum()
        arrived = deltas = 0
        for body in r.bodies():
            with open("request.otlp", "wb") as file:
                file.write(body)
            if schema != "1.10":
                samples, new = map(int, run(PROFCHECK, "samples-of-old", "request.otlp").stdout.split())
                arrived += samples
                deltas += new
            else:
                arrived += sum(resource["samples"] for resource in resources("request.otlp"))
                check(run(PROFCHECK, "samples-of-old", "request.otlp", status=None).returncode, "1.10 is read as 1.9")
            run(SONDE, "convert", "request.otlp", "request.folded")
        check(arrived == state.delivered == state.samples, f"{schema}: {arrived} arrived of {vars(state)}")
        check(bool(deltas) == (schema == "1.8"), f"{schema}: {deltas} profiles have a temporality")


def test_large_reports_are_several_requests():
    """Each is valid by itself and within the limit, nothing that one interval saw is missing, and all of it have its times."""
    limit = 32 << 10
    with Receiver() as r, burn(), \
            sending(r.port, "--otlp-request-size", "32k", "--reporter-interval", "1.5", "--samples-per-second", "997", "-off-cpu-threshold", "1") as a:
        starts = collections.Counter()
        while max(starts.values(), default=0) < 3:
            with open("request", "wb") as file:
                file.write(r.wait().plain)
            starts[resources("request")[0]["time"]] += 1
        state = State(a.end())
    state.check_sum()
    check(state.delivered == state.samples and state.reports == len(r.all), vars(state))
    check(samples_of(r.bodies()) == state.samples, vars(state))
    check(max(len(body) for body in r.bodies()) <= limit, [len(body) for body in r.bodies()])


def program_of_long_names(path):
    """The 400 names of a stack are 2.8 MB. Samples are at ever new addresses of the innermost function."""
    names = [f"f{number}{'_long' * 1400}" for number in range(400)]
    with open(path + ".c", "w") as file:
        file.write(f"void {names[0]}(void) {{ for (;;) __asm__ volatile(\".rept 100000; nop; .endr\"); }}\n")
        for callee, name in zip(names, names[1:]):
            file.write(f"void {name}(void) {{ {callee}(); }}\n")
        file.write(f"int main(void) {{ {names[-1]}(); }}\n")
    run("gcc", "-O0", "-Wl,--build-id", "-o", path, path + ".c")


def test_a_user_of_long_names_makes_no_large_requests():
    """Each of his stacks would be one that is larger than a request may be."""
    os.chmod(".", 0o755)
    program_of_long_names("wide")
    with Receiver() as r, simmer() as other, workload("./wide", user=65534, group=65534, extra_groups=[]) as wide, \
            sending(r.port, "--otlp-request-size", "1M", "--metrics-listen", "127.0.0.1:0") as a:
        port = a.wait_for(r"metrics are at http://127\.0\.0\.1:(\d+)/metrics")[1]
        first = int(a.wait_for(r"(\d+) samples of a report have no names of functions")[1])
        r.wait(8)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as metrics:
            counted = int(re.search(r"^sonde_export_nameless_samples_total (\d+)$", metrics.read().decode(), re.M)[1])
        state = State(a.end())
    state.check_sum()
    check(0 < first <= counted <= state.samples, (first, counted, vars(state)))
    check(state.delivered == state.samples == samples_of(r.bodies()), vars(state))
    check(max(len(body) for body in r.bodies()) <= 1 << 20, [len(body) for body in r.bodies()])
    files, functions = collections.defaultdict(set), collections.defaultdict(set)
    for number in range(len(r.all)):
        for place in places(f"request{number}"):
            files[place["attributes"].get("process.pid")].update(place["files"])
            functions[place["attributes"].get("process.pid")].update(place["functions"])
    check("wide" in files[wide.pid] and not any("_long" in name for name in functions[wide.pid]), (files[wide.pid], functions[wide.pid]))
    check(any("main" in name for name in functions[other.pid]), functions[other.pid])


def test_codes_say_whether_a_request_is_sent_again():
    again = [429, 502, 503, 504, receiver.hang_up, 200]
    final = [400, 401, 403, 404, 405, 413, 415, 500, 501, 302]
    said = replying(400, b"\x08\x03\x12\x0bbad\nrequest")
    with Receiver(again + final + [said]) as r, sending(r.port) as a, simmer():
        r.wait(len(again) + len(final) + 3)
        state = State(a.end())
    state.check_sum()
    first = r.all[:len(again)]
    check(len({request.body for request in first}) == 1, "the same request is sent again")
    check(len({request.body for request in r.all}) == len(r.all) - len(first) + 1,
          "what was refused, or taken, is not")
    # libcurl itself sends again what it lost with a connection that had served before.
    check(len(again) - 2 <= state.retries < len(again) and state.refused_reports == len(final) + 1, vars(state))
    check(samples_of(r.bodies()) == state.delivered, vars(state))
    # The first refusal is told, those of the next minute only counted.
    said = "".join(a.lines)
    check(said.count("refused a report (HTTP 400): 1 lost so far, with") == 1 and "bad?request" not in said, said)


def test_what_a_server_says_is_told_without_its_control_characters():
    long = b"\x12\x80\x08" + b"e" * 1024
    for status, body, words in ((400, b"\x08\x03\x12\x0bbad\nrequest", "(HTTP 400: bad?request): 1 lost"),
                                (404, b"404 page not found\r\n", "(HTTP 404: 404 page not found): 1 lost"),
                                (500, b"<html>\x1b[31m no</html>", "(HTTP 500: <html>?[31m no</html>): 1 lost"),
                                (400, long, "(HTTP 400: " + "e" * 255 + "): 1 lost"),
                                (200, b"<html>welcome</html>", "rejected 0 profiles of it: its answer is none of OTLP")):
        with Receiver([replying(status, body)]) as r, sending(r.port) as a, simmer():
            a.wait_for(re.escape(words))
            a.end()


def test_the_server_says_when_to_come_again():
    date = lambda handler: receiver.reply(handler, 429, headers=[("Retry-After", email.utils.formatdate(time.time() + 3, usegmt=True))])
    with Receiver([replying(503, headers=[("Retry-After", "2")]), date]) as r, sending(r.port) as a, simmer():
        r.wait(3)
        State(a.end()).check_sum()
    first, second, third = (request.time for request in r.all[:3])
    check(second - first >= 1.9, f"{second - first} s after Retry-After: 2")
    check(third - second >= 1.4, f"{third - second} s after Retry-After in 3 s")


def test_partial_success_is_told_and_not_sent_again():
    partial = replying(200, b"\x0a\x0c\x08\x03\x12\x08bad ones")
    with Receiver([partial, partial]) as r, sending(r.port) as a, simmer():
        a.wait_for("took a report and rejected 3 profiles of it: bad ones")
        r.wait(4)
        state = State(a.end())
    state.check_sum()
    check(state.rejected == 6 and state.delivered == state.samples and not state.retries, vars(state))
    check(len({request.body for request in r.all}) == len(r.all), "nothing is sent twice")
    check("".join(a.lines).count("bad ones") == 1, "it is told once")


def test_a_collector_that_is_away_costs_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sending(port, *EVERY_SECOND) as a, simmer():
        a.wait_for("cannot deliver to .*, reports wait: .*[Cc]onnect")
        waiting = outage(a)
        with Receiver(port=port) as r:
            a.wait_for("answers again")
            r.wait(waiting + 1)
        # Away once more.
        a.wait_for("cannot deliver to .*, reports wait")
        with Receiver(port=port) as later:
            later.wait(2)
            state = State(a.end())
    state.check_sum()
    check(state.delivered == state.samples and state.retries, vars(state))
    # One that was taken, but whose answer did not get out before the first one was gone, is sent to the second, too.
    got = samples_of({*r.bodies(), *later.bodies()})
    check(got == state.samples, f"{got} arrived of {vars(state)}")


def test_a_collector_that_dies_in_the_middle_of_a_request_gets_it_again():
    with Receiver([200, receiver.die_midway, receiver.die_midway, 200, receiver.die_midway]) as r, sending(r.port) as a, simmer():
        r.wait(6)
        state = State(a.end())
    state.check_sum()
    check(not r.answers and state.delivered == state.samples and state.retries, vars(state))
    check(len({request.body for request in r.all}) == len(r.all), "nothing arrived twice")
    check(samples_of(r.bodies()) == state.samples, vars(state))


def test_the_queue_is_bounded():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sending(port, "--queue-size", "64k") as a, simmer():
        a.wait_for("the queue to http.* is full: [12] reports dropped so far, with")  # two that are smaller than the new one
        dropped = 0
        while dropped < 4:
            a.send(signal.SIGUSR1)
            dropped = int(a.wait_for(r"(\d+) with \d+ were dropped; \d+ of ([0-5]?\d|6[0-4]) kB wait")[1])
        with Receiver(port=port) as r:
            r.wait(3)
            state = State(a.end())
    state.check_sum()
    check(state.dropped_reports >= 4 and samples_of(r.bodies()) == state.delivered, vars(state))


def test_answers_are_bounded():
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    # Who has said 200 has taken it, whatever else he says; who has said nothing has not.
    with Receiver([receiver.endless, receiver.endless_headers, receiver.slow(ok), receiver.slow(), 200]) as r, \
            sending(r.port, "--otlp-timeout", "2") as a, simmer():
        a.wait_for("its answer was not read to the end")
        a.wait_for("cannot deliver to .*: no answer in time")
        a.wait_for("answers again")
        state = State(a.end())
    state.check_sum()
    check(state.delivered == state.samples, vars(state))
    check(r.all[3].body == r.all[4].body and len({request.body for request in r.all}) == len(r.all) - 1, "what was not answered is sent again")


def test_the_end_does_not_wait_for_long():
    with Receiver([receiver.slow()] * 50) as r, sending(r.port, "--otlp-timeout", "60") as a, simmer():
        a.wait_for("the agent samples")
        while len(r.all) < 1:
            a.send(signal.SIGUSR1)
            a.wait_for("were dropped")
        said = a.end(status=1)
        state = State(said)
    check(ENDED_BEFORE_AN_ANSWER.search(said), said[-1000:])
    check(state.dropped and not state.delivered and not state.waiting, vars(state))
    # A server that says to come later than that is not waited for at all.
    with Receiver([replying(503, headers=[("Retry-After", "600")])] * 50) as r, sending(r.port, "--otlp-timeout", "60") as a, simmer():
        a.wait_for("reports wait")
        state = State(a.end(status=1))
    check(len(r.all) == state.retries == 1 and state.dropped == state.samples, vars(state))


def test_tls():
    certificates.make_ca("ca")
    certificates.make_ca("other")
    certificates.make("server", "ca", "IP:127.0.0.1")
    certificates.make("named", "ca", "DNS:collector.example")
    certificates.make("client", "ca", "DNS:client")
    ours = ("--otlp-certificate", "ca.pem")
    with Receiver(tls=receiver.server_tls("server.pem", "server.key")) as r, simmer():
        with sending(r.port, *ours, scheme="https") as a:
            r.wait(2)
            state = State(a.end())
        state.check_sum()
        check(state.delivered == state.samples and samples_of(r.bodies()) == state.samples, vars(state))
        taken = len(r.all)
        for args in ((), ("--otlp-certificate", "other.pem"), (*ours, "--otlp-server-name", "collector.example")):
            with sending(r.port, *args, scheme="https") as a:
                a.wait_for("cannot deliver to .*: .*(certificate|SSL)")
        check(len(r.all) == taken, "nobody else got anything")
    with Receiver(tls=receiver.server_tls("named.pem", "named.key", "ca.pem")) as r, simmer():
        named = (*ours, "--otlp-server-name", "collector.example")
        with sending(r.port, *named, scheme="https") as a:
            a.wait_for("cannot deliver to .*: .*(certificate|SSL|alert)")
        check(not r.all, "a client without a certificate was let in")
        with sending(r.port, *named, "--otlp-client-certificate", "client.pem", "--otlp-client-key", "client.key", scheme="https") as a:
            r.wait(2)
            State(a.end()).check_sum()


def test_opentelemetrys_variables():
    with Receiver() as r, simmer():
        otel = {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in {
            "ENDPOINT": f"http://127.0.0.1:{r.port}/base/", "HEADERS": "a=1", "PROFILES_HEADERS": "b=2", "COMPRESSION": "none",
            "TIMEOUT": "7000", "PROFILES_CERTIFICATE": "of-no-use-here"}.items()}
        with agent(*FAST, **otel) as a:
            r.wait(2)
            state = State(a.end())
        state.check_sum()
        check(samples_of(r.bodies()) == state.delivered == state.samples, vars(state))
        for request in r.all:
            check(request.path == "/base/v1development/profiles" and request.headers["b"] == "2" and "a" not in request.headers and
                  "Content-Encoding" not in request.headers, str(request[:2]))
        printed = run(SONDE, "agent", "--print-config", env=dict(os.environ, **otel)).stdout
        check("# OTEL_EXPORTER_OTLP_TIMEOUT\notlp-timeout = 7000ms\n" in printed and
              "# OTEL_EXPORTER_OTLP_PROFILES_HEADERS, not shown\n# otlp-headers = ...\n" in printed and "b=2" not in printed, printed)
        # What is said to this program goes before.
        with agent(*FAST, "--output-dir", "out", **otel) as a:
            a.wait_for("into 'out'")
            a.end()
        r.all.clear()
        with agent(*FAST, OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=f"http://127.0.0.1:{r.port}", **otel) as a:
            a.wait_for(r"report \d+: ")
            a.end()
        check({request.path for request in r.all} == {"/"}, "of profiles only it is taken as it is")
        # What others have, and this one has not: OpenTelemetry's specification wants a warning.
        with agent(*FAST, OTEL_EXPORTER_OTLP_PROTOCOL="http/json", **otel) as a:
            a.wait_for("OTEL_EXPORTER_OTLP_PROTOCOL is left aside: 'http/json' is neither grpc nor http/protobuf")
            a.wait_for(r"report \d+: ")
            a.end()
        # It does not end for what is wrong in a variable that is for all programs: it goes on as if that were not set.
        wrong = {"OTEL_EXPORTER_OTLP_TIMEOUT": "soon", "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT": "99999999", "OTEL_EXPORTER_OTLP_INSECURE": "yes",
                 "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd", "OTEL_RESOURCE_ATTRIBUTES": "a"}
        with agent(*FAST, **{**otel, **wrong}) as a:
            a.wait_for(r"report \d+: ")
            said = a.end()
        for variable in wrong:
            check(len(re.findall(f"^sonde: (?:warning: )?{variable} is left aside: it ", said, re.MULTILINE)) == 1, (variable, said))
        printed = run(SONDE, "agent", "--print-config", env=dict(os.environ, **{**otel, **wrong})).stdout
        check("# default\notlp-timeout = 10\n" in printed and "# default\notlp-compression = gzip\n" in printed, printed)
        for name, value in (("ENDPOINT", "ftp://x"), ("HEADERS", "a")):
            done = run(SONDE, "agent", "--output-format", "otlp", env=dict(os.environ, **{**otel, f"OTEL_EXPORTER_OTLP_PROFILES_{name}": value}), status=2)
            check(f"OTEL_EXPORTER_OTLP_PROFILES_{name} " in done.stderr and done.stderr.count("\n") == 1, done)
        # The OpenTelemetry profiler's option means gRPC, whatever is set for other programs; and certificates are, too.
        with agent(*FAST, "-collection-agent", "127.0.0.1:1", "-disable-tls", OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
                   OTEL_EXPORTER_OTLP_CERTIFICATE="of-no-use", **otel) as a:
            a.wait_for("reports every 0.1 s to '127.0.0.1:1'")
            a.process.kill()


def test_mistakes_are_said():
    for args, words in (
            (["--otlp-endpoint", "ftp://x"], "--otlp-endpoint cannot be 'ftp://x': only http:// and https:// are known"),
            (["--otlp-endpoint", "http://x:99999"], "the port is not from 1 to 65535"),
            (["--otlp-endpoint", "http://"], "there is no host's name"),
            (["--otlp-endpoint", "http://me:secret@x"], "a user's name does not belong there"),
            (["--otlp-endpoint", "http://x", "--output-dir", "out"], "give either --otlp-endpoint or --output-dir, not both"),
            (["--otlp-endpoint", "http://x", "--otlp-protocol", "http/json"], "--otlp-protocol is grpc or http/protobuf"),
            (["--otlp-endpoint", "http://x", "--otlp-schema", "1.7"], "--otlp-schema is 1.8, 1.9 or 1.10, not '1.7'"),
            (["--otlp-endpoint", "https://x", "--disable-tls"], "--disable-tls does not go with https://"),
            (["--otlp-endpoint", "https://x", "--otlp-client-key", "k"], "go together"),
            (["--otlp-endpoint", "http://x", "--otlp-certificate", "k"], "no TLS"),
            (["--otlp-endpoint", "http://x", "--otlp-headers", "a"], "a part of it is not name=value"),
            (["--otlp-endpoint", "http://x", "--otlp-headers", "content-length=1"], "not to be set"),
            (["--otlp-endpoint", "http://x", "--otlp-headers", "a=%0d%0ax"], "control characters")):
        done = run(SONDE, "agent", *args, status=2)
        check(words in done.stderr and done.stderr.count("\n") == 1 and "secret" not in done.stderr.replace("me:secret@x", ""),
              f"{args}: {done}")


def test_secrets_in_endpoints_are_not_shown():
    for args, variables in ((["--otlp-endpoint", "http://user:hunter2@127.0.0.1:1/"], {}), (["--collection-agent", "hunter2@127.0.0.1:1"], {}),
                            (["--otlp-endpoint", "http://127.0.0.1:1/v1?key=hunter2"], {}),
                            ([], {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:hunter2@127.0.0.1:1"})):
        done = run(SONDE, "agent", *args, "--print-config", env=dict(os.environ, **variables), status=None)
        check("hunter2" not in done.stdout + done.stderr and ", not shown\n" in done.stdout, done)
    done = run(SONDE, "agent", "--otlp-endpoint", "http://user:hunter2@127.0.0.1:1/", status=2)
    check(done.stderr == "sonde: --otlp-endpoint is no endpoint: a user's name does not belong there\n", done)
    with Receiver() as r, agent("--otlp-endpoint", f"http://127.0.0.1:{r.port}/v1?key=hunter2", *FAST) as a, simmer():
        check(r.wait().path == "/v1?key=hunter2", "the query is sent")
        check("hunter2" not in a.end(), a.lines)


if __name__ == "__main__":
    of_native_code()
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-export-")))
