// SPDX-License-Identifier: Apache-2.0
/*
 * What aarch64 instructions do to the stack pointer, the frame pointer and the link register. See
 * code_scan.h.
 */
#include "elf/a64_insn.h"
#include "unwind/code_scan.h"

#include <string.h>

enum { ZERO_OR_SP = 31 };

static int slot_of(const struct cfi_arch *cfi, unsigned int reg)
{
	for (int i = 0; i < UNWIND_SLOTS; i++)
		if (cfi->slot_regs[i] == reg)
			return i;
	return -1;
}

static void lose_track(struct scan_state *s)
{
	*s = (struct scan_state){ .kind = SCAN_UNKNOWN };
}

static void sp_move(struct scan_state *s, int64_t by)
{
	if (!s->sp)
		return;
	if (by > 1 << 30 || by < -(1 << 30) || s->sp_off + by < 0 || s->sp_off + by > 1 << 30)
		lose_track(s);
	else
		s->sp_off += by;
}

static void clobber(const struct cfi_arch *cfi, struct scan_state *s, unsigned int reg)
{
	int slot = slot_of(cfi, reg);

	if (reg == A64_FP) {
		s->fp_known = 0;
		s->fp_off = 0;
		if (!s->sp)
			lose_track(s);
	}
	if (reg == A64_LR && s->ra == RA_IN_REG)
		lose_track(s);
	if (s->kind == SCAN_FOLLOWED && slot >= 0 && s->slots[slot] == SLOT_SAME)
		s->slots[slot] = SLOT_LOST;
}

static void save_at(const struct cfi_arch *cfi, struct scan_state *s, unsigned int reg, int64_t off)
{
	int slot = slot_of(cfi, reg);

	if (off >= 0 || off % 8 || off / 8 <= INT16_MIN)
		return;
	if (reg == A64_LR && s->ra == RA_IN_REG) {
		s->ra = RA_AT_CFA;
		s->ra_off = off / 8;
	}
	if (slot >= 0 && s->slots[slot] == SLOT_SAME)
		s->slots[slot] = off / 8;
}

static void load_from(const struct cfi_arch *cfi, struct scan_state *s, unsigned int reg,
		      int64_t off)
{
	int slot = slot_of(cfi, reg);
	bool own = off < 0 && off % 8 == 0;

	if (reg == A64_LR && s->ra == RA_AT_CFA && own && s->ra_off == off / 8) {
		s->ra = RA_IN_REG;
		s->ra_off = A64_LR;
		return;
	}
	own = own && slot >= 0 && s->slots[slot] == off / 8;
	clobber(cfi, s, reg);
	if (own && s->kind == SCAN_FOLLOWED)
		s->slots[slot] = SLOT_SAME;
}

struct access {
	bool valid, load, general; /* general: of 64-bit general registers */
	bool before, after;	   /* writes its base back: pre- or post-indexed */
	unsigned int base, regs[2], nr_regs;
	int64_t off;
};

/* ldp, stp, ldr and str with an immediate offset. */
static struct access decode_access(uint32_t insn)
{
	struct access a = { .base = a64_bits(insn, 5, 5),
			    .regs = { a64_bits(insn, 0, 5) },
			    .nr_regs = 1 };
	unsigned int scale;

	if ((insn & 0x3a000000) == 0x28000000) { /* pairs, of any size and kind */
		bool vector = insn & 1u << 26;

		scale = vector ? 2 + a64_bits(insn, 30, 2) : insn >> 31 ? 3 : 2;
		a.valid = true;
		a.general = !vector && insn >> 30 == 2;
		a.load = insn & 1u << 22;
		a.after = a64_bits(insn, 23, 2) == 1;
		a.before = a64_bits(insn, 23, 2) == 3;
		a.off = a64_signed_bits(insn, 15, 7) * (1 << scale);
		a.regs[1] = a64_bits(insn, 10, 5);
		a.nr_regs = 2;
	} else if ((insn & 0x3b200400) == 0x38000400) { /* pre- and post-indexed */
		a.valid = true;
		a.general = (insn & 0xff800000) == 0xf8000000;
		a.load = insn & 3u << 22;
		a.before = insn & 1u << 11;
		a.after = !a.before;
		a.off = a64_signed_bits(insn, 12, 9);
	} else if ((insn & 0xff800000) == 0xf9000000) { /* unsigned offset */
		a.valid = a.general = true;
		a.load = insn & 1u << 22;
		a.off = a64_bits(insn, 10, 12) * 8;
	}
	return a;
}

static void apply_access(const struct cfi_arch *cfi, struct scan_state *s, const struct access *a)
{
	int64_t at;

	if (a->base != A64_SP && a->base != A64_FP) {
		for (unsigned int i = 0; a->load && a->general && i < a->nr_regs; i++)
			clobber(cfi, s, a->regs[i]);
		return;
	}
	if (a->base == A64_SP && a->before)
		sp_move(s, -a->off);
	if (s->kind != SCAN_FOLLOWED)
		return;
	at = a->after || a->before ? 0 : a->off;
	if (a->base == A64_SP ? s->sp : s->fp_known) {
		at -= a->base == A64_SP ? s->sp_off : s->fp_off;
		for (unsigned int i = 0; a->general && i < a->nr_regs; i++, at += 8)
			a->load ? load_from(cfi, s, a->regs[i], at)
				: save_at(cfi, s, a->regs[i], at);
	} else {
		for (unsigned int i = 0; a->load && a->general && i < a->nr_regs; i++)
			clobber(cfi, s, a->regs[i]);
	}
	if (a->base == A64_SP && a->after && s->kind == SCAN_FOLLOWED)
		sp_move(s, -a->off);
	if (a->base == A64_FP && (a->before || a->after))
		clobber(cfi, s, A64_FP);
}

/* add and sub of an immediate: with sp or x29 on both sides they move the frame. */
static void apply_add(const struct cfi_arch *cfi, struct scan_state *s, uint32_t insn)
{
	unsigned int to = a64_bits(insn, 0, 5), from = a64_bits(insn, 5, 5);
	int64_t by = a64_bits(insn, 10, 12) << (insn & 1u << 22 ? 12 : 0);
	int64_t off;
	bool known;

	if (insn & 1u << 30)
		by = -by;
	if (to != A64_SP && to != A64_FP) {
		clobber(cfi, s, to);
		return;
	}
	known = from == A64_SP ? s->sp : from == A64_FP && s->fp_known;
	off = (from == A64_SP ? s->sp_off : s->fp_off) - by;
	if (to == A64_FP)
		clobber(cfi, s, A64_FP);
	if (s->kind != SCAN_FOLLOWED)
		return;
	if (off < 0 || off > 1 << 30)
		known = false;
	if (to == A64_FP) {
		s->fp_known = known;
		s->fp_off = known ? off : 0;
	} else {
		s->sp = known;
		s->sp_off = known ? off : 0;
		if (!known && !s->fp_known)
			lose_track(s);
	}
}

static void apply(const struct cfi_arch *cfi, struct scan_state *s, uint32_t insn)
{
	struct access a;

	if (s->kind != SCAN_FOLLOWED)
		return;
	if (insn == 0xd280001d || insn == 0xd280001e) { /* mov x29, #0; mov x30, #0 */
		*s = (struct scan_state){ .kind = SCAN_END };
		return;
	}
	if (insn == 0xd503233f || insn == 0xd503237f) { /* paciasp, pacibsp */
		s->flags |= RULE_RA_SIGNED;
		return;
	}
	if (insn == 0xd50323bf || insn == 0xd50323ff) { /* autiasp, autibsp */
		s->flags &= ~RULE_RA_SIGNED;
		return;
	}
	if ((insn & 0xbf800000) == 0x91000000) { /* add, sub, 64-bit, immediate */
		apply_add(cfi, s, insn);
		return;
	}
	a = decode_access(insn);
	if (a.valid) {
		apply_access(cfi, s, &a);
		return;
	}
	/* sub sp, sp, x9; and sp, x9, #-16: by an amount that only the running program knows */
	if (((insn & 0xbf200000) == 0x8b200000 || (insn & 0xff800000) == 0x92000000) &&
	    a64_bits(insn, 0, 5) == ZERO_OR_SP) {
		s->sp = 0;
		s->sp_off = 0;
		if (!s->fp_known)
			lose_track(s);
		return;
	}
	/* data processing that ends in the frame pointer or the link register */
	if (((insn & 0x1c000000) == 0x10000000 || (insn & 0x0e000000) == 0x0a000000) &&
	    (a64_bits(insn, 0, 5) == A64_FP || a64_bits(insn, 0, 5) == A64_LR))
		clobber(cfi, s, a64_bits(insn, 0, 5));
}

static bool step(const struct cfi_arch *cfi, const uint8_t *p, size_t left, uint64_t addr,
		 struct code_insn *ret, struct scan_state *state)
{
	uint32_t insn;

	if (!code_insn_a64(p, left, addr, ret))
		return false;
	if (!state)
		return true;
	memcpy(&insn, p, 4);
	apply(cfi, state, insn);
	if (code_calls(ret) && state->kind == SCAN_FOLLOWED && state->ra == RA_IN_REG)
		lose_track(state);
	return true;
}

/* paciasp, pacibsp; stp, str to [sp, #-n]!; sub sp, sp, #n */
static bool prologue(const uint8_t *p, size_t left, uint64_t addr)
{
	uint32_t insn;

	(void)addr;
	if (left < 4)
		return false;
	memcpy(&insn, p, 4);
	return insn == 0xd503233f || insn == 0xd503237f || (insn & 0xffe003e0) == 0xa9a003e0 ||
	       (insn & 0xfff00fe0) == 0xf8100fe0 || (insn & 0xff8003ff) == 0xd10003ff;
}

/* mov x8, #139; svc #0 */
static size_t trampoline(const uint8_t *p, size_t left)
{
	static const uint32_t code[] = { 0xd2801168, 0xd4000001 };

	return left >= sizeof(code) && !memcmp(p, code, sizeof(code)) ? sizeof(code) : 0;
}

/* br x2 to x7 */
static bool hands_on(const uint8_t *p, size_t left, uint64_t addr)
{
	uint32_t insn, reg;

	(void)addr;
	if (left < sizeof(insn))
		return false;
	memcpy(&insn, p, sizeof(insn));
	reg = a64_bits(insn, 5, 5);
	return (insn & 0xfffffc1f) == 0xd61f0000 && reg >= 2 && reg <= 7;
}

void scan_arch_a64(const struct cfi_arch *cfi, struct scan_arch *ret)
{
	*ret = (struct scan_arch){
		.cfi = cfi,
		.entry = { .sp = SP_KNOWN, .ra = RA_IN_REG, .ra_off = A64_LR },
		.step = step,
		.prologue = prologue,
		.hands_on = hands_on,
		.trampoline = trampoline,
		/* sp is at struct rt_sigframe: siginfo (128), ucontext, whose registers are at 184
		 */
		.signal = { .cfa = CFA_SIGNAL, .cfa_reg = A64_SP, .cfa_off = 128 + 184 },
		.min_insn = 4,
	};
}
