# SPDX-License-Identifier: Apache-2.0
"""What naming addresses costs: tables of a large C++ program with full debug information, beside llvm-symbolizer and
addr2line over the same addresses."""
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import time

UNITS = 3
ITEMS = 7
ADDRESSES = 20000
BUILDS = 5
SECONDS = 2

# Templates of the standard library, instantiated again and again: names and inlined calls as real programs have them.
HEAD = """#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
namespace unit%(unit)d {
"""
ITEM = """
struct item%(i)d {
	std::string name; std::vector<double> values; long key;
	bool operator<(const item%(i)d &other) const { return key < other.key; }
};
static long sum%(i)d(const std::map<std::string, item%(i)d> &items)
{
	long total = 0;
	for (const auto &[name, item] : items)
		total += std::accumulate(item.values.begin(), item.values.end(), 0.0) + name.size();
	return total;
}
long work%(i)d(const std::vector<std::string> &input)
{
	std::map<std::string, item%(i)d> by_name;
	std::unordered_map<long, std::list<item%(i)d>> by_key;
	std::set<item%(i)d> sorted;
	std::deque<std::shared_ptr<item%(i)d>> queue;
	std::mt19937 generator(%(i)d);
	std::uniform_int_distribution<long> any(0, 1000);
	for (const auto &name : input) {
		item%(i)d item{name, {1.0, 2.0, (double)name.size()}, any(generator)};
		by_name[name] = item;
		by_key[item.key].push_back(item);
		sorted.insert(item);
		queue.push_back(std::make_shared<item%(i)d>(item));
	}
	std::vector<item%(i)d> list(sorted.begin(), sorted.end());
	std::sort(list.begin(), list.end(), [](const item%(i)d &a, const item%(i)d &b) { return a.name < b.name; });
	std::stable_sort(list.begin(), list.end());
	std::regex pattern("a(b|c)*%(i)d");
	std::ostringstream out;
	for (const auto &item : list) {
		std::smatch match;
		if (std::regex_search(item.name, match, pattern))
			out << match.str(0) << item.key;
	}
	std::function<long(long)> add = [&](long x) { return x + (long)by_key.size() + (long)queue.size(); };
	return sum%(i)d(by_name) + add(out.str().size());
}
"""


def make_program(setup, table):
    """A C++ program of 16 MB or more, its symbols and debug information included."""
    table.progress("compiling a large C++ program")
    folder = os.path.join(setup.scratch, "large")
    os.mkdir(folder)
    runs = []
    for unit in range(UNITS):
        with open(os.path.join(folder, "unit%d.cpp" % unit), "w", encoding="utf-8") as f:
            f.write(HEAD % {"unit": unit} + "".join(ITEM % {"i": i} for i in range(ITEMS)))
            f.write("long run(const std::vector<std::string> &input) { return %s; }\n}\n" % " + ".join(
                "work%d(input)" % i for i in range(ITEMS)))
        runs.append("unit%d::run" % unit)
    with open(os.path.join(folder, "main.cpp"), "w", encoding="utf-8") as f:
        f.write("#include <string>\n#include <vector>\n")
        f.writelines("namespace unit%d { long run(const std::vector<std::string> &); }\n" % i for i in range(UNITS))
        f.write("int main(int argc, char **argv) { std::vector<std::string> input(argv, argv + argc);"
                " return %s; }\n" % " + ".join(run + "(input)" for run in runs))
    names = ["unit%d" % i for i in range(UNITS)] + ["main"]
    compilers = [subprocess.Popen(["g++", "-O2", "-g", "-c", name + ".cpp"], cwd=folder) for name in names]
    if any(compiler.wait() for compiler in compilers):
        raise RuntimeError("g++ failed")
    subprocess.run(["g++", "-o", "large"] + [name + ".o" for name in names], cwd=folder, check=True)
    return os.path.join(folder, "large")


def text_section(path):
    out = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    addr, size = re.search(r" \.text +PROGBITS +(\w+) +\w+ +(\w+)", out).groups()
    return int(addr, 16), int(size, 16)


def debug_bytes(path):
    out = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    return sum(int(size, 16) for size in re.findall(r" \.debug_\w+ +PROGBITS +\w+ +\w+ +(\w+)", out))


def run(setup, *args):
    done = subprocess.run([setup.program("bench_symbols"), *map(str, args)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def rate_of(argv, addresses):
    """Addresses a second of a tool that reads them from stdin, its start and first touch not counted."""
    def seconds(lines):
        begin = time.monotonic()
        subprocess.run(argv, input="".join("0x%x\n" % x for x in lines), check=True, text=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - begin

    first = min(seconds(addresses[:1]) for _ in range(3))
    return (len(addresses) - 1) / max(seconds(addresses) - first, 1e-9), first


def rows(setup, table):
    path = make_program(setup, table)
    image = setup.path(".sym")
    megabytes = os.path.getsize(path) / 1e6
    what = "a C++ program of %.0f MB with debug information" % megabytes

    table.progress("symbol table of %s" % what)
    builds = [run(setup, "build", path, image) for _ in range(BUILDS)]
    best = min(builds, key=lambda build: build["seconds"])
    table.add("first touch: symbol table of %s" % what,
              "%.3f s (median %.3f s)" % (best["seconds"], statistics.median(b["seconds"] for b in builds)),
              "below 0.5 s for 16 MB", best["seconds"] < 0.5,
              "%.3f s of CPU; %d units, %d functions, %d lines; %.0f MB memory at most" % (
                  min(b["cpu_seconds"] for b in builds), best["units"], best["functions"], best["lines"], best["peak_kb"] / 1024))
    debug = debug_bytes(path)
    table.add("  its size", "%.2f MB, %.1f %% of the debug information" % (best["size"] / 1e6, 100 * best["size"] / debug),
              "", None, "%.0f bytes a function, %.1f a line, all included" % (
                  best["size"] / best["functions"], best["size"] / best["lines"]))
    symbols = run(setup, "build", path, setup.path(".sym"), "symbols")
    table.add("  of its symbols alone", "%.3f s, %.2f MB" % (symbols["seconds"], symbols["size"] / 1e6))
    hit = run(setup, "hit", path, os.path.abspath(os.path.join(setup.scratch, "symbol-cache")))
    table.add("cache hit at start: store opened, file identified, table checked", "%.2f ms" % (hit["seconds"] * 1e3))

    table.progress("looking up")
    low, size = text_section(path)
    found = run(setup, "find", image, SECONDS, "%x" % low, "%x" % (low + size))
    table.add("symbolize, warm, with inlines and lines", "%.2f million addresses/s" % (found["rate"] / 1e6),
              "at least 1 million", found["rate"] >= 1e6,
              "a million random addresses of the program above, %.1f frames each, one core" % found["frames"])
    randomly = random.Random(1)
    addresses = [low + randomly.randrange(size) for _ in range(ADDRESSES)]
    for name, argv in (("llvm-symbolizer", ["llvm-symbolizer", "--no-demangle", "--obj=" + path]),
                       ("addr2line", ["addr2line", "-ife", path])):
        if not shutil.which(name):
            continue
        table.progress(name)
        rate, first = rate_of(argv, addresses)
        table.add("  %s, the same program" % name, "%.4f million addresses/s" % (rate / 1e6), "", None,
                  "%d addresses; its first one takes %.2f s" % (len(addresses), first))
