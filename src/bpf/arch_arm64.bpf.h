/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the native step needs to know of aarch64.
 */
#pragma once

#include "bpf/walk.bpf.h"

enum {
	ARCH_SP = A64_SP,
	ARCH_FP = A64_FP,
	ARCH_LINK_REGISTER = A64_LR,
	ARCH_FIRST_SAVED = A64_X19, /* see arch_x86.bpf.h */
	ARCH_REGS = 32,
	/* Those that have slots, and sp: of others no table says who saved them. lr is known in the
	   interrupted frame only. */
	ARCH_CALLEE_SAVED = (int)(0x1fu << 19 | 1u << 28 | 1u << A64_FP | 1u << A64_SP),
	/* A frame record may lie anywhere in its frame: it does not tell the caller's stack
	   pointer. */
	ARCH_RECORD_ON_TOP = 0,
	ARCH_STORES_IN_ORDER = 0,
	ARCH_SIGNAL_WORDS = 33,
	ARCH_SIGNAL_PC = 32,
};

static const __u8 arch_slot_regs[UNWIND_SLOTS] = A64_SLOT_REGS;

/* arch/arm64/include/uapi/asm/sigcontext.h, struct sigcontext: regs[31], sp, pc. */
static const __u8 arch_signal_regs[ARCH_SIGNAL_WORDS] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10,
	11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
	22, 23, 24, 25, 26, 27, 28, 29, 30, 31, ARCH_SIGNAL_PC,
};

/* Pointer authentication keeps its code in the bits above the address: clear them. */
static __always_inline __u64 arch_strip_pac(const struct walk *w, __u64 address)
{
	return address & w->address_mask;
}

/* Whether a call ends `code`: the 8 bytes before a return address. */
static __always_inline bool arch_is_call(__u64 code)
{
	__u32 insn = code >> 32;

	return (insn & 0xfc000000) == 0x94000000 || /* bl */
	       (insn & 0xfefff000) == 0xd63f0000;   /* blr, blraa */
}

/* Where the direct call leads that ends `code`, the 8 bytes before `ra`; 0: it is none. */
static __always_inline __u64 arch_called(__u64 code, __u64 ra)
{
	__u32 insn = code >> 32;

	return (insn & 0xfc000000) == 0x94000000
		       ? ra - 4 + 4 * (__u64)(__s64)((__s32)(insn << 6) >> 6)
		       : 0;
}

enum arch_frame {
	ARCH_FRAME_UNKNOWN,  /* the code around pc does not tell */
	ARCH_FRAME_STANDARD, /* the frame record (fp, lr) is set up */
	ARCH_FRAME_NONE,     /* the return address is in lr; the frame pointer is the caller's */
	ARCH_FRAME_PUSHED,   /* so, but both were just stored at sp */
};

/*
 * How far the interrupted function has set up its frame, read from the code around pc: 8 bytes
 * before it, 8 from it on. Prologue: [paciasp or bti c]; stp x29, x30, [sp, #-N]!; mov x29, sp.
 * Epilogue: ldp x29, x30, [sp], #N; [autiasp]; ret.
 */
static __always_inline enum arch_frame arch_look_at_code(__u64 before, __u64 after)
{
	__u32 last = before >> 32, next = (__u32)after;

	if (next == 0xd65f03c0 || next == 0xd65f0bff || next == 0xd65f0fff)
		return ARCH_FRAME_NONE; /* ret, retaa, retab */
	if (next == 0xd503233f || next == 0xd503237f || next == 0xd503245f || next == 0xd50323bf ||
	    next == 0xd50323ff)
		return ARCH_FRAME_NONE; /* paciasp, pacibsp, bti c; autiasp, autibsp */
	if ((next & 0xffc07fff) == 0xa9807bfd)
		return ARCH_FRAME_NONE; /* stp x29, x30, [sp, #-N]! */
	if ((last & 0xffc07fff) == 0xa9807bfd && next == 0x910003fd)
		return ARCH_FRAME_PUSHED; /* mov x29, sp behind it */
	if ((before & 0xffc07fff) == 0xa9807bfd && last == 0x910003fd)
		return ARCH_FRAME_STANDARD; /* behind both */
	return ARCH_FRAME_UNKNOWN;
}
