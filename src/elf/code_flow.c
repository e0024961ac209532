// SPDX-License-Identifier: Apache-2.0
#include "elf/code_flow.h"

#include <string.h>

/* --- x86-64 ---------------------------------------------------------------------------------- */

static enum code_flow one_byte_flow(uint8_t op, uint8_t group)
{
	switch (op) {
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		return FLOW_COND;
	case 0xe8:
		return FLOW_CALL;
	case 0xe9:
	case 0xeb:
		return FLOW_JUMP;
	case 0xff:
		if (group == 2 || group == 3)
			return FLOW_CALL_INDIRECT;
		return group == 4 || group == 5 ? FLOW_INDIRECT : FLOW_NEXT;
	case 0xc2:
	case 0xc3:
		return FLOW_RETURN;
	case 0xca ... 0xcc:
	case 0xcf:
	case 0xf1:
	case 0xf4:
		return FLOW_STOP;
	default:
		return FLOW_NEXT;
	}
}

static enum code_flow x86_flow(const struct x86_insn *insn)
{
	uint8_t op = insn->opcode;

	if (insn->vex)
		return FLOW_NEXT;
	if (insn->map == X86_MAP_ONE_BYTE)
		return one_byte_flow(op, insn->group);
	if (insn->map != X86_MAP_0F)
		return FLOW_NEXT;
	if (op >= 0x80 && op <= 0x8f)
		return FLOW_COND;
	return op == 0x0b || op == 0xb9 || op == 0xff ? FLOW_STOP : FLOW_NEXT;
}

static bool is_padding(const struct x86_insn *insn)
{
	if (insn->map == X86_MAP_0F)
		return insn->opcode == 0x1f && !insn->vex;
	if (insn->map != X86_MAP_ONE_BYTE || insn->vex)
		return false;
	if (insn->opcode == 0x90) /* nop, xchg %ax,%ax; with REX.B an exchange with r8 */
		return !(insn->rex & 1);
	return insn->opcode == 0xcc;
}

bool code_insn_x86(const uint8_t *p, size_t left, uint64_t addr, struct x86_insn *insn,
		   struct code_insn *ret)
{
	if (!x86_insn_decode(p, left, insn))
		return false;
	*ret = (struct code_insn){ .len = insn->len,
				   .flow = (uint8_t)x86_flow(insn),
				   .padding = is_padding(insn),
				   .target = addr + insn->len + (uint64_t)insn->imm };
	return true;
}

/* --- aarch64 --------------------------------------------------------------------------------- */

/* The address that bits `from` to `from + bits` of a branch lead to, in words. */
static uint64_t branch_target(uint32_t insn, unsigned int from, unsigned int bits, uint64_t addr)
{
	uint64_t field = (uint64_t)(insn >> from) << (64 - bits);

	return addr + (uint64_t)((int64_t)field >> (64 - bits)) * 4;
}

static void a64_flow(uint32_t insn, uint64_t addr, struct code_insn *ret)
{
	if ((insn & 0xfc000000) == 0x14000000) {
		ret->flow = FLOW_JUMP;
		ret->target = branch_target(insn, 0, 26, addr);
	} else if ((insn & 0xfc000000) == 0x94000000) {
		ret->flow = FLOW_CALL;
		ret->target = branch_target(insn, 0, 26, addr);
	} else if ((insn & 0xff000000) == 0x54000000 || (insn & 0x7e000000) == 0x34000000) {
		ret->flow = FLOW_COND;
		ret->target = branch_target(insn, 5, 19, addr);
	} else if ((insn & 0x7e000000) == 0x36000000) {
		ret->flow = FLOW_COND;
		ret->target = branch_target(insn, 5, 14, addr);
	} else if ((insn & 0xfffff000) == 0xd65f0000) { /* ret, retaa, retab */
		ret->flow = FLOW_RETURN;
	} else if ((insn & 0xfefff000) == 0xd63f0000) { /* blr, blraa */
		ret->flow = FLOW_CALL_INDIRECT;
	} else if ((insn & 0xfefff000) == 0xd61f0000) { /* br, braa */
		ret->flow = FLOW_INDIRECT;
	} else if ((insn & 0xffe0001f) == 0xd4200000) { /* brk */
		ret->flow = FLOW_STOP;
	}
}

bool code_insn_a64(const uint8_t *p, size_t left, uint64_t addr, struct code_insn *ret)
{
	uint32_t insn;

	if (left < 4 || addr % 4)
		return false;
	memcpy(&insn, p, 4);
	if ((insn & 0xffff0000) == 0) /* udf, zeros */
		return false;
	*ret = (struct code_insn){ .len = 4, .padding = insn == 0xd503201f };
	a64_flow(insn, addr, ret);
	return true;
}
