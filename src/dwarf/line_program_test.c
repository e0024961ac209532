// SPDX-License-Identifier: Apache-2.0
/*
 * Line number programs: of gcc and clang, in every version, against what llvm-dwarfdump reads out
 * of the same file; and hand-written ones, for what compilers here don't write.
 */
#include "dwarf/line_program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "test.h"
#include "util/cleanup.h"
#include "util/vec.h"

/* --- what llvm-dwarfdump says ----------------------------------------------------------------- */

#define COMP_DIR "/comp"

struct expected_file {
	char name[256];
	unsigned int dir;
};

struct expected {
	uint64_t offset;
	unsigned int version;
	VEC(struct line_row) rows;
	VEC(struct expected_file) files;
	VEC(struct expected_file) dirs;
	size_t first_row; /* of the sequence that is being read */
};

static void expected_reset(struct expected *e, uint64_t offset)
{
	e->offset = offset;
	e->version = 0;
	e->rows.nr = e->files.nr = e->dirs.nr = e->first_row = 0;
}

static void expected_fini(struct expected *e)
{
	vec_free(&e->rows);
	vec_free(&e->files);
	vec_free(&e->dirs);
}

static int by_addr(const void *a, const void *b)
{
	const struct line_row *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->flags & LINE_END) ? -1 : (y->flags & LINE_END) ? 1 : 0;
}

static void add_expected_row(struct expected *e, const char *line)
{
	unsigned long long addr;
	unsigned int number, column, file;
	struct line_row row;

	if (sscanf(line, "0x%llx %u %u %u", &addr, &number, &column, &file) != 4)
		return;
	row = (struct line_row){ addr, file - (e->version < 5), number, (uint16_t)column, 0 };
	if (strstr(line, "is_stmt"))
		row.flags |= LINE_IS_STMT;
	if (e->rows.nr > e->first_row && e->rows.items[e->rows.nr - 1].addr == addr)
		e->rows.nr--;
	if (strstr(line, "end_sequence"))
		row.flags |= LINE_END;
	ASSERT_OK(vec_push(&e->rows, row));
	if (!(row.flags & LINE_END))
		return;
	/* Discarded by the linker, or empty. */
	if (e->rows.items[e->first_row].addr <= 1 || e->rows.nr - e->first_row < 2)
		e->rows.nr = e->first_row;
	e->first_row = e->rows.nr;
}

/* Of the unit: DWARF 5 has it here, too. */
static const char *comp_dir(const struct expected *e)
{
	return e->version < 5 || !e->dirs.nr ? COMP_DIR : e->dirs.items[0].name;
}

static void expected_path(const struct expected *e, size_t file, char *ret, size_t size)
{
	const struct expected_file *f = &e->files.items[file];
	size_t dir = e->version < 5 ? (size_t)f->dir - 1 : f->dir;
	const char *directory = dir < e->dirs.nr ? e->dirs.items[dir].name : "";
	const char *base = comp_dir(e);

	if (!strncmp(base, "./", 2))
		base += 2;
	if (f->name[0] == '/')
		snprintf(ret, size, "%s", f->name);
	else if (directory[0] == '/')
		snprintf(ret, size, "%s/%s", directory, f->name);
	else if (directory[0] && (e->version < 5 || dir))
		snprintf(ret, size, "%s/%s/%s", base, directory, f->name);
	else
		snprintf(ret, size, "%s/%s", base, f->name);
	for (char *p; (p = strstr(ret, "/./"));)
		memmove(p, p + 2, strlen(p + 2) + 1);
}

static size_t rows_compared, files_compared;

static void compare_files(const struct expected *e, const struct line_table *table)
{
	char path[1024];

	ASSERT_EQ(table->nr_files, e->files.nr);
	for (size_t i = 0; i < e->files.nr; i++) {
		expected_path(e, i, path, sizeof(path));
		ASSERT_STR(table->files[i], path);
		files_compared++;
	}
}

static bool same_row(const struct line_row *a, const struct line_row *b)
{
	return a->addr == b->addr && a->file == b->file && a->line == b->line &&
	       a->column == b->column && a->flags == b->flags;
}

static void compare(struct expected *e, const struct line_source *source)
{
	struct line_table table;
	size_t nr = 0;

	if (!e->version)
		return;
	ASSERT_OK(line_table_read(source, e->offset, comp_dir(e), "", 8, &table));
	ASSERT_EQ(table.version, e->version);
	compare_files(e, &table);
	/* Ends come before begins of the same address, and are replaced by them. */
	if (e->rows.nr)
		qsort(e->rows.items, e->rows.nr, sizeof(*e->rows.items), by_addr);
	for (size_t i = 0; i < e->rows.nr; i++) {
		if (nr && e->rows.items[nr - 1].addr == e->rows.items[i].addr)
			nr--;
		e->rows.items[nr++] = e->rows.items[i];
	}
	ASSERT_EQ(table.nr_rows, nr);
	for (size_t i = 0; i < nr; i++) {
		const struct line_row *got = &table.rows[i], *want = &e->rows.items[i];

		ck_assert_msg(same_row(got, want),
			      "row %zu: %" PRIx64 " %u:%u:%u %x, expected %" PRIx64 " %u:%u:%u %x",
			      i, got->addr, got->file, got->line, got->column, got->flags,
			      want->addr, want->file, want->line, want->column, want->flags);
	}
	rows_compared += nr;
	line_table_fini(&table);
}

/* One line of llvm-dwarfdump's output. */
static void read_line(struct expected *e, const char *line, const struct line_source *source)
{
	struct expected_file file = { .dir = 0 };
	unsigned long long offset;
	unsigned int index;

	if (sscanf(line, "debug_line[0x%llx]", &offset) == 1) {
		compare(e, source);
		expected_reset(e, offset);
	} else if (sscanf(line, " version: %u", &index) == 1) {
		e->version = index;
	} else if (sscanf(line, "include_directories[%u] = \"%255[^\"]", &index, file.name) == 2) {
		ASSERT_OK(vec_push(&e->dirs, file));
	} else if (sscanf(line, " name: \"%255[^\"]", file.name) == 1) {
		ASSERT_OK(vec_push(&e->files, file));
	} else if (e->files.nr && sscanf(line, " dir_index: %u", &index) == 1) {
		e->files.items[e->files.nr - 1].dir = index;
	} else {
		add_expected_row(e, line);
	}
}

static struct elf_data section(const struct elf_file *elf, const char *name)
{
	const struct elf_section *s = elf_file_section(elf, name);
	struct elf_data data = { 0 };

	if (s)
		ASSERT_OK(elf_file_section_data(elf, s, 1 << 30, &data));
	return data;
}

static void compare_with_llvm(const char *path)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(expected_fini) struct expected e = { 0 };
	struct elf_data line, str, line_str;
	struct line_source source;
	char command[512], text[1024];
	FILE *dump;

	ASSERT_OK(elf_file_open(path, &elf));
	line = section(elf, ".debug_line");
	str = section(elf, ".debug_str");
	line_str = section(elf, ".debug_line_str");
	source = (struct line_source){ .line = line.data,
				       .line_size = line.size,
				       .str = str.data,
				       .str_size = str.size,
				       .line_str = line_str.data,
				       .line_str_size = line_str.size };
	snprintf(command, sizeof(command), "llvm-dwarfdump --debug-line %s", path);
	dump = popen(command, "r");
	ASSERT_PTR_NONNULL(dump);
	while (fgets(text, sizeof(text), dump))
		read_line(&e, text, &source);
	ASSERT_EQ(pclose(dump), 0);
	compare(&e, &source);
	free(line.data);
	free(str.data);
	free(line_str.data);
}

static char dir[] = "/tmp/sonde-line-program-test-XXXXXX";

static void run(const char *command)
{
	ck_assert_msg(system(command) == 0, "%s", command);
}

static void write_text(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	ASSERT_PTR_NONNULL(f);
	fputs(text, f);
	ASSERT_EQ(fclose(f), 0);
}

static void write_program(void)
{
	char command[256];

	ASSERT_PTR_NONNULL(mkdtemp(dir));
	snprintf(command, sizeof(command), "mkdir %s/inc", dir);
	run(command);
	write_text("inc/h.h", "static inline int twice(int x)\n{\n\tif (x & 1)\n\t\tx++;\n"
			      "\treturn x * 2;\n}\n");
	write_text("b.c", "#include \"inc/h.h\"\nint b(int x)\n{\n"
			  "\tfor (int i = 0; i < x; i++)\n\t\tx += twice(x + i);\n\treturn x;\n}\n"
			  "int unused(int x)\n{\n\treturn x / 3;\n}\n");
	/* A line beyond what a special opcode reaches, and back. */
	write_text("a.c", "#include <h.h>\nint b(int x);\n"
			  "__attribute__((cold, noinline)) int cold(int x)\n{\n"
			  "\treturn x ? b(x) : 0;\n}\n#line 70000 \"gen/far.y\"\n"
			  "int main(int argc, char **argv)\n{\n\t(void)argv;\n"
			  "\tif (argc > 5)\n\t\treturn cold(argc);\n"
			  "#line 12\n\treturn b(twice(argc));\n}\n");
}

static void compile_and_compare(const char *cc, const char *flags)
{
	char command[1024], path[256];

	snprintf(command, sizeof(command),
		 "cd %s && %s %s -Iinc a.c %s/b.c -o prog -Wl,--gc-sections 2>/dev/null", dir, cc,
		 flags, dir);
	run(command);
	snprintf(path, sizeof(path), "%s/prog", dir);
	compare_with_llvm(path);
}

TEST(compilers_programs_give_what_llvm_reads)
{
	static const char *const flags[] = {
		"-O0",
		"-O2",
		"-O2 -ffunction-sections",
		"-O2 -gz=zlib",
	};
	static const char *const more[] = { "-gdwarf-5 -gdwarf64", "-gdwarf-3 -gdwarf64",
					    "-gdwarf-4 -gdwarf64 -O2" };
	char command[128], text[128];

	write_program();
	for (int version = 2; version <= 5; version++) {
		for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
			snprintf(text, sizeof(text), "-gdwarf-%d %s", version, flags[i]);
			compile_and_compare("gcc", text);
			compile_and_compare("clang", text);
		}
		/* gcc's own programs, where it does not leave them to the assembler. */
		snprintf(text, sizeof(text), "-gdwarf-%d -O2 -gno-as-loc-support", version);
		compile_and_compare("gcc", text);
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
		compile_and_compare("gcc", more[i]);
		compile_and_compare("clang", more[i]);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	run(command);
	ASSERT(rows_compared > 1000);
	ASSERT(files_compared > 150);
}

TEST(this_very_program_gives_what_llvm_reads)
{
	char path[256];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	ASSERT(len > 0);
	path[len] = '\0';
	compare_with_llvm(path);
	ASSERT(rows_compared > 1000);
}

/* --- hand-written programs -------------------------------------------------------------------- */

struct bytes {
	uint8_t data[4096];
	size_t size;
};

static void put(struct bytes *b, uint64_t v, size_t size)
{
	ASSERT(b->size + size <= sizeof(b->data));
	memcpy(b->data + b->size, &v, size);
	b->size += size;
}

static void put_string(struct bytes *b, const char *s)
{
	do
		put(b, (uint8_t)*s, 1);
	while (*s++);
}

#define PUT(b, ...)                                                                                \
	do {                                                                                       \
		const uint8_t put_[] = { __VA_ARGS__ };                                            \
		for (size_t put_i_ = 0; put_i_ < sizeof(put_); put_i_++)                           \
			put(b, put_[put_i_], 1);                                                   \
	} while (0)

enum {
	COPY = 1,
	ADVANCE_PC = 2,
	ADVANCE_LINE = 3,
	SET_FILE = 4,
	CONST_ADD_PC = 8,
	FIXED_ADVANCE_PC = 9,
	SET_ISA = 12,
	UNKNOWN = 13, /* two operands, says the header */
	OPCODE_BASE = 14,
	LINE_BASE = -3,
	LINE_RANGE = 12,
};

static uint8_t special(int line, int ops)
{
	return (uint8_t)(line - LINE_BASE + LINE_RANGE * ops + OPCODE_BASE);
}

struct options {
	unsigned int version;
	bool wide; /* the 64-bit format */
	uint8_t min_inst_length, max_ops;
};

static void put_length(struct bytes *b, const struct options *o, uint64_t length)
{
	if (o->wide)
		put(b, UINT32_MAX, 4);
	put(b, length, o->wide ? 8 : 4);
}

/* A whole unit out of tables of files and a program. */
static void put_unit(struct bytes *b, const struct options *o, const struct bytes *tables,
		     const struct bytes *program)
{
	static const uint8_t lengths[OPCODE_BASE - 1] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2 };
	size_t numbers = (o->version >= 4 ? 6 : 5) + sizeof(lengths);
	size_t header = numbers + tables->size;
	size_t offset_size = o->wide ? 8 : 4;

	put_length(b, o, 2 + (o->version >= 5 ? 2 : 0) + offset_size + header + program->size);
	put(b, o->version, 2);
	if (o->version >= 5)
		PUT(b, 8, 0);
	put(b, header, offset_size);
	put(b, o->min_inst_length ? o->min_inst_length : 1, 1);
	if (o->version >= 4)
		put(b, o->max_ops ? o->max_ops : 1, 1);
	PUT(b, 1, (uint8_t)LINE_BASE, LINE_RANGE, OPCODE_BASE);
	for (size_t i = 0; i < sizeof(lengths); i++)
		put(b, lengths[i], 1);
	for (size_t i = 0; i < tables->size; i++)
		put(b, tables->data[i], 1);
	for (size_t i = 0; i < program->size; i++)
		put(b, program->data[i], 1);
}

static void put_address(struct bytes *b, uint64_t addr)
{
	PUT(b, 0, 9, 2);
	put(b, addr, 8);
}

static void put_end(struct bytes *b, uint8_t ops)
{
	PUT(b, ADVANCE_PC, ops, 0, 1, 1);
}

static void put_sequence(struct bytes *b, uint64_t addr, uint8_t line, uint8_t size)
{
	put_address(b, addr);
	PUT(b, ADVANCE_LINE, line, COPY);
	put_end(b, size);
}

/* Two directories, three files. */
static void put_lists(struct bytes *b)
{
	put_string(b, "sub//dir/.");
	put_string(b, "/abs");
	put_string(b, "");
	put_string(b, "./a.c");
	PUT(b, 0, 0, 0);
	put_string(b, "b.c");
	PUT(b, 1, 0x80, 0, 5);
	put_string(b, "c.c");
	PUT(b, 2, 0, 0);
	put_string(b, "");
}

static struct bytes unit_bytes, tables, program;
static struct line_table table;

static int read_unit(const struct options *o)
{
	struct line_source source;

	unit_bytes.size = 0;
	put_unit(&unit_bytes, o, &tables, &program);
	source = (struct line_source){ .line = unit_bytes.data, .line_size = unit_bytes.size };
	return line_table_read(&source, 0, "/comp", "unit.c", 8, &table);
}

static void check_row(size_t i, uint64_t addr, uint32_t file, uint32_t line, unsigned int flags)
{
	ASSERT(i < table.nr_rows);
	ASSERT_EQ(table.rows[i].addr, addr);
	ASSERT_EQ(table.rows[i].file, file);
	ASSERT_EQ(table.rows[i].line, line);
	ASSERT_EQ(table.rows[i].flags, flags);
}

TEST(every_opcode_in_every_version)
{
	for (unsigned int version = 2; version <= 4; version++) {
		struct options o = { .version = version, .wide = version == 3 };

		tables.size = program.size = 0;
		put_lists(&tables);
		put_address(&program, 0x1000);
		PUT(&program, COPY);
		PUT(&program, UNKNOWN, 0x81, 0x01, 0x02, special(4, 3));
		PUT(&program, SET_ISA, 0x85, 0x05, SET_FILE, 3, CONST_ADD_PC, COPY);
		PUT(&program, FIXED_ADVANCE_PC, 0x34, 0x12, 6 /* not a statement */, COPY);
		/* An unknown extended opcode, one of length 0, a discriminator. */
		PUT(&program, 0, 3, 0x80, 1, 1, 0, 0, 0, 2, 4, 7);
		PUT(&program, ADVANCE_LINE, 0x7f, 7, 10, 11, 5, 0xff, 0xff, 0x7f, special(-1, 1));
		put_end(&program, 4);
		ASSERT_OK(read_unit(&o));
		ASSERT_EQ(table.nr_rows, 6);
		check_row(0, 0x1000, 0, 1, LINE_IS_STMT);
		check_row(1, 0x1003, 0, 5, LINE_IS_STMT);
		check_row(2, 0x1003 + 20, 2, 5, LINE_IS_STMT);
		check_row(3, 0x1003 + 20 + 0x1234, 2, 5, 0);
		check_row(4, 0x1004 + 20 + 0x1234, 2, 3, 0);
		ASSERT_EQ(table.rows[4].column, 0); /* too large */
		check_row(5, 0x1008 + 20 + 0x1234, 2, 3, LINE_END);
		ASSERT_EQ(table.nr_files, 3);
		ASSERT_STR(table.files[0], "/comp/a.c");
		ASSERT_STR(table.files[1], "/comp/sub/dir/b.c");
		ASSERT_STR(table.files[2], "/abs/c.c");
		ASSERT_EQ(line_table_file(&table, 1), 0);
		ASSERT_EQ(line_table_file(&table, 3), 2);
		ASSERT_EQ(line_table_file(&table, 0), UINT32_MAX);
		ASSERT_EQ(line_table_file(&table, 4), UINT32_MAX);
		line_table_fini(&table);
	}
}

TEST(several_operations_in_an_instruction)
{
	struct options o = { .version = 4, .min_inst_length = 16, .max_ops = 3 };

	tables.size = program.size = 0;
	put_lists(&tables);
	put_address(&program, 0x1000);
	PUT(&program, COPY, special(1, 2), special(1, 2), ADVANCE_PC, 5, COPY);
	put_end(&program, 3);
	ASSERT_OK(read_unit(&o));
	/* Operation 2 of the first instruction has its address; the row at it counts. */
	ASSERT_EQ(table.nr_rows, 4);
	check_row(0, 0x1000, 0, 2, LINE_IS_STMT);
	check_row(1, 0x1010, 0, 3, LINE_IS_STMT);
	check_row(2, 0x1030, 0, 3, LINE_IS_STMT);
	check_row(3, 0x1040, 0, 3, LINE_IS_STMT | LINE_END);
	line_table_fini(&table);
}

TEST(files_that_the_program_defines_and_files_that_nobody_has)
{
	struct options o = { .version = 3 };

	tables.size = program.size = 0;
	put_lists(&tables);
	PUT(&program, 0, 8, 3, 'x', '.', 'h', 0, 1, 0, 0);
	put_address(&program, 0x1000);
	PUT(&program, SET_FILE, 4, COPY, SET_FILE, 5, special(0, 1), SET_FILE, 0, special(0, 1));
	PUT(&program, SET_FILE, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, special(0, 1));
	put_end(&program, 1);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_files, 4);
	ASSERT_STR(table.files[3], "/comp/sub/dir/x.h");
	check_row(0, 0x1000, 3, 1, LINE_IS_STMT);
	for (size_t i = 1; i < 4; i++)
		check_row(i, 0x1000 + i, UINT32_MAX, 1, LINE_IS_STMT);
	line_table_fini(&table);
}

TEST(a_program_without_files_has_the_units_name)
{
	struct options o = { .version = 4 };

	tables.size = program.size = 0;
	PUT(&tables, 0, 0);
	put_sequence(&program, 0x1000, 4, 8);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_files, 1);
	ASSERT_STR(table.files[0], "/comp/unit.c");
	check_row(0, 0x1000, 0, 5, LINE_IS_STMT);
	line_table_fini(&table);
}

TEST(discarded_sequences_are_left_out)
{
	static const uint64_t discarded[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1 };
	struct options o = { .version = 4 };

	tables.size = program.size = 0;
	put_lists(&tables);
	PUT(&program, COPY, special(1, 1)); /* no address at all */
	put_end(&program, 8);
	for (size_t i = 0; i < 4; i++)
		put_sequence(&program, discarded[i], 9, 8);
	put_sequence(&program, 0x2000, 9, 8);
	put_address(&program, 0x3000);
	put_end(&program, 8); /* no row */
	put_sequence(&program, 0x4000, 9, 0);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 2);
	check_row(0, 0x2000, 0, 10, LINE_IS_STMT);
	check_row(1, 0x2008, 0, 10, LINE_IS_STMT | LINE_END);
	line_table_fini(&table);
}

TEST(sequences_are_sorted_and_the_first_one_keeps_what_it_covers)
{
	struct options o = { .version = 4 };

	tables.size = program.size = 0;
	put_lists(&tables);
	put_sequence(&program, 0x3000, 30, 0x10);
	put_sequence(&program, 0x1000, 10, 0x10);
	put_sequence(&program, 0x1000, 11, 0x18); /* the same begin: only its tail */
	put_sequence(&program, 0x1004, 12, 8);	  /* within: nothing */
	put_sequence(&program, 0x1018, 13, 8);	  /* just behind */
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 6);
	check_row(0, 0x1000, 0, 11, LINE_IS_STMT);
	check_row(1, 0x1010, 0, 12, LINE_IS_STMT);
	check_row(2, 0x1018, 0, 14, LINE_IS_STMT);
	check_row(3, 0x1020, 0, 14, LINE_IS_STMT | LINE_END);
	check_row(4, 0x3000, 0, 31, LINE_IS_STMT);
	check_row(5, 0x3010, 0, 31, LINE_IS_STMT | LINE_END);
	line_table_fini(&table);
}

TEST(sequences_just_behind_each_other_have_one_row_an_address)
{
	struct options o = { .version = 4 };

	tables.size = program.size = 0;
	put_lists(&tables);
	put_sequence(&program, 0x1000, 10, 8);
	put_sequence(&program, 0x1008, 11, 8);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 3);
	check_row(1, 0x1008, 0, 12, LINE_IS_STMT);
	check_row(2, 0x1010, 0, 12, LINE_IS_STMT | LINE_END);
	line_table_fini(&table);
}

TEST(rows_that_go_back_are_sorted_and_stay_in_order)
{
	struct options o = { .version = 4 };

	tables.size = program.size = 0;
	put_lists(&tables);
	for (unsigned int i = 0; i < 7; i++) {
		put_address(&program, 0x1000 + i * 5 % 7 * 16); /* 0 5 3 1 6 4 2 */
		PUT(&program, special(1, 0));
	}
	put_address(&program, 0x1010);
	PUT(&program, special(1, 0));
	put_end(&program, 0);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 7);
	check_row(0, 0x1000, 0, 2, LINE_IS_STMT);
	check_row(1, 0x1010, 0, 9, LINE_IS_STMT);
	check_row(2, 0x1020, 0, 8, LINE_IS_STMT);
	check_row(3, 0x1030, 0, 4, LINE_IS_STMT);
	check_row(4, 0x1040, 0, 7, LINE_IS_STMT);
	check_row(5, 0x1050, 0, 3, LINE_IS_STMT);
	check_row(6, 0x1060, 0, 9, LINE_IS_STMT | LINE_END);
	line_table_fini(&table);
}

TEST(a_program_that_breaks_off_gives_what_it_had)
{
	struct options o = { .version = 4 };
	struct line_source source;

	tables.size = program.size = 0;
	put_lists(&tables);
	put_sequence(&program, 0x1000, 10, 8);
	put_address(&program, 0x2000);
	PUT(&program, COPY, special(1, 4), special(1, 4), 0, 200, 1);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 5);
	check_row(3, 0x2004, 0, 2, LINE_IS_STMT);
	check_row(4, 0x2008, 0, 3, LINE_IS_STMT | LINE_END);
	line_table_fini(&table);
	/* Discarded in its midst. */
	program.size = 0;
	put_address(&program, 0x2000);
	PUT(&program, COPY, special(1, 4));
	put_address(&program, UINT64_MAX);
	put_end(&program, 8);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 2);
	check_row(1, 0x2004, 0, 2, LINE_IS_STMT | LINE_END);
	line_table_fini(&table);
	for (size_t size = 0; size < unit_bytes.size; size++) {
		_cleanup_free_ uint8_t *cut = malloc(size + 1);
		int r;

		memcpy(cut, unit_bytes.data, size);
		source = (struct line_source){ .line = cut, .line_size = size };
		r = line_table_read(&source, 0, "", "", 8, &table);
		ASSERT(r == 0 || r == -EBADMSG);
		if (!r)
			line_table_fini(&table);
	}
}

TEST(what_makes_no_sense_is_refused)
{
	struct options o = { .version = 4 };
	struct line_source source = { 0 };

	ASSERT_ERR(line_table_read(&source, 0, "", "", 8, &table), EBADMSG);
	tables.size = program.size = 0;
	put_lists(&tables);
	ASSERT_OK(read_unit(&o));
	line_table_fini(&table);
	source = (struct line_source){ .line = unit_bytes.data, .line_size = unit_bytes.size };
	ASSERT_ERR(line_table_read(&source, unit_bytes.size, "", "", 8, &table), EBADMSG);
	ASSERT_ERR(line_table_read(&source, UINT64_MAX, "", "", 8, &table), EBADMSG);
	for (unsigned int version = 0; version < 8; version += version == 1 ? 5 : 1) {
		unit_bytes.data[4] = (uint8_t)version;
		ASSERT_ERR(line_table_read(&source, 0, "", "", 8, &table), ENOTSUP);
	}
	unit_bytes.data[4] = 4;
	unit_bytes.data[14] = 0; /* line_range */
	ASSERT_ERR(line_table_read(&source, 0, "", "", 8, &table), EBADMSG);
	unit_bytes.data[14] = LINE_RANGE;
	unit_bytes.data[9] = 1; /* header length */
	ASSERT_ERR(line_table_read(&source, 0, "", "", 8, &table), EBADMSG);
	memset(unit_bytes.data, 0xf0, 4);
	unit_bytes.data[0] = 0xf1;
	memset(unit_bytes.data + 1, 0xff, 3);
	ASSERT_ERR(line_table_read(&source, 0, "", "", 8, &table), EBADMSG);
}

/* --- the tables of DWARF 5 -------------------------------------------------------------------- */

enum {
	PATH = 1,
	DIRECTORY = 2,
	TIMESTAMP = 3,
	MD5 = 5,
	VENDOR = 0x2001,
};

static const uint8_t strings[] = "first\0second\0/third";

/* A file `form` of whose name is followed by what `value` has. */
static void check_string_form(uint8_t form, const struct bytes *value, bool wide, const char *want)
{
	struct options o = { .version = 5, .wide = wide };
	struct bytes offsets = { .size = 0 };
	struct line_source source;

	tables.size = program.size = 0;
	PUT(&tables, 1, PATH, 8, 2);
	put_string(&tables, "/top");
	put_string(&tables, "sub");
	/* Vendors' content, before and behind, in forms that are skipped. */
	PUT(&tables, 7, 0x81, 0x40, 9, PATH, form, DIRECTORY, 0x0b, TIMESTAMP, 6, MD5, 0x1e, 0x82,
	    0x40, 0x19, 0x83, 0x40, 3, 1, 2, 0xab, 0xcd);
	for (size_t i = 0; i < value->size; i++)
		put(&tables, value->data[i], 1);
	PUT(&tables, 1, 1, 2, 3, 4);
	put(&tables, 7, 8);
	put(&tables, 8, 8);
	PUT(&tables, 3, 0, 7, 8, 9);
	put_sequence(&program, 0x1000, 2, 8);
	unit_bytes.size = 0;
	put_unit(&unit_bytes, &o, &tables, &program);
	put_length(&offsets, &o, 4 + 3 * (wide ? 8 : 4));
	put(&offsets, 5, 4);
	put(&offsets, 13, wide ? 8 : 4);
	put(&offsets, 6, wide ? 8 : 4);
	put(&offsets, sizeof(strings), wide ? 8 : 4);
	source = (struct line_source){ unit_bytes.data, strings,	 strings,
				       unit_bytes.size, sizeof(strings), sizeof(strings),
				       offsets.data,	offsets.size };
	ASSERT_OK(line_table_read(&source, 0, "/ignored", "unit.c", 0, &table));
	ASSERT_EQ(table.nr_rows, 2);
	ASSERT_EQ(table.nr_files, 1);
	ASSERT_STR(table.files[0], want);
	ASSERT_EQ(line_table_file(&table, 0), 0);
	ASSERT_EQ(line_table_file(&table, 1), UINT32_MAX);
	line_table_fini(&table);
}

TEST(every_form_of_a_name)
{
	static const struct {
		uint8_t form, size; /* size 0: of an offset */
		uint32_t value;
		const char *want;
	} cases[] = {
		{ 0x0e, 0, 6, "/top/sub/second" },
		{ 0x1f, 0, 0, "/top/sub/first" },
		{ 0x1f, 0, 1000, "" },
		{ 0x0e, 0, UINT32_MAX, "" },
		{ 0x1d, 0, 6, "" },
		{ 0x1a, 1, 0, "/third" },
		{ 0x25, 1, 1, "/top/sub/second" },
		{ 0x26, 2, 1, "/top/sub/second" },
		{ 0x27, 3, 0, "/third" },
		{ 0x28, 4, 1, "/top/sub/second" },
		{ 0x28, 4, 2, "" },
		{ 0x28, 4, 3, "" },
		{ 0x28, 4, UINT32_MAX, "" },
		{ 8, 4, 'a' | 'b' << 8, NULL },
		{ 8, 2, '/', "/" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases) * 2; i++) {
		bool wide = i & 1;
		struct bytes value = { .size = 0 };

		if (!cases[i / 2].want) /* a string of its own */
			put_string(&value, "x/./y.c");
		else
			put(&value, cases[i / 2].value,
			    cases[i / 2].size ? cases[i / 2].size
			    : wide	      ? 8
					      : 4);
		check_string_form(cases[i / 2].form, &value, wide,
				  cases[i / 2].want ? cases[i / 2].want : "/top/sub/x/y.c");
	}
}

TEST(a_table_of_an_unknown_form_costs_its_names_only)
{
	struct options o = { .version = 5 };

	tables.size = program.size = 0;
	PUT(&tables, 1, PATH, 8, 1);
	put_string(&tables, "/top");
	PUT(&tables, 2, PATH, 8, DIRECTORY, 0x77, 1, 'x', 0, 1);
	put_sequence(&program, 0x1000, 2, 8);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 2);
	ASSERT_STR(table.files[0], "/top/unit.c");
	line_table_fini(&table);
	/* Entries without columns, ever so many. */
	tables.size = 0;
	PUT(&tables, 1, PATH, 8, 1);
	put_string(&tables, "/top");
	PUT(&tables, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(table.nr_rows, 2);
	line_table_fini(&table);
}

TEST(a_long_path_is_cut_at_the_front)
{
	struct options o = { .version = 5 };
	char directory[3001] = "";

	tables.size = program.size = 0;
	memset(directory, 'd', sizeof(directory) - 1);
	PUT(&tables, 1, PATH, 8, 2, '/', 't', 'o', 'p', 0);
	put_string(&tables, directory);
	PUT(&tables, 2, PATH, 8, DIRECTORY, 0x0b, 1);
	directory[300] = '\0';
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; directory[j]; j++)
			put(&tables, 'n', 1);
	}
	put_string(&tables, "end.c");
	put(&tables, 1, 1);
	ASSERT_OK(read_unit(&o));
	ASSERT_EQ(strlen(table.files[0]), 5 + 3000 + 1 + 605);
	line_table_fini(&table);
	memset(directory, 'c', sizeof(directory));
	directory[0] = '/';
	directory[3000] = '\0';
	tables.data[4] = 'x'; /* relative now: behind the compilation directory */
	{
		struct line_source source;

		unit_bytes.size = 0;
		put_unit(&unit_bytes, &o, &tables, &program);
		source = (struct line_source){ .line = unit_bytes.data,
					       .line_size = unit_bytes.size };
		ASSERT_OK(line_table_read(&source, 0, directory, "", 8, &table));
	}
	ASSERT_EQ(strlen(table.files[0]), LINE_PATH_MAX - 1);
	ASSERT_STR(table.files[0] + LINE_PATH_MAX - 1 - 6, "nend.c");
	ASSERT_EQ(table.files[0][0], 'c');
	line_table_fini(&table);
}
