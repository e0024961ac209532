#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What sonde costs on this machine, beside its targets. `make bench`; docs/benchmarks.md says how it is measured.

    bench.py --sonde PROGRAM --programs DIR --workloads DIR [--rounds N] [--only REGEX] [--markdown FILE]

Needs root. Takes about half an hour. Parts: yardstick, kernel, switches, redis, loads, table, symbols, ordinary, idle, agent, first, short, perf, slowdown,
runtimes, runtimes_slowdown.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile
import time
import traceback

import agent_cost
import bench_symbols
import daemon_cost
import kernel_cost
import kernel_frames
import perf_cost
import real_loads
import runtime_cost
import switch_cost
import yardstick
from run import Setup

PARTS = {
    "yardstick": yardstick.rows,
    "kernel": kernel_cost.rows,
    "switches": switch_cost.rows,
    "redis": kernel_frames.rows,
    "loads": real_loads.rows,
    "table": agent_cost.table_rows,
    "symbols": bench_symbols.rows,
    "ordinary": agent_cost.ordinary_rows,
    "idle": agent_cost.idle_rows,
    "agent": daemon_cost.rows,
    "first": agent_cost.first_stack_rows,
    "short": agent_cost.short_rows,
    "perf": perf_cost.total_rows,
    "slowdown": perf_cost.slow_down_rows,
    "runtimes": runtime_cost.kernel_rows,
    "runtimes_slowdown": runtime_cost.slow_down_rows,
}
VERDICTS = {True: "met", False: "MISSED", None: ""}


class Table:
    """The rows, printed as they come: what, measured, target, verdict; a note below."""

    def __init__(self):
        self.rows = []
        self.heading = "%-72s %-44s %-28s %s" % ("what", "measured", "target", "")

    def progress(self, text):
        print("# %s  %s" % (time.strftime("%H:%M:%S"), text), file=sys.stderr, flush=True)

    def add(self, what, measured, target="", met=None, note=""):
        self.rows.append((what, measured, target, VERDICTS[met], note))

    def show(self):
        print(self.heading)
        for what, measured, target, verdict, note in self.rows:
            print(("%-72s %-44s %-28s %s" % (what, measured, target, verdict)).rstrip())
            if note:
                print("    (%s)" % note)
        missed = [row for row in self.rows if row[3] == "MISSED"]
        judged = sum(bool(row[3]) for row in self.rows)
        print("%d of %d targets met" % (judged - len(missed), judged))

    def markdown(self, path):
        with open(path, "w", encoding="utf-8") as f:
            f.write("| what | measured | target | | remarks |\n|---|---|---|---|---|\n")
            for row in self.rows:
                f.write("| %s |\n" % " | ".join(cell.strip() for cell in row))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    return "%s, %d CPUs, Linux %s, load %.1f" % (model.group(1) if model else os.uname().machine, os.cpu_count(),
                                                 os.uname().release, os.getloadavg()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    root = os.environ.get("SONDE_BUILD_ROOT", "build")
    parser.add_argument("--sonde", default=os.path.join(root, "sonde"))
    parser.add_argument("--programs", default=os.path.join(root, "tests", "bench"))
    parser.add_argument("--workloads", default=os.path.join(root, "tests", "workloads"))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", default="", help="the parts whose name this matches")
    parser.add_argument("--markdown", help="write the table there, too")
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("the benchmarks need root")
        return 77
    # Not where a file system in memory may be: perf writes hundreds of megabytes.
    scratch = tempfile.mkdtemp(prefix="bench-", dir=root if os.path.isdir(root) else None)
    paths = [os.path.abspath(p) for p in (args.sonde, args.programs, args.workloads)]
    setup = Setup(*paths, scratch, args.rounds)
    table = Table()
    print("%s; %s" % (time.strftime("%Y-%m-%d %H:%M", time.gmtime()), machine()))
    failed = []
    for name, part in PARTS.items():
        if not re.search(args.only, name):
            continue
        try:
            part(setup, table)
        except Exception:  # the other parts still say something
            failed.append(name)
            traceback.print_exc()
    shutil.rmtree(scratch)
    table.show()
    if args.markdown:
        table.markdown(args.markdown)
    for name in failed:
        print("part %s failed" % name)
    # A missed target is a finding, not a failure of the benchmark.
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
