// SPDX-License-Identifier: Apache-2.0
/*
 * Which general registers an instruction of x86-64 writes, besides the stack pointer by what push,
 * pop, calls and returns do to it. What is not known to write none may be said to write one, never
 * the other way round.
 */
#include "elf/x86_insn.h"

enum {
	RAX = 1 << 0,
	RDX = 1 << 1,
	RCX = 1 << 2,
	RBX = 1 << 3,
	RSI = 1 << 4,
	RDI = 1 << 5,
	RBP = 1 << 6,
	R11 = 1 << 11,
};

/* Whether the operands of an instruction without VEX are bytes. */
static bool is_bytes(const struct x86_insn *insn)
{
	uint8_t op = insn->opcode;

	if (insn->map == X86_MAP_0F)
		return (op >= 0x90 && op <= 0x9f) || op == 0xb0 || op == 0xc0;
	if (insn->map != X86_MAP_ONE_BYTE)
		return false;
	return (op >= 0xb0 && op <= 0xb7) || (op < 0xb0 && !(op & 1)) || op == 0xc0 || op == 0xc6 ||
	       op == 0xd0 || op == 0xd2 || op == 0xf6 || op == 0xfe;
}

/* Without REX, bytes of what would be rsp, rbp, rsi and rdi are ah, ch, dh and bh. */
static uint32_t bit(const struct x86_insn *insn, uint8_t reg)
{
	static const uint8_t whole[8] = { 0, 1, 2, 3, 1, 3, 2, 0 };

	return 1u << (reg < 8 && !insn->rex && is_bytes(insn) ? whole[reg] : reg);
}

static uint32_t written_vex(const struct x86_insn *insn)
{
	uint32_t reg = 1u << insn->reg, rm = insn->mod == 3 ? 1u << insn->rm : 0;
	uint32_t vvvv = 1u << insn->vvvv;
	uint8_t op = insn->opcode;

	switch (insn->map) {
	case X86_MAP_0F:
	case X86_MAP_OTHER:
		if (op == 0x2c || op == 0x2d || op == 0x50 || op == 0x78 || op == 0x79 ||
		    op == 0x93 || op == 0xc5 || op == 0xd7)
			return reg;
		return op == 0x7e && insn->pp != X86_PP_F3 ? rm : 0;
	case X86_MAP_0F38:
		if (op == 0xf3) /* blsr, blsmsk, blsi */
			return vvvv;
		return op == 0xf6 ? reg | vvvv : op >= 0xe0 ? reg : 0;
	case X86_MAP_0F3A:
		if (op >= 0x14 && op <= 0x17)
			return rm;
		return op == 0xf0 ? reg : op == 0x61 || op == 0x63 ? RCX : 0;
	default: /* XOP */
		return op == 0x01 || op == 0x02 ? vvvv : op == 0x10 ? reg : 0;
	}
}

static uint32_t written_0f(const struct x86_insn *insn)
{
	uint32_t reg = bit(insn, insn->reg), rm = insn->mod == 3 ? bit(insn, insn->rm) : 0;

	switch (insn->opcode) {
	case 0x02 ... 0x03:
	case 0x2c ... 0x2d:
	case 0x40 ... 0x50:
	case 0xaf:
	case 0xb6 ... 0xb8:
	case 0xbc ... 0xbf:
	case 0xc5:
	case 0xd7:
		return reg;
	case 0x7e: /* movd, but movq between others */
		return insn->pp == X86_PP_F3 ? 0 : rm;
	case 0x90 ... 0x9f:
	case 0xa4 ... 0xa5:
	case 0xab ... 0xad:
	case 0xb3:
	case 0xbb:
		return rm;
	case 0xba:
		return insn->group > 4 ? rm : 0;
	case 0x00:
	case 0xae: /* rdfsbase */
		return rm;
	case 0x01: /* xgetbv, rdtscp and the like */
		return rm | RAX | RDX | RCX;
	case 0x05:
	case 0x34:
		return RAX | RCX | R11;
	case 0x31 ... 0x33:
		return RAX | RDX;
	case 0xa2:
		return RAX | RBX | RCX | RDX;
	case 0xa6 ... 0xa7: /* VIA's */
		return RAX | RCX | RDX | RSI | RDI;
	case 0xb0 ... 0xb1:
		return rm | RAX;
	case 0xc0 ... 0xc1:
		return rm | reg;
	case 0xc7: /* cmpxchg16b, rdrand */
		return rm | RAX | RDX;
	case 0xc8 ... 0xcf:
		return 1u << insn->low_reg;
	default:
		return 0;
	}
}

static uint32_t written_one_byte(const struct x86_insn *insn)
{
	uint32_t reg = insn->has_modrm ? bit(insn, insn->reg) : 0;
	uint32_t rm = insn->has_modrm && insn->mod == 3 ? bit(insn, insn->rm) : 0;
	uint8_t op = insn->opcode;

	if (op < 0x40) {
		if (op >= 0x38)
			return 0; /* cmp */
		return (op & 7) < 2 ? rm : (op & 7) < 4 ? reg : RAX;
	}
	switch (op) {
	case 0x58 ... 0x5f:
		return 1u << insn->low_reg;
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8a ... 0x8b:
	case 0x8d:
		return reg;
	case 0x6c ... 0x6f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
		return RAX | RCX | RSI | RDI;
	case 0x80 ... 0x83:
		return insn->group == 7 ? 0 : rm;
	case 0x86 ... 0x87:
		return reg | rm;
	case 0x88 ... 0x89:
	case 0x8c:
	case 0x8f:
	case 0xc0 ... 0xc1:
	case 0xc6 ... 0xc7:
	case 0xd0 ... 0xd3:
		return rm;
	case 0x90 ... 0x97:
		return op == 0x90 && !(insn->rex & 1) ? 0 : RAX | 1u << insn->low_reg;
	case 0x98:
	case 0x9f:
	case 0xa0 ... 0xa1:
	case 0xd7:
	case 0xe4 ... 0xe5:
	case 0xec ... 0xed:
		return RAX;
	case 0x99:
		return RDX;
	case 0xb0 ... 0xbf:
		return bit(insn, insn->low_reg);
	case 0xc8 ... 0xc9:
		return RBP;
	case 0xdf: /* fnstsw %ax */
		return rm ? RAX : 0;
	case 0xe0 ... 0xe2:
		return RCX;
	case 0xf6 ... 0xf7:
		return insn->group < 2 ? 0 : insn->group < 4 ? rm : RAX | RDX;
	case 0xfe ... 0xff:
		return insn->group < 2 ? rm : 0;
	default:
		return 0;
	}
}

uint32_t x86_insn_written(const struct x86_insn *insn)
{
	if (insn->vex)
		return written_vex(insn);
	switch (insn->map) {
	case X86_MAP_ONE_BYTE:
		return written_one_byte(insn);
	case X86_MAP_0F:
		return written_0f(insn);
	case X86_MAP_0F38: /* crc32, movbe, adcx */
		return (insn->opcode & 0xf0) == 0xf0 ? 1u << insn->reg : 0;
	case X86_MAP_0F3A:
		if (insn->opcode >= 0x14 && insn->opcode <= 0x17)
			return insn->mod == 3 ? 1u << insn->rm : 0;
		return insn->opcode == 0x61 || insn->opcode == 0x63 ? RCX : 0;
	default:
		return 0;
	}
}
