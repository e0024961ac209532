/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where control goes from an instruction of x86-64 or aarch64: to the next one, to a target, or to
 * neither. For what has nothing but the code to go by: unwinding of functions without CFI
 * (unwind/code_scan.h), and where functions end (elf_symbol_ends.c).
 */
#pragma once

#include "elf/x86_insn.h"

enum code_flow {
	FLOW_NEXT = 0,
	FLOW_COND,	    /* to the target or to the next one */
	FLOW_JUMP,	    /* to the target only */
	FLOW_CALL,	    /* the target is a function; goes on with the next one */
	FLOW_CALL_INDIRECT, /* so, of a function that the instruction does not name */
	FLOW_INDIRECT,	    /* a jump to who knows where: switch, or tail call */
	FLOW_RETURN,
	FLOW_STOP, /* a trap */
};

struct code_insn {
	uint8_t len;
	uint8_t flow; /* enum code_flow */
	bool padding; /* does nothing: stands between functions */
	uint64_t target;
};

static inline bool code_calls(const struct code_insn *insn)
{
	return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

/* The instruction at `p`, address `addr`: false if it is none, or is cut off. */
bool code_insn_x86(const uint8_t *p, size_t left, uint64_t addr, struct x86_insn *insn,
		   struct code_insn *ret);
bool code_insn_a64(const uint8_t *p, size_t left, uint64_t addr, struct code_insn *ret);
