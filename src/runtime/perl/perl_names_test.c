// SPDX-License-Identifier: Apache-2.0
/*
 * Names of made-up subs in memory, and what is not them any more.
 */
#include "runtime/perl/perl_names.h"

#include "abi/sample.h"
#include "fake_memory.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>

enum {
	BASE = 0x100000,
	SIZE = 0x4000,
	COP = BASE + 0x100,
	CV = BASE + 0x200, /* each SV has its body behind it */
	GV = BASE + 0x400,
	OTHER_GV = BASE + 0x600,
	FILE_GV = BASE + 0x800,
	STASH = BASE + 0xa00,
	GP = BASE + 0xc00,
	BODY = 0x80,
	ARRAY = BASE + 0x1000, /* of a stash, and what it knows of its name behind it */
	STRINGS = BASE + 0x3000,
	START = 0x5550,
	LINE = 17,
	SEQ = 33,
	TYPE_GV = 9,
	TYPE_HV = 12,
	HAS_NAME = 0x02000000,
	NAMED = 0x8000,
	LEXICAL = 0x10000,
	UTF8 = 1,
};

static const uint64_t STATEMENT = (uint64_t)LINE << 32 | SEQ;

static struct {
	uint8_t bytes[SIZE];
	uint64_t strings;
	struct perl_names names;
	struct runtime_target target;
	char name[256], source[256];
	unsigned int line;
} t;

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	return fake_memory_read(t.bytes, BASE, SIZE, addr, to, size);
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(t.bytes + (addr - BASE), &value, sizeof(value));
}

static void put_half(uint64_t addr, uint32_t value)
{
	memcpy(t.bytes + (addr - BASE), &value, sizeof(value));
}

static uint64_t put_hek(const char *text, uint8_t flags)
{
	uint64_t addr = t.strings;
	size_t len = strlen(text);

	t.strings += 256;
	put_half(addr + 4, (uint32_t)len);
	memcpy(t.bytes + (addr - BASE) + 8, text, len);
	t.bytes[addr - BASE + 8 + len + 1] = flags;
	return addr;
}

static void put_sv(uint64_t addr, uint32_t flags, uint64_t u)
{
	put(addr, addr + BODY);
	put_half(addr + PERL_SV_FLAGS, flags);
	put(addr + PERL_SV_U, u);
}

static void put_gv(uint64_t addr, const char *name, uint64_t stash)
{
	put_sv(addr, TYPE_GV, 0);
	put(addr + BODY + 32, put_hek(name, 0));
	put(addr + BODY + 40, stash);
}

/* Where a stash's name is said: behind its array, since 5.36 in its body. */
static uint64_t stash_name(void)
{
	return t.names.version < 36 ? ARRAY + 8 * 8 : STASH + BODY + 32;
}

/* Package::sub, in line 17 of some/file.pl. */
static void set_up(unsigned int version, bool threaded)
{
	memset(&t, 0, sizeof(t));
	t.strings = STRINGS;
	t.target.memory = (struct runtime_memory){ read_test, NULL };
	t.names = (struct perl_names){ .target = &t.target,
				       .version = version,
				       .threaded = threaded };
	put_sv(STASH, TYPE_HV | HAS_NAME, ARRAY);
	put(STASH + BODY + 24, 7);
	put(stash_name(), put_hek("Package", 0));
	put_gv(GV, "sub", STASH);
	put_sv(CV, 13, 0);
	put(CV + BODY + PERL_CV_FIELDS, STASH);
	put(CV + BODY + PERL_CV_START, START);
	put(CV + BODY + PERL_CV_GV, GV);
	put_half(COP + PERL_COP_LINE, LINE);
	put_half(COP + PERL_COP_SEQ, SEQ);
	put_gv(FILE_GV, "_<some/file.pl", 0);
	put(COP + PERL_COP_FILE, FILE_GV);
	if (threaded) {
		put(COP + PERL_COP_FILE, t.strings);
		memcpy(t.bytes + (t.strings - BASE), "some/file.pl", 13);
		t.strings += 256;
	}
}

static int add_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	(void)ctx;
	snprintf(t.name, sizeof(t.name), "%s", inline_frame->name);
	snprintf(t.source, sizeof(t.source), "%s",
		 inline_frame->source ? inline_frame->source : "");
	t.line = inline_frame->line;
	return 0;
}

/* What is said of a frame of that kind, which the step saw as it was made. */
static int symbolize_as(uint64_t kind, uint64_t words[PERL_FRAME_WORDS])
{
	struct runtime_sink sink = { .add = add_inline_frame };
	bool compiling = kind & PERL_FRAME_COMPILING;
	uint64_t file, seq = compiling ? 0 : SEQ;

	t.name[0] = t.source[0] = '\0';
	memcpy(&file, t.bytes + (COP - BASE) + PERL_COP_FILE, sizeof(file));
	words[0] = FRAME(RUNTIME_PERL, 2, kind << PERL_KIND_SHIFT | CV);
	words[1] = (uint64_t)COP << PERL_COP_SHIFT |
		   perl_cop_cookie(file, (uint32_t)seq) >> (64 - PERL_COP_SHIFT);
	words[2] = kind == PERL_FRAME_SUB || kind == PERL_FRAME_FORMAT
			   ? perl_sub_cookie(GV, START, STATEMENT) << PERL_COOKIE_SHIFT
			   : perl_statement_cookie(STATEMENT) << PERL_COOKIE_SHIFT;
	if (compiling)
		words[2] = perl_statement_cookie(0) << PERL_COOKIE_SHIFT | LINE;
	return perl_names_symbolize(&t.names, words, PERL_FRAME_WORDS, &sink);
}

/* Looks once more at a frame that symbolize_as() has made. */
static int symbolize_again(const uint64_t words[PERL_FRAME_WORDS])
{
	struct runtime_sink sink = { .add = add_inline_frame };

	return perl_names_symbolize(&t.names, words, PERL_FRAME_WORDS, &sink);
}

static void check_sub(unsigned int version, bool threaded)
{
	uint64_t words[PERL_FRAME_WORDS];

	set_up(version, threaded);
	ASSERT_OK(symbolize_as(PERL_FRAME_SUB, words));
	ASSERT_STR(t.name, "Package::sub");
	ASSERT_STR(t.source, "some/file.pl");
	ASSERT_EQ(t.line, LINE);
}

TEST(a_sub_has_its_package_its_file_and_its_line)
{
	check_sub(28, false);
	check_sub(32, true);
	check_sub(36, true);
	check_sub(42, false);
}

TEST(names_of_other_subs)
{
	uint64_t words[PERL_FRAME_WORDS];

	/* What was called otherwise first. */
	set_up(36, true);
	put(GV + PERL_SV_U, GP);
	put(GP + 56, OTHER_GV);
	put_gv(OTHER_GV, "first", STASH);
	ASSERT_OK(symbolize_as(PERL_FRAME_SUB, words));
	ASSERT_STR(t.name, "Package::first");
	/* Without a glob of its own. */
	put_half(CV + BODY + PERL_CV_FLAGS, NAMED);
	put(CV + BODY + PERL_CV_GV, put_hek("sparse", 0));
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	/* A package with several names, in Latin-1 and in UTF-8. */
	set_up(36, true);
	put_half(stash_name() + 28, 2);
	put(stash_name(), ARRAY + 0x200);
	put(ARRAY + 0x200, put_hek("gr\xfcn", 0));
	ASSERT_OK(symbolize_as(PERL_FRAME_SUB, words));
	ASSERT_STR(t.name, "gr\u00fcn::sub");
	put(ARRAY + 0x200, put_hek("gr\u00fcn", UTF8));
	ASSERT_OK(symbolize_as(PERL_FRAME_SUB, words));
	ASSERT_STR(t.name, "gr\u00fcn::sub");
	/* A package that was dropped. */
	put_half(STASH + PERL_SV_FLAGS, TYPE_HV);
	ASSERT_OK(symbolize_as(PERL_FRAME_SUB, words));
	ASSERT_STR(t.name, "__ANON__::sub");
}

TEST(a_sub_without_a_glob_has_its_name_alone)
{
	uint64_t words[PERL_FRAME_WORDS], name;

	set_up(40, true);
	name = put_hek("inside", 0);
	put(CV + BODY + PERL_CV_GV, name);
	put_half(CV + BODY + PERL_CV_FLAGS, NAMED | LEXICAL);
	ASSERT_EQ(symbolize_as(PERL_FRAME_SUB, words), -ENOENT);
	words[2] = perl_sub_cookie(name, START, STATEMENT) << PERL_COOKIE_SHIFT;
	ASSERT_OK(symbolize_again(words));
	ASSERT_STR(t.name, "inside");
	put_half(CV + BODY + PERL_CV_FLAGS, NAMED);
	ASSERT_OK(symbolize_again(words));
	ASSERT_STR(t.name, "Package::inside");
}

/* A closure of Package, in line 17, whose CV the step saw; `gv`: the glob of its name. */
static int symbolize_closure(uint64_t gv, uint64_t words[PERL_FRAME_WORDS])
{
	symbolize_as(PERL_FRAME_SUB, words);
	words[0] = FRAME(RUNTIME_PERL, 2,
			 (uint64_t)PERL_FRAME_SUB << PERL_KIND_SHIFT | gv | PERL_PLACE_GLOB);
	words[2] = perl_closure_cookie(gv, STASH, STATEMENT) << PERL_COOKIE_SHIFT;
	return symbolize_again(words);
}

static void set_up_closure(void)
{
	set_up(36, true);
	put_gv(GV, "__ANON__", STASH);
	put(CV, 0); /* its copy is gone */
}

TEST(a_closure_is_known_by_its_names_glob)
{
	uint64_t words[PERL_FRAME_WORDS];

	set_up_closure();
	ASSERT_OK(symbolize_closure(GV, words));
	ASSERT_STR(t.name, "Package::__ANON__");
	ASSERT_STR(t.source, "some/file.pl");
	ASSERT_EQ(t.line, LINE);
	/* In a debugger. */
	put_gv(GV, "__ANON__[some/file.pl:17]", STASH);
	ASSERT_OK(symbolize_again(words));
	ASSERT_STR(t.name, "Package::__ANON__[some/file.pl:17]");
}

TEST(a_lexical_closure_is_known_by_its_text)
{
	uint64_t words[PERL_FRAME_WORDS], name, first;

	set_up_closure();
	symbolize_as(PERL_FRAME_SUB, words);
	name = put_hek("inside", 0);
	put_half(name, 0x1234567);
	memcpy(&first, t.bytes + (name - BASE), sizeof(first));
	words[0] = FRAME(RUNTIME_PERL, 2,
			 (uint64_t)PERL_FRAME_SUB << PERL_KIND_SHIFT | name | PERL_PLACE_TEXT);
	words[2] = perl_closure_cookie(name, first, STATEMENT) << PERL_COOKIE_SHIFT;
	ASSERT_OK(symbolize_again(words));
	ASSERT_STR(t.name, "inside");
	ASSERT_EQ(t.line, LINE);
	put_half(name, 0x1234568); /* another text's hash */
	ASSERT_EQ(symbolize_again(words), -ENOENT);
}

TEST(what_is_not_its_glob_does_not_name_a_closure)
{
	uint64_t words[PERL_FRAME_WORDS];

	set_up_closure();
	put_gv(GV, "other", STASH);
	ASSERT_EQ(symbolize_closure(GV, words), -ENOENT);
	put_gv(GV, "__ANON__", OTHER_GV); /* another package's */
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	put_half(GV + PERL_SV_FLAGS, 4);
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	/* Another text's statement. */
	set_up_closure();
	ASSERT_OK(symbolize_closure(GV, words));
	put_half(COP + PERL_COP_SEQ, SEQ + 1);
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	/* Without a statement nothing shows whose it is. */
	set_up_closure();
	ASSERT_OK(symbolize_closure(GV, words));
	words[1] = 0;
	words[2] = perl_closure_cookie(GV, STASH, 0) << PERL_COOKIE_SHIFT;
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	ASSERT_EQ(symbolize_closure(BASE + SIZE, words), -ENOENT);
}

TEST(frames_that_are_no_subs)
{
	static const struct {
		uint64_t kind;
		const char *name;
	} kinds[] = {
		{ PERL_FRAME_EVAL, "(eval)" },
		{ PERL_FRAME_SORT, "(sort block)" },
		{ PERL_FRAME_PATTERN, "(pattern block)" },
		{ PERL_FRAME_MAIN, "(main)" },
		{ PERL_FRAME_DEFER, "(defer block)" },
	};
	struct runtime_sink sink = { .add = add_inline_frame };
	uint64_t words[PERL_FRAME_WORDS];

	set_up(36, true);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		ASSERT_OK(symbolize_as(kinds[i].kind, words));
		ASSERT_STR(t.name, kinds[i].name);
		ASSERT_EQ(t.line, LINE);
	}
	words[0] |= 1;
	ASSERT_OK(perl_names_symbolize(&t.names, words, PERL_FRAME_WORDS, &sink));
	ASSERT_STR(t.name, "(finally block)");
	ASSERT_EQ(symbolize_as(PERL_FRAME_MAX_, words), -EINVAL);
}

TEST(what_was_freed_has_no_name)
{
	uint64_t words[PERL_FRAME_WORDS];

	/* Another sub's CV, another statement, another file at the same addresses. */
	set_up(36, true);
	ASSERT_OK(symbolize_as(PERL_FRAME_SUB, words));
	put(CV + BODY + PERL_CV_START, START + 8);
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	set_up(36, true);
	put_half(COP + PERL_COP_SEQ, SEQ + 1);
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	set_up(36, true);
	put_half(COP + PERL_COP_LINE, LINE + 1);
	ASSERT_EQ(symbolize_again(words), -ENOENT);
	/* Memory that is no glob's any more, or that is not there. */
	set_up(36, true);
	put_half(GV + PERL_SV_FLAGS, 4);
	ASSERT_EQ(symbolize_as(PERL_FRAME_SUB, words), -ENOENT);
	set_up(36, true);
	put(GV + BODY + 32, BASE + SIZE);
	ASSERT_EQ(symbolize_as(PERL_FRAME_SUB, words), -ENOENT);
	/* A length that no name has. */
	set_up(36, true);
	put_half(STRINGS + 4, 1 << 20);
	ASSERT_EQ(symbolize_as(PERL_FRAME_SUB, words), -ENOENT);
}

TEST(while_a_text_is_compiled_its_line_may_be_gone)
{
	uint64_t words[PERL_FRAME_WORDS];

	set_up(36, true);
	ASSERT_OK(symbolize_as(PERL_FRAME_EVAL | PERL_FRAME_COMPILING, words));
	ASSERT_EQ(t.line, LINE);
	/* It has moved on: the line is that of the sample. */
	put_half(COP + PERL_COP_LINE, LINE + 5);
	ASSERT_OK(symbolize_again(words));
	ASSERT_EQ(t.line, LINE);
	/* To another file. */
	put(COP + PERL_COP_FILE, BASE + 0x10);
	ASSERT_OK(symbolize_again(words));
	ASSERT_EQ(t.line, 0u);
	ASSERT_STR(t.source, "");
}
