// SPDX-License-Identifier: Apache-2.0
/*
 * A file of any code and any call frame information: the table that comes of it must be one that
 * the walker can search. Input: a byte of choices, the code's size (2 bytes), code, frames.
 */
#include "fuzz.h"
#include "unwind/code_follow.h"
#include "unwind/unwind_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf_writer.h"

enum {
	TEXT = 0x1000,
	FRAMES = 0x20000,
	IS_A64 = 1,
	IS_DEBUG = 2,
	HAS_ENTRY = 4,
	IS_PLT = 8,
	IS_BOTH = 16
};

static void *make_image(const uint8_t *data, size_t size, size_t *ret_size)
{
	size_t code = data[1] | data[2] << 8;
	struct elf_writer *w = elf_writer_new(ET_DYN, data[0] & IS_A64 ? EM_AARCH64 : EM_X86_64);
	unsigned int text;
	void *image;

	if (code > size - 3)
		code = size - 3;
	text = elf_writer_section(w, data[0] & IS_PLT ? ".plt" : ".text", SHT_PROGBITS,
				  SHF_ALLOC | SHF_EXECINSTR, TEXT, data + 3, code);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
	if (!(data[0] & IS_DEBUG) || data[0] & IS_BOTH)
		elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAMES, data + 3 + code,
				   size - 3 - code);
	if (data[0] & (IS_DEBUG | IS_BOTH))
		elf_writer_section(w, ".debug_frame", SHT_PROGBITS, 0, 0, data + 3 + code,
				   size - 3 - code);
	image = elf_writer_finish(w, ret_size);
	if (data[0] & HAS_ENTRY)
		elf_image_header(image)->e_entry = TEXT;
	return image;
}

static void check(const struct unwind_table *table)
{
	uint32_t first = 0;

	for (uint32_t b = 0; b < table->nr_buckets; b++) {
		uint32_t nr = BUCKET_NR(table->buckets[b]);

		if (BUCKET_FIRST(table->buckets[b]) != first || first + nr > table->nr_rows)
			abort();
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t row = table->rows[first + i];

			if (ROW_RULE(row) >= table->nr_rules)
				abort();
			if (i && row >> 24 <= table->rows[first + i - 1] >> 24)
				abort();
		}
		first += nr;
	}
	if (first != table->nr_rows)
		abort();
	for (uint64_t at = table->start; at < table->start + table->nr_buckets * 256ull; at += 7)
		if (unwind_table_find(table, at)->cfa > CFA_FRAME_POINTER)
			abort();
}

/* Sorted rows, of which one knows the address, and an end. */
static void follow(const struct elf_file *elf, uint64_t addr, bool is_caller)
{
	struct code_rows rows;
	const struct code_row *at = NULL;

	if (code_follow(elf, addr, is_caller, &rows))
		return;
	for (size_t i = 0; i < rows.rows.nr; i++) {
		if (i && rows.rows.items[i].addr <= rows.rows.items[i - 1].addr)
			abort();
		if (rows.rows.items[i].addr <= addr)
			at = &rows.rows.items[i];
	}
	if (!at || !at->known || rows.rows.items[rows.rows.nr - 1].known)
		abort();
	code_rows_fini(&rows);
}

FUZZER(data, size)
{
	struct unwind_table *table;
	struct elf_file *elf;
	size_t image_size;
	void *image;

	if (size < 3)
		return 0;
	image = make_image(data, size, &image_size);
	if (elf_file_open_memory(image, image_size, &elf) == 0) {
		if (unwind_table_build(elf, 0, &table) == 0) {
			check(table);
			unwind_table_free(table);
		}
		follow(elf, TEXT + (data[2] & 63), false);
		follow(elf, TEXT + (data[2] & 63), true);
		elf_file_free(elf);
	}
	free(image);
	return 0;
}
