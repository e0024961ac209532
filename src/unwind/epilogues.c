// SPDX-License-Identifier: Apache-2.0
#include "unwind/epilogues.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/code_flow.h"
#include "util/cleanup.h"

enum {
	COMMENT_MAX = 64 << 10,
	FUNCTION_MAX = 1 << 20, /* no more is looked through of one */
	POP_RBP = 0x5d,
	LEAVE = 0xc9,
};

bool epilogues_are_missing(const struct elf_file *elf)
{
	static const char clang[] = "clang version ";
	const struct elf_section *s = elf_file_section(elf, ".comment");
	_cleanup_free_ char *text = NULL;
	const char *p, *end;

	if (elf->machine != EM_X86_64 || !s || s->type != SHT_PROGBITS || s->flags || !s->size ||
	    s->size > COMMENT_MAX)
		return false;
	text = malloc(s->size);
	if (!text || elf_file_read(elf, s->offset, text, s->size) < 0)
		return false;
	end = text + s->size;
	for (p = text; (p = memmem(p, (size_t)(end - p), clang, sizeof(clang) - 1));) {
		p += sizeof(clang) - 1;
		if (end - p >= 2 && p[0] >= '3' && p[0] <= '6' && p[1] == '.')
			return true;
	}
	return false;
}

static bool pops_rbp(const struct x86_insn *insn)
{
	return insn->map == X86_MAP_ONE_BYTE && !insn->vex &&
	       ((insn->opcode == POP_RBP && !(insn->rex & 1)) || insn->opcode == LEAVE);
}

/* Up to there, from behind a pop on, the CFA is where the stack pointer is; and then as before. */
static void add_popped(struct table_writer *writer, uint64_t start, uint64_t end, uint64_t last,
		       const union cfi_rule *rule)
{
	union cfi_rule popped = *rule;

	if (start >= end)
		return;
	popped.rule.cfa_reg = X86_RSP;
	popped.rule.cfa_off = 8;
	/* The others were popped before it. */
	memset(popped.rule.slot_off, 0, sizeof(popped.rule.slot_off));
	table_writer_add(writer, start, &popped);
	if (end < last)
		table_writer_add(writer, end, rule);
}

void epilogues_add(const struct elf_file *elf, struct table_writer *writer, uint64_t start,
		   uint64_t end, const union cfi_rule *rule)
{
	_cleanup_free_ uint8_t *code = NULL;
	uint64_t at = start, popped = 0;
	struct code_insn flow;
	struct x86_insn insn;

	table_writer_add(writer, start, rule);
	if (end - start > FUNCTION_MAX)
		return;
	code = malloc(end - start);
	if (!code || elf_file_read_vaddr(elf, start, code, end - start) < 0)
		return;
	for (; at < end && code_insn_x86(code + (at - start), end - at, at, &insn, &flow);
	     at += flow.len) {
		bool pops = pops_rbp(&insn);

		if (popped && flow.flow != FLOW_NEXT) {
			add_popped(writer, popped, at + flow.len, end, rule);
			popped = 0;
		}
		if (pops)
			popped = at + flow.len;
	}
	if (popped)
		add_popped(writer, popped, end, end, rule);
}

uint64_t epilogues_longjmp(const struct elf_file *elf, uint64_t start, uint64_t end)
{
	/* mov d8(%reg),%rsp; mov %reg,%rbp; jmp *%reg */
	enum { LOAD = 4, SIZE = 9 };
	uint8_t p[SIZE];

	if (elf->machine != EM_X86_64 || end - start < SIZE ||
	    elf_file_read_vaddr(elf, end - SIZE, p, SIZE) < 0)
		return end;
	if ((p[0] & 0xfe) != 0x48 || p[1] != 0x8b || (p[2] & 0xf8) != 0x60 ||
	    (p[4] & 0xfb) != 0x48 || p[5] != 0x89 || (p[6] & 0xc7) != 0xc5 || p[7] != 0xff ||
	    (p[8] & 0xf8) != 0xe0)
		return end;
	return end - SIZE + LOAD;
}
