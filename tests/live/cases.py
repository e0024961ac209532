# SPDX-License-Identifier: Apache-2.0
"""The known-answer cases: which workload runs how, and what is expected of it."""
import collections
import copy
import os
import platform

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads")

StaticEntry = collections.namedtuple("StaticEntry", "binary expect flavour args")


def static_list():
    """The lines of tests/workloads/static.list."""
    entries = []
    with open(os.path.join(WORKLOADS, "static.list"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                binary, expect, flavour, *args = line.split()
                entries.append(StaticEntry(binary, expect.removesuffix(".expect"), flavour, args))
    return entries


# Their names or what they begin with is what they are about.
OWN = {"compat32", "execself", "untouched"}


class Case:
    """One run of a workload: `binary SECONDS args`, perhaps through a launcher.

    before: arguments before the binary, the first a workload too (memfd_exec, in_namespace).
    copied: run a copy that the test makes (the workload removes it).
    least: the share of the expected samples (seconds times frequency) that must arrive.
    optional: the tool that the build needs, if not every machine has it.
    """

    def __init__(self, name, binary=None, args=(), expect=None, flavour="glibc", seconds=1, comm=None,
                 before=(), copied=False, least=0.9, optional=None):
        self.name = name
        self.binary = binary or name
        self.args = list(args)
        self.expect = expect or self.binary
        self.flavour = flavour
        self.seconds = seconds
        self.comm = (comm or self.binary)[:15]
        self.before = list(before)
        self.copied = copied
        self.link = None
        self.least = least
        self.optional = optional
        # It has a recording of its own.
        self.own = bool(before) or copied or self.expect.startswith("jit") or name in OWN

    def alone(self):
        """This case under a name that no other process of the machine has, in a recording that has all of them."""
        case = copy.copy(self)
        case.link = case.comm = ("%s-%d" % (self.binary[:7], os.getpid()))[:15]
        return case

    def argv(self, directory, seconds=None):
        launcher = [os.path.join(directory, self.before[0]), *self.before[1:]] if self.before else []
        return launcher + [os.path.join(directory, self.link or self.binary), str(seconds or self.seconds), *self.args]


# All of them are recorded by tests/vm, on other kernels; here with SONDE_ALL=1, and else these.
STATIC = {"sigasync", "threads", "handmade"}


def static_cases():
    for e in static_list():
        if e.flavour == "static" and e.binary != "execself.static" and (e.expect in STATIC or os.environ.get("SONDE_ALL")):
            name = "-".join([e.binary, *e.args])
            yield Case(name, e.binary, e.args, e.expect, e.flavour, least=LEAST.get(e.expect, 0.9),
                       seconds=SECONDS.get(e.expect, 1))


# vforked: a number of children, not a time. later: by thread.
LEAST = {"vforked": 0.2, "later": 0.8, "forked": 0.85}

# Until the table of a new file is loaded, samples are walked in a copy of 64 KiB of stack. This has a deeper one: it runs so
# long that the first hundredth of a second does not decide.
SECONDS = {"deep": 3}


def known_answers():
    """All cases, in the order of the issue's list."""
    chain = {"expect": "chain"}
    yield Case("chain")
    yield Case("calls", seconds=2)
    for name in ("chain_nopie", "chain_spie", "chain_nohdr", "chain_dbgframe", "chain_zdbg", "chain_fp", "chain_o0"):
        yield Case(name, flavour="static" if name == "chain_spie" else "glibc", **chain)
    yield Case("nocfi")
    yield Case("chain_clang", optional="clang", **chain)
    yield Case("chain_strip", expect="chain_strip")
    yield Case("chain_musl", flavour="musl", optional="musl-gcc", **chain)
    yield Case("chain_musl_dyn", flavour="musl_dyn", optional="musl-gcc", **chain)
    yield Case("deep", seconds=SECONDS["deep"])
    yield Case("sigasync", seconds=2)
    yield Case("sigasync-alt", "sigasync", ["alt"], seconds=2)
    yield Case("forked", least=LEAST["forked"])
    yield Case("vforked", least=LEAST["vforked"])
    yield Case("plt_lazy", expect="plt")
    yield Case("plt_ibt", expect="plt")
    yield Case("realign")
    yield Case("dynframe")
    yield Case("tailcall")
    yield Case("threads")
    yield Case("callback")
    yield Case("cxxthrow")
    yield Case("coroutine")
    yield Case("cxxnames")
    yield Case("rust_chain", optional="rustc")
    yield Case("rust_abort", optional="rustc")
    yield Case("ucontext")
    yield Case("handmade")
    yield Case("bare")
    yield Case("jit")
    yield Case("jit-nomap", "jit", ["nomap"], expect="jit_nomap")
    yield Case("jit-register", "jit", ["register"], expect="jit_register")
    yield Case("jit-memfd", "jit", ["memfd"], expect="jit_memfd")
    if platform.machine() == "x86_64":
        # All of it waits for the agent; what comes before that knows the code is to be no large part on a busy machine, too.
        yield Case("jit-returns", "jit", ["returns"], expect="jit_returns", seconds=2)
        yield Case("jit-untouched", "jit", ["untouched"], expect="jit_untouched", seconds=2)
        yield Case("jit-pcre", "jit_pcre", optional="pcre2-config")
        yield Case("jit-gdb", "jit_gdb")
        for how in ("loop", "nowhere", "huge", "unreadable"):
            yield Case("jit-gdb-" + how, "jit_gdb", [how], expect="jit_gdb", seconds=1)
        yield Case("jit-gdb-changes", "jit_gdb", ["changes"], expect="jit_gdb_changes", seconds=1)
    yield Case("memfd_exec", "chain", ["in_memfd"], expect="memfd_exec", comm="in_memfd", before=["memfd_exec"])
    yield Case("deleted", "chain", ["deleted", "unlink"], comm="deleted", copied=True, **chain)
    yield Case("namespace", "chain.static", [], "chain", "static", before=["in_namespace"])
    yield Case("namespace-jit", "jit.static", [], "jit_namespace", "static", before=["in_namespace"])
    yield Case("dlswap", seconds=3)
    yield Case("syscalls")
    yield Case("vdso")
    yield Case("noreturn")
    yield Case("jumpback")
    yield Case("later", least=LEAST["later"])
    yield Case("execself", least=0.7)
    yield Case("untouched", seconds=1)
    # These are so young that many of their samples are walked in a copy of the stack.
    yield Case("wide", seconds=0.05, before=["spawner", "16"])
    yield Case("untouched-young", "untouched", expect="untouched_young", seconds=0.05, before=["spawner", "16"])
    yield Case("compat32", least=0.1)
    yield from static_cases()
