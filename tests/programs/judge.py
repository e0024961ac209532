# SPDX-License-Identifier: Apache-2.0
"""Judges recorded stacks by the code of the programs: does each caller call what stands above it?

For a pair of native frames, caller and callee, there must be a call before the return address, and it must lead to the
callee: directly, by way of stubs, slots of the GOT and functions that end in a jump. What a call through a register
leads to is not known: it is plausible, unless nothing but direct calls can ever reach the callee.
"""
import collections
import re

from elf_code import STT_IFUNC, ElfCode

PROVED, PLAUSIBLE, WRONG, UNCHECKED = "proved", "plausible", "wrong", "unchecked"
SCAN_MAX = 24 << 20  # bytes of a file that is searched for what may lead to a function indirectly
CHAIN_MAX = 300  # functions that jump to one another

Frame = collections.namedtuple("Frame", "address name path")
Sample = collections.namedtuple("Sample", "comm pid frames kernel reason")  # frames: innermost first

FIRST = re.compile(r"^(.*?) +(-?\d+)/(-?\d+) +(?:\[\d+\] )?")
FRAME = re.compile(r"^\t *([0-9a-f]+) (.*) \(([^()]*(?:\([^()]*\)[^()]*)*)\)$")
TRUNCATED = re.compile(r"^\[truncated: (\w+)\]$")
# Anonymous memory, scripts' functions, the vDSO: there is no file to look at.
NO_FILE = re.compile(r"^(\[.*|//anon|/memfd:.*|.* \(deleted\)|/dev/.*|)$")


def read_samples(path):
    """The samples of perf's text, as sonde writes it."""
    samples = []
    comm = pid = None
    frames, kernel, reason = [], [], None
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("#"):
                continue
            if not line:
                if pid is not None:
                    samples.append(Sample(comm, pid, tuple(frames), tuple(kernel), reason))
                comm = pid = reason = None
                frames, kernel = [], []
            elif line[0] != "\t":
                m = FIRST.match(line)
                comm, pid = m.group(1), int(m.group(2))
            else:
                m = FRAME.match(line)
                if not m:
                    raise ValueError("%s: %r" % (path, line))
                cut = TRUNCATED.match(m.group(2))
                frame = Frame(int(m.group(1), 16), m.group(2), m.group(3))
                if cut:
                    reason = cut.group(1)
                elif frame.path.startswith("[kernel") or frame.address >> 63 or re.match(r"^\[\w+\]$", frame.path) \
                        and not frames and frame.path not in ("[vdso]", "[unknown]") and not frame.address == 0:
                    kernel.append(frame)
                else:
                    frames.append(frame)
    return samples
# Says that the caller of what stands above it, which stands below it, may not be the next one.
NOTE = "[native: caller_unsure]"
# Where Go's scheduler begins on a stack of its own.
STACKS_OF_GO = re.compile(r"^runtime\.(mcall|mstart|rt0_go)(\.abi0)?$")
# Begins one, too, but goes back to the goroutine, unless the scheduler has taken that off.
GROWTH_OF_GO = re.compile(r"^runtime\.morestack(\.abi0)?$")


class Judge:
    def __init__(self):
        self.files = {}  # path -> ElfCode or None
        self.edges = {}
        self.why = {}

    def code(self, path):
        if path not in self.files:
            self.files[path] = None
            if not NO_FILE.match(path):
                try:
                    self.files[path] = ElfCode(path)
                except (OSError, ValueError):
                    pass
        return self.files[path]

    def edge(self, caller, callee, family, strict=True):
        """The verdict on a caller and its callee (Frames); `family`: the paths that the process has."""
        key = (caller[0], caller[2], callee[0], callee[2], strict)
        if key not in self.edges:
            verdict, why = self._edge(caller, callee, family, strict)
            self.edges[key] = verdict
            self.why[key] = why
        return self.edges[key]

    def reason(self, caller, callee, strict=True):
        return self.why[(caller[0], caller[2], callee[0], callee[2], strict)]

    def _edge(self, caller, callee, family, strict):
        above, below = self.code(callee.path), self.code(caller.path)
        if above and above.is_trampoline(callee.address):
            return UNCHECKED, "below a signal handler"
        if not below:
            return UNCHECKED, "no file"
        if below.is_trampoline(caller.address):
            return PLAUSIBLE, "signal handler"
        calls = below.calls_before(caller.address + 1)
        if not calls and below.is_first_by_hand(caller.address):
            return PLAUSIBLE, "a goroutine's begin"
        if not calls and below.deoptimized_goes_on(caller.address + 1):
            return PLAUSIBLE, "its optimized code was taken away"
        if above and above.may_be_called_anywhere(callee.address):
            return PLAUSIBLE, "preempted"
        if not calls and above and above.goes_to_handler(callee.address):
            return PLAUSIBLE, "goes on in an exception's handler"
        if not calls:
            return WRONG, "no call before the return address"
        if not above:
            return UNCHECKED, "no file"
        if above.rewrites_itself(callee.address):
            return PLAUSIBLE, "an exception is being delivered"
        best = (WRONG, "")
        for call in calls:
            verdict = self._call(call, below, above, callee.address, family, strict)
            if verdict[0] == PROVED:
                return verdict
            if verdict[0] == PLAUSIBLE or best[0] == WRONG:
                best = verdict
        return best

    def _call(self, call, below, above, address, family, strict):
        if call.target is not None:
            return self._leads([(below, call.target)], above, address, family)
        entries = self._slot(below, call.slot, family, above) if call.slot is not None else None
        if entries:
            return self._leads(entries, above, address, family)
        if entries is None and strict:
            extent = above.extent(address)
            # Of cold parts and the like, the way there is not looked for.
            if extent and not above.stub(address) and extent[1] - extent[0] < 1 << 20 \
                    and len(above.data) < SCAN_MAX and not above.reached_otherwise(extent[0]):
                return WRONG, "an indirect call of what is only called directly"
        return PLAUSIBLE, "indirect call"

    def _slot(self, code, vaddr, family, above):
        """What a word of a file leads to: a list of (code, entry); empty: anything; None: not known at all."""
        slot = code.slot(vaddr)
        if slot is None:
            return None
        if slot[0] == "address":
            return [(code, slot[1])] if code.is_code(slot[1]) else None
        if slot[0] == "ifunc":
            return []
        entries = []
        for path in sorted(family):
            f = self.code(path)
            for value, kind in f.exports.get(slot[1], ()) if f else ():
                if kind == STT_IFUNC:
                    if f is above:
                        return []
                    continue
                entries.append((f, value))
        return entries

    def _leads(self, entries, above, address, family):
        extent = above.extent(address)
        stub = above.stub(address)
        seen, unknown = set(), False
        todo = list(entries)
        while todo:
            code, entry = todo.pop()
            if (code.path, entry) in seen:
                continue
            seen.add((code.path, entry))
            if len(seen) > CHAIN_MAX:
                unknown = True
                break
            at = code.stub(entry)
            if at:
                if code is above and stub and stub[0] == at[0]:
                    return PROVED, "stub"
                body = code.body_of_stub(at[1])
            else:
                if code is above and extent and extent[0] <= entry < extent[1]:
                    return PROVED, "call"
                body = code.body(entry)
                if code is above and body.addresses is not None and body.covers(address):
                    return PROVED, "flow"
            unknown |= body.unknown
            todo += [(code, x) for x in body.jumps]
            for vaddr in body.slots:
                through = self._slot(code, vaddr, family, above)
                if through:
                    todo += through
                else:
                    unknown = True
                if above.path.rpartition("/")[2].startswith("ld-"):
                    unknown = True  # a function of another file is looked up when it is first called
        return (PLAUSIBLE, "a jump to what is not known") if unknown else (WRONG, "the call leads elsewhere")


class Verdicts:
    """Sums over the samples of one recording."""

    def __init__(self):
        self.samples = self.complete = 0
        self.edges = collections.Counter()
        self.innermost = collections.Counter()
        self.noted = collections.Counter()  # edges with a note between the two, which are not among the others
        self.wrong = collections.Counter()  # (callee, caller, why) -> samples
        self.reasons = collections.Counter()
        self.places = collections.Counter()  # (reason, place) -> samples
        self.roots = collections.Counter()  # outermost functions of complete stacks that nothing proves to be


def place(frame):
    base = frame.path.rpartition("/")[2]
    return "%s+%#x%s" % (base, frame.address, "" if frame.name == "[unknown]" else " %s" % frame.name[:60])


def judge_samples(judge, samples):
    v = Verdicts()
    family = collections.defaultdict(set)
    for s in samples:
        family[s.pid].update(f.path for f in s.frames)
    for s in samples:
        v.samples += 1
        if s.reason:
            v.reasons[s.reason] += 1
            v.places[(s.reason, place(s.frames[-1]) if s.frames else "-")] += 1
        else:
            v.complete += 1
            _judge_root(judge, s, v)
        for i in range(len(s.frames) - 1):
            callee, caller = s.frames[i], s.frames[i + 1]
            if caller.name == NOTE and i + 2 < len(s.frames):
                v.noted[judge.edge(s.frames[i + 2], callee, family[s.pid])] += 1
            verdict = judge.edge(caller, callee, family[s.pid])
            v.edges[verdict] += 1
            if not i:
                v.innermost[verdict] += 1
            if verdict == WRONG:
                where = "innermost" if not i else "caller"
                v.wrong[(where, judge.reason(caller, callee), place(callee), place(caller))] += 1
    return v


def _judge_root(judge, s, v):
    if not s.frames:
        return
    last = s.frames[-1]
    code = judge.code(last.path)
    if code and STACKS_OF_GO.match(last.name):
        return
    if code and GROWTH_OF_GO.match(last.name):
        if not any(f.name == "runtime.schedule" for f in s.frames):
            v.roots[place(last)] += 1
        return
    begins = code and (code.is_outermost(last.address) or code.is_first_by_hand(last.address) or code.begins_stack(last.address)
                       or code.never_returns(last.address))
    if code and not begins:
        v.roots[place(last)] += 1


def self_test(judge, samples):
    """
    Takes each frame out of the distinct true stacks in turn: of how many the judge tells, weighted by samples. Returns
    {"innermost caller" | "caller": (told, all)}.
    """
    family = collections.defaultdict(set)
    triples = collections.Counter()
    for s in samples:
        family[s.pid].update(f.path for f in s.frames)
        for i in range(len(s.frames) - 2):
            triples[(s.pid, i == 0, s.frames[i], s.frames[i + 1], s.frames[i + 2])] += 1
    told = {True: 0, False: 0}
    every = {True: 0, False: 0}
    for (pid, first, a, b, c), n in triples.items():
        if UNCHECKED in (judge.edge(b, a, family[pid]), judge.edge(c, b, family[pid])) or not judge.code(a.path):
            continue
        every[first] += n
        if judge.edge(c, a, family[pid]) == WRONG:
            told[first] += n
    return {"innermost": (told[True], every[True]), "others": (told[False], every[False])}
