/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions of CFI, run on symbols instead of values: what occurs in practice comes out as
 * a register plus an offset, such a place's contents, or the PLT's condition on the pc.
 */
#pragma once

#include <stdint.h>
#include <stddef.h>

enum cfi_value_kind {
	CFI_VALUE_CONST,    /* off */
	CFI_VALUE_REG,	    /* reg + 8 * index + off */
	CFI_VALUE_REG_X8,   /* 8 * reg + off */
	CFI_VALUE_DEREF,    /* *(reg + 8 * index + off) + off2 */
	CFI_VALUE_PC_LOW,   /* pc & 15 */
	CFI_VALUE_PC_GE,    /* (pc & 15) >= off */
	CFI_VALUE_PC_GE_X8, /* ((pc & 15) >= off) * 8 */
	CFI_VALUE_PLT,	    /* reg + off2 + ((pc & 15) >= off) * 8 */
};

enum { CFI_REG_CFA = 0x100 }; /* the CFA as a register */

struct cfi_value {
	enum cfi_value_kind kind;
	uint32_t reg;
	int64_t off, off2;
	uint32_t index; /* a register, 0 for none (so register 0 is none) */
};

/*
 * `pc_reg` is the register number that means the pc (x86-64: 16). With `push_cfa` the CFA is on
 * the stack at first, as for register rules. 0, -EINVAL (malformed), -ENOTSUP (not expressible).
 */
int cfi_expr_eval(const uint8_t *data, size_t size, uint32_t pc_reg, int push_cfa,
		  struct cfi_value *ret);
