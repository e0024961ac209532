/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aarch64: what the code around an interrupted pc says of the frame it runs in, by the sequences of
 * MacroAssembler::build_frame() and remove_frame() (macroAssembler_aarch64.cpp) and
 * generate_fixed_frame() (templateInterpreterGenerator_aarch64.cpp). What is not recognised is
 * taken for code with its frame built.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

__noinline int WALK_NAME(hotspot_look_thrown)(void)
{
	return LOOK_FAILED;
}

static __always_inline bool made_by_c2(__u64 begin)
{
	(void)begin;
	return false;
}

enum {
	HOTSPOT_METHOD = 12, /* rmethod */
	PC = CODE_BEFORE / 4,
	PROLOGUE_BACK = 15,
	TAIL_STEPS = 8,
	STUB_BACK = 15,
	SENDER_SP_OLD = 13, /* r13 up to 19, then r19_sender_sp */
	SENDER_SP = 19,
	SENDER_SP_RELEASE = 20,
};

__noinline int WALK_NAME(hotspot_read_code)(void);
__noinline int WALK_NAME(hotspot_built)(void);
__noinline int WALK_NAME(hotspot_gone)(void);

/* 0: scratch.code has the code around the pc. */
__noinline int WALK_NAME(hotspot_read_code)(void)
{
	struct walk *w = current_walk();

	if (!w)
		return STOP_INTERNAL;
	return read_memory(w->pc - CODE_BEFORE, hotspot_scratch(w)->code, CODE_SIZE);
}

static __always_inline __u32 insn(const struct hotspot_scratch *s, __u32 at)
{
	return ((const __u32 *)s->code)[at & (CODE_SIZE / 4 - 1)];
}

static __always_inline bool subs_sp(__u32 i)
{
	/* sub sp,sp,#imm; sub sp,sp,xN */
	return (i & 0xff8003ff) == 0xd10003ff || (i & 0xffe0ffff) == 0xcb2063ff;
}

static __always_inline bool adds_sp(__u32 i)
{
	return (i & 0xff8003ff) == 0x910003ff || (i & 0xffe0ffff) == 0x8b2063ff;
}

enum {
	STP_PUSH = 0xa9bf7bfd, /* stp x29,x30,[sp,#-16]! */
	LDP_POP = 0xa8c17bfd,  /* ldp x29,x30,[sp],#16 */
};

static __always_inline bool stores_pair(__u32 i)
{
	return (i & 0xffc07fff) == 0xa9007bfd; /* stp x29,x30,[sp,#imm] */
}

static __always_inline bool loads_pair(__u32 i)
{
	return (i & 0xffc07fff) == 0xa9407bfd; /* ldp x29,x30,[sp,#imm] */
}

static __always_inline int look_link(struct walk *w, struct hotspot_scratch *s, __u64 cfa)
{
	return look_caller(s, cfa, w->regs[A64_LR], w->regs[A64_FP]);
}

static __always_inline int look_pushed(struct walk *w, struct hotspot_scratch *s)
{
	__u64 sp = w->regs[A64_SP], fp, ra;

	if (read_stack(w, sp, &fp) || read_stack(w, sp + 8, &ra))
		return LOOK_FAILED;
	return look_caller(s, sp + 16, ra, fp);
}

/* In a prologue: sub sp; stp [sp,#imm]. Or, of large frames: stp [sp,#-16]!; sub sp. */
__noinline int WALK_NAME(hotspot_built)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	bool subtracted = false;
	__u32 i;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	for (i = 1; i <= PROLOGUE_BACK; i++) {
		__u32 code = insn(s, PC - i);

		if (4 * i > w->pc - code_of(st))
			break;
		if (stores_pair(code))
			return LOOK_FRAME;
		if (code == STP_PUSH)
			return subtracted ? LOOK_FRAME : look_pushed(w, s);
		if (subs_sp(code))
			subtracted = true;
	}
	return look_link(w, s,
			 w->regs[A64_SP] + (subtracted ? 8 * (__u64)(__u32)st->frame_size : 0));
}

/* Does only what can stand behind a frame that was taken down follow, up to the return? */
__noinline int WALK_NAME(hotspot_gone)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u32 i;

	if (!w)
		return 0;
	s = hotspot_scratch(w);
	for (i = 0; i < TAIL_STEPS; i++) {
		__u32 code = insn(s, PC + i);

		if (code == 0xd65f03c0)
			return 1;
		/* autiasp, autiaz; ldr xN,[x28,#imm]; cmp sp,xN; b.cond; ldr wzr,[xN] */
		if (code != 0xd50323bf && code != 0xd503239f && (code & 0xffc003e0) != 0xf9400380 &&
		    (code & 0xffe0ffff) != 0xeb2063ff && (code & 0xff000010) != 0x54000000 &&
		    (code & 0xfffffc1f) != 0xb940001f)
			return 0;
	}
	return 0;
}

__noinline int WALK_NAME(hotspot_look_compiled)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u32 next, last;
	__u64 sp;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	if (WALK_NAME(hotspot_read_code)())
		return LOOK_FAILED;
	sp = w->regs[A64_SP];
	if (st->frame_size < 2) /* a method handle's linker: it jumps */
		return look_link(w, s, sp);
	if (st->frame_complete > 0 && w->pc - code_of(st) < (__u32)st->frame_complete)
		return WALK_NAME(hotspot_built)();
	next = insn(s, PC);
	last = insn(s, PC - 1);
	if (loads_pair(last) && adds_sp(next))
		return look_link(w, s, sp + 8 * (__u64)(__u32)st->frame_size);
	if (next == LDP_POP)
		return look_pushed(w, s);
	if (WALK_NAME(hotspot_gone)())
		return look_link(w, s, sp);
	/* A jump instead of the return */
	if ((next & 0xfc000000) == 0x14000000 &&
	    (last == LDP_POP || (adds_sp(last) && loads_pair(insn(s, PC - 2)))))
		return look_link(w, s, sp);
	return LOOK_FRAME;
}

/* The caller's stack pointer, which an adapter and a method's entry keep. */
static __always_inline __u64 sender_sp_of(const struct walk *w)
{
	__u64 sp = w->regs[A64_SP],
	      sender = w->regs[hotspot_record(w)->release < SENDER_SP_RELEASE ? SENDER_SP_OLD
									      : SENDER_SP];

	return sender >= sp && sender - sp < 1u << 16 && !(sender & 7) ? sender : sp;
}

/* A method's entry has its frame when the frame pointer's frame is of the method in x12, and
 * returns to where the link register says. */
__noinline int WALK_NAME(hotspot_look_interpreter)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u64 fp, ra, lr, method;

	if (!w)
		return LOOK_FAILED;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	if (!w->interrupted || w->pc - r->entries_start >= r->entries_end - r->entries_start)
		return LOOK_FRAME;
	fp = w->regs[A64_FP];
	lr = arch_strip_pac(w, w->regs[A64_LR]);
	if (!in_code(r, lr))
		return LOOK_FRAME;
	if (fp > w->regs[A64_SP] && fp - w->regs[A64_SP] < 1u << 16 && !(fp & 7) &&
	    !read_stack(w, fp + 8, &ra) && !read_stack(w, fp - 24, &method) &&
	    method == w->regs[HOTSPOT_METHOD] && arch_strip_pac(w, ra) == lr)
		return LOOK_FRAME;
	if (lr - r->entries_start < r->entries_end - r->entries_start)
		return LOOK_FRAME; /* it has called something already */
	return look_caller(s, sender_sp_of(w), lr, fp);
}

/* Does a call stand before `ra`: of this blob, of native code, of something? */
__noinline int WALK_NAME(hotspot_called)(__u64 ra)
{
	struct walk *w = current_walk();
	__u64 target;
	__u32 code;

	if (!w || ra < 4096 || ra & 3 || read_memory(ra - 4, &code, sizeof(code)))
		return CALLED_NOT;
	if ((code & 0xfffffc1f) == 0xd63f0000) /* blr */
		return CALLED_SOMETHING;
	if ((code & 0xfc000000) != 0x94000000) /* bl */
		return CALLED_NOT;
	target = ra - 4 + (__u64)((__s64)((__u64)code << 38) >> 36);
	if (in_blob(hotspot_state(w), target))
		return CALLED_THIS;
	return in_code(hotspot_record(w), target) ? CALLED_SOMETHING : CALLED_NATIVE;
}

__noinline int WALK_NAME(hotspot_look_stub)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 sp, fp, lr, ra, link;
	__u32 i;

	if (!w)
		return LOOK_FAILED;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	sp = w->regs[A64_SP];
	fp = w->regs[A64_FP];
	lr = arch_strip_pac(w, w->regs[A64_LR]);
	if (st->kind == BLOB_ADAPTER || st->kind == BLOB_VTABLE || st->kind == BLOB_METHOD_HANDLE) {
		if (!w->interrupted || !in_code(r, lr) || in_blob(st, lr))
			return LOOK_FAILED;
		return look_caller(s, st->kind == BLOB_ADAPTER ? sender_sp_of(w) : sp, lr, fp);
	}
	/* Its own frame record, by which it is called, or which it has called from. */
	if (w->valid & 1u << A64_FP && fp >= sp && fp - sp < 1u << 14 && !(fp & 7) &&
	    !read_stack(w, fp, &link) && !read_stack(w, fp + 8, &ra)) {
		ra = arch_strip_pac(w, ra);
		if (WALK_NAME(hotspot_called)(ra) == CALLED_THIS ||
		    (w->interrupted && ra == lr && !in_blob(st, lr)))
			return look_caller(s, fp + 16, ra, link);
	}
	if (st->frame_size >= 2 &&
	    !(st->frame_complete > 0 && w->pc - code_of(st) < (__u32)st->frame_complete))
		return LOOK_FRAME;
	if (!w->interrupted || in_blob(st, lr) || !WALK_NAME(hotspot_called)(lr) ||
	    WALK_NAME(hotspot_read_code)())
		return LOOK_FAILED;
	/* A leaf, if it has not moved its stack pointer shortly before. */
	for (i = 1; i <= STUB_BACK; i++) {
		__u32 code = insn(s, PC - i);

		if (code == 0xd65f03c0)
			break;
		/* sub sp; stp and str to [sp,#imm]! */
		if (subs_sp(code) || (code & 0xffc003e0) == 0xa98003e0 ||
		    (code & 0xffe00fe0) == 0xf8000fe0)
			return LOOK_FAILED;
	}
	return look_link(w, s, sp);
}

/* Arguments are in registers. */
static __always_inline __u64 pushed_for(__u64 ra)
{
	(void)ra;
	return 0;
}

/* Its code is not read yet: the native caller's registers are lost. */
__noinline int WALK_NAME(hotspot_look_upcall)(void)
{
	return 0;
}
