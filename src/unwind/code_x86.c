// SPDX-License-Identifier: Apache-2.0
/*
 * What x86-64 instructions do to the stack pointer, to the frame pointer and to the registers that
 * a function has to keep. See code_scan.h.
 */
#include "unwind/code_scan.h"
#include "elf/x86_insn.h"

#include <string.h>

enum {
	REALIGN_INSNS = 4, /* from keeping the stack pointer to realigning it */
	SWITCH_INSNS = 12, /* likewise, to loading it with another stack's */
};

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
	*s = (struct scan_state){ .kind = SCAN_UNKNOWN, .switched = s->switched };
}

static void sp_move(struct scan_state *s, int64_t by);

static void sp_unknown(struct scan_state *s)
{
	s->sp = SP_UNKNOWN;
	s->sp_off = 0;
	if (!s->has_old)
		s->old_off = 0;
	if (!s->fp_known && !s->has_old)
		lose_track(s);
}

static void old_forgotten(struct scan_state *s)
{
	s->has_old = 0;
	s->old_reg = 0;
	if (s->sp == SP_OLD_SAVED)
		return;
	s->old_off = 0;
	if (!s->sp && !s->fp_known)
		lose_track(s);
}

/* The stack pointer is CFA - off again. */
static void sp_restored(struct scan_state *s, int64_t off)
{
	s->sp = SP_KNOWN;
	s->sp_off = 0;
	s->switched = 0;
	old_forgotten(s);
	sp_move(s, off);
}

/* Where the old stack pointer is saved moves away, or is left. */
static void old_move(struct scan_state *s, int64_t by)
{
	if (by > 1 << 30 || by < -(1 << 30) || s->sp_off + by < 0 || s->sp_off + by > 1 << 30)
		sp_unknown(s);
	else
		s->sp_off += by;
}

static void sp_move(struct scan_state *s, int64_t by)
{
	if (s->sp == SP_OLD_SAVED)
		old_move(s, by);
	if (s->sp != SP_KNOWN)
		return;
	/* Nobody has gigabytes on the stack; above the CFA is the caller's, and nobody goes back
	 * over his return address. */
	if (by > 1 << 30 || by < -(1 << 30) || s->sp_off + by < 0 || s->sp_off + by > 1 << 30 ||
	    (s->ra == RA_AT_CFA && s->sp_off + by < -8 * s->ra_off))
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
		if (!s->sp && !s->has_old)
			lose_track(s);
	}
	if (s->has_old && reg == s->old_reg)
		old_forgotten(s);
	if (slot >= 0 && s->slots[slot] == SLOT_SAME)
		s->slots[slot] = SLOT_LOST;
}

static void save_at(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg, int64_t off)
{
	int slot = slot_of(cfi, reg);

	if (slot >= 0 && s->slots[slot] == SLOT_SAME && off < 0 && off % 8 == 0 &&
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

/* The old stack pointer is saved at `off` above the stack pointer. */
static void old_saved(struct scan_state *s, int64_t off)
{
	if (off < 0 || off > 1 << 30 || s->old_off > INT16_MAX || s->old_off < INT16_MIN)
		return;
	s->sp = SP_OLD_SAVED;
	s->sp_off = (int32_t)off;
}

/* A register gets the old stack pointer, or what the stack pointer is as long as it is known. */
static void old_in(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg, int32_t off)
{
	clobber(cfi, s, reg);
	if (s->kind != SCAN_FOLLOWED)
		return;
	s->has_old = 1;
	s->old_reg = reg;
	s->old_off = off;
}

/* A register is loaded from where the old stack pointer is saved. */
static void old_loaded(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg)
{
	if (reg == X86_RSP)
		sp_restored(s, s->old_off);
	else
		old_in(cfi, s, reg, s->old_off);
}

/*
 * A second frame begins below the return address, which was put back below a first one: that one is
 * the caller's, who finds the registers as they are.
 */
static bool gives_frame(const struct scan_state *s, uint8_t pushed)
{
	return pushed == X86_RBP && s->fp_known && s->kind == SCAN_FOLLOWED && s->sp == SP_KNOWN &&
	       s->ra == RA_AT_CFA && s->ra_off < -1 && s->sp_off == -8 * s->ra_off;
}

static void give_frame(struct scan_state *s)
{
	for (size_t i = 0; i < UNWIND_SLOTS; i++)
		if (s->slots[i] != SLOT_LOST)
			s->slots[i] = SLOT_SAME;
	s->fp_known = 0;
	s->fp_off = 0;
	s->sp_off = 8;
	s->ra_off = -1;
}

static void push_reg(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg)
{
	if (gives_frame(s, reg))
		give_frame(s);
	sp_move(s, 8);
	if (s->sp == SP_KNOWN && s->ra == RA_IN_REG && s->ra_off == reg && s->sp_off % 8 == 0 &&
	    s->sp_off / 8 <= -INT16_MIN) {
		/* The return address goes back to its place, or below what was put there: V8's
		 * builtins add arguments of a C function. */
		s->ra = RA_AT_CFA;
		s->ra_off = (int16_t) - (s->sp_off / 8);
		return;
	}
	if (s->kind != SCAN_FOLLOWED)
		return;
	if (s->sp == SP_KNOWN)
		save_at(cfi, s, reg, -(int64_t)s->sp_off);
	else if (s->sp == SP_UNKNOWN && s->has_old && reg == s->old_reg)
		old_saved(s, 0);
}

static void pop_reg(const struct cfi_arch *cfi, struct scan_state *s, uint8_t reg)
{
	if (s->sp == SP_OLD_SAVED && s->sp_off == 0) {
		old_loaded(cfi, s, reg);
		sp_move(s, -8);
		return;
	}
	if (s->sp == SP_KNOWN && s->ra == RA_AT_CFA && s->sp_off == -8 * s->ra_off &&
	    reg != X86_RSP) {
		/* Hand-written code takes its return address along in a register. */
		clobber(cfi, s, reg);
		s->ra = RA_IN_REG;
		s->ra_off = reg;
		s->sp_off -= 8;
		return;
	}
	if (s->sp == SP_KNOWN)
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
	sp_restored(s, s->fp_off);
	if (s->kind == SCAN_FOLLOWED)
		pop_reg(cfi, s, X86_RBP);
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
		sp_restored(s, s->fp_off - (op == 0x8d ? (int64_t)insn->disp : 0));
		return true;
	}
	return false;
}

/* Makes rbp the frame pointer; likewise. */
static bool step_fp(const struct cfi_arch *cfi, struct scan_state *s, const struct x86_insn *insn)
{
	uint8_t op = insn->opcode;
	int32_t disp = 0;

	if (!(insn->rex & 8) || insn->map != X86_MAP_ONE_BYTE || s->sp != SP_KNOWN)
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
	if (is_memory(insn, X86_RSP) && s->sp == SP_KNOWN)
		off = (int64_t)insn->disp - s->sp_off;
	else if (is_memory(insn, X86_RBP) && s->fp_known)
		off = (int64_t)insn->disp - s->fp_off;
	else if (s->has_old && is_memory(insn, s->old_reg))
		off = (int64_t)insn->disp - s->old_off;
	else
		return false;
	if (insn->opcode == 0x89)
		save_at(cfi, s, insn->reg, off);
	else
		load_from(cfi, s, insn->reg, off);
	return true;
}

/* mov $0,%rbp, as no compiler but Go's assembler writes it. */
static bool zeroes_rbp_in_go(const struct x86_insn *insn)
{
	return insn->map == X86_MAP_ONE_BYTE && insn->opcode == 0xc7 && insn->rex & 8 &&
	       insn->mod == 3 && insn->rm == X86_RBP && !insn->imm;
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

/* Whether what comes next takes the stack pointer to where it is no known way from the CFA. */
static bool is_realigned_soon(const uint8_t *p, size_t left)
{
	struct x86_insn insn;
	struct code_insn flow;

	for (int n = 0; n < REALIGN_INSNS && code_insn_x86(p, left, 0, &insn, &flow); n++) {
		if (flow.flow != FLOW_NEXT)
			return false;
		if (insn.map == X86_MAP_ONE_BYTE && insn.rex & 8 && insn.mod == 3 &&
		    ((insn.rm == X86_RSP && (((insn.opcode & 0xfd) == 0x81 && insn.group == 4) ||
					     insn.opcode == 0x21 || insn.opcode == 0x29)) ||
		     (insn.reg == X86_RSP && (insn.opcode == 0x23 || insn.opcode == 0x2b))))
			return true;
		p += insn.len;
		left -= insn.len;
	}
	return false;
}

/* The stack pointer gets a value that was neither it nor the frame pointer. */
static bool loads_sp(const struct x86_insn *insn)
{
	return insn->rex & 8 && insn->map == X86_MAP_ONE_BYTE &&
	       ((insn->opcode == 0x8b && insn->reg == X86_RSP) ||
		(insn->opcode == 0x89 && insn->mod == 3 && insn->rm == X86_RSP));
}

/*
 * Whether what comes next loads the stack pointer with another stack's while `kept` has what it
 * was. Go's racecall() does that only if it is not on the thread's stack yet.
 */
static bool is_switched_soon(const uint8_t *p, size_t left, uint8_t kept)
{
	struct x86_insn insn;
	struct code_insn flow;

	for (int n = 0; n < SWITCH_INSNS && code_insn_x86(p, left, 0, &insn, &flow); n++) {
		if (loads_sp(&insn))
			return true;
		if ((flow.flow != FLOW_NEXT && flow.flow != FLOW_COND) ||
		    x86_insn_written(&insn) >> kept & 1)
			return false;
		p += insn.len;
		left -= insn.len;
	}
	return false;
}

/*
 * Functions that realign their stack, or go over to another one, take what the stack pointer was
 * along: in a register, or saved on the stack that they made. `next` is what follows.
 */
static bool step_old(const struct cfi_arch *cfi, struct scan_state *s, const struct x86_insn *insn,
		     const uint8_t *next, size_t left)
{
	uint8_t op = insn->opcode, to, from;
	int32_t disp = op == 0x8d ? insn->disp : 0;

	if (!(insn->rex & 8) || insn->map != X86_MAP_ONE_BYTE ||
	    (op != 0x89 && op != 0x8b && op != 0x8d))
		return false;
	if (insn->mod != 3 && op != 0x8d) {
		if (!is_memory(insn, X86_RSP))
			return false;
		if (op == 0x89 && !s->sp && s->has_old && insn->reg == s->old_reg)
			old_saved(s, insn->disp);
		else if (op == 0x8b && s->sp == SP_OLD_SAVED && insn->disp == s->sp_off)
			old_loaded(cfi, s, insn->reg);
		else
			return false;
		return true;
	}
	to = op == 0x89 ? insn->rm : insn->reg;
	from = op == 0x89 ? insn->reg : insn->rm;
	if (op == 0x8d && !is_memory(insn, from))
		return false;
	if (from == X86_RSP && s->sp == SP_KNOWN &&
	    (is_realigned_soon(next, left) ||
	     (slot_of(cfi, to) >= 0 && is_switched_soon(next, left, to)))) {
		old_in(cfi, s, to, s->sp_off - disp);
		return true;
	}
	if (!s->has_old || from != s->old_reg)
		return false;
	if (to == X86_RSP)
		sp_restored(s, s->old_off - disp);
	else if (op != 0x8d && slot_of(cfi, to) >= 0)
		old_in(cfi, s, to, s->old_off);
	else
		return false;
	return true;
}

/*
 * The stack pointer gets a value that is not known to be this stack's: another one's. A register's
 * behind a system call is a new thread's.
 */
static bool step_switch(struct scan_state *s, const struct x86_insn *insn)
{
	if (!loads_sp(insn))
		return false;
	if (s->in_kernel && insn->mod == 3) {
		*s = (struct scan_state){ .kind = SCAN_END };
		return true;
	}
	sp_unknown(s);
	s->switched = 1;
	return true;
}

static bool is_outermost(const struct scan_state *s, const struct x86_insn *insn)
{
	bool own = s->slots[0] == SLOT_SAME; /* nothing says that it will be restored */

	if (zeroes_rbp_in_go(insn))
		return own || s->switched;
	return zeroes_rbp(insn) && (s->switched || (own && s->kind == SCAN_FOLLOWED));
}

static void apply(const struct cfi_arch *cfi, struct scan_state *s, const struct x86_insn *insn,
		  const uint8_t *next, size_t left)
{
	uint32_t written;

	if (is_outermost(s, insn)) {
		/* The ABI's mark of the outermost frame: _start, clone's child; of a stack. */
		*s = (struct scan_state){ .kind = SCAN_END };
		return;
	}
	if (s->kind != SCAN_FOLLOWED)
		return;
	if (insn->map == X86_MAP_0F && insn->opcode == 0x05 && !insn->vex)
		s->in_kernel = 1;
	if (step_stack(cfi, s, insn) || step_sp(s, insn) || step_fp(cfi, s, insn) ||
	    step_old(cfi, s, insn, next, left) || step_save(cfi, s, insn) || step_switch(s, insn))
		return;
	written = x86_insn_written(insn);
	for (; written; written &= written - 1)
		clobber(cfi, s, (uint8_t)__builtin_ctz(written));
}

static bool writes(const uint8_t *p, const struct code_insn *code, uint8_t reg)
{
	struct x86_insn insn;

	return !x86_insn_decode(p, code->len, &insn) || x86_insn_written(&insn) >> reg & 1;
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
	apply(cfi, state, &insn, p + insn.len, left - insn.len);
	if (code_calls(ret))
		state->in_kernel = 0;
	if (code_calls(ret) && state->ra == RA_IN_REG)
		lose_track(state);
	if (code_calls(ret) && state->has_old && slot_of(cfi, state->old_reg) < 0)
		old_forgotten(state);
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

static bool frame(const uint8_t *p, size_t left)
{
	/* push %rbp; mov %rsp,%rbp, which has two encodings */
	static const uint8_t by_store[] = { 0x55, 0x48, 0x89, 0xe5 };
	static const uint8_t by_load[] = { 0x55, 0x48, 0x8b, 0xec };

	return left >= sizeof(by_store) &&
	       (!memcmp(p, by_store, sizeof(by_store)) || !memcmp(p, by_load, sizeof(by_load)));
}

/* musl's wrapper_cmp() (src/stdlib/qsort_nr.c at v1.2.3) is a jmp *%rdx and nothing else. */
static bool hands_on(const uint8_t *p, size_t left, uint64_t addr)
{
	enum { INSNS = 8 };
	/* What a call leaves in rdx is used, but not as a function that is gone over to. */
	const uint32_t result = 1u << X86_RDX;
	uint32_t arguments = 1u << X86_RDX | 1u << X86_RCX | 1u << X86_RSI | 1u << X86_RDI |
			     1u << X86_R8 | 1u << X86_R9;
	struct x86_insn insn;
	struct code_insn code;
	bool took = false;

	for (int i = 0; i < INSNS && code_insn_x86(p, left, addr, &insn, &code); i++) {
		bool jumps = code.flow == FLOW_INDIRECT;

		if (code.flow != FLOW_NEXT && !jumps)
			return false;
		if (insn.has_modrm && !insn.rip_relative && insn.rm < 32 &&
		    (insn.mod != 3 || jumps))
			took |= (arguments & ~(jumps && insn.mod == 3 ? 0 : result)) >> insn.rm & 1;
		if (jumps)
			return took;
		arguments &= ~x86_insn_written(&insn);
		p += code.len;
		left -= code.len;
		addr += code.len;
	}
	return false;
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

/*
 * What make_fcontext() of Boost.Context lets new stacks begin with (1.70 and later, src/asm/
 * make_x86_64_sysv_elf_gas.S), and PHP's fibers (zend_make_fcontext): push %rbp; jmp *%rbx, where
 * rbp is the address behind that jump, to which the stack's function returns; there, xor %rdi,%rdi;
 * call _exit; hlt. In builds with -fcf-protection both parts begin with endbr64.
 */
static size_t stack_begin(const uint8_t *p, size_t left)
{
	static const uint8_t mark[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t enter[] = { 0x55, 0xff, 0xe3 };
	static const uint8_t leave[] = { 0x48, 0x31, 0xff, 0xe8 };
	enum { CALL_LEFT = 4, HLT = 0xf4 };
	size_t at = 0;

	if (left >= sizeof(mark) && !memcmp(p, mark, sizeof(mark)))
		at += sizeof(mark);
	if (left - at < sizeof(enter) || memcmp(p + at, enter, sizeof(enter)) != 0)
		return 0;
	at += sizeof(enter);
	if (left - at >= sizeof(mark) && !memcmp(p + at, mark, sizeof(mark)))
		at += sizeof(mark);
	if (left - at < sizeof(leave) + CALL_LEFT + 1 ||
	    memcmp(p + at, leave, sizeof(leave)) != 0 || p[at + sizeof(leave) + CALL_LEFT] != HLT)
		return 0;
	return at + sizeof(leave) + CALL_LEFT + 1;
}

void scan_arch_x86(const struct cfi_arch *cfi, struct scan_arch *ret)
{
	*ret = (struct scan_arch){
		.cfi = cfi,
		.entry = { .sp_off = 8, .sp = SP_KNOWN, .ra = RA_AT_CFA, .ra_off = -1 },
		.step = step,
		.writes = writes,
		.prologue = prologue,
		.frame = frame,
		.hands_on = hands_on,
		.trampoline = trampoline,
		.stack_begin = stack_begin,
		/* rsp is at the ucontext, whose general registers begin with r8 at 40 */
		.signal = { .cfa = CFA_SIGNAL, .cfa_reg = X86_RSP, .cfa_off = 40 },
		.min_insn = 1,
	};
}
