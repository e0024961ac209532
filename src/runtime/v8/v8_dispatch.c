// SPDX-License-Identifier: Apache-2.0
/*
 * Facts: V8's macro-assembler-{x64,arm64}.cc at 13.6 to 14.6 (LoadEntrypointFromJSDispatchTable,
 * LoadParameterCountFromJSDispatchTable).
 */
#include "runtime/v8/v8_dispatch.h"
#include "elf/a64_insn.h"

#include <elf.h>
#include <string.h>

enum {
	LOAD_SIZE = 7,	    /* bytes of an instruction of x86-64 */
	LOAD_TO_SHIFT = 32, /* from its end */
	ROOT = 26,
	INSN = 4, /* bytes of one of aarch64 */
};

/* mov N(%r13), %r10, and soon shr $S and shl $4 of what the function has. */
static uint16_t find_x86(const uint8_t *code, size_t size, uint16_t *ret_shift)
{
	static const uint8_t load[] = { 0x4d, 0x8b, 0x95 };

	for (size_t i = 0; i + LOAD_SIZE + LOAD_TO_SHIFT <= size; i++) {
		const uint8_t *behind = code + i + LOAD_SIZE;
		uint32_t offset;

		if (memcmp(code + i, load, sizeof(load)))
			continue;
		memcpy(&offset, code + i + sizeof(load), sizeof(offset));
		*ret_shift = 0;
		for (size_t k = 0; k + 3 <= LOAD_TO_SHIFT; k++) {
			if (!memcmp(behind + k, load, sizeof(load)))
				break; /* the next one */
			if (behind[k] == 0xc1 && behind[k + 1] >> 3 == 0x1d)
				*ret_shift = behind[k + 2]; /* shr */
			if (behind[k] == 0xc1 && behind[k + 1] >> 3 == 0x1c && behind[k + 2] == 4)
				return offset <= INT16_MAX ? (uint16_t)offset : 0;
		}
	}
	return 0;
}

/* ldr xT, [x26, #N]; lsr xE, xH, #S; add xT, xT, xE, lsl #4 */
static uint16_t find_a64(const uint8_t *code, size_t size, uint16_t *ret_shift)
{
	for (; size >= 3 * INSN; code += INSN, size -= INSN) {
		uint32_t insns[3], load, shift, add;

		memcpy(insns, code, sizeof(insns));
		load = insns[0];
		shift = insns[1];
		add = insns[2];
		if ((load & 0xffc003e0) != (0xf9400000 | ROOT << 5) ||
		    (shift & 0xffc0fc00) != 0xd340fc00 || (add & 0xffe0fc00) != 0x8b001000 ||
		    a64_bits(add, 0, 5) != a64_bits(load, 0, 5) ||
		    a64_bits(add, 5, 5) != a64_bits(load, 0, 5) ||
		    a64_bits(add, 16, 5) != a64_bits(shift, 0, 5) ||
		    8 * a64_bits(load, 10, 12) > INT16_MAX)
			continue;
		*ret_shift = (uint16_t)a64_bits(shift, 16, 6);
		return (uint16_t)(8 * a64_bits(load, 10, 12));
	}
	return 0;
}

uint16_t v8_find_dispatch(uint16_t machine, const uint8_t *code, size_t size, uint16_t *ret_shift)
{
	return machine == EM_X86_64 ? find_x86(code, size, ret_shift)
				    : find_a64(code, size, ret_shift);
}
