# SPDX-License-Identifier: Apache-2.0
"""The known answer in Python: main, outer, middle, leaf, for so many seconds of CPU. victim_of_python.py SECONDS COMM"""
import sys
import time


def leaf(rounds):
    for _ in range(rounds):
        pass


def middle(rounds):
    leaf(rounds)
    return rounds


def outer(rounds):
    return middle(rounds) + 1


def main(seconds, comm):
    with open("/proc/self/comm", "w", encoding="ascii") as f:
        f.write(comm)
    while time.process_time() < seconds:
        outer(30000)


main(float(sys.argv[1]), sys.argv[2])
