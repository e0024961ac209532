#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random code addresses of big files, named by us, addr2line and llvm-symbolizer.

    compare.py --symbolize PROGRAM [--nr N] [--show N] [--seed N] FILE...

Addresses are drawn from where sized function symbols are. Two answers are equal if they have as many frames, and of each
the name, file and line are. Names are equal if they are the same as the linker has them, or symbols of one address, or
the same without what compilers append to clones (".cold", ".part.0"), or one is the other with its namespaces. Files
are equal if one path is the end of the other. See docs/names.md.

TAP: a file is good if at least 99.9 % of our answers equal one of the others', where these differ from each other, or both.
"""
import argparse
import bisect
import collections
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import symbolizers

CLONE = re.compile(r"(\.(cold|part|constprop|isra|lto_priv|llvm|localalias|specialized|clone|resolver|avx2?|sse2?)(\.?\d+)*)+$")
LEAST = 0.999


def symbols(path):
    """(address, size, name) of the functions of a file and of its debug file."""
    found = set()
    for name in [path, debug_file(path)]:
        if not name:
            continue
        text = subprocess.run(["readelf", "-sW", name], capture_output=True, text=True, errors="surrogateescape",
                              check=True).stdout
        for line in text.splitlines():
            f = line.split()
            if len(f) >= 8 and f[0][:-1].isdigit() and f[3] in ("FUNC", "IFUNC") and f[6] != "UND":
                found.add((int(f[1], 16), int(f[2], 0), f[7].split("@")[0]))
    return sorted(found)


def debug_file(path):
    text = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=False).stdout
    match = re.search("Build ID: ([0-9a-f]+)", text)
    name = match and "/usr/lib/debug/.build-id/%s/%s.debug" % (match[1][:2], match[1][2:])
    return name if name and os.path.exists(name) else None


class Judge:
    """Says whether answers about one file are equal."""

    def __init__(self, path):
        self.symbols = symbols(path)
        self.begins = sorted({address for address, size, _ in self.symbols if size})
        self.addresses = collections.defaultdict(set)
        for address, _, name in self.symbols:
            self.addresses[name].add(address)

    def names_at(self, address):
        """Of the sized symbols that cover an address, the names of those that begin nearest."""
        i = bisect.bisect_right(self.begins, address)
        begin = self.begins[i - 1] if i else 0
        return {name for at, size, name in self.symbols if at == begin and address < at + size}

    def same_name(self, a, b):
        if a == b or CLONE.sub("", a) == CLONE.sub("", b):
            return True
        if a.endswith(("::" + b, "." + b)) or b.endswith(("::" + a, "." + a)):
            return bool(a and b)
        return bool(self.addresses.get(a, set()) & self.addresses.get(b, set()))

    def same(self, a, b):
        """None, or what differs."""
        a, b = [[f for f in frames if f.raw or f.line] for frames in (a, b)]
        if len(a) != len(b):
            return "frames"
        for x, y in zip(a, b):
            if not self.same_name(x.raw, y.raw):
                return "name"
            if x.line != y.line:
                return "line"
            # Without a line, other tools take the file's name from the symbol table.
            if x.line and not symbolizers.same_file(x.file, y.file):
                return "file"
        return None

    def verdict(self, _, ours, gnu, llvm):
        with_gnu, with_llvm = self.same(ours, gnu), self.same(ours, llvm)
        if not with_gnu and not with_llvm:
            return "both"
        if not with_llvm:
            return "llvm"
        if not with_gnu:
            return "gnu"
        return "neither" if self.same(gnu, llvm) else "different"


def draw(found, nr, rng):
    """Random addresses in functions; each byte is as likely as another."""
    ranges, end = [], 0
    for address, size, _ in found:
        begin = max(address, end)
        if address + size > begin:
            ranges.append((begin, address + size))
            end = address + size
    sums, total = [], 0
    for begin, stop in ranges:
        total += stop - begin
        sums.append(total)
    picked = []
    for _ in range(nr):
        at = rng.randrange(total)
        i = bisect.bisect_right(sums, at)
        picked.append(ranges[i][1] - (sums[i] - at))
    return picked


def show(frames):
    return " < ".join("%s (%s:%d)" % (f.raw, f.file, f.line) for f in frames) or "nothing"


def timed(what, function, *args):
    begin = time.monotonic()
    result = function(*args)
    what.append(time.monotonic() - begin)
    return result


def compare(path, ours, args):
    """(share of good ones, the line that says so, examples)"""
    judge = Judge(path)
    addresses = draw(judge.symbols, args.nr, random.Random(args.seed))
    took = []
    answers = [timed(took, tool, path, addresses)
               for tool in (ours, symbolizers.addr2line, symbolizers.llvm_symbolizer)]
    counts, reasons, examples = collections.Counter(), collections.Counter(), []
    for address, mine, gnu, llvm in zip(addresses, *answers):
        verdict = judge.verdict(address, mine, gnu, llvm)
        counts[verdict] += 1
        if verdict in args.classes:
            why = "%s: %s" % (verdict, judge.same(mine, llvm if verdict == "gnu" else gnu))
            reasons[why] += 1
            if reasons[why] <= args.show:
                examples.append("0x%x %s\n  ours: %s\n  gnu:  %s\n  llvm: %s" % (address, why, show(mine), show(gnu), show(llvm)))
    good = (counts["both"] + counts["gnu"] + counts["llvm"]) / len(addresses)
    line = "%.3f %%: equal to both %d, to addr2line alone %d, to llvm-symbolizer alone %d, to neither, which differ %d, " \
           "which agree %d; %s; ours %.1f s, addr2line %.1f s, llvm-symbolizer %.1f s" % (
               good * 100, counts["both"], counts["gnu"], counts["llvm"], counts["neither"], counts["different"],
               dict(reasons), *took)
    return good, line, examples


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symbolize", required=True)
    parser.add_argument("--nr", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="examples of each kind of difference")
    parser.add_argument("--classes", default="neither,different", type=lambda s: s.split(","))
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    ours = symbolizers.Ours(os.path.abspath(args.symbolize))
    failed = 0
    print("1..%d" % len(args.files), flush=True)
    for number, path in enumerate(args.files, 1):
        if not os.path.exists(path):
            print("ok %d - %s # SKIP it is not here" % (number, path))
            continue
        good, line, examples = compare(os.path.realpath(path), ours, args)
        failed += good < LEAST
        print("%s %d - %s" % ("ok" if good >= LEAST else "not ok", number, path))
        print("# %s" % line)
        for example in examples:
            print("# " + example.replace("\n", "\n# "))
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(guard.run(main))
