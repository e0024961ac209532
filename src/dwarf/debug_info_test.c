// SPDX-License-Identifier: Apache-2.0
/*
 * Debug information as compilers write it: one source (debug_info_fixture.cc), built in each way
 * that changes how it is stored, has the same functions, inlined calls and lines in each. And our
 * own program, against what addr2line says of it.
 */
#include "dwarf/test_debug_info_flat.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "test.h"
#include "util/cleanup.h"

#define FIXTURE "debug_info_fixture.cc"

/* --- building ------------------------------------------------------------------------------- */

static char dir[] = "/tmp/debug-info-XXXXXX";

static void remove_dir(void)
{
	char command[PATH_MAX + 32];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command))
		return; /* nothing to be done about it */
}

__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
	_cleanup_free_ char *command = NULL, *all = NULL;
	va_list ap;

	va_start(ap, format);
	ASSERT(vasprintf(&command, format, ap) > 0);
	va_end(ap);
	ASSERT(asprintf(&all, "cd '%s' && (%s) >log 2>&1 || { cat log >&2; exit 1; }", dir,
			command) > 0);
	ck_assert_msg(system(all) == 0, "failed: %s", command);
}

static void make_dir(void)
{
	ASSERT_PTR_NONNULL(mkdtemp(dir));
	ck_assert_int_eq(atexit(remove_dir), 0);
}

/* dir/NAME, compiled and linked by `compiler` with `options`; `linking` are the linker's alone. */
static void build(const char *name, const char *compiler, const char *options, const char *linking)
{
	static const char common[] = "-O2 -nostdlib -fno-exceptions -fno-rtti "
				     "-fno-asynchronous-unwind-tables -fno-pie";

	run("%s %s %s -c %s/src/dwarf/" FIXTURE " -o %s.o", compiler, options, common,
	    test_source_root(), name);
	run("%s %s %s -no-pie -Wl,-e,start %s %s.o -o %s", compiler, options, common, linking, name,
	    name);
}

/* --- what is expected ----------------------------------------------------------------------- */

/* The number of the fixture's line that has `label` in it. */
static uint32_t line_of(const char *label)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[PATH_MAX], line[512];

	snprintf(path, sizeof(path), "%s/src/dwarf/" FIXTURE, test_source_root());
	file = fopen(path, "re");
	ASSERT_PTR_NONNULL(file);
	for (uint32_t n = 1; fgets(line, sizeof(line), file); n++)
		if (strstr(line, label))
			return n;
	FAIL("no %s in the fixture", label);
	return 0;
}

static uint64_t symbol(const char *path, const char *name)
{
	const struct elf_section *symtab, *strtab;
	struct elf_data symbols, strings;
	struct elf_file *elf;
	uint64_t value = 0;

	flat_keep_begin();
	ASSERT_OK(elf_file_open(path, &elf));
	symtab = elf_file_section(elf, ".symtab");
	strtab = elf_file_section(elf, ".strtab");
	ASSERT(symtab && strtab);
	ASSERT_OK(elf_file_section_data(elf, symtab, 1 << 20, &symbols));
	ASSERT_OK(elf_file_section_data(elf, strtab, 1 << 20, &strings));
	for (size_t i = 0; i < symbols.size / sizeof(Elf64_Sym); i++) {
		const Elf64_Sym *s = (const Elf64_Sym *)symbols.data + i;

		if (!strcmp((const char *)strings.data + s->st_name, name))
			value = s->st_value;
	}
	flat_keep_end();
	return value;
}

/* `names`: those that compilers may have given, with | between. */
static bool is_one_of(const char *name, const char *names)
{
	size_t len = strlen(name);

	for (const char *p = names; *p; p += *p == '|') {
		size_t n = strcspn(p, "|");

		if (n == len && !strncmp(p, name, n))
			return true;
		p += n;
	}
	return false;
}

struct expected_frame {
	const char *names;
	const char *call; /* label of the line that calls it; NULL: not inlined */
};

struct expected_chain {
	const char *marker;
	struct expected_frame frames[4];
};

static const struct expected_chain chains[] = {
	{ "mark_innermost",
	  { { "_ZN4demo12_GLOBAL__N_19innermostEi|demo::(anonymous namespace)::innermost",
	      "@innermost" },
	    { "_ZN4demo5shape4areaEi", "@area" },
	    { "plain", NULL } } },
	{ "mark_hidden",
	  { { "_ZN4demo12_GLOBAL__N_16hiddenEi|demo::(anonymous namespace)::hidden", NULL } } },
	{ "mark_constructor", { { "_ZN4demo5shapeC2Ei|_ZN4demo5shapeC1Ei", NULL } } },
	{ "mark_put", { { "_ZN4demo3boxIiE3putEi", NULL } } },
	/* In the function's cold part, where the compiler makes one. */
	{ "mark_complain", { { "_ZN4demo8complainEi", "@complain" }, { "mostly_hot", NULL } } },
	{ "mark_lambda",
	  { { "_ZZL11with_lambdaiENK3$_0clEi|with_lambda::(anonymous struct)::operator()|"
	      "with_lambda::<lambda(int)>::operator()",
	      NULL } } },
	{ "mark_local",
	  { { "_ZZL16with_local_classiEN5local4workEi|with_local_class::local::work", NULL } } },
};

static const char *shown_name(const struct flat_scope *s)
{
	return s->linkage_name ? s->linkage_name : s->name;
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && !strcmp(s + len - n, end);
}

static void check_chain(const char *path, const struct flat *f, const struct expected_chain *chain)
{
	const struct flat_scope *s = flat_find(f, symbol(path, chain->marker));
	const struct expected_frame *frame = chain->frames;

	for (; frame->names; frame++, s = s->parent) {
		ck_assert_msg(s, "%s: nothing for %s", chain->marker, frame->names);
		ck_assert_msg(is_one_of(shown_name(s), frame->names), "%s: %s, not %s",
			      chain->marker, shown_name(s), frame->names);
		/* g++ says it of the lambda's class only. */
		ASSERT(s->line > 0 || strstr(frame->names, "lambda"));
		ASSERT(!*s->file || ends_with(s->file, "/" FIXTURE));
		ASSERT_EQ(!s->parent, !frame->call);
		if (!frame->call)
			continue;
		ASSERT_EQ(s->call_line, line_of(frame->call));
		ASSERT(ends_with(s->call_file, "/" FIXTURE));
	}
	ASSERT_PTR_NULL(s);
}

static bool has_function(const struct flat *f, const char *name)
{
	for (size_t i = 0; i < f->scopes.nr; i++)
		if (!strcmp(shown_name(f->scopes.items[i]), name))
			return true;
	return false;
}

static size_t nr_without_file(const struct flat *f)
{
	size_t nr = 0;

	for (size_t i = 0; i < f->scopes.nr; i++)
		nr += !*f->scopes.items[i]->file;
	return nr;
}

static void read_built(const char *name, struct flat *ret)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	flat_read(path, ret);
	ASSERT_EQ(ret->counts.bad_units, 0);
	ASSERT_EQ(ret->counts.missing_split, 0);
	ASSERT_EQ(ret->counts.dropped, 0);
}

static void check_built(const char *name)
{
	char path[PATH_MAX];
	struct flat f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	read_built(name, &f);
	for (size_t i = 0; i < sizeof(chains) / sizeof(*chains); i++)
		check_chain(path, &f, &chains[i]);
	/* But for the lambda, as above. */
	ASSERT(nr_without_file(&f) <= 1);
	if (strstr(name, "clang_"))
		ASSERT_EQ(nr_without_file(&f), 0);
	ASSERT_EQ(has_function(&f, "never_used"), symbol(path, "never_used") != 0);
}

/* --- each way of building ------------------------------------------------------------------- */

#define GCC(name, options, linking)                                                                \
	TEST(gcc_##name)                                                                           \
	{                                                                                          \
		make_dir();                                                                        \
		build("gcc_" #name, "g++", options, linking);                                      \
		check_built("gcc_" #name);                                                         \
	}
#define CLANG(name, options, linking)                                                              \
	TEST(clang_##name)                                                                         \
	{                                                                                          \
		make_dir();                                                                        \
		build("clang_" #name, "clang++", options, linking);                                \
		check_built("clang_" #name);                                                       \
	}
#define BOTH(name, options, linking)                                                               \
	GCC(name, options, linking)                                                                \
	CLANG(name, options, linking)

BOTH(2, "-gdwarf-2", "")
BOTH(3, "-gdwarf-3", "")
BOTH(4, "-gdwarf-4", "")
BOTH(5, "-gdwarf-5", "")
BOTH(5_64bit, "-gdwarf-5 -gdwarf64", "")
BOTH(5_types, "-gdwarf-5 -fdebug-types-section", "")
BOTH(4_types, "-gdwarf-4 -fdebug-types-section", "")
BOTH(5_split, "-gdwarf-5 -gsplit-dwarf", "")
BOTH(4_split, "-gdwarf-4 -gsplit-dwarf", "")
BOTH(5_split_types, "-gdwarf-5 -gsplit-dwarf -fdebug-types-section", "")
BOTH(4_split_types, "-gdwarf-4 -gsplit-dwarf -fdebug-types-section", "")
BOTH(5_sections, "-gdwarf-5 -ffunction-sections", "-Wl,--gc-sections")
BOTH(4_sections, "-gdwarf-4 -ffunction-sections", "-Wl,--gc-sections")
BOTH(4_gold, "-gdwarf-4 -ffunction-sections", "-fuse-ld=gold -Wl,--gc-sections")
BOTH(5_gold, "-gdwarf-5 -ffunction-sections", "-fuse-ld=gold -Wl,--gc-sections")
GCC(4_64bit, "-gdwarf-4 -gdwarf64", "")
GCC(5_compressed, "-gdwarf-5 -gz=zlib", "-gz=zlib")
GCC(4_lto, "-gdwarf-4 -flto", "")
GCC(5_lto, "-gdwarf-5 -flto", "")
CLANG(5_split_inlining, "-gdwarf-5 -gsplit-dwarf -fsplit-dwarf-inlining", "")

TEST(clang_lld)
{
	make_dir();
	build("lld", "clang++", "-gdwarf-5 -ffunction-sections", "-fuse-ld=lld -Wl,--gc-sections");
	check_built("lld");
	build("lld4", "clang++", "-gdwarf-4 -ffunction-sections", "-fuse-ld=lld -Wl,--gc-sections");
	check_built("lld4");
	build("lto", "clang++", "-gdwarf-5 -flto", "-fuse-ld=lld");
	check_built("lto");
}

/* Packed, and the .dwo files gone. */
TEST(packages)
{
	static const char *const variants[][3] = {
		{ "gcc4", "g++", "-gdwarf-4 -gsplit-dwarf" },
		{ "gcc5", "g++", "-gdwarf-5 -gsplit-dwarf" },
		{ "clang4", "clang++", "-gdwarf-4 -gsplit-dwarf" },
		{ "clang5", "clang++", "-gdwarf-5 -gsplit-dwarf" },
		{ "clang4t", "clang++", "-gdwarf-4 -gsplit-dwarf -fdebug-types-section" },
		{ "clang5t", "clang++", "-gdwarf-5 -gsplit-dwarf -fdebug-types-section" },
	};

	make_dir();
	for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
		const char *name = variants[i][0];

		build(name, variants[i][1], variants[i][2], "");
		run("$(command -v llvm-dwp || command -v llvm-dwp-14) -e %s -o %s.dwp && rm *.dwo",
		    name, name);
		check_built(name);
	}
	build("gnu", "g++", "-gdwarf-4 -gsplit-dwarf", "");
	run("dwp -e gnu -o gnu.dwp && rm *.dwo");
	check_built("gnu");
}

/* What two files share is in a third. */
TEST(supplementary_files)
{
	make_dir();
	for (int version = 4; version <= 5; version++) {
		char options[64];

		snprintf(options, sizeof(options), "-gdwarf-%d", version);
		build("one", "g++", options, "");
		build("two", "g++", options, "-Wl,-z,now");
		run("dwz -m shared.alt one two && readelf -SW one | grep gnu_debugaltlink");
		check_built("one");
		check_built("two");
		/* And within one file: partial units. */
		build("three", "g++", options, "");
		run("dwz three");
		check_built("three");
	}
}

/* Line tables only: functions that have something inlined, under their plain names. */
TEST(clang_line_tables_only)
{
	const struct flat_scope *s;
	char path[PATH_MAX];
	struct flat f;

	make_dir();
	build("lines", "clang++", "-gdwarf-5 -gline-tables-only", "");
	snprintf(path, sizeof(path), "%s/lines", dir);
	read_built("lines", &f);
	s = flat_find(&f, symbol(path, "mark_innermost"));
	ASSERT(s && s->parent && s->parent->parent && !s->parent->parent->parent);
	ASSERT_STR(s->name, "innermost");
	ASSERT_EQ(s->call_line, line_of("@innermost"));
	ASSERT_STR(s->parent->name, "area");
	ASSERT_EQ(s->parent->call_line, line_of("@area"));
	ASSERT_STR(s->parent->parent->name, "plain");
}

/* Without its .dwo a skeleton has lines, and the loss is counted. */
TEST(missing_split_unit)
{
	char path[PATH_MAX];
	struct flat f;

	make_dir();
	build("lone", "g++", "-gdwarf-5 -gsplit-dwarf", "");
	run("rm *.dwo");
	snprintf(path, sizeof(path), "%s/lone", dir);
	flat_read(path, &f);
	ASSERT_EQ(f.counts.missing_split, 1);
	ASSERT_EQ(f.scopes.nr, 0);
	ASSERT_PTR_NONNULL(flat_line(&f, symbol(path, "mark_put")));
}

/* --- our own program ------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What addr2line -fi prints of an address, so far as it says what we say. */
static void print_chain(const struct flat *f, uint64_t addr, FILE *out)
{
	const struct flat_row *row = flat_line(f, addr);
	const char *file = row ? row->file : "??";
	uint32_t line = row ? row->line : 0;

	fprintf(out, "0x%016" PRIx64 "\n", addr);
	for (const struct flat_scope *s = flat_find(f, addr); s; s = s->parent) {
		fprintf(out, "%s\n%s:", shown_name(s), base_name(file));
		if (line)
			fprintf(out, "%" PRIu32 "\n", line);
		else
			fputs("?\n", out);
		file = s->call_file;
		line = s->call_line;
	}
}

/* Lines of both, address by address; how many addresses differ. */
static int compare(FILE *ours, FILE *theirs, int *ret_nr)
{
	char a[4096], b[4096];
	int nr = 0, nr_different = 0;
	bool differs = false;

	while (fgets(a, sizeof(a), ours)) {
		char *file;

		ASSERT_PTR_NONNULL(fgets(b, sizeof(b), theirs));
		if (!strncmp(a, "0x", 2)) {
			nr++;
			differs = false;
			ASSERT_STR(a, b);
			continue;
		}
		/* "FILE:LINE (discriminator N)" */
		b[strcspn(b, " \n")] = 0;
		a[strcspn(a, " \n")] = 0;
		file = strchr(b, ':') ? strrchr(b, '/') : NULL;
		if (strcmp(a, file ? file + 1 : b) && !differs) {
			fprintf(stderr, "%s, not %s\n", a, file ? file + 1 : b);
			nr_different++;
			differs = true;
		}
	}
	ASSERT_PTR_NULL(fgets(b, sizeof(b), theirs));
	*ret_nr = nr;
	return nr_different;
}

TEST(as_addr2line_says)
{
	enum { ADDRESSES = 2000 };
	_cleanup_fclose_ FILE *list = NULL, *ours = NULL, *theirs = NULL;
	char self[PATH_MAX] = "", path[PATH_MAX];
	struct flat f;
	int nr = 0, nr_inlined = 0;

	make_dir();
	ASSERT(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	flat_read(self, &f);
	ASSERT_EQ(f.counts.bad_units + f.counts.dropped + f.counts.missing_split, 0);
	ASSERT(f.ranges.nr > 100);
	snprintf(path, sizeof(path), "%s/addresses", dir);
	list = fopen(path, "we");
	ours = tmpfile();
	ASSERT(list && ours);
	srand48(1);
	while (nr < ADDRESSES) {
		const struct flat_range *r = &f.ranges.items[(size_t)(drand48() * f.ranges.nr)];
		uint64_t addr = r->begin + (uint64_t)(drand48() * (r->end - r->begin));

		nr++;
		nr_inlined += flat_find(&f, addr)->depth > 0;
		fprintf(list, "0x%" PRIx64 "\n", addr);
		print_chain(&f, addr, ours);
	}
	ASSERT_EQ(fflush(list), 0);
	rewind(ours);
	run("addr2line -afie '%s' <addresses >theirs", self);
	snprintf(path, sizeof(path), "%s/theirs", dir);
	theirs = fopen(path, "re");
	ASSERT_PTR_NONNULL(theirs);
	ASSERT(nr_inlined > ADDRESSES / 20);
	ASSERT_EQ(compare(ours, theirs, &nr), 0);
	ASSERT_EQ(nr, ADDRESSES);
}
