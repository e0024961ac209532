# SPDX-License-Identifier: Apache-2.0
"""What names addresses: ours (symbolize), addr2line, llvm-symbolizer. All answer with lists of Frame, innermost first."""
import collections
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import run

Frame = collections.namedtuple("Frame", "name raw file line")


def piped(*argv, stdin):
    return run(*argv, stdin=stdin, errors="surrogateescape", timeout=None).stdout


def hexes(addresses):
    return "".join("0x%x\n" % a for a in addresses)


class Ours:
    """The program under test."""

    def __init__(self, program):
        self.program = program

    def __call__(self, path, addresses, *options):
        answers = []
        for block in piped(self.program, *options, path, stdin=hexes(addresses)).split("\n\n")[:-1]:
            lines = block.split("\n")[1:]
            frames = [line.split("\t") for line in lines]
            answers.append([Frame(f[0], f[1], f[2], int(f[3])) for f in frames])
        assert len(answers) == len(addresses), (len(answers), len(addresses))
        return answers


def known(text):
    """What is known of a name or a file; a symbol's version is no part of its name."""
    return "" if text == "??" else re.sub("@+[A-Za-z_0-9.]+$", "", text)


def addr2line(path, addresses):
    answers = []
    lines = iter(piped("addr2line", "-a", "-i", "-f", "-e", path, stdin=hexes(addresses)).splitlines())
    for line in lines:
        if re.fullmatch("0x[0-9a-f]{8,}", line):
            answers.append([])
            continue
        file, _, number = re.sub(r" \(discriminator \d+\)$", "", next(lines)).rpartition(":")
        answers[-1].append(Frame(None, known(line), known(file), int(number) if number.isdigit() else 0))
    assert len(answers) == len(addresses)
    return answers


def llvm_symbolizer(path, addresses):
    program = shutil.which("llvm-symbolizer-14") or shutil.which("llvm-symbolizer")
    answers = []
    argv = [program, "--obj=" + path, "--inlines", "--functions=linkage", "--no-demangle"]
    for block in piped(*argv, stdin=hexes(addresses)).split("\n\n"):
        lines = block.strip("\n").split("\n")
        frames = []
        for name, place in zip(lines[::2], lines[1::2]):
            file, number, _ = place.rsplit(":", 2)
            frames.append(Frame(None, known(name), known(file), int(number)))
        if frames:
            answers.append(frames)
    assert len(answers) == len(addresses), (len(answers), len(addresses))
    return answers


def same_file(a, b):
    """Equal, or one is the end of the other: tools differ in whether they join directories."""
    a, b = os.path.normpath(a or ""), os.path.normpath(b or "")
    a, b = [p.lstrip("./") for p in (a, b)]
    return a == b or a.endswith("/" + b) or b.endswith("/" + a)
