// SPDX-License-Identifier: Apache-2.0
#include "unwind/ghc_code.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

enum {
	/*
	 * rts/StgCRun.c: StgRun() pushes six registers, and takes 16 KiB (RESERVED_C_STACK_BYTES)
	 * for what Haskell code spills; its return address is above that.
	 */
	STG_CFA = 16384 + 6 * 8 + 8,
	SMALL_FRAMES = 64 << 10,
	/* Code that has CFI has a tenth of its size of it, or more. */
	CODE_WITH_CFI = 8,
	NAMES_MAX = 16 << 20,
	NAMES_PIECE = 16 << 10,
	PIECE = 1 << 20,
	ADD_SIZE = 4,	  /* add $8,%rsp */
	CALL_SIZE = 5,	  /* call function */
	WINDOW_MAX = 128, /* bytes from sub $8,%rsp to its call */
	ENTRY_SIZE = 64,
	RUNTIME_SIZE = 256, /* the C runtime's own code, from _start on */
};

/* What StgRun()'s CFI says of the stack pointer: DW_CFA_val_expression 7, { breg7 + STG_CFA }. */
static const uint8_t stg_run[] = { 0x16, 0x07, 0x04, 0x77, 0xb8, 0x80, 0x01 };

/* Of the bytes in the file: sections that programs are run with are not compressed. */
static bool section_has(const struct elf_file *elf, const struct elf_section *section,
			const void *what, size_t size)
{
	uint64_t end = section->size < NAMES_MAX ? section->size : NAMES_MAX;
	uint8_t piece[NAMES_PIECE];

	for (uint64_t at = 0; at + size <= end; at += sizeof(piece) - size) {
		size_t n = end - at < sizeof(piece) ? end - at : sizeof(piece);

		if (elf_file_read(elf, section->offset + at, piece, n) < 0)
			return false;
		if (memmem(piece, n, what, size))
			return true;
	}
	return false;
}

bool ghc_made(const struct elf_file *elf)
{
	const struct elf_section *frames = elf_file_section(elf, ".eh_frame");
	const struct elf_section *text = elf_file_section(elf, ".text");
	const struct elf_section *names = elf_file_section(elf, ".dynstr");
	bool few;

	if (elf->machine != EM_X86_64 || !frames || !text)
		return false;
	few = frames->size < text->size / CODE_WITH_CFI;
	/* Programs, and the library of the run-time system, have StgRun() itself. */
	if ((few || frames->size <= SMALL_FRAMES) &&
	    section_has(elf, frames, stg_run, sizeof(stg_run)))
		return true;
	return few && names && section_has(elf, names, "stg_ap_", 7);
}

static void add(struct table_writer *writer, uint64_t addr, int32_t more)
{
	union cfi_rule u = { .rule = { .cfa = CFA_REG,
				       .cfa_reg = X86_RSP,
				       .cfa_off = STG_CFA + more,
				       .ra = RA_AT_CFA,
				       .ra_off = -1 } };

	u.rule.slot_off[X86_SLOT_RBX] = -7;
	u.rule.slot_off[X86_SLOT_RBP] = -6;
	u.rule.slot_off[X86_SLOT_R12] = -5;
	u.rule.slot_off[X86_SLOT_R13] = -4;
	u.rule.slot_off[X86_SLOT_R14] = -3;
	u.rule.slot_off[X86_SLOT_R15] = -2;
	table_writer_add(writer, addr, &u);
}

/* How long the call is that ends at `end`: call function; call *%r8 to %r15; call *%rax to %rdi. */
static size_t call_before(const uint8_t *code, size_t end)
{
	if (end >= CALL_SIZE && code[end - 5] == 0xe8)
		return CALL_SIZE;
	if (end >= 2 && code[end - 2] == 0xff && (code[end - 1] & 0xf8) == 0xd0)
		return end >= 3 && code[end - 3] == 0x41 ? 3 : 2;
	return 0;
}

/*
 * Only calls of C functions move the stack pointer: sub $8,%rsp, pushes if there are many
 * arguments, call, add $N,%rsp. What the last one takes away lay there in the call.
 */
static void cover_calls(const uint8_t *code, size_t size, uint64_t addr,
			struct table_writer *writer)
{
	static const uint8_t add_rsp[] = { 0x48, 0x83, 0xc4 }, sub_8[] = { 0x48, 0x83, 0xec, 8 };
	const uint8_t *p = code;
	size_t done = 0;

	while ((p = memmem(p, size - (size_t)(p - code), add_rsp, sizeof(add_rsp)))) {
		size_t at = (size_t)(p - code), call = call_before(code, at), from;

		p++;
		if (!call || at + ADD_SIZE > size || code[at + 3] > 0x7f || at - call < done)
			continue;
		from = at - call > done + WINDOW_MAX ? at - call - WINDOW_MAX : done;
		for (size_t i = at - call; i >= from + sizeof(sub_8); i--) {
			if (memcmp(code + i - sizeof(sub_8), sub_8, sizeof(sub_8)))
				continue;
			add(writer, addr + i, 8);
			break;
		}
		add(writer, addr + at - call, code[at + 3]);
		add(writer, addr + at + ADD_SIZE, 0);
		done = at + ADD_SIZE;
	}
}

static int cover(const struct elf_file *elf, uint64_t start, uint64_t end,
		 struct table_writer *writer)
{
	_cleanup_free_ uint8_t *code = malloc(PIECE);

	if (!code)
		return -ENOMEM;
	for (uint64_t at = start; at < end;) {
		size_t size = end - at < PIECE ? end - at : PIECE;
		int r = elf_file_read_vaddr(elf, at, code, size);

		if (r < 0)
			return r;
		add(writer, at, 0);
		cover_calls(code, size, at, writer);
		at += size;
	}
	return 0;
}

int ghc_code_cover(const struct elf_file *elf, uint64_t start, uint64_t end,
		   struct table_writer *writer)
{
	const union cfi_rule first = { .rule = { .cfa = CFA_END } };
	const union cfi_rule other = { .rule = { .cfa = CFA_FRAME_POINTER } };
	uint64_t entry = elf->entry;
	int r;

	if (!entry || entry < start || entry >= end)
		return cover(elf, start, end, writer);
	r = cover(elf, start, entry, writer);
	table_writer_add(writer, entry, &first);
	if (end - entry > ENTRY_SIZE)
		table_writer_add(writer, entry + ENTRY_SIZE, &other);
	if (!r && end - entry > RUNTIME_SIZE)
		r = cover(elf, entry + RUNTIME_SIZE, end, writer);
	return r;
}
