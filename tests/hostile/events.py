# SPDX-License-Identifier: Apache-2.0
"""The kernel's news of processes: what one program does to those that others depend on."""
import glob
import json
import os
import re
import signal
import struct
import subprocess

from hostile import FREQUENCY, VICTIM, wait_until
from modes import burnt

def table_of_processes(recorder):
    """The number of the recorder's BPF map `processes`."""
    for path in glob.glob("/proc/%d/fdinfo/*" % recorder.process.pid):
        with open(path, encoding="ascii", errors="replace") as f:
            number = re.search(r"map_id:\s+(\d+)", f.read())
        if number:
            shown = subprocess.run(["bpftool", "-j", "map", "show", "id", number[1]], capture_output=True, check=True)
            if json.loads(shown.stdout)["name"] == "processes":
                return number[1]
    raise AssertionError("sonde has no map of processes")


def entry(table, pid):
    """What the kernel walks a process by; None: it has no entry."""
    key = ["0x%02x" % b for b in struct.pack("<I", pid)]
    done = subprocess.run(["bpftool", "map", "lookup", "id", table, "key", *key], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return None if done.returncode else done.stdout


def attack_lost_fork(arena):
    """
    The fork of a victim is not heard of, as the rings are full (sonde stands still, so that they are for certain). The child never
    executes a program: it is walked by what the kernel copied from its parent, until that is given up; and then?
    """
    fork_unseen = arena.program("fork_unseen")
    arena.program("event_storm")
    recorder = arena.record("64M", "--tracers", "all")
    parent = arena.start([fork_unseen, "1"], VICTIM, stdout=subprocess.PIPE)
    burnt(parent.pid, 0.2)
    recorder.process.send_signal(signal.SIGSTOP)
    storm = arena.attack("event_storm", until_line=True)
    parent.send_signal(signal.SIGUSR1)
    child = int(parent.stdout.readline())
    arena.end_now(storm)
    table = table_of_processes(recorder)
    copied = entry(table, child)
    recorder.process.send_signal(signal.SIGCONT)
    if not copied:
        return ["the child has no entry: the test shows nothing"], None
    wait_until("an entry of the child's own in the kernel's table", lambda: entry(table, child) not in (None, copied))
    os.kill(child, signal.SIGUSR2)
    wait_until("the child's end", lambda: not os.path.exists("/proc/%d" % child))
    wait_until("the end of that entry", lambda: not entry(table, child))
    problems = []
    recording = arena.end()
    found, note = arena.judge(recording=recording)
    stacks = [s for s in recording.stacks or [] if s.comm == "unseen-other"]
    whole = sum(s.count for s in stacks if not s.reason and s.user[-3:] == ("other_outer", "middle", "leaf"))
    if whole < 0.8 * FREQUENCY:
        problems.append("%d of %d samples of the child are complete: %s" % (whole, sum(s.count for s in stacks), recording.lost()))
    if not recording.lost().get("side_band"):
        problems.append("no event was lost: the test shows nothing")
    return problems + found, "%d samples of the child; %s" % (whole, note)


def generation(table, pid):
    """Of the mappings by which the kernel walks a process."""
    found = entry(table, pid)
    return json.loads(found)["value"]["generation"] if found else None


def attack_storm(arena):
    """
    The kernel drops news again and again (sonde stands still, so that it must). Nothing has changed for those that run on: they
    are looked at, and the kernel goes on walking them by what it has.
    """
    arena.program("event_storm")
    recorder = arena.record("64M", "--tracers", "all")
    victims = [arena.start_victim(seconds=600).process, arena.start_python_victim(seconds=600).process]
    storm = arena.attack("event_storm", until_line=True)
    table, shown = table_of_processes(recorder), []
    for i in range(1, 6):
        recorder.process.send_signal(signal.SIGSTOP)
        storm.send_signal(signal.SIGUSR1)
        storm.stdout.readline()
        recorder.process.send_signal(signal.SIGCONT)
        for victim in victims:
            arena.wait_until_burnt(victim, i * 0.1)
        shown.append([generation(table, victim.pid) for victim in victims])
    arena.end_now(storm)
    for victim in victims:
        victim.kill()
    arena.wait_for_victims()
    recording = arena.end()
    problems, note = arena.judge(delivered=0.8, complete=80.0, recording=recording)
    # What events told of a program's beginning may be less than what is read for the first time.
    if shown[-1] != shown[1]:
        problems.append("the victims were shown anew: generations %s" % shown)
    if not recording.lost().get("side_band"):
        problems.append("no event was lost: the test shows nothing")
    return problems, "%s; %s; generations %s" % (note, recording.lost(), shown)


def attack_children(arena):
    """One program that is sampled has more children that sleep than the kernel's table of processes has places. The victims begin later."""
    arena.program("many_children")
    recorder = arena.record("64M", "--tracers", "all")
    attacker = arena.attack("many_children", 10000)
    arena.wait_until_burnt(attacker, 0.2)
    table = table_of_processes(recorder)
    wait_until("an entry of the attacker", lambda: entry(table, attacker.pid))
    attacker.send_signal(signal.SIGUSR1)
    attacker.stdout.readline()
    victims = [arena.start_victim(seconds=600), arena.start_python_victim(seconds=600)]
    for victim in victims:
        wait_until("an entry of %s" % victim.comm, lambda v=victim: entry(table, v.process.pid))
    for victim in victims:
        arena.wait_until_burnt(victim.process, 1)
        victim.process.kill()
    arena.wait_for_victims()
    return arena.judge()


def attack_sleepers(arena):
    """More threads of one user sleep than there is room for. The sleeps of another one's, which begins then, are taken."""
    with open("/proc/loadavg", encoding="ascii") as f:
        nr = max(9000, 3 * int(f.read().split()[3].partition("/")[2]))
    arena.program("many_sleepers")
    arena.record("64M", "--off-cpu", "--type", "off_cpu")
    attacker = arena.attack("many_sleepers", nr, until_line=True)
    program = os.path.join(arena.folder, "sleeps-often")
    os.symlink("/usr/bin/python3", program)
    arena.start([program, "-S", "-E", "-c", "import time\nfor i in range(100): time.sleep(0.01)"], VICTIM).wait()
    recording = arena.end()
    victim_ns = sum(s.count for s in recording.stacks or [] if s.comm == "sleeps-often")
    problems = []
    if victim_ns < 0.9e9:
        problems.append("of a second the victim slept %.3f s: lost %s" % (victim_ns / 1e9, recording.lost()))
    if int(attacker.line) < nr or not recording.lost().get("sleeper_table_full"):
        problems.append("the attack was none: %s threads, lost %s" % (attacker.line, recording.lost()))
    return problems, "the victim slept %.3f s; lost %s" % (victim_ns / 1e9, recording.lost())
