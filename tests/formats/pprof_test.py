#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
pprof and OTLP, read by programs that others wrote: `pprof_test.py SONDE EXAMPLES BUILD_FOLDER`, TAP.

`go tool pprof` and Google's pprof library read the one, the OpenTelemetry collector's pdata the
other (tests/formats/go, which also has every rule of the schema as a check); and what Go's runtime,
pdata and the schema's own generated code write is read by us. Without Go, or without its modules, it
all skips; without root, what records.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import profcheck_program
import tap
from command import run
from folded_text import counts_of
from tap import Skip, check

HERE = Path(__file__).resolve().parent
SONDE, EXAMPLES = (os.path.abspath(arg) for arg in sys.argv[1:3])
BUILD = Path(sys.argv[3]).resolve()
PROFCHECK = profcheck_program.path(BUILD)
TOP = Path(tempfile.mkdtemp(prefix="sonde-pprof-"))
# enum example_flags
EVENTS, BYTES, NO_FREQUENCY, EMPTY, TRACED = 1, 2, 4, 8, 32


def output(*argv, **options):
    return run(*argv, text=False, **options).stdout


def lines(folded):
    """Folded text as sorted lines; what is the same in another order is the same."""
    return sorted(folded.decode().splitlines())


def check_same(got, want, what):
    got, want = lines(got), lines(want)
    check(want, f"{what}: there is nothing to compare with")
    for a, b in zip(got, want):
        check(a == b, f"{what}:\n  {a}\n  {b}")
    check(len(got) == len(want), f"{what}: {len(got)} stacks, not {len(want)}")


def profcheck(*args):
    return output(PROFCHECK, *args)


def folded(path):
    return output(SONDE, "convert", path, "-", "-f", "folded")


def test_each_rule_can_fail():
    profcheck("selftest")


def test_examples():
    """What was made by hand has the same stacks and sums in each format, as others read it."""
    for flags in 0, EVENTS, BYTES, NO_FREQUENCY, TRACED, TRACED | EVENTS:
        want = output(EXAMPLES, "folded", flags)
        check(b"[truncated: no_rule]" in want and b"_[k]" in want and b"_[i]" in want, want)
        for name in "pprof", "otlp":
            path = TOP / f"example-{flags}.{name}"
            path.write_bytes(output(EXAMPLES, name, flags))
            check_same(profcheck(name, path), want, f"{name}, flags {flags}")
            check_same(folded(path), want, f"convert of {name}, flags {flags}")


def test_a_profile_without_samples_is_valid():
    for name in "pprof", "otlp":
        path = TOP / f"empty.{name}"
        path.write_bytes(output(EXAMPLES, name, EMPTY))
        check(profcheck(name, path) == b"", f"{name} has stacks")


def record(name, *options):
    """A recording of the whole machine in that format, while a Go program uses a CPU."""
    if os.geteuid():
        raise Skip("recording needs root")
    path = TOP / f"recorded.{name}"
    if not path.exists():
        run(SONDE, "record", "-f", name, "-o", path, "-F", "499", "--tracers", "go,labels", *options, "--", PROFCHECK, "burn", "1.5")
    return path


def check_others(path, name):
    """All that can be read, out of `path`: the same stacks and sums, and valid."""
    want = folded(path)
    for other in "pprof", "otlp":
        converted = TOP / f"{name}-as.{other}"
        run(SONDE, "convert", path, converted, "-f", other)
        check_same(profcheck(other, converted), want, f"{name} as {other}")
        check_same(folded(converted), want, f"{name} as {other}, and back")


def test_recorded_otlp():
    path = record("otlp")
    want = profcheck("otlp", path)
    check(b"main.spin" in want, "the Go program is not in the recording")
    check_same(folded(path), want, "convert of otlp")
    check_others(path, "otlp")


def test_recorded_pprof():
    path = record("pprof")
    want = profcheck("pprof", path)
    check(b"main.spin" in want, "the Go program is not in the recording")
    check_same(folded(path), want, "convert of pprof")
    check_others(path, "pprof")


def go_pprof(path, *options):
    env = dict(os.environ, PPROF_TMPDIR=str(TOP), HOME=str(TOP), GOTOOLCHAIN="local", GOFLAGS="",
               GOCACHE=os.environ.get("GOCACHE") or subprocess.check_output(["go", "env", "GOCACHE"], text=True).strip())
    return output("go", "tool", "pprof", *options, path, env=env, cwd=TOP).decode(errors="replace")


def test_go_tool_pprof_raw():
    path = record("pprof")
    total = sum(counts_of(folded(path).decode()).values())
    raw = go_pprof(path, "-symbolize=none", "-raw")
    check("PeriodType: cpu nanoseconds" in raw and "Period: 2004008" in raw, raw[:500])
    check("samples/count cpu/nanoseconds" in raw, raw[:500])
    samples = re.findall(r"^ +(\d+) +(\d+): [\d ]+$", raw, re.M)
    check(sum(int(count) for count, _ in samples) == total, f"not {total} samples")
    check(all(int(time) == int(count) * 2004008 for count, time in samples), "times are not the samples'")
    check(re.search(r"thread:\[profcheck\]", raw), "the thread is not in -raw")
    check(re.search(r"pid:\[\d+\]", raw), "the process is not in -raw")
    mappings = raw[raw.index("\nMappings\n"):].splitlines()[2:]
    check(any(re.search(r"/profcheck ", line) for line in mappings), mappings)
    check(any("[kernel.kallsyms]" in line for line in mappings), mappings)
    check(any(re.search(r" [0-9a-f]{40}( |$)", line) for line in mappings), "no mapping has a build id")


def test_go_tool_pprof_top_and_traces():
    path = record("pprof")
    for options in ["-symbolize=none"], []:
        top = go_pprof(path, *options, "-top", "-nodecount=2000")
        check("Type: cpu" in top, top[:300])
        check(re.search(r"^ +\S+ +\S+% .* main\.spin", top, re.M), top[:3000])
    traces = go_pprof(path, "-symbolize=none", "-traces", "-tagfocus=thread=profcheck")
    check(re.search(r"main\.spin.*\n +main\.burn", traces), traces[:3000])
    samples = go_pprof(path, "-symbolize=none", "-sample_index=samples", "-top")
    check("Type: samples" in samples, samples[:300])


def test_go_tool_pprof_types_and_labels():
    path = TOP / "traced.pprof"
    path.write_bytes(output(EXAMPLES, "pprof", TRACED))
    raw = go_pprof(path, "-symbolize=none", "-raw")
    check("samples/count cpu/nanoseconds[dflt] off_cpu/nanoseconds" in raw, raw[:500])
    values = [list(map(int, line.split())) for line in re.findall(r"^ +(\d+ +\d+ +\d+): [\d ]+$", raw, re.M)]
    # Of six measured values (add_traced() of example_profiles.c); a sample has one type.
    check(sum(off for _, _, off in values) == sum(range(1000, 1006)), values)
    check(all((count == 0) != (off == 0) for count, _, off in values), values)
    tags = go_pprof(path, "-symbolize=none", "-tags", "-sample_index=off_cpu")
    for key, value in ("trace_id", "ab" + 28 * "0" + "cd"), ("span_id", "02" + 14 * "0"), ("user", "zo\u00eb"), ("size", "4kB"):
        check(re.search(rf"^ +{key}: Total .*\n(?:.+\n)*? .*: {value}$", tags, re.M), f"{key}: {tags}")


def test_profiles_of_gos_runtime_are_read():
    cpu, heap = TOP / "cpu.pb.gz", TOP / "heap.pb.gz"
    profcheck("own", cpu, heap)
    check(b"main.spin" in folded(cpu), "the CPU profile is not of what ran")
    check(b"spinner;" in folded(cpu), "the label `thread` is no thread")
    # 64 MiB, as far as a sample of them tells.
    check(re.search(rb"main\.allocate \d{8}\n", folded(heap)), folded(heap))
    for path, name in (cpu, "cpu"), (heap, "heap"):
        check_same(folded(path), profcheck("foreign", path), name)
        check_others(path, name)


def test_requests_of_others_are_read():
    path = TOP / "pdata.otlp"
    profcheck("request", path)
    check_same(folded(path), b"x;main 1\nx;main;leaf 1\n", "pdata's")
    path = TOP / "old.otlp"
    profcheck("old", path)
    check_same(folded(path), b"old;f;leaf 5\n", "schema 1.9")


def main():
    tests = [(name[5:], test) for name, test in globals().items() if name.startswith("test_")]
    try:
        profcheck_program.build(BUILD)
    except Skip as reason:
        return tap.skip_all(reason)
    status = tap.run(tests)
    shutil.rmtree(TOP, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(guard.run(main))
