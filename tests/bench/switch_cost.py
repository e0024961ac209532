# SPDX-License-Identifier: Apache-2.0
"""What a switch of threads costs in the kernel while sleeps are taken (--off-cpu), by the kernel's own run-time statistics."""
import contextlib
import glob
import json
import re
import subprocess
import time

from kernel_cost import us
from run import Sonde, cpus, least_and_median, processes
from footprint import read

WARM_UP = 1.5  # seconds: first samples are raw ones, tables are loaded
SECONDS = 2

SWITCH = ("on_switch", "sample_woken")
CASES = [  # what, options, programs
    ("a switch that is not taken (P = 0.000001)", ["--off-cpu", "0.000001"], SWITCH),
    ("a switch that is not taken (weighted=1s)", ["--off-cpu", "weighted=1s"], SWITCH),
    ("a switch of who is not selected", ["--off-cpu", "1", "--exclude", "comm=switches"], SWITCH),
    ("a switch that is taken (P = 1)", ["--off-cpu", "1"], SWITCH),
    ("a wake-up, --off-cpu-waker, of a sleep that is not taken", ["--off-cpu", "weighted=1s", "--off-cpu-waker"], ("sample_waker",)),
    ("a wake-up, --off-cpu-waker, of a sleep that is taken", ["--off-cpu", "1", "--off-cpu-waker"], ("sample_waker",)),
]


def run_times(pid):
    """Of the programs that the process holds: by name (nanoseconds, runs)."""
    ids = set()
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError):
            ids.update(re.findall(r"^prog_id:\s+(\d+)", read(path), re.M))
    found = {}
    for ident in ids:
        shown = subprocess.run(["bpftool", "-j", "prog", "show", "id", ident], check=False, capture_output=True, text=True)
        if not shown.returncode:
            program = json.loads(shown.stdout)
            found[program.get("name")] = (program.get("run_time_ns", 0), program.get("run_cnt", 0))
    return found


def measure(setup, options, programs):
    """Nanoseconds for each run of the first program, in all of them together, and its runs a second."""
    with processes([[setup.program("switches"), str(cpu)] for cpu in cpus()]):
        sonde = Sonde(setup, 99, options)
        time.sleep(WARM_UP)
        begin = run_times(sonde.pid)
        time.sleep(SECONDS)
        end = run_times(sonde.pid)
        sonde.stop()
    spent = sum(end[name][0] - begin[name][0] for name in programs)
    runs = end[programs[0]][1] - begin[programs[0]][1]
    return spent / max(runs, 1), runs / SECONDS


def rows(setup, table):
    results = [[] for _ in CASES]
    for number in range(setup.rounds):
        table.progress("switches: round %d of %d" % (number + 1, setup.rounds))
        for (_, options, programs), result in zip(CASES, results):
            result.append(measure(setup, options, programs))
    for (what, _, programs), result in zip(CASES, results):
        least, median = least_and_median([ns for ns, _ in result])
        table.add("kernel, " + what, "min %s, median %s" % (us(least), us(median)), "", None,
                  "%d rounds; %s; %d a second, those of others among them" % (
                      len(result), " and ".join(programs), least_and_median([rate for _, rate in result])[1]))
