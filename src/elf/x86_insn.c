// SPDX-License-Identifier: Apache-2.0
#include "elf/x86_insn.h"

#include <string.h>

/* What follows an opcode. */
enum {
	MODRM = 1 << 0,
	IMM8 = 1 << 1,
	IMM16 = 1 << 2,
	IMMZ = 1 << 3, /* 4 bytes, with 0x66 2 */
	REL32 = 1 << 4,
	IMMV = 1 << 5, /* as IMMZ, with REX.W 8 */
	MOFFS = 1 << 6,
	INVALID = 1 << 7,
	IMM32 = REL32,
};

static const uint8_t one_byte[256] = {
	/* 0x00: the eight rows of arithmetic are alike */
	[0x00 ... 0x03] = MODRM,
	[0x04] = IMM8,
	[0x05] = IMMZ,
	[0x06 ... 0x07] = INVALID,
	[0x08 ... 0x0b] = MODRM,
	[0x0c] = IMM8,
	[0x0d] = IMMZ,
	[0x0e ... 0x0f] = INVALID,
	[0x10 ... 0x13] = MODRM,
	[0x14] = IMM8,
	[0x15] = IMMZ,
	[0x16 ... 0x17] = INVALID,
	[0x18 ... 0x1b] = MODRM,
	[0x1c] = IMM8,
	[0x1d] = IMMZ,
	[0x1e ... 0x1f] = INVALID,
	[0x20 ... 0x23] = MODRM,
	[0x24] = IMM8,
	[0x25] = IMMZ,
	[0x26 ... 0x27] = INVALID,
	[0x28 ... 0x2b] = MODRM,
	[0x2c] = IMM8,
	[0x2d] = IMMZ,
	[0x2e ... 0x2f] = INVALID,
	[0x30 ... 0x33] = MODRM,
	[0x34] = IMM8,
	[0x35] = IMMZ,
	[0x36 ... 0x37] = INVALID,
	[0x38 ... 0x3b] = MODRM,
	[0x3c] = IMM8,
	[0x3d] = IMMZ,
	[0x3e ... 0x3f] = INVALID,
	[0x40 ... 0x4f] = INVALID, /* REX behind REX */
	[0x60 ... 0x62] = INVALID,
	[0x63] = MODRM,
	[0x64 ... 0x67] = INVALID,
	[0x68] = IMMZ,
	[0x69] = MODRM | IMMZ,
	[0x6a] = IMM8,
	[0x6b] = MODRM | IMM8,
	[0x70 ... 0x7f] = IMM8,
	[0x80] = MODRM | IMM8,
	[0x81] = MODRM | IMMZ,
	[0x82] = INVALID,
	[0x83] = MODRM | IMM8,
	[0x84 ... 0x8f] = MODRM,
	[0x9a] = INVALID,
	[0xa0 ... 0xa3] = MOFFS,
	[0xa8] = IMM8,
	[0xa9] = IMMZ,
	[0xb0 ... 0xb7] = IMM8,
	[0xb8 ... 0xbf] = IMMV,
	[0xc0 ... 0xc1] = MODRM | IMM8,
	[0xc2] = IMM16,
	[0xc4 ... 0xc5] = INVALID,
	[0xc6] = MODRM | IMM8,
	[0xc7] = MODRM | IMMZ,
	[0xc8] = IMM16 | IMM8,
	[0xca] = IMM16,
	[0xcd] = IMM8,
	[0xce] = INVALID,
	[0xd0 ... 0xd3] = MODRM,
	[0xd4 ... 0xd6] = INVALID,
	[0xd8 ... 0xdf] = MODRM,
	[0xe0 ... 0xe7] = IMM8,
	[0xe8 ... 0xe9] = REL32,
	[0xea] = INVALID,
	[0xeb] = IMM8,
	[0xf0] = INVALID,
	[0xf2 ... 0xf3] = INVALID,
	[0xf6 ... 0xf7] = MODRM,
	[0xfe ... 0xff] = MODRM,
};

static uint8_t follows_0f(uint8_t op)
{
	switch (op) {
	case 0x04:
	case 0x0a:
	case 0x0c:
		return INVALID;
	case 0x05 ... 0x09:
	case 0x0b:
	case 0x0e:
	case 0x30 ... 0x37:
	case 0x77:
	case 0xa0 ... 0xa2:
	case 0xa8 ... 0xaa:
	case 0xc8 ... 0xcf:
		return 0;
	case 0x80 ... 0x8f:
		return REL32;
	case 0x0f:
	case 0x70 ... 0x73:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return MODRM | IMM8;
	default:
		return MODRM;
	}
}

static const uint8_t dwarf_numbers[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

struct decoder {
	const uint8_t *pos, *end;
	bool failed;
};

static uint8_t next(struct decoder *d)
{
	if (d->pos == d->end) {
		d->failed = true;
		return 0;
	}
	return *d->pos++;
}

static int64_t next_signed(struct decoder *d, unsigned int size)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < size; i++)
		v |= (uint64_t)next(d) << 8 * i;
	return size == 8 ? (int64_t)v : (int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size);
}

static void read_prefixes(struct decoder *d, struct x86_insn *insn)
{
	while (d->pos < d->end) {
		switch (*d->pos) {
		case 0x66:
			insn->size16 = true;
			insn->pp = insn->pp ? insn->pp : X86_PP_66;
			break;
		case 0x67:
			insn->addr32 = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
			break;
		case 0xf2:
		case 0xf3:
			insn->pp = *d->pos == 0xf2 ? X86_PP_F2 : X86_PP_F3;
			break;
		case 0x40 ... 0x4f:
			insn->rex = *d->pos++;
			return;
		default:
			return;
		}
		d->pos++;
	}
}

/* What follows an XOP opcode of map 8, 9 or 10. */
static uint8_t follows_xop(uint8_t map)
{
	switch (map) {
	case 8:
		return MODRM | IMM8;
	case 9:
		return MODRM;
	case 10:
		return MODRM | IMM32;
	default:
		return INVALID;
	}
}

/* C5, C4, 62 or XOP's 8F stands at d->pos. Their R, X, B and vvvv bits are inverted. */
static uint8_t read_vex(struct decoder *d, struct x86_insn *insn)
{
	uint8_t escape = next(d), payload = next(d), flags = payload;

	insn->vex = true;
	insn->rex = 0x40 | (payload & 0x80 ? 0 : 4);
	insn->map = X86_MAP_0F;
	if (escape != 0xc5) {
		insn->rex |= (payload & 0x40 ? 0 : 2) | (payload & 0x20 ? 0 : 1);
		insn->map = payload & (escape == 0x62 ? 7 : 0x1f);
		flags = next(d);
		insn->rex |= flags & 0x80 ? 8 : 0;
	}
	insn->vvvv = dwarf_numbers[~flags >> 3 & 15];
	insn->pp = flags & 3;
	if (escape == 0x62)
		next(d);
	if (escape == 0x8f) {
		flags = insn->map;
		insn->map = X86_MAP_XOP;
		insn->opcode = next(d);
		return follows_xop(flags);
	}
	if (insn->map > X86_MAP_0F3A)
		insn->map = X86_MAP_OTHER;
	if (!insn->map || (escape == 0xc4 && insn->map == X86_MAP_OTHER))
		return INVALID;
	insn->opcode = next(d);
	switch (insn->map) {
	case X86_MAP_0F:
		/* vzeroupper is the only one without operands */
		if (insn->opcode == 0x77)
			return escape == 0x62 ? INVALID : 0;
		return (follows_0f(insn->opcode) & IMM8) | MODRM;
	case X86_MAP_0F3A:
		return MODRM | IMM8;
	default:
		return MODRM;
	}
}

static uint8_t read_opcode(struct decoder *d, struct x86_insn *insn)
{
	uint8_t first = d->pos < d->end ? *d->pos : 0;
	/* pop has this opcode, too, with 0 where XOP has its map's high bits. */
	bool xop = first == 0x8f && d->end - d->pos > 1 && (d->pos[1] & 0x1f) >= 8;

	if ((first == 0xc4 || first == 0xc5 || first == 0x62 || xop) && !insn->rex)
		return read_vex(d, insn);
	insn->opcode = next(d);
	if (insn->opcode != 0x0f)
		return one_byte[insn->opcode];
	insn->map = X86_MAP_0F;
	insn->opcode = next(d);
	if (insn->opcode == 0x78 && (insn->pp & 1)) /* SSE4a: extrq, insertq */
		return MODRM | IMM16;
	if (insn->opcode == 0x38 || insn->opcode == 0x3a) {
		insn->map = insn->opcode == 0x38 ? X86_MAP_0F38 : X86_MAP_0F3A;
		insn->opcode = next(d);
		return insn->map == X86_MAP_0F3A ? MODRM | IMM8 : MODRM;
	}
	return follows_0f(insn->opcode);
}

static void read_modrm(struct decoder *d, struct x86_insn *insn)
{
	uint8_t modrm = next(d), rm = modrm & 7, sib;

	insn->has_modrm = true;
	insn->mod = modrm >> 6;
	insn->group = modrm >> 3 & 7;
	insn->reg = dwarf_numbers[insn->group | (insn->rex & 4) << 1];
	insn->rm = dwarf_numbers[rm | (insn->rex & 1) << 3];
	if (insn->mod == 3)
		return;
	if (rm == 4) {
		sib = next(d);
		rm = sib & 7;
		insn->rm = dwarf_numbers[rm | (insn->rex & 1) << 3];
		insn->has_index = ((sib >> 3 & 7) | (insn->rex & 2) << 2) != 4;
		if (rm == 5 && insn->mod == 0) {
			/* no base: not a place on the stack */
			insn->has_index = true;
			insn->disp = next_signed(d, 4);
			return;
		}
	} else if (rm == 5 && insn->mod == 0) {
		insn->rip_relative = true;
		insn->disp = next_signed(d, 4);
		return;
	}
	if (insn->mod)
		insn->disp = next_signed(d, insn->mod == 1 ? 1 : 4);
}

static void read_immediate(struct decoder *d, struct x86_insn *insn, uint8_t follows)
{
	/* test is the only one of its group with an immediate */
	if (insn->map == X86_MAP_ONE_BYTE && !insn->vex && (insn->opcode & 0xfe) == 0xf6 &&
	    insn->group < 2)
		follows |= insn->opcode == 0xf6 ? IMM8 : IMMZ;
	if (follows & IMM16)
		insn->imm = next_signed(d, 2);
	if (follows & IMM8)
		insn->imm = next_signed(d, 1);
	if (follows & IMMZ)
		insn->imm = next_signed(d, insn->size16 && !(insn->rex & 8) ? 2 : 4);
	if (follows & IMMV)
		insn->imm = next_signed(d, insn->rex & 8 ? 8 : insn->size16 ? 2 : 4);
	if (follows & REL32)
		insn->imm = next_signed(d, 4);
	if (follows & MOFFS)
		insn->imm = next_signed(d, insn->addr32 ? 4 : 8);
}

int x86_insn_decode(const uint8_t *p, size_t left, struct x86_insn *ret)
{
	struct decoder d = { p, p + (left < X86_INSN_MAX ? left : X86_INSN_MAX), false };
	struct x86_insn insn = { 0 };
	uint8_t follows;

	read_prefixes(&d, &insn);
	follows = read_opcode(&d, &insn);
	if (follows == INVALID)
		return 0;
	if (follows & MODRM)
		read_modrm(&d, &insn);
	if (insn.map == X86_MAP_ONE_BYTE && insn.opcode == 0x8f && insn.group)
		return 0;
	read_immediate(&d, &insn, follows);
	if (d.failed)
		return 0;
	insn.low_reg = dwarf_numbers[(insn.opcode & 7) | (insn.rex & 1) << 3];
	insn.len = d.pos - p;
	*ret = insn;
	return insn.len;
}
