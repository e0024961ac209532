/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64: goes through code that has no frame, as far as it moves the stack pointer, up to where it
 * is known what lies there. An adapter (SharedRuntime::gen_i2c_adapter(), gen_c2i_adapter()) may
 * have anything on the stack: a collector's barrier at the entry of an interpreted method
 * (BarrierSetAssembler::c2i_entry_barrier()) and what patches the caller (patch_callers_callsite())
 * save all registers there, in each release's own way.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

enum {
	RUN_STEPS = 192, /* instructions: the longest barrier has some 150 of them, with AVX-512 */
	INSN_MAX = 15,
};

/* How a run through code ends. */
enum {
	RUN_UNKNOWN = 0, /* with what was not understood */
	RUN_SENDER,	 /* where r13 becomes the caller's stack pointer */
	RUN_POPPED,	 /* so, and the instruction before has popped the return address */
	RUN_LEFT,	 /* with a jump out of the blob */
	RUN_REGISTER,	 /* with a jump to a register */
	RUN_STRAIGHT,	 /* not within RUN_STEPS, which did not move the stack pointer */
};

__noinline int WALK_NAME(hotspot_run_one)(void);
__noinline int WALK_NAME(hotspot_run)(void);

/* Instructions are compared as little-endian numbers. */
static __always_inline __u32 code_2(const struct hotspot_scratch *s, __u32 at)
{
	return s->code[at & (CODE_SIZE - 1)] | s->code[(at & (CODE_SIZE - 1)) + 1] << 8;
}

static __always_inline __u32 code_3(const struct hotspot_scratch *s, __u32 at)
{
	return code_2(s, at) | s->code[(at & (CODE_SIZE - 1)) + 2] << 16;
}

static __always_inline __u32 code_4(const struct hotspot_scratch *s, __u32 at)
{
	return code_3(s, at) | (__u32)s->code[(at & (CODE_SIZE - 1)) + 3] << 24;
}

static __always_inline __u32 code_1(const struct hotspot_scratch *s, __u32 at)
{
	return s->code[at & (CODE_SIZE - 1)];
}

/* The bytes of a ModRM byte and what belongs to it. */
static __always_inline __u32 modrm_length(const struct hotspot_scratch *s, __u32 at)
{
	__u32 modrm = code_1(s, at), mod = modrm >> 6, len = 1;

	if (mod == 3)
		return 1;
	if ((modrm & 7) == 4) {
		len = 2;
		if (mod == 0 && (code_1(s, at + 1) & 7) == 5)
			return 6;
	} else if (mod == 0 && (modrm & 7) == 5) {
		return 5;
	}
	return mod == 1 ? len + 1 : mod == 2 ? len + 4 : len;
}

/* Of an instruction with the one-byte opcode `op`: its immediate's bytes, ModRM or not. */
enum { HAS_MODRM = 16, NOT_AN_OPCODE = 32 };
static __always_inline __u32 opcode_form(__u32 op, __u32 modrm, bool wide)
{
	if (op < 0x40) {
		switch (op & 7) {
		case 0 ... 3:
			return HAS_MODRM;
		case 4:
			return 1;
		case 5:
			return 4;
		}
		return NOT_AN_OPCODE;
	}
	switch (op) {
	case 0x50 ... 0x5f: /* push, pop */
	case 0x90:
	case 0x98 ... 0x99:
	case 0x9c ... 0x9d: /* pushf, popf */
		return 0;
	case 0x63: /* movslq */
	case 0x84 ... 0x8f:
	case 0xd1:
	case 0xd3:
	case 0xff:
		return HAS_MODRM;
	case 0x80:
	case 0x83:
	case 0x6b:
	case 0xc0 ... 0xc1:
	case 0xc6:
		return HAS_MODRM + 1;
	case 0x69:
	case 0x81:
	case 0xc7:
		return HAS_MODRM + 4;
	case 0xf6: /* test $imm, or not and the like */
		return modrm & 0x38 ? HAS_MODRM : HAS_MODRM + 1;
	case 0xf7:
		return modrm & 0x38 ? HAS_MODRM : HAS_MODRM + 4;
	case 0x6a:
	case 0x70 ... 0x7f: /* jcc */
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xeb:
		return 1;
	case 0x68:
	case 0xa9:
	case 0xe8:
	case 0xe9:
		return 4;
	case 0xb8 ... 0xbf:
		return wide ? 8 : 4;
	}
	return NOT_AN_OPCODE;
}

/* How long the instruction at `at` in scratch.code is; 0: it is none that HotSpot's stubs have. */
static __always_inline __u32 instruction_length(const struct hotspot_scratch *s, __u32 at)
{
	__u32 begin = at, op = code_1(s, at), form;
	bool wide = false;

	if (op == 0x66 || op == 0xf2 || op == 0xf3)
		op = code_1(s, ++at);
	if ((op & 0xf0) == 0x40) {
		wide = (op & 8) != 0;
		op = code_1(s, ++at);
	}
	if (op == 0xc5 || op == 0xc4 || op == 0x62) { /* AVX, AVX-512 */
		form = op == 0xc5 ? 1 : code_1(s, at + 1) & 7;
		at += op == 0xc5 ? 2 : op == 0xc4 ? 3 : 4;
		if (op == 0xc5 && code_1(s, at) == 0x77) /* vzeroupper */
			return at + 1 - begin;
		if (form < 1 || form > 3)
			return 0;
		return at + 1 + modrm_length(s, at + 1) + (form == 3) - begin;
	}
	if (op == 0x0f) {
		op = code_1(s, ++at);
		if ((op & 0xf0) == 0x80) /* jcc */
			return at + 5 - begin;
		if (op == 0x38 || op == 0x3a)
			return 0;
		return at + 1 + modrm_length(s, at + 1) - begin;
	}
	form = opcode_form(op, code_1(s, at + 1), wide);
	if (form & NOT_AN_OPCODE)
		return 0;
	if (form & HAS_MODRM)
		form = (form & 15) + modrm_length(s, at + 1);
	return at + 1 + form - begin;
}

/* By how much the instruction moves the stack pointer, if that is a number; else 0. */
static __always_inline __s32 moves_sp(const struct hotspot_scratch *s, __u32 at)
{
	__u32 four = code_4(s, at), three = four & 0xffffff, op = four & 0xff;

	if (op == 0x41) /* of r8 to r15 */
		op = four >> 8 & 0xff;
	if ((op & 0xf8) == 0x50 || op == 0x9c || op == 0x6a || op == 0x68)
		return -8;
	if ((op & 0xf8) == 0x58 || op == 0x9d)
		return 8;
	if (op == 0xff && (four >> 8 & 0x38) == 0x30) /* push from memory */
		return -8;
	if (op == 0x8f)
		return 8;
	switch (three) {
	case 0xec8348: /* sub $imm8,%rsp */
		return -(__s32)(__s8)(four >> 24);
	case 0xc48348:
		return (__s32)(__s8)(four >> 24);
	case 0xec8148:
		return -(__s32)code_4(s, at + 3);
	case 0xc48148:
		return (__s32)code_4(s, at + 3);
	case 0x648d48: /* lea d8(%rsp),%rsp */
		return four >> 24 == 0x24 ? (__s32)(__s8)code_1(s, at + 4) : 0;
	case 0xa48d48:
		return four >> 24 == 0x24 ? (__s32)code_4(s, at + 4) : 0;
	}
	return 0;
}

/* r13, if the instruction loads it from the stack; false: it can't be read. */
static __always_inline bool loads_r13(struct walk *w, struct hotspot_scratch *s, __u32 at)
{
	__u32 four = code_4(s, at);
	__s32 disp;

	if (four == 0x246c8b4c)
		disp = (__s8)code_1(s, at + 4);
	else if (four == 0x24ac8b4c)
		disp = (__s32)code_4(s, at + 4);
	else if (four == 0x242c8b4c || (four & 0xffff) == 0x5d41) /* pop %r13 */
		disp = 0;
	else
		return true;
	if (read_stack(w, s->run_sp + (__s64)disp, &s->run_r13))
		return false;
	s->run_r13_known = 1;
	return true;
}

/* mov %r13,%rsp */
static __always_inline bool sp_from_r13(__u32 three)
{
	return three == 0xe58b49 || three == 0xec894c;
}

/* How the instruction ends the run, if it does, RUN_STEPS: if it doesn't. */
static __always_inline __u32 ends_run(const struct hotspot_state *st,
				      const struct hotspot_scratch *s, __u32 at, __u64 *next)
{
	__u32 four = code_4(s, at), three = four & 0xffffff, op = four & 0xff;

	if (four == 0x246c8d4c && code_1(s, at + 4) == 8) /* lea 8(%rsp),%r13 */
		return RUN_SENDER;
	if (three == 0xec8b4c || three == 0xe58949) /* mov %rsp,%r13 */
		return code_1(s, at - 1) == 0x58 ? RUN_POPPED : RUN_SENDER;
	if (op == 0xe9 || op == 0xeb) {
		*next += op == 0xe9 ? (__s64)(__s32)(three >> 8 | code_2(s, at + 3) << 16)
				    : (__s64)(__s8)(four >> 8);
		return in_blob(st, *next) ? RUN_STEPS : RUN_LEFT;
	}
	if ((four & 0xf8ff) == 0xe0ff || (three & 0xf8ffff) == 0xe0ff41)
		return RUN_REGISTER;
	if (op == 0xc3 || op == 0xc2 || op == 0xc9 || op == 0xf4 || op == 0xcc)
		return RUN_UNKNOWN;
	/* mov to the stack pointer, but out of r13 */
	if (!sp_from_r13(three) &&
	    ((three & 0xf8fffe) == 0xe08b48 || (three & 0xc7fffb) == 0xc48948))
		return RUN_UNKNOWN;
	return RUN_STEPS;
}

/* What the instruction makes of the stack pointer; false: it is not known. */
static __always_inline bool move_sp(struct hotspot_scratch *s, __u32 at)
{
	if (sp_from_r13(code_3(s, at))) {
		s->run_sp = s->run_r13;
		return s->run_r13_known;
	}
	if (code_4(s, at) == 0xf0e48348) /* and $-16,%rsp */
		s->run_sp &= ~15ull;
	else
		s->run_sp += (__s64)moves_sp(s, at);
	return true;
}

/* One instruction: enum RUN_*, or RUN_STEPS if it does not end the run. By itself, so that the
 * verifier goes through it once. */
__noinline int WALK_NAME(hotspot_run_one)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u64 next, before;
	__u32 at, len, end;

	if (!w)
		return RUN_UNKNOWN;
	w->work++; /* as long as a read; any frame may be one of code that has none */
	s = hotspot_scratch(w);
	if (!in_blob(hotspot_state(w), s->run_pc))
		return RUN_UNKNOWN;
	/* With the byte before it. */
	if (s->run_pc - s->run_window - 1 > CODE_SIZE - INSN_MAX - 1) {
		if (read_to_page_end(s->run_pc - 1, s->code, CODE_SIZE))
			return RUN_UNKNOWN;
		s->run_window = s->run_pc - 1;
	}
	at = (__u32)(s->run_pc - s->run_window) & (CODE_SIZE - 1);
	len = instruction_length(s, at);
	if (!len)
		return RUN_UNKNOWN;
	next = s->run_pc + len;
	end = ends_run(hotspot_state(w), s, at, &next);
	if (end != RUN_STEPS)
		return (int)end;
	before = s->run_sp;
	if (!loads_r13(w, s, at) || !move_sp(s, at))
		return RUN_UNKNOWN;
	s->run_moved |= s->run_sp != before;
	s->run_pc = next;
	return RUN_STEPS;
}

/*
 * Goes through the code from the pc on, which has no frame: enum RUN_*; scratch.run_sp: the stack
 * pointer there.
 */
__noinline int WALK_NAME(hotspot_run)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u32 i;
	int end;

	if (!w)
		return RUN_UNKNOWN;
	s = hotspot_scratch(w);
	s->run_pc = w->interrupted ? w->pc : w->pc + 1;
	s->run_window = s->run_pc - CODE_SIZE;
	s->run_sp = w->regs[ARCH_SP];
	s->run_r13 = w->regs[X86_R13];
	s->run_r13_known = w->valid >> X86_R13 & 1;
	s->run_moved = 0;
	for (i = 0; i < RUN_STEPS; i++) {
		end = WALK_NAME(hotspot_run_one)();
		if (end != RUN_STEPS)
			return end;
	}
	return s->run_moved ? RUN_UNKNOWN : RUN_STRAIGHT;
}
