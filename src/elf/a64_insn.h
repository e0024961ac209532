/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of aarch64's instructions. */
#pragma once

#include <stdint.h>

/* The `nr` bits of an instruction from bit `low` on. */
static inline int64_t a64_bits(uint32_t insn, unsigned int low, unsigned int nr)
{
	return insn >> low & ((1u << nr) - 1);
}
