# SPDX-License-Identifier: Apache-2.0
"""Sonde beside `perf record --call-graph dwarf` on the same process at the same time: the inclusive shares of the
functions must agree.

How functions are compared: perf's addresses are named here from the same tables that sonde has (.symtab, else
.dynsym, of the mapped file itself and of its debug file); names of one address are one function, whichever name a tool prefers; where
no symbol covers an address, the function is the range of its FDE: "[libsqlite3.so.0.8.6 fde 0x4f2a0]".
Stacks that perf or sonde could not finish are left out on both sides: perf's are those
that end in a function that is the outermost of no complete stack of sonde's. Kernel frames are not compared.
"""
import bisect
import collections
import functools
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile

from modes import burnt, recording_began, wait_until
from sonde import Recorder
from tap import Skip

SECONDS = 6  # of CPU
SONDE_HZ = 997
PERF_HZ = 1009
POINTS = 2.0
DEVIATIONS = 5  # of what chance makes of the difference: seldomer than once in a million
# Percent of sonde's samples: of functions without CFI (OpenSSL has some in assembler: bn_gather5), and those that
# are taken while libcrypto's table is built: at this frequency they may be more than are kept for later.
TRUNCATED = 1
PENDING = 5
TOP = 20
# Bytes of stack that perf copies: more than these programs use below main.
DUMP = 16384
# The least share of the samples of that CPU time: what fewer say is not compared. perf writes 16 MB a second, and drops what it
# can't write in time; and a machine whose own host is busy has fewer ticks than CPU time, for both.
USABLE = 0.3
# Percent of sonde's samples that it may drop.
LOST = 10

RECURSIVE_QUERY = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
    "SELECT count(*), sum(length(printf('%d-%s', x, hex(x))) + instr(hex(x*x), '3') + abs(x % 77)) FROM c;"
)

PROGRAMS = {
    "openssl": ["openssl", "speed", "-seconds", "1000", "rsa2048"],
    "sqlite3": ["sqlite3", ":memory:", RECURSIVE_QUERY],
    "xz": ["sh", "-c", 'while :; do cat "$0"; done | exec xz -6 -T1 -c >/dev/null', "/usr/bin/openssl"],
}


class File:
    """The functions of one ELF file: by symbol, else by FDE."""

    def __init__(self, path):
        self.base = os.path.basename(path)
        self.symbols = []  # (start, end, key)
        self.names = {}  # any name -> key
        self.fdes = []
        self.loads = []  # (offset, vaddr, size)
        if os.path.exists(path):
            self._read_symbols(path)
            self._read_fdes(path)
            self._read_loads(path)

    @staticmethod
    def _tool(*argv):  # readelf fails for a missing debug file too
        return subprocess.run(argv, check=False, capture_output=True, text=True, errors="replace").stdout

    def _debug_file(self, path):
        """The separate debug file, by build-id, or None."""
        m = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", self._tool("readelf", "-n", path))
        debug = "/usr/lib/debug/.build-id/%s/%s.debug" % m.groups() if m else ""
        return debug if os.path.exists(debug) else None

    def _read_symbols(self, path):
        by_start = collections.defaultdict(dict)
        pattern = re.compile(r"^ *\d+: ([0-9a-f]+) +(\w+) (?:FUNC|IFUNC|NOTYPE) +\w+ +\w+ +(\w+) (\S+)")
        text = "".join(self._tool("readelf", "-W", "--syms", "--dyn-syms", "--demangle", p)
                       for p in (path, self._debug_file(path)) if p)
        for line in text.splitlines():
            m = pattern.match(line)
            if m and m.group(3) not in ("UND", "ABS") and int(m.group(2), 0):
                by_start[int(m.group(1), 16)][m.group(4).split("@")[0]] = int(m.group(2), 0)
        for start, names in sorted(by_start.items()):
            key = min(names)
            self.symbols.append((start, start + max(names.values()), key))
            self.names.update(dict.fromkeys(names, key))

    def _read_fdes(self, path):
        for m in re.finditer(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", self._tool("readelf", "-W", "-wf", path)):
            self.fdes.append((int(m.group(1), 16), int(m.group(2), 16)))
        self.fdes.sort()

    def _read_loads(self, path):
        pattern = r"LOAD +(0x[0-9a-f]+) (0x[0-9a-f]+) 0x[0-9a-f]+ (0x[0-9a-f]+)"
        for m in re.finditer(pattern, self._tool("readelf", "-lW", path)):
            self.loads.append(tuple(int(x, 16) for x in m.groups()))

    def vaddr(self, offset):
        for start, vaddr, size in self.loads:
            if start <= offset < start + size:
                return offset - start + vaddr
        return offset

    def key(self, vaddr):
        """The function at an address of the file."""
        for table, named in ((self.symbols, True), (self.fdes, False)):
            i = bisect.bisect_right(table, (vaddr, 1 << 62)) - 1
            if i >= 0 and vaddr < table[i][1]:
                return table[i][2] if named else "[%s fde %#x]" % (self.base, table[i][0])
        return "[%s]" % self.base


class Files:
    """All files of the recorded process."""

    def __init__(self):
        self.by_path = {}

    def get(self, path):
        if path not in self.by_path:
            self.by_path[path] = File(path)
        return self.by_path[path]

    def key_of_label(self, label):
        """The function of one of sonde's frames."""
        m = re.match(r"^\[(.*)\+0x([0-9a-f]+)\]$", label)
        for f in self.by_path.values():
            if m and f.base == m.group(1):
                return f.key(int(m.group(2), 16))
            if label in f.names:
                return f.names[label]
        return label


def perf_stacks(path, files):
    """The stacks of a perf.data: a Counter of tuples of functions, outermost first."""
    argv = ["perf", "script", "-i", path, "--no-inline", "-F", "comm,ip,sym,dso"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    frame = re.compile(r"^\s+([0-9a-f]+) .* \(([^()]*)\)$")
    cache = {}
    stacks = collections.Counter()

    def key(line):
        m = frame.match(line)
        if not m:
            return "[unknown]"
        if int(m.group(1), 16) >> 63:
            return None
        # An offset in the file; of a caller that of the call, not of the return address.
        f = files.get(m.group(2))
        return f.key(f.vaddr(int(m.group(1), 16)))

    stack = None
    for line in process.stdout:
        if not line.strip():
            if stack is not None:
                stacks[tuple(reversed(stack))] += 1
            stack = None
        elif not line[0].isspace():
            stack = []
        elif stack is not None:
            if line not in cache:
                cache[line] = key(line)
            if cache[line]:
                stack.append(cache[line])
    process.wait()
    return stacks


def sonde_stacks(recording, files):
    stacks = collections.Counter()
    left_out = 0
    for s in recording.stacks:
        if s.reason:
            left_out += s.count
        else:
            stacks[tuple(files.key_of_label(x) for x in s.user)] += s.count
    return stacks, left_out


def shares(stacks):
    """Percent of the samples that each function is in."""
    total = sum(stacks.values())
    inclusive = collections.Counter()
    for stack, n in stacks.items():
        for function in set(stack):
            inclusive[function] += n
    return {f: 100 * n / total for f, n in inclusive.items()}


def compare(ours, theirs):
    a, b = shares(ours), shares(theirs)
    parts = 1 / sum(ours.values()) + 1 / sum(theirs.values())
    top = sorted(set(a) | set(b), key=lambda f: -max(a.get(f, 0), b.get(f, 0)))[:TOP]
    lines = []
    worst = 0.0
    for f in top:
        difference = a.get(f, 0) - b.get(f, 0)
        worst = max(worst, abs(difference))
        share = (a.get(f, 0) + b.get(f, 0)) / 2
        if abs(difference) > max(POINTS, DEVIATIONS * math.sqrt(share * (100 - share) * parts)):
            lines.append("%s: sonde %.2f %%, perf %.2f %%" % (f, a.get(f, 0), b.get(f, 0)))
    return lines, worst


def start(argv):
    """The program and the PID to record (of a pipeline, its last process)."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    if argv[0] != "sh":
        return process, process.pid
    path = "/proc/%d/task/%d/children" % (process.pid, process.pid)

    def find():
        with open(path, encoding="utf-8") as f:
            for pid in f.read().split():
                with open("/proc/%s/comm" % pid, encoding="utf-8") as c:
                    if c.read().strip() == "xz":
                        return int(pid)
        return 0

    wait_until("xz", find)
    return process, find()


def record_both(setup, pid):
    fd, data = tempfile.mkstemp(suffix=".perf", dir=setup.scratch)
    os.close(fd)
    burnt(pid, 0.5)
    perf = subprocess.Popen(
        ["perf", "record", "-q", "-p", str(pid), "-e", "cpu-clock", "-F", str(PERF_HZ), "-m", "64M"]
        + ["--call-graph", "dwarf,%d" % DUMP, "-o", data],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    recorder = Recorder(setup, ["-p", str(pid)], frequency=SONDE_HZ)
    recording_began(recorder)
    burnt(pid, SECONDS)
    recorder.process.send_signal(signal.SIGINT)
    recording = recorder.wait()
    perf.send_signal(signal.SIGINT)
    perf.wait()
    return recording, data


def run(name, setup):
    argv = PROGRAMS[name]
    for tool in ("perf", "readelf", name):
        if not shutil.which(tool):
            raise Skip("no %s" % tool)
    process, pid = start(argv)
    try:
        recording, data = record_both(setup, pid)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    recording.expect_status(0)
    if recording.stacks is None:
        return recording.problems, None
    files = Files()
    theirs = perf_stacks(data, files)
    os.unlink(data)
    ours, truncated = sonde_stacks(recording, files)
    bottoms = {s[0] for s in ours if s}
    finished = collections.Counter({s: n for s, n in theirs.items() if not s or s[0] in bottoms})
    dropped = sum(theirs.values()) - sum(finished.values())
    problems = recording.problems
    for who, stacks in (("sonde", ours), ("perf", finished)):
        if sum(stacks.values()) < USABLE * SECONDS * SONDE_HZ:
            problems.append("%s has only %d usable samples: %s, lost %s" % (
                who, sum(stacks.values()), recording.stats["truncated"], recording.lost()))
            return problems, None
    pending = recording.stats["truncated"].get("file_pending", 0)
    lost = sum(recording.lost().values())
    for what, n, percent in (("wait for a table", pending, PENDING), ("are truncated", truncated - pending, TRUNCATED),
                             ("are lost", lost, LOST)):
        if n * 100 > percent * sum(ours.values()):
            problems.append("%d of sonde's stacks %s: %s, lost %s" % (n, what, recording.stats["truncated"], recording.lost()))
            problems += ["  %s" % (s,) for s in recording.stacks if s.reason][:20]
    lines, worst = compare(ours, finished)
    note = "sonde %d samples (%d truncated), perf %d (%d unfinished), largest difference %.2f points" % (
        sum(ours.values()) + truncated, truncated, sum(theirs.values()), dropped, worst)
    return problems + lines, note


def tests(_setup):
    return [(name, functools.partial(run, name)) for name in PROGRAMS]
