// SPDX-License-Identifier: Apache-2.0
/*
 * What x86-64 instructions do to the stack pointer, to the frame pointer and to the registers that
 * a function has to keep. See code_scan.h.
 */
#include "unwind/code_scan.h"
#include "elf/x86_insn.h"

#include <string.h>

static bool is_memory(const struct x86_insn *insn, uint8_t base)
{
	return insn->has_modrm && insn->mod != 3 && !insn->has_index && !insn->rip_relative &&
	       insn->rm == base;
}

static int slot_of(const struct cfi_arch *cfi, uint8_t reg)
{
	/* r10, the last, is nobody's to keep. */
	for (int i = 0; i < UNWIND_CFA_OFF2_SLOT; i++)
		if (cfi->slot_regs[i] == reg)
			return i;
	return -1;
}

static void lose_track(struct scan_state *s)
{
	*s = (struct scan_state){ .kind = SCAN_UNKNOWN };
}

static void sp_unknown(struct scan_state *s)
{
	s->sp_known = 0;
	s->sp_off = 0;
	if (!s->fp_known)
		lose_track(s);
}

static void sp_move(struct scan_state *s, int64_t by)
{
	if (!s->sp_known)
		return;
	/* Nobody has gigabytes on the stack; above the CFA is the caller's. */
	if (by > 1 << 30 || by < -(1 << 30) || s->sp_off + by < 0 || s->sp_off + by > 1 << 30 ||
	    (s->sp_off + by < 8 && s->ra == RA_AT_CFA))
		lose_track(s);
	else
		s->sp_off += by;
}

/* The register gets a value that is not the caller's. */
static void clobber(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg)
{
	int slot = slot_of(cfi, reg);

	if (s->ra == RA_IN_REG && s->ra_off == reg) {
		lose_track(s);
		return;
	}
	if (reg == X86_RSP) {
		sp_unknown(s);
		return;
	}
	if (reg == X86_RBP) {
		s->fp_known = 0;
		s->fp_off = 0;
		if (!s->sp_known)
			lose_track(s);
	}
	if (slot >= 0 && s->slots[slot] == SLOT_SAME)
		s->slots[slot] = SLOT_LOST;
}

static void save_at(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg, int64_t off)
{
	int slot = slot_of(cfi, reg);

	if (slot >= 0 && s->slots[slot] == SLOT_SAME && s->sp_known && off < 0 && off % 8 == 0 &&
	    off / 8 > INT16_MIN)
		s->slots[slot] = off / 8;
}

/* The register is loaded from CFA + off: its own again if that is where it was saved. */
static void load_from(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg, int64_t off)
{
	int slot = slot_of(cfi, reg);
	bool own = slot >= 0 && off < 0 && s->slots[slot] == off / 8 && off % 8 == 0;

	clobber(cfi, s, reg);
	if (own && s->kind == SCAN_FOLLOWED)
		s->slots[slot] = SLOT_SAME;
}

static void push_reg(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg)
{
	if (s->sp_known && s->sp_off == 0 && s->ra == RA_IN_REG && s->ra_off == reg) {
		/* the return address goes back to its place */
		s->ra = RA_AT_CFA;
		s->ra_off = -1;
		s->sp_off = 8;
		return;
	}
	sp_move(s, 8);
	if (s->kind == SCAN_FOLLOWED)
		save_at(cfi, s, reg, -(int64_t)s->sp_off);
}

static void pop_reg(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg)
{
	if (s->sp_known && s->sp_off == 8 && s->ra == RA_AT_CFA && reg != X86_RSP) {
		/* Hand-written code takes its return address along in a register. */
		clobber(cfi, s, reg);
		s->ra = RA_IN_REG;
		s->ra_off = reg;
		s->sp_off = 0;
		return;
	}
	if (s->sp_known)
		load_from(cfi, s, reg, -(int64_t)s->sp_off);
	else
		clobber(cfi, s, reg);
	if (s->kind == SCAN_FOLLOWED)
		sp_move(s, -8);
}

static void leave(const struct cfi_arch *cfi, struct scan_state *s)
{
	if (!s->fp_known) {
		lose_track(s);
		return;
	}
	s->sp_known = 1;
	s->sp_off = s->fp_off;
	pop_reg(cfi, s, X86_RBP);
}

/* Without REX, bytes of what would be rsp, rbp, rsi and rdi are ah, ch, dh and bh. */
static uint8_t byte_register(const struct x86_insn *insn, uint8_t reg)
{
	static const uint8_t whole[16] = {
		[X86_RAX] = X86_RAX, [X86_RDX] = X86_RDX, [X86_RCX] = X86_RCX, [X86_RBX] = X86_RBX,
		[X86_RSP] = X86_RAX, [X86_RBP] = X86_RCX, [X86_RSI] = X86_RDX, [X86_RDI] = X86_RBX,
	};
	uint8_t op = insn->opcode;
	bool byte;

	if (insn->rex || insn->vex)
		return reg;
	if (insn->map == X86_MAP_0F)
		byte = (op >= 0x90 && op <= 0x9f) || op == 0xb0 || op == 0xc0;
	else
		byte = (op >= 0xb0 && op <= 0xb7) || (op < 0xb0 && !(op & 1)) || op == 0xc0 ||
		       op == 0xc6 || op == 0xd0 || op == 0xd2 || op == 0xf6 || op == 0xfe;
	return byte ? whole[reg] : reg;
}

/* Instructions whose destination is a register or that only read: the register, or -1. */
static int destination(const struct x86_insn *insn)
{
	uint8_t op = insn->opcode, group = insn->group;
	int rm = insn->mod == 3 ? insn->rm : -1;

	if (insn->vex) /* andn, shlx, pdep and the like */
		return insn->map != X86_MAP_0F && (op & 0xf0) == 0xf0 ? insn->reg : -1;
	if (insn->map == X86_MAP_0F) {
		if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || op == 0xb6 || op == 0xb7 ||
		    op == 0xb8 || (op >= 0xbc && op <= 0xbf) || op == 0x2c || op == 0x2d ||
		    op == 0x50 || op == 0xd7)
			return insn->reg;
		if (op == 0x7e || (op >= 0x90 && op <= 0x9f) || op == 0xa4 || op == 0xa5 ||
		    op == 0xab || op == 0xac || op == 0xad || op == 0xb3 || op == 0xbb ||
		    op == 0xc0 || op == 0xc1 || (op == 0xba && group > 4))
			return rm;
		if (op >= 0xc8 && op <= 0xcf)
			return insn->low_reg;
		return -1;
	}
	if (insn->map != X86_MAP_ONE_BYTE)
		return insn->map == X86_MAP_0F38 && (op & 0xf0) == 0xf0 ? insn->reg : -1;
	if (op < 0x40 && (op & 7) < 4 && op < 0x38)
		return (op & 7) < 2 ? rm : insn->reg;
	switch (op) {
	case 0x80:
	case 0x81:
	case 0x83:
		return group == 7 ? -1 : rm;
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8a:
	case 0x8b:
	case 0x8d:
		return insn->reg;
	case 0x88:
	case 0x89:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0 ... 0xd3:
		return rm;
	case 0xf6:
	case 0xf7:
		return group == 2 || group == 3 ? rm : -1;
	case 0xfe:
	case 0xff:
		return group < 2 ? rm : -1;
	case 0xb0 ... 0xbf:
		return insn->low_reg;
	default:
		return -1;
	}
}

/* Arithmetic on rsp that keeps it known; false if the instruction is no such thing. */
static bool step_sp(struct scan_state *s, const struct x86_insn *insn)
{
	uint8_t op = insn->opcode;
	bool wide = insn->rex & 8;

	if (!wide || insn->map != X86_MAP_ONE_BYTE)
		return false;
	if ((op == 0x81 || op == 0x83) && insn->mod == 3 && insn->rm == X86_RSP) {
		if (insn->group == 5)
			sp_move(s, insn->imm);
		else if (insn->group == 0)
			sp_move(s, -insn->imm);
		else
			return insn->group == 7;
		return true;
	}
	if (op == 0x8d && insn->reg == X86_RSP && is_memory(insn, X86_RSP)) {
		sp_move(s, -(int64_t)insn->disp);
		return true;
	}
	if ((op == 0x8d && insn->reg == X86_RSP && is_memory(insn, X86_RBP)) ||
	    (op == 0x8b && insn->mod == 3 && insn->reg == X86_RSP && insn->rm == X86_RBP) ||
	    (op == 0x89 && insn->mod == 3 && insn->rm == X86_RSP && insn->reg == X86_RBP)) {
		if (!s->fp_known) {
			lose_track(s);
			return true;
		}
		s->sp_known = 1;
		s->sp_off = s->fp_off;
		sp_move(s, op == 0x8d ? -(int64_t)insn->disp : 0);
		return true;
	}
	return false;
}

/* Makes rbp the frame pointer; likewise. */
static bool step_fp(const struct cfi_arch *cfi, struct scan_state *s, const struct x86_insn *insn)
{
	uint8_t op = insn->opcode;
	int32_t disp = 0;

	if (!(insn->rex & 8) || insn->map != X86_MAP_ONE_BYTE || !s->sp_known)
		return false;
	if (op == 0x8d && insn->reg == X86_RBP && is_memory(insn, X86_RSP))
		disp = insn->disp;
	else if (!(op == 0x89 && insn->mod == 3 && insn->rm == X86_RBP && insn->reg == X86_RSP) &&
		 !(op == 0x8b && insn->mod == 3 && insn->reg == X86_RBP && insn->rm == X86_RSP))
		return false;
	clobber(cfi, s, X86_RBP);
	if (s->kind == SCAN_FOLLOWED) {
		s->fp_known = 1;
		s->fp_off = s->sp_off - disp;
	}
	return true;
}

/* mov between a register to be kept and the stack. */
static bool step_save(const struct cfi_arch *cfi, struct scan_state *s, const struct x86_insn *insn)
{
	int64_t off;

	if (!(insn->rex & 8) || insn->map != X86_MAP_ONE_BYTE ||
	    (insn->opcode != 0x89 && insn->opcode != 0x8b) || slot_of(cfi, insn->reg) < 0)
		return false;
	if (is_memory(insn, X86_RSP) && s->sp_known)
		off = (int64_t)insn->disp - s->sp_off;
	else if (is_memory(insn, X86_RBP) && s->fp_known)
		off = (int64_t)insn->disp - s->fp_off;
	else
		return false;
	if (insn->opcode == 0x89)
		save_at(cfi, s, insn->reg, off);
	else
		load_from(cfi, s, insn->reg, off);
	return true;
}

static bool zeroes_rbp(const struct x86_insn *insn)
{
	return insn->map == X86_MAP_ONE_BYTE && (insn->opcode == 0x31 || insn->opcode == 0x33) &&
	       insn->mod == 3 && insn->reg == X86_RBP && insn->rm == X86_RBP;
}

static bool step_stack(const struct cfi_arch *cfi, struct scan_state *s,
		       const struct x86_insn *insn)
{
	uint8_t op = insn->opcode, reg = insn->low_reg;

	if (insn->map != X86_MAP_ONE_BYTE) {
		if (insn->map == X86_MAP_0F && !insn->vex && (op == 0xa0 || op == 0xa8))
			sp_move(s, 8);
		else if (insn->map == X86_MAP_0F && !insn->vex && (op == 0xa1 || op == 0xa9))
			sp_move(s, -8);
		else
			return false;
		return true;
	}
	switch (op) {
	case 0x50 ... 0x57:
		push_reg(cfi, s, reg);
		return true;
	case 0x58 ... 0x5f:
		pop_reg(cfi, s, reg);
		return true;
	case 0x68:
	case 0x6a:
	case 0x9c:
		sp_move(s, 8);
		return true;
	case 0x8f:
	case 0x9d:
		sp_move(s, -8);
		return true;
	case 0xc8:
		lose_track(s);
		return true;
	case 0xc9:
		leave(cfi, s);
		return true;
	case 0xff:
		if (insn->group == 6)
			sp_move(s, 8);
		return insn->group == 6;
	default:
		return false;
	}
}

static void apply(const struct cfi_arch *cfi, struct scan_state *s, const struct x86_insn *insn)
{
	int reg;

	if (s->kind != SCAN_FOLLOWED)
		return;
	if (zeroes_rbp(insn) && s->slots[0] == SLOT_SAME) {
		/* The ABI's mark of the outermost frame: _start, clone's child. */
		*s = (struct scan_state){ .kind = SCAN_END };
		return;
	}
	if (step_stack(cfi, s, insn) || step_sp(s, insn) || step_fp(cfi, s, insn) ||
	    step_save(cfi, s, insn))
		return;
	reg = destination(insn);
	if (reg >= 0)
		clobber(cfi, s, byte_register(insn, reg));
	if (insn->map == X86_MAP_0F && insn->opcode == 0xa2 && !insn->vex)
		clobber(cfi, s, X86_RBX); /* cpuid */
	/* xchg has two */
	if (insn->map == X86_MAP_ONE_BYTE && !insn->vex && insn->has_modrm &&
	    (insn->opcode & 0xfe) == 0x86) {
		clobber(cfi, s, byte_register(insn, insn->reg));
		if (insn->mod == 3)
			clobber(cfi, s, byte_register(insn, insn->rm));
	}
}

static bool step(const struct cfi_arch *cfi, const uint8_t *p, size_t left, uint64_t addr,
		 struct code_insn *ret, struct scan_state *state)
{
	struct x86_insn insn;

	/* Zeros are instructions too, but where nothing leads they are none. */
	if (left && !p[0] && (!state || left < 2 || !p[1])) {
		*ret = (struct code_insn){ .len = 1, .padding = true, .flow = FLOW_STOP };
		return true;
	}
	if (!code_insn_x86(p, left, addr, &insn, ret))
		return false;
	if (!state)
		return true;
	apply(cfi, state, &insn);
	if (ret->flow == FLOW_CALL && state->ra == RA_IN_REG)
		lose_track(state);
	/* call to the next instruction: a way to read the pc, with a pop behind it */
	if (ret->flow == FLOW_CALL && insn.imm == 0 && state->kind == SCAN_FOLLOWED)
		sp_move(state, 8);
	return true;
}

/* endbr64; push; sub from %rsp */
static bool prologue(const uint8_t *p, size_t left, uint64_t addr)
{
	if (left < 4 || addr % 16)
		return false;
	if (p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa)
		return true;
	if (p[0] == 0x48 && (p[1] == 0x83 || p[1] == 0x81) && p[2] == 0xec)
		return true;
	return (p[0] & 0xf8) == 0x50 || (p[0] == 0x41 && (p[1] & 0xf8) == 0x50);
}

/* mov $15,%rax or %eax; syscall */
static size_t trampoline(const uint8_t *p, size_t left)
{
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t narrow[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	if (left >= sizeof(wide) && !memcmp(p, wide, sizeof(wide)))
		return sizeof(wide);
	if (left >= sizeof(narrow) && !memcmp(p, narrow, sizeof(narrow)))
		return sizeof(narrow);
	return 0;
}

void scan_arch_x86(const struct cfi_arch *cfi, struct scan_arch *ret)
{
	*ret = (struct scan_arch){
		.cfi = cfi,
		.entry = { .sp_off = 8, .sp_known = 1, .ra = RA_AT_CFA, .ra_off = -1 },
		.step = step,
		.prologue = prologue,
		.trampoline = trampoline,
		/* rsp is at the ucontext, whose general registers begin with r8 at 40 */
		.signal = { .cfa = CFA_SIGNAL, .cfa_reg = X86_RSP, .cfa_off = 40 },
		.min_insn = 1,
	};
}
