# SPDX-License-Identifier: Apache-2.0
"""A load of 20 Python frames: the module, f1 to f18, and leaf, which computes. Runs on every Python 3.

    chain.py FILE: the number of leaves done stands in FILE, 8 bytes.
"""
import mmap
import struct
import sys


def leaf(n):
    x = 0
    for i in range(n):
        x = (x * 31 + i) & 0xffff
    return x


SOURCE = "".join("def f%d(n):\n    return %s(n) + 1\n" % (i, "f%d" % (i + 1) if i < 18 else "leaf")
                 for i in range(1, 19))
exec(compile(SOURCE, "chain_functions.py", "exec"))

with open(sys.argv[1], "r+b") as f:
    PROGRESS = mmap.mmap(f.fileno(), 8)
DONE = 0
while True:
    f1(3000)  # noqa: F821
    DONE += 1
    struct.pack_into("<Q", PROGRESS, 0, DONE)
