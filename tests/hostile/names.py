# SPDX-License-Identifier: Apache-2.0
"""Names: what one program does to those of another one's functions."""
import itertools
import os
import re
import resource
import signal
import struct
import subprocess
import types

import hostile
import tables
from cpu_time import cpu_seconds

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "workloads")


def forge(arena, program, name, edit):
    """A copy of a program with the same build-id and size, and other names."""
    with open(program, "rb") as f:
        image = f.read()
    forged = edit(image)
    assert len(forged) == len(image) and forged != image
    path = os.path.join(arena.folder, name)
    with open(path, "wb") as f:
        f.write(forged)
    os.chmod(path, 0o755)
    return path


def attack_forged_build_id(arena):
    """One gives its own names, the other one has none: neither is the victim's, in this recording or by the cache in the next."""
    # One that no cache has met.
    program = arena.program(os.path.join(WORKLOADS, "chain.c"), "-Wl,--build-id=0x" + os.urandom(20).hex())
    evil = forge(arena, program, "evil", lambda image: image.replace(b"\0leaf\0", b"\0evil\0"))
    nameless = forge(arena, program, "nameless", lambda image: image.replace(b"\0leaf\0", b"\0?\0\0\0\0"))
    arena.record("32M")
    for path in (evil, nameless):
        attacker = arena.attack(path, "60")
        arena.wait_until_burnt(attacker, 0.1)
        attacker.kill()
    arena.run_victim(seconds=0.5)
    return arena.judge()


def attack_perf_maps(arena):
    """Maps of JITs that are larger than sonde may ever be, and have no name for the code that runs."""
    arena.program("jit")
    arena.record("32M")
    attackers = [arena.attack("jit", "16") for _ in range(2)]
    try:
        for attacker in attackers:
            assert attacker.stdout.readline() == b"written\n"
            arena.wait_until_burnt(attacker, 0.3)
        arena.run_victim(seconds=0.5)
        return arena.judge()
    finally:
        for attacker in attackers:
            os.unlink("/tmp/perf-%d.map" % attacker.pid)


def attack_jits(arena):
    """One user's six JITs run at thousands of addresses, each with a name of a kilobyte. Another user's has names, too."""
    program = arena.program(os.path.join(WORKLOADS, "jit.c"))
    arena.program("jit_names")
    arena.record("64M", frequency=4999)
    attacker, maps = arena.attack("jit_names", 6, until_line=True), []
    try:
        pids = attacker.line.split()
        maps = ["/tmp/perf-%s.map" % pid for pid in pids]
        for pid in pids:
            arena.wait_until_burnt(types.SimpleNamespace(pid=int(pid)), 0.5)
        victim = arena.start([program, 0.5], hostile.VICTIM)
        maps.append("/tmp/perf-%d.map" % victim.pid)
        hostile.wait4(victim)
        recording = arena.end()
    finally:
        for path in maps:
            os.unlink(path)
    stacks = recording.stacks or []
    met = {s.user[-1][:100] for s in stacks if s.comm == "jit_names" and s.user}
    unnamed = sum(s.count for s in stacks if s.comm == "jit_names" and s.user and "[anon]" in s.user[-1])
    samples = sum(s.count for s in stacks if s.comm == "jit")
    named = sum(s.count for s in stacks if s.comm == "jit" and s.user[-4:] == ("run_jit", "jit_outer", "jit_middle(int)", "jit leaf"))
    problems = list(recording.problems)
    if not samples or named * 100 < samples * 95:
        seen = sorted(((s.count, s.user[-5:]) for s in stacks if s.comm == "jit"), reverse=True)
        problems.append("%d of %d samples of the victim have its names: %s" % (named, samples, seen[:3]))
    if not unnamed:
        problems.append("the attack was none: all of its frames have names: %s" % sorted(met)[:5])
    return problems, "%d samples of the victim, %d with names; %d of the attacker without" % (samples, named, unnamed)


def names_in_vdso(recording, comm):
    """What samples of that program are in below main(), and how often."""
    found = {}
    for s in recording.stacks or []:
        if s.comm == comm and "main" in s.user[:-1]:
            name = s.user[s.user.index("main") + 1]
            found[name] = found.get(name, 0) + s.count
    return found


def attack_vdso(arena):
    """
    A program renames all functions of its vDSO before anybody is sampled. Those of another one, which is recorded after it, keep
    their names, and by the cache those of the next recording.
    """
    program = arena.program("vdso_edit")
    problems, notes = [], []
    attacker = arena.attack(program, 60, "evil", "evil", until_line=True)
    assert attacker.line == "renamed\n", attacker.line
    for turn in ("this", "next"):
        # Of all processes only the attacker, and what it starts: no other one's vDSO comes first.
        arena.record("32M", *(["-p", str(attacker.pid)] if turn == "this" else []), whole_machine=turn == "this")
        if turn == "this":
            arena.wait_until_burnt(attacker, 0.5 + cpu_seconds(attacker.pid))
            attacker.send_signal(signal.SIGUSR1)
            assert attacker.stdout.readline() == b"ended\n"
        else:
            hostile.wait4(arena.start([program, 0.5, "victim"], hostile.VICTIM))
        recording = arena.end()
        problems += recording.problems
        for comm in ("evil", "victim")[turn == "next":]:
            found = names_in_vdso(recording, comm)
            right = sum(nr for name, nr in found.items() if re.fullmatch(r"(__(vdso|kernel)_)?clock_gettime(64)?", name))
            notes.append("%s, %s recording: %s" % (comm, turn, found))
            if any("evil" in name for name in found) or right < 100:
                problems.append(notes[-1])
    return problems, "; ".join(notes)


def attack_long_names(arena):
    """Two thousand functions that all run, each with a name of 64 KB of its own."""
    nr, program = 2000, os.path.join(arena.folder, "long_names")
    with open(program + ".S", "w", encoding="ascii") as f:
        f.write(".globl main, first\nmain: push %%rbp\n1:\n.set i, 0\n.rept %d\n call first + 16 * i\n.set i, i + 1\n.endr\n jmp 1b\n" % nr)
        f.write(".p2align 4\nfirst:\n.rept %d\n mov $20000, %%ecx\n2: dec %%ecx\n jnz 2b\n ret\n.p2align 4\n.endr\n" % nr)
        f.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-no-pie", "-o", program, program + ".S"], check=True)
    start = hostile.address_of(program, "first")
    subprocess.run(["strip", program], check=True)  # its only table is what is added
    names = [b"f%d%s\0" % (i, b"y" * (64 << 10)) for i in range(nr)]
    places = itertools.accumulate(map(len, names[:-1]), initial=1)
    hostile.add_symbols(program, bytes(24) + b"".join(
        struct.pack("<IBBHQQ", place, 0x12, 0, 1, start + 16 * i, 16) for i, place in enumerate(places)), b"\0" + b"".join(names))
    arena.record("64M")
    arena.wait_until_burnt(arena.attack(program), 3)
    arena.run_victim(seconds=0.5)
    recording = arena.end()
    met = {s.user[-1] for s in recording.stacks or [] if s.comm == "long_names" and s.user}
    problems, note = arena.judge(recording=recording)
    if len(met) < nr / 2:
        problems.append("the attack was none: %d functions were met" % len(met))
    return problems, note


def attack_bombs(arena):
    """200,000 functions that share a thousand names of 64 KB, in 5 MB; 512 MB of debug information in one."""
    program = arena.program("slow_table", "-no-pie")
    long, debug, section = (os.path.join(arena.folder, name) for name in ("long", "debug", "section"))
    subprocess.run(["strip", "-o", long, program], check=True)  # its only table is what is added
    start = hostile.address_of(program, "filler")
    names = b"\0" + bytes(97 + i * 7 % 26 for i in range((64 << 10) + 1000)) + b"\0"
    hostile.add_symbols(long, bytes(24) + b"".join(
        # Each is a global function; all names end in the same bytes.
        struct.pack("<IBBHQQ", 1 + i % 1000, 0x12, 0, 1, start + 16 * i, 16) for i in range(200000)), names)
    tables.bomb(section, 512)
    subprocess.run(["objcopy", "--add-section", ".zdebug_info=" + section, program, debug], check=True)
    arena.record("64M")
    for path in (long, debug):
        os.chmod(path, 0o755)
        arena.wait_until_burnt(arena.attack(path), 0.1)
    arena.run_victim(seconds=0.5)
    return arena.judge()


def attack_roots(arena):
    """
    Programs that end soon, each a file of its own in a root of its own. On a busy machine their symbols are read much later: what is
    kept open of them until then is bounded.
    """
    program = arena.program("many_roots", "-static")
    arena.record("64M", before=["prlimit", "--nofile=%d" % min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1])])
    attacker = arena.attack(program, "200", until_line=True)
    arena.run_victim(seconds=0.5)
    recording = arena.end()
    problems, note = arena.judge(recording=recording, descriptors=350)
    processes = (recording.stats or {}).get("processes", 0)
    if attacker.line != "ended\n" or processes < 100:
        problems.append("the attack was none: %r, %d processes" % (attacker.line, processes))
    return problems, note
