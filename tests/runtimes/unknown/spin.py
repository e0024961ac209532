# SPDX-License-Identifier: Apache-2.0
"""Says that it is there, waits until standard input ends, then works (unknown_test.py)."""
import os
import sys


def leaf(x):
    for i in range(10000):
        x = (x * 3 + i) % 1000003
    return x


def middle(n):
    return leaf(n) + 1


print('{"ready": %d}' % os.getpid(), flush=True)
sys.stdin.read()
number = 0
while True:
    number = middle(number)
