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

static void expected_path(const struct expected *e, size_t file, char *ret, size_t size)
{
	const struct expected_file *f = &e->files.items[file];
	size_t dir = e->version < 5 ? (size_t)f->dir - 1 : f->dir;
	const char *directory = dir < e->dirs.nr ? e->dirs.items[dir].name : "";
	const char *base = e->version < 5 ? COMP_DIR : e->dirs.items[0].name;

	if (f->name[0] == '/')
		snprintf(ret, size, "%s", f->name);
	else if (directory[0] == '/')
		snprintf(ret, size, "%s/%s", directory, f->name);
	else if (directory[0])
		snprintf(ret, size, "%s/%s/%s", base, directory, f->name);
	else
		snprintf(ret, size, "%s/%s", base, f->name);
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
	ASSERT_OK(line_table_read(source, e->offset, COMP_DIR, "", 8, &table));
	ASSERT_EQ(table.version, e->version);
	compare_files(e, &table);
	/* Ends come before begins of the same address, and are replaced by them. */
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
