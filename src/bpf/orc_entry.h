/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an entry of the kernel's ORC unwind tables says, as a KERNEL_RULE(). For both sides: user
 * space makes rows of the kernel's own tables (unwind/orc.h), the walker reads those of modules
 * where they lie.
 */
#pragma once

#include "abi/kernel_rows.h"

#include <linux/types.h>
#include <stdbool.h>

/* arch/x86/include/asm/orc_types.h; the same numbers since 4.14. */
enum orc_reg {
	ORC_REG_UNDEFINED = 0,
	ORC_REG_PREV_SP = 1,
	ORC_REG_BP = 4,
	ORC_REG_SP = 5,
	ORC_REG_BP_INDIRECT = 8,
	ORC_REG_SP_INDIRECT = 9,
};

/* Since fb799447ae29 ("x86,objtool: Split UNWIND_HINT_EMPTY in two", 6.4), with 3 bits. Before,
 * with 2 bits, the last three were 0 to 2, and an undefined register said what the first two say.
 */
enum orc_type {
	ORC_TYPE_UNDEFINED = 0,
	ORC_TYPE_END_OF_STACK = 1,
	ORC_TYPE_CALL = 2,
	ORC_TYPE_REGS = 3,
	ORC_TYPE_REGS_PARTIAL = 4,
};

enum {
	ORC_ENTRY_SIZE = 6,
	ORC_FLAGS_OFFSET = 4, /* behind the distances of sp and bp */
	ORC_CFA_WORDS_MAX = KERNEL_RULE_CFA(~0u),
	ORC_FP_WORDS_MAX = KERNEL_RULE_FP(~0u),
	ORC_HELPER = KERNEL_RULE(KERNEL_HELPER, 0, 0, 0),
};

static inline __u32 orc_bits(__u16 flags, __u8 shift, __u8 size)
{
	return flags >> shift & ((1u << size) - 1);
}

/* A distance as a number of words, if `room` can have it; else -1. */
static inline __s32 orc_words(__s32 distance, __u32 room)
{
	__u32 words = (__u32)distance / 8; /* BPF divides no other numbers */

	return distance < 0 || distance & 7 || words > room ? -1 : (__s32)words;
}

static inline __u32 orc_rule_of_call(const struct orc_layout *l, __u32 sp_reg, __s32 cfa, __s32 fp,
				     bool exact)
{
	switch (sp_reg) {
	case ORC_REG_SP:
		return KERNEL_RULE(KERNEL_CFA_SP, cfa, fp, exact);
	case ORC_REG_BP:
		return KERNEL_RULE(KERNEL_CFA_FP, cfa, fp, exact);
	case ORC_REG_SP_INDIRECT:
		/* Until aafeb14e9da2 ("x86/unwind/orc: Change REG_SP_INDIRECT", 5.12) the distance
		 * was added before the pointer was followed: what may be that old counts without
		 * one. */
		if (l->type_size == 3 || !cfa)
			return KERNEL_RULE(KERNEL_CFA_AT_SP, cfa, fp, exact);
		return ORC_HELPER;
	}
	return ORC_HELPER;
}

/* By the entry's two distances, and its last 16 bits. */
static inline __u32 orc_entry_rule(const struct orc_layout *l, __s16 sp, __s16 bp, __u16 flags)
{
	__u32 sp_reg, bp_reg, type;
	__s32 cfa, fp = 0;
	bool exact;

	sp_reg = flags & 15;
	bp_reg = flags >> 4 & 15;
	type = orc_bits(flags, l->type_shift, l->type_size);
	if (l->type_size == 2)
		type = sp_reg == ORC_REG_UNDEFINED ? ORC_TYPE_UNDEFINED : type + ORC_TYPE_CALL;
	exact = l->signal_size ? orc_bits(flags, l->signal_shift, 1) : type != ORC_TYPE_CALL;
	/* The kernel's walk tells the two apart only in whether it calls itself reliable. */
	if (type == ORC_TYPE_UNDEFINED || type == ORC_TYPE_END_OF_STACK)
		return KERNEL_RULE(KERNEL_END, 0, 0, 0);
	if (type == ORC_TYPE_CALL && sp_reg == ORC_REG_BP_INDIRECT && bp_reg == ORC_REG_BP && !bp) {
		cfa = orc_words(-sp, ORC_CFA_WORDS_MAX);
		return cfa < 0 ? ORC_HELPER : KERNEL_RULE(KERNEL_CFA_AT_FP, cfa, 0, exact);
	}
	cfa = orc_words(sp, ORC_CFA_WORDS_MAX);
	if (bp_reg == ORC_REG_PREV_SP)
		fp = bp ? orc_words(-bp, ORC_FP_WORDS_MAX) : -1;
	if (cfa < 0 || fp < 0 || (bp_reg != ORC_REG_PREV_SP && bp_reg != ORC_REG_UNDEFINED))
		return ORC_HELPER;
	if (type == ORC_TYPE_CALL)
		return orc_rule_of_call(l, sp_reg, cfa, fp, exact);
	if (fp || sp_reg != ORC_REG_SP || !exact || type > ORC_TYPE_REGS_PARTIAL)
		return ORC_HELPER;
	return KERNEL_RULE(type == ORC_TYPE_REGS ? KERNEL_REGS : KERNEL_REGS_PARTIAL, cfa, 0, true);
}
