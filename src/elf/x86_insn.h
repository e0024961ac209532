/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A length decoder for x86-64 instructions: where the next one begins, and the fields that tell
 * what an instruction does to the stack pointer. Complete as to length for what compilers and
 * assemblers emit (VEX, EVEX and XOP too); where control goes is code_flow.c's, what becomes of the
 * stack unwind/code_x86.c's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { X86_INSN_MAX = 15 };

enum x86_map {
	X86_MAP_ONE_BYTE = 0,
	X86_MAP_0F = 1,
	X86_MAP_0F38 = 2,
	X86_MAP_0F3A = 3,
	X86_MAP_OTHER = 4, /* EVEX only */
	X86_MAP_XOP = 5,   /* AMD's 8, 9 and 10, which share no opcode but those of no concern */
};

/* The prefix that is a part of the opcode, numbered as in VEX. */
enum x86_pp { X86_PP_NONE = 0, X86_PP_66 = 1, X86_PP_F3 = 2, X86_PP_F2 = 3 };

struct x86_insn {
	uint8_t len;
	uint8_t map; /* enum x86_map */
	uint8_t opcode;
	bool vex;    /* or EVEX, or XOP */
	bool size16; /* 0x66 */
	uint8_t pp;  /* enum x86_pp */
	bool addr32; /* 0x67 */
	bool has_modrm;
	uint8_t rex; /* 0x40.. or 0 */
	uint8_t mod;
	uint8_t group; /* ModRM's middle field where it is a part of the opcode */
	/* Registers have their DWARF numbers, as everywhere else (abi/unwind.h). */
	uint8_t reg;
	uint8_t rm;	 /* a SIB's base if there is one */
	uint8_t vvvv;	 /* VEX's further one, if it is a general one */
	uint8_t low_reg; /* in the opcode's low bits, of those that have one there */
	bool has_index;	 /* a SIB with an index */
	bool rip_relative;
	int32_t disp;
	int64_t imm; /* also a branch's displacement */
};

/* The instruction at `p`; its length, or 0 if it is none, or is cut off. */
int x86_insn_decode(const uint8_t *p, size_t left, struct x86_insn *ret);
/*
 * The general registers that it writes, a bit each (by DWARF number); those too that calls, the
 * kernel and strings' instructions write on their own. Not what push, pop and the like do to rsp.
 */
uint32_t x86_insn_written(const struct x86_insn *insn);
/* Where the last four bytes of an instruction lead, which are at `p`, in memory at `addr`. */
static inline uint64_t x86_rel32(const uint8_t *p, uint64_t addr)
{
	int32_t distance;

	memcpy(&distance, p, sizeof(distance));
	return addr + sizeof(distance) + (uint64_t)(int64_t)distance;
}
