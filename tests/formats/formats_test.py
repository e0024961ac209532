#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The text and JSON formats, and `sonde convert`: `formats_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

One real recording (kernel and inlined frames, two threads, truncated stacks) is converted into all
formats. Each has to have the same stacks and sums; programs that others wrote have to open them: npm's
speedscope in a browser, Rust's inferno, and for the Firefox Profiler the rules of its documented
format. Without root there is no recording, and those tests skip.
"""
import collections
import fcntl
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import tap
from command import of_native_code, run
from folded_text import counts_of as folded
from tap import Skip, check

HERE = Path(__file__).resolve().parent
SONDE, BUILD = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
INFERNO = "0.12.8"
ZOO = Path(os.environ.get("SONDE_ZOO", "/var/cache/sonde-zoo"))  # docs/zoo.md
HZ = 997
PERIOD_NS = 10**9 // HZ
TOP = Path(tempfile.mkdtemp(prefix="sonde-formats-"))
READABLE = {"folded": "folded", "perf": "perf", "pprof": "pb.gz", "otlp": "otlp"}
WRITABLE = {**READABLE, "speedscope": "speedscope.json", "firefox": "firefox.json", "html": "html"}


def sonde(*args, **more):
    return run(SONDE, *of_native_code(args), **more)


def check_refused(status, says, *args, stdin=None):
    """One line on stderr that has these words in it, nothing on stdout."""
    done = sonde("convert", *args, status=status, stdin=stdin)
    check(done.stderr.startswith("sonde: ") and done.stderr.count("\n") == 1, done.stderr)
    check(says in done.stderr, f"'{says}' expected: {done.stderr}")
    check(not done.stdout, f"on stdout: {done.stdout[:200]}")


def unmarked(stack):
    return tuple(re.sub(r"_\[[ki]\]$", "", frame) for frame in stack)


def differences(want, got):
    """What to show of two counters that should be equal."""
    lines = [f"{want[key]} became {got[key]}: {';'.join(key)}" for key in want | got
             if want[key] != got[key]]
    return f"{len(lines)} stacks differ:\n" + "\n".join(lines[:5])


def check_same(want, got):
    check(want == got, differences(want, got))


_recording = []


def recording():
    """The folder with the recording in each format; made once."""
    if _recording:
        return _recording[0]
    if os.geteuid() != 0:
        raise Skip("recording needs root")
    folder = TOP / "recording"
    folder.mkdir()
    run("gcc", "-O2", "-g", "-pthread", HERE / "work.c", "-o", folder / "work")
    sonde("record", "-F", HZ, "--max-frames", 40, "-o", folder / "recording.otlp", "--",
          folder / "work", 1)
    for name, ending in WRITABLE.items():
        if name != "otlp":
            sonde("convert", folder / "recording.otlp", folder / f"recording.{ending}")
    _recording.append(folder)
    return folder


def truth():
    return folded((recording() / "recording.folded").read_text())


# --- the same stacks and sums ---------------------------------------------------------------------

def test_the_recording_has_what_is_to_be_tested():
    text = (recording() / "recording.folded").read_text()
    check(re.search(r"^work;.*;main;compute;middle_\[i\];innermost_\[i\] \d+$", text, re.M), "inlined frames")
    check(re.search(r";read_zeros;.*_\[k\] \d+$", text, re.M), "kernel frames")
    check(re.search(r"^deep_one;\[truncated: max_frames\];recurse;", text, re.M), "truncated stacks")
    check(sum(truth().values()) > 500, "samples")


def test_all_pairs_of_formats_have_the_same_stacks_and_sums():
    folder, want = recording(), truth()
    for first in READABLE.values():
        for second in READABLE.values():
            sonde("convert", folder / f"recording.{first}", f"x.{second}")
            check_same(want, folded(sonde("convert", f"x.{second}", "-").stdout))


def test_pipes_and_gzip_change_nothing():
    folder, want = recording(), truth()
    for name, ending in READABLE.items():
        data = (folder / f"recording.{ending}").read_bytes()
        for packed in (data, gzip.compress(data)):
            out = sonde("convert", "-", "-", "-f", "folded", stdin=packed, text=False).stdout
            check_same(want, folded(out.decode()))
        Path(f"y.{ending}.gz").write_bytes(gzip.compress(data))
        check_same(want, folded(sonde("convert", f"y.{ending}.gz", "-").stdout))
        Path("any.name").write_bytes(data)
        check_same(want, folded(sonde("convert", "any.name", "-", "--from", name).stdout))


def test_speedscope_json_has_the_same_stacks_and_sums():
    sonde("convert", recording() / "recording.pb.gz", "counted.speedscope.json")
    data = json.loads(Path("counted.speedscope.json").read_text())
    got = collections.Counter()
    for profile in data["profiles"]:
        comm = re.sub(r" \(\d+/\d+\)$", "", profile["name"]).replace(" ", "_")
        check(sum(profile["weights"]) == profile["endValue"], "endValue")
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            frames = [data["shared"]["frames"][frame]["name"] for frame in stack]
            got[(comm, *frames)] += weight // PERIOD_NS
    want = collections.Counter()
    for stack, count in truth().items():
        want[unmarked(stack)] += count
    check_same(want, got)


def test_each_format_can_be_recorded():
    work = recording() / "work"
    for name, ending in WRITABLE.items():
        sonde("record", "-F", HZ, "-o", f"x.{ending}", "--", work, "0.05")
        if name in READABLE:
            check("compute" in sonde("convert", f"x.{ending}", "-").stdout, name)
        else:
            check(os.path.getsize(f"x.{ending}") > 1000, name)
    threads = json.loads(Path("x.firefox.json").read_text())["threads"]
    main = next(thread for thread in threads if thread["isMainThread"])
    check(0 <= main["samples"]["time"][0] < 60000, "times since the start")
    check(main["processName"] == "work", main["processName"])


# --- the Firefox Profiler's format ----------------------------------------------------------------

def check_table(table, columns, name):
    """All columns are as long as the table says; {column: (lowest, end, may be null)}."""
    for column, limits in columns.items():
        values = table[column]
        check(len(values) == table["length"], f"{name}.{column} has {len(values)} rows")
        if limits is None:
            continue
        low, end, nullable = limits
        for value in values:
            check(nullable if value is None else low <= value < end, f"{name}.{column}: {value}")


def check_shared(profile):
    shared, big = profile["shared"], 2**53
    strings, categories = len(shared["stringArray"]), profile["meta"]["categories"]
    nr = {table: shared[table]["length"] for table in shared if table != "stringArray"}
    libs = len(profile["libs"])
    check_table(shared["stackTable"], {"frame": (0, nr["frameTable"], False),
                                       "prefix": (0, nr["stackTable"], True)}, "stackTable")
    for i, prefix in enumerate(shared["stackTable"]["prefix"]):
        check(prefix is None or prefix < i, f"stack {i} stands before its prefix {prefix}")
    check_table(shared["frameTable"], {
        "address": (-1, big, False), "inlineDepth": (0, 1000, False),
        "category": (0, len(categories), True), "subcategory": (0, 1, True),
        "func": (0, nr["funcTable"], False), "nativeSymbol": (0, nr["nativeSymbols"], True),
        "innerWindowID": (0, 1, True), "line": (1, 2**32, True), "column": (1, 2**32, True),
    }, "frameTable")
    check_table(shared["funcTable"], {
        "isJS": None, "relevantForJS": None, "name": (0, strings, False),
        "resource": (-1, nr["resourceTable"], False), "source": (0, nr["sources"], True),
        "lineNumber": (1, 2**32, True), "columnNumber": (1, 2**32, True)}, "funcTable")
    check_table(shared["resourceTable"], {"lib": (0, libs, True), "name": (0, strings, False),
                                          "host": (0, strings, True), "type": (0, 6, False)},
                "resourceTable")
    check_table(shared["nativeSymbols"], {"libIndex": (0, libs, False), "address": (0, big, False),
                                          "name": (0, strings, False), "functionSize": None},
                "nativeSymbols")
    check_table(shared["sources"], {"uuid": None, "filename": (0, strings, False)}, "sources")


def check_inlines(shared):
    """Inlined frames follow what they are inlined into, at the same address, in the same symbol."""
    frames, stacks = shared["frameTable"], shared["stackTable"]
    nr = 0
    for frame, prefix in zip(stacks["frame"], stacks["prefix"], strict=True):
        depth = frames["inlineDepth"][frame]
        if not depth:
            continue
        nr += 1
        outer = stacks["frame"][prefix]
        check(frames["inlineDepth"][outer] == depth - 1, "inlineDepth counts up")
        for column in ("address", "nativeSymbol"):
            check(frames[column][frame] == frames[column][outer], f"{column} is shared")
        check(frames["line"][frame], "an inlined frame has a line")
    check(nr, "there are inlined frames")


def check_threads(profile):
    pids = {}
    tids = set()
    nr_stacks = profile["shared"]["stackTable"]["length"]
    for thread in profile["threads"]:
        samples = thread["samples"]
        check_table(samples, {"stack": (0, nr_stacks, True), "time": None}, "samples")
        check(samples["time"] == sorted(samples["time"]), "times are in order")
        check(samples["weightType"] == "samples", "weightType")
        if samples["weight"] is not None:
            check(len(samples["weight"]) == samples["length"], "weights")
        check(isinstance(thread["pid"], str), "pid is a string")
        check(thread["tid"] not in tids, "tids are unique")
        tids.add(thread["tid"])
        check(pids.setdefault(thread["pid"], thread["processName"]) == thread["processName"], "one process")
        for key in ("processStartupTime", "registerTime"):
            check(isinstance(thread[key], (int, float)), key)
        for key in ("processShutdownTime", "unregisterTime"):
            check(thread[key] is None or isinstance(thread[key], (int, float)), key)
        check_table(thread["markers"], dict.fromkeys(
            ("data", "name", "startTime", "endTime", "phase", "category")), "markers")
    mains = [thread["pid"] for thread in profile["threads"] if thread["isMainThread"]]
    check(len(mains) == len(set(mains)), "at most one main thread a process")


def firefox_stacks(profile):
    """As folded text has them, without marks."""
    shared, stacks = profile["shared"], []
    for frame, prefix in zip(shared["stackTable"]["frame"], shared["stackTable"]["prefix"], strict=True):
        func = shared["frameTable"]["func"][frame]
        name = shared["stringArray"][shared["funcTable"]["name"][func]]
        stacks.append((stacks[prefix] if prefix is not None else ()) + (name,))
    sums = collections.Counter()
    for thread in profile["threads"]:
        samples = thread["samples"]
        for i, stack in enumerate(samples["stack"]):
            count = samples["weight"][i] if samples["weight"] else 1
            comm = thread["name"].replace(" ", "_")
            sums[(comm, *(stacks[stack] if stack is not None else ()))] += count
    return sums


def check_firefox(profile):
    meta = profile["meta"]
    check(meta["preprocessedProfileVersion"] == 60 and meta["version"] == 24, "versions")
    check(any(c["color"] == "grey" for c in meta["categories"]), "a grey category")
    check(all(c["subcategories"][0] == "Other" for c in meta["categories"]), "subcategories")
    check_shared(profile)
    check_threads(profile)
    want = collections.Counter()
    for stack, count in truth().items():
        want[unmarked(stack)] += count
    check_same(want, firefox_stacks(profile))


def test_firefox_json_keeps_the_rules_of_its_format():
    profile = json.loads((recording() / "recording.firefox.json").read_text())
    check_firefox(profile)
    check_inlines(profile["shared"])
    lib = next(lib for lib in profile["libs"] if lib["name"] == "work")
    note = run("readelf", "-n", recording() / "work").stdout
    check(lib["codeId"] == re.search(r"Build ID: ([0-9a-f]+)", note)[1], "codeId is the build-id")
    check(lib["breakpadId"][-1] == "0" and len(lib["breakpadId"]) == 33, "breakpadId")
    used = {profile["meta"]["categories"][c]["name"] for c in profile["shared"]["frameTable"]["category"]}
    check({"Kernel", "Other"} <= used and used & {"User", "C"}, f"categories: {used}")
    check(all(len(t["samples"]["threadCPUDelta"]) == t["samples"]["length"] for t in profile["threads"]),
          "threadCPUDelta")


def test_firefox_threads_have_their_lifetimes():
    sonde("record", "-F", HZ, "-o", "live.firefox.json", "--", recording() / "work", 0.3)
    threads = json.loads(Path("live.firefox.json").read_text())["threads"]
    deep = next(t for t in threads if t["name"] == "deep one")
    main = next(t for t in threads if t["pid"] == deep["pid"] and t["isMainThread"])
    times = deep["samples"]["time"]
    check(not deep["isMainThread"], "deep one is a thread")
    # A sample may come before it has given itself its name: it began with the first one.
    number = str(deep["tid"]).partition(".")[0]
    born = min((t for t in threads if str(t["tid"]).partition(".")[0] == number), key=lambda t: t["samples"]["time"][0])
    begin = born["registerTime"]
    check(main["registerTime"] <= begin < born["samples"]["time"][0], f"its begin: {begin}")
    # It wakes who waits for its end before that: on a busy machine the program's end may come first.
    check(times[-1] <= deep["unregisterTime"] != main["unregisterTime"], f"its end: {deep['unregisterTime']}")


def test_firefox_json_without_times_keeps_them_too():
    sonde("convert", recording() / "recording.folded", "counted.firefox.json")
    check_firefox(json.loads(Path("counted.firefox.json").read_text()))


# --- other programs -------------------------------------------------------------------------------

def inferno(program):
    """Built once on a machine: half a minute, and twice that for a fast one."""
    root = ZOO / f"inferno-{INFERNO}"
    if not shutil.which("cargo"):
        raise Skip("no cargo")
    ZOO.mkdir(parents=True, exist_ok=True)
    with open(f"{root}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "bin" / program).exists():
            done = subprocess.run(["nice", "cargo", "install", "--quiet", "--debug", "--locked", "inferno",
                                   "--version", INFERNO, "--root", root, "--bin", "inferno-collapse-perf",
                                   "--bin", "inferno-flamegraph"], capture_output=True,
                                  text=True, check=False)
            if done.returncode:
                raise Skip(f"inferno cannot be built here: {done.stderr.strip().splitlines()[-1:]}")
    return root / "bin" / program


def simple(stack):
    """What is left of names when inferno has tidied them: no arguments, no addresses."""
    frames = []
    for frame in stack:
        name = re.sub(r"\+0x[0-9a-f]+\]", "]", frame.replace("_[i]", ""))
        name = "[unknown]" if name in ("[anon]", "[//anon]") else name
        frames.append(re.sub(r"\(.*", "", name) or name)
    return tuple(frames)


def collapse(text):
    """inferno's folded text. It takes [vdso] for a module of the kernel, and knows kernel code by its
    module only: perf has none for code that came later, as another profiler's BPF programs."""
    text = re.sub(r"^(\s+ffff[0-9a-f]{12} .*)\(\[unknown\]\)$", r"\1([kernel.kallsyms])", text, flags=re.M)
    out = run(inferno("inferno-collapse-perf"), "--kernel", stdin=text).stdout
    return folded(re.sub(r"\b(__vdso_\w+)_\[k\]", r"\1", out).replace("[[kernel.kallsyms]]", "[kernel]"))


def test_inferno_collapses_perf_text_to_the_same_stacks():
    got, want = collections.Counter(), collections.Counter()
    for stack, count in collapse((recording() / "recording.perf").read_text()).items():
        check(count % PERIOD_NS == 0, f"{count} is no number of periods")
        got[simple(stack)] += count // PERIOD_NS
    for stack, count in truth().items():
        want[simple(stack)] += count
    check_same(want, got)


def test_inferno_draws_folded_text():
    graph = run(inferno("inferno-flamegraph"), recording() / "recording.folded")
    total = sum(truth().values())
    check(f'total_samples="{total}"' in graph.stdout, f"all {total} samples: {graph.stdout[:300]}")
    check("innermost" in graph.stdout and "compute" in graph.stdout, "the functions")


def test_perf_text_is_what_its_parsers_look_for():
    """The regular expressions of flamegraph's collapser, and of the Firefox Profiler's importer."""
    headers = [r"^(\S.+?)\s+(\d+)\/*(\d+)*\s+", r":\s*(\d+)*\s+(\S+):\s*$",
               r"^\S.*?\s+(?:\d+\/)?\d+\s+(?:\[\d+\]\s+)?[\d.]+:"]
    blocks = (recording() / "recording.perf").read_text().split("\n\n")
    check(blocks[0].startswith("# ========\n"), "the head")
    nr = 0
    for block in blocks:
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        nr += 1
        for pattern in headers:
            check(re.search(pattern, lines[0]), f"{pattern} in {lines[0]}")
        check(re.search(headers[0], lines[0])[1] in ("work", "deep one"), lines[0])
        for line in lines[1:]:
            check(re.search(r"^\s*(\w+)\s*(.+) \((.*)\)", line), line)
    check(nr == sum(truth().values()), f"{nr} blocks")


def test_perf_script_with_inlined_functions_is_read():
    if not shutil.which("perf"):
        raise Skip("no perf")
    run("perf", "record", "-q", "-F", "199", "--call-graph", "dwarf", "-e", "cpu-clock", "-o", "perf.data",
        "--", recording() / "work", "0.2")
    text = run("perf", "script", "-i", "perf.data").stdout
    if "(inlined)" not in text:
        raise Skip("this perf knows no inlined functions")
    out = sonde("convert", "-", "-", stdin=text).stdout
    check(re.search(r";compute;middle_\[i\];innermost_\[i\] \d+$", out, re.M), out[:1000])
    want, got = collections.Counter(), collections.Counter()
    for stack, count in collapse(text).items():
        want[simple(stack)] += count
    for stack, count in folded(out).items():
        got[simple(stack)] += count * (10**9 // 199)
    check_same(want, got)


def test_perf_script_with_nameless_kernel_code_is_read():
    text = ("work 10/10 [001] 1.000: 1003009 cpu-clock: \n"
            "\tffffffffc0123456 [unknown] ([unknown])\n"
            "\tffffffffc0123000 bpf_prog_6deef7357e7b4530_x+0x1 ([unknown])\n"
            "\tffffffff81123456 foo+0x1 ([kernel.kallsyms])\n"
            "\t    55d400001234 main+0x4 (/tmp/work)\n\n")
    want = {simple(stack): count for stack, count in collapse(text).items()}
    got = folded(sonde("convert", "-", "-", stdin=text).stdout)
    check_same(collections.Counter(want),
               collections.Counter({simple(stack): count * 1003009 for stack, count in got.items()}))


def test_perf_script_is_read():
    """perf's own text, of the perf that is installed here."""
    if not shutil.which("perf"):
        raise Skip("no perf")
    run("perf", "record", "-q", "-F", "997", "-g", "-e", "cpu-clock", "--sample-cpu", "-o", "perf.data",
        "--", recording() / "work", "0.3")
    fields = "comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso"
    plain = ["perf", "script", "-i", "perf.data", "--no-inline"]
    for options in ([], ["--header"], ["-F", fields], ["-F", "comm,tid,time,ip,sym"],
                    ["-F", "comm,pid,tid,ip,sym,dso"], ["--ns", "-F", "+srcline"], ["-G"]):
        text = run(*plain, *options).stdout
        Path("script.txt").write_text(text)
        got = folded(sonde("convert", "script.txt", "-", "--from", "perf").stdout)
        # A block a sample; without call chains a line.
        nr = sum(1 for line in text.splitlines() if line.strip() and not re.match(r"[\t#]|  \S+:\d+$", line)
                 and re.search(r"\d+\.\d+:|^\S.* \d+(/\d+)? *$", line))
        check(sum(got.values()) == nr, f"{options}: {sum(got.values())} of {nr} samples")
        check(any("compute" in stack[-1] for stack in got), f"{options}: compute")
    want, got = collections.Counter(), collections.Counter()
    text = run(*plain, "-F", fields).stdout
    for stack, count in collapse(text).items():
        want[simple(stack)] += count
    for stack, count in folded(sonde("convert", "-", "-", stdin=text).stdout).items():
        got[simple(stack)] += count * (10**9 // 997)
    check_same(want, got)


def test_speedscope_opens_everything():
    folder = recording()
    for ending in ("folded", "perf", "pb.gz"):
        shutil.copy(folder / f"recording.{ending}", ".")
    shutil.copy(folder / "recording.speedscope.json", "timed.speedscope.json")
    sonde("convert", "recording.pb.gz", "counted.speedscope.json")
    Path("expect.json").write_text(json.dumps({"functions": ["innermost", "compute"], "period_ns": PERIOD_NS}))
    done = subprocess.run([HERE / "run.sh", "speedscope", os.getcwd()], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=1200, check=False)
    if "# SKIP" in done.stdout:
        raise Skip(done.stdout.strip())
    check(done.returncode == 0 and re.search(r"^ok ", done.stdout, re.M),
          "\n".join(re.findall(r"^(?:not ok|#).*", done.stdout, re.M)) + done.stderr[-2000:])


# --- functions of scripts -------------------------------------------------------------------------

SCRIPT = """\
class A:
    def work(self):
        return sum(i * i for i in range(20000))

def compare(a, b):
    A().work()
    return a - b

import functools, time
end = time.process_time() + 1
while time.process_time() < end:
    sorted([3, 1, 2], key=functools.cmp_to_key(compare))
"""


def record_script():
    if os.geteuid() != 0:
        raise Skip("recording needs root")
    Path("script.py").write_text(SCRIPT)
    sonde("record", "-F", HZ, "-o", "script.otlp", "--tracers", "python", "--", "/usr/bin/python3", "script.py")
    text = sonde("convert", "script.otlp", "-", "-f", "folded").stdout
    check(re.search(r";<module>;.*;compare;(A\.)?work", text), f"no Python among native frames:\n{text[-3000:]}")
    return folded(text)


def place_in_firefox(shared, func):
    source = shared["funcTable"]["source"][func]
    file = shared["sources"]["filename"][source] if source is not None else None
    return (os.path.basename(shared["stringArray"][file]) if file is not None else None,
            shared["funcTable"]["lineNumber"][func])


def test_functions_of_scripts_are_in_all_formats():
    want = record_script()
    for name, ending in READABLE.items():
        sonde("convert", "script.otlp", f"as.{ending}", "-f", name)
        check_same(want, folded(sonde("convert", f"as.{ending}", "-", "-f", "folded").stdout))
    sonde("convert", "script.otlp", "as.firefox.json")
    profile = json.loads(Path("as.firefox.json").read_text())
    shared, categories = profile["shared"], [c["name"] for c in profile["meta"]["categories"]]
    check_shared(profile)
    check_threads(profile)
    places = {shared["stringArray"][shared["funcTable"]["name"][func]]: place_in_firefox(shared, func)
              for func, category in zip(shared["frameTable"]["func"], shared["frameTable"]["category"])
              if categories[category] == "Python"}
    check(places.get("compare") == ("script.py", 5) and places.get("<module>", [""])[0] == "script.py", places)
    check("_start" not in places, "native frames are not Python's")
    sonde("convert", "script.otlp", "as.speedscope.json")
    frames = json.loads(Path("as.speedscope.json").read_text())["shared"]["frames"]
    compare = next(f for f in frames if f["name"] == "compare")
    check(compare["file"].endswith("script.py") and compare["line"] == 5, compare)
    text = Path("as.perf").read_text()
    check(re.search(r"^# sonde functions of python : .*script\.py$", text, re.M), "whose script.py is")
    check(re.search(r"^\t +0 compare \(.*script\.py\)$", text, re.M), "compare in perf text")


# --- what convert refuses -------------------------------------------------------------------------

PERF = "a 1/1 [000] 1.5: 10101010 cpu-clock: \n\t10 f+0x1 (/bin/x)\n\n"


def test_command_lines_that_make_no_sense():
    Path("in.perf").write_text(PERF)
    os.symlink("in.perf", "link.perf")
    for words in ([], ["in.perf"], ["in.perf", "b.folded", "c.folded"], ["-o", "b.folded"], ["in.perf", "b.folded", "-o", "c.folded"]):
        check_refused(2, "give two files, IN and OUT", *words)
    check_refused(2, "the extension of 'b.xyz' names no format", "in.perf", "b.xyz")
    check_refused(2, "unknown format 'nope'", "in.perf", "-", "-f", "nope")
    check_refused(2, "unknown format 'nope'", "in.perf", "-", "--from", "nope")
    check_refused(1, "'in.perf' has no samples of type 'nope'; its types are: samples", "in.perf", "-", "-f", "folded", "--type", "nope")
    for name in ("html", "speedscope", "firefox"):
        check_refused(2, "can only be written", "in.perf", "-", "--from", name)
    check_refused(2, "can only be written", "x.html", "-")
    check_refused(2, "are the same file", "in.perf", "link.perf")
    check_refused(2, "--bogus", "in.perf", "-", "--bogus")
    check(not os.path.exists("b.folded"), "nothing is written")


def test_options_stand_anywhere():
    Path("in.perf").write_text(PERF)
    for words in (["-f", "folded", "in.perf", "-"], ["in.perf", "-f", "folded", "-"],
                  ["in.perf", "-", "--format=folded"], ["--from", "perf", "--", "in.perf", "-"],
                  ["in.perf", "-o", "-"], ["--output=-", "in.perf"]):
        check(sonde("convert", *words).stdout == "a;f 1\n", words)
    check("IN OUT" in sonde("convert", "--help").stdout, "--help")


def test_files_that_are_not_what_they_should_be():
    Path("empty.folded").write_text("")
    Path("in.perf").write_text(PERF)
    Path("bad.folded").write_text("a;b 1\nno count\n")
    Path("random").write_bytes(bytes(range(256)) * 9)
    check_refused(1, "'empty.folded' is empty", "empty.folded", "-")
    check_refused(1, "standard input is empty", "-", "-", stdin="")
    check_refused(1, "cannot read 'nofile': No such file", "nofile", "-")
    check_refused(1, "Is a directory", ".", "-", "--from", "folded")
    check_refused(1, "cannot read 'bad.folded' as folded: line 2: there is no whole count", "bad.folded", "-")
    check_refused(1, "cannot tell the format of 'random'", "random", "-")
    for name in READABLE:
        check_refused(1, f"cannot read 'random' as {name}: ", "random", "-", "--from", name)
    check_refused(1, "cannot write '/nowhere/x.folded'", "in.perf", "/nowhere/x.folded")
    check_refused(1, "No space left", "in.perf", "/dev/full", "-f", "perf")
    packed = gzip.compress((PERF * 1000).encode())
    Path("cut.perf.gz").write_bytes(packed[:-20])
    check_refused(1, "packed by gzip, and damaged", "cut.perf.gz", "-")
    check_refused(1, "cannot read standard input as perf: cut off at line 2", "-", "-", "--from", "perf",
                  stdin=PERF.rstrip("\n"))


def test_the_content_counts_more_than_the_extension():
    Path("script.txt").write_text(PERF)
    check(sonde("convert", "script.txt", "-").stdout == "a;f 1\n", "perf text in .txt")


def varint(number):
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def field(number, data):
    """A field of protobuf: bytes, or a number."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def long_name_in_many_stacks(size, stacks):
    """A pprof file of stacks of 1, 2, 3 ... frames, all of one function, whose name has `size` bytes."""
    profile = field(1, field(1, 1) + field(2, 2))  # a sample type
    for depth in range(1, stacks + 1):
        profile += field(2, field(1, b"\1" * depth) + field(2, b"\1"))
    profile += field(4, field(1, 1) + field(4, field(1, 1)))  # location 1: a line of
    profile += field(5, field(1, 1) + field(2, 3))  # function 1: its name
    for text in (b"", b"samples", b"count", b"f" * size):
        profile += field(6, text)
    return gzip.compress(profile)


def test_bombs_are_refused():
    Path("zeros.folded.gz").write_bytes(gzip.compress(bytes(200 << 20)))
    check_refused(1, "'zeros.folded.gz' unpacks to more than 1", "zeros.folded.gz", "-")
    bomb = long_name_in_many_stacks(1 << 20, 100)
    check(len(bomb) < 3000, f"{len(bomb)} bytes")
    Path("bomb.pb.gz").write_bytes(bomb)
    Path("out.folded").write_text("old\n")
    # 5 GB of text.
    check_refused(1, "as folded, 'bomb.pb.gz' would have more than 457 MB, the limit for its size", "bomb.pb.gz", "/dev/null", "-f", "folded")
    check_refused(1, "would have more than 8 MB", "bomb.pb.gz", "out.folded", "--max-size", "8M")
    check(Path("out.folded").read_text() == "old\n", "it was overwritten")
    # What has each name once is small; and a limit may be raised.
    sonde("convert", "bomb.pb.gz", "out.otlp")
    Path("less.pb.gz").write_bytes(long_name_in_many_stacks(1 << 20, 3))
    check_refused(1, "would have more than 4 MB", "less.pb.gz", "out.folded", "--max-size", "4M")
    sonde("convert", "less.pb.gz", "out.folded", "--max-size", "7M")
    check(6 << 20 < Path("out.folded").stat().st_size < 7 << 20, "6 names of a megabyte")


def test_a_failed_conversion_leaves_the_old_file():
    Path("bad.folded").write_text("no count\n")
    Path("out.perf").write_text("old\n")
    sonde("convert", "bad.folded", "out.perf", status=1)
    check(Path("out.perf").read_text() == "old\n", "out.perf is as it was")
    check(sorted(os.listdir()) == ["bad.folded", "out.perf"], os.listdir())


def test_lines_stand_beside_functions():
    text = sonde("convert", recording() / "recording.otlp", "-", "--lines").stdout
    check(re.search(r";main:\d+;compute:\d+;middle:\d+_\[i\];innermost:\d+_\[i\] \d+$", text, re.M), text[:500])


# --------------------------------------------------------------------------------------------------

def in_own_folder(name, body):
    def run_there():
        (TOP / name).mkdir()
        os.chdir(TOP / name)
        body()
    return run_there


def main():
    wanted = sys.argv[3:]
    tests = [(name[5:], body) for name, body in globals().items()
             if name.startswith("test_") and (not wanted or name[5:] in wanted)]
    status = tap.run((name, in_own_folder(name, body)) for name, body in tests)
    os.chdir("/")
    shutil.rmtree(TOP)
    return status


if __name__ == "__main__":
    sys.exit(guard.run(main))
