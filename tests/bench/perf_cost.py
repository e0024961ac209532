# SPDX-License-Identifier: Apache-2.0
"""A load under perf record: its CPU and bytes a 1,000 samples, and how much each tool slows the load."""
import shutil
import statistics
import time

from run import Perf, Sonde, alone, stacks_on_all_cpus

SECONDS = 8
FAST_HZ = 4999
FAST_SECONDS = 1.5
GRAPHS = {"perf record -g": "fp", "perf record --call-graph dwarf": "dwarf"}


def cost(samples, cpu_ms, size):
    return "%.1f ms CPU, %.0f kB a 1,000 samples" % (1000 * cpu_ms / samples, size / samples)


def total_rows(setup, table):
    """A whole recording, start and end included: what the user pays for a profile of some seconds."""
    table.progress("the same load under sonde and perf, 99 Hz")
    what = "whole recording of %d s, 22 frames, 99 Hz, %s"
    with stacks_on_all_cpus(setup, 22):
        sonde = Sonde(setup, 99)
        time.sleep(SECONDS)
        stats = sonde.stop()
        table.add(what % (SECONDS, "sonde"), cost(stats["samples"], stats["cpu_ms"], stats["bytes"]), "", None,
                  "start, naming and writing included; %d samples" % stats["samples"])
        for name, graph in GRAPHS.items() if shutil.which("perf") else ():
            perf = Perf(setup, 99, graph, SECONDS).wait()
            table.add(what % (SECONDS, name), cost(perf.samples, perf.cpu_ms, perf.bytes), "", None,
                      "recording only: unwinding and naming come with perf report; %d samples" % perf.samples)


def leaves_per_second(setup, begin):
    """How much the load gets done meanwhile, while it and the tool have the CPUs nearly for themselves."""
    with stacks_on_all_cpus(setup, 22) as (pids, results):
        with alone(pids):
            end = begin()
            time.sleep(FAST_SECONDS)
            end()
    # CPU time has the interrupts in it (the kernel's accounting is by ticks) but not what others used, nor the tool.
    return sum(r[0] for r in results) / sum(r[1] for r in results) * 1e9


def slow_down_rows(setup, table):
    def with_sonde():
        return Sonde(setup, FAST_HZ).stop

    def with_perf(graph):
        return lambda: Perf(setup, FAST_HZ, graph, FAST_SECONDS).wait

    ways = {"sonde": with_sonde}
    if shutil.which("perf"):
        ways.update({name: with_perf(graph) for name, graph in GRAPHS.items()})
    losses = {name: [] for name in ways}
    for number in range(3):
        table.progress("slow-down at %d Hz: round %d" % (FAST_HZ, number + 1))
        for name, begin in ways.items():
            # Between two bare runs: the machine's own speed drifts.
            bare = leaves_per_second(setup, lambda: lambda: None)
            speed = leaves_per_second(setup, begin)
            bare = (bare + leaves_per_second(setup, lambda: lambda: None)) / 2
            losses[name].append(100 * (1 - speed / bare))
    for name, values in losses.items():
        table.add("slow-down of the load by interrupts, 22 frames, %d Hz, %s" % (FAST_HZ, name),
                  "median %.1f %%" % statistics.median(values), "", None,
                  "rounds: %s" % " ".join("%.1f" % x for x in values))
