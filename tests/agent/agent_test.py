#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`sonde agent`, run as a service manager runs it: `agent_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

What it writes is read by the OpenTelemetry collector's library, which checks every rule that binds a producer (tests/formats/go).
Nothing here sleeps: a test waits for what the agent says.
"""
import bisect
import contextlib
import gzip
import itertools
import json
import os
import pwd
import re
import secrets
import signal
import shutil
import socket
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import pprof_file
from command import run
from running import EVERY_RUNTIME, PROFCHECK, SONDE, TIMEOUT, agent, burn, of_native_code, places, resources, run_tests, workload
from tap import Skip, check

HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile")


def reports(folder):
    """The files there, unpacked beside it, in their order."""
    plain = []
    for name in sorted(name for name in os.listdir(folder) if not name.startswith(".")):
        check(re.fullmatch(r"\d{12}-\d{8}T\d{6}Z\.otlp\.gz", name), f"'{name}' is no report's name")
        plain.append(f"{name}.plain")
        with gzip.open(f"{folder}/{name}") as packed, open(plain[-1], "wb") as out:
            shutil.copyfileobj(packed, out)
    return plain


OF_A_PROGRAM = ("creation.time", "executable.path", "command", "title", "user.id", "exit.time")


def test_reports_keep_every_rule_and_lose_nothing():
    stacks = set()
    with agent("--output-dir", "out", "--reporter-interval", "0.5", "--samples-per-second", "97", "-v") as a:
        a.wait_for("the agent samples at 97 Hz")
        with workload(PROFCHECK, "burn", "600") as go:
            # Its symbols are read when the machine has time for that; until then its functions are addresses.
            while not any("main.spin" in stack for stack in stacks):
                a.wait_for(r"report \d+: ", times=4)
                stacks.update(run(PROFCHECK, "otlp", reports("out")[-1]).stdout.split("\n"))
        said = a.end()
    counts = re.findall(r"state: \d+ s, (\d+) samples, ", said)[-1]
    written = re.search(r"state: (\d+) reports with (\d+) samples, \d+ kB, were delivered, 0 with 0 samples were not, 0 with 0 were dropped; 0 of", said)
    check(written and written[2] == counts, said[-1000:])
    files = reports("out")
    check(len(files) == int(written[1]), f"{len(files)} files")
    total = 0
    for path in files:
        run(PROFCHECK, "otlp", path)
        found = resources(path)
        total += sum(r["samples"] for r in found)
        keys = [(r["attributes"]["process.pid"], *(r["attributes"].get(f"process.{key}") for key in OF_A_PROGRAM)) for r in found]
        check(len(set(keys)) == len(keys), f"a program of a process has two resources: {keys}")
        check(len({(r["time"], r["duration"]) for r in found}) == 1, "a request has one time")
    check(total == int(counts), f"{total} samples in the files, {counts} were taken")
    mine = [r["attributes"] for path in files for r in resources(path) if r["attributes"]["process.pid"] == go.pid]
    check(mine, "the Go program's resource is missing")
    with open("/proc/self/stat", encoding="utf-8") as file:
        terminal = file.read().rpartition(")")[2].split()[4] != "0"
    for attributes in mine:
        check(attributes["process.executable.name"] == "profcheck" and attributes["process.parent_pid"] == os.getpid() and
              attributes["process.executable.path"] == str(PROFCHECK) and
              attributes["process.group_leader.pid"] == os.getpgid(0) and attributes["process.session_leader.pid"] == os.getsid(0) and
              attributes["process.interactive"] == terminal and attributes["process.linux.cgroup"].split(":", 2)[2].startswith("/") and
              "process.real_user.id" not in attributes and attributes["service.name"] == "unknown_service:profcheck" and attributes["host.name"] == os.uname().nodename,
              attributes)


SPINNER = """
def spin_alone():
    while True:
        open("/proc/self/stat").read()

spin_alone()
"""


EXECUTES = """
import os, sys, time

while time.process_time() < 0.1:
    pass
os.execv(sys.argv[1], ["burner", "burn", "0.1"])
"""


def test_what_a_process_executed_holds_for_no_sample_of_before():
    """One that executes another program has two resources; also where /proc was asked too late. Threads have the name of when they were sampled."""
    pids = {}
    with agent("--output-dir", "out", "--reporter-interval", "0.5", "--samples-per-second", "199", "-v") as a:
        a.wait_for("the agent samples")
        with workload("sh", "-c", 'while "$@"; do :; done', "sh", "/usr/bin/python3", "-c", EXECUTES, PROFCHECK, start_new_session=True) as loop:
            while sum(names == {"python3", "profcheck"} for names in pids.values()) < 2:
                a.wait_for(r"report \d+: ")
                for r in places(reports("out")[-1]):
                    what, threads = r["attributes"], set(r["threads"])
                    path = what.get("process.executable.path")
                    if what.get("process.parent_pid") != loop.pid or not threads & {"python3", "profcheck"}:
                        continue
                    check(threads in ({"python3"}, {"profcheck"}) and what.get("process.title") in (None, *threads), r)
                    if path:
                        check({path == str(PROFCHECK), what["process.command"] == "burner"} == {threads == {"profcheck"}}, r)
                        pids.setdefault(what["process.pid"], set()).update(threads)
            os.killpg(loop.pid, signal.SIGKILL)
        a.end()
    for path in reports("out"):
        run(PROFCHECK, "otlp", path)


def test_native_names_can_be_left_to_who_has_the_files():
    """Such a frame is its address, in a file that has an id; names that only the host can make, of scripts and of the kernel, are there."""
    symbols = sorted((int(address, 16), name) for address, kind, name in (line.split(maxsplit=2) for line in run("nm", PROFCHECK).stdout.splitlines()
                                                                         if not line.startswith(" ")) if kind in "Tt")
    stacks = set()
    with agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "199", "--symbolize", "none", "-v",
               XDG_CACHE_HOME=os.path.abspath("cache"), **EVERY_RUNTIME) as a, workload(PROFCHECK, "burn", "600"), workload("/usr/bin/python3", "-c", SPINNER):
        while not (re.search(r"spin_alone;.*_\[k\]", "\n".join(stacks)) and any("[profcheck+0x" in stack for stack in stacks)):
            a.wait_for(r"report \d+: ")
            stacks.update(run(PROFCHECK, "otlp", reports("out")[-1]).stdout.split("\n"))
        a.end()
    of_go = [stack.rsplit(" ", 1)[0].split(";")[1:] for stack in stacks if stack.startswith("profcheck;")]
    named = {frame for frames in of_go for frame in frames if not re.fullmatch(r"\[[^]]+\]|.*_\[k\]", frame)}
    check(of_go and not named, named)
    functions = {symbols[bisect.bisect(symbols, (int(address, 16), "\x7f")) - 1][1]
                 for frames in of_go for frame in frames for address in re.findall(r"^\[profcheck\+0x([0-9a-f]+)\]$", frame)}
    check("main.spin" in functions, functions)
    check(not os.path.exists("cache"), "no symbols are kept")


def test_resources_say_what_processes_and_the_agent_were_told():
    told = {"SHELF": "a=b, c", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=prod%20eu,process.pid=1,host.name=evil,service.name=other,zone=theirs",
            "OTEL_SERVICE_NAME": "shop"}
    ours = {"OTEL_RESOURCE_ATTRIBUTES": "host.id=node7,zone=ours,k8s.cluster.name=c", "OTEL_SERVICE_NAME": "all"}
    found = {}
    with workload(PROFCHECK, "burn", "600", env=dict(os.environ, **told)) as shop, \
            workload(PROFCHECK, "burn", "600", env=dict(os.environ, OTEL_RESOURCE_ATTRIBUTES="service.name=kiosk,broken")) as broken, \
            agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "199", "-env-vars", "SHELF,HOME,NONE", "-v",
                  **ours) as a:
        while not {shop.pid, broken.pid} <= set(found):
            a.wait_for(r"report \d+: ")
            run(PROFCHECK, "otlp", reports("out")[-1])
            found.update((r["attributes"].get("process.pid"), r["attributes"]) for r in resources(reports("out")[-1]))
        a.end()
    for pid, wanted in ((shop.pid, {"service.name": "shop", "deployment.environment.name": "prod eu", "zone": "theirs",
                                "process.environment_variable.SHELF": "a=b, c", "process.environment_variable.NONE": None}),
                        (broken.pid, {"service.name": "all", "zone": "ours"})):
        wanted |= {"k8s.cluster.name": "c", "host.id": "node7", "host.name": os.uname().nodename}
        check({key: found[pid].get(key) for key in wanted} == wanted, found[pid])
    check("deployment.environment.name" not in found[broken.pid], found[broken.pid])


# OTEP 4719: a mapping called OTEL_CTX with a header that points to a message; another name for each line on standard input.
PUBLISHER = """
import ctypes, mmap, os, struct, sys, threading

def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data

def pair(key, value):
    return field(1, field(1, key) + field(2, field(1, value)))

def spin():
    while True:
        pass

fd = os.memfd_create("OTEL_CTX")
os.ftruncate(fd, 4096)
context = mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE)
at = 1
threading.Thread(target=spin, daemon=True).start()
for line in sys.stdin:
    message = field(1, pair(b"service.name", line.strip().encode()) + pair(b"service.instance.id", b"i=7") + pair(b"process.pid", b"1"))
    kept = ctypes.create_string_buffer(message)
    context[16:24] = bytes(8)
    context[:16] = b"OTEL_CTX" + struct.pack("=II", 2, len(message))
    context[24:32] = struct.pack("=Q", ctypes.addressof(kept))
    context[16:24] = struct.pack("=Q", at)
    at += 1
"""


def test_what_a_process_publishes_of_itself_is_its_resource():
    """It does so when it likes: after its first samples, and again."""
    with agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "99", "-v") as a, \
            workload(sys.executable, "-c", PUBLISHER, stdin=subprocess.PIPE, text=True,
                     env=dict(os.environ, OTEL_SERVICE_NAME="environment", OTEL_RESOURCE_ATTRIBUTES="zone=theirs")) as publisher:
        a.wait_for("the agent samples")
        for name, zone, instance in (("environment", "theirs", None), ("shop \u00e4", None, "i=7"), ("kiosk", None, "i=7")):
            if instance:
                publisher.stdin.write(name + "\n")
                publisher.stdin.flush()
            seen = None
            while seen != (name, zone, instance):
                a.wait_for(r"report \d+: ")
                run(PROFCHECK, "otlp", reports("out")[-1])
                for r in resources(reports("out")[-1]):
                    if r["attributes"]["process.pid"] == publisher.pid:
                        seen = tuple(r["attributes"].get(key) for key in ("service.name", "zone", "service.instance.id"))
        a.end()


@contextlib.contextmanager
def process_of_a_server(program, *args, **options):
    """One that lives by a file system in "mount" whose server does not answer any more."""
    for name in ("file_server", "absent_page"):
        run("gcc", "-O2", "-D_GNU_SOURCE", os.path.join(HOSTILE, name + ".c"), "-o", name)
    os.chmod(".", 0o755)
    for name in ("mount", "source"):
        os.mkdir(name)
    shutil.copy("absent_page", "source/file")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as ends:
        server = subprocess.Popen(["./file_server", "mount", "source"], **pipes)
        ends.callback(subprocess.run, ["umount", "-l", "mount"], check=False)
        ends.callback(guard.Guard(server).end)
        if server.stdout.readline() != "ok\n":
            raise Skip("no FUSE here")
        process = subprocess.Popen([program, *args], **pipes, **options)
        ends.callback(guard.Guard(process).end)
        check(process.stdout.readline() == "mapped\n", "it is there")
        server.stdin.write("h\n")
        server.stdin.flush()
        check(server.stdout.readline() == "ok\n", "it hangs")
        process.stdin.write("\n")
        process.stdin.flush()
        yield process, server


def test_a_page_that_never_comes_holds_nobody_up():
    """Whoever reads it waits until its server has gone, and not even SIGKILL ends that."""
    with process_of_a_server("./absent_page", "mount/file", user=65534) as (process, server), burn() as other:
        with agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "199", "-v") as a:
            a.wait_for("the agent samples")
            check(server.stdout.readline() == "asked\n", "somebody asks for the page")
            a.wait_for(f"process {process.pid} has memory that .* does not answer")
            # On a busy machine one of them may have no CPU during a report.
            seen = 0
            for _ in range(40):
                a.wait_for(r"report \d+: ")
                samples = {r["attributes"]["process.pid"]: r["samples"] for r in resources(reports("out")[-1])}
                seen += samples.get(other.pid, 0) > 0 and samples.get(process.pid, 0) > 0
                if seen == 2:
                    break
            check(seen == 2, samples)
            a.end()


IN_ITS_ROOT = """
import os
os.chroot("mount")
print("mapped", flush=True)
input()
while True:
    pass
"""


def test_a_root_that_never_answers_holds_nobody_up():
    """Such as a container's whose server has gone: nobody asks it whose users these are, nor for debug files."""
    with process_of_a_server("/usr/bin/python3", "-c", IN_ITS_ROOT) as (process, _):
        # What it said of its root before counts for a second.
        time.sleep(1.5)
        with agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "199", "-v",
                   XDG_CACHE_HOME=os.path.abspath("cache")) as a:
            a.wait_for("the agent samples")
            seen = None
            while not seen:
                a.wait_for(r"report \d+: ")
                seen = next((r["attributes"] for r in resources(reports("out")[-1]) if r["attributes"]["process.pid"] == process.pid), None)
            a.end()
    check("process.owner" not in seen and seen["process.command"] == "/usr/bin/python3", seen)


@contextlib.contextmanager
def cgroup(path):
    """A cgroup of that path, in whichever hierarchy one can be made."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        fields = [line.split() for line in mounts]
    roots = [mount[1] for mount in fields if mount[2] == "cgroup2"] + [mount[1] for mount in fields if mount[2] == "cgroup" and
                                                                       {"pids", "name=systemd"} & set(mount[3].split(","))]
    with contextlib.ExitStack() as stack:
        for root in roots:
            try:
                for part in itertools.accumulate(path.split("/"), os.path.join):
                    if not os.path.isdir(made := f"{root}/{part}"):
                        os.mkdir(made)
                        stack.callback(os.rmdir, made)
            except OSError:
                stack.pop_all().close()
                continue
            yield made
            return
        raise Skip("no cgroup can be made")


SPIN_THERE = 'echo $$ > "$0"/cgroup.procs && exec -a "./spin there" perl -e "while (1) {}"'


def test_samples_say_in_which_container_thread_and_on_which_cpu():
    pod, container = str(uuid.uuid4()), secrets.token_hex(32)
    slices = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod.replace('-', '_')}.slice/cri-containerd-{container}.scope"
    cpu = max(os.sched_getaffinity(0))
    found = None
    with cgroup(slices) as path, agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "99", "-v") as a:
        a.wait_for("the agent samples")
        with workload("taskset", "-c", cpu, "bash", "-c", SPIN_THERE, path) as process:
            while not found:
                a.wait_for(r"report \d+: ")
                found = [r for r in places(reports("out")[-1]) if r["attributes"]["process.pid"] == process.pid and r["threads"] == ["perl"]]
        a.end()
    attributes = found[0]["attributes"]
    wanted = {"container.id": container, "k8s.pod.uid": pod, "process.command": "./spin there", "process.owner": pwd.getpwuid(os.geteuid()).pw_name,
              "process.user.id": os.geteuid(), "process.parent_pid": os.getpid()}
    check({key: attributes.get(key) for key in wanted} == wanted, attributes)
    check(not {"process.command_line", "process.command_args"} & set(attributes), "arguments have secrets in them")
    check(found[0]["tids"] == [str(process.pid)] and found[0]["cpus"] == [str(cpu)], found[0])


def test_cuts_follow_each_other():
    """What was on its way when a cut began makes it begin earlier; it never reaches into the one before that."""
    with agent("--output-dir", "out", "--reporter-interval", "0.2", "--samples-per-second", "499", "-v") as a, \
            workload(PROFCHECK, "burn", "600"):
        a.wait_for(r"report \d+: ", times=10)
        a.end()
    starts = [resources(path)[0]["time"] for path in reports("out")]
    check(starts == sorted(starts), starts)


def test_a_large_report_is_several_files():
    # Each sample has its time, of 8 bytes: so many are more than that on a machine that does nothing else.
    with agent("--output-dir", "out", "--reporter-interval", "1", "--samples-per-second", "1999", "--otlp-request-size", "16k", "-v") as a, \
            workload(PROFCHECK, "burn", "600"), workload(PROFCHECK, "burn", "600"):
        a.wait_for("the agent samples")
        a.wait_for(r"report \d+: ", times=3)
        said = a.end()
    counts = re.findall(r"state: \d+ s, (\d+) samples, ", said)[-1]
    found = [(path, r) for path in reports("out") for r in resources(path)]
    check(sum(r["samples"] for _, r in found) == int(counts), f"{counts} samples were taken")
    check(len({path for path, _ in found}) > len({r["time"] for _, r in found}), "no report is several files")
    for path in {path for path, _ in found}:
        run(PROFCHECK, "otlp", path)
        check(os.path.getsize(path) <= 16384, f"{path} has {os.path.getsize(path)} bytes")


def test_reports_can_be_pprof_files():
    """With all that the cuts had, of each source: read by ours and by Google's library."""
    with workload("/usr/bin/python3", "-c", SPINNER) as spinner, \
            agent("--output-dir", "out", "--output-format", "pprof", "--reporter-interval", "0.3", "--samples-per-second", "97", "--include",
                  f"pid={spinner.pid}", "--event", "context-switches", "-v", **EVERY_RUNTIME) as a:
        a.wait_for("the agent samples at 97 Hz")
        functions = set()
        # Its name needs no table that is built when the machine has time for that.
        while "spin_alone" not in functions:
            a.wait_for(r"report \d+: ")
            last = sorted(name for name in os.listdir("out") if not name.startswith("."))[-1]
            functions.update(name for sample in pprof_file.read(f"out/{last}") for name in sample.names)
        said = a.end()
    names = sorted(os.listdir("out"))
    check(names and all(re.fullmatch(r"\d{12}-\d{8}T\d{6}Z\.pb\.gz", name) for name in names), names)
    samples = [sample for name in names for sample in pprof_file.read(f"out/{name}")]
    counts = re.findall(r"state: \d+ s, (\d+) samples, ", said)[-1]
    check(sum(sample.values[0] for sample in samples) == int(counts), f"{counts} samples were taken")
    check({sample.labels["pid"] for sample in samples} == {spinner.pid}, "others are in it")
    check(any(sample.values[-1] for sample in samples), "no switch is in it")
    for name in names:
        run(PROFCHECK, "pprof", f"out/{name}")
    done = run(SONDE, "agent", "--output-format", "pprof", "--collection-agent", "127.0.0.1:1", status=2)
    check("--output-format pprof is for files of --output-dir" in done.stderr and done.stderr.count("\n") == 1, done)


def test_a_stop_of_the_agent_is_one_long_interval():
    """The kernel goes on meanwhile: what it took is in one report, which is as long as the stop, with its times in it."""
    with agent("--output-dir", "out", "--reporter-interval", "0.2", "--samples-per-second", "49", "-v") as a, \
            workload(PROFCHECK, "burn", "600") as known:
        a.wait_for(r"report \d+: ")
        while not any(r["attributes"]["process.pid"] == known.pid for r in resources(reports("out")[-1])):
            a.wait_for(r"report \d+: ")
        a.send(signal.SIGSTOP)
        begin = time.time()
        # It ends when it has had so much of a CPU. The kernel knows nothing of it, and sends copies of its stack: some find no room.
        run(PROFCHECK, "burn", "1.5")
        end = time.time()
        a.send(signal.SIGCONT)
        a.wait_for(r"report \d+: ", times=3)
        said = a.end()
        after = time.time()
    counts = re.findall(r"state: \d+ s, (\d+) samples, ", said)[-1]
    found = [r for path in reports("out") for r in resources(path)]
    check(sum(r["samples"] for r in found) == int(counts), f"{counts} were taken")
    longest = max((r for r in found if r["attributes"]["process.pid"] == known.pid), key=lambda r: r["duration"])
    check(longest["duration"] / 1e9 > 0.8 * (end - begin) and longest["samples"] > 5, f"a stop of {end - begin} s: {longest}")
    # Its own times, not only those that the report says it has. On a busy machine it is late to the stop's begin and from its end.
    first, last = (at / 1e9 for at in longest["times"])
    middle = (begin + end) / 2
    check(first < middle < last < after and last - first > 0.6 * (end - begin), f"[{first}, {last}] is not [{begin}, {end}]")
    for path in reports("out"):
        run(PROFCHECK, "otlp", path)


def test_sleeps_are_a_profile_of_their_own():
    nanoseconds = 0
    with agent("--output-dir", "out", "--reporter-interval", "0.5", "-off-cpu-threshold", "1", "-v") as a:
        a.wait_for("the agent samples at ")
        with workload("sh", "-c", "while :; do sleep 0.2; done"):
            while nanoseconds < 190e6:
                a.wait_for(r"report \d+: ", times=2)
                path = reports("out")[-1]
                run(PROFCHECK, "otlp", path)
                folded = run(SONDE, "convert", path, "-", "-f", "folded", "--type", "off_cpu").stdout
                found = re.findall(r"^sleep;.*nanosleep.*;__schedule[^;]*_\[k\] (\d+)$", folded, re.MULTILINE)
                nanoseconds = sum(map(int, found))
        a.end()


def test_sleeps_say_who_ended_them():
    """A shell's wait is ended by its child, at that one's end; the child's sleep by a timer."""
    wanted = {r"^sh;.*wait4.*;\[woken by\] sleep;try_to_wake_up_\[k\];.*do_exit", r"^sleep;.*nanosleep.*;\[woken by an interrupt\] "}
    with agent("--output-dir", "out", "--reporter-interval", "0.5", "-off-cpu-threshold", "1", "--off-cpu-waker", "-v") as a:
        a.wait_for("the agent samples at ")
        with workload("sh", "-c", "while :; do sleep 0.2; done"):
            while wanted:
                a.wait_for(r"report \d+: ", times=2)
                path = reports("out")[-1]
                run(PROFCHECK, "otlp", path)
                folded = run(SONDE, "convert", path, "-", "-f", "folded", "--type", "off_cpu").stdout
                wanted = {pattern for pattern in wanted if not re.search(pattern, folded, re.MULTILINE)}
        a.end()


CALLS = 'import os; open("/proc/self/comm", "w").write("calls"); [os.getppid() for _ in range(50)]; x = bytearray(4096 * 300)'


def test_probes_and_events_are_types_of_their_own():
    """
    Each call of a function, each system call, and page faults (how many depends on the size of folios) are in the reports. Of one
    process: where another one is interrupted in a probe's program, the next one there finds no room, and is counted as lost.
    """
    types = {"uprobe:getppid": 0, "tracepoint:syscalls:sys_enter_getppid": 0, "page-faults": 0}
    with agent("--output-dir", "out", "--reporter-interval", "0.3", "--probe", "uprobe:libc.so.6:getppid", "--probe",
               "tracepoint:syscalls:sys_enter_getppid", "--event", "page-faults", "--include", "comm=calls", "-v") as a:
        a.wait_for("the agent samples at ")
        run("/usr/bin/python3", "-c", CALLS)
        a.end()
    for path in reports("out"):
        run(PROFCHECK, "otlp", path)
        found = {kind for r in places(path) for kind in r["types"]}
        for kind in found & set(types):
            folded = run(SONDE, "convert", path, "-", "-f", "folded", "--type", kind).stdout
            types[kind] += sum(map(int, re.findall(r"^calls;.* (\d+)$", folded, re.MULTILINE)))
    check(types["uprobe:getppid"] == types["tracepoint:syscalls:sys_enter_getppid"] == 50 and types["page-faults"] >= 20, types)


def test_the_state_is_told_when_asked():
    with agent("--output-dir", "out", "--reporter-interval", "600") as a:
        a.wait_for("the agent samples at 20 Hz and reports every 600 s into 'out'")
        a.send(signal.SIGUSR1)
        a.wait_for(r"state: \d+ s, \d+ samples, [\d.]+ % complete, \d+ lost; CPU time")
        a.wait_for(r"state: 0 reports with 0 samples, 0 kB, were delivered")
        # What there was is written all the same.
        with workload(PROFCHECK, "burn", "600"):
            deadline = os.times()[4] + TIMEOUT
            while True:
                a.send(signal.SIGUSR1)
                if int(a.wait_for(r"state: \d+ s, (\d+) samples")[1]) > 10:
                    break
                check(os.times()[4] < deadline, "no samples come")
        check(re.search(r"1 reports with \d+ samples, .* 0 with 0 samples were not, (.|\n)*: 1 files", a.end(signal.SIGINT)), a.lines)


def test_the_service_manager_is_told():
    """As systemd's Type=notify with a watchdog has it; by path and by abstract name."""
    for name, address in ((os.path.abspath("notify"), os.path.abspath("notify")), (f"@sonde-{os.getpid()}", f"\0sonde-{os.getpid()}")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(address)
            manager.settimeout(TIMEOUT)
            with agent("--output-dir", "out", NOTIFY_SOCKET=name, WATCHDOG_USEC="200000") as a:
                said = [manager.recv(100) for _ in range(3)]
                check(said == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"], said)
                check("the agent samples" in a.wait_for("the agent samples").string, "it is ready when it samples")
                a.send(signal.SIGTERM)
                while (last := manager.recv(100)) == b"WATCHDOG=1":
                    pass
                check(last == b"STOPPING=1", last)
                a.end()
    with agent("--output-dir", "out", NOTIFY_SOCKET="nowhere", WATCHDOG_USEC="1") as a:
        a.wait_for("cannot tell the service manager at 'nowhere': Invalid argument")
        a.wait_for("the agent samples")
        a.end()


def test_what_it_says_can_be_json():
    """All of it, wherever that is asked for; what is ignored is said once."""
    conf = "output-dir = out\nlog-format = json\nmonitor-interval = %s\n"
    with open("conf", "w", encoding="ascii") as file:
        file.write(conf % "5s")
    with agent("--config", "conf", "-v", SONDE_SAMPLES_PER_SECND="3") as a:
        a.wait_for('"message":"the variable SONDE_SAMPLES_PER_SECND is of no option; did you mean')
        a.wait_for('"message":"ignored, since there is no need of it here: monitor-interval"')
        a.wait_for('"message":"the agent samples at 20 Hz')
        a.send(signal.SIGUSR1)
        a.wait_for('"message":"state: ')
        with open("conf", "w", encoding="ascii") as file:
            file.write(conf % "6s")
        a.send(signal.SIGHUP)
        a.wait_for("was read again, changed: nothing")
        said = a.end()
    check(not re.search("new start|ignored|SECND", said.partition("state: ")[2]), said)
    lines = [json.loads(line) for line in a.lines]
    check(all(set(line) == {"time", "level", "message"} for line in lines), lines)
    check({"info", "debug"} <= {line["level"] for line in lines} <= {"error", "warning", "info", "debug"}, lines)
    check(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines), lines)
    done = run(SONDE, "agent", "--log-format", "json", "--output-dir", "out", "--otlp-endpoint", "x", "--resource-attributes", 'a"', status=2)
    check(json.loads(done.stderr)["level"] == "error", done)


DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2
SYS_PTRACE, SYS_ADMIN, SYS_NICE, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE = 19, 21, 23, 34, 38, 39, 40


def status_of(path):
    with open(f"{path}/status", encoding="utf-8", errors="replace") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    held = {name: {bit for bit in range(64) if int(fields[name], 16) >> bit & 1} for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")}
    return held, fields["NoNewPrivs"], fields["Seccomp"]


def test_it_gives_up_what_it_does_not_need():
    """And sees what it needs that for: a runtime, an executable without a name, and one that a child has to copy, that come later."""
    needed = {DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN, SYS_NICE, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE}
    with agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "199", "-v", **EVERY_RUNTIME) as a:
        a.wait_for("the agent samples")
        a.wait_for(r"report \d+: ")
        threads = os.listdir(f"/proc/{a.process.pid}/task")
        check(len(threads) == 2, threads)
        for tid in threads:
            held, no_new, seccomp = status_of(f"/proc/{a.process.pid}/task/{tid}")
            check(no_new == "1" and seccomp == "2", (no_new, seccomp))
            check(not held["CapInh"] and not held["CapAmb"], held)
            allowed = needed if int(tid) == a.process.pid else {DAC_OVERRIDE, DAC_READ_SEARCH}
            for name in ("CapEff", "CapPrm", "CapBnd"):
                check(held[name] <= allowed, f"thread {tid} has {name} {held[name] - allowed}")
        shutil.copy(PROFCHECK, "gone")
        # Of a file system that is mounted nowhere any more nobody knows whether it has a server (docs/processes.md).
        os.mkdir("away")
        run("mount", "-t", "tmpfs", "none", "away")
        with contextlib.ExitStack() as stack:
            try:
                shutil.copy(PROFCHECK, "away")
                away = stack.enter_context(workload("./away/profcheck", "burn", "600"))
            finally:
                run("umount", "-l", "away")
            gone = stack.enter_context(workload("./gone", "burn", "600"))
            python = stack.enter_context(workload(sys.executable, "-c", "def later():\n  while True: pass\nlater()"))
            os.unlink("gone")
            wanted = {(gone.pid, "main.spin"), (away.pid, "main.spin"), (python.pid, "later")}
            seen = set()
            while not wanted <= seen:
                a.wait_for(r"report \d+: ")
                seen |= {(r["attributes"]["process.pid"], name) for r in places(reports("out")[-1]) for name in r["functions"]}
        a.end()
    with agent("--output-dir", "out", "--no-sandbox") as a:
        a.wait_for("the agent samples")
        held, no_new, seccomp = status_of(f"/proc/{a.process.pid}")
        before = status_of("/proc/self")
        check((held, no_new, seccomp) == before, f"{held} {no_new} {seccomp}, not {before}")
        a.end()


def test_it_ends_in_order_while_it_begins():
    with agent("--output-dir", "out") as a:
        # It has blocked its signals as soon as the folder is there, which comes second.
        while not os.path.isdir("out"):
            check(a.process.poll() is None, "it ended")
        a.end()


def test_what_cannot_be_written_is_said_once_and_counted():
    os.mkdir("out")
    run("mount", "-t", "tmpfs", "-o", "size=8k", "none", "out")
    try:
        with agent("--output-dir", "out", "--reporter-interval", "0.2", "--samples-per-second", "499", "-v") as a, \
                workload(PROFCHECK, "burn", "600"):
            a.wait_for("cannot write a report into 'out': 1 lost so far, with [0-9]+ samples: No space left")
            lost = 1
            while lost < 4:
                a.send(signal.SIGUSR1)
                lost = int(a.wait_for(r"were delivered, (\d+) with \d+ samples were not")[1])
            run("mount", "-o", "remount,size=64m", "out")
            a.wait_for("reports can be written into 'out' again")
            said = a.end()
        check(said.count("cannot write") == 1, said)
        check(not [name for name in os.listdir("out") if name.startswith(".")], os.listdir("out"))
        for path in reports("out"):
            run(PROFCHECK, "otlp", path)
    finally:
        run("umount", "-l", "out")


def test_a_unit_file_of_the_opentelemetry_profiler_will_do():
    with open("conf", "w", encoding="ascii") as file:
        file.write("# ours\noutput-dir = out\nmonitor-interval = 5s\nreporter-interval = 1m\n")
    done = run(SONDE, "agent", "-config", "conf", "-samples-per-second=97", "-map-scale-factor", "2", "-no-kernel-version-check",
               "-print-config", env=dict(os.environ, SONDE_REPORTER_INTERVAL="250ms"))
    check(done.stderr == "sonde: ignored, since there is no need of it here: map-scale-factor, monitor-interval, "
                         "no-kernel-version-check\n", done.stderr)
    for words in ("# conf:2\noutput-dir = out\n", "# SONDE_REPORTER_INTERVAL\nreporter-interval = 250ms\n",
                  "# --samples-per-second\nsamples-per-second = 97\n", "# default\nmemory-limit = 80M\n"):
        check(words in done.stdout, done.stdout)
    # With nothing but the program's name changed: it has no commands. What others have as well says nothing.
    alone = ("-tracers=perl", "-config=conf", "-samples-per-second", "97", "-print-config")
    check(run(SONDE, *alone).stdout == run(SONDE, "agent", *alone).stdout, "without 'agent' it is another program")
    check(run(SONDE, "-version").stdout == run(SONDE, "--version").stdout, "-version")
    for args in ("-tracers", "perl"), ("--memory-limit", "64M", "--", "-config"):
        check("sonde: unknown option" in run(SONDE, *args, status=2).stderr, args)
    with open("printed", "w", encoding="utf-8") as file:
        file.write(done.stdout)
    with agent("-config", "printed") as a:
        a.wait_for("the agent samples at 97 Hz and reports every 0.25 s into 'out'")
        a.end()


def test_pinned_cpus_alone_are_sampled():
    """With a burning program on the first and one on the last."""
    cpus = sorted(os.sched_getaffinity(0))
    with workload("taskset", "-c", cpus[0], PROFCHECK, "burn", "600") as pinned, \
            workload("taskset", "-c", cpus[-1], PROFCHECK, "burn", "600") as other:
        while os.sched_getaffinity(other.pid) != {cpus[-1]}:
            time.sleep(0.01)
        with agent("--output-dir", "out", "--reporter-interval", "0.2", "--samples-per-second", "199", "-pin-cpu-ids", cpus[0],
                   "-v") as a:
            seen = set()
            a.wait_for("the agent samples")
            while pinned.pid not in seen:
                a.wait_for(r"report \d+: ")
                seen.update(r["attributes"]["process.pid"] for r in resources(reports("out")[-1]))
            a.end()
    for path in reports("out"):
        seen.update(r["attributes"]["process.pid"] for r in resources(path))
    check(len(cpus) == 1 or other.pid not in seen, f"{other.pid} runs on CPU {cpus[-1]}")


def drawn_of_seed(state):
    """What src/agent/probability.c makes of a seed."""
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield (state >> 16) % 100


def profiling_changes(said):
    return [(word == "on", int(begin), int(end))
            for word, begin, end in re.findall(r"the clocks were switched (on|off) from (\d+) to (\d+) ns", said)]


def test_probabilistic_profiling_is_on_in_chosen_intervals_alone():
    seed, slack_ns = 7, 20_000_000  # for the difference of both clocks within a report
    with agent("--output-dir", "out", "--reporter-interval", "0.1", "--samples-per-second", "199", "-probabilistic-threshold", "50",
               "-probabilistic-interval", "250ms", "--probabilistic-seed", seed, "-v") as a, workload(PROFCHECK, "burn", "600"):
        # It begins with one, so that all that was seen before the first change is in it.
        a.wait_for("probabilistic profiling: the CPUs are sampled from now on")
        a.wait_for("the agent samples")
        for _ in range(3):
            a.wait_for("the CPUs are not sampled")
            a.wait_for("the CPUs are sampled")
            a.wait_for(r"report \d+: ")
        a.wait_for("the clocks were switched off")
        # What comes after that is not judged: another interval may begin before it ends.
        said = "".join(a.lines)
        a.end()
    numbers = [int(number) for number in re.findall(r"profiling: (\d+) was drawn, the threshold is 50", said)]
    check(numbers == [number for number, _ in zip(drawn_of_seed(seed), numbers)], numbers)
    chosen = [number < 50 for number in numbers]
    check(chosen[0] and sum(a != b for a, b in zip(chosen, chosen[1:])) == len(profiling_changes(said)), said[-3000:])
    begins, ends = [0], []
    for on, begin, end in profiling_changes(said):
        if on:
            begins.append(begin - slack_ns)
        else:
            ends.append(end + slack_ns)
    seen = set()
    for path in reports("out"):
        run(PROFCHECK, "otlp", path)
        for r in resources(path):
            first, last = r["times"]
            if first > ends[-1]:
                continue
            where = [i for i, (begin, end) in enumerate(zip(begins, ends)) if begin <= first <= last <= end]
            check(len(where) == 1, f"{path}: [{first}, {last}] is in none of {list(zip(begins, ends))}")
            seen.update(where)
    check(len(seen) > 1, f"samples are in {seen} of {len(begins)}")


def test_a_threshold_of_zero_takes_nothing_and_a_hundred_all():
    with agent("--output-dir", "out", "--reporter-interval", "0.1", "--samples-per-second", "199", "-probabilistic-threshold", "0",
               "-probabilistic-interval", "100ms", "--event", "page-faults", "-v") as a, workload("sh", "-c", "while :; do /bin/true; done"):
        a.wait_for("the agent samples")
        a.wait_for(r"profiling: \d+ was drawn", times=4)
        said = a.end()
    check(not os.listdir("out") and re.search(r"state: \d+ s, 0 samples", said) and "state: 0 reports with 0 samples" in said, said[-2000:])
    with agent("--output-dir", "out", "--reporter-interval", "0.1", "--samples-per-second", "199", "-probabilistic-threshold", "100", "-v") as a, \
            workload(PROFCHECK, "burn", "600"):
        a.wait_for(r"report \d+: ")
        check("probabilistic" not in a.end(), a.lines)


# Each flag of the OpenTelemetry profiler, as its unit files may have it, and what becomes of it here: a line, or what is said of it.
THEIR_FLAGS = (
    ("-bpf-log-level=0", None), ("-bpffs-root=/sys/fs/bpf/", None), ("-clock-sync-interval=3m", None),
    ("-collection-agent=127.0.0.1:11000", "collection-agent = 127.0.0.1:11000"), ("-disable-tls", "disable-tls = true"),
    ("-env-vars=A,B", "env-vars = A,B"), ("-filter-min-process-age=1m30s", "filter-min-process-age = 1m30s"), ("-frame-cache-size=16384", None),
    ("-map-scale-factor=0", None), ("-monitor-interval=5s", None), ("-no-kernel-version-check", None), ("-obi-process-ctx", None),
    ("-off-cpu-threshold=0.5", "off-cpu-threshold = 0.5"), ("-pprof=127.0.0.1:6060", None),
    ("-reporter-interval=5s", "reporter-interval = 5s"),
    ("-pin-cpu-ids=0-15,20", "pin-cpu-ids = 0-15,20"), ("-probabilistic-interval=1m0s", "probabilistic-interval = 1m0s"), ("-probabilistic-threshold=100", "probabilistic-threshold = 100"),
    ("-reporter-jitter=0.2", "reporter-jitter = 0.2"), ("-samples-per-second=20", "samples-per-second = 20"), ("-send-error-frames", None),
    ("-send-idle-frames", "send-idle-frames = true"), ("-tracers=all", "tracers = all"), ("-verbose", "verbose = true"))
# Other names of these: what is shown is that name, with the value that was said last.
THEIR_OTHER_NAMES = (("-probe-link=uprobe:/bin/true:main", "probe = uprobe:/bin/true:main"), ("-t=perl,php", "tracers = perl,php"), ("-v=true", "verbose = true"), ("-include-env-vars=A,B", "env-vars = A,B"))
# What is empty is as not given: their own default is that.
THEIR_EMPTY_ONES = (("-env-vars=", "env-vars = "), ("-include-env-vars=", "env-vars = "), ("-pin-cpu-ids=", "pin-cpu-ids = "), ("-tracers=", "tracers = all"),
                    ("-t=", "tracers = all"), ("-probe-link=", "# probe = "), ("-collection-agent=", "collection-agent = "))


def test_each_flag_of_the_opentelemetry_profiler_is_known():
    ignored = ", ".join(sorted(flag[1:].split("=")[0] for flag, line in THEIR_FLAGS if line is None))
    pairs = [flag[1:].partition("=")[::2] for flag, _ in THEIR_FLAGS]
    with open("theirs", "w", encoding="ascii") as file:
        file.writelines(f"{name} {value}\n" if value else f"{name}\n" for name, value in pairs)
    variables = {f"OTEL_PROFILING_AGENT_{name.upper().replace('-', '_')}": value or "true" for name, value in pairs}
    for args, env, source in (([flag for flag, _ in THEIR_FLAGS], {}, "--{}"),
                              ([arg for flag, _ in THEIR_FLAGS for arg in f"-{flag}".split("=") if arg != "true"], {}, "--{}"),
                              (["-config", "theirs"], {}, "theirs:"), ([], variables, "OTEL_PROFILING_AGENT_")):
        done = run(SONDE, "agent", *args, "-print-config", env=dict(os.environ, **env))
        said = re.fullmatch("sonde: ignored, since there is no need of it here: (.*)\n", done.stderr)
        check(said and ", ".join(sorted(said[1].split(", "))) == ignored, done.stderr)
        for name, line in ((flag[1:].split("=")[0], line) for flag, line in THEIR_FLAGS):
            found = re.search(f"^# (.*)\n{re.escape(line)}$", done.stdout, re.MULTILINE) if line else True
            check(found and (not line or found[1].startswith(source.format(name))), f"{name} from {source}: {done.stdout}")
    for flag, line in THEIR_OTHER_NAMES:
        name, _, value = flag[1:].partition("=")
        shown = run(SONDE, "agent", "-tracers=all", flag, "-print-config").stdout
        check(f"# --{name}\n{line}\n" in shown and f"\n{name} = " not in shown.replace(line, ""), f"{flag}: {shown}")
        with open("theirs", "w", encoding="ascii") as file:
            file.write(f"tracers all\n{name} {value}\n")
        shown = run(SONDE, "agent", "-config", "theirs", "-print-config").stdout
        check(f"# theirs:2\n{line}\n" in shown, f"{flag}: {shown}")
    for flag, line in THEIR_EMPTY_ONES:
        shown = run(SONDE, "agent", flag, "-print-config").stdout
        check(f"# -{flag[:-1]}\n{line}\n" in shown, f"{flag}: {shown}")
        with open("theirs", "w", encoding="ascii") as file:
            file.write(shown)
        again = run(SONDE, "agent", "-config", "theirs", "-print-config").stdout
        check(f"\n{line}\n" in again, f"{flag}, read again: {again}")
    done = run(SONDE, "agent", *(flag for flag, _ in THEIR_EMPTY_ONES), status=2)
    check("say where reports go" in done.stderr and done.stderr.count("\n") == 1, done)
    # As Go reads them, and as OpenTelemetry has variables: words in any case.
    done = run(SONDE, "agent", "-off-cpu-threshold=1e-3", "-reporter-interval=250000us", "-disable-tls=T", "-print-config",
               env=dict(os.environ, OTEL_EXPORTER_OTLP_INSECURE="True", OTEL_EXPORTER_OTLP_COMPRESSION="NONE"))
    for line in ("off-cpu-threshold = 1e-3", "reporter-interval = 250000us", "disable-tls = T", "otlp-insecure = True", "otlp-compression = NONE"):
        check(f"\n{line}\n" in done.stdout and not done.stderr, done)
    for flag, words in (("-version", "sonde "), ("-copyright", "Apache-2.0")):
        check(words in run(SONDE, "agent", flag).stdout, flag)


def test_runtimes_are_switched_off_by_name():
    """Of a process of each there are native frames alone, of others all."""
    with agent("--output-dir", "out", "--reporter-interval", "0.3", "--samples-per-second", "99", "-t", "dotnet,perl", "-v") as a, \
            workload(sys.executable, "-c", "def spin():\n  while True: pass\nspin()") as python, \
            workload("perl", "-e", "sub spin { while (1) {} } spin();") as perl:
        a.wait_for("ignored in --tracers, since there are no frames of it here: dotnet")
        a.wait_for("the agent samples")
        kinds = {python.pid: set(), perl.pid: set()}
        while "perl" not in kinds[perl.pid] or "native" not in kinds[python.pid]:
            a.wait_for(r"report \d+: ")
            for r in places(reports("out")[-1]):
                kinds.get(r["attributes"]["process.pid"], set()).update(r["kinds"])
        a.end()
    check("cpython" not in kinds[python.pid], kinds)
    done = run(SONDE, "agent", "--output-dir", "out", "--tracers", "pythonn", status=2)
    check("--tracers knows no 'pythonn' (did you mean 'python'?)" in done.stderr and done.stderr.count("\n") == 1, done)


def test_mistakes_are_said():
    os.symlink("/dev/null", "file")
    for args, status, words in (
            ([], 2, "--output-dir DIR"),
            (["--output-dir", "out", "--collection-agent", "127.0.0.1:1"], 2, "either --collection-agent or --output-dir, not both"),
            (["--output-dir", "out", "--samples-per-second", "999999999"], 1, "is more than this kernel takes; give "),
            (["--output-dir", "out", "more"], 2, "takes no arguments"),
            (["--config", "/dev/null"], 2, "--output-dir DIR"),
            (["--config", "missing"], 2, "cannot read the configuration 'missing'"),
            (["--output-dir", "file"], 1, "cannot write into 'file'"),
            (["--output-dir", "no/such"], 1, "cannot write into 'no/such'"),
            (["--output-dir", "out", "--samples-per-second", "0"], 2, "--samples-per-second takes a whole number"),
            (["--output-dir", "out", "--resource-attributes", "a"], 2, "--resource-attributes is not NAME=VALUE,...: a part of it is not name=value"),
            (["--output-dir", "out", "--memory-limit", "64M", "--queue-size", "28M"], 2,
             "--queue-size and 5 times --otlp-request-size are 33792 kB, more than half of --memory-limit, which is 65536 kB"),
            (["--output-dir", "out", "--pin-cpu-ids", "0-x"], 2, "--pin-cpu-ids takes numbers of CPUs such as 0-15,20, not '0-x'"),
            (["--output-dir", "out", "--pin-cpu-ids", "8000"], 2, "this machine has none of the CPUs 8000"),
            (["--output-dir", "out", "--output-dir-size", "1k"], 2, "--output-dir-size takes")):
        done = run(SONDE, "agent", *args, status=status)
        check(words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{args}: {done}")
        # What is printed is checked as at the start, but for what the start finds when it begins to work, and that there is a place to report to.
        printed = run(SONDE, "agent", *args, "--print-config", status=None)
        if "cannot write" not in words and words != "--output-dir DIR":
            check(printed.stderr == done.stderr and printed.returncode == status, f"{args}: {printed}")
        else:
            check(not printed.stderr and printed.stdout and not printed.returncode, f"{args}: {printed}")


def test_mistakes_in_a_file_and_in_variables_say_where():
    """Of each option with a text that is looked at when all are known."""
    for name, value, words in (
            ("include", "cmm=x", "has no key 'cmm'"), ("exclude", "pid=1; uid=x", "uid takes a user's number, or a name of /etc/passwd, not 'x'"),
            ("tracers", "pythonn", "knows no 'pythonn'"), ("t", "pythonn", "knows no 'pythonn'"), ("off-cpu", "2", "takes a number from 0 to 1"),
            ("probe", "uprob:x:y", "there is no type 'uprob'"), ("probe-link", "uprob:x:y", "there is no type 'uprob'"),
            ("event", "page-fault", "there is no event 'page-fault'"), ("pin-cpu-ids", "a", "takes numbers of CPUs"),
            ("otlp-schema", "1.7", "is 1.8, 1.9 or 1.10"), ("resource-attributes", "a", "is not NAME=VALUE,...")):
        with open("conf", "w", encoding="ascii") as file:
            file.write(f"output-dir = out\n\n{name} = {value}\n")
        done = run(SONDE, "agent", "--config", "conf", status=2)
        check(f"conf:3: {name}" in done.stderr and words in done.stderr and done.stderr.count("\n") == 1, done)
        printed = run(SONDE, "agent", "--config", "conf", "--print-config", status=2)
        check(printed.stderr == done.stderr and "# conf:3\n" in printed.stdout, printed)
        variable = "SONDE_" + name.upper().replace("-", "_")
        done = run(SONDE, "agent", "--output-dir", "out", env=dict(os.environ, **{variable: value}), status=2)
        check(variable in done.stderr and words in done.stderr and done.stderr.count("\n") == 1, done)
    for name, value, words in (("collection-agent", "ftp://x", "cannot be 'ftp://x'"), ("otlp-protocol", "soap", "is grpc or http/protobuf")):
        with open("conf", "w", encoding="ascii") as file:
            file.write(f"{name} = {value}\n")
        done = run(SONDE, "agent", "--config", "conf", *(["--otlp-endpoint", "http://x"] if name != "collection-agent" else []), status=2)
        check(f"conf:1: {name}" in done.stderr and words in done.stderr, done)
    with open("conf", "w", encoding="ascii") as file:
        file.write("output-dir = out\n")
    for args, env, words in ((["--collection-agent", "x:1"], {}, "either --collection-agent or conf:1: output-dir, not both"),
                             ([], {"SONDE_OFF_CPU": "1", "SONDE_OFF_CPU_THRESHOLD": "0.1"}, "either SONDE_OFF_CPU or SONDE_OFF_CPU_THRESHOLD, not both")):
        done = run(SONDE, "agent", "--config", "conf", *args, status=2, env=dict(os.environ, **env))
        check(words in done.stderr and done.stderr.count("\n") == 1, done)


def test_of_two_ways_to_ask_for_sleeps_the_nearer_counts():
    with open("conf", "w", encoding="ascii") as file:
        file.write("output-dir = out\noff-cpu = wrong\n")
    done = run(SONDE, "agent", "--config", "conf", "--off-cpu-threshold", "0.1", "--print-config")
    check("# conf:2, but --off-cpu-threshold goes before\n# off-cpu = wrong\n# --off-cpu-threshold\noff-cpu-threshold = 0.1\n" in done.stdout, done)
    with open("conf", "w", encoding="ascii") as file:
        file.write("output-dir = out\noff-cpu = 1\n")
    for threshold in ("1", "0"):
        shutil.rmtree("out", ignore_errors=True)
        with agent("--config", "conf", "--off-cpu-threshold", threshold, "--reporter-interval", "0.5", "-v") as a, \
                workload("sh", "-c", "while :; do sleep 0.001; done"):
            a.wait_for(r"report \d+: ", times=2)
            a.end()
        status = [run(SONDE, "convert", path, "-", "-f", "folded", "--type", "off_cpu", status=None).returncode for path in reports("out")]
        check((0 in status) == (threshold == "1"), f"{threshold}: {status}")


def test_of_two_names_of_the_collector_the_nearer_counts():
    with open("conf", "w", encoding="ascii") as file:
        file.write("collection-agent = not an address\n")
    done = run(SONDE, "agent", "--config", "conf", "--otlp-endpoint", "nor this", status=2)
    check("--otlp-endpoint cannot be 'nor this'" in done.stderr and done.stderr.count("\n") == 1, done)
    done = run(SONDE, "agent", "--config", "conf", "--otlp-endpoint", "http://x:4318", "--print-config")
    check("# conf:1, but --otlp-endpoint goes before\n# collection-agent = not an address\n" in done.stdout, done)
    # One that is empty is as not given.
    done = run(SONDE, "agent", "--otlp-endpoint", "nor this", "-collection-agent=", status=2)
    check("--otlp-endpoint cannot be 'nor this'" in done.stderr, done)
    done = run(SONDE, "agent", status=2, env=dict(os.environ, SONDE_COLLECTION_AGENT="x:1", SONDE_OTLP_ENDPOINT="http://x:4318"))
    check("say the same thing" in done.stderr, done)


if __name__ == "__main__":
    of_native_code()
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-agent-")))
