/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the native step needs to know of x86-64.
 */
#pragma once

#include "bpf/walk.bpf.h"

enum {
	ARCH_SP = X86_RSP,
	ARCH_FP = X86_RBP,
	ARCH_LINK_REGISTER = 0, /* none: calls push the return address */
	/* The callee-saved register that compilers take first: what a function's argument is kept
	 * in across calls. */
	ARCH_FIRST_SAVED = X86_RBX,
	ARCH_REGS = 16,
	/* What a caller can still have in registers: the callee-saved ones, and r10 of realigned
	 * frames, which are saved like these. */
	ARCH_CALLEE_SAVED = 1 << X86_RBX | 1 << X86_RBP | 1 << X86_RSP | 1 << X86_R12 |
			    1 << X86_R13 | 1 << X86_R14 | 1 << X86_R15,
	ARCH_RECORD_ON_TOP = 1, /* the caller's stack pointer is right above the frame pointer */
	ARCH_STORES_IN_ORDER = 1,
	ARCH_SIGNAL_WORDS = 17,
	ARCH_SIGNAL_PC = 16,
};

static const __u8 arch_slot_regs[UNWIND_SLOTS] = X86_SLOT_REGS;

/* The order of gregs in a ucontext: arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64.
 */
static const __u8 arch_signal_regs[ARCH_SIGNAL_WORDS] = {
	8,	 9,	  X86_R10, X86_R11, X86_R12, X86_R13, X86_R14, X86_R15,	       X86_RDI,
	X86_RSI, X86_RBP, X86_RBX, X86_RDX, X86_RAX, X86_RCX, X86_RSP, ARCH_SIGNAL_PC,
};

static __always_inline __u64 arch_strip_pac(const struct walk *w, __u64 address)
{
	(void)w;
	return address;
}

/* Whether a call ends `code`: the 8 bytes before a return address. */
static __always_inline bool arch_is_call(__u64 code)
{
	__u32 i;

	if ((code >> 24 & 0xff) == 0xe8)
		return true;
	/* ff /2: in a register; with a displacement of 0, 1 or 4 bytes, each also behind a SIB */
	UNROLL
	for (i = 2; i <= 7; i++) {
		__u32 two = code >> (64 - 8 * i) & 0xffff, mod = two >> 14, rm = two >> 8 & 7;
		__u32 sib = i > 2 ? code >> (80 - 8 * i) & 0xff : 0;
		__u32 len = 2 + (mod != 3 && rm == 4);

		if (mod == 1)
			len++;
		else if (mod == 2 || (!mod && (rm == 5 || (rm == 4 && (sib & 7) == 5))))
			len += 4;
		if ((two & 0x38ff) == 0x10ff && len == i)
			return true;
	}
	return false;
}

/* Where the direct call leads that ends `code`, the 8 bytes before `ra`; 0: it is none. */
static __always_inline __u64 arch_called(__u64 code, __u64 ra)
{
	return (code >> 24 & 0xff) == 0xe8 ? ra + (__u64)(__s64)(__s32)(code >> 32) : 0;
}

enum arch_frame {
	ARCH_FRAME_UNKNOWN,  /* the code around pc does not tell */
	ARCH_FRAME_STANDARD, /* the frame pointer is set up */
	ARCH_FRAME_NONE,     /* the return address lies at sp; the frame pointer is the caller's */
	ARCH_FRAME_PUSHED,   /* so, but the frame pointer was just pushed: it lies at sp */
};

/*
 * How far the interrupted function has set up its frame, read from the code around pc: 8 bytes
 * before it, 8 from it on. Prologue: [endbr64] push %rbp; mov %rsp,%rbp. Epilogue: pop %rbp (or
 * leave); ret, or a tail jump.
 */
static __always_inline enum arch_frame arch_look_at_code(__u64 before, __u64 after)
{
	__u8 last = before >> 56;
	__u32 three = after & 0xffffff, four = after & 0xffffffff;

	if ((after & 0xff) == 0xc3 || (after & 0xffff) == 0xc3f3 || (after & 0xff) == 0xc2)
		return ARCH_FRAME_NONE; /* ret, rep ret, ret imm16 */
	if (four == 0xfa1e0ff3)
		return ARCH_FRAME_NONE; /* endbr64 */
	if (four == 0xe5894855 || four == 0xec8b4855)
		return ARCH_FRAME_NONE; /* push %rbp; mov %rsp,%rbp */
	if (last == 0x55 && (three == 0xe58948 || three == 0xec8b48))
		return ARCH_FRAME_PUSHED;
	if (before >> 32 == 0xe5894855 || before >> 32 == 0xec8b4855)
		return ARCH_FRAME_STANDARD; /* behind both */
	if ((last == 0x5d || last == 0xc9) && ((after & 0xff) == 0xe9 || (after & 0xff) == 0xeb))
		return ARCH_FRAME_NONE; /* a tail jump behind pop %rbp or leave */
	return ARCH_FRAME_UNKNOWN;
}
