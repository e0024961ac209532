// SPDX-License-Identifier: Apache-2.0
/*
 * Facts: V8's heap.cc (gc_count_), api.cc (Isolate::GetHeapStatistics()), builtins-x64.cc
 * (Generate_CEntry) at 7.8 to 14.6.
 */
#include "runtime/v8/v8_collections.h"

#include "abi/unwind.h"
#include "elf/x86_insn.h"

enum {
	OFFSET_MAX = 1 << 20,
	/* opcodes */
	ADD_IMMEDIATE = 0x83,
	INCREMENT = 0xff,
	LEA = 0x8d,
	REX_W = 8,
};

/* The next instruction of a function's code; false: there is none. */
static bool next_insn(const uint8_t *code, size_t size, size_t *at, struct x86_insn *insn)
{
	int len = *at < size ? x86_insn_decode(code + *at, size - *at, insn) : 0;

	*at += (size_t)len;
	return len > 0;
}

/* What is the one place of 4 bytes, behind a register, to which 1 is added? 0: there is none. */
static int64_t find_counted(const uint8_t *code, size_t size)
{
	struct x86_insn insn;
	int64_t found = 0;

	for (size_t at = 0; next_insn(code, size, &at, &insn);) {
		bool adds = insn.opcode == ADD_IMMEDIATE && !insn.group && insn.imm == 1,
		     increments = insn.opcode == INCREMENT && !insn.group;

		if (insn.map != X86_MAP_ONE_BYTE || insn.vex || insn.size16 || insn.rex & REX_W ||
		    insn.mod != 2 || insn.has_index || !(adds || increments))
			continue;
		if (found && found != insn.disp)
			return 0;
		found = insn.disp;
	}
	return found;
}

/* How far behind register `rm` the first address is that is calculated from that, to `reg` if that
 * is not negative; 0: none is. */
static int64_t find_address(const uint8_t *code, size_t size, uint8_t rm, int reg)
{
	struct x86_insn insn;

	for (size_t at = 0; next_insn(code, size, &at, &insn);)
		if (insn.map == X86_MAP_ONE_BYTE && !insn.vex && insn.opcode == LEA &&
		    insn.rex & REX_W && insn.mod != 3 && !insn.rip_relative && !insn.has_index &&
		    insn.rm == rm && (reg < 0 || insn.reg == reg))
			return insn.disp;
	return 0;
}

uint32_t v8_find_collections(const uint8_t *prologue, size_t prologue_size,
			     const uint8_t *statistics, size_t statistics_size, const uint8_t *exit,
			     size_t exit_size, int32_t *ret_heap)
{
	int64_t count = find_counted(prologue, prologue_size),
		heap = find_address(statistics, statistics_size, X86_RDI, -1),
		isolate = find_address(exit, exit_size, X86_R13, X86_RDX);

	if (isolate >= 0 || isolate < INT8_MIN || heap <= 0 || heap > OFFSET_MAX || count <= 0 ||
	    count > OFFSET_MAX)
		return 0;
	*ret_heap = (int32_t)(isolate + heap);
	return (uint32_t)(isolate + heap + count);
}
