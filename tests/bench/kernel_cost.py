# SPDX-License-Identifier: Apache-2.0
"""What a sample costs in the kernel, by the kernel's own run-time statistics of the program."""
import collections
import statistics
import subprocess

from run import TOOL_PRIORITY, Sonde, alone, at_priority, least_and_median, stacks_on_all_cpus

WARM_UP = 1  # seconds: first samples are raw ones, tables are loaded
SECONDS = {99: 4, 999: 1.5}
LEAST_SHARE = 0.9  # of the samples that must be the load's, or the round does not count
COLD_KIB = 4096
FRAME_TARGET = 40

Case = collections.namedtuple("Case", "hz frames kib chosen target_ns")

# kib: of memory that the load touches. chosen: only the load is recorded (-p), so that samples of others, which cost
# what they cost, are not in the mean.
CASES = [
    Case(99, 22, 0, False, 1700),
    Case(999, 22, 0, False, 1000),
    Case(99, 22, 0, True, 1700),
    Case(999, 22, 0, True, 1000),
    Case(99, 4, 0, True, None),
    Case(999, 4, 0, True, None),
    Case(999, 5, 0, True, None),
    Case(999, 100, 0, True, None),
    Case(999, 200, 0, True, None),
    Case(999, 22, COLD_KIB, True, None),
]


class Measurement:
    """The rounds of one case."""

    def __init__(self):
        self.ns = []
        self.whole = []  # sonde's own figure, of the whole recording
        self.spans = []
        self.share = []
        self.skipped = 0


def share_of_load(sonde, frames):
    """Which part of all samples were the load's stacks, complete and of the right depth."""
    load = total = 0
    for comm, stack, count in sonde.stacks():
        total += count
        user = [f for f in stack if not f.endswith("_[k]")]
        # Between two functions there are fewer frames.
        if comm == "stack" and not stack[0].startswith("[truncated") and len(user) >= frames - 1:
            load += count
    return load / max(total, 1)


def measure(setup, case, result):
    with stacks_on_all_cpus(setup, case.frames, case.kib) as (pids, _):
        sonde = Sonde(setup, case.hz, ["-p", ",".join(map(str, pids))] if case.chosen else [])
        sonde.span(WARM_UP)
        with alone(pids):
            sonde.span(0.1)
            span = sonde.span(SECONDS[case.hz])
        stats = sonde.stop()
    share = share_of_load(sonde, case.frames)
    if share < LEAST_SHARE and case.chosen:
        result.skipped += 1
        return
    result.ns.append(span.bpf_ns_per_run())
    result.whole.append(stats["bpf_ns_per_sample"])
    result.spans.append(span)
    result.share.append(share)


def floor(setup, hz):
    with stacks_on_all_cpus(setup, 22) as (pids, _), alone(pids):
        out = subprocess.run([setup.program("floor"), str(hz), str(int(SECONDS[hz]))], check=True, capture_output=True,
                             text=True, preexec_fn=at_priority(TOOL_PRIORITY))
    return float(out.stdout.split()[0])


def slope(points):
    """Least squares."""
    x, y = statistics.mean(p[0] for p in points), statistics.mean(p[1] for p in points)
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def us(ns):
    return "%.2f us" % (ns / 1000)


def describe(case):
    where = "the load only (-p)" if case.chosen else "whole system"
    touches = ", touching %d MiB" % (case.kib >> 10) if case.kib else ""
    return "kernel, %d frames%s, %d Hz, %s" % (case.frames, touches, case.hz, where)


def rows(setup, table):
    results = {case: Measurement() for case in CASES}
    floors = {99: [], 999: []}
    for number in range(setup.rounds):
        table.progress("kernel cost: round %d of %d" % (number + 1, setup.rounds))
        for hz, values in floors.items():
            values.append(floor(setup, hz))
        for case, result in results.items():
            measure(setup, case, result)
    for hz, values in floors.items():
        table.add("kernel, an empty program, %d Hz (the floor)" % hz,
                  "min %s, median %s" % tuple(map(us, least_and_median(values))))
    for case, result in results.items():
        add_case(table, case, result)
    for name, pick in (("min", min), ("median", statistics.median)):
        points = [(c.frames, pick(r.ns)) for c, r in results.items()
                  if c.hz == 999 and c.chosen and not c.kib and c.frames != 4 and r.ns]
        if len(points) > 1:
            ns = slope(points)
            table.add("kernel, a further frame, 999 Hz, by the %ss of 5 to 200 frames" % name, "%.1f ns" % ns,
                      "at most %d ns" % FRAME_TARGET, ns <= FRAME_TARGET)
    steady = [r.spans for c, r in results.items() if c.hz == 99 and c.frames == 22 and not c.chosen][0]
    if steady:
        add_cpu(table, "sonde's CPU, steady, a 1,000 samples at 99 Hz, 22 frames", steady)


def add_cpu(table, what, spans):
    """CPU a 1,000 samples: exact for user and system together; what part of it is user time, ticks of 10 ms say."""
    runs, total = sum(s.runs for s in spans), sum(s.cpu_ns for s in spans)
    user, system = sum(s.user_ticks for s in spans), sum(s.system_ticks for s in spans)
    both = total / max(runs, 1) / 1000
    least, median = least_and_median([s.cpu_ms_per_1000() for s in spans])
    user_ms = both * user / max(user + system, 1)
    table.add(what, "user %.1f ms of %.1f ms (user and system)" % (user_ms, both), "at most 4 ms user", user_ms <= 4,
              "user and system: min %.1f ms, median %.1f ms; the user part is from %d ticks" % (
                  least, median, user + system))


def add_case(table, case, result):
    target = "at most %s" % us(case.target_ns) if case.target_ns else ""
    if not result.ns:
        table.add(describe(case), "not measured", target, None,
                  "%d rounds did not count: others used the CPUs" % result.skipped)
        return
    least, median = least_and_median(result.ns)
    note = "%d rounds%s; %.1f %% of the samples are the load's, complete; sonde's own figure, start-up included: %s" % (
        len(result.ns),
        ", %d not counted" % result.skipped if result.skipped else "",
        100 * statistics.median(result.share),
        us(statistics.median(result.whole)),
    )
    table.add(describe(case), "min %s, median %s" % (us(least), us(median)), target,
              median <= case.target_ns if case.target_ns else None, note)
