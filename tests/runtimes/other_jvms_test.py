#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java without HotSpot: OpenJ9 is told by what its library exports, and said once; GraalVM native images are native code.

    other_jvms_test.py [--sonde PROGRAM] [--only REGEX]

No registry of packages has an OpenJ9: a library that exports the same name stands for it. tests/zoo/native-image.sh has the native images.
"""
import collections
import os
import re
import subprocess
import sys

import runtimes
from runtimes import FrameRecorder
from tap import Skip

ZOO = os.path.join(runtimes.HERE, "..", "zoo", "native-image.sh")
LIBRARY = """int J9_CreateJavaVM(void) { return 0; }
volatile unsigned int sink;
__attribute__((noipa)) void j9_work(void) { for (unsigned int i = 0; i < 1000000; i++) sink += i; }
"""
PROGRAM = """#include <time.h>
void j9_work(void);
int main(void) { while (clock() < CLOCKS_PER_SEC) j9_work(); return 0; }
"""
# What the image's compiler calls a method: CLASS_METHOD_HASH.
METHOD = re.compile(r"[\w$<>]+_[0-9a-f]{40}")


def compiled(setup, name, text, *options):
    source, output = setup.file(name + ".c"), setup.file(name)
    with open(source, "w", encoding="ascii") as f:
        f.write(text)
    subprocess.run(["gcc", "-O2", "-g", "-o", output, source, *options], check=True)
    return output


def test_openj9(setup):
    """Native frames, and one line for the library, however many processes map it."""
    library = compiled(setup, "any-name.so", LIBRARY, "-shared", "-fPIC")
    program = compiled(setup, "j9", PROGRAM, library)
    recording = FrameRecorder(setup, [], ["sh", "-c", "%s & %s; wait" % (program, program)]).wait()
    problems = list(recording.problems)
    lines = [x for x in recording.errors.splitlines() if "OpenJ9" in x]
    if len(lines) != 1 or library not in lines[0]:
        problems.append("said: %s" % lines)
    inside = [s for s in recording.stacks or [] if s.comm == "j9" and any(f.name == "j9_work" for f in s.user)]
    samples = sum(s.count for s in inside)
    if samples < 1000:  # of two seconds of CPU
        problems.append("%d samples in its work" % samples)
    for s in inside:
        names = [f.name for f in s.user]
        if s.reason or names[-2:] != ["main", "j9_work"]:
            problems.append("%s: %s" % (s.reason, names))
    return problems[:5], "%d samples" % samples


def test_native_image(version, has_symbols, setup):
    """Frames of the file, with the names of its symbols; where there is no unwind information, that is said."""
    made = subprocess.run([ZOO, version], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if made.returncode == 77:
        raise Skip(made.stderr.strip())
    program = made.stdout.strip()
    source = setup.file("in.js")
    with open(source, "w", encoding="ascii") as f:
        f.writelines("function f%d(a) { for (var i = 0; i < a; i++) a += f%d(i); return a; }\nf%d(1);\n" % (n, n // 2, n)
                     for n in range(800))
    recording = FrameRecorder(setup, [], [program, "--js", source, "--js_output_file", setup.file("out.js"), "-O", "ADVANCED"]).wait(200)
    problems = list(recording.problems)
    ends, samples, named, alone = collections.Counter(), 0, 0, 0
    for s in recording.stacks or []:
        inside = [f for f in s.user if f.file == program]
        if not inside:
            continue
        samples += s.count
        ends[s.reason] += s.count
        named += s.count * bool(METHOD.fullmatch(inside[-1].name))
        if any(f.runtime != "native" for f in s.user):
            problems.append("frames of a runtime: %s" % [f.name for f in s.user])
        alone += s.count * bool(not s.reason and len(s.user) == 1 and METHOD.fullmatch(s.user[0].name))
    if samples < 100:
        problems.append("%d samples" % samples)
    if has_symbols and named < 0.8 * samples:
        problems.append("%d of %d samples have a method's name" % (named, samples))
    # Where it was called from is not known, and must be said; but 0 in the frame pointer's register is taken for the end.
    if alone > 0.2 * samples:
        problems.append("%d of %d samples are complete with one frame" % (alone, samples))
    if set(ends) - {None, "frame_pointer", "no_mapping", "no_process", "file_pending", "stack_copy_end"}:
        problems.append("ends: %s" % dict(ends))
    return problems[:5], "%d samples, %d named, ends: %s" % (samples, named, dict(ends))


def tests(_setup, _args):
    yield "openj9", test_openj9
    yield "native-image-with-symbols", lambda setup: test_native_image("20200204.0.0", True, setup)
    yield "native-image-stripped", lambda setup: test_native_image("20261015.0.0", False, setup)


if __name__ == "__main__":
    sys.exit(runtimes.main(__doc__, tests))
