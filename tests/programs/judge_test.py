#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of stacks is fed with right and wrong ones: it must be able to fail."""
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]

import tap  # noqa: E402
from packages import python_packages  # noqa: E402

# Each leaf tells the program's part of its own stack: the addresses that its callers return to.
SOURCE = r"""
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline, noclone))
extern char __executable_start, etext;
int (*volatile pointer)(int);
static NOINLINE int tell(int x)
{
	void *at[64];
	int n = backtrace(at, 64);
	for (int i = 0; i < n; i++)
		if ((char *)at[i] >= &__executable_start && (char *)at[i] < &etext)
			printf("%lx ", (unsigned long)at[i]);
	puts("");
	return x;
}
NOINLINE int leaf(int x) { return tell(x) + 1; }
NOINLINE int tail(int x) { asm volatile(""); return leaf(x + 1); }
NOINLINE int direct(int x) { return leaf(x) * 3; }
NOINLINE int by_tail(int x) { return tail(x) * 5; }
NOINLINE int by_pointer(int x) { return pointer(x) * 7; }
NOINLINE int many(int x)
{
	switch (x) {
	case 1: return direct(x) + 1;
	case 2: return by_tail(x) * 3;
	case 3: return by_pointer(x) - 1;
	case 4: return direct(x) * by_tail(x);
	case 5: return by_pointer(x) / 3;
	}
	return 0;
}
static int compare(const void *a, const void *b) { return many(*(const int *)a) - *(const int *)b; }
int main(void)
{
	int numbers[] = { 1, 2, 3, 4, 5 };
	pointer = direct;
	for (int i = 1; i < 6; i++)
		if (many(i) == -12345)
			return 1;
	qsort(numbers, 5, sizeof(*numbers), compare);
	return 0;
}
"""


class Stacks:
    """The stacks of a program that tells them, in sonde's form."""

    def __init__(self, *flags):
        import judge  # pylint: disable=import-outside-toplevel
        self.judge = judge
        Path("work.c").write_text(SOURCE, encoding="ascii")
        subprocess.run(["gcc", "-O2", "-no-pie", *flags, "-o", "work", "work.c"], check=True)
        path = str(Path("work").resolve())
        out = subprocess.run([path], capture_output=True, text=True, check=True).stdout
        # The first is tell() itself, in its call of backtrace(): it stands for the interrupted pc.
        self.text = "# sonde\n"
        for line in out.splitlines():
            self.text += "work 7/7 [000] 0.1:    5025125 cpu-clock: \n"
            self.text += "".join("\t%16x [unknown] (%s)\n" % (int(x, 16) - 1, path) for x in line.split()) + "\n"
        Path("work.perf").write_text(self.text, encoding="utf-8")
        self.samples = judge.read_samples("work.perf")


def right(*flags):
    s = Stacks(*flags)
    j = s.judge.Judge()
    v = s.judge.judge_samples(j, s.samples)
    tap.check(v.samples >= 10 and v.complete == v.samples, "%d samples" % v.samples)
    tap.check(not v.wrong, "judged wrong: %s" % v.wrong)
    # The C library's frames were left out: where they were, main's call may lead to anything.
    tap.check(v.edges["proved"] > v.edges["plausible"] > 0, v.edges)
    tap.check(not v.roots, v.roots)
    told = s.judge.self_test(j, s.samples)
    tap.check(sum(x[0] for x in told.values()) > 0.4 * sum(x[1] for x in told.values()), told)
    return (), "%s, taken out and told: %s" % (dict(v.edges), told)


def wrong():
    s = Stacks()
    j = s.judge.Judge()
    family = {s.samples[0].frames[0].path}
    frames = s.samples[0].frames  # tell, direct (leaf may be its jump), many, main, _start
    tap.check(j.edge(frames[2], frames[0], family) == s.judge.WRONG, "a caller that was left out")
    off = frames[1]._replace(address=frames[1].address - 1)
    tap.check(j.edge(off, frames[0], family) == s.judge.WRONG, "no call ends there")
    tap.check(j.edge(frames[1], frames[2], family) == s.judge.WRONG, "callee and caller change places")


def noted():
    """What stands behind a note is judged, and told apart: the stack says itself that it may be wrong."""
    s = Stacks()
    j = s.judge.Judge()
    frames = s.samples[0].frames
    note = s.judge.Frame(0, s.judge.NOTE, "[unknown]")

    def verdicts(*stack):
        v = s.judge.judge_samples(j, [s.samples[0]._replace(frames=stack)])
        tap.check(not v.wrong, v.wrong)
        return dict(v.noted)

    tap.check(verdicts(*frames) == {}, "no note")
    tap.check(verdicts(frames[0], frames[1], note, *frames[2:]) == {s.judge.PROVED: 1}, "a caller that is one")
    tap.check(verdicts(frames[0], note, *frames[2:]) == {s.judge.WRONG: 1}, "a caller that was left out")
    tap.check(verdicts(frames[0], frames[1], note) == {}, "nothing behind it")


def cut():
    text = ("# ====\nwork 1/2 [001] 0.5:    5025125 cpu-clock: \n\tffffffff81407e3d read ([kernel.kallsyms])\n"
            "\t            1197 f(int, char (*)[3]) (/usr/bin/a (b))\n\t               0 [truncated: no_rule] ([unknown])\n\n")
    Path("cut.perf").write_text(text, encoding="utf-8")
    import judge  # pylint: disable=import-outside-toplevel
    (s,) = judge.read_samples("cut.perf")
    tap.check((s.comm, s.pid, s.reason, len(s.kernel), len(s.frames)) == ("work", 1, "no_rule", 1, 1), s)
    tap.check(s.frames[0].path == "/usr/bin/a (b)" and s.frames[0].address == 0x1197, s)


def resolver():
    """The loader calls an ifunc's resolver through a pointer that no instruction of the program takes."""
    Path("chosen.c").write_text("""
static int slow(int x) { return x + 1; }
static __attribute__((noinline)) int direct(int x) { return x * 3; }
__attribute__((used)) static int (*choose(void))(int) { return slow; }
static int chosen(int x) __attribute__((ifunc("choose")));
int main(int argc, char **argv) { return chosen(argc) + direct(argc); }
""", encoding="ascii")
    import elf_code  # pylint: disable=import-outside-toplevel
    for flags in (), ("-no-pie",):
        subprocess.run(["gcc", "-O1", "-fpie", "-pie", *flags, "-o", "chosen", "chosen.c"], check=True)
        code = elf_code.ElfCode(str(Path("chosen").resolve()))
        starts = {name: int(start, 16) for start, _, name in (
            line.split() for line in subprocess.run(["nm", "chosen"], capture_output=True, text=True, check=True).stdout.splitlines()
            if len(line.split()) == 3)}
        tap.check(code.reached_otherwise(starts["choose"]), "the resolver is only called directly: %s" % (flags,))
        tap.check(not code.reached_otherwise(starts["direct"]), "direct() is called otherwise: %s" % (flags,))


def trampoline():
    """Where samples are in a signal trampoline: where the handler returns to, between its instructions, in its system call."""
    Path("back.c").write_text("""
asm(".globl back\\n.type back, @function\\nback: mov $15, %rax\\nsyscall\\nint3\\n.size back, . - back\\n");
int main(void) { return 0; }
""", encoding="ascii")
    import elf_code  # pylint: disable=import-outside-toplevel
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", "back", "back.c"], check=True)
    code = elf_code.ElfCode(str(Path("back").resolve()))
    nm = subprocess.run(["nm", "back"], capture_output=True, text=True, check=True).stdout
    start = next(int(line.split()[0], 16) for line in nm.splitlines() if line.endswith(" back"))
    found = [at for at in range(-3, 13) if code.is_trampoline(start + at)]
    tap.check(found == [-1, 0, 7, 9], found)


def handler():
    """libgcc goes on in an exception's handler by a jump: no call is before that, and none is asked for just there."""
    Path("handler.c").write_text("""
asm(".globl _Unwind_RaiseException\\n.type _Unwind_RaiseException, @function\\n_Unwind_RaiseException:\\n"
    "nop\\nmov %rcx, %rsp\\npop %rcx\\njmp *%rcx\\n.size _Unwind_RaiseException, . - _Unwind_RaiseException\\n"
    ".globl other\\n.type other, @function\\nother: nop\\npop %rcx\\njmp *%rcx\\n.size other, . - other\\n");
int main(void) { return 0; }
""", encoding="ascii")
    import judge  # pylint: disable=import-outside-toplevel
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", "handler", "handler.c"], check=True)
    path = str(Path("handler").resolve())
    nm = subprocess.run(["nm", "handler"], capture_output=True, text=True, check=True).stdout
    starts = {line.split()[2]: int(line.split()[0], 16) for line in nm.splitlines() if len(line.split()) == 3}
    j = judge.Judge()
    caller = judge.Frame(starts["main"], "main", path)
    raising, other = starts["_Unwind_RaiseException"], starts["other"]
    verdicts = [j.edge(caller, judge.Frame(at, "", path), {path}) for at in (raising, raising + 4, raising + 5, other + 2)]
    tap.check(verdicts == [judge.WRONG, judge.WRONG, judge.PLAUSIBLE, judge.WRONG], verdicts)


def deoptimized():
    """V8 puts the begin of a builtin of its own in place of a return address into optimized code."""
    Path("deopt.c").write_text("""
asm(".globl Builtins_InterpreterEnterAtNextBytecode\\n.type Builtins_InterpreterEnterAtNextBytecode, @function\\n"
    ".balign 16, 0xcc\\nBuiltins_InterpreterEnterAtNextBytecode: mov -32(%rbp), %r12\\njmp *%rcx\\n"
    ".size Builtins_InterpreterEnterAtNextBytecode, . - Builtins_InterpreterEnterAtNextBytecode\\n");
__attribute__((noinline)) int called(int x) { return x * 3; }
int main(int argc, char **argv) { return called(argc); }
""", encoding="ascii")
    import judge  # pylint: disable=import-outside-toplevel
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", "deopt", "deopt.c"], check=True)
    path = str(Path("deopt").resolve())
    nm = subprocess.run(["nm", "deopt"], capture_output=True, text=True, check=True).stdout
    starts = {line.split()[2]: int(line.split()[0], 16) for line in nm.splitlines() if len(line.split()) == 3}
    j = judge.Judge()
    callee = judge.Frame(starts["called"], "called", path)
    begin = starts["Builtins_InterpreterEnterAtNextBytecode"]
    verdicts = [j.edge(judge.Frame(at - 1, "", path), callee, {path}) for at in (begin, begin + 4, starts["called"])]
    tap.check(verdicts == [judge.PLAUSIBLE, judge.WRONG, judge.WRONG], verdicts)


def first():
    """What begins a stack of its own never returns, and only pointers lead to it."""
    Path("first.c").write_text("""
#include <stdlib.h>
__attribute__((noreturn, noinline)) static void start(void *x) { exit(x != 0); }
__attribute__((noreturn, noinline)) static void entry(void *x) { *(volatile int *)x = 1; start(x); }
__attribute__((noreturn, noinline)) static void called(void *x) { *(volatile int *)x = 2; start(x); }
__attribute__((noinline)) static void returns(void *x) { *(volatile int *)x = 3; }
void (*volatile pointers[])(void *) = { entry, returns };
int main(int argc, char **argv) { if (argc > 9) called(argv[0]); pointers[argc & 1](argv[0]); return 0; }
""", encoding="ascii")
    import elf_code  # pylint: disable=import-outside-toplevel
    subprocess.run(["gcc", "-O1", "-o", "first", "first.c"], check=True)
    code = elf_code.ElfCode(str(Path("first").resolve()))
    nm = subprocess.run(["nm", "first"], capture_output=True, text=True, check=True).stdout
    starts = {line.split()[2]: int(line.split()[0], 16) for line in nm.splitlines() if len(line.split()) == 3}
    told = {name: code.never_returns(starts[name] + 4) for name in ("entry", "called", "returns")}
    tap.check(told == {"entry": True, "called": False, "returns": False}, told)


def main():
    reason = python_packages()
    if reason:
        return tap.skip_all(reason)
    tests = [("right stacks", right), ("right stacks of an unoptimised program", lambda: right("-O0")),
             ("wrong stacks", wrong), ("notes", noted), ("a cut stack", cut), ("an ifunc's resolver", resolver),
             ("a signal trampoline", trampoline), ("an exception's handler", handler), ("what V8 deoptimized", deoptimized),
             ("what begins a stack", first)]
    return tap.run((name, tap.in_own_folder(test, "sonde-judge-")) for name, test in tests)


if __name__ == "__main__":
    sys.exit(main())
