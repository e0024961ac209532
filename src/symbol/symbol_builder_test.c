// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_builder.h"
#include "symbol/symbol_builder_internal.h"
#include "symbol/symbol_table.h"
#include "test.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_writer.h"
#include "util/cleanup.h"

static struct symbol_table *open_table(int fd)
{
	struct symbol_table *t = NULL;

	ASSERT_OK(symbol_table_open_fd(fd, &t));
	return t;
}

/* --- ELF symbols ------------------------------------------------------------------------------ */

static struct symbol_table *build_elf(const struct elf_file *elf)
{
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	struct symbol_builder_options options = { .no_debug_info = true };

	int r = symbol_table_build(elf, &options, fd, NULL);

	/* -ENOENT: an empty table. */
	if (r != -ENOENT)
		ASSERT_OK(r);
	return open_table(fd);
}

static void expect_same(const struct symbol_table *t, const struct elf_symbols *symbols,
			uint64_t addr)
{
	const struct elf_symbol *symbol = elf_symbols_find(symbols, addr);
	struct symbol_frame frame;
	size_t nr = symbol_table_find(t, addr, true, &frame, 1);

	ck_assert_msg(nr ? symbol && !strcmp(symbol->name, frame.name) : !symbol,
		      "0x%llx: %s, not %s", (unsigned long long)addr, nr ? frame.name : "nothing",
		      symbol ? symbol->name : "nothing");
}

/* Whatever elf_symbols_find() says of an address, the table says. */
TEST(symbols_of_made_up_files)
{
	static const char code[0x1000];

	srand(7);
	for (int round = 0; round < 60; round++) {
		struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
		unsigned int text = elf_writer_section(
			w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, 0x400);
		unsigned int cold = elf_writer_section(
			w, ".cold", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x2000, code, 0x200);
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
		_cleanup_free_ void *image = NULL;
		struct elf_symbols symbols;
		size_t size;

		for (int i = 0; i < 1 + round % 30; i++) {
			char name[16];

			snprintf(name, sizeof(name), "s%d", i);
			elf_writer_symbol(w, SHT_SYMTAB, name, STB_GLOBAL,
					  rand() % 4 ? STT_FUNC : STT_NOTYPE,
					  rand() % 2 ? text : cold, 0x1000 + rand() % 0x1200,
					  rand() % 3 ? rand() % 0x80 : 0);
		}
		image = elf_writer_finish(w, &size);
		ASSERT_OK(elf_file_open_memory(image, size, &elf));
		ASSERT_OK(elf_symbols_read(elf, &symbols));
		t = build_elf(elf);
		/* What covers addresses outside of all code is no function's. */
		for (uint64_t addr = 0x1000; addr < 0x1400; addr++)
			expect_same(t, &symbols, addr);
		for (uint64_t addr = 0x2000; addr < 0x2200; addr++)
			expect_same(t, &symbols, addr);
		elf_symbols_fini(&symbols);
	}
}

TEST(symbols_of_this_program)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	const struct elf_section *text;
	struct elf_symbols symbols;
	uint64_t step;

	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	ASSERT_OK(elf_symbols_read(elf, &symbols));
	t = build_elf(elf);
	text = elf_file_section(elf, ".text");
	ASSERT_PTR_NONNULL(text);
	/* Every byte takes sanitizers, which add to the text too, twelve seconds. */
	step = text->size / 20000 | 1;
	for (uint64_t addr = text->addr; addr < text->addr + text->size; addr += step)
		expect_same(t, &symbols, addr);
	/* What changes, changes there. */
	ASSERT(symbols.nr > 100);
	for (size_t i = 0; i < symbols.nr; i++) {
		const struct elf_symbol *symbol = &symbols.items[i];

		if (symbol->addr < text->addr ||
		    symbol->addr + symbol->size >= text->addr + text->size)
			continue;
		for (int d = -1; d <= 1; d++) {
			expect_same(t, &symbols, symbol->addr + (uint64_t)d);
			expect_same(t, &symbols, symbol->addr + symbol->size + (uint64_t)d);
		}
	}
	elf_symbols_fini(&symbols);
}

TEST(a_file_without_symbols)
{
	static const char code[16];
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	_cleanup_free_ void *image = NULL;
	struct symbol_builder_options options = { .no_debug_info = true };
	struct symbol_table_info info;
	size_t size;

	elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, 16);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_ERR(symbol_table_build(elf, &options, fd, NULL), ENOENT);
	t = open_table(fd);
	symbol_table_info(t, &info);
	ASSERT_EQ(info.nr_functions, 0);
}

TEST(long_names_are_cut)
{
	static const char code[32];
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	_cleanup_free_ void *image = NULL;
	char fits[SYMBOL_NAME_MAX + 1] = { 0 }, longer[SYMBOL_NAME_MAX + 2] = { 0 };
	struct symbol_frame frame;
	unsigned int text;
	size_t size;

	memset(fits, 'a', sizeof(fits) - 1);
	memset(longer, 'b', sizeof(longer) - 1);
	text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code,
				  32);
	elf_writer_symbol(w, SHT_SYMTAB, fits, STB_GLOBAL, STT_FUNC, text, 0x1000, 16);
	elf_writer_symbol(w, SHT_SYMTAB, longer, STB_GLOBAL, STT_FUNC, text, 0x1010, 16);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	t = build_elf(elf);
	ASSERT_EQ(symbol_table_find(t, 0x1000, true, &frame, 1), 1);
	ASSERT_STR(frame.name, fits);
	ASSERT_EQ(symbol_table_find(t, 0x1010, true, &frame, 1), 1);
	ASSERT_EQ(strlen(frame.name), SYMBOL_NAME_MAX);
	ASSERT(!strncmp(frame.name, longer, SYMBOL_NAME_MAX - 3));
	ASSERT_STR(frame.name + SYMBOL_NAME_MAX - 3, "...");
}

TEST(relocatable_files_are_refused)
{
	struct elf_writer *w = elf_writer_new(ET_REL, EM_X86_64);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	struct symbol_builder_options options = { 0 };
	size_t size;

	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_ERR(symbol_table_build(elf, &options, -1, NULL), ENOTSUP);
}

/* --- this program's own debug information ----------------------------------------------------- */

struct place {
	uint64_t pc;
	uint32_t line, inner_line, outer_line;
};

__attribute__((noinline)) static uint64_t caller_pc(void)
{
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

static inline __attribute__((always_inline)) void inlined_twice(struct place *p)
{
	p->line = __LINE__ + 1;
	p->pc = caller_pc() - 1;
	__asm__ volatile("" ::: "memory");
}

static inline __attribute__((always_inline)) void inlined_once(struct place *p)
{
	p->inner_line = __LINE__ + 1;
	inlined_twice(p);
}

__attribute__((noinline)) static void real_function(struct place *p)
{
	p->outer_line = __LINE__ + 1;
	inlined_once(p);
}

static int find_bias(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1; /* the first one is the program */
}

TEST(inlined_calls_of_this_program)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	struct symbol_builder_options options = { .search.max_bytes = SIZE_MAX };
	struct symbol_builder_stats stats;
	struct symbol_frame frames[4];
	struct place p;
	uint64_t bias;

	real_function(&p);
	dl_iterate_phdr(find_bias, &bias);
	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	if (!elf_file_section(elf, ".debug_info"))
		return; /* built without -g */
	ASSERT_OK(symbol_table_build(elf, &options, fd, &stats));
	ASSERT_EQ(stats.dwarf.bad_units, 0);
	t = open_table(fd);
	ASSERT_EQ(symbol_table_find(t, p.pc - bias, true, frames, 4), 3);
	ASSERT_STR(frames[0].name, "inlined_twice");
	ASSERT_EQ(frames[0].line, p.line);
	ASSERT_STR(frames[1].name, "inlined_once");
	ASSERT_EQ(frames[1].line, p.inner_line);
	ASSERT_STR(frames[2].name, "real_function");
	ASSERT_EQ(frames[2].line, p.outer_line);
	ASSERT(frames[0].start_line < frames[0].line && frames[2].start_line < frames[2].line);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(frames[i].language, SYMBOL_LANGUAGE_C);
		ASSERT_PTR_NONNULL(strstr(frames[i].file, "symbol_builder_test.c"));
	}
	ASSERT_EQ(symbol_table_find(t, p.pc - bias, false, frames, 4), 1);
	ASSERT_STR(frames[0].name, "real_function");
	ASSERT_EQ(frames[0].line, p.outer_line);
}

/* Too little memory for the debug information: a table of symbols, which says so. */
TEST(debug_information_that_is_too_big)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	struct symbol_builder_options options = { .search.max_bytes = 1000 };
	struct symbol_table_info info;

	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	if (!elf_file_section(elf, ".debug_info"))
		return;
	ASSERT_OK(symbol_table_build(elf, &options, fd, NULL));
	t = open_table(fd);
	symbol_table_info(t, &info);
	ASSERT(info.is_partial && !info.has_lines && !info.has_inlines);
	ASSERT(info.nr_functions > 10);
}

/* --- units made by hand ----------------------------------------------------------------------- */

enum { BASE = 0x1000, CODE_SIZE = 0x1000 };

static void begin(struct builder *b, int *ret_fd)
{
	*b = (struct builder){ .base = BASE };
	*ret_fd = memfd_create("test", MFD_CLOEXEC);
	ASSERT_OK(symbol_writer_new(*ret_fd, &b->writer));
	ASSERT_OK(vec_push(&b->code, (struct code_span){ 0, CODE_SIZE }));
}

static void add_symbol(struct builder *b, const char *name, uint64_t begin_addr, uint64_t end_addr,
		       bool sized)
{
	struct symbol_span s = { .begin = (uint32_t)(begin_addr - BASE),
				 .end = (uint32_t)(end_addr - BASE),
				 .symbol = (uint32_t)(begin_addr - BASE),
				 .sized = sized,
				 .function = IMAGE_NONE };

	ASSERT_OK(symbol_writer_string(b->writer, name, &s.name));
	ASSERT_OK(vec_push(&b->symbols, s));
	ASSERT_OK(vec_push(&b->ranges.items, (struct span){ .begin = s.begin,
							    .end = s.end,
							    .data = (uint32_t)b->symbols.nr - 1,
							    .flags = SPAN_SYMBOL }));
}

static struct symbol_table *end(struct builder *b, int fd)
{
	struct image_header header = { .base = BASE };
	struct symbol_table *t;

	ASSERT_OK(builder_merge(b));
	ASSERT_OK(symbol_writer_finish(b->writer, &header));
	builder_fini(b);
	t = open_table(fd);
	close(fd);
	return t;
}

/* "g:20<f:10<main:5": innermost first, with lines. */
static const char *chain(const struct symbol_table *t, uint64_t addr)
{
	static char text[1024];
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t nr = symbol_table_find(t, addr, true, frames, SYMBOL_FRAMES_MAX), len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s:%u", i ? "<" : "",
					frames[i].name, frames[i].line);
	return text;
}

static const char *files[] = { "/a.c", "/b.h" };

TEST(a_unit_with_inlined_calls)
{
	static const struct dwarf_function functions[] = {
		{ .linkage_name = "_Z4mainv", .name = "main", .file = 0, .line = 1 },
		{ .name = "f", .file = 1, .line = 2 },
		{ .name = "g", .file = DWARF_NONE, .line = 3 },
	};
	static const struct dwarf_range ranges[] = {
		{ 0x1100, 0x1200 }, { 0x1800, 0x1810 },			    /* main, cold part */
		{ 0x1110, 0x1120 }, { 0x1130, 0x1140 }, { 0x1800, 0x1808 }, /* f */
		{ 0x1134, 0x1138 },					    /* g in f */
		{ 0x1150, 0x1160 },					    /* g in main */
	};
	static const struct dwarf_scope scopes[] = {
		{ DWARF_NONE, 0, 0, 2, DWARF_NONE, 0, 0 },
		{ 0, 1, 2, 3, 0, 10, 1 },
		{ 1, 2, 5, 1, 1, 20, 1 },
		{ 0, 2, 6, 1, DWARF_NONE, 0, 0 },
	};
	static struct line_row rows[] = {
		{ 0x1100, 0, 5, 1, 0 },	       { 0x1110, 1, 7, 1, 0 },
		{ 0x1110, 1, 8, 1, 0 },	       { 0x1134, 1, 9, 1, 0 },
		{ 0x1150, 0, 0, 0, 0 },	       { 0x1160, UINT32_MAX, 3, 3, 0 },
		{ 0x1200, 0, 0, 0, LINE_END }, { 0x1800, 0, 50, 1, 0 },
		{ 0x1900, 0, 0, 0, LINE_END },
	};
	static const struct line_table lines = {
		.rows = rows, .nr_rows = 9, .files = files, .nr_files = 2
	};
	static const struct dwarf_unit unit = { .language = 0x21,
						.functions = functions,
						.nr_functions = 3,
						.scopes = scopes,
						.nr_scopes = 4,
						.ranges = ranges,
						.nr_ranges = 7,
						.lines = &lines };
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct symbol_frame frames[4];
	struct builder b;
	int fd;

	begin(&b, &fd);
	add_symbol(&b, "main", 0x1100, 0x1200, true);
	add_symbol(&b, "label", 0x1400, 0x1410, false);
	add_symbol(&b, "main.cold", 0x1800, 0x1900, true);
	ASSERT_OK(builder_add_unit(&b, &unit));
	t = end(&b, fd);
	ASSERT_STR(chain(t, 0x10ff), "");
	ASSERT_STR(chain(t, 0x1100), "main:5");
	ASSERT_STR(chain(t, 0x110f), "main:5");
	ASSERT_STR(chain(t, 0x1110), "f:8<main:10");
	ASSERT_STR(chain(t, 0x1120), "main:8");
	ASSERT_STR(chain(t, 0x1133), "f:8<main:10");
	ASSERT_STR(chain(t, 0x1134), "g:9<f:20<main:10");
	ASSERT_STR(chain(t, 0x1138), "f:9<main:10");
	ASSERT_STR(chain(t, 0x1150), "g:0<main:0");
	ASSERT_STR(chain(t, 0x1160), "main:0");
	ASSERT_STR(chain(t, 0x11ff), "main:0");
	ASSERT_STR(chain(t, 0x1200), "");
	ASSERT_STR(chain(t, 0x1400), "label:0");
	ASSERT_STR(chain(t, 0x1410), "");
	/* The cold part has a name of its own; behind what DWARF knows of it, the symbol goes on.
	 */
	ASSERT_STR(chain(t, 0x1800), "f:50<main.cold:10");
	ASSERT_STR(chain(t, 0x1808), "main.cold:50");
	ASSERT_STR(chain(t, 0x18ff), "main.cold:50");
	ASSERT_STR(chain(t, 0x1900), "");

	ASSERT_EQ(symbol_table_find(t, 0x1134, true, frames, 4), 3);
	ASSERT_STR(frames[0].file, "/b.h");
	ASSERT_STR(frames[1].file, "/b.h");
	ASSERT_STR(frames[2].file, "/a.c");
	ASSERT_EQ(frames[0].start_line, 3);
	ASSERT_EQ(frames[1].start_line, 2);
	ASSERT_EQ(frames[2].start_line, 1);
	ASSERT_EQ(frames[2].language, SYMBOL_LANGUAGE_CPP);
	ASSERT_EQ(symbol_table_find(t, 0x18ff, true, frames, 4), 1);
	ASSERT_EQ(frames[0].start_line, 1);
}

/* A unit of one function and one line, on the caller's stack. */
struct small_unit {
	struct dwarf_function function;
	struct dwarf_range range;
	struct dwarf_scope scope;
	struct line_row rows[2];
	struct line_table lines;
	struct dwarf_unit unit;
};

static void add_small_unit_of(struct builder *b, const char *name, uint64_t begin_addr,
			      uint64_t end_addr, uint32_t line, uint16_t language,
			      const char *producer)
{
	struct small_unit u = {
		.function = { .name = name, .file = 0, .line = line },
		.range = { begin_addr, end_addr },
		.scope = { .parent = DWARF_NONE, .nr_ranges = 1, .call_file = DWARF_NONE },
		.rows = { { begin_addr, 0, line, 0, 0 }, { end_addr, 0, 0, 0, LINE_END } },
	};

	u.lines =
		(struct line_table){ .rows = u.rows, .nr_rows = 2, .files = files, .nr_files = 2 };
	u.unit = (struct dwarf_unit){ .language = language,
				      .producer = producer,
				      .functions = &u.function,
				      .nr_functions = 1,
				      .scopes = &u.scope,
				      .nr_scopes = 1,
				      .ranges = &u.range,
				      .nr_ranges = 1,
				      .lines = &u.lines };
	ASSERT_OK(builder_add_unit(b, &u.unit));
}

static void add_small_unit(struct builder *b, const char *name, uint64_t begin_addr,
			   uint64_t end_addr, uint32_t line)
{
	add_small_unit_of(b, name, begin_addr, end_addr, line, 2, "");
}

/* Up to 1.17 Go's own table tells more: units of its compiler do not count, and it is read. */
TEST(debug_information_of_an_old_go)
{
	static const struct {
		const char *producer;
		uint16_t language;
		bool counts;
	} cases[] = {
		{ "Go cmd/compile go1.16.15", 0x16, false },
		{ "Go cmd/compile go1.17; regabi", 0x16, false },
		{ "Go cmd/compile go1.18.10; regabi", 0x16, true },
		{ "Go cmd/compile go1.170", 0x16, true },
		{ "GNU Go 12.2.0", 0x16, true },
		{ "Go cmd/compile go1.16.15", 0x1d, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
		struct builder b;
		int fd;

		begin(&b, &fd);
		add_symbol(&b, "symbol", 0x1000, 0x1100, true);
		add_small_unit_of(&b, "symbol", 0x1000, 0x1100, 7, cases[i].language,
				  cases[i].producer);
		ASSERT_EQ(b.has_go, cases[i].counts && cases[i].language == 0x16);
		t = end(&b, fd);
		ASSERT_STR(chain(t, 0x1010), cases[i].counts ? "symbol:7" : "symbol:0");
	}
}

TEST(folded_code_is_the_symbols)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct builder b;
	int fd;

	begin(&b, &fd);
	add_symbol(&b, "second", 0x1100, 0x1110, true);
	add_small_unit(&b, "first", 0x1100, 0x1110, 1);
	add_small_unit(&b, "second", 0x1100, 0x1110, 2);
	add_small_unit(&b, "third", 0x1100, 0x1110, 3);
	/* No symbol: the first. */
	add_small_unit(&b, "fourth", 0x1200, 0x1210, 4);
	add_small_unit(&b, "fifth", 0x1200, 0x1210, 5);
	t = end(&b, fd);
	ASSERT_STR(chain(t, 0x1100), "second:2");
	ASSERT_STR(chain(t, 0x110f), "second:2");
	ASSERT_STR(chain(t, 0x1200), "fourth:4");
}

/*
 * An inline function of two units: the linker kept the first's, whose lines go on from another
 * function, while the other unit's begin right there.
 */
TEST(lines_are_those_of_the_functions_unit)
{
	static const struct dwarf_function functions[] = { { .name = "f" }, { .name = "g" } };
	static const struct dwarf_range ranges[] = { { 0x1100, 0x1110 }, { 0x1110, 0x1120 } };
	static const struct dwarf_scope scopes[] = {
		{ DWARF_NONE, 0, 0, 1, DWARF_NONE, 0, 0 },
		{ DWARF_NONE, 1, 1, 1, DWARF_NONE, 0, 0 },
	};
	static struct line_row rows[] = {
		{ 0x1100, 0, 1, 0, 0 },
		{ 0x1110, 0, 2, 0, 0 },
		{ 0x1118, 0, 3, 0, 0 },
		{ 0x1120, 0, 0, 0, LINE_END },
	};
	static const struct line_table lines = {
		.rows = rows, .nr_rows = 4, .files = files, .nr_files = 2
	};
	static const struct dwarf_unit unit = { .language = 2,
						.functions = functions,
						.nr_functions = 2,
						.scopes = scopes,
						.nr_scopes = 2,
						.ranges = ranges,
						.nr_ranges = 2,
						.lines = &lines };
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct builder b;
	int fd;

	begin(&b, &fd);
	ASSERT_OK(builder_add_unit(&b, &unit));
	add_small_unit(&b, "g", 0x1110, 0x1120, 9);
	t = end(&b, fd);
	ASSERT_STR(chain(t, 0x110f), "f:1");
	ASSERT_STR(chain(t, 0x1110), "g:2");
	ASSERT_STR(chain(t, 0x111f), "g:3");
}

TEST(the_nearest_begin_wins)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct builder b;
	int fd;

	begin(&b, &fd);
	add_small_unit(&b, "b", 0x1200, 0x1300, 2);
	add_small_unit(&b, "bogus", 0x1010, 0x1f00, 1);
	add_small_unit(&b, "inner", 0x1240, 0x1250, 3);
	add_small_unit(&b, "late", 0x12f0, 0x1400, 4);
	add_small_unit(&b, "outside", 0x8000, 0x9000, 5);
	add_small_unit(&b, "before", 0x0, 0x1080, 6);
	t = end(&b, fd);
	ASSERT_STR(chain(t, 0x100f), "");
	ASSERT_STR(chain(t, 0x1010), "bogus:1");
	ASSERT_STR(chain(t, 0x11ff), "bogus:1");
	ASSERT_STR(chain(t, 0x1200), "b:2");
	ASSERT_STR(chain(t, 0x1240), "inner:3");
	ASSERT_STR(chain(t, 0x1250), "b:2");
	ASSERT_STR(chain(t, 0x12f0), "late:4");
	ASSERT_STR(chain(t, 0x13ff), "late:4");
	ASSERT_STR(chain(t, 0x1400), "bogus:1");
	ASSERT_STR(chain(t, 0x1eff), "bogus:1");
	ASSERT_STR(chain(t, 0x1f00), "");
	ASSERT_STR(chain(t, 0x8000), "");
}

/* A symbol without a size does not hide a static function that only debug information has. */
TEST(guessed_ends_of_symbols_yield)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct builder b;
	int fd;

	begin(&b, &fd);
	add_symbol(&b, "exported", 0x1100, 0x1300, false);
	add_symbol(&b, "whole", 0x1400, 0x1500, true);
	add_small_unit(&b, "exported_in_dwarf", 0x1100, 0x1180, 1);
	add_small_unit(&b, "hidden", 0x1200, 0x1280, 2);
	add_small_unit(&b, "part", 0x1440, 0x1480, 3);
	t = end(&b, fd);
	ASSERT_STR(chain(t, 0x1100), "exported:1");
	ASSERT_STR(chain(t, 0x1180), "exported:0");
	ASSERT_STR(chain(t, 0x1200), "hidden:2");
	ASSERT_STR(chain(t, 0x1280), "exported:0");
	ASSERT_STR(chain(t, 0x1440), "whole:3");
	ASSERT_STR(chain(t, 0x1480), "whole:0");
}

/* Any functions and calls, nested or not, against the plainest way to say it. */
TEST(many_scopes)
{
	enum { SCOPES = 40, SIZE = 0x300 };

	srand(11);
	for (int round = 0; round < 100; round++) {
		struct dwarf_function functions[SCOPES];
		struct dwarf_scope scopes[SCOPES];
		struct dwarf_range ranges[SCOPES * 2];
		char names[SCOPES][8];
		static const struct line_table lines;
		struct dwarf_unit unit = { .functions = functions,
					   .nr_functions = SCOPES,
					   .scopes = scopes,
					   .nr_scopes = SCOPES,
					   .ranges = ranges,
					   .nr_ranges = SCOPES * 2,
					   .lines = &lines };
		_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
		uint32_t depth[SCOPES];
		struct builder b;
		int fd;

		for (uint32_t i = 0; i < SCOPES; i++) {
			uint32_t parent = i ? (uint32_t)rand() % i : DWARF_NONE;
			uint64_t from = BASE, to = BASE + SIZE;

			if (i) {
				from = ranges[parent * 2 + rand() % 2].begin;
				to = ranges[parent * 2 + rand() % 2].end;
			}
			if (to < from + 8)
				to = from + 8;
			depth[i] = i ? depth[parent] + 1 : 0;
			snprintf(names[i], sizeof(names[i]), "%u", i);
			functions[i] =
				(struct dwarf_function){ .name = names[i], .file = DWARF_NONE };
			scopes[i] = (struct dwarf_scope){ .parent = parent,
							  .function = i,
							  .first_range = i * 2,
							  .nr_ranges = 2 };
			for (int j = 0; j < 2; j++) {
				uint64_t half = (to - from) / 2;

				ranges[i * 2 + j].begin = from + j * half + (uint64_t)rand() % half;
				ranges[i * 2 + j].end = from + (j + 1) * half;
				if (!i)
					ranges[j].begin = from + j * half;
			}
		}
		begin(&b, &fd);
		ASSERT_OK(builder_add_unit(&b, &unit));
		t = end(&b, fd);
		for (uint64_t addr = BASE; addr < BASE + SIZE; addr++) {
			struct symbol_frame frames[SYMBOL_FRAMES_MAX];
			uint32_t best = 0;
			uint64_t best_begin = 0;
			size_t nr;

			for (uint32_t i = 0; i < SCOPES * 2; i++) {
				if (addr < ranges[i].begin || addr >= ranges[i].end ||
				    ranges[i].begin < best_begin)
					continue;
				if (ranges[i].begin == best_begin && depth[i / 2] < depth[best])
					continue;
				best = i / 2;
				best_begin = ranges[i].begin;
			}
			nr = symbol_table_find(t, addr, true, frames, SYMBOL_FRAMES_MAX);
			ASSERT_EQ(nr, depth[best] + 1);
			for (size_t i = 0; i < nr; i++, best = scopes[best].parent)
				ASSERT_STR(frames[i].name, names[best]);
		}
	}
}
