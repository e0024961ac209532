# SPDX-License-Identifier: Apache-2.0
"""Where root writes: an ordinary user has put something there, and sonde neither follows it nor waits for it."""
import os
import subprocess

from hostile import NOBODY, PATIENCE

SECONDS = 120 * PATIENCE  # of what hangs
FOLDED = "prog;main;leaf 3\n"


def as_nobody(arena, *argv):
    process = arena.start(argv, NOBODY, cwd=arena.folder)
    if process.wait():
        raise AssertionError("%s: status %d" % (argv, process.returncode))


def commands(arena):
    """All that write files: their arguments but for the output, and a name for it."""
    source = arena.setup.path(".folded")
    with open(source, "w", encoding="ascii") as f:
        f.write(FOLDED)
    yield ["convert", source], "converted.pb.gz"
    yield ["record", "-d", "0.1", "-o"], "recorded.folded"
    yield ["record", "-d", "0.1", "-o", os.devnull, "-f", "folded", "--stats"], "stats.json"


def refused(arena, argv, output, words):
    """The problems of a sonde that ought to refuse, with these words in one line."""
    try:
        done = subprocess.run([arena.setup.program, *argv, output], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ["%s: it hangs" % argv]
    said = done.stderr.strip()
    if done.returncode != 1 or done.stdout or "\n" in said or not all(w in said for w in words):
        return ["%s: status %d, said %r, expected %s" % (argv, done.returncode, said, words)]
    return []


def attack_link(arena):
    """A link to root's file, beside it and on the way; in a folder without the protection that the kernel gives sticky ones."""
    problems = []
    for argv, name in commands(arena):
        target = os.path.join(arena.setup.scratch, "of-root-" + name)
        with open(target, "w", encoding="ascii") as f:
            f.write("root's")
        os.chmod(target, 0o600)
        as_nobody(arena, "ln", "-s", target, name)
        problems += refused(arena, argv, os.path.join(arena.folder, name), ["symbolic link '%s' belongs to nobody" % name, "another place"])
        with open(target, encoding="ascii", errors="replace") as f:
            if f.read() != "root's":
                problems.append("%s: root's file was replaced" % argv)
    return problems, None


def attack_fifo(arena):
    """A FIFO that nobody ever reads."""
    problems = []
    for argv, name in commands(arena):
        as_nobody(arena, "mkfifo", name)
        problems += refused(arena, argv, os.path.join(arena.folder, name), ["FIFO '%s' belongs to nobody" % name])
    return problems, None


def attack_file(arena):
    """A file in a sticky folder, which would be its owner's when root has written it."""
    os.chmod(arena.folder, 0o1777)
    os.chown(arena.folder, 0, 0)
    problems = []
    for argv, name in commands(arena):
        as_nobody(arena, "touch", name)
        problems += refused(arena, argv, os.path.join(arena.folder, name), ["file '%s' belongs to nobody" % name])
    return problems, None
