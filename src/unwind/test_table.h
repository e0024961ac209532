/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of unwind tables: files that are made up, built into tables, and what these say. */
#pragma once

#include "unwind/unwind_table.h"

#include <stdlib.h>
#include <string.h>

#include "cfi_writer.h"
#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

enum { TEXT = 0x1000, TEXT_SIZE = 0x1000, FRAMES = 0x3000, HDR = 0x2ff0 };

#define X86_INITIAL CFI_BYTES(0x0c, 7, 8, 0x90, 1)
#define A64_INITIAL CFI_BYTES(0x0c, 31, 0)

static uint8_t text[TEXT_SIZE];
static struct unwind_table *table;
static unsigned int follow;

static inline void build(void *image, size_t size)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;

	unwind_table_free(table);
	table = NULL;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(unwind_table_build(elf, follow, &table));
	free(image);
}

static inline void build_finished(struct elf_writer *w)
{
	size_t size;
	void *image = elf_writer_finish(w, &size);

	build(image, size);
}

static inline struct elf_writer *writer_with_text(uint16_t machine)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, machine);
	unsigned int s = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					    TEXT, text, sizeof(text));

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	return w;
}

static inline void build_program(uint16_t machine, const char *name,
				 const struct cfi_writer *frames, uint64_t entry)
{
	struct elf_writer *w = writer_with_text(machine);
	size_t size;
	void *image;

	if (frames)
		elf_writer_section(w, name, SHT_PROGBITS, SHF_ALLOC, FRAMES, frames->data,
				   frames->size);
	image = elf_writer_finish(w, &size);
	elf_image_header(image)->e_entry = entry;
	build(image, size);
}

static inline void build_with(uint16_t machine, const char *name, const struct cfi_writer *frames)
{
	build_program(machine, name, frames, 0);
}

static inline void expect(uint64_t addr, int cfa, int reg, int off)
{
	const struct unwind_rule *rule = unwind_table_find(table, addr);

	ck_assert_msg(rule->cfa == cfa && rule->cfa_reg == reg && rule->cfa_off == off,
		      "%#lx: %d: %d + %d, not %d: %d + %d", (long)addr, rule->cfa, rule->cfa_reg,
		      rule->cfa_off, cfa, reg, off);
}

static inline void put_code(uint64_t addr, const uint8_t *code, size_t size)
{
	memcpy(text + (addr - TEXT), code, size);
}

/* --- CFI ------------------------------------------------------------------------------------- */

static inline void put_words(uint64_t addr, const uint32_t *words, size_t nr)
{
	memcpy(text + (addr - TEXT), words, nr * 4);
}
#define WORDS(...) (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4
