#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks by programs without privileges and by hostile files, with victims beside them. TAP on standard output.

    hostile_test.py [--sonde PROGRAM] [--only REGEX] [--keep]

An attack is a function attack_NAME(arena) of any other file of this folder: see hostile.py. Needs root, BPF and gcc.
"""
import glob
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import hostile
import runtimes

NOT_TOPICS = {"hostile", "hostile_test", "victim_of_python"}
# With SONDE_ALL=1 alone: what differs is whose files they are.
SLOW = set() if os.environ.get("SONDE_ALL") else {"tables-shares-of-root"}


def tests(_setup, _args):
    for path in sorted(glob.glob(os.path.join(HERE, "*.py"))):
        topic = os.path.basename(path)[:-3]
        if topic in NOT_TOPICS:
            continue
        for key, function in vars(importlib.import_module(topic)).items():
            name = topic + "-" + key[7:].replace("_", "-")
            if key.startswith("attack_") and name not in SLOW:
                yield name, lambda setup, f=function, n=topic + key[6:]: run(f, n, setup)


def run(attack, name, setup):
    with hostile.Arena(setup, name) as arena:
        return attack(arena)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests, tracers="native"))
