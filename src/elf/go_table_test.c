// SPDX-License-Identifier: Apache-2.0
#include "elf/go_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

/*
 * Tables of two functions: "main.outer" at 0x1000, 64 bytes, in file "a.go", of which 16 to 32 are
 * "main.leaf" inlined at line 7; "main.other" behind it.
 */
enum {
	TEXT = 0x1000,
	TEXT_SIZE = 0x60,
	TABLE = 0x2000,
	MODULE = 0x3000,
	TREE = 0x4000,
	SIZE = 0x400,
	NAMES = 0x80,
	UNITS = 0xc0,
	FILES = 0xd0,
	VALUES = 0xe0,
	FUNCTIONS = 0x100,
	RECORD = 0x60,
};

static const char names[] = "\0main.outer\0main.leaf\0main.other";
enum { OUTER = 1, LEAF = 12, OTHER = 22 };

/* Steps: the change of the value (from -1, sign in the lowest bit), and how many bytes have it. */
static const uint8_t values[] = {
	2,  2,	32, 62, 0,	  /* stack size */
	2,  64, 0,		  /* file */
	12, 16, 8,  16, 7, 32, 0, /* line */
	0,  16, 2,  16, 1, 32, 0, /* inlined */
};
enum { STACK = 1, FILE_STEPS = 6, LINE_STEPS = 9, INLINED_STEPS = 16 };

static void put(uint8_t *table, size_t at, uint64_t value, size_t size)
{
	ck_assert(at + size <= SIZE);
	memcpy(table + at, &value, size);
}

static void put_function(uint8_t *table, enum go_table_layout layout, size_t i, uint64_t entry,
			 uint32_t name)
{
	size_t entry_size = layout >= GO_TABLE_1_18 ? 4 : 8;
	size_t first = layout == GO_TABLE_1_2 ? 16 : FUNCTIONS;
	size_t at = FUNCTIONS + RECORD * (i + 1);
	size_t base = layout == GO_TABLE_1_2 ? 0 : FUNCTIONS;
	uint32_t name_base = layout == GO_TABLE_1_2 ? NAMES : 0;
	uint32_t value_base = layout == GO_TABLE_1_2 ? VALUES : 0;

	put(table, first + 2 * entry_size * i, entry, entry_size);
	put(table, first + 2 * entry_size * i + entry_size, at - base, entry_size);
	put(table, at, entry, entry_size);
	at += entry_size;
	put(table, at, name_base + name, 4);
	put(table, at + 12, value_base + STACK, 4);
	put(table, at + 16, value_base + FILE_STEPS, 4);
	put(table, at + 20, value_base + LINE_STEPS, 4);
	if (layout == GO_TABLE_1_2)
		return;
	put(table, at + 24, i ? 0 : 3, 4);
	at += 32;
	if (layout == GO_TABLE_1_20) {
		put(table, at, 4, 4);
		at += 4;
	}
	put(table, at + 3, i ? 0 : 4, 1);
	at += 4;
	if (i)
		return;
	put(table, at + 8, INLINED_STEPS, 4);
	at += 12;
	for (size_t k = 0; k < 4; k++) {
		if (layout == GO_TABLE_1_16)
			put(table, ((at + 7) & ~7ul) + 8 * k, k == 3 ? TREE : 0, 8);
		else
			put(table, at + 4 * k, k == 3 ? 0 : UINT32_MAX, 4);
	}
}

static void make_table(uint8_t *table, enum go_table_layout layout)
{
	static const uint8_t magics[] = { 0xfb, 0xfa, 0xf0, 0xf1 };
	uint64_t base = layout >= GO_TABLE_1_18 ? 0 : TEXT;
	size_t entry_size = layout >= GO_TABLE_1_18 ? 4 : 8, at = 24;

	memset(table, 0, SIZE);
	memcpy(table, "\0\xff\xff\xff\0\0\1\x08", 8);
	table[0] = magics[layout];
	put(table, 8, 2, 8);
	memcpy(table + NAMES, names, sizeof(names));
	memcpy(table + VALUES + 1, values, sizeof(values));
	put_function(table, layout, 0, base, OUTER);
	put_function(table, layout, 1, base + 0x40, OTHER);
	if (layout == GO_TABLE_1_2) {
		put(table, 16 + 32, base + TEXT_SIZE, 8);
		put(table, 16 + 40, UNITS, 4);
		put(table, UNITS, 2, 4);
		put(table, UNITS + 4, FILES, 4);
		memcpy(table + FILES, "a.go", 5);
		/* Files count from 1 there, and our steps begin with 0: it is at index 0, too. */
		put(table, UNITS, FILES, 4);
		return;
	}
	if (layout >= GO_TABLE_1_18)
		at += 8;
	for (size_t k = 0; k < 5; k++) {
		static const uint64_t offsets[] = { NAMES, UNITS, FILES, VALUES, FUNCTIONS };

		put(table, at + 8 * k, offsets[k], 8);
	}
	put(table, FUNCTIONS + 4 * entry_size, base + TEXT_SIZE, entry_size);
	memcpy(table + FILES, "a.go", 5);
}

static struct elf_file *open_image(const uint8_t *table, size_t size, const char *section,
				   enum go_table_layout layout, void **ret_image)
{
	static const uint8_t code[TEXT_SIZE];
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	uint32_t tree[8] = { 0, LEAF, 4, 3, 0, 0, 0, 0 };
	uint64_t module[64] = { TABLE, TABLE + NAMES, 8, 8 };
	unsigned int text, data, tree_section;
	struct elf_file *elf = NULL;
	size_t image_size;

	if (layout < GO_TABLE_1_20)
		memcpy(tree, (uint32_t[]){ 0xffff, 0, 7, LEAF, 4 }, 20);
	module[22] = TEXT;
	module[layout == GO_TABLE_1_20 ? 40 : 38] = TREE;
	text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, code,
				  sizeof(code));
	data = elf_writer_section(w, section, SHT_PROGBITS, SHF_ALLOC, TABLE, table, size);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
	elf_writer_segment(w, PT_LOAD, PF_R, data, data);
	data = elf_writer_section(w, ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, MODULE,
				  module, sizeof(module));
	tree_section = elf_writer_section(w, ".tree", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, TREE,
					  tree, sizeof(tree));
	elf_writer_segment(w, PT_LOAD, PF_R | PF_W, data, tree_section);
	*ret_image = elf_writer_finish(w, &image_size);
	ASSERT_OK(elf_file_open_memory(*ret_image, image_size, &elf));
	return elf;
}

static void expect_steps(const struct go_table *t, const struct go_function *f,
			 enum go_values_kind kind, const struct go_step *wanted, size_t nr)
{
	struct go_values v;
	struct go_step step;

	go_values_begin(t, f, kind, &v);
	for (size_t i = 0; i < nr; i++) {
		ck_assert(go_values_next(&v, &step));
		ck_assert_msg(step.begin == wanted[i].begin && step.end == wanted[i].end &&
				      step.value == wanted[i].value,
			      "kind %d, step %zu: %u to %u has %d", kind, i, step.begin, step.end,
			      step.value);
	}
	ck_assert(!go_values_next(&v, &step));
}

static void check_first(struct go_table *t, const struct go_function *f)
{
	static const struct go_step stack[] = { { 0, 2, 0 }, { 2, 64, 16 } };
	static const struct go_step files[] = { { 0, 64, 0 } };
	static const struct go_step lines[] = { { 0, 16, 5 }, { 16, 32, 9 }, { 32, 64, 5 } };
	static const struct go_step inlined[] = { { 0, 16, -1 }, { 16, 32, 0 }, { 32, 64, -1 } };
	struct go_inlined call;

	ck_assert_uint_eq(f->start, TEXT);
	ck_assert_uint_eq(f->end, TEXT + 0x40);
	ASSERT_STR(go_table_function_name(t, f), "main.outer");
	ASSERT_STR(go_table_file(t, f, 0), "a.go");
	expect_steps(t, f, GO_STACK_SIZE, stack, 2);
	expect_steps(t, f, GO_FILE, files, 1);
	expect_steps(t, f, GO_LINE, lines, 3);
	if (t->layout == GO_TABLE_1_2)
		return;
	expect_steps(t, f, GO_INLINED, inlined, 3);
	ASSERT_OK(go_table_inlined(t, f, 0, &call));
	ASSERT_STR(go_table_name(t, call.name), "main.leaf");
	ck_assert_uint_eq(call.parent_pc, 4);
	ck_assert_uint_eq(f->start_line, t->layout == GO_TABLE_1_20 ? 4 : 0);
	ck_assert_int_eq(go_table_inlined(t, f, 1 << 30, &call), -ENOENT);
}

/* Each layout, with a section of its own and merged into another. */
TEST(layouts)
{
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab",
						".data.rel.ro" };
	uint8_t bytes[SIZE];

	for (int i = 0; i < 12; i++) {
		enum go_table_layout layout = i / 3;
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		_cleanup_free_ void *image = NULL;
		struct go_function f;
		struct go_table t;

		make_table(bytes, layout);
		elf = open_image(bytes, SIZE, sections[i % 3], layout, &image);
		ck_assert(go_made(elf));
		ck_assert_uint_ge(go_table_bytes(elf), SIZE);
		ASSERT_OK(go_table_read(elf, &t));
		ck_assert_uint_eq(t.nr_functions, 2);
		ck_assert_int_eq(t.layout, layout);
		ASSERT_OK(go_table_function(&t, 0, &f));
		check_first(&t, &f);
		ASSERT_OK(go_table_function(&t, 1, &f));
		ASSERT_STR(go_table_function_name(&t, &f), "main.other");
		ck_assert_int_eq(go_table_function(&t, 2, &f), -ENOENT);
		go_table_fini(&t);
	}
}

static void read_all(const struct elf_file *elf)
{
	struct go_table t;

	if (go_table_read(elf, &t))
		return;
	for (uint32_t i = 0; i < t.nr_functions; i++) {
		struct go_function f;
		struct go_inlined call;
		struct go_step step;

		if (go_table_function(&t, i, &f))
			continue;
		go_table_function_name(&t, &f);
		for (int kind = GO_STACK_SIZE; kind <= GO_INLINED; kind++) {
			struct go_values v;

			go_values_begin(&t, &f, kind, &v);
			while (go_values_next(&v, &step)) {
				ck_assert_uint_lt(step.begin, step.end);
				ck_assert_uint_le(step.end, f.end - f.start);
				go_table_file(&t, &f, step.value);
				go_table_inlined(&t, &f, (uint32_t)step.value, &call);
			}
		}
	}
	go_table_fini(&t);
}

/* Whatever stands in it, nothing outside of it is read (ASan), and every walk ends. */
TEST(malformed)
{
	uint8_t bytes[SIZE];

	srand(3);
	for (int i = 0; i < 1500; i++) {
		enum go_table_layout layout = i % 4;
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		_cleanup_free_ void *image = NULL;
		size_t size = i % 3 ? SIZE : (size_t)rand() % SIZE + 1;

		make_table(bytes, layout);
		for (int k = rand() % 4; k; k--)
			bytes[8 + rand() % (SIZE - 8)] = rand() % 3 ? (uint8_t)rand() : 0xff;
		elf = open_image(bytes, size, ".gopclntab", layout, &image);
		read_all(elf);
	}
}

/* Functions that do not ascend would overlap, and reading them would have no end. */
TEST(functions_that_overlap)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	uint8_t bytes[SIZE];
	struct go_table t;

	make_table(bytes, GO_TABLE_1_20);
	put(bytes, FUNCTIONS + 16, 0x20, 4);
	elf = open_image(bytes, SIZE, ".gopclntab", GO_TABLE_1_20, &image);
	ck_assert_int_eq(go_table_read(elf, &t), -ENOENT);
}
