/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64: what the code around an interrupted pc says of the frame it runs in. HotSpot's prologues,
 * epilogues, adapters and method entries are few fixed sequences (MacroAssembler::verified_entry(),
 * C1_MacroAssembler::build_frame(), MachEpilogNode in x86_64.ad, sharedRuntime_x86_64.cpp,
 * templateInterpreterGenerator_x86.cpp): they are recognised instruction by instruction.
 */
#pragma once

#include "runtime/hotspot/hotspot_x86_run.bpf.h"

enum {
	HOTSPOT_METHOD = X86_RBX,
	PC = CODE_BEFORE, /* in scratch.code */
	TAIL_STEPS = 12,
	LEAVE_BACK = 28,
	EXCEPTION_BACK = 40,
	STUB_PROLOGUE = 12,
	PROLOGUE_BACK = 60,
	STUB_SCAN_WORDS = 24,
	ADAPTER_ARGS = 256, /* words: 255 of arguments, and one to align */
	UPCALL_HEAD = 240,  /* bytes of its code that are looked at */
	SEARCH_WORDS = 14,  /* of code around the pc: 64 bytes before it, 48 behind */
};
#define NOT_SAVED ~0u

__noinline int WALK_NAME(hotspot_tail)(__u32 at);
__noinline int WALK_NAME(hotspot_searches)(void);
__noinline int WALK_NAME(hotspot_built)(__u32 size);
__noinline int WALK_NAME(hotspot_banged)(void);
__noinline int WALK_NAME(hotspot_called)(__u64 ra);
__noinline int WALK_NAME(hotspot_saved_at)(__u32 i);
__noinline int WALK_NAME(hotspot_scan_stub)(void);
__noinline int WALK_NAME(hotspot_look_entry)(void);
__noinline int WALK_NAME(hotspot_try)(__u64 at, __u64 link_at, __u32 least);

/* The number that the hardware gives a register -> DWARF's, which walk->regs has. */
static __always_inline __u32 dwarf_register(__u32 reg)
{
	/* rax rcx rdx rbx rsp rbp rsi rdi: 0 2 1 3 7 6 4 5 */
	return reg & 8 ? reg & 15 : 0x54673120u >> 4 * (reg & 7) & 15;
}

/*
 * What follows a frame that was taken down: hotspot_tail() goes over instructions that can stand
 * between and answers with how they end, TAIL_NONE if that is not with leaving the function.
 */
enum {
	TAIL_NONE = 0,
	TAIL_RETURN = 1,
	TAIL_JUMP = 2,		/* to an address */
	TAIL_JUMP_REGISTER = 3, /* to the one in TAIL_REGISTER, of DWARF's number */
	TAIL_END = 3,
	TAIL_POPS_FP = 1 << 2,
	TAIL_POPS = 1 << 3,	/* another register, TAIL_POPPED */
	TAIL_MOVES_SP = 1 << 4, /* to what TAIL_SP holds */
	TAIL_POLLS = 1 << 5,	/* says where it polled for a safepoint */
};
#define TAIL_REGISTER(t) ((t) >> 8 & 15)
#define TAIL_POPPED(t)	 ((t) >> 12 & 15)
#define TAIL_SP(t)	 ((t) >> 16 & 15)

/* How long the instruction at `at` is, if it can stand in a tail and ends or pops nothing. */
static __always_inline __u32 tail_length(const struct hotspot_scratch *s, __u32 at)
{
	__u32 three = code_3(s, at);

	switch (three) {
	case 0x77f8c5: /* vzeroupper */
	case 0x028541: /* test %eax,(%r10): a poll */
		return 3;
	case 0x673b49: /* cmp d8(%r15),%rsp: a poll, the fast path of continuations */
	case 0x578b4d: /* mov d8(%r15),%r10 */
		return 4;
	case 0x7f8349: /* cmpq $0,d8(%r15): a pending exception */
	case 0x47f641: /* testb $1,d8(%r15): a poll */
		return 5;
	case 0xa73b49: /* cmp d32(%r15),%rsp */
	case 0x978b4d: /* mov d32(%r15),%r10 */
	case 0x158d4c: /* lea d32(%rip),%r10 */
	case 0x97894d: /* mov %r10,d32(%r15) */
		return 7;
	case 0x87f641: /* testb $1,d32(%r15) */
	case 0xbf8349: /* cmpq $0,d32(%r15) */
	case 0x87c641: /* movb $0,d32(%r15) */
		return 8;
	case 0x87c749: /* movq $0,d32(%r15) */
		return 11;
	}
	if ((three & 0xffff) == 0xba49) /* mov $imm64,%r10 */
		return 10;
	if ((three & 0xffff) == 0x0585) /* test %eax,d32(%rip): a poll, up to 9 */
		return 6;
	if ((three & 0xf0ff) == 0x800f) /* jcc d32 */
		return 6;
	if ((three & 0xf0) == 0x70) /* jcc d8 */
		return 2;
	return 0;
}

__noinline int WALK_NAME(hotspot_tail)(__u32 at)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u32 i, len, three, seen = 0;

	if (!w)
		return TAIL_NONE;
	w->work++; /* it takes as long as a read, and may be asked for each of many bytes */
	s = hotspot_scratch(w);
	for (i = 0; i < TAIL_STEPS; i++) {
		at &= CODE_SIZE - 1;
		barrier_var(at);
		if (at > CODE_SIZE - 16)
			return TAIL_NONE;
		s->tail_end = at;
		three = code_3(s, at);
		len = tail_length(s, at);
		if (len) {
			if (three == 0x97894d)
				seen |= TAIL_POLLS;
		} else if ((three & 0xff) == 0x5d) {
			seen |= TAIL_POPS_FP;
			len = 1;
		} else if ((three & 0xf8) == 0x58) {
			seen = (seen & ~(15u << 12)) | TAIL_POPS | dwarf_register(three & 7) << 12;
			len = 1;
		} else if ((three & 0xf8ff) == 0x5841) {
			seen = (seen & ~(15u << 12)) | TAIL_POPS | (8 + (three >> 8 & 7)) << 12;
			len = 2;
		} else if (three == 0xe38b48 || three == 0xdc8948) { /* mov %rbx,%rsp */
			seen |= TAIL_MOVES_SP | X86_RBX << 16;
			len = 3;
		} else if (three == 0xe38b49 || three == 0xdc894c) { /* mov %r11,%rsp */
			seen |= TAIL_MOVES_SP | X86_R11 << 16;
			len = 3;
		} else if (three == 0xe58b49 || three == 0xec894c) { /* mov %r13,%rsp */
			seen |= TAIL_MOVES_SP | X86_R13 << 16;
			len = 3;
		} else if ((three & 0xff) == 0xc3 || (three & 0xff) == 0xc2 ||
			   (three & 0xffff) == 0xc3f3) {
			return (int)(seen | TAIL_RETURN);
		} else if ((three & 0xff) == 0xe9) {
			return (int)(seen | TAIL_JUMP);
		} else if ((three & 0xf8ff) == 0xe0ff) { /* jmp *reg */
			return (int)(seen | TAIL_JUMP_REGISTER |
				     dwarf_register(three >> 8 & 7) << 8);
		} else if ((three & 0xf8ffff) == 0xe0ff41) {
			return (int)(seen | TAIL_JUMP_REGISTER | (8 + (three >> 16 & 7)) << 8);
		} else {
			return TAIL_NONE;
		}
		at += len;
	}
	return TAIL_NONE;
}

/* The caller of a frame that is gone, or was not begun: the return address lies at sp. */
static __always_inline int look_at_sp(struct walk *w, struct hotspot_scratch *s, __u64 skip)
{
	__u64 sp = w->regs[ARCH_SP] + skip, ra;

	if (read_stack(w, sp, &ra))
		return LOOK_FAILED;
	return look_caller(s, sp + 8, ra, w->regs[ARCH_FP]);
}

/* A frame whose frame pointer was just pushed. */
static __always_inline int look_pushed(struct walk *w, struct hotspot_scratch *s)
{
	__u64 sp = w->regs[ARCH_SP], fp, ra;

	if (read_stack(w, sp, &fp) || read_stack(w, sp + 8, &ra))
		return LOOK_FAILED;
	return look_caller(s, sp + 16, ra, fp);
}

/* --- compiled code --------------------------------------------------------------------------- */

enum { BUILT_NOT = 0, BUILT_PUSHED, BUILT_ALL, BUILT_FP_LATER };

/* Were only a stack bang and the frame pointer pushed? mov %eax,d32(%rsp); push %rbp. (A function,
 * so that the verifier looks at it once.) */
__noinline int WALK_NAME(hotspot_banged)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u32 i, at;

	if (!w)
		return 0;
	s = hotspot_scratch(w);
	for (i = 8; i <= PROLOGUE_BACK; i++) {
		if (i > w->pc - code_of(hotspot_state(w)))
			break;
		at = PC - i;
		if (code_3(s, at) == 0x248489 && code_1(s, at + 7) == 0x55)
			return 1;
	}
	return 0;
}

/* In a prologue: how much of a frame of `size` bytes was built before the pc? */
__noinline int WALK_NAME(hotspot_built)(__u32 size)
{
	struct walk *w = current_walk();
	struct hotspot_state *st;
	struct hotspot_scratch *s;
	__u32 i, at, end, imm, three;

	if (!w)
		return BUILT_NOT;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	/* sub $imm,%rsp, of what is left of the frame behind the return address and, if that was
	 * pushed, the frame pointer. */
	for (i = 4; i <= PROLOGUE_BACK; i++) {
		if (i > w->pc - code_of(st))
			break;
		at = PC - i;
		three = code_3(s, at);
		if (three == 0xec8348) {
			imm = code_1(s, at + 3);
			end = i - 4;
		} else if (three == 0xec8148 && i >= 7) {
			imm = code_4(s, at + 3);
			end = i - 7;
		} else {
			continue;
		}
		if (imm + 16 == size)
			return BUILT_ALL;
		/* Without a stack bang: sub; mov %rbp,imm-8(%rsp). */
		if (imm + 8 == size)
			return end == 0 ? BUILT_FP_LATER : BUILT_ALL;
	}
	if (code_1(s, PC - 1) == 0x55 ||
	    (code_1(s, PC - 4) == 0x55 &&
	     (code_3(s, PC - 3) == 0xec8b48 || code_3(s, PC - 3) == 0xe58948)))
		return BUILT_PUSHED;
	return size <= 16 && WALK_NAME(hotspot_banged)() ? BUILT_PUSHED : BUILT_NOT;
}

/* The frame was taken down, and then a jump at the pc leaves the function? */
static __always_inline bool behind_epilogue(const struct hotspot_scratch *s, __u32 size)
{
	if (code_3(s, PC - 7) == 0x97894d) /* a poll's slow path: mov %r10,d32(%r15); jmp */
		return true;
	if (code_1(s, PC - 1) != 0x5d)
		return false;
	return (code_3(s, PC - 5) == 0xc48348 && code_1(s, PC - 2) + 16 == size) ||
	       (code_3(s, PC - 8) == 0xc48148 && code_4(s, PC - 5) + 16 == size);
}

/* Does a call in Java code, compiled or interpreted, return to `ra`? */
static __always_inline bool may_return_to(struct walk *w, __u64 ra)
{
	const struct hotspot_record *r = hotspot_record(w);

	return in_interpreter(r, ra) ||
	       (in_code(r, ra) && WALK_NAME(hotspot_called)(ra) != CALLED_NOT);
}

/* push %rax; push %rsi; push %rdi; push %rcx */
#define PUSHES_OF_SEARCH 0x51575650u

/* vpcmpestri $12 or $13, (%rbx) or (%rdi): its last three bytes. */
static __always_inline bool compares(__u64 code)
{
	return (code & 0xfefbff) == 0x0c0361;
}

/* Does the instruction that String.indexOf searches by stand near the pc? It is never farther away.
 */
__noinline int WALK_NAME(hotspot_searches)(void)
{
	struct walk *w = current_walk();
	const __u64 *code;
	__u64 low, both;
	__u32 i;

	if (!w)
		return 0;
	code = (const __u64 *)hotspot_scratch(w)->code;
	for (i = 0; i < SEARCH_WORDS; i++) {
		low = code[i];
		both = low >> 48 | code[i + 1] << 16;
		if (compares(low) || compares(low >> 8) || compares(low >> 16) ||
		    compares(low >> 24) || compares(low >> 32) || compares(low >> 40) ||
		    compares(both) || compares(both >> 8))
			return 1;
	}
	return 0;
}

/*
 * How far below its frame C2's String.indexOf has the stack pointer while it searches
 * (string_indexof() in c2_MacroAssembler_x86.cpp, as of jdk-25): rcx gets the stack pointer, what
 * is near the end of a page is copied to the stack (16 bytes each), rax, rsi and rdi are pushed if
 * what it looks for is no constant, and then rcx, which pop %rsp takes in the end. Where the return
 * address should be stands what earlier calls have left. 0: it is not that. What looks like a
 * pushed stack pointer may be left over, too: of a constant the alignment tells it, else the code.
 */
static __always_inline __u64 pushed_by_search(struct walk *w, const struct hotspot_scratch *s)
{
	__u64 sp = w->regs[ARCH_SP], own, pushed;

	if (code_4(s, PC - 1) == PUSHES_OF_SEARCH || code_4(s, PC - 2) == PUSHES_OF_SEARCH ||
	    code_4(s, PC - 3) == PUSHES_OF_SEARCH) {
		pushed = w->regs[X86_RCX] - sp;
		return pushed <= 56 ? pushed : 0;
	}
	if (read_stack(w, sp, &own) || own & 15)
		return 0;
	pushed = own - sp;
	if (pushed == 8 || pushed == 24)
		return pushed;
	if (pushed != 32 && pushed != 48 && pushed != 64)
		return 0;
	return WALK_NAME(hotspot_searches)() ? pushed : 0;
}

__noinline int WALK_NAME(hotspot_look_compiled)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u32 size, three, tail;
	__u64 ra, fp, sp, pushed;
	__s32 complete;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	if (WALK_NAME(hotspot_read_code)())
		return LOOK_FAILED;
	size = 8 * (__u32)st->frame_size;
	sp = w->regs[ARCH_SP];
	if (st->frame_size < 2) /* a method handle's linker: it jumps */
		return look_at_sp(w, s, 0);
	/* That of a stub that C2 made is not told: sub $imm32,%rsp; mov %rbp,d8(%rsp) at most. */
	complete = st->kind == BLOB_OTHER ? STUB_PROLOGUE : st->frame_complete;
	if (complete > 0 && w->pc - code_of(st) < (__u32)complete) {
		switch (WALK_NAME(hotspot_built)(size)) {
		case BUILT_NOT:
			return look_at_sp(w, s, 0);
		case BUILT_PUSHED:
			return look_pushed(w, s);
		case BUILT_FP_LATER:
			if (read_stack(w, sp + size - 8, &ra))
				return LOOK_FAILED;
			return look_caller(s, sp + size, ra, w->regs[ARCH_FP]);
		}
		return LOOK_FRAME;
	}
	tail = (__u32)WALK_NAME(hotspot_tail)(PC);
	/* RethrowException's stub: ...; pop %rbp; pop %rdx; jmp to the caller's handler. */
	if (st->kind == BLOB_OTHER && (tail & TAIL_END) == TAIL_JUMP_REGISTER) {
		if (tail & TAIL_POPS_FP)
			return look_pushed(w, s);
		if (tail & TAIL_POPS)
			return look_at_sp(w, s, 0);
		if (code_1(s, PC - 1) == 0x5a)
			return look_caller(s, sp, w->regs[X86_RDX], w->regs[ARCH_FP]);
	}
	if ((tail & TAIL_END) && !(tail & (TAIL_POPS | TAIL_MOVES_SP))) {
		if (tail & TAIL_POPS_FP)
			return look_pushed(w, s);
		if ((tail & TAIL_END) == TAIL_RETURN || tail & TAIL_POLLS ||
		    ((tail & TAIL_END) && s->tail_end == PC && behind_epilogue(s, size)))
			return look_at_sp(w, s, 0);
	}
	three = code_3(s, PC);
	/* The call of an interpreted method goes by a stub in the caller's own nmethod:
	 * mov $Method,%rbx; jmp. */
	if ((three & 0xffff) == 0xbb48 && code_1(s, PC + 10) == 0xe9)
		return look_at_sp(w, s, 0) == LOOK_CALLER ? LOOK_JUMP : LOOK_FAILED;
	if ((three & 0xff) == 0xe9 && code_2(s, PC - 10) == 0xbb48)
		return look_at_sp(w, s, 0) == LOOK_CALLER ? LOOK_JUMP : LOOK_FAILED;
	/* push d(%rsp); pop d(%rsp): one spilled value moves. */
	if ((three & 0xff) == 0x48) /* with a REX prefix */
		three = code_3(s, PC + 1);
	if (three == 0x24448f || three == 0x24848f || three == 0x24048f) {
		if (read_stack(w, sp + 8 + size - 8, &ra) || read_stack(w, sp + 8 + size - 16, &fp))
			return LOOK_FAILED;
		return look_caller(s, sp + 8 + size, ra, fp);
	}
	/* A native method's wrapper has its saved frame pointer there, and searches nothing. */
	pushed = st->kind == BLOB_COMPILED ? pushed_by_search(w, s) : 0;
	if (pushed && !read_stack(w, sp + pushed + size - 8, &ra) &&
	    !read_stack(w, sp + pushed + size - 16, &fp) && in_code(hotspot_record(w), ra))
		return look_caller(s, sp + pushed + size, ra, fp);
	if (read_stack(w, sp + size - 8, &ra) || read_stack(w, sp + size - 16, &fp))
		return LOOK_FAILED;
	/* An intrinsic may have pushed a word, as C2's String.compareTo does (string_compare() in
	 * c2_MacroAssembler_x86.cpp) for as long as it compares. Then what stands there is the
	 * saved frame pointer, which is no address of code. */
	if (!in_code(hotspot_record(w), ra)) {
		fp = ra;
		if (read_stack(w, sp + size, &ra) || !may_return_to(w, ra))
			return LOOK_FAILED;
		size += 8;
	}
	return look_caller(s, sp + size, ra, fp);
}

/* --- the interpreter ------------------------------------------------------------------------- */

/* mov %rsp,%rbp */
static __always_inline bool enters_at(const struct hotspot_scratch *s, __u32 at)
{
	__u32 three = code_3(s, at);

	return three == 0xec8b48 || three == 0xe58948;
}

/* A method's entry, as long as it has no frame of its own: r13 has the caller's stack pointer. */
__noinline int WALK_NAME(hotspot_look_entry)(void)
{
	struct walk *w = current_walk();
	__u64 sp, sender, ra, fp;
	struct hotspot_scratch *s;
	__u32 three, tail;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	sp = w->regs[ARCH_SP];
	sender = w->regs[X86_R13];
	fp = w->regs[ARCH_FP];
	three = code_3(s, PC);
	if (!w->interrupted) {
		/* It called a stub, for a function of java.lang.Math or the like. */
		return look_at_sp(w, s, 0) == LOOK_CALLER ? look_caller(s, sender, s->ra, fp)
							  : LOOK_FAILED;
	}
	/* pop %rax; lea d8(%rsp,%rcx,8),%r14; test %edx,%edx; jle; push $0 (of 2 or 5 bytes);
	 * dec %edx; jg; push %rax; push %rbp; mov %rsp,%rbp; push %r13; push $0; then
	 * mov d8(%rbx),%r13, or mov d8(%rbx),%rax; lea d8(%rax),%r13 */
	if (code_1(s, PC - 1) == 0x55 && enters_at(s, PC))
		return look_pushed(w, s) == LOOK_CALLER ? look_caller(s, sender, s->ra, s->fp)
							: LOOK_FAILED;
	if (fp - sp <= 16 &&
	    (enters_at(s, PC - 3) || enters_at(s, PC - 5) || enters_at(s, PC - 7) ||
	     enters_at(s, PC - 9) || enters_at(s, PC - 10))) {
		if (read_stack(w, fp, &sp) || read_stack(w, fp + 8, &ra))
			return LOOK_FAILED;
		return look_caller(s, sender, ra, sp);
	}
	if ((three & 0xff) == 0x50 || code_4(s, PC) == 0xcc748d4e || code_4(s, PC) == 0xcc748d4c ||
	    (three & 0xffff) == 0xd285 || (three & 0xffff) == 0x006a || three == 0x000068 ||
	    (three & 0xffff) == 0xcaff || (three & 0xff) == 0x7f || (three & 0xff) == 0x7e ||
	    (three & 0xffff) == 0x8e0f || (three & 0xffff) == 0x8f0f)
		return look_caller(s, sender, w->regs[X86_RAX], fp);
	tail = (__u32)WALK_NAME(hotspot_tail)(PC);
	if ((tail & TAIL_END) == TAIL_JUMP_REGISTER && !(tail & TAIL_POPS))
		return look_caller(s, sender, w->regs[TAIL_REGISTER(tail)], fp);
	return look_at_sp(w, s, 0) == LOOK_CALLER ? look_caller(s, sender, s->ra, fp) : LOOK_FAILED;
}

__noinline int WALK_NAME(hotspot_look_interpreter)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u32 i, tail, end;
	__u64 cfa, ra;

	if (!w)
		return LOOK_FAILED;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	if (w->pc - r->entries_start < r->entries_end - r->entries_start &&
	    w->valid & 1u << X86_R13 && w->regs[X86_R13] - w->regs[ARCH_SP] < 1u << 20) {
		if (WALK_NAME(hotspot_read_code)())
			return LOOK_FAILED;
		return WALK_NAME(hotspot_look_entry)();
	}
	if (!w->interrupted)
		return LOOK_FRAME;
	if (WALK_NAME(hotspot_read_code)())
		return LOOK_FAILED;
	tail = (__u32)WALK_NAME(hotspot_tail)(PC);
	if ((tail & TAIL_END) != TAIL_JUMP_REGISTER)
		return LOOK_FRAME;
	/* The frame is gone if `leave` stands before, with nothing but a tail between. */
	end = s->tail_end;
	for (i = 1; i < LEAVE_BACK; i++) {
		if (code_1(s, PC - i) != 0xc9)
			continue;
		if ((WALK_NAME(hotspot_tail)(PC - i + 1) & TAIL_END) == TAIL_JUMP_REGISTER &&
		    s->tail_end == end)
			break;
	}
	if (i >= LEAVE_BACK)
		return LOOK_FRAME;
	cfa = w->regs[ARCH_SP];
	ra = w->regs[TAIL_REGISTER(tail)];
	if (tail & TAIL_POPS && TAIL_POPPED(tail) == TAIL_REGISTER(tail)) {
		if (read_stack(w, cfa, &ra))
			return LOOK_FAILED;
		cfa += 8;
	}
	if (tail & TAIL_MOVES_SP)
		cfa = w->regs[TAIL_SP(tail)];
	look_caller(s, cfa, ra, w->regs[ARCH_FP]);
	return LOOK_JUMP;
}

/* --- stubs and adapters ---------------------------------------------------------------------- */

__noinline int WALK_NAME(hotspot_called)(__u64 ra)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_state *st;
	__u64 code[2], target;

	if (!w)
		return CALLED_NOT;
	w->work++; /* it is asked for each of many words */
	r = hotspot_record(w);
	st = hotspot_state(w);
	if (ra < 4096 || read_memory(ra - 16, code, sizeof(code)))
		return CALLED_NOT;
	if ((code[1] >> 24 & 0xff) == 0xe8) { /* call d32 */
		target = ra + (__u64)(__s64)(__s32)(code[1] >> 32);
		if (in_blob(st, target))
			return CALLED_THIS;
		return in_code(r, target) ? CALLED_SOMETHING : CALLED_NATIVE;
	}
	if (code[1] >> 40 == 0xd2ff41) {		  /* call *%r10 */
		if ((code[0] >> 24 & 0xffff) == 0xba49) { /* mov $imm64,%r10 */
			target = code[0] >> 40 | code[1] << 24;
			if (in_blob(st, target))
				return CALLED_THIS;
			return in_code(r, target) ? CALLED_SOMETHING : CALLED_NATIVE;
		}
		return CALLED_SOMETHING;
	}
	/* call *reg, *d8(reg), *d32(reg) */
	if ((code[1] >> 48 & 0xf8ff) == 0xd0ff || (code[1] >> 40 & 0xf8ff) == 0x50ff ||
	    (code[1] >> 16 & 0xf8ff) == 0x90ff || (code[1] >> 48 & 0xf8ff) == 0x10ff)
		return CALLED_SOMETHING;
	return CALLED_NOT;
}

/*
 * Is there a return address at `at`, that a call has left there which is at least `least`? Out of
 * native code, by whatever call. The frame pointer is at `link_at`; 0: in its register.
 */
__noinline int WALK_NAME(hotspot_try)(__u64 at, __u64 link_at, __u32 least)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u64 ra, fp;
	__u32 called;
	bool native;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	fp = w->regs[ARCH_FP];
	if (read_stack(w, at, &ra) || (link_at && read_stack(w, link_at, &fp)))
		return LOOK_FAILED;
	native = !in_code(hotspot_record(w), ra);
	if (native && least != CALLED_NATIVE)
		return LOOK_FAILED;
	called = (__u32)WALK_NAME(hotspot_called)(ra);
	if (called < (native ? CALLED_SOMETHING : least))
		return LOOK_FAILED;
	w->guessed |= native;
	return look_caller(s, at + 8, ra, fp);
}

/* The nearest word on the stack that a call of this blob has pushed. */
__noinline int WALK_NAME(hotspot_scan_stub)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u64 at, ra;
	__u32 i;

	if (!w)
		return LOOK_FAILED;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	for (i = 0; i < STUB_SCAN_WORDS; i++) {
		at = w->regs[ARCH_SP] + 8 * i;
		if (read_stack(w, at, &ra))
			return LOOK_FAILED;
		if (in_code(r, ra) && WALK_NAME(hotspot_called)(ra) == CALLED_THIS)
			return look_caller(s, at + 8, ra, w->regs[ARCH_FP]);
	}
	return LOOK_FAILED;
}

/*
 * Adapters (SharedRuntime::gen_i2c_adapter(), gen_c2i_adapter()). To compiled code: pop %rax (or
 * mov (%rsp),%rax); mov %rsp,%r11; sub; and $-16,%rsp; push %rax; ...; jmp *%r11. To the
 * interpreter: a barrier; patching the caller; pop %rax; mov %rsp,%r13; sub $imm,%rsp; mov
 * %rax,(%rsp); ...; jmp *%rcx. Between, the return address is in rax; behind that, it is where the
 * stack pointer is. r13 has the caller's stack pointer there, and all along on the way to compiled
 * code: that in the interpreter.
 */
static __always_inline int look_adapter(struct walk *w, struct hotspot_scratch *s)
{
	__u64 rax = w->regs[X86_RAX], cfa = w->regs[ARCH_SP], ra = rax;
	__u32 run = (__u32)WALK_NAME(hotspot_run)(), three;

	if (run == RUN_POPPED && s->run_pc == w->pc)
		return look_caller(s, cfa, rax, w->regs[ARCH_FP]);
	if (run == RUN_SENDER || run == RUN_LEFT || run == RUN_POPPED) {
		cfa = s->run_sp + 8 * (run != RUN_POPPED);
		if (read_stack(w, cfa - 8, &ra))
			return LOOK_FAILED;
		return look_caller(s, cfa, ra, w->regs[ARCH_FP]);
	}
	if (run == RUN_UNKNOWN || !w->interrupted || WALK_NAME(hotspot_read_code)())
		return LOOK_FAILED;
	three = code_3(s, PC);
	/* push %rax; and $imm,%rsp; mov %rax,(%rsp); sub $imm,%rsp; mov %rsp,%r11 behind pop %rax
	 */
	if ((three & 0xff) != 0x50 && three != 0xe48348 && code_4(s, PC) != 0x24048948 &&
	    three != 0xec8348 && three != 0xec8148 &&
	    !(code_1(s, PC - 1) == 0x58 && (three == 0xdc8b4c || three == 0xe38949))) {
		if (read_stack(w, cfa, &ra))
			return LOOK_FAILED;
		cfa += 8;
	}
	if (w->valid & 1u << X86_R13 && !(w->regs[X86_R13] & 7) &&
	    w->regs[X86_R13] - cfa <= 8 * ADAPTER_ARGS)
		cfa = w->regs[X86_R13];
	return look_caller(s, cfa, ra, w->regs[ARCH_FP]);
}

/*
 * A stub with one entry, which begins with push %rbp; mov %rsp,%rbp: its frame hangs on rbp from
 * there to leave or pop %rbp. (Its return address may have been replaced: no call stands before
 * it.) LOOK_OTHER: it is not such a stub.
 */
__noinline int WALK_NAME(hotspot_look_entered)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 fp, begin, link, ra, at;
	__u32 tail, size;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	if (read_word(code_of(st), &begin))
		return LOOK_FAILED;
	at = w->pc - code_of(st);
	if ((begin & 0xff) == 0x53 && at) { /* push %rbx: room for a return address */
		begin >>= 8;
		at--;
	}
	if ((begin & 0xffffffff) != 0xec8b4855 && (begin & 0xffffffff) != 0xe5894855)
		return LOOK_OTHER;
	if (w->interrupted) {
		tail = (__u32)WALK_NAME(hotspot_tail)(PC);
		if (at == 0 || (tail & (TAIL_END | TAIL_POPS | TAIL_POPS_FP)) == TAIL_RETURN)
			return look_at_sp(w, s, 0);
		if (at == 1 || (tail & TAIL_END && tail & TAIL_POPS_FP))
			return look_pushed(w, s);
		if (tail & TAIL_END && (code_1(s, PC - 1) == 0x5d || code_1(s, PC - 1) == 0xc9))
			return look_at_sp(w, s, 0);
		/* handle_exception_from_callee: leave; pop %rcx; jmp *%rcx */
		if ((tail & TAIL_END) == TAIL_JUMP_REGISTER && code_1(s, PC - 1) == 0x59)
			return look_caller(s, w->regs[ARCH_SP], w->regs[X86_RCX], w->regs[ARCH_FP]);
	}
	/* Behind its end the frame pointer is a caller's, further up. (The stack pointer may have
	 * been aligned.) */
	size = st->frame_size < 2 ? 1u << 14 : 8 * (__u32)st->frame_size;
	fp = w->regs[ARCH_FP];
	if (!(w->valid & 1u << ARCH_FP) || fp - w->regs[ARCH_SP] > size || fp & 7 ||
	    read_stack(w, fp, &link) || read_stack(w, fp + 8, &ra))
		return LOOK_FAILED;
	return look_caller(s, fp + 16, ra, link);
}

/* Does the code of a stub begin as C2's functions do: [push %rbp]; sub $imm,%rsp? */
static __always_inline bool made_by_c2(__u64 begin)
{
	if ((begin & 0xff) == 0x55)
		begin >>= 8;
	return (begin & 0xffffff) == 0xec8348 || (begin & 0xffffff) == 0xec8148;
}

/*
 * Exceptions jump, and do not return:
 *  - ExceptionBlob (runtime_x86_64.cpp), from the compiled method that throws, whose frame is still
 *    there; rdx has where. push %rdx; sub $8,%rsp; mov %rbp,(%rsp); ...; add $8,%rsp; pop %rdx;
 *    ...; jmp *%r8
 *  - C1's unwind_exception (c1_Runtime1_x86.cpp), whose frame is gone; the caller's return address
 *    is on the stack, which C1 keeps at multiples of 16. mov %rax,%r14; mov (%rsp),%rdx; ...;
 *    pop %rdx; jmp *%rbx
 */
__noinline int WALK_NAME(hotspot_look_thrown)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 sp, fp, ra, at, begin;
	__u32 i;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	sp = w->regs[ARCH_SP];
	fp = w->regs[ARCH_FP];
	ra = w->regs[X86_RDX];
	at = w->pc - code_of(st);
	s->begin = 0;
	if (st->kind != BLOB_OTHER || read_word(code_of(st), &s->begin) ||
	    (w->interrupted && WALK_NAME(hotspot_read_code)()))
		return LOOK_FAILED;
	begin = s->begin;
	if ((begin & 0xffff) == 0x770f) /* emms, up to 11 */
		begin >>= 16;
	if ((begin & 0xffffffffffff) == 0x148b48f08b4c) {
		if (!w->interrupted || code_2(s, PC) != 0xe3ff || code_1(s, PC - 1) != 0x5a) {
			sp |= 8; /* lower for the call of a native function */
			if (read_stack(w, sp, &ra))
				return LOOK_FAILED;
			sp += 8;
		}
	} else if ((begin & 0xffffffffff) == 0x08ec834852 && w->interrupted) {
		for (i = 4; i <= EXCEPTION_BACK; i++)
			if (i < at && code_4(s, PC - i) == 0x08c48348 &&
			    code_1(s, PC - i + 4) == 0x5a)
				break;
		if (i > EXCEPTION_BACK && at >= 5) { /* it has its frame */
			if (read_stack(w, sp + 8, &ra) || (at >= 9 && read_stack(w, sp, &fp)))
				return LOOK_FAILED;
			sp += 16;
		} else if (i == 4 || (i > EXCEPTION_BACK && at)) {
			if (read_stack(w, sp, &ra))
				return LOOK_FAILED;
			sp += 8;
		}
	} else {
		return LOOK_FAILED;
	}
	return in_code(hotspot_record(w), ra) ? look_caller(s, sp, ra, fp) : LOOK_FAILED;
}

/*
 * C1's check of types pushes two arguments, calls its stub, and pops them
 * (LIR_Assembler::emit_typecheck_helper()): how far the caller's stack pointer was moved.
 */
static __always_inline __u64 pushed_for(__u64 ra)
{
	__u32 code;

	if (read_memory(ra, &code, sizeof(code)))
		return 0;
	if ((code & 0xf8ff) == 0x5841)
		code >>= 16;
	else if ((code & 0xf8) == 0x58)
		code >>= 8;
	else
		return 0;
	return (code & 0xf8ff) == 0x5841 || (code & 0xf8) == 0x58 ? 16 : 0;
}

/* Calls of native code push nothing else. */
static __always_inline __u64 pushed_by(struct walk *w, __u64 ra)
{
	(void)w;
	(void)ra;
	return 0;
}

/* mov %rbx,at(%rsp), and %r12 behind it, at byte `i` of the code that was read: where; NOT_SAVED:
 * it is something else. A function, so that the verifier looks at it once. */
__noinline int WALK_NAME(hotspot_saved_at)(__u32 i)
{
	struct walk *w = current_walk();
	const __u8 *code;
	__u32 next, at;

	if (!w || i >= UPCALL_HEAD)
		return (int)NOT_SAVED;
	code = (const __u8 *)hotspot_scratch(w)->header + i;
	at = code[4];
	if (code[2] == 0x1c) {
		at = 0;
		next = 4;
	} else if (code[2] == 0x5c) {
		next = 5;
	} else if (code[2] == 0x9c) {
		at |= code[5] << 8;
		next = 8;
	} else {
		return (int)NOT_SAVED;
	}
	if (code[next] != 0x4c || code[next + 1] != 0x89 ||
	    (code[next + 2] != 0x64 && code[next + 2] != 0xa4) || code[next + 3] != 0x24 ||
	    code[next + 4] != ((at + 8) & 0xff))
		return (int)NOT_SAVED;
	return (int)at;
}

/*
 * UpcallLinker::make_upcall_stub() (upcallLinker_x86_64.cpp): push %rbp; mov %rsp,%rbp; sub
 * $imm,%rsp; the arguments are spilled; mov %rbx,d(%rsp); mov %r12,d+8(%rsp); ...
 */
__noinline int WALK_NAME(hotspot_look_upcall)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u32 i, at, size;
	const __u8 *code;

	if (!w)
		return 0;
	s = hotspot_scratch(w);
	code = (const __u8 *)s->header;
	if (read_to_page_end(code_of(hotspot_state(w)), s->header, UPCALL_HEAD + 16))
		return 0;
	if ((__u32)s->header[0] != 0xec8b4855 && (__u32)s->header[0] != 0xe5894855)
		return 0;
	if ((s->header[0] >> 32 & 0xffffff) == 0xec8148)
		size = (__u32)(s->header[0] >> 56 | s->header[1] << 8);
	else if ((s->header[0] >> 32 & 0xffffff) == 0xec8348)
		size = (__u32)(s->header[0] >> 56);
	else
		return 0;
	for (i = 8; i < UPCALL_HEAD; i++) {
		if (code[i] != 0x48 || code[i + 1] != 0x89 || code[i + 3] != 0x24)
			continue;
		at = (__u32)WALK_NAME(hotspot_saved_at)(i);
		if (at == NOT_SAVED || at + 8 * NATIVE_SAVED > size)
			continue;
		s->cfa = size;
		s->ra = i + 8 * NATIVE_SAVED; /* at least */
		return (int)(size - at);
	}
	return 0;
}

#include "runtime/hotspot/hotspot_x86_deoptimization.bpf.h"

__noinline int WALK_NAME(hotspot_look_stub)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 sp, fp, ra;
	bool own_fp;
	int look;

	if (!w)
		return LOOK_FAILED;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	sp = w->regs[ARCH_SP];
	fp = w->regs[ARCH_FP];
	if (w->interrupted && WALK_NAME(hotspot_read_code)())
		return LOOK_FAILED;
	switch (st->kind) {
	case BLOB_ADAPTER:
		look = look_adapter(w, s);
		return look == LOOK_CALLER && in_code(r, s->ra) ? look : LOOK_FAILED;
	case BLOB_METHOD_HANDLE:
		/* pop %rax; pop %rbx; push %rax */
		if (w->interrupted && ((code_1(s, PC) == 0x50 && code_1(s, PC - 1) == 0x5b) ||
				       (code_1(s, PC) == 0x5b && code_1(s, PC - 1) == 0x58)))
			return look_caller(s, sp, w->regs[X86_RAX], fp);
		look = look_at_sp(w, s, 0);
		return look == LOOK_CALLER && in_code(r, s->ra) ? look : LOOK_FAILED;
	case BLOB_VTABLE:
		look = look_at_sp(w, s, 0);
		return look == LOOK_CALLER && in_code(r, s->ra) ? look : LOOK_FAILED;
	case BLOB_SIGNATURE: /* called by a register, and pushes nothing */
		look = look_at_sp(w, s, 0);
		return look == LOOK_CALLER && in_interpreter(r, s->ra) ? look : LOOK_FAILED;
	case BLOB_DEOPTIMIZATION:
	case BLOB_UNCOMMON_TRAP:
		return WALK_NAME(hotspot_look_making)();
	}
	if (st->frame_size) { /* Java code is its caller */
		look = WALK_NAME(hotspot_look_entered)();
		if (look == LOOK_CALLER && !in_code(r, s->ra))
			look = LOOK_FAILED;
		if (look != LOOK_OTHER)
			return look;
	}
	/* With a frame pointer of its own, or nothing pushed, or just that. */
	own_fp = w->valid & 1u << ARCH_FP && fp - sp < 1u << 14 && !(fp & 7);
	/* method_entry_barrier has pushed -1 before (generate_method_entry_barrier()). */
	if (own_fp && !read_stack(w, fp + 8, &ra) && ra == ~0ull &&
	    WALK_NAME(hotspot_try)(fp + 16, fp, CALLED_THIS) == LOOK_CALLER)
		return LOOK_CALLER;
	if ((own_fp && WALK_NAME(hotspot_try)(fp + 8, fp, CALLED_THIS) == LOOK_CALLER) ||
	    WALK_NAME(hotspot_try)(sp, 0, CALLED_THIS) == LOOK_CALLER ||
	    WALK_NAME(hotspot_try)(sp + 8, sp, CALLED_THIS) == LOOK_CALLER)
		return LOOK_CALLER;
	if (st->frame_size >= 2 &&
	    !(st->frame_complete > 0 && w->pc - code_of(st) < (__u32)st->frame_complete) &&
	    WALK_NAME(hotspot_try)(sp + 8 * (__u64)(__u32)st->frame_size - 8, 0,
				   CALLED_SOMETHING) == LOOK_CALLER)
		return LOOK_FRAME;
	if (WALK_NAME(hotspot_scan_stub)() == LOOK_CALLER)
		return LOOK_CALLER;
	/* Jumped to by a native function that Java code called (SharedRuntime::drem()), or called
	 * by a pointer out of native code. */
	if ((own_fp && WALK_NAME(hotspot_try)(fp + 8, fp, CALLED_NATIVE) == LOOK_CALLER) ||
	    WALK_NAME(hotspot_try)(sp, 0, CALLED_NATIVE) == LOOK_CALLER ||
	    WALK_NAME(hotspot_try)(sp + 8, sp, CALLED_NATIVE) == LOOK_CALLER)
		return LOOK_CALLER;
	return LOOK_FAILED;
}
