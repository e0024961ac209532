# SPDX-License-Identifier: Apache-2.0
"""Programs as people run them, of which nearly every stack is a new one: a compiler, and a video encoder."""
import contextlib
import os
import shutil
import signal
import subprocess

from run import Sonde, alone, cpus, least_and_median

HZ = 99
SECONDS = 8
WARM_UP = 8  # seconds: the programs' tables are loaded
# Of one translation unit: what the optimizer has to do with each copy is the same, in other functions.
SOURCE = """#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
"""
FUNCTION = """struct S%(n)d { int a[%(size)d]; bool operator<(const S%(n)d &o) const { return a[0] < o.a[0]; } };
int f%(n)d(std::vector<S%(n)d> &v, std::map<std::string, S%(n)d> &m, const std::string &t)
{
	std::map<int, S%(n)d> by;
	int n = 0;
	std::sort(v.begin(), v.end());
	std::stable_sort(v.begin(), v.end(), [](const S%(n)d &x, const S%(n)d &y) { return x.a[1] < y.a[1]; });
	for (auto &p : m)
		n += p.second.a[0];
	for (auto &x : v)
		by[x.a[0]] = x;
	return n + std::regex_search(t, std::regex("a+b*%(n)d")) + (int)by.size();
}
"""
# Name, what has to be there, its arguments (%s: the source, %o: a file of its own), the most that a sample may take.
LOADS = [
    ("clang++ -O3", "clang++", ["-O3", "-w", "-c", "-o", "%o", "%s"], 12000),
    ("ffmpeg, libx264", "ffmpeg", ["-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=s=1280x720:d=20", "-c:v", "libx264",
                                   "-threads", "1", "-preset", "medium", "-f", "null", "-"], 6000),
]


def write_source(path):
    with open(path, "w", encoding="utf-8") as f:
        f.write(SOURCE + "".join(FUNCTION % {"n": n, "size": n + 2} for n in range(120)))


@contextlib.contextmanager
def repeated(argv):
    """A shell on each CPU that runs the program over and over, each in a group of its own; their PIDs."""
    running = [subprocess.Popen(["sh", "-c", 'while :; do "$@" || exit; done', "sh", *argv], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) for _ in cpus()]
    try:
        yield [p.pid for p in running]
        if any(p.poll() is not None for p in running):
            raise RuntimeError("%s fails" % argv[0])
    finally:
        for p in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()


def members(groups):
    """The processes in these groups. (What they start from now on has their priority.)"""
    found = subprocess.run(["ps", "-eo", "pid=,pgid="], check=True, capture_output=True, text=True).stdout
    return [int(pid) for pid, group in map(str.split, found.splitlines()) if int(group) in groups]


def measure(setup, groups):
    """(ns a sample by the kernel's statistics, share of complete stacks)."""
    # What they start from now on is sampled, too.
    sonde = Sonde(setup, HZ, ["-p", ",".join(map(str, members(groups)))])
    sonde.span(WARM_UP)
    with alone(members(groups)):
        span = sonde.span(SECONDS)
    with alone(members(groups)):  # what they have started meanwhile goes back to what is normal, too
        pass
    stats = sonde.stop()
    return span.bpf_ns_per_run(), stats["complete"] / max(stats["samples"], 1)


def rows(setup, table):
    paths = {"%s": setup.path(".cc"), "%o": setup.path(".o")}
    write_source(paths["%s"])
    for name, program, arguments, target in LOADS:
        what = "kernel, a sample of %s, %d Hz" % (name, HZ)
        if not shutil.which(program):
            table.add(what, "not measured", "", None, "%s is not installed" % program)
            continue
        results = []
        with repeated([program] + [paths.get(a, a) for a in arguments]) as pids:
            for number in range(setup.rounds):
                table.progress("%s: round %d of %d" % (name, number + 1, setup.rounds))
                results.append(measure(setup, pids))
        least, median = least_and_median([ns for ns, _ in results])
        table.add(what, "min %.2f us, median %.2f us" % (least / 1000, median / 1000), "at most %.0f us" % (target / 1000),
                  median <= target, "rounds: %s; complete: %s" % (" ".join("%.2f" % (ns / 1000) for ns, _ in results),
                                                                 " ".join("%.1f %%" % (100 * part) for _, part in results)))
