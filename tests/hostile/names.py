# SPDX-License-Identifier: Apache-2.0
"""Names: what one program does to those of another one's functions."""
import os
import subprocess

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


def attack_long_names(arena):
    """Two thousand functions that all run, each with a name of 64 KB of its own."""
    nr, program = 2000, os.path.join(arena.folder, "long_names")
    with open(program + ".S", "w", encoding="ascii") as f:
        names = ["f%d%s" % (i, "y" * (64 << 10)) for i in range(nr)]
        f.write(".globl main\nmain:\n push %rbp\n1:\n" + "".join(" call %s\n" % name for name in names) + " jmp 1b\n")
        f.writelines(".type %s, @function\n%s: mov $20000, %%ecx\n2: dec %%ecx\n jnz 2b\n ret\n" % (name, name) for name in names)
        f.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-no-pie", "-o", program, program + ".S"], check=True)
    arena.record("64M")
    arena.wait_until_burnt(arena.attack(program), 3)
    arena.run_victim(seconds=0.5)
    recording = arena.end()
    met = {s.user[-1] for s in recording.stacks or [] if s.comm == "long_names" and s.user}
    problems, note = arena.judge(recording=recording)
    if len(met) < nr / 2:
        problems.append("the attack was none: %d functions were met" % len(met))
    return problems, note
