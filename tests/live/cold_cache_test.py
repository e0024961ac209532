#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`sonde stack` with an empty cache: the names are whole all the same, time after time, and the second look finds them
in the cache. TAP on standard output.

    cold_cache_test.py --sonde PROGRAM

Builds its own program (tests/live/stack/standing_cxx.cc) with g++.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import tap
from tap import check

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stack", "standing_cxx.cc")
ROUNDS = 12
TIMEOUT = 900  # of what hangs


def build(*flags):
    subprocess.run(["g++", "-std=gnu++20", "-w", "-pthread", "-O1", "-g", *flags, SOURCE, "-o", "standing"], check=True)


class Standing:
    """The program, when all of its threads stand."""

    def __enter__(self):
        self.process = subprocess.Popen(["./standing"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        check(self.process.stdout.readline() == "ready\n", "it did not begin")
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()


def look(program, pid, cache, *options, user=None):
    """All frames of all threads, and what was said."""
    done = subprocess.run([program, "stack", "--json", *options, str(pid)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT, env=dict(os.environ, XDG_CACHE_HOME=cache), user=user)
    if done.returncode:
        return None, done.stderr
    return [f for t in json.loads(done.stdout)["threads"] for f in t["frames"]], done.stderr


def is_whole(frames):
    return any(f.get("inlined") and "inlined" in f["function"] for f in frames)


def test_names_are_whole_with_an_empty_cache(program):
    build()
    with Standing() as pid:
        for _ in range(ROUNDS):
            cache = os.path.abspath("cache")
            shutil.rmtree(cache, ignore_errors=True)
            for what in "empty", "filled":
                frames, said = look(program, pid, cache)
                check(frames is not None and said == "", f"{what} cache: {said}")
                check(is_whole(frames), f"{what} cache: {frames}")


def test_a_function_has_a_line_of_its_own_without_inlines(program):
    build()
    with Standing() as pid:
        cache = os.path.abspath("cache")
        full, _ = look(program, pid, cache)
        real, _ = look(program, pid, cache, "--no-inlines")

        def lines(frames):
            return sorted(((f.get("function"), f.get("file"), f.get("line")) for f in frames
                          if not f.get("inlined")), key=str)

        check(not any(f.get("inlined") for f in real), real)
        check(lines(full) == lines(real), (lines(full), lines(real)))


def test_the_cache_is_no_concern_of_an_error(program):
    """A process of another user's: one line, though the cache can't be used, either."""
    if os.geteuid():
        raise tap.Skip("not root")
    shutil.copy(program, "sonde")
    frames, said = look("./sonde", 1, "/proc/nowhere", user=65534)
    check(frames is None and said.count("\n") == 1 and "no permission" in said, said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sonde", required=True)
    program = os.path.abspath(parser.parse_args().sonde)
    tests = [(n[5:], t) for n, t in globals().items() if n.startswith("test_")]
    return tap.run((name.replace("_", " "), tap.in_own_folder(lambda t=test: t(program), "sonde-cold-"))
                   for name, test in tests)


if __name__ == "__main__":
    sys.exit(guard.run(main))
