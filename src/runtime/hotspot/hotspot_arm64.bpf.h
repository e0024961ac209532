/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aarch64: what the code around an interrupted pc says of the frame it runs in, by the sequences of
 * MacroAssembler::build_frame() and remove_frame() (macroAssembler_aarch64.cpp) and
 * generate_fixed_frame() (templateInterpreterGenerator_aarch64.cpp). What is not recognised is
 * taken for code with its frame built.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

/* hotspot_follow() finds these. */
__noinline int WALK_NAME(hotspot_look_thrown)(void)
{
	return LOOK_FAILED;
}

__noinline int WALK_NAME(hotspot_look_entered)(void)
{
	return LOOK_OTHER;
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
	LEAF_BACK = 5, /* stp x8,x12,[sp,#-16]!; movz; movk; movk; blr */
	TAIL_STEPS = 12,
	STUB_BACK = 15,
	SENDER_SP_OLD = 13, /* r13 up to 19, then r19_sender_sp */
	SENDER_SP = 19,
	SENDER_SP_RELEASE = 20,
	UPCALL_HEAD = 64,   /* instructions */
	ADAPTER_BACK = 127, /* instructions: as many as scratch.header holds */
};

__noinline int WALK_NAME(hotspot_follow)(void);
__noinline int WALK_NAME(hotspot_adapter_at)(void);
__noinline int WALK_NAME(hotspot_built)(void);
__noinline int WALK_NAME(hotspot_gone)(void);

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

/* stp x29,x30,[sp,#-16]!; mov x29,sp */
#define ENTER 0x910003fda9bf7bfdull

enum {
	STP_PUSH = 0xa9bf7bfd,	     /* stp x29,x30,[sp,#-16]! */
	LDP_POP = 0xa8c17bfd,	     /* ldp x29,x30,[sp],#16 */
	MOV_SP_FP = 0x910003bf,	     /* mov sp,x29 */
	ADD_SP_16 = 0x910043ff,	     /* add sp,sp,#16 */
	STP_BREADCRUMB = 0xa9bf27ff, /* stp xzr,x9,[sp,#-16]! */
	STP_SCRATCH = 0xa9bf33e8,    /* stp x8,x12,[sp,#-16]! */
	LDP_SCRATCH = 0xa8c133e8,    /* ldp x8,x12,[sp],#16 */
	STP_LINK = 0xa9bf03fe,	     /* stp x30,x0,[sp,#-16]! */
	LDP_LINK = 0xa8c103fe,	     /* ldp x30,x0,[sp],#16 */
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

/* Does the frame pointer lead to the end of a frame of this size that returns to where the link
 * register says? */
static __always_inline bool hangs_on_fp(struct walk *w, const struct hotspot_state *st)
{
	__u64 fp = w->regs[A64_FP], ra;

	return st->frame_size >= 2 &&
	       fp - w->regs[A64_SP] + 16 == 8 * (__u64)(__u32)st->frame_size &&
	       !read_stack(w, fp + 8, &ra) &&
	       arch_strip_pac(w, ra) == arch_strip_pac(w, w->regs[A64_LR]);
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
	/* What the JVM writes itself (Continuation.enterSpecial) may have done more since. */
	if (st->kind == BLOB_NATIVE && hangs_on_fp(w, st))
		return LOOK_FRAME;
	return look_link(w, s,
			 w->regs[A64_SP] + (subtracted ? 8 * (__u64)(__u32)st->frame_size : 0));
}

/* A call, or a jump that is always taken. */
static __always_inline bool goes_elsewhere(__u32 i)
{
	return (i & 0x7c000000) == 0x14000000 || (i & 0xfe000000) == 0xd6000000;
}

/* b; or adrp x8; add; br x8, of far_jump(). */
static __always_inline bool far_jump(const struct hotspot_scratch *s, __u32 at)
{
	__u32 i = insn(s, at);

	return (i & 0xfc000000) == 0x14000000 ||
	       ((i & 0x9f00001f) == 0x90000008 && insn(s, at + 2) == 0xd61f0100);
}

/* Has the instruction before taken the frame down? ldp; add sp, or ldp [sp],#16 */
static __always_inline bool taken_down(const struct hotspot_scratch *s, __u32 at)
{
	__u32 last = insn(s, at - 1);

	return last == LDP_POP || (adds_sp(last) && loads_pair(insn(s, at - 2)));
}

/*
 * Code that has taken its frame down already: whatever comes up to the return, the link register
 * stays as it is. Or it jumps instead of returning. Or it is the slow path of the poll at a return
 * (C2SafepointPollStub, C1SafepointPollStub): adr x8; str x8,[x28,#imm]; a far jump.
 */
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
		if (goes_elsewhere(code) || loads_pair(code) || code == LDP_POP || adds_sp(code) ||
		    code == MOV_SP_FP)
			break;
	}
	for (i = 0; i < 3; i++)
		if (far_jump(s, PC - i) && taken_down(s, PC - i))
			return 1;
	for (i = 0; i < 5; i++)
		if ((insn(s, PC - i) & 0x9f00001f) == 0x10000008 &&
		    (insn(s, PC - i + 1) & 0xffc003ff) == 0xf9000388 && far_jump(s, PC - i + 2))
			return 1;
	return 0;
}

/* The end of a function: is its frame there, or half of it, or gone? */
static __always_inline int look_end(struct walk *w, struct hotspot_scratch *s,
				    const struct hotspot_state *st)
{
	__u64 sp = w->regs[A64_SP];
	__u32 next = insn(s, PC);

	if (loads_pair(insn(s, PC - 1)) && adds_sp(next))
		return look_link(w, s, sp + 8 * (__u64)(__u32)st->frame_size);
	if (next == LDP_POP)
		return look_pushed(w, s);
	return WALK_NAME(hotspot_gone)() ? look_link(w, s, sp) : LOOK_FRAME;
}

/*
 * Around a call of native code: stp xzr,x9,[sp,#-16]!; lea x8; blr x8; add sp,sp,#16. Or that of
 * call_VM_leaf(): stp x8,x12,[sp,#-16]!; mov x8,#imm48; blr x8; ldp x8,x12,[sp],#16.
 */
static __always_inline bool has_pushed(const struct hotspot_scratch *s)
{
	__u32 next = insn(s, PC), last = insn(s, PC - 1), i;

	if ((next == ADD_SP_16 && (last & 0xfffffc1f) == 0xd63f0000) || last == STP_BREADCRUMB ||
	    next == LDP_SCRATCH)
		return true;
	for (i = 1; i < LEAF_BACK; i++)
		if (insn(s, PC - i) == STP_SCRATCH)
			return true;
	return false;
}

/* A jump to another blob. */
static __always_inline bool jumps_away(const struct walk *w, const struct hotspot_scratch *s,
				       const struct hotspot_state *st, __u32 at)
{
	__u32 i = insn(s, at);
	__u64 to = w->pc + 4 * (__u64)at - CODE_BEFORE + (__u64)((__s64)((__u64)i << 38) >> 36);

	return far_jump(s, at) && ((i & 0xfc000000) != 0x14000000 || !in_blob(st, to));
}

__noinline int WALK_NAME(hotspot_look_compiled)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
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
	if (has_pushed(s)) {
		w->regs[A64_SP] = sp + 16;
		return LOOK_FRAME;
	}
	/* Native methods' wrappers forward exceptions so: leave; ldr; cbnz; ...; far_jump() */
	if (st->kind == BLOB_NATIVE && (jumps_away(w, s, st, PC) || jumps_away(w, s, st, PC - 1) ||
					jumps_away(w, s, st, PC - 2)))
		return look_link(w, s, sp);
	return look_end(w, s, st);
}

/* The caller's stack pointer, which an adapter and a method's entry keep. */
static __always_inline __u64 sender_sp_of(const struct walk *w)
{
	__u64 sp = w->regs[A64_SP],
	      sender = w->regs[hotspot_record(w)->release < SENDER_SP_RELEASE ? SENDER_SP_OLD
									      : SENDER_SP];

	return sender >= sp && sender - sp < 1u << 16 && !(sender & 7) ? sender : sp;
}

/*
 * A method returns (InterpreterMacroAssembler::remove_activation(), generate_native_entry()): ldr
 * x9 or x20 with the caller's stack pointer; mov sp,x29; ldp x29,x30,[sp],#16; mov x20,x9; and
 * sp,x20,#-16 or mov sp,x20; ret. The frame is gone behind the ldp.
 */
static __always_inline int look_returning(struct walk *w, struct hotspot_scratch *s, __u64 lr)
{
	__u64 cfa = w->regs[A64_SP], x20 = w->regs[20];
	__u32 i;

	for (i = 0; i < TAIL_STEPS; i++) {
		__u32 code = insn(s, PC + i);

		if (code == 0xd65f03c0)
			break;
		if (goes_elsewhere(code) || code == LDP_POP || code == MOV_SP_FP)
			return LOOK_FRAME;
		if (code == 0xaa0903f4) /* mov x20,x9 */
			x20 = w->regs[9];
		if (code == 0x927cee9f || code == 0x9100029f) /* and sp,x20,#-16; mov sp,x20 */
			cfa = x20 & ~15ull;
	}
	if (i >= TAIL_STEPS)
		return LOOK_FRAME;
	look_caller(s, cfa, lr, w->regs[A64_FP]);
	return LOOK_JUMP;
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
	if (!w->interrupted)
		return LOOK_FRAME;
	fp = w->regs[A64_FP];
	lr = arch_strip_pac(w, w->regs[A64_LR]);
	if (!in_code(r, lr))
		return LOOK_FRAME;
	if (w->pc - r->entries_start >= r->entries_end - r->entries_start)
		return WALK_NAME(hotspot_read_code)() ? LOOK_FAILED : look_returning(w, s, lr);
	if (fp > w->regs[A64_SP] && fp - w->regs[A64_SP] < 1u << 16 && !(fp & 7) &&
	    !read_stack(w, fp + 8, &ra) && !read_stack(w, fp - 24, &method) &&
	    method == w->regs[HOTSPOT_METHOD] && arch_strip_pac(w, ra) == lr)
		return LOOK_FRAME;
	if (lr - r->entries_start < r->entries_end - r->entries_start)
		return LOOK_FRAME; /* it has called something already */
	return look_caller(s, sender_sp_of(w), lr, fp);
}

/* --- stubs and adapters ---------------------------------------------------------------------- */

/* Where the code before `ra` has loaded x8 from, for blr x8: adrp; add, or movz; movk; movk. 0: not
 * known. */
static __always_inline __u64 loaded_target(__u64 ra, const __u32 *code)
{
	__u64 page;

	if ((code[1] & 0x9f00001f) == 0x90000008 && (code[2] & 0xffc003ff) == 0x91000108) {
		page = (__u64)((__s64)((__u64)(code[1] >> 5 & 0x7ffff) << 45 |
				       (__u64)(code[1] >> 29 & 3) << 43) >>
			       31);
		return ((ra - 12) & ~0xfffull) + page + (code[2] >> 10 & 0xfff);
	}
	if ((code[0] & 0xffe0001f) == 0xd2800008 && (code[1] & 0xffe0001f) == 0xf2a00008 &&
	    (code[2] & 0xffe0001f) == 0xf2c00008)
		return (code[0] >> 5 & 0xffff) | (__u64)(code[1] >> 5 & 0xffff) << 16 |
		       (__u64)(code[2] >> 5 & 0xffff) << 32;
	return 0;
}

/* Does a call stand before `ra`: of this blob, of native code, of something? */
__noinline int WALK_NAME(hotspot_called)(__u64 ra)
{
	struct walk *w = current_walk();
	__u64 target, there[2];
	__u32 code[4];

	if (!w)
		return CALLED_NOT;
	w->work++; /* as on x86-64, where it is asked for each of many words */
	if (ra < 4096 || ra & 3 || read_memory(ra - 16, code, sizeof(code)))
		return CALLED_NOT;
	if ((code[3] & 0xfffffc1f) == 0xd63f0000) { /* blr */
		target = code[3] == 0xd63f0100 ? loaded_target(ra, code) : 0;
		if (!target)
			return CALLED_SOMETHING;
	} else if ((code[3] & 0xfc000000) == 0x94000000) { /* bl */
		target = ra - 4 + (__u64)((__s64)((__u64)code[3] << 38) >> 36);
		/* A trampoline: ldr x8,.+8; br x8; the address */
		if (in_code(hotspot_record(w), target) &&
		    !read_memory(target, there, sizeof(there)) && there[0] == 0xd61f010058000048)
			target = there[1];
	} else {
		return CALLED_NOT;
	}
	if (in_blob(hotspot_state(w), target))
		return CALLED_THIS;
	return in_code(hotspot_record(w), target) ? CALLED_SOMETHING : CALLED_NATIVE;
}

/* stp, ldp with the stack pointer moved, of x, d and q registers: by how much, else 0. */
static __always_inline __s64 pair_moves(__u32 i)
{
	__s64 by = (__s64)((__u64)(i >> 15 & 0x7f) << 57) >> 57;

	switch (i & 0xffc003e0) {
	case 0xa98003e0: /* stp x,x,[sp,#imm]! */
	case 0xa8c003e0: /* ldp x,x,[sp],#imm */
	case 0x6d8003e0:
	case 0x6cc003e0:
		return 8 * by;
	case 0xad8003e0:
	case 0xacc003e0:
		return 16 * by;
	}
	return 0;
}

/*
 * A stub of its own blob begins where that does: what its first instructions have done to the stack
 * pointer, and where they have put the link register, is followed up to the pc. LOOK_FAILED: that
 * is too far away, or it branches.
 */
__noinline int WALK_NAME(hotspot_follow)(void)
{
	struct walk *w = current_walk();
	__u32 i, at, code, lr_at = 0, fp_at = 0, depth = 0;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 sp, ra, fp;
	__s64 by;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	at = (__u32)(w->pc - code_of(st)) + !w->interrupted;
	if (w->pc - code_of(st) >= CODE_SIZE || read_to_page_end(code_of(st), s->code, CODE_SIZE))
		return LOOK_FAILED;
	for (i = 0; i < CODE_SIZE / 4 && 4 * i < at; i++) {
		code = insn(s, i);
		by = pair_moves(code);
		if (by) {
			depth -= (__u32)by;
		} else if ((code & 0xffc003ff) == 0xd10003ff) {
			depth += code >> 10 & 0xfff;
		} else if ((code & 0xffc003ff) == 0x910003ff) {
			depth -= code >> 10 & 0xfff;
		} else if (code == MOV_SP_FP || subs_sp(code) || adds_sp(code) ||
			   (code & 0xfc000000) == 0x14000000 || (code & 0xffe00000) == 0xd6000000 ||
			   (code & 0xffe00000) == 0xd6400000) {
			return LOOK_FAILED;
		}
		if (code == STP_PUSH) {
			fp_at = depth;
			lr_at = depth - 8;
		} else if (stores_pair(code)) {
			fp_at = depth - 8 * (code >> 15 & 0x3f);
			lr_at = fp_at - 8;
		} else if (code == STP_LINK) {
			lr_at = depth;
		} else if (code == LDP_LINK || code == LDP_POP || loads_pair(code)) {
			fp_at = lr_at = 0;
		}
	}
	sp = w->regs[A64_SP] + depth;
	ra = w->regs[A64_LR];
	fp = w->regs[A64_FP];
	if ((!lr_at && !w->interrupted) || depth > 1u << 14 ||
	    (lr_at && read_stack(w, sp - lr_at, &ra)) || (fp_at && read_stack(w, sp - fp_at, &fp)))
		return LOOK_FAILED;
	return look_caller(s, sp, ra, fp);
}

/*
 * A safepoint's handler is not called: the link register has what the polling method left in it,
 * and JavaThread::_saved_exception_pc where that polled (SharedRuntime::generate_handler_blob()).
 * Unless it was on its return, when its own frame is gone already.
 */
static __always_inline __u64 polled_at(struct walk *w, struct hotspot_scratch *s, __u64 ra)
{
	const struct hotspot_record *r = hotspot_record(w);
	__u64 saved;

	if (!w->interrupted || arch_strip_pac(w, ra) != arch_strip_pac(w, w->regs[A64_LR]))
		return ra; /* it has put it right */
	if (w->late || !r->thread_saved_pc ||
	    read_word(w->regs[HOTSPOT_THREAD] + r->thread_saved_pc, &saved) || !in_code(r, saved) ||
	    read_to_page_end(saved - CODE_BEFORE, s->code, CODE_SIZE))
		return 0;
	return WALK_NAME(hotspot_gone)() ? ra : saved;
}

/*
 * Adapters (gen_i2c_adapter(), gen_c2i_adapter()) have no frame, but to compiled code's callers,
 * where they let native code patch the caller: stp x29,x30,[sp,#-16]!; mov x29,sp; ...; ldp
 * x29,x30,[sp],#16; then mov x13,sp (x19 from 20 on); sub sp. Which of these was the last? 1: the
 * stp. 2: the ldp, or none. 3: the mov. 0: it can't be told.
 */
__noinline int WALK_NAME(hotspot_adapter_at)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u32 i, len;
	__u64 back;

	if (!w)
		return 0;
	s = hotspot_scratch(w);
	back = w->pc - code_of(hotspot_state(w));
	len = back < 4 * ADAPTER_BACK ? (__u32)back : 4 * ADAPTER_BACK;
	barrier_var(len);
	if (read_memory(w->pc - len, s->header, len & 511))
		return 0;
	for (i = 1; i <= ADAPTER_BACK; i++) {
		__u32 code = ((const __u32 *)s->header)[(len / 4 - i) & 127];

		if (4 * i > back || code == LDP_POP)
			return 2;
		if (code == STP_PUSH)
			return 1;
		if (code == 0x910003ed || code == 0x910003f3)
			return 3;
	}
	return 0;
}

static __always_inline int look_adapter(struct walk *w, struct hotspot_scratch *s, __u64 lr)
{
	__u64 sp = w->regs[A64_SP], fp = w->regs[A64_FP], link, ra;
	int where = 1;

	if (w->interrupted) {
		if (WALK_NAME(hotspot_read_code)())
			return LOOK_FAILED;
		if (insn(s, PC - 1) == STP_PUSH || insn(s, PC) == LDP_POP)
			return look_pushed(w, s);
		where = WALK_NAME(hotspot_adapter_at)();
	}
	if (where == 1) {
		if (!(w->valid & 1u << A64_FP) || fp < sp || fp - sp > 1u << 14 || fp & 7 ||
		    read_stack(w, fp, &link) || read_stack(w, fp + 8, &ra))
			return LOOK_FAILED;
		return look_caller(s, fp + 16, ra, link);
	}
	if (!where || in_blob(hotspot_state(w), lr))
		return LOOK_FAILED;
	return look_caller(s, where == 3 ? sender_sp_of(w) : sp, lr, fp);
}

__noinline int WALK_NAME(hotspot_look_stub)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 sp, fp, lr, ra, link, begin = 0;
	int look = LOOK_FAILED;
	__u32 i, called;

	if (!w)
		return LOOK_FAILED;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	sp = w->regs[A64_SP];
	fp = w->regs[A64_FP];
	lr = arch_strip_pac(w, w->regs[A64_LR]);
	switch (st->kind) {
	case BLOB_ADAPTER:
		look = look_adapter(w, s, lr);
		return in_code(r, arch_strip_pac(w, s->ra)) ? look : LOOK_FAILED;
	case BLOB_VTABLE:
	case BLOB_METHOD_HANDLE:
		return w->interrupted && in_code(r, lr) && !in_blob(st, lr)
			       ? look_caller(s, sp, lr, fp)
			       : LOOK_FAILED;
	case BLOB_SIGNATURE: /* a leaf */
		return w->interrupted && in_interpreter(r, lr) ? look_caller(s, sp, lr, fp)
							       : LOOK_FAILED;
	}
	/* A blob of its own is one stub; its record is there from its begin to its end. */
	if (st->frame_size) {
		look = WALK_NAME(hotspot_follow)();
		if (read_word(code_of(st), &begin))
			return LOOK_FAILED;
	}
	if (look == LOOK_FAILED && w->interrupted && WALK_NAME(hotspot_read_code)())
		return LOOK_FAILED;
	if (look == LOOK_FAILED && w->interrupted && st->frame_size >= 2)
		look = look_end(w, s, st);
	if (st->kind == BLOB_DEOPTIMIZATION && look != LOOK_CALLER)
		/* It takes frames away and builds others: only with its own one it is clear. */
		return fp - sp + 16 == 8 * (__u64)(__u32)st->frame_size ? LOOK_FRAME : LOOK_FAILED;
	/* Its own frame record, by which it is called, or which it has called from. */
	if (look != LOOK_CALLER && w->valid & 1u << A64_FP && fp >= sp && fp - sp < 1u << 14 &&
	    !(fp & 7) && !read_stack(w, fp, &link) && !read_stack(w, fp + 8, &ra)) {
		ra = arch_strip_pac(w, ra);
		called = (__u32)WALK_NAME(hotspot_called)(ra);
		if (called == CALLED_THIS || begin == ENTER ||
		    (called && w->interrupted && ra == lr && !in_blob(st, lr)))
			look = look_caller(s, fp + 16, ra, link);
	}
	if (st->kind == BLOB_SAFEPOINT && look == LOOK_CALLER)
		s->ra = polled_at(w, s, s->ra);
	if (look == LOOK_CALLER)
		return st->frame_size && !in_code(r, arch_strip_pac(w, s->ra)) ? LOOK_FAILED : look;
	if (st->frame_size >= 2)
		return LOOK_FRAME;
	if (!w->interrupted || in_blob(st, lr) || !WALK_NAME(hotspot_called)(lr))
		return LOOK_FAILED;
	/* A leaf, if it has not moved its stack pointer shortly before. */
	for (i = 1; i <= STUB_BACK; i++) {
		__u32 code = insn(s, PC - i);

		if (code == 0xd65f03c0)
			break;
		/* sub sp; stp and str to [sp,#imm]! */
		if (subs_sp(code) || pair_moves(code) || (code & 0xffe00fe0) == 0xf8000fe0)
			return LOOK_FAILED;
	}
	return look_link(w, s, sp);
}

/*
 * What compiled code has pushed for a call of native code that returns to `ra`: has_pushed() says
 * how. C2's (aarch64_enc_java_to_runtime, up to 22) puts that address above the stack pointer;
 * call_VM_leaf() is in what the JVM writes itself (Continuation.doYield).
 */
static __always_inline __u64 pushed_by(struct walk *w, __u64 ra)
{
	__u64 zero, at;
	__u32 code;
	bool crumb = !read_stack(w, w->regs[A64_SP], &zero) && !zero &&
		     !read_stack(w, w->regs[A64_SP] + 8, &at) && at == ra;

	if (!crumb && hotspot_state(w)->kind != BLOB_NATIVE)
		return 0;
	if (read_memory(ra, &code, sizeof(code)))
		return 0;
	return code == LDP_SCRATCH || (crumb && code == ADD_SP_16) ? 16 : 0;
}

/* Arguments of stubs are in registers. */
static __always_inline __u64 pushed_for(__u64 ra)
{
	(void)ra;
	return 0;
}

/*
 * UpcallLinker::make_upcall_stub() (upcallLinker_aarch64.cpp): stp x29,x30,[sp,#-16]!; mov x29,sp;
 * sub sp,sp,#imm; the arguments are spilled; str x19,[sp,#imm]; str x20,[sp,#imm+8]; ...
 */
__noinline int WALK_NAME(hotspot_look_upcall)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u32 i, size, at;
	const __u32 *code;

	if (!w)
		return 0;
	s = hotspot_scratch(w);
	code = (const __u32 *)s->header;
	if (read_to_page_end(code_of(hotspot_state(w)), s->header, 4 * UPCALL_HEAD))
		return 0;
	if (code[0] != STP_PUSH || code[1] != 0x910003fd || (code[2] & 0xffc003ff) != 0xd10003ff)
		return 0;
	size = code[2] >> 10 & 0xfff;
	for (i = 3; i < UPCALL_HEAD - 1; i++) {
		at = 8 * (code[i] >> 10 & 0xfff);
		if ((code[i] & 0xffc003ff) == 0xf90003f3 &&
		    code[i + 1] == (0xf90003f4 | (at / 8 + 1) << 10) &&
		    at + 8 * NATIVE_SAVED <= size) {
			s->cfa = size;
			s->ra = 4 * (i + NATIVE_SAVED);
			return (int)(size - at);
		}
	}
	return 0;
}
