#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sonde agent` is told to read its configuration again (SIGHUP): `reload_test.py SONDE BUILD_FOLDER [TEST...]`, TAP."""
import gzip
import os
import re
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
from receiver import Receiver
from running import State, agent, burn, of_native_code, resources, run_tests, samples_of, workload
from tap import check

WHAT_IT_DOES = r"the agent samples at (\d+) Hz and reports every ([\d.]+) s (?:to|into) '(.*)'"


def configure(**options):
    with open("conf", "w", encoding="ascii") as file:
        for name, value in options.items():
            file.write(f"{name.replace('_', '-')} = {value}\n")


def url(port):
    return f"http://127.0.0.1:{port}"


def periods(bodies):
    """Those of profiles of the CPUs' clocks."""
    found = set()
    for number, body in enumerate(bodies):
        with open(f"period{number}", "wb") as file:
            file.write(body)
        found.update(resource["period"] for resource in resources(f"period{number}"))
    return found


def test_another_collector_frequency_and_level():
    with Receiver() as first, Receiver() as second, burn():
        configure(otlp_endpoint=url(first.port), samples_per_second=200, reporter_interval=0.1)
        with agent("--config", "conf") as a:
            check(a.wait_for(WHAT_IT_DOES).group(1, 2) == ("200", "0.1"), a.lines)
            first.wait(3)
            configure(otlp_endpoint=url(second.port), samples_per_second=100, reporter_interval=0.2, verbose="true", memory_limit="100M")
            a.send(signal.SIGHUP)
            a.wait_for("these options change with a new start only: memory-limit$")
            a.wait_for("the configuration was read again, changed: otlp-endpoint, samples-per-second, reporter-interval, verbose$")
            check(a.wait_for(WHAT_IT_DOES).group(1, 2, 3) == ("100", "0.2", url(second.port) + "/v1development/profiles"), a.lines)
            second.wait()
            nr_first = len(first.all)
            second.wait(2)
            a.wait_for(r"report \d+: ")  # of the level that is said now
            state = State(a.end())
        check(len(first.all) == nr_first, "the first collector is left")
    state.check_sum()
    check(state.delivered == state.samples and state.reports == len(first.all) + len(second.all), vars(state))
    check(samples_of(first.bodies() + second.bodies()) == state.samples, vars(state))
    check(periods(first.bodies()) == {5000000}, periods(first.bodies()))
    # What was reported before, or at the change itself, and still waited then, comes first.
    each = [sorted(periods([body])) for body in second.bodies()]
    check(each == sorted(each) and each[-1] == [10000000] and all(one in ([5000000], [10000000]) for one in each), each)


def test_what_is_wrong_changes_nothing():
    with Receiver() as r, burn():
        good = {"otlp_endpoint": url(r.port), "samples_per_second": 199, "reporter_interval": 0.1}
        configure(**good)
        with agent("--config", "conf") as a:
            a.wait_for(WHAT_IT_DOES)
            for change, said in (({"sample_rate": 1}, "conf:4: unknown option 'sample-rate'"),
                                 ({"samples_per_second": 0}, "conf:2: samples-per-second takes a whole number"),
                                 ({"samples_per_second": 4000000000}, "4000000000"),
                                 ({"otlp_endpoint": "ftp://x"}, "conf:1: otlp-endpoint cannot be "),
                                 ({"otlp_endpoint": "https://localhost:1", "otlp_protocol": "grpc", "otlp_certificate": "missing"}, "missing"),
                                 ({"queue_size": "20M"}, "a larger --queue-size or --otlp-request-size takes a new start"),
                                 ({"exclude": "com=a"}, "conf:4: exclude has no key 'com' (did you mean 'comm'"),
                                 ({"resource_attributes": "a"}, "conf:4: resource-attributes is not NAME=VALUE")):
                configure(**{**good, **change})
                a.send(signal.SIGHUP)
                a.wait_for(re.escape(said))
                a.wait_for("the configuration stays as it was$")
            os.unlink("conf")
            a.send(signal.SIGHUP)
            a.wait_for("cannot read the configuration 'conf'")
            a.wait_for("the configuration stays as it was$")
            with open("conf", "w", encoding="ascii") as file:
                file.write("output-dir = out\n")
            a.send(signal.SIGHUP)
            a.wait_for("takes a new start")
            nr = len(r.all)
            r.wait(nr + 2)
            configure(**good)
            a.send(signal.SIGHUP)
            a.wait_for("the configuration was read again, changed: nothing$")
            check(a.wait_for(WHAT_IT_DOES)[1] == "199", a.lines)
            state = State(a.end())
    state.check_sum()
    check(samples_of(r.bodies()) == state.samples == state.delivered, vars(state))
    check(periods(r.bodies()) == {1000000000 // 199}, periods(r.bodies()))


def test_what_waits_goes_to_the_new_collector_at_once():
    with Receiver() as r, socket.create_server(("127.0.0.1", 0)) as nobody, burn():
        port = nobody.getsockname()[1]
        nobody.close()
        options = {"samples_per_second": 199, "reporter_interval": 0.1, "retry_delay": "10m", "verbose": "true"}
        configure(otlp_endpoint=url(port), **options)
        with agent("--config", "conf") as a:
            a.wait_for("cannot deliver to .*, reports wait")
            configure(otlp_endpoint=url(r.port), **options)
            a.send(signal.SIGHUP)
            r.wait(3)
            # Again and again, whether or not somebody uses what was said before.
            for _ in range(20):
                a.send(signal.SIGHUP)
                a.wait_for("the configuration was read again, changed: nothing$")
            state = State(a.end())
    state.check_sum()
    check(samples_of(r.bodies()) == state.samples == state.delivered and state.retries == 1, vars(state))


def test_a_folder_stays_and_attributes_change():
    def zones():
        found = set()
        for name in sorted(name for name in os.listdir("out") if name.endswith(".gz")):
            with gzip.open(f"out/{name}") as packed, open("plain", "wb") as plain:
                plain.write(packed.read())
            found |= {r["attributes"].get("zone") for r in resources("plain")}
        return found

    configure(output_dir="out", reporter_interval=0.1, resource_attributes="zone=a")
    with agent("--config", "conf", "-v") as a, burn():
        a.wait_for(r"report \d+: ", times=2)
        configure(output_dir="other", reporter_interval=0.1, resource_attributes="zone=b")
        a.send(signal.SIGHUP)
        a.wait_for("with a new start only: output-dir$")
        check(a.wait_for(WHAT_IT_DOES)[3] == "out", a.lines)
        a.wait_for(r"report \d+: ", times=3)
        State(a.end()).check_sum()
    check(not os.path.exists("other"), "there is one folder")
    check({"a", "b"} <= zones(), zones())


def test_other_processes_are_selected():
    def processes(since):
        found = {}
        for name in sorted(os.listdir("out")):
            if name.endswith(".gz") and name > since:
                with gzip.open(f"out/{name}") as packed, open("plain", "wb") as plain:
                    plain.write(packed.read())
                found.update({r["attributes"]["process.pid"]: r["attributes"].get("process.executable.path") for r in resources("plain")})
        return found

    with burn() as burner:
        path = os.path.realpath(f"/proc/{burner.pid}/exe")
        configure(output_dir="out", reporter_interval=0.1, samples_per_second=199, include=f"exe={path}")
        with agent("--config", "conf", "-v") as a:
            a.wait_for(r"report \d+: ", times=3)
            check(set(processes("").values()) - {None} == {path} and burner.pid in processes(""), processes(""))
            configure(output_dir="out", reporter_interval=0.1, samples_per_second=199, include="comm=x; min-age=0s",
                      exclude=f"exe={path}")
            a.send(signal.SIGHUP)
            a.wait_for("the configuration was read again, changed: include, exclude$")
            a.wait_for(WHAT_IT_DOES)
            with workload("python3", "-c", "while True: pass"):
                a.wait_for(r"report \d+: ", times=4)  # and what was on its way
                last = max(os.listdir("out"))
                a.wait_for(r"report \d+: ", times=8)
            State(a.end()).check_sum()
    # Of other tests' children, which may execute the same program, what they did before that is there.
    found = processes(last)
    check(found and burner.pid not in found, found)


def test_without_a_file_it_is_the_end():
    with agent("--output-dir", "out") as a:
        a.wait_for(WHAT_IT_DOES)
        a.end(signal.SIGHUP)


if __name__ == "__main__":
    of_native_code()
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-reload-")))
