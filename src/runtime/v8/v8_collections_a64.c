// SPDX-License-Identifier: Apache-2.0
/*
 * Facts: V8's macro-assembler-arm64.cc, builtins-arm64.cc (Generate_CEntry), heap.cc and api.cc at
 * 11.3 and 13.6, as GCC and clang make them.
 */
#include "runtime/v8/v8_collections.h"
#include "elf/a64_insn.h"

#include <stdbool.h>
#include <string.h>

enum {
	ROOT = 26,
	NEAR = 6, /* instructions between those that belong together */
	OFFSET_MAX = 1 << 20,
	REGS = 32,
};

static uint32_t insn_at(const uint8_t *code, size_t size, size_t at)
{
	uint32_t insn = 0;

	if (at < size / sizeof(insn))
		memcpy(&insn, code + at * sizeof(insn), sizeof(insn));
	return insn;
}

#define RD(insn)    a64_bits(insn, 0, 5)
#define RN(insn)    a64_bits(insn, 5, 5)
#define RM(insn)    a64_bits(insn, 16, 5)
#define IMM12(insn) a64_bits(insn, 10, 12)

/* Whether `insn`, ldr or str of 4 bytes (`kind`), has the register `reg`; *ret_place: base, offset.
 */
static bool accesses(uint32_t insn, uint32_t kind, unsigned int reg, uint32_t *ret_place)
{
	if ((insn & 0xffc00000) != kind || RD(insn) != reg)
		return false;
	*ret_place = insn >> 5 & 0x1ffff;
	return true;
}

/* What is the one place of 4 bytes, behind a register, to which 1 is added? 0: there is none. */
static int64_t find_counted(const uint8_t *code, size_t size)
{
	int64_t found = 0;

	for (size_t i = 0; i < size / 4; i++) {
		uint32_t add = insn_at(code, size, i), from = 0, to = 0;
		bool loads = false, stores = false;

		if ((add & 0xfffffc00) != 0x11000400) /* add w, w, #1 */
			continue;
		for (size_t k = 1; k <= NEAR; k++) {
			loads = loads || (i >= k && accesses(insn_at(code, size, i - k), 0xb9400000,
							     RN(add), &from));
			stores = stores ||
				 accesses(insn_at(code, size, i + k), 0xb9000000, RD(add), &to);
		}
		if (!loads || !stores || from != to)
			continue;
		if (found && found != 4 * (int64_t)(to >> 5))
			return 0;
		found = 4 * (int64_t)(to >> 5);
	}
	return found;
}

static bool is_call(uint32_t insn)
{
	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000;
}

/*
 * How far behind x0, its argument, the address is that a function gives the first one that it
 * calls: mov xA, #N; add xB, x0, xA; mov x0, xB. 0: it is not so.
 */
static int64_t find_given(const uint8_t *code, size_t size)
{
	int64_t constants[REGS] = { 0 }, sums[REGS] = { 0 };

	for (size_t i = 0; i < size / 4; i++) {
		uint32_t insn = insn_at(code, size, i);

		if (is_call(insn))
			return sums[0];
		if ((insn & 0xffe00000) == 0xd2800000) /* movz x, #N */
			constants[RD(insn)] = a64_bits(insn, 5, 16);
		else if ((insn & 0xffe0fc00) == 0x8b000000 && !RN(insn) && !sums[0])
			sums[RD(insn)] = constants[RM(insn)]; /* add x, x0, x */
		else if ((insn & 0xffe0ffff) == 0xaa0003e0)   /* mov x0, x */
			sums[0] = sums[RM(insn)];
	}
	return 0;
}

/* By how much x2 is made smaller than the root register: sub x2, x26, #N. */
static int64_t find_isolate(const uint8_t *code, size_t size)
{
	for (size_t i = 0; i < size / 4; i++) {
		uint32_t insn = insn_at(code, size, i);

		if ((insn & 0xffc00000) == 0xd1000000 && RD(insn) == 2 && RN(insn) == ROOT)
			return IMM12(insn);
	}
	return 0;
}

uint32_t v8_find_collections_a64(const uint8_t *prologue, size_t prologue_size,
				 const uint8_t *statistics, size_t statistics_size,
				 const uint8_t *exit, size_t exit_size, int32_t *ret_heap)
{
	int64_t count = find_counted(prologue, prologue_size),
		heap = find_given(statistics, statistics_size),
		isolate = find_isolate(exit, exit_size);

	if (!isolate || heap <= isolate || heap > OFFSET_MAX || count <= 0 || count > OFFSET_MAX)
		return 0;
	*ret_heap = (int32_t)(heap - isolate);
	return (uint32_t)(heap - isolate + count);
}
