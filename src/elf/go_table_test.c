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
	FAR = 0x5000,
	SIZE = 0x400,
	NAMES = 0x80,
	UNITS = 0xc0,
	FILES = 0xd0,
	VALUES = 0xe0,
	FUNCTIONS = 0x100,
	RECORD = 0x60,
	HEADER = 72,
	MODULE_BYTES = 64 << 20, /* that are searched */
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

/* moduledata may stand at the end of `far_size` bytes, behind `nr_false` that only begin alike. */
struct module_place {
	const char *section;
	size_t far_size, nr_false;
};

static unsigned int put_far(struct elf_writer *w, const uint64_t *module, size_t size,
			    const struct module_place *place)
{
	_cleanup_free_ uint8_t *bytes = calloc(1, place->far_size);
	uint64_t table = TABLE;

	ck_assert(bytes && size + place->nr_false * 8 <= place->far_size);
	for (size_t i = 0; i < place->nr_false; i++)
		memcpy(bytes + 8 * i, &table, 8);
	memcpy(bytes + place->far_size - size, module, size);
	return elf_writer_section(w, place->section, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, FAR,
				  bytes, place->far_size);
}

/* A program for aarch64, by ld: what it has in a module's words is not what ld.so makes of them. */
static bool by_ld;

static void put_relocations(struct elf_writer *w, uint64_t *module)
{
	static const size_t words[] = { 1, 22, 40 };
	Elf64_Rela relas[4] = { 0 };

	for (size_t i = 0; i < 3; i++) {
		relas[i] = (Elf64_Rela){ MODULE + 8 * words[i], ELF64_R_INFO(0, R_AARCH64_RELATIVE),
					 (Elf64_Sxword)module[words[i]] };
		module[words[i]] += 0x48;
	}
	/* Another kind. */
	relas[3] = (Elf64_Rela){ MODULE, ELF64_R_INFO(1, R_AARCH64_ABS64), 1 };
	elf_writer_section(w, ".rela.dyn", SHT_RELA, 0, 0, relas, sizeof(relas));
}

static struct elf_file *open_placed(const uint8_t *table, size_t size, const char *section,
				    enum go_table_layout layout, const struct module_place *place,
				    void **ret_image)
{
	static const uint8_t code[TEXT_SIZE];
	struct elf_writer *w = elf_writer_new(ET_DYN, by_ld ? EM_AARCH64 : EM_X86_64);
	uint32_t tree[8] = { 0, LEAF, 4, 3, 0, 0, 0, 0 };
	uint64_t module[64] = { TABLE, TABLE + NAMES, 8, 8 };
	unsigned int text, data, last;
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
	if (by_ld)
		put_relocations(w, module);
	data = elf_writer_section(w, ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, MODULE,
				  place ? NULL : module, sizeof(module));
	last = elf_writer_section(w, ".tree", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, TREE, tree,
				  sizeof(tree));
	if (place)
		last = put_far(w, module, sizeof(module), place);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_W, data, last);
	*ret_image = elf_writer_finish(w, &image_size);
	ASSERT_OK(elf_file_open_memory(*ret_image, image_size, &elf));
	return elf;
}

static struct elf_file *open_image(const uint8_t *table, size_t size, const char *section,
				   enum go_table_layout layout, void **ret_image)
{
	return open_placed(table, size, section, layout, NULL, ret_image);
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
		ck_assert_uint_eq(go_table_first(&t, 0), 0);
		ck_assert_uint_eq(go_table_first(&t, TEXT), 0);
		ck_assert_uint_eq(go_table_first(&t, TEXT + 1), 1);
		ck_assert_uint_eq(go_table_first(&t, TEXT + 0x40), 1);
		ck_assert_uint_eq(go_table_first(&t, TEXT + 0x41), 2);
		ck_assert_uint_eq(go_table_first(&t, UINT64_MAX), 2);
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

/* The array of functions has no room in what is left of the table: there are none, whatever it
 * says. */
TEST(more_functions_than_there_is_room_for)
{
	for (int i = 0; i < 6; i++) {
		enum go_table_layout layout = i % 2 ? GO_TABLE_1_20 : GO_TABLE_1_16;
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		_cleanup_free_ void *image = NULL;
		uint8_t bytes[SIZE];
		struct go_table t;

		make_table(bytes, layout);
		put(bytes, 8, i < 2 ? UINT32_MAX : UINT64_MAX - 1, 8);
		put(bytes, layout == GO_TABLE_1_20 ? 64 : 56, SIZE - (i < 4 ? 0 : 4), 8);
		elf = open_image(bytes, SIZE, ".gopclntab", layout, &image);
		ck_assert_int_eq(go_table_read(elf, &t), -ENOENT);
	}
}

/* Records that functions share would make few bytes much work. */
TEST(each_function_has_a_record)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	uint8_t bytes[SIZE];
	struct go_table t;

	make_table(bytes, GO_TABLE_1_20);
	put(bytes, 8, 60, 8);
	for (uint64_t i = 1; i <= 60; i++) {
		put(bytes, FUNCTIONS + 8 * i, TEXT_SIZE, 4);
		put(bytes, FUNCTIONS + 8 * i + 4, 0x200, 4);
	}
	put(bytes, FUNCTIONS + 4, 0x220, 4);
	put(bytes, FUNCTIONS + 0x200, TEXT_SIZE, 4);
	elf = open_image(bytes, SIZE, ".gopclntab", GO_TABLE_1_20, &image);
	ck_assert_int_eq(go_table_read(elf, &t), -ENOENT);
}

/* Code that the file claims to have, and has not. */
TEST(code_beyond_the_end)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	uint8_t bytes[SIZE];
	struct go_table t;

	make_table(bytes, GO_TABLE_1_20);
	put(bytes, FUNCTIONS + 16, UINT32_MAX, 4);
	elf = open_image(bytes, SIZE, ".gopclntab", GO_TABLE_1_20, &image);
	ck_assert_int_eq(go_table_read(elf, &t), -ENOENT);
	elf->segments[0].filesz = 1ull << 40;
	ck_assert_int_eq(go_table_read(elf, &t), -ENOENT);
}

/* A segment of `size` bytes that has, `from` its begin on, `nr` headers of tables that are none;
 * the true table is at its end. */
static int read_behind(size_t size, size_t from, size_t nr, bool are_sane)
{
	_cleanup_free_ uint8_t *bytes = calloc(1, size);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	struct go_table t;
	int r;

	ck_assert(bytes && from + nr * HEADER <= size - SIZE);
	make_table(bytes + size - SIZE, GO_TABLE_1_16);
	for (size_t i = 0; i < nr; i++) {
		uint8_t *at = bytes + from + HEADER * i;

		memcpy(at, bytes + size - SIZE, HEADER);
		if (!are_sane)
			memset(at + 8, 0xff, 8);
	}
	elf = open_image(bytes, size, ".data.rel.ro", GO_TABLE_1_16, &image);
	r = go_table_read(elf, &t);
	if (!r)
		go_table_fini(&t);
	return r;
}

/*
 * What only looks like a table costs a look at its header. Where that is sane all of the rest is
 * read: neither many times nor, where that is all of a large segment, again and again.
 */
TEST(search_has_an_end)
{
	enum { SEGMENT = MODULE - TABLE, NEAR = SEGMENT - SIZE - 8 * HEADER };

	ASSERT_OK(read_behind(SEGMENT, 0, 40, false));
	ASSERT_OK(read_behind(SEGMENT, 0, 1, true));
	ASSERT_OK(read_behind(SEGMENT, NEAR, 7, true));
	ck_assert_int_eq(read_behind(SEGMENT, NEAR, 8, true), -ENOENT);
	ck_assert_int_eq(read_behind(SEGMENT, 0, 7, true), -ENOENT);
}

/* The header lies on the border of what is read at once. */
TEST(search_over_pieces)
{
	enum { PIECE = 256 << 10 };

	for (size_t i = 8; i <= HEADER; i += 8) {
		size_t size = PIECE - i + SIZE;
		_cleanup_free_ uint8_t *bytes = calloc(1, size);
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
		_cleanup_free_ void *image = NULL;
		static const uint8_t code[TEXT_SIZE];
		unsigned int section;
		struct go_table t;
		size_t image_size;

		ck_assert_ptr_nonnull(bytes);
		make_table(bytes + size - SIZE, GO_TABLE_1_16);
		section = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					     TEXT, code, sizeof(code));
		elf_writer_segment(w, PT_LOAD, PF_R | PF_X, section, section);
		section = elf_writer_section(w, ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC, TABLE,
					     bytes, size);
		elf_writer_segment(w, PT_LOAD, PF_R, section, section);
		image = elf_writer_finish(w, &image_size);
		ASSERT_OK(elf_file_open_memory(image, image_size, &elf));
		ASSERT_OK(go_table_read(elf, &t));
		ck_assert_uint_eq(t.nr_functions, 2);
		go_table_fini(&t);
	}
}

/* A section that says nothing of what is read instead does not hide how much that is. */
TEST(bytes_of_a_section_without_bytes)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	uint8_t bytes[SIZE];

	make_table(bytes, GO_TABLE_1_20);
	elf = open_image(bytes, SIZE, ".gopclntab", GO_TABLE_1_20, &image);
	for (size_t i = 0; i < elf->nr_sections; i++) {
		if (strcmp(elf->sections[i].name, ".gopclntab"))
			continue;
		elf->sections[i].type = SHT_NOBITS;
		elf->sections[i].size = 0;
	}
	ck_assert_uint_ge(go_table_bytes(elf), SIZE);
}

static bool finds_module(const char *section, size_t far_size, size_t nr_false)
{
	const struct module_place place = { section, far_size, nr_false };
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	struct go_inlined call;
	struct go_function f;
	uint8_t bytes[SIZE];
	struct go_table t;
	bool found;

	make_table(bytes, GO_TABLE_1_20);
	put(bytes, 24, TEXT, 8);
	elf = open_placed(bytes, SIZE, ".gopclntab", GO_TABLE_1_20, &place, &image);
	if (strcmp(section, ".go.module"))
		ck_assert_uint_ge(go_table_bytes(elf),
				  SIZE + (far_size < MODULE_BYTES ? far_size : MODULE_BYTES));
	ASSERT_OK(go_table_read(elf, &t));
	ASSERT_OK(go_table_function(&t, 0, &f));
	found = !go_table_inlined(&t, &f, 0, &call);
	go_table_fini(&t);
	return found;
}

/* Since 1.26 the table does not say where code begins. */
TEST(module_of_aarch64_is_relocated)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	struct go_inlined call;
	struct go_function f;
	uint8_t bytes[SIZE];
	struct go_table t;

	make_table(bytes, GO_TABLE_1_20);
	put(bytes, 24, 0, 8);
	by_ld = true;
	elf = open_image(bytes, SIZE, ".gopclntab", GO_TABLE_1_20, &image);
	by_ld = false;
	ASSERT_OK(go_table_read(elf, &t));
	ASSERT_EQ(t.text, TEXT);
	ASSERT_OK(go_table_function(&t, 0, &f));
	ASSERT_OK(go_table_inlined(&t, &f, 0, &call));
	go_table_fini(&t);
}

/* Without moduledata, which tells of inlined calls, the table is there all the same. */
TEST(search_for_the_module_has_an_end)
{
	ck_assert(finds_module(".noptrdata", 0x1000, 0));
	ck_assert(finds_module(".noptrdata", 0x1000, 63));
	ck_assert(!finds_module(".noptrdata", 0x1000, 64));
	ck_assert(finds_module(".noptrdata", MODULE_BYTES - 0x10000, 0));
	ck_assert(!finds_module(".noptrdata", MODULE_BYTES + 0x1000, 0));
	/* Where there is a section for it, nothing is searched, nor counted. */
	ck_assert(finds_module(".go.module", 64 * 8, 0));
	ck_assert(!finds_module(".go.module", 0x1000, 0));
}
