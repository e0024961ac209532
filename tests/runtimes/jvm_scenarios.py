# SPDX-License-Identifier: Apache-2.0
"""The tables of jvm_test.py: modes of the JVM and what must be seen in them, collectors, and the limits of what is right."""
import os

# An emulated machine has time for a few only, and needs some for sonde (tests/vm).
SCENARIOS = os.environ.get("SONDE_SCENARIOS", "").split()


class LEAST:
    """What part of the samples must be so, if no scenario of its own (FEATURES) says more."""
    complete = 0.99
    complete_of_comm_percent = 96  # of some 200 samples one or two may be cut: `complete` is asked of all together
    complete_of_start_percent = 97  # of a JVM that starts while it is recorded
    marked = 0.97  # by tier
    inlined = compiled = 0.9  # where everything is compiled
    native_leaf = 0.9
    java_in_python = 0.5
    in_deoptimization = 0.0005
    seen_in_leaf = 20  # samples


class MOST:
    """What part of the samples may be so."""
    near = 0.03  # other inlined functions than were told
    unknown_class = 0.01
    early = 0.1  # before the JVM is ready


MODES = {
    "interpreted": ["-Xint", "-Dspin=500"],
    "c1": ["-XX:TieredStopAtLevel=1"],
    "c2": ["-XX:-TieredCompilation"],
    "tiered": ["-XX:+UseG1GC"],
    "parallel-one-cache": ["-XX:+UseParallelGC", "-XX:-SegmentedCodeCache"],
    "serial-wide-oops": ["-XX:+UseSerialGC", "-XX:-UseCompressedOops"],
    "zgc": ["-XX:+UseZGC"],
    "shenandoah": ["-XX:+UseShenandoahGC"],
    "compact-headers": ["-XX:+UseCompactObjectHeaders"],
}
# What is made under each JDK that is there: every way of calling. All else under the newest alone; older ones differ in
# what some of that is about, too, for which there is SONDE_ALL=1.
OF_ALL_JDKS = {"tiered"}
# With SONDE_ALL=1 (`make test-all`) alone: modes, and what differs from another test by how threads end up where they are.
SLOW = {"c1", "parallel-one-cache", "serial-wide-oops", "shenandoah", "compact-headers", "virtual-below", "virtual-deep-zgc",
        "threads-unpinned", "threads-wakes", "in-python-now"}
SINCE = {"compact-headers": 24, "zgc": 11, "shenandoah": 11}
GC_THREADS = {
    "tiered": r"GC_Thread#|G1_|Gang_worker",
    "parallel-one-cache": r"(?:Par)?GC_Thread#|GC_task",
    "zgc": r"ZWorker|ZDriver|ZGenerational|XWorker|ZUnmapper|ZStat",
    "shenandoah": r"Shenan",
}
NEEDS_SEGMENTS = 9

COMPILED = ("c1", "c2", "tiered", "parallel-one-cache", "serial-wide-oops", "zgc", "shenandoah", "compact-headers")
# What some scenarios are there for: a frame in this share of their stacks, in these modes, from this release on.
FEATURES = [
    ("arraycopy", r"StubRoutines::.*arraycopy", 0.5, COMPILED, 8),
    ("crc32", r"StubRoutines::updateBytesCRC32", 0.5, COMPILED, 8),
    ("aes", r"StubRoutines::(?:aes|cipher)", 0.05, ("c2",), 8),  # a processor does it in no time
    ("sha", r"StubRoutines::sha256", 0.3, ("c2",), 9),
    ("multiply", r"StubRoutines::(?:multiply|mulAdd|square)", 0.3, ("c2",), 8),
    ("interface", r"[iv]table stub", 0.02, COMPILED, 8),
    ("virtual", r"[iv]table stub", 0.002, COMPILED, 8),
    ("adapters", r"I2C/C2I adapters", 0.002, COMPILED, 8),
    ("osr", r"Calls\.osr_\[[1j]\]", 0.9, COMPILED, 8),
    ("write", r"Java_java_io_FileOutputStream_write", 0.3, COMPILED, 8),
]

# From JDK 26 on the middle of a long thread name is left out, rather than its end: none of ours has more than 15 letters.
# Collectors, and ways to lay out objects, that the modes leave out: name of the threads' prefix, options, first and last release.
COLLECTORS = [
    ("srl", ["-XX:+UseSerialGC", "-XX:-UseCompressedClassPointers"], 8, 24),
    ("cms", ["-XX:+UseConcMarkSweepGC"], 8, 13),
    ("eps", ["-XX:+UseEpsilonGC", "-Xmx1g"], 11, 99),
    ("zgn", ["-XX:+UseZGC", "-XX:+ZGenerational"], 21, 22),
    ("sgn", ["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"], 24, 99),
    ("cmp", ["-XX:+UseParallelGC", "-XX:+UseCompactObjectHeaders"], 24, 99),
]
