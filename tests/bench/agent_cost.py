# SPDX-License-Identifier: Apache-2.0
"""What sonde costs in user space: tables, memory, CPU, and how soon and how surely new processes are seen."""
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from footprint import Watcher, total
from kernel_cost import add_cpu, us
from run import BUSY, LOAD_PRIORITY, SLEEPER, Sonde, at_priority, processes

ORDINARY = 100
FRESH = 40
MS_RANGE = 100  # of first_stack

def largest_library():
    """libLLVM where there is one, else the largest library."""
    paths = {os.path.realpath(p) for d in ("/usr/lib", "/usr/lib64", "/usr/lib/*-linux-gnu", "/usr/lib/llvm-*/lib")
             for p in glob.glob(d + "/*.so*")}
    paths = [p for p in paths if os.path.isfile(p)]
    return max(paths, key=lambda p: ("libLLVM" in p, os.path.getsize(p)))

def table_rows(setup, table):
    path = largest_library()
    table.progress("unwind table of %s" % path)
    out = subprocess.run([setup.program("bench_unwind_table"), path], check=True, capture_output=True, text=True).stdout
    nr = int(re.search(r"\((\d+) before", out).group(1))
    ms = float(re.search(r"([\d.]+) ms", out).group(1))
    transient = float(re.search(r"transient ([\d.-]+) of", out).group(1))
    target = 24 * nr / 848000  # of LLVM 14's library; by rows
    what = "unwind table of %s (%d thousand rows)" % (os.path.basename(path), nr / 1000)
    table.add(what, "%.1f ms on one core, %.1f million rows/s" % (ms, nr / ms / 1000),
              "at most %.1f ms (24 ms for 848 thousand)" % target, ms <= target, "best of five")
    table.add("  transient memory", "%.2f of the result" % transient, "below 2", transient < 2)

def ordinary_rows(setup, table):
    """Memory, and steady CPU, while a hundred ordinary processes run."""
    shells = (ORDINARY - len(BUSY)) // 2
    commands = BUSY + [["sh", "-c", SLEEPER]] * shells  # each sleeping shell has a child
    with processes(commands) as pids:
        for what, options in (("whole system", ()), ("these only (-p)", ("-p", ",".join(map(str, pids))))):
            table.progress("%d ordinary processes, %s" % (ORDINARY, what))
            ordinary_row(setup, table, what, options)


def ordinary_row(setup, table, what, options):
    sonde = Sonde(setup, 99, options)
    watcher = Watcher(sonde.pid, 0.1)
    sonde.span(5)
    spans = [sonde.span(3) for _ in range(5)]
    largest = watcher.stop()
    stats = sonde.stop()
    mb = 1e6
    what = "%d ordinary processes, %s" % (ORDINARY, what)
    table.add("resident memory, %s" % what,
              "%.1f MB (%.1f MB of them BPF maps' pages)" % (largest.rss / mb, largest.mapped / mb),
              "at most 20 MB", largest.rss <= 20 * mb,
              "the largest in 20 s; sonde says %.1f MB at its end" % (stats["rss_kb"] * 1024 / mb))
    table.add("BPF maps, %s" % what, "%.1f MB" % (largest.maps / mb), "at most 12 MB", largest.maps <= 12 * mb,
              "sonde says %.1f MB; both together, pages counted once: %.1f MB" % (
                  stats["map_bytes"] / mb, total(largest) / mb))
    add_cpu(table, "sonde's CPU, steady, a 1,000 samples at 99 Hz, %s" % what, spans)
    table.add("kernel, a sample, %s" % what, us(statistics.median(s.bpf_ns_per_run() for s in spans)), "", None,
              "%.2f %% complete, truncated %s, lost %s; %d processes and %d files were new to sonde" % (
                  100 * stats["complete"] / max(stats["samples"], 1), stats["truncated"], stats["lost"],
                  stats["processes"], stats["files"]))


def idle_rows(setup, table):
    table.progress("idle machine, %d sleeping processes" % ORDINARY)
    with processes([["sleep", "1000"]] * ORDINARY) as pids:
        for what, options in (("idle machine", ()), ("the %d only (-p)" % ORDINARY, ("-p", ",".join(map(str, pids))))):
            sonde = Sonde(setup, 20, options)
            sonde.span(2)
            span = sonde.span(15)
            sonde.stop()
            share = (span.cpu_ns + span.bpf_ns) / span.seconds / 1e7
            table.add("%d sleeping processes, 20 Hz, %s" % (ORDINARY, what), "%.3f %% of a core" % share,
                      "at most 0.15 %", share <= 0.15,
                      "user and system %.3f %%, BPF %.3f %%; the CPUs were %.0f %% busy with others" % (
                          span.cpu_ns / span.seconds / 1e7, span.bpf_ns / span.seconds / 1e7, 100 * span.busy))

def first_stack_rows(setup, table):
    """Each process is a new executable, and its functions tell the time since before its fork."""
    table.progress("%d fresh executables" % FRESH)
    folder = os.path.join(setup.scratch, "fresh")
    os.mkdir(folder)
    with open(setup.program("first_stack"), "rb") as f:
        content = f.read()
    sonde = Sonde(setup, 4999)
    for i in range(FRESH):
        path = os.path.join(folder, "fresh%d" % i)
        with open(path, "wb") as f:
            f.write(content + b"%08d" % i)
        os.chmod(path, 0o755)
        begin = time.monotonic_ns()
        subprocess.run([path, str(begin)], check=True, preexec_fn=at_priority(LOAD_PRIORITY))
    sonde.stop()
    shutil.rmtree(folder)
    first_any, first_complete, early, early_complete = {}, {}, 0, 0
    for comm, stack, count in sonde.stacks():
        found = [re.fullmatch(r"ms_(\d\d\d)", frame) for frame in stack]
        at = [int(m.group(1)) for m in found if m]
        if not comm.startswith("fresh") or not at:
            continue
        complete = not stack[0].startswith("[truncated")
        first_any[comm] = min(at[0], first_any.get(comm, MS_RANGE))
        if complete:
            first_complete[comm] = min(at[0], first_complete.get(comm, MS_RANGE))
        if at[0] < 50:
            early += count
            early_complete += complete * count
    values = [first_complete.get("fresh%d" % i, MS_RANGE) + 1 for i in range(FRESH)]
    seen = [first_any.get("fresh%d" % i, MS_RANGE) + 1 for i in range(FRESH)]
    table.add("new process and file to first complete stack, from before fork",
              "median %d ms, max %d ms" % (statistics.median(values), max(values)), "below 50 ms", max(values) < 50,
              "first sample in its own code: median %d, max %d ms; complete in the first 50 ms: %.2f %% of %d" % (
                  statistics.median(seen), max(seen), 100 * early_complete / max(early, 1), early))

def short_rows(setup, table):
    table.progress("1,000 processes of 10 ms")
    live = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "live_test.py")
    for name, target in (("same-executable-command", 99), ("different-executables-command", 95)):
        command = [sys.executable, live, "short", "--only", name, "--sonde", setup.sonde]
        command += ["--workloads", setup.workloads]
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
        m = re.search(r"(\d+) of (\d+) samples arrived; (\d+) samples, (\d+) complete", out)
        if not m:
            table.add("1,000 processes of 10 ms, %s" % name, "failed", "at least %d %%" % target, False,
                      " ".join(out.split())[:300])
            continue
        arrived, expected, samples, complete = map(int, m.groups())
        share = 100 * min(arrived / expected, 1) * complete / max(samples, 1)
        table.add("1,000 processes of 10 ms, %s" % name.replace("-command", "").replace("-", " "),
                  "%.2f %% delivered and complete" % share, "at least %d %%" % target, share >= target, m.group(0))
