// SPDX-License-Identifier: Apache-2.0
/*
 * The interpreter of call frame instructions. It keeps its state in the shape of an unwind rule
 * from the start, so that a row costs no translation; the few rules that do not fit are marked in
 * `odd` and translated by cfi_row_rule_odd().
 *
 * Read first: struct cfi_state in cfi.h.
 */
#include "dwarf/cfi_internal.h"

#include <errno.h>
#include <limits.h>

#include "abi/sample.h"
#include "dwarf/cfi_expr.h"
#include "dwarf/cfi_read.h"

/* Opcodes; the first three have an operand in their low six bits. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_GNU_WINDOW_SAVE = 0x2d, /* on aarch64: negate_ra_state */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

static inline uint8_t column_of(const struct cfi_rows *rows, uint64_t reg)
{
	return reg < CFI_REGS_MAX ? rows->arch->columns[reg] : CFI_COLUMN_IGNORED;
}

static inline int16_t words_or_lost(int64_t off)
{
	int64_t words = off / 8;

	/* A slot of 0 means "same", and nothing is ever saved at the CFA itself. */
	if (off % 8 || words == 0 || words <= INT16_MIN || words >= SLOT_LOST)
		return SLOT_LOST;
	return words;
}

/* --- the state's fields ---------------------------------------------------------------------- */

_Static_assert(offsetof(struct unwind_rule, cfa_off) == 4 &&
		       offsetof(struct unwind_rule, ra_off) == 8 &&
		       offsetof(struct unwind_rule, slot_off) == 10,
	       "the places of the fields in the words below");

/* Halfword `n` of the words behind the first: 0 is ra_off, 1 + i is slot i. */
static inline void put_half(struct cfi_state *s, unsigned int n, int16_t value)
{
	uint64_t *word = &s->u.words[1 + n / 4];
	unsigned int shift = n % 4 * 16;

	*word = (*word & ~(0xffffull << shift)) | (uint64_t)(uint16_t)value << shift;
}

static inline void put_slot(struct cfi_state *s, uint8_t column, int16_t value)
{
	put_half(s, 1 + column, value);
	s->odd &= ~(1u << column);
}

static inline void put_ra(struct cfi_state *s, enum unwind_ra ra, int16_t off)
{
	s->u.words[0] = (s->u.words[0] & ~0xff0000ull) | (uint64_t)ra << 16;
	put_half(s, 0, off);
	s->odd &= ~(CFI_ODD_RA_UNDEFINED | CFI_ODD_RA_UNSUPPORTED | 1u << CFI_COLUMN_RA);
}

static inline void put_cfa_off(struct cfi_state *s, int64_t off)
{
	s->u.words[0] = (uint32_t)s->u.words[0] | (uint64_t)off << 32;
}

static inline void put_cfa(struct cfi_state *s, uint8_t reg, int64_t off)
{
	s->u.words[0] = (s->u.words[0] & 0xffff0000) | (uint64_t)off << 32 | reg << 8 | CFA_REG;
}

static void set_ra_offset(struct cfi_state *s, int64_t off)
{
	int16_t words = words_or_lost(off);

	put_ra(s, RA_AT_CFA, words);
	if (words == SLOT_LOST)
		s->odd |= CFI_ODD_RA_UNSUPPORTED;
}

static void set_ra_register(struct cfi_state *s, const struct cfi_arch *arch, uint64_t reg)
{
	put_ra(s, RA_IN_REG, reg < arch->nr_regs ? reg : 0);
	if (reg >= arch->nr_regs)
		s->odd |= CFI_ODD_RA_UNSUPPORTED;
}

/* --- register rules -------------------------------------------------------------------------- */

/* The register is saved at CFA + off. */
static inline void set_offset(struct cfi_rows *rows, uint64_t reg, int64_t off)
{
	struct cfi_state *s = &rows->state;
	uint8_t column = column_of(rows, reg);

	if (column < UNWIND_SLOTS) {
		put_slot(s, column, words_or_lost(off));
	} else if (column >= CFI_COLUMN_UNTRACKED) {
		s->saved_untracked |= 1u << (column - CFI_COLUMN_UNTRACKED);
	} else if (column == CFI_COLUMN_RA) {
		set_ra_offset(s, off);
	} else if (column == CFI_COLUMN_SP) {
		s->odd |= CFI_ODD_SP_UNSUPPORTED;
	}
}

/* The register's value is gone, or is something that a rule can't say. */
static void set_lost(struct cfi_rows *rows, uint64_t reg, unsigned int odd_ra)
{
	struct cfi_state *s = &rows->state;
	uint8_t column = column_of(rows, reg);

	if (column < UNWIND_SLOTS) {
		put_slot(s, column, SLOT_LOST);
	} else if (column >= CFI_COLUMN_UNTRACKED) {
		s->saved_untracked |= 1u << (column - CFI_COLUMN_UNTRACKED);
	} else if (column == CFI_COLUMN_RA) {
		s->odd &= ~(CFI_ODD_RA_UNDEFINED | CFI_ODD_RA_UNSUPPORTED | 1u << CFI_COLUMN_RA);
		s->odd |= odd_ra;
	} else if (column == CFI_COLUMN_SP) {
		s->odd |= CFI_ODD_SP_UNSUPPORTED;
	}
}

static void set_same(struct cfi_rows *rows, uint64_t reg)
{
	struct cfi_state *s = &rows->state;
	uint8_t column = column_of(rows, reg);

	if (column < UNWIND_SLOTS) {
		put_slot(s, column, SLOT_SAME);
	} else if (column >= CFI_COLUMN_UNTRACKED) {
		s->saved_untracked &= ~(1u << (column - CFI_COLUMN_UNTRACKED));
	} else if (column == CFI_COLUMN_RA) {
		/* x86-64 has no register that would hold it: set_ra_register() knows */
		set_ra_register(s, rows->arch, rows->arch->ra_reg);
	} else if (column == CFI_COLUMN_SP) {
		s->odd &= ~CFI_ODD_SP_UNSUPPORTED;
	}
}

static void set_register(struct cfi_rows *rows, uint64_t reg, uint64_t in)
{
	if (reg == in)
		set_same(rows, reg);
	else if (column_of(rows, reg) == CFI_COLUMN_RA)
		set_ra_register(&rows->state, rows->arch, in);
	else
		set_lost(rows, reg, 0);
}

static void set_expression(struct cfi_rows *rows, uint64_t reg, uint32_t expr)
{
	struct cfi_state *s = &rows->state;
	uint8_t column = column_of(rows, reg);

	if (column < UNWIND_SLOTS || column == CFI_COLUMN_RA) {
		s->expr[column] = expr;
		s->odd |= 1u << column;
		if (column == CFI_COLUMN_RA)
			s->odd &= ~(CFI_ODD_RA_UNDEFINED | CFI_ODD_RA_UNSUPPORTED);
	} else {
		set_lost(rows, reg, 0);
	}
}

/* The register *is* CFA + off. */
static void set_val_offset(struct cfi_rows *rows, uint64_t reg, int64_t off)
{
	if (column_of(rows, reg) == CFI_COLUMN_SP && off == 0)
		rows->state.odd &= ~CFI_ODD_SP_UNSUPPORTED;
	else
		set_lost(rows, reg, CFI_ODD_RA_UNSUPPORTED);
}

static void restore_register(struct cfi_rows *rows, uint64_t reg)
{
	const struct cfi_state *initial = &rows->cie->initial;
	struct cfi_state *s = &rows->state;
	uint8_t column = column_of(rows, reg);
	unsigned int bits = 0;

	if (column < UNWIND_SLOTS) {
		put_slot(s, column, initial->u.rule.slot_off[column]);
		s->expr[column] = initial->expr[column];
		bits = 1u << column;
	} else if (column >= CFI_COLUMN_UNTRACKED) {
		bits = 1u << (column - CFI_COLUMN_UNTRACKED);
		s->saved_untracked =
			(s->saved_untracked & ~bits) | (initial->saved_untracked & bits);
		return;
	} else if (column == CFI_COLUMN_RA) {
		put_ra(s, initial->u.rule.ra, initial->u.rule.ra_off);
		s->expr[column] = initial->expr[column];
		bits = CFI_ODD_RA_UNDEFINED | CFI_ODD_RA_UNSUPPORTED | 1u << CFI_COLUMN_RA;
	} else if (column == CFI_COLUMN_SP) {
		bits = CFI_ODD_SP_UNSUPPORTED;
	}
	s->odd = (s->odd & ~bits) | (initial->odd & bits);
}

static inline int set_cfa(struct cfi_rows *rows, uint64_t reg, int64_t off)
{
	struct cfi_state *s = &rows->state;

	if (off < INT32_MIN || off > INT32_MAX)
		return -EINVAL;
	s->odd &= ~(CFI_ODD_CFA_EXPR | CFI_ODD_CFA_UNSUPPORTED);
	if (reg >= rows->arch->nr_regs)
		s->odd |= CFI_ODD_CFA_UNSUPPORTED;
	put_cfa(s, reg, off);
	return 0;
}

static int set_cfa_offset(struct cfi_rows *rows, int64_t off)
{
	if (off < INT32_MIN || off > INT32_MAX || (rows->state.odd & CFI_ODD_CFA_EXPR))
		return -EINVAL;
	put_cfa_off(&rows->state, off);
	return 0;
}

static int set_cfa_register(struct cfi_rows *rows, uint64_t reg)
{
	if (rows->state.odd & CFI_ODD_CFA_EXPR)
		return -EINVAL;
	return set_cfa(rows, reg, (int64_t)rows->state.u.words[0] >> 32);
}

/* Steps over a block; its offset in the section, where its length stands. */
static uint32_t take_block(struct cfi_rows *rows, struct cfi_reader *r)
{
	uint32_t at = r->pos - rows->section->data;

	cfi_take(r, cfi_uleb(r));
	return at;
}

static int remember(struct cfi_rows *rows)
{
	if (rows->nr_remembered == CFI_REMEMBER_MAX)
		return -EINVAL;
	rows->remembered[rows->nr_remembered++] = rows->state;
	return 0;
}

static int restore(struct cfi_rows *rows)
{
	if (!rows->nr_remembered)
		return -EINVAL;
	rows->state = rows->remembered[--rows->nr_remembered];
	return 0;
}

/* Without overflow: the operands are the file's. */
static int64_t factored(int64_t n, int64_t factor)
{
	int64_t v;

	return __builtin_mul_overflow(n, factor, &v) ? INT64_MAX : v;
}

static int run_rare_register(struct cfi_rows *rows, struct cfi_reader *r, uint8_t op)
{
	int64_t align = rows->cie->data_align;
	uint64_t reg = cfi_uleb(r);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set_offset(rows, reg, factored(cfi_uleb(r), align));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		set_offset(rows, reg, factored(cfi_sleb(r), align));
		break;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		set_offset(rows, reg, factored(factored(cfi_uleb(r), -1), align));
		break;
	case CFA_VAL_OFFSET:
		set_val_offset(rows, reg, factored(cfi_uleb(r), align));
		break;
	case CFA_VAL_OFFSET_SF:
		set_val_offset(rows, reg, factored(cfi_sleb(r), align));
		break;
	case CFA_RESTORE_EXTENDED:
		restore_register(rows, reg);
		break;
	case CFA_UNDEFINED:
		set_lost(rows, reg, CFI_ODD_RA_UNDEFINED);
		break;
	case CFA_SAME_VALUE:
		set_same(rows, reg);
		break;
	case CFA_REGISTER:
		set_register(rows, reg, cfi_uleb(r));
		break;
	case CFA_EXPRESSION:
		set_expression(rows, reg, take_block(rows, r));
		break;
	case CFA_VAL_EXPRESSION:
		set_lost(rows, reg, CFI_ODD_RA_UNSUPPORTED);
		take_block(rows, r);
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

static int run_rare(struct cfi_rows *rows, struct cfi_reader *r, uint8_t op)
{
	int64_t align = rows->cie->data_align;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA_SF:
		reg = cfi_uleb(r);
		return set_cfa(rows, reg, factored(cfi_sleb(r), align));
	case CFA_DEF_CFA_OFFSET_SF:
		return set_cfa_offset(rows, factored(cfi_sleb(r), align));
	case CFA_DEF_CFA_EXPRESSION:
		rows->state.expr[CFI_COLUMN_CFA] = take_block(rows, r);
		rows->state.odd &= ~CFI_ODD_CFA_UNSUPPORTED;
		rows->state.odd |= CFI_ODD_CFA_EXPR;
		return 0;
	case CFA_GNU_ARGS_SIZE:
		cfi_uleb(r);
		return 0;
	case CFA_GNU_WINDOW_SAVE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		if (rows->arch->ra_reg != A64_LR)
			return -EINVAL;
		rows->state.u.words[0] ^= RULE_RA_SIGNED << 24;
		return 0;
	default:
		return run_rare_register(rows, r, op);
	}
}

static int set_loc(struct cfi_rows *rows, struct cfi_reader *r, uint64_t *ret)
{
	const struct cfi_section *s = rows->section;

	if (!s->eh_frame) {
		*ret = cfi_fixed(r, rows->cie->address_size);
		return 0;
	}
	return cfi_read_encoded(r, rows->cie->encoding, s->addr + (r->pos - s->data), s, ret);
}

/* The address that an advance opcode moves to. */
static int advance(struct cfi_rows *rows, struct cfi_reader *r, uint8_t op, uint64_t *ret)
{
	uint64_t delta;

	switch (op) {
	case CFA_SET_LOC:
		return set_loc(rows, r, ret);
	case CFA_ADVANCE_LOC1:
		delta = cfi_u8(r);
		break;
	case CFA_ADVANCE_LOC2:
		delta = cfi_u16(r);
		break;
	case CFA_ADVANCE_LOC4:
		delta = cfi_u32(r);
		break;
	case CFA_MIPS_ADVANCE_LOC8:
		delta = cfi_u64(r);
		break;
	default:
		delta = op & 0x3f;
		break;
	}
	if (__builtin_mul_overflow(delta, rows->cie->code_align, &delta) ||
	    delta > UINT64_MAX - rows->start)
		return -EINVAL;
	*ret = rows->start + delta;
	return 0;
}

static inline bool is_advance(uint8_t op)
{
	return (op & 0xc0) == CFA_ADVANCE_LOC || (op >= CFA_SET_LOC && op <= CFA_ADVANCE_LOC4) ||
	       op == CFA_MIPS_ADVANCE_LOC8;
}

/* One instruction that is no advance: the frequent ones here, the others out of line. */
static inline int run(struct cfi_rows *rows, struct cfi_reader *r, uint8_t op)
{
	uint64_t reg;

	switch (op & 0xc0) {
	case CFA_OFFSET:
		set_offset(rows, op & 0x3f, factored(cfi_uleb(r), rows->cie->data_align));
		return 0;
	case CFA_RESTORE:
		restore_register(rows, op & 0x3f);
		return 0;
	}
	switch (op) {
	case CFA_NOP:
		return 0;
	case CFA_DEF_CFA_OFFSET:
		return set_cfa_offset(rows, cfi_uleb(r));
	case CFA_DEF_CFA_REGISTER:
		return set_cfa_register(rows, cfi_uleb(r));
	case CFA_DEF_CFA:
		reg = cfi_uleb(r);
		return set_cfa(rows, reg, cfi_uleb(r));
	case CFA_REMEMBER_STATE:
		return remember(rows);
	case CFA_RESTORE_STATE:
		return restore(rows);
	default:
		return run_rare(rows, r, op);
	}
}

int cfi_rows_next(struct cfi_rows *rows)
{
	struct cfi_reader r = { rows->pos, rows->stop, false };
	uint64_t to;
	uint8_t op;
	int res;

	rows->start = rows->next;
	if (rows->start >= rows->limit)
		return 0;
	while (r.pos < r.end) {
		op = *r.pos++;
		if (is_advance(op)) {
			res = advance(rows, &r, op, &to);
			/* Going back is malformed, beyond the end is a writer's slip. */
			if (res < 0 || r.failed || to < rows->start)
				return -EINVAL;
			if (to == rows->start)
				continue;
			rows->pos = r.pos;
			rows->end = to < rows->limit ? to : rows->limit;
			rows->next = to;
			return 1;
		}
		res = run(rows, &r, op);
		if (res < 0 || r.failed)
			return -EINVAL;
	}
	rows->pos = r.pos;
	rows->next = rows->end = rows->limit;
	return 1;
}

void cfi_rows_begin(struct cfi_rows *rows, const struct cfi_arch *arch,
		    const struct cfi_section *section, const struct cfi_cie *cie,
		    const struct cfi_fde *fde)
{
	rows->arch = arch;
	rows->section = section;
	rows->cie = cie;
	rows->next = fde->start;
	rows->limit = fde->end;
	rows->pos = section->data + fde->instructions;
	rows->stop = section->data + fde->instructions_end;
	rows->nr_remembered = 0;
	rows->state = cie->initial;
}

/* The state before any instruction: the architecture's convention. */
static void init_state(const struct cfi_arch *arch, struct cfi_state *s)
{
	*s = (struct cfi_state){ .odd = CFI_ODD_CFA_UNSUPPORTED };
	set_ra_register(s, arch, arch->ra_reg); /* LR; x86-64: unsupported until it is given */
}

int cfi_run_initial(const struct cfi_section *section, const struct cfi_arch *arch,
		    struct cfi_cie *cie)
{
	struct cfi_reader r = { section->data + cie->instructions, section->data + cie->end,
				false };
	struct cfi_rows rows;

	init_state(arch, &cie->initial);
	/* Not all of it: `remembered` is large, and empty. */
	rows.arch = arch;
	rows.section = section;
	rows.cie = cie;
	rows.nr_remembered = 0;
	rows.state = cie->initial;
	while (r.pos < r.end) {
		uint8_t op = *r.pos++;

		if (is_advance(op) || run(&rows, &r, op) < 0 || r.failed)
			return -EINVAL;
	}
	cie->initial = rows.state;
	return 0;
}

static int eval(const struct cfi_rows *rows, enum cfi_column column, struct cfi_value *ret)
{
	const struct cfi_section *s = rows->section;
	struct cfi_reader r = { s->data + rows->state.expr[column], s->data + s->size, false };
	uint64_t size = cfi_uleb(&r);
	const uint8_t *p = cfi_take(&r, size);
	uint32_t pc_reg = rows->arch->ra_reg == X86_RA ? X86_RA : CFI_REG_CFA + 1;

	return p ? cfi_expr_eval(p, size, pc_reg, column != CFI_COLUMN_CFA, ret) : -EINVAL;
}

static bool fits16(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

static int cfa_from_value(const struct cfi_arch *arch, const struct cfi_value *v,
			  struct unwind_rule *rule)
{
	if (v->kind == CFI_VALUE_CONST || v->reg >= arch->nr_regs)
		return -ENOTSUP;
	rule->cfa_reg = v->reg;
	switch (v->kind) {
	case CFI_VALUE_REG:
		if (v->index)
			return -ENOTSUP;
		rule->cfa = CFA_REG;
		break;
	case CFI_VALUE_DEREF:
		if (v->index >= arch->nr_regs)
			return -ENOTSUP;
		rule->cfa = CFA_DEREF;
		rule->flags |= (__u8)(v->index << RULE_INDEX_SHIFT);
		break;
	case CFI_VALUE_PLT:
		if (!fits16(v->off) || v->off2 < INT32_MIN || v->off2 > INT32_MAX)
			return -ENOTSUP;
		rule->cfa = CFA_PLT;
		rule->cfa_off = v->off2;
		rule->slot_off[UNWIND_CFA_OFF2_SLOT] = v->off;
		return 0;
	default:
		return -ENOTSUP;
	}
	if (v->off < INT32_MIN || v->off > INT32_MAX || !fits16(v->off2))
		return -ENOTSUP;
	rule->cfa_off = v->off;
	if (rule->cfa == CFA_DEREF)
		rule->slot_off[UNWIND_CFA_OFF2_SLOT] = v->off2;
	return 0;
}

/*
 * Where a register is saved that has an expression for it: relative to the CFA if the CFA hangs on
 * the same register, or relative to the frame pointer.
 */
static int16_t slot_from_value(const struct cfi_arch *arch, const struct unwind_rule *rule,
			       const struct cfi_value *v, bool *at_fp)
{
	*at_fp = false;
	if (v->kind != CFI_VALUE_REG || v->index || v->off < INT32_MIN || v->off > INT32_MAX)
		return SLOT_LOST;
	if (v->reg == CFI_REG_CFA)
		return words_or_lost(v->off);
	if (rule->cfa == CFA_REG && v->reg == rule->cfa_reg)
		return words_or_lost(v->off - rule->cfa_off);
	if (v->reg == arch->fp_reg) {
		*at_fp = true;
		return words_or_lost(v->off - UNWIND_FP_SLOTS_BIAS);
	}
	return SLOT_LOST;
}

/*
 * A rule's slots are all relative to the same thing. The frame pointer decides which: it is what
 * most callers need.
 */
static void slots_from_values(const struct cfi_rows *rows, struct unwind_rule *rule)
{
	bool at_fp[UNWIND_SLOTS] = { 0 }, is_fp = false, any_cfa = false;
	struct cfi_value v;

	for (int i = 0; i < UNWIND_SLOTS; i++) {
		if (rows->state.odd & 1u << i) {
			rule->slot_off[i] = SLOT_LOST;
			if (eval(rows, i, &v) == 0)
				rule->slot_off[i] =
					slot_from_value(rows->arch, rule, &v, &at_fp[i]);
		}
		if (rule->slot_off[i] != SLOT_SAME && rule->slot_off[i] != SLOT_LOST) {
			any_cfa |= !at_fp[i];
			is_fp |= at_fp[i];
		}
	}
	if (!is_fp)
		return;
	is_fp = at_fp[0] || rule->slot_off[0] == SLOT_SAME || rule->slot_off[0] == SLOT_LOST ||
		!any_cfa;
	if (is_fp)
		rule->flags |= RULE_SLOTS_AT_FP;
	for (int i = 0; i < UNWIND_SLOTS; i++)
		if (at_fp[i] != is_fp && rule->slot_off[i] != SLOT_SAME)
			rule->slot_off[i] = SLOT_LOST;
}

static int odd_rule(const struct cfi_rows *rows, struct unwind_rule *rule)
{
	const struct cfi_state *s = &rows->state;
	struct cfi_value v;
	int16_t off2;
	int r;

	if (s->odd & (CFI_ODD_RA_UNSUPPORTED | CFI_ODD_SP_UNSUPPORTED | CFI_ODD_CFA_UNSUPPORTED))
		return -ENOTSUP;
	if (s->odd & CFI_ODD_CFA_EXPR) {
		r = eval(rows, CFI_COLUMN_CFA, &v);
		if (r < 0)
			return r;
		/* The second offset takes the last slot's place. */
		rule->slot_off[UNWIND_CFA_OFF2_SLOT] = SLOT_SAME;
		r = cfa_from_value(rows->arch, &v, rule);
		if (r < 0)
			return r;
	}
	if (s->odd & 1u << CFI_COLUMN_RA) {
		bool at_fp;

		r = eval(rows, CFI_COLUMN_RA, &v);
		if (r < 0)
			return r;
		rule->ra = RA_AT_CFA;
		rule->ra_off = slot_from_value(rows->arch, rule, &v, &at_fp);
		if (at_fp || rule->ra_off == SLOT_LOST)
			return -ENOTSUP;
	}
	off2 = rule->slot_off[UNWIND_CFA_OFF2_SLOT];
	if (rule->cfa != CFA_REG)
		rule->slot_off[UNWIND_CFA_OFF2_SLOT] = SLOT_SAME;
	slots_from_values(rows, rule);
	if (rule->cfa != CFA_REG)
		rule->slot_off[UNWIND_CFA_OFF2_SLOT] = off2;
	return 0;
}

int cfi_row_rule_odd(const struct cfi_rows *rows, union cfi_rule *ret)
{
	struct unwind_rule rule = rows->state.u.rule;

	/* The last slot is the second offset's if there is one: no loss there. */
	if (rows->state.saved_untracked)
		for (int i = 0; i < UNWIND_CFA_OFF2_SLOT; i++)
			rule.slot_off[i] |= rows->arch->lost.rule.slot_off[i];
	if (rows->state.odd & CFI_ODD_RA_UNDEFINED) {
		ret->rule = (struct unwind_rule){ .cfa = CFA_END };
		return 0;
	}
	if (odd_rule(rows, &rule) < 0) {
		ret->rule = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_BAD_CFI };
		return -ENOTSUP;
	}
	ret->rule = rule;
	return 0;
}

int cfi_row_signal(const struct cfi_rows *rows, union cfi_rule *ret)
{
	enum { GREG_RBP = 10 * 8, GREG_RIP = 16 * 8 };
	const struct cfi_state *s = &rows->state;
	struct cfi_value ra, fp;

	if (rows->arch->ra_reg != X86_RA)
		return -ENOENT;
	if (!(s->odd & 1u << CFI_COLUMN_RA) || !(s->odd & 1u << 0))
		return -ENOENT;
	if (eval(rows, CFI_COLUMN_RA, &ra) < 0 || eval(rows, 0, &fp) < 0)
		return -ENOENT;
	if (ra.kind != CFI_VALUE_REG || fp.kind != CFI_VALUE_REG || ra.reg != fp.reg ||
	    ra.reg != X86_RSP || ra.off - GREG_RIP != fp.off - GREG_RBP || ra.off < GREG_RIP ||
	    ra.off > INT16_MAX)
		return -ENOENT;
	ret->rule = (struct unwind_rule){ .cfa = CFA_SIGNAL,
					  .cfa_reg = ra.reg,
					  .cfa_off = ra.off - GREG_RIP };
	return 0;
}
