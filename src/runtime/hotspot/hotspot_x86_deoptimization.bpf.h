/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64: a thread that was interrupted in one of the two blobs that take a compiled frame away and
 * make interpreted ones of it (generate_deopt_blob() of sharedRuntime_x86_64.cpp,
 * generate_uncommon_trap_blob() of runtime_x86_64.cpp), between their calls of native code.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

enum {
	SAVE_BACK = 96,
	TRAP_ENDS = 96, /* bytes: it calls twice, once before and once behind */
};

/*
 * What both have in common, from where the compiled frame is taken away on (x86-64's, JDK 17 to
 * 25); the enum says what is so before an instruction.
 *
 *	mov (%rdi),%ecx		MAKES_TAKES	rdi: the UnrollBlock
 *	add %rcx,%rsp		MAKES_TAKES
 *	mov d8(%rdi),%rbp	MAKES_GONE	the frame is gone, but for its return address
 *	mov d8(%rdi),%rcx	MAKES_LINKED	return addresses, the outermost one first
 *	add $8,%rsp		MAKES_LINKED
 *	mov d8(%rdi),%rsi	MAKES_POPPED	sizes of frames
 *	mov d8(%rdi),%edx	MAKES_POPPED
 *	mov %rsp,%r8		MAKES_POPPED
 *	mov d8(%rdi),%ebx	MAKES_READY	room for locals
 *	sub %rbx,%rsp		MAKES_READY
 * 1:	mov (%rsi),%rbx		MAKES_READY	a frame
 *	sub $16,%rbx		MAKES_READY
 *	push (%rcx)		MAKES_READY
 *	push %rbp		MAKES_PUSHED
 *	mov %rsp,%rbp		MAKES_PUSHED_FP
 *	sub %rbx,%rsp		MAKES_ENTERED
 *	mov %r8,-8(%rbp)	MAKES_ENTERED	sender_sp; and, before or behind:
 *	movq $0,-16(%rbp)	MAKES_ENTERED	last_sp
 *	mov %rsp,%r8		MAKES_ENTERED
 *	add $8,%rsi		MAKES_MADE
 *	add $8,%rcx		MAKES_MADE
 *	dec %edx		MAKES_READY
 *	jne 1b			MAKES_READY
 *	push (%rcx)		MAKES_READY	its own frame
 *	push %rbp		MAKES_PUSHED
 *	mov %rsp,%rbp		MAKES_PUSHED_FP
 *	sub $imm,%rsp		MAKES_ENTERED
 */
enum making {
	MAKES_NOT = 0, /* it is elsewhere */
	MAKES_TAKES,
	MAKES_GONE,
	MAKES_LINKED,
	MAKES_POPPED,
	MAKES_READY,
	MAKES_PUSHED,
	MAKES_PUSHED_FP,
	MAKES_ENTERED,
	MAKES_MADE,
};

/* Which of these instructions is at the pc? */
static __always_inline __u32 making_at(const struct hotspot_scratch *s)
{
	__u32 four = code_4(s, PC), next = code_1(s, PC + 4);

	switch (four) {
	case 0x03480f8b: /* mov (%rdi),%ecx; add */
	case 0x48e10348: /* add %rcx,%rsp */
		return MAKES_TAKES;
	case 0x08c48348: /* add $8,%rsp; mov d8(%rdi),%rsi */
		return code_3(s, PC + 4) == 0x778b48 ? MAKES_LINKED : MAKES_NOT;
	case 0x8bc48b4c: /* mov %rsp,%r8; mov d8(%rdi),%ebx */
		return MAKES_POPPED;
	case 0x481e8b48: /* mov (%rsi),%rbx */
	case 0x10eb8348: /* sub $16,%rbx */
	case 0x5531ff48: /* push (%rcx); push %rbp */
		return MAKES_READY;
	case 0xec8b4855: /* push %rbp; mov %rsp,%rbp; sub; elsewhere pushf */
		return next == 0x48 ? MAKES_PUSHED : MAKES_NOT;
	case 0x48ec8b48: /* mov %rsp,%rbp; sub */
		return MAKES_PUSHED_FP;
	case 0x48e32b48: /* sub %rbx,%rsp; mov (%rsi),%rbx, or movq $0,-16(%rbp) */
		return next == 0x8b ? MAKES_READY : MAKES_ENTERED;
	case 0x4ce32b48: /* ...; mov %r8,-8(%rbp) */
	case 0xf845894c: /* mov %r8,-8(%rbp) */
	case 0xf045c748: /* movq $0,-16(%rbp) */
	case 0x48c48b4c: /* mov %rsp,%r8; add */
		return MAKES_ENTERED;
	case 0x08c68348: /* add $8,%rsi */
	case 0x08c18348: /* add $8,%rcx */
		return MAKES_MADE;
	}
	switch (four & 0xffffff) {
	case 0x6f8b48: /* mov d8(%rdi),%rbp */
		return MAKES_GONE;
	case 0x4f8b48: /* mov d8(%rdi),%rcx */
		return MAKES_LINKED;
	case 0x778b48: /* mov d8(%rdi),%rsi */
		return MAKES_POPPED;
	case 0x75caff: /* dec %edx; jne */
		return MAKES_READY;
	case 0xec8348: /* sub $imm,%rsp */
	case 0xec8148:
		return code_4(s, PC - 4) == 0xec8b4855 ? MAKES_ENTERED : MAKES_NOT;
	}
	if ((four & 0xff00ffff) == 0x4c00578b) /* mov d8(%rdi),%edx; mov %rsp,%r8 */
		return MAKES_POPPED;
	if ((four & 0xff00ffff) == 0x48005f8b || /* mov d8(%rdi),%ebx; sub */
	    ((four & 0xff) == 0x75 && code_2(s, PC - 2) == 0xcaff))
		return MAKES_READY;
	return MAKES_NOT;
}

/* The caller there. */
static __always_inline int look_making(struct walk *w, struct hotspot_scratch *s, __u32 making)
{
	__u64 sp = w->regs[ARCH_SP], fp = w->regs[ARCH_FP], at = sp, link = fp, ra = 0;
	__u64 cfa = w->regs[X86_R8];
	int r = 0;

	if (making <= MAKES_LINKED)
		cfa = sp + 8;
	else if (making == MAKES_POPPED)
		cfa = sp;
	if (making == MAKES_GONE) {
		r = read_word(w->regs[X86_RDI] + code_1(s, PC + 3), &link);
	} else if (making == MAKES_PUSHED_FP) {
		r = read_stack(w, sp, &link);
		at = sp + 8;
	} else if (making == MAKES_ENTERED) {
		r = read_stack(w, fp, &link);
		at = fp + 8;
	}
	if (r)
		return LOOK_FAILED;
	/* It is where the next frame's comes from, which memory of now may not tell. */
	if (making == MAKES_POPPED || making == MAKES_READY || making == MAKES_MADE)
		r = w->late || read_word(w->regs[X86_RCX] + 8 * (making == MAKES_MADE), &ra);
	else
		r = read_stack(w, at, &ra);
	return r ? LOOK_FAILED : look_caller(s, cfa, ra, link);
}

/* Is it behind push %rbp; mov %rsp,%rbp; pushf, where registers are saved one after the other? */
static __always_inline bool saves_registers(struct walk *w, struct hotspot_scratch *s)
{
	const __u8 *code = (const __u8 *)s->header;
	__u32 i;

	if (read_memory(w->pc - SAVE_BACK, s->header, SAVE_BACK + 8))
		return false;
	for (i = 0; i <= SAVE_BACK - 4; i++)
		if (code[i] == 0x55 && code[i + 1] == 0x48 &&
		    ((code[i + 2] == 0x8b && code[i + 3] == 0xec) ||
		     (code[i + 2] == 0x89 && code[i + 3] == 0xe5)))
			return code[i + 4] == 0x9c;
	return false;
}

/* Outside of that, generate_deopt_blob(): push %rbp; mov %rsp,%rbp; pushf; ...; all registers are
 * saved; ...; leave; ret. */
static __always_inline int look_deoptimizing(struct walk *w, struct hotspot_scratch *s,
					     struct hotspot_state *st)
{
	__u64 fp = w->regs[ARCH_FP], off = fp - w->regs[ARCH_SP] + 16, ra = 0, link = 0;
	__u64 size = 8 * (__u64)(__u32)st->frame_size;

	if (code_1(s, PC) == 0x55 && enters_at(s, PC + 1) && code_1(s, PC + 4) == 0x9c)
		return look_at_sp(w, s, 0);
	if (code_1(s, PC - 1) == 0x55 && enters_at(s, PC) && code_1(s, PC + 3) == 0x9c)
		return look_pushed(w, s);
	if (code_1(s, PC) == 0xc3 && code_1(s, PC - 1) == 0xc9)
		return look_at_sp(w, s, 0);
	/* An exception: mov %rdx,d32(%r15); mov %rax,d32(%r15); push $0. It was thrown at rdx. */
	if (code_3(s, PC) == 0x978949 ||
	    (code_3(s, PC) == 0x878949 && code_3(s, PC - 7) == 0x978949))
		return look_caller(s, w->regs[ARCH_SP], w->regs[X86_RDX], fp);
	if (off != size && off != size + 8 && !(off < size && saves_registers(w, s)))
		return LOOK_FAILED;
	if (read_stack(w, fp, &link) || read_stack(w, fp + 8, &ra))
		return LOOK_FAILED;
	return look_caller(s, fp + 16, ra, link);
}

/* The uncommon trap's, generate_uncommon_trap_blob(): sub $8,%rsp; mov %rbp,(%rsp); ...; add
 * $8,%rsp; frames are made; ...; leave; ret. */
static __always_inline int look_trapped(struct walk *w, struct hotspot_scratch *s,
					const struct hotspot_state *st)
{
	__u64 sp = w->regs[ARCH_SP], fp = w->regs[ARCH_FP], ra = 0, link = 0;
	__u64 at = w->pc - code_of(st);

	if (!at || (code_1(s, PC) == 0xc3 && code_1(s, PC - 1) == 0xc9))
		return look_at_sp(w, s, 0);
	if (at == 4)
		return read_stack(w, sp + 8, &ra) ? LOOK_FAILED : look_caller(s, sp + 16, ra, fp);
	if (at < TRAP_ENDS)
		return look_pushed(w, s);
	/* The stack pointer was aligned. */
	if (fp - sp > 8 || read_stack(w, fp, &link) || read_stack(w, fp + 8, &ra))
		return LOOK_FAILED;
	return look_caller(s, fp + 16, ra, link);
}

/* Interrupted in one of the two: LOOK_CALLER, or LOOK_FAILED. scratch.code is read. */
__noinline int WALK_NAME(hotspot_look_making)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u32 making;
	int look;

	if (!w)
		return LOOK_FAILED;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	making = making_at(s);
	if (making)
		look = look_making(w, s, making);
	else if (st->kind == BLOB_UNCOMMON_TRAP)
		look = look_trapped(w, s, st);
	else
		look = look_deoptimizing(w, s, st);
	if (look != LOOK_CALLER || !in_code(r, s->ra))
		return LOOK_FAILED;
	/* The compiled frame is gone, and those that were made of it are not filled in. */
	if (making > MAKES_TAKES)
		st->unpacking = UNPACKING_MAKES;
	else if (in_interpreter(r, s->ra))
		st->unpacking = UNPACKING_FILLS;
	return look;
}
