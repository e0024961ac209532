// SPDX-License-Identifier: Apache-2.0
#include "dwarf/cfi_expr.h"

#include <errno.h>
#include <stdbool.h>

#include "dwarf/cfi_read.h"

enum {
	EXPR_STACK_MAX = 16,
	EXPR_OPS_MAX = 256, /* no branches are followed, so this bounds the work only */
};

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_SWAP = 0x16,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

struct expr {
	struct cfi_reader r;
	uint32_t pc_reg;
	struct cfi_value stack[EXPR_STACK_MAX];
	unsigned int depth;
};

static int push(struct expr *e, struct cfi_value v)
{
	if (e->depth == EXPR_STACK_MAX)
		return -ENOTSUP;
	e->stack[e->depth++] = v;
	return 0;
}

static int push_const(struct expr *e, int64_t v)
{
	return push(e, (struct cfi_value){ .kind = CFI_VALUE_CONST, .off = v });
}

static int push_reg(struct expr *e, uint64_t reg)
{
	int64_t off = cfi_sleb(&e->r);

	if (reg >= CFI_REG_CFA)
		return -ENOTSUP;
	return push(e, (struct cfi_value){ .kind = CFI_VALUE_REG, .reg = reg, .off = off });
}

/* Two's complement without the undefined overflow of signed types. */
static int64_t wrap_add(int64_t a, int64_t b)
{
	return (uint64_t)a + (uint64_t)b;
}

static int add(struct cfi_value a, struct cfi_value b, struct cfi_value *ret)
{
	struct cfi_value t;

	if (a.kind == CFI_VALUE_CONST ||
	    ((a.kind == CFI_VALUE_PC_GE_X8 || a.kind == CFI_VALUE_REG_X8) &&
	     b.kind == CFI_VALUE_REG)) {
		t = a;
		a = b;
		b = t;
	}
	if (b.kind == CFI_VALUE_CONST) {
		if (a.kind == CFI_VALUE_REG || a.kind == CFI_VALUE_REG_X8 ||
		    a.kind == CFI_VALUE_CONST)
			a.off = wrap_add(a.off, b.off);
		else if (a.kind == CFI_VALUE_DEREF || a.kind == CFI_VALUE_PLT)
			a.off2 = wrap_add(a.off2, b.off);
		else
			return -ENOTSUP;
		*ret = a;
		return 0;
	}
	if (a.kind == CFI_VALUE_REG && b.kind == CFI_VALUE_PC_GE_X8) {
		if (a.index)
			return -ENOTSUP;
		*ret = (struct cfi_value){
			.kind = CFI_VALUE_PLT, .reg = a.reg, .off = b.off, .off2 = a.off
		};
		return 0;
	}
	if (a.kind == CFI_VALUE_REG && b.kind == CFI_VALUE_REG_X8 && !a.index) {
		a.index = b.reg;
		a.off = wrap_add(a.off, b.off);
		*ret = a;
		return 0;
	}
	return -ENOTSUP;
}

static int shift_left(struct cfi_value a, uint64_t n, struct cfi_value *ret)
{
	if (a.kind == CFI_VALUE_CONST && n < 64)
		a.off = (uint64_t)a.off << n;
	else if (a.kind == CFI_VALUE_PC_GE && n == 3)
		a.kind = CFI_VALUE_PC_GE_X8;
	else if (a.kind == CFI_VALUE_REG && n == 3 && a.reg && a.reg < CFI_REG_CFA && !a.index)
		a = (struct cfi_value){ .kind = CFI_VALUE_REG_X8,
					.reg = a.reg,
					.off = (uint64_t)a.off << 3 };
	else
		return -ENOTSUP;
	*ret = a;
	return 0;
}

static int binary_const(uint8_t op, int64_t a, int64_t b, struct cfi_value *ret)
{
	switch (op) {
	case OP_AND:
		ret->off = a & b;
		break;
	case OP_MUL:
		ret->off = (uint64_t)a * (uint64_t)b;
		break;
	case OP_GE:
		ret->off = a >= b;
		break;
	default:
		return -ENOTSUP;
	}
	ret->kind = CFI_VALUE_CONST;
	return 0;
}

static int binary(struct expr *e, uint8_t op)
{
	struct cfi_value a, b, *ret;

	if (e->depth < 2)
		return -EINVAL;
	b = e->stack[--e->depth];
	ret = &e->stack[e->depth - 1];
	a = *ret;
	if (op == OP_PLUS)
		return add(a, b, ret);
	if (b.kind != CFI_VALUE_CONST)
		return -ENOTSUP;
	if (op == OP_MINUS)
		return add(a, (struct cfi_value){ .off = wrap_add(~b.off, 1) }, ret);
	if (op == OP_SHL)
		return shift_left(a, b.off, ret);
	if (op == OP_MUL && b.off == 8 && a.kind != CFI_VALUE_CONST)
		return shift_left(a, 3, ret);
	if (a.kind == CFI_VALUE_CONST)
		return binary_const(op, a.off, b.off, ret);
	if (op == OP_AND && b.off == 15 && a.kind == CFI_VALUE_REG && a.reg == e->pc_reg &&
	    !a.off) {
		ret->kind = CFI_VALUE_PC_LOW;
		return 0;
	}
	if (op == OP_GE && a.kind == CFI_VALUE_PC_LOW) {
		*ret = (struct cfi_value){ .kind = CFI_VALUE_PC_GE, .off = b.off };
		return 0;
	}
	return -ENOTSUP;
}

static int unary(struct expr *e, uint8_t op)
{
	struct cfi_value *top;

	if (!e->depth)
		return -EINVAL;
	top = &e->stack[e->depth - 1];
	switch (op) {
	case OP_DEREF:
		if (top->kind != CFI_VALUE_REG)
			return -ENOTSUP;
		top->kind = CFI_VALUE_DEREF;
		top->off2 = 0;
		return 0;
	case OP_PLUS_UCONST:
		return add(*top, (struct cfi_value){ .off = cfi_uleb(&e->r) }, top);
	case OP_NEG:
		if (top->kind != CFI_VALUE_CONST)
			return -ENOTSUP;
		top->off = wrap_add(~top->off, 1);
		return 0;
	case OP_DUP:
		return push(e, *top);
	case OP_DROP:
		e->depth--;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int stack_op(struct expr *e, uint8_t op)
{
	struct cfi_value t;

	if (e->depth < 2)
		return -EINVAL;
	if (op == OP_OVER)
		return push(e, e->stack[e->depth - 2]);
	t = e->stack[e->depth - 1];
	e->stack[e->depth - 1] = e->stack[e->depth - 2];
	e->stack[e->depth - 2] = t;
	return 0;
}

static int step(struct expr *e, uint8_t op)
{
	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push_const(e, op - OP_LIT0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return push_reg(e, op - OP_BREG0);
	switch (op) {
	case OP_BREGX:
		return push_reg(e, cfi_uleb(&e->r));
	case OP_CONST1U:
		return push_const(e, cfi_u8(&e->r));
	case OP_CONST1S:
		return push_const(e, (int8_t)cfi_u8(&e->r));
	case OP_CONST2U:
		return push_const(e, cfi_u16(&e->r));
	case OP_CONST2S:
		return push_const(e, (int16_t)cfi_u16(&e->r));
	case OP_CONST4U:
		return push_const(e, cfi_u32(&e->r));
	case OP_CONST4S:
		return push_const(e, (int32_t)cfi_u32(&e->r));
	case OP_CONST8U:
	case OP_CONST8S:
	case OP_ADDR:
		return push_const(e, cfi_u64(&e->r));
	case OP_CONSTU:
		return push_const(e, cfi_uleb(&e->r));
	case OP_CONSTS:
		return push_const(e, cfi_sleb(&e->r));
	case OP_OVER:
	case OP_SWAP:
		return stack_op(e, op);
	case OP_AND:
	case OP_MINUS:
	case OP_MUL:
	case OP_PLUS:
	case OP_SHL:
	case OP_GE:
		return binary(e, op);
	case OP_NOP:
		return 0;
	default:
		return unary(e, op);
	}
}

int cfi_expr_eval(const uint8_t *data, size_t size, uint32_t pc_reg, int push_cfa,
		  struct cfi_value *ret)
{
	struct expr e = { .r = { data, data + size, false }, .pc_reg = pc_reg };
	unsigned int n;
	int r;

	if (push_cfa)
		push(&e, (struct cfi_value){ .kind = CFI_VALUE_REG, .reg = CFI_REG_CFA });
	for (n = 0; e.r.pos < e.r.end; n++) {
		if (n == EXPR_OPS_MAX)
			return -ENOTSUP;
		r = step(&e, cfi_u8(&e.r));
		if (e.r.failed)
			return -EINVAL;
		if (r < 0)
			return r;
	}
	if (!e.depth)
		return -EINVAL;
	*ret = e.stack[e.depth - 1];
	return 0;
}
