/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of aarch64's instructions. */
#pragma once

#include <stdint.h>

/* The `nr` bits of an instruction from bit `low` on. */
static inline int64_t a64_bits(uint32_t insn, unsigned int low, unsigned int nr)
{
	return insn >> low & ((1u << nr) - 1);
}

/* These bits as a signed number. */
static inline int64_t a64_signed_bits(uint32_t insn, unsigned int low, unsigned int nr)
{
	return (int64_t)((uint64_t)a64_bits(insn, low, nr) << (64 - nr)) >> (64 - nr);
}

/* Where b or bl, at `pc`, leads. */
static inline uint64_t a64_branch_target(uint32_t insn, uint64_t pc)
{
	return pc + 4 * (uint64_t)a64_signed_bits(insn, 0, 26);
}
