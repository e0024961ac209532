#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Known answers: programs say at which addresses they were, their sources what is there. TAP on standard output.

    known.py --symbolize PROGRAM [--only REGEX] [--keep DIR]

Each program is built in every way that builds.py lists, then run; what it printed is named by our table, and must be
what the sources' comments say (mark.h). These addresses, and some in between, are asked of addr2line and
llvm-symbolizer: where these agree with each other, we must agree too.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import builds
import compare
import guard
import symbolizers

TAG = re.compile(r"@(\w+)\.(\d+|last) (.*?)\s*(?:\*/|$)")
BETWEEN = 200


class Expected:
    """What the sources say of the marks: mark -> {level or "last": (file, line, names)}."""

    def __init__(self, sources):
        self.marks = {}
        for source in sources:
            with open(os.path.join(builds.HERE, source), encoding="utf-8") as f:
                for number, line in enumerate(f, 1):
                    for mark, level, names in TAG.findall(line):
                        level = int(level) if level != "last" else level
                        self.marks.setdefault(mark, {})[level] = (source, number, names.split("|"))

    def check(self, mark, frames, level):
        """Complaints about the frames that a mark's address got."""
        wanted = self.marks[mark]
        if level in ("names", "exported"):
            outermost = wanted[max((k for k in wanted if k != "last"))] if "last" not in wanted else wanted["last"]
            if level == "exported" and not frames:
                return
            if len(frames) != 1 or not fits(frames[0].name, outermost[2]):
                yield "is %s, not %s" % (show(frames), outermost[2])
            return
        if "last" not in wanted and len(frames) != len(wanted):
            yield "%d frames, not %d: %s" % (len(frames), len(wanted), show(frames))
            return
        for depth, (source, line, names) in wanted.items():
            if depth != "last" and depth >= len(frames):
                yield "no frame %s: %s" % (depth, show(frames))
                continue
            frame = frames[-1 if depth == "last" else depth]
            if not fits(frame.name, names):
                yield "frame %s is %s, not %s" % (depth, frame.name, " or ".join(names))
            if os.path.basename(frame.file) != source or frame.line != line:
                yield "frame %s (%s) is at %s:%d, not %s:%d" % (depth, frame.name, frame.file, frame.line, source, line)


def fits(name, wanted):
    """Equal to one of `wanted`; a "*" in it stands for anything."""
    return any(re.fullmatch(".*".join(re.escape(part) for part in w.split("*")), name) for w in wanted)


def show(frames):
    return " < ".join("%s (%s:%d)" % (f.name, os.path.basename(f.file), f.line) for f in frames) or "nothing"


def marks_of(program, runner):
    """What the program printed: (mark, address)."""
    if runner and not shutil.which(runner):
        raise builds.Missing("no %s" % runner)
    done = subprocess.run([runner, program] if runner else [program], capture_output=True, text=True, check=False, cwd=os.path.dirname(program))
    if done.returncode:
        raise RuntimeError("%s: status %d: %s" % (program, done.returncode, done.stderr[-500:]))
    return [(line.split()[0], int(line.split()[1], 16)) for line in done.stdout.splitlines()]


def against_others(build, judge, program, options, ours, addresses):
    """Complaints where both other tools say the same and we don't."""
    if build.level != "full" or build.root or build.runner or not build.others:
        return
    rng = random.Random(build.name)
    more = [a + rng.randrange(-40, 120) for a in rng.choices(addresses, k=BETWEEN)]
    answers = zip(more, ours(program, more, *options), symbolizers.addr2line(program, more),
                  symbolizers.llvm_symbolizer(program, more))
    for address, mine, gnu, llvm in answers:
        if judge.verdict(address, mine, gnu, llvm) == "different":
            yield "0x%x: %s; addr2line: %s; llvm-symbolizer: %s" % (
                address, show(mine), show_raw(gnu), show_raw(llvm))


def show_raw(frames):
    return show([f._replace(name=f.raw) for f in frames])


def check(build, ours, folder):
    """Complaints about one build."""
    program = build.make(builds.Shop(folder))
    expected = Expected(build.sources)
    marks = marks_of(program, build.runner)
    options = ()
    if build.root:
        root = os.path.join(folder, "root")
        inside = "/" + os.path.relpath(program, root) if program.startswith(root) else "/program"
        options = ("--root", root, "--path", inside)
    answers = ours(program, [address for _, address in marks], *options)
    seen = {mark for mark, _ in marks}
    for mark in expected.marks:
        if mark not in seen:
            yield "mark %s was not reached" % mark
    named = 0
    judge = compare.Judge(program)
    for (mark, address), frames in zip(marks, answers):
        if mark not in expected.marks or mark in build.skip:
            continue
        named += bool(frames)
        symbols = judge.names_at(address)
        if frames and symbols and frames[-1].raw not in symbols:
            yield "%s 0x%x: %s, but its symbol is %s" % (mark, address, frames[-1].raw, symbols)
        for complaint in expected.check(mark, frames, build.level):
            yield "%s 0x%x: %s" % (mark, address, complaint)
    if not named:
        yield "nothing has a name"
    yield from against_others(build, judge, program, options, ours, [a for _, a in marks])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symbolize", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="a folder that keeps what was built")
    args = parser.parse_args()
    ours = symbolizers.Ours(os.path.abspath(args.symbolize))
    chosen = [b for b in builds.all_builds() if re.search(args.only, b.name)]
    print("1..%d" % len(chosen), flush=True)
    failed = 0
    scratch = args.keep or tempfile.mkdtemp(prefix="sonde-names-")
    for number, build in enumerate(chosen, 1):
        folder = os.path.join(scratch, build.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        skip = ""
        try:
            complaints = list(check(build, ours, folder))
        except builds.Missing as e:
            complaints, skip = [], " # SKIP %s" % e
        except Exception:  # a test's own fault is a failed test, and the others still run
            complaints = traceback.format_exc().splitlines()
        failed += bool(complaints)
        print("%s %d - %s%s" % ("not ok" if complaints else "ok", number, build.name, skip))
        for line in complaints[:12]:
            print("#   %s" % line)
        if len(complaints) > 12:
            print("#   and %d more" % (len(complaints) - 12))
        sys.stdout.flush()
        if not args.keep:
            shutil.rmtree(folder)
    if not args.keep:
        os.rmdir(scratch)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(guard.run(main))
