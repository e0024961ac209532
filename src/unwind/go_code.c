// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_code.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "abi/sample.h"
#include "util/cleanup.h"

enum {
	PIECE = 256 << 10, /* of code, read at once */
	OVERLAP = 16,
	LOAD_SIZE = 3,	   /* bytes that tell one */
	HANDLER_BEGIN = 8, /* instructions */
	LOADS_MAX = 1024,  /* the runtime has 20; what looks like one is elsewhere, too */
	/* As instructions have them. */
	RSP = 4,
	RBP = 5,
};

/* mov to rsp, from what is neither the stack nor the frame pointer; and $imm,%rsp. */
static bool is_load(const uint8_t *p)
{
	uint8_t rex = p[0], op = p[1], mod = p[2] >> 6, reg = p[2] >> 3 & 7, rm = p[2] & 7;

	if (rex == 0x48 && op == 0x83 && p[2] == 0xe4)
		return true;
	if ((rex == 0x48 || rex == 0x49) && op == 0x8b)
		return reg == RSP && rm != RSP && (rm != RBP || rex == 0x49);
	return (rex == 0x48 || rex == 0x4c) && op == 0x89 && mod == 3 && rm == RSP &&
	       (reg != RBP || rex == 0x4c);
}

bool go_code_is_goexit(const uint8_t *code, size_t size)
{
	enum { NOP = 0x90, CALL = 0xe8 };

	return size >= GO_EXIT_SIZE && code[0] == NOP && code[1] == CALL &&
	       code[GO_EXIT_SIZE - 1] == NOP;
}

/* Functions are aligned, and what is between them is filled with int3. */
static bool is_goexit_at(uint64_t addr, const uint8_t *code, size_t size)
{
	enum { INT3 = 0xcc, ALIGN = 16 };

	return addr % ALIGN == 0 && size > GO_EXIT_SIZE && code[GO_EXIT_SIZE] == INT3 &&
	       go_code_is_goexit(code, size);
}

static int find_loads(const struct elf_file *elf, const struct elf_segment *s, uint8_t *code,
		      struct go_code *go)
{
	size_t size;
	int r = 0;

	for (uint64_t at = 0; at < s->filesz; at += PIECE - OVERLAP) {
		size = s->filesz - at < PIECE ? s->filesz - at : PIECE;
		if (elf_file_read(elf, s->offset + at, code, size) < 0)
			return 0;
		for (size_t i = -(s->vaddr + at) & 15; !go->goexit && i < size; i += 16)
			if (is_goexit_at(s->vaddr + at + i, code + i, size - i))
				go->goexit = s->vaddr + at + i;
		for (size_t i = 0; !r && i + LOAD_SIZE <= size && go->loads.nr < LOADS_MAX; i++)
			if (is_load(code + i))
				r = vec_push(&go->loads, s->vaddr + at + i);
		if (r || size < PIECE)
			return r;
	}
	return 0;
}

int go_code_init(const struct elf_file *elf, struct go_code *ret)
{
	_cleanup_free_ uint8_t *code = malloc(PIECE);
	int r = code ? 0 : -ENOMEM;

	*ret = (struct go_code){ 0 };
	for (size_t i = 0; !r && i < elf->nr_segments; i++)
		if (elf->segments[i].type == PT_LOAD && elf->segments[i].flags & PF_X)
			r = find_loads(elf, &elf->segments[i], code, ret);
	if (r)
		go_code_fini(ret);
	return r;
}

void go_code_fini(struct go_code *go)
{
	vec_free(&go->loads);
}

bool go_code_switches(const struct go_code *go, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < go->loads.nr; i++)
		if (go->loads.items[i] >= start && go->loads.items[i] < end)
			return true;
	return false;
}

struct unwind_rule go_frame_a64(int64_t size)
{
	struct unwind_rule rule = {
		.cfa = CFA_REG, .cfa_reg = A64_SP, .ra = RA_IN_REG, .ra_off = A64_LR
	};

	if (size < 0 || size & 7 || size > INT16_MAX * 8)
		return (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_BAD_CFI };
	if (!size)
		return rule;
	rule.cfa_off = (int32_t)size;
	rule.ra = RA_AT_CFA;
	rule.ra_off = (int16_t)(-size / 8);
	return rule;
}

bool go_code_is_handler(const struct elf_file *elf, uint64_t start)
{
	enum { STP_SP_MASK = 0xffc07fff, STP_X19_X20 = 0xa90053f3 };
	uint32_t code[HANDLER_BEGIN];

	if (elf_file_read_vaddr(elf, start, code, sizeof(code)) < 0)
		return false;
	for (size_t i = 0; i < HANDLER_BEGIN; i++)
		if ((code[i] & STP_SP_MASK) == STP_X19_X20)
			return true;
	return false;
}
