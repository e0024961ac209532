# SPDX-License-Identifier: Apache-2.0
"""How long samples take inside the program: p10, p50 and p90, beside the throw-away walker ../shared/prototype on the same load in the same run.

At 99 Hz a mean describes the host, not the program: so each CPU counts its samples by their time (`sonde record --measure`), and what is judged is a
multiple of what the prototype takes for 22 native frames in the same round.
"""
import collections
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import time

import runtime_cost
from footprint import read
from run import TOOL_PRIORITY, Sonde, at_priority, stacks_on_all_cpus
from runtime_cost import alone

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = {99: 6, 999: 2}
WARM_UP = 1.5
STEP_NS = 32  # walk.bpf.h: SAMPLE_TIMES_SHIFT
PROTOTYPE_STEP_NS = 30  # 3.8 us are its longest time
PROTOTYPE_FRAMES = 22
PERCENTILES = (10, 50, 90)

# times: by percentile, ns.
Times = collections.namedtuple("Times", "samples times")
# target: a multiple of the prototype's 22 frames at the same frequency, or nanoseconds; of p50.
Case = collections.namedtuple("Case", "name hz frames load multiple ns")


def percentiles(counts, step):
    """Of how many there are in each step: the middle of the one where each percentile is."""
    total, at, found = sum(counts), 0, {}
    for i, n in enumerate(counts):
        at += n
        for p in PERCENTILES:
            if p not in found and total and at * 100 >= p * total:
                found[p] = (i + 0.5) * step
    return Times(total, found)


# --- sonde ------------------------------------------------------------------------------------------------------------


def map_of(pid, name):
    """The id of a BPF map that the process holds."""
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with contextlib.suppress(OSError):
            found = re.search(r"^map_id:\s+(\d+)", read("/proc/%d/fdinfo/%s" % (pid, fd)), re.M)
            if found and json.loads(bpftool("map", "show", "id", found.group(1))).get("name") == name:
                return found.group(1)
    raise RuntimeError("sonde has no map `%s`" % name)


def bpftool(*args):
    return subprocess.run(["bpftool", "-j", *args], check=True, capture_output=True, text=True).stdout


def counts_of(map_id):
    """How many samples took how many steps, on all CPUs."""
    sums = []
    for cpu in json.loads(bpftool("map", "dump", "id", map_id))[0]["values"]:
        data = bytes(int(b, 16) for b in cpu["value"])
        nr = [int.from_bytes(data[i:i + 4], "little") for i in range(0, len(data), 4)]
        sums = [a + b for a, b in zip(sums, nr)] if sums else nr
    return sums


def measure_sonde(setup, hz, pids, beside):
    """Times of the load's samples; `beside` runs meanwhile, and what it gives."""
    sonde = Sonde(setup, hz, ["--measure", "-p", ",".join(map(str, pids))])
    try:
        times = map_of(sonde.pid, "times")
        time.sleep(WARM_UP)
        with alone(pids):
            time.sleep(0.1)
            before = counts_of(times)
            result = beside(hz, pids)
            after = counts_of(times)
    finally:
        stats = sonde.stop()
    complete = stats["complete"] / max(stats["samples"], 1)
    return percentiles([b - a for a, b in zip(before, after)], STEP_NS), complete, result


# --- the prototype ----------------------------------------------------------------------------------------------------


class Prototype:
    """Built in the scratch folder; `missing` says why not."""

    def __init__(self, setup):
        source = os.environ.get("SONDE_PROTOTYPE", os.path.join(HERE, "..", "..", "..", "shared", "prototype"))
        self.missing = None
        self.folder = os.path.join(setup.scratch, "prototype")
        if not os.path.isdir(source):
            self.missing = "%s is not there (SONDE_PROTOTYPE names another place)" % os.path.normpath(source)
        elif os.uname().machine != "x86_64":
            self.missing = "it is for x86-64"
        else:
            try:
                self._build(source)
            except (OSError, subprocess.SubprocessError) as e:
                self.missing = "it cannot be built: %s" % (getattr(e, "stderr", None) or e)

    def _build(self, source):
        shutil.copytree(source, self.folder)
        # Finer steps than it has.
        for name, old, new in (("walk.bpf.c", "dt / 50", "dt / %d" % PROTOTYPE_STEP_NS),
                               ("walk.c", "i*50+25", "i*%d+%d" % (PROTOTYPE_STEP_NS, PROTOTYPE_STEP_NS / 2))):
            path = os.path.join(self.folder, name)
            text = read(path)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace(old, new))
        with open(os.path.join(self.folder, "vmlinux.h"), "w", encoding="utf-8") as f:
            subprocess.run(["bpftool", "btf", "dump", "file", "/sys/kernel/btf/vmlinux", "format", "c"], check=True,
                           stdout=f)
        clang = shutil.which("clang") or shutil.which("clang-14") or "clang"
        self._run(clang, "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-DHIST", "-I.", "-c", "walk.bpf.c",
                  "-o", "walk.o")
        self._run("gcc", "-O2", "-w", "walk.c", "eh.c", "-o", "walk", "-lbpf")

    def _run(self, *argv):
        subprocess.run(argv, check=True, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def __call__(self, hz, pids):
        """Times of the processes' samples for SECONDS; None if it is not there."""
        if self.missing:
            time.sleep(SECONDS[hz])
            return None
        argv = [os.path.join(self.folder, "walk"), os.path.join(self.folder, "walk.o"), str(hz), str(SECONDS[hz])]
        out = subprocess.run(argv + [str(pid) for pid in pids], check=False, capture_output=True, text=True,
                             preexec_fn=at_priority(TOOL_PRIORITY)).stdout
        found = dict((int(p), float(ns)) for p, ns in re.findall(r"\bp(\d+)=(\d+)", out))
        return Times(0, found) if found else None


# --- the table --------------------------------------------------------------------------------------------------------


def cases_of(setup, table):
    for hz, frames, multiple in ((999, 22, 1.3), (99, 22, 1.5), (99, 5, 1.3)):
        yield Case("%d native frames" % frames, hz, frames, None, multiple, None)
    for load in runtime_cost.all_loads(setup, table, ("3.12", "3.13"), ("17", "25"), interpreter=False):
        for hz, ns in ((999, 3000), (99, 5000 if load.kind == "python" else 4500)):
            yield Case("%s, %d frames" % (load.name, runtime_cost.FRAMES), hz, None, load, None, ns)


def one_round(setup, case, prototype):
    """(sonde's times, share of complete stacks, the prototype's of 22 native frames)."""
    if case.load:
        with runtime_cost.on_all_cpus(setup, case.load) as pids:
            time.sleep(0.5)
            sonde, complete, _ = measure_sonde(setup, case.hz, pids, lambda hz, _: time.sleep(SECONDS[hz]))
    elif case.frames != PROTOTYPE_FRAMES:
        with stacks_on_all_cpus(setup, case.frames) as (pids, _):
            sonde, complete, _ = measure_sonde(setup, case.hz, pids, lambda hz, _: time.sleep(SECONDS[hz]))
    else:
        with stacks_on_all_cpus(setup, case.frames) as (pids, _):
            return measure_sonde(setup, case.hz, pids, prototype)
    with stacks_on_all_cpus(setup, PROTOTYPE_FRAMES) as (pids, _), alone(pids):
        return sonde, complete, prototype(case.hz, pids)


def in_words(times):
    """Medians of the rounds."""
    return " / ".join("%.2f" % (statistics.median(t.times[p] for t in times) / 1000) for p in PERCENTILES) + " us"


def add_case(table, case, rounds):
    what = "inside the program, %s, %d Hz: p10 / p50 / p90" % (case.name, case.hz)
    rounds = [r for r in rounds if len(r[0].times) == len(PERCENTILES)]
    if not rounds:
        table.add(what, "not measured", "", None, "no samples")
        return
    p50 = statistics.median(r[0].times[50] for r in rounds)
    ratios = [r[0].times[50] / r[2].times[50] for r in rounds if r[2]]
    note = "%d rounds, %d samples, %.1f %% complete" % (len(rounds), sum(r[0].samples for r in rounds),
                                                       100 * statistics.median(r[1] for r in rounds))
    target, met = "", None
    if ratios:
        note += "; the prototype's 22 frames %s, of which sonde's p50 is %s" % (
            in_words([r[2] for r in rounds if r[2]]), " ".join("%.2f" % x for x in ratios))
    if case.ns:
        target, met = "p50 at most %.1f us" % (case.ns / 1000), p50 <= case.ns
    elif ratios:
        target, met = "%.1f of the prototype" % case.multiple, statistics.median(ratios) <= case.multiple
    else:
        target = "%.1f of the prototype, which is not here" % case.multiple
    table.add(what, in_words([r[0] for r in rounds]), target, met, note)


def rows(setup, table):
    prototype = Prototype(setup)
    if prototype.missing:
        table.add("the prototype to measure against", "NOT THERE", "", None, prototype.missing)
    cases = list(cases_of(setup, table))
    results = {case: [] for case in cases}
    for number in range(max(2, setup.rounds // 2)):
        table.progress("yardstick: round %d" % (number + 1))
        for case in cases:
            results[case].append(one_round(setup, case, prototype))
    for case, rounds in results.items():
        add_case(table, case, rounds)
