# SPDX-License-Identifier: Apache-2.0
"""Folded stacks, a line a stack: "comm;outermost;...;innermost COUNT"."""
import collections


class FoldedError(ValueError):
    """A line that no folded file may have."""


def parse_line(line):
    """(comm, [frames, outermost first], count)"""
    stack, space, count = line.rpartition(" ")
    if not space or not count.isdigit() or int(count) == 0 or not stack:
        raise FoldedError("no 'stack count' line: %r" % line)
    comm, *frames = stack.split(";")
    if any(not f for f in frames):
        raise FoldedError("an empty frame: %r" % line)
    return comm, frames, int(count)


def stacks_of(text):
    """[(comm, [frames, outermost first], count)]"""
    return [parse_line(line) for line in text.splitlines()]


def counts_of(text):
    """(comm, frames...) -> count"""
    counts = collections.Counter()
    for comm, frames, count in stacks_of(text):
        counts[(comm, *frames)] += count
    return counts
