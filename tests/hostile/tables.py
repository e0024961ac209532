# SPDX-License-Identifier: Apache-2.0
"""Unwind tables: files made to take what all tables share, or what building one may take."""
import array
import os
import shutil
import struct
import subprocess
import zlib

import hostile

MEGABYTE = 1 << 20


def attack_rules(arena):
    """One program has more distinct rules than there is room for. The victim starts later."""
    arena.program("many_rules")
    arena.record("64M")
    arena.wait_until_burnt(arena.attack("many_rules"), 0.3)
    arena.run_victim(seconds=1)
    recording = arena.end()
    problems, note = arena.judge(recording=recording)
    if not recording.lost().get("rules_full"):
        problems.append("the attack was none: lost %s" % recording.lost())
    return problems, note


def bomb(path, megabytes):
    """A section that unpacks to so many megabytes: one of them again and again, each a CIE and FDEs of nothing."""
    cie = struct.pack("<IIBBBBB", 12, 0xFFFFFFFF, 1, 0, 1, 0x78, 16) + bytes(3)
    fde = struct.pack("<IIQQ", 20, 0, 0x1000, 1)
    piece = (cie + fde * (MEGABYTE // len(fde)))[:MEGABYTE]
    packer = zlib.compressobj(9)
    head = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 1
    for _ in range(megabytes):
        checksum = zlib.adler32(piece, checksum)
    with open(path, "wb") as f:
        f.write(b"ZLIB" + struct.pack(">Q", megabytes * MEGABYTE))
        f.write(head + again * (megabytes - 1) + b"\x03\x00" + struct.pack(">I", checksum))


def attack_bomb(arena):
    """512 MB of .debug_frame in half a megabyte, in a file that is sampled before the victim and beside it."""
    section = os.path.join(arena.folder, "section")
    bomb(section, 512)
    program = arena.program("many_rules")
    subprocess.run(["objcopy", "--add-section", ".zdebug_frame=" + section, program, program + ".bomb"], check=True)
    arena.record("64M")
    arena.wait_until_burnt(arena.attack(program + ".bomb"), 0.1)
    arena.run_victim(seconds=1)
    return arena.judge()


def attack_files(arena):
    """Processes that map 20,000 files, more than there are numbers for, and are sampled. The victim starts later, and its files are read."""
    arena.program("many_files")
    arena.record("64M")
    arena.attack("many_files", 5, 4000, until_line=True)
    arena.run_victim(seconds=0.5)
    recording = arena.end()
    problems, stacks = list(recording.problems), [s for s in recording.stacks or [] if s.comm == "victim"]
    samples = sum(s.count for s in stacks)
    unreadable = sum(s.count for s in stacks if s.reason == "file_unreadable")
    if not samples or unreadable * 20 > samples:
        problems.append("of %d samples of the victim %d met a file that could not be read" % (samples, unreadable))
    return problems, "%d samples, %d file_unreadable" % (samples, unreadable)



def make_slow(program):
    """Makes its unwind table take seconds: each of a million FDEs begins with the 4 KB of its CIE."""
    start = hostile.address_of(program, "filler")
    body = struct.pack("<IBBBBB", 0xFFFFFFFF, 1, 0, 1, 0x78, 16) + b"\x0c\x07\x08\x90\x01" + b"\x0a\x0b" * 2001
    body += bytes(-(len(body) + 4) % 8)
    with open(program + ".section", "wb") as f:
        f.write(struct.pack("<I", len(body)) + body)
        f.write(b"".join(struct.pack("<IIQQ", 20, 0, start + at, 4) for at in range(0, 4 << 20, 4)))
    subprocess.run(["objcopy", "--add-section", ".debug_frame=" + program + ".section", program], check=True)


def attack_builders(arena):
    """Programs whose tables take seconds each, one after another. The victim's takes a child of its own, too."""
    slow = arena.program("slow_table", "-no-pie")
    make_slow(slow)
    victim = arena.program(os.path.join(hostile.WORKLOADS, "chain.c"), os.path.join(hostile.HERE, "many_functions.S"))
    arena.record("64M")
    for i in range(5):
        copy = os.path.join(arena.folder, "slow-%d" % i)
        shutil.copy(slow, copy)
        os.chown(copy, hostile.NOBODY, hostile.NOBODY)
        last = arena.attack(copy)
    arena.wait_until_burnt(last, 0.2)
    arena.run_victim(seconds=1)
    os.unlink(victim)  # of the other victims
    return arena.judge(child_memory=512)


def attack_waiting(arena):
    """Samples that wait for such tables, each with 60 KB of stack that are new each time, take the room of the victim's, which begins then."""
    slow = arena.program("slow_table", "-no-pie", "-DSTACK=61440")
    make_slow(slow)
    slow = copies(arena, slow, 3, hostile.NOBODY)
    arena.record("32M")
    for copy in slow:
        last = arena.attack(copy)
    arena.wait_until_burnt(last, 0.05)
    arena.run_victim(seconds=0.5)
    return arena.judge(child_memory=512)


def attack_symbols(arena):
    """A Python with 128 MB of names of functions, holes of the file, which are looked through for its loop."""
    program = os.path.join(arena.folder, "python")
    shutil.copy(os.path.realpath("/usr/bin/python3"), program)
    hostile.add_symbols(program, bytes(24 * 512), 128 * MEGABYTE)
    os.chmod(program, 0o755)
    arena.record("64M", "--tracers", "all")
    arena.wait_until_burnt(arena.attack(program, "-S", "-E", "-c", "while True: pass"), 0.3)
    arena.run_victim(seconds=0.5)
    return arena.judge()


def make_go(path, nr, size):
    """A library of Go's, of `size` bytes, with so many functions of a byte, of which all but the first have one record, and the same dear name."""
    header, names, first = 4096, b"\0runtime.systemstack\0", 64
    functions = header + 1024
    records = 8 * nr + 16  # from the functions on
    offsets = array.array("I", bytes(8 * nr + 16))
    offsets[:2 * nr + 1:2] = array.array("I", range(nr + 1))
    offsets[1:2 * nr:2] = array.array("I", [records + 64 * min(i, first) for i in range(nr)])
    table = struct.pack("<I2xBBQQQQQQQQ", 0xFFFFFFF1, 1, 8, nr, 0, 0x1000, header, header, header, header, functions)
    table = table.ljust(header, b"\0") + names.ljust(functions - header, b"\0") + offsets.tobytes()
    table += b"".join(struct.pack("<Ii56x", i, 1) for i in range(first + 1))
    at, strings = 4096, b"\0.gopclntab\0.shstrtab\0"
    end = at + size
    with open(path, "wb") as f:
        f.write(struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 3, 62, 1, 0, 64, end + 64, 0, 64, 56, 1, 64, 3, 2))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, end, end, 4096))  # PT_LOAD
        f.seek(at)
        f.write(table)
        f.seek(end)
        f.write(strings.ljust(64, b"\0") + bytes(64))
        f.write(struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0x80000000, at, size, 0, 0, 8, 0))
        f.write(struct.pack("<IIQQQQIIQQ", 12, 3, 0, 0, end, len(strings), 0, 0, 1, 0))
    os.chmod(path, 0o755)


def attack_probes(arena):
    """Libraries of Go's of which each takes seconds to be looked at, if everything that they have is. The victim starts later."""
    first = os.path.join(arena.folder, "go")
    make_go(first, 500000, 25 * MEGABYTE)
    files = copies(arena, first, 8, hostile.NOBODY)
    arena.program("map_files")
    arena.record("64M", "--tracers", "all")
    arena.wait_until_burnt(arena.attack("map_files", *files), 0.3)
    arena.run_victim(seconds=1)
    return arena.judge()


def copies(arena, path, nr, owner):
    """That file, so many times, as `owner`'s."""
    paths = [path] + ["%s-%d" % (path, i) for i in range(1, nr)]
    for copy in paths:
        if copy != path:
            shutil.copy(path, copy)
        os.chown(copy, owner, owner)
    return paths


def take_the_arena(arena, owner):
    """
    Twenty libraries of `owner`'s with large tables, and smaller ones for the room that these leave, in use all the time. A victim that runs
    already keeps its table, of 1.4 MB, and one that comes later finds room for its own.
    """
    files = []
    for name, rows, nr in (("large", 350000, 20), ("small", 12000, 40)):
        code = os.path.join(arena.folder, name)
        subprocess.run(["gcc", "-c", "-DROWS=%d" % rows, "-o", code + ".o", os.path.join(hostile.HERE, "many_rows.S")], check=True)
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", code, code + ".o"], check=True)
        files += copies(arena, code, nr, owner)
    victim = arena.program(os.path.join(hostile.WORKLOADS, "chain.c"), os.path.join(arena.folder, "large.o"))
    later = shutil.copy(victim, victim + "-later")
    for path in (victim, later):
        os.chown(path, hostile.VICTIM, hostile.VICTIM)
    arena.program("many_tables")
    arena.record("64M")
    first = arena.start_victim(3, "first")
    arena.wait_until_burnt(first.process, 1)
    os.rename(later, victim)
    arena.wait_until_burnt(arena.attack("many_tables", *files), 3)
    arena.run_victim(seconds=1)
    os.unlink(victim)  # of the other victims
    recording = arena.end()
    problems, note = arena.judge(recording=recording, descriptors=300)
    if not recording.lost().get("files_evicted"):
        problems.append("the attack was none: lost %s" % recording.lost())
    return problems, note


def attack_shares(arena):
    """An attacker in large libraries of its own."""
    return take_the_arena(arena, hostile.NOBODY)


def attack_shares_of_root(arena):
    """An attacker in large libraries that are root's, as the system's are."""
    return take_the_arena(arena, 0)


def attack_headers(arena):
    """Files of 65,534 program headers, and of 4,096, the most that are read: loaded segments, or notes of 23 MB each."""
    arena.program("many_headers")
    arena.record("64M")
    attacker = arena.attack("many_headers", 20, until_line=True)
    arena.wait_until_burnt(attacker, 1)
    arena.run_victim(seconds=1)
    recording = arena.end()
    problems, note = arena.judge(recording=recording)
    samples = sum(s.count for s in recording.stacks or [] if s.comm == "many_headers")
    if not samples:
        problems.append("the attack was none: no sample of it")
    return problems, note
