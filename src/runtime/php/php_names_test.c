// SPDX-License-Identifier: Apache-2.0
/*
 * Names of closures whose own copies of their functions are gone, by what their declarations left
 * in memory; and what is not that any more. Lines of a file's code that was freed.
 */
#include "runtime/php/php_names.h"

#include "abi/sample.h"
#include "fake_memory.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>

enum {
	BASE = 0x100000,
	SIZE = 0x8000,
	NAME = BASE + 0x100,
	CLASS = BASE + 0x200,
	SOURCE = BASE + 0x300,
	OPCODES = BASE + 0x400,
	FILE_CODE = BASE + 0x600, /* a zend_op_array without a name */
	LONG_NAME = BASE + 0x1000,
	FIRST_LINE = 12,
	LAST_LINE = 15,
	OP = 3,
};

static struct {
	uint8_t bytes[SIZE];
	struct runtime_target target;
	char name[2048], source[256];
	unsigned int start_line, line;
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

static void put_text(uint64_t addr, const char *text, size_t length)
{
	put(addr + PHP_STRING_LENGTH, length);
	memcpy(t.bytes + (addr - BASE) + PHP_STRING_TEXT, text, length);
}

static void put_string(uint64_t addr, const char *text, uint64_t hash)
{
	put(addr + PHP_STRING_HASH, hash);
	put_text(addr, text, strlen(text));
}

static void put_line(uint32_t line)
{
	put(OPCODES + OP * PHP_OP_SIZE + PHP_OP_LINE, line);
}

/* Zend/zend_string.h has it, eight bytes at a time. */
static uint64_t hash(const char *text, size_t length)
{
	uint64_t sum = 5381;

	for (size_t i = 0; i < length; i++)
		sum = (sum << 5) + sum + (uint8_t)text[i];
	return sum | UINT64_C(0x8000000000000000);
}

static int add_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	(void)ctx;
	snprintf(t.name, sizeof(t.name), "%s", inline_frame->name);
	snprintf(t.source, sizeof(t.source), "%s",
		 inline_frame->source ? inline_frame->source : "");
	t.start_line = inline_frame->start_line;
	t.line = inline_frame->line;
	return 0;
}

static void set_up(const char *name, uint64_t name_hash)
{
	memset(&t, 0, sizeof(t));
	t.target.memory = (struct runtime_memory){ read_test, NULL };
	put_string(NAME, name, name_hash);
	put_string(CLASS, "Thing", hash("Thing", 5));
	put_string(SOURCE, "/some/file.php", hash("/some/file.php", 14));
	put_line(14);
}

/* What is said of the closure that the step saw with these hashes. */
static int symbolize(uint64_t name_at, uint64_t name_hash, uint64_t class_at)
{
	struct runtime_sink sink = { .add = add_inline_frame };
	struct php_layout layout = { 0 };
	uint32_t identity = php_copy_identity(name_hash, class_at ? hash("Thing", 5) : 0,
					      hash("/some/file.php", 14));
	uint64_t words[PHP_COPY_WORDS] = {
		FRAME(RUNTIME_PHP, PHP_COPY_WORDS - 1,
		      OPCODES | (uint64_t)PHP_CODE_COPY << PHP_CODE_SHIFT),
		(uint64_t)identity << 32 | OP,
		name_at,
		class_at,
		SOURCE,
		FIRST_LINE | (uint64_t)LAST_LINE << 32,
	};

	t.name[0] = t.source[0] = '\0';
	ASSERT_EQ(php_names_symbolize(&t.target, &layout, words, PHP_FRAME_WORDS, &sink), -EINVAL);
	return php_names_symbolize(&t.target, &layout, words, PHP_COPY_WORDS, &sink);
}

TEST(a_closure_is_named_by_what_its_copies_share)
{
	uint64_t name_hash = hash("{closure}", 9);

	set_up("{closure}", name_hash);
	ASSERT_OK(symbolize(NAME, name_hash, CLASS));
	ASSERT_STR(t.name, "Thing::{closure}");
	ASSERT_STR(t.source, "/some/file.php");
	ASSERT(t.start_line == FIRST_LINE && t.line == 14);
	ASSERT_OK(symbolize(NAME, name_hash, 0));
	ASSERT_STR(t.name, "{closure}");
}

TEST(another_text_is_not_its_name)
{
	uint64_t name_hash = hash("{closure}", 9), other = hash("function_", 9);

	set_up("{closure}", name_hash);
	put_text(NAME, "function_", 9); /* the hash is the old one's */
	ASSERT_EQ(symbolize(NAME, name_hash, CLASS), -ENOENT);
	put_string(NAME, "function_", other);
	ASSERT_EQ(symbolize(NAME, name_hash, CLASS), -ENOENT);
	ASSERT_OK(symbolize(NAME, other, CLASS)); /* a closure that was made of it */
	set_up("{closure}", name_hash);
	put_string(CLASS, "Other", hash("Other", 5));
	ASSERT_EQ(symbolize(NAME, name_hash, CLASS), -ENOENT);
	set_up("{closure}", name_hash);
	put_string(SOURCE, "/some/else.php", hash("/some/else.php", 14));
	ASSERT_EQ(symbolize(NAME, name_hash, CLASS), -ENOENT);
	set_up("{closure}", name_hash);
	put(SOURCE + PHP_STRING_HASH, 0); /* whose is not known */
	ASSERT_EQ(symbolize(NAME, name_hash, CLASS), -ENOENT);
}

TEST(a_name_without_a_hash_is_a_closures)
{
	static const char *const good[] = { "{closure}", "Some\\{closure}",
					    "{closure:/Some/file.php:12}",
					    "{closure:Some\\Thing::{closure:Thing::f():3}():12}" };
	static const char *const bad[] = {
		"Function",	 "X{closure}", "{closure:/Some/file.php:2}",
		"{closure:12}x", "{closure}x", "{closure",
		":12}"
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		set_up(good[i], 0);
		ASSERT_OK(symbolize(NAME, 0, 0));
		ASSERT_STR(t.name, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		set_up(bad[i], 0);
		ASSERT_EQ(symbolize(NAME, 0, 0), -ENOENT);
	}
}

TEST(a_line_is_one_of_the_closures)
{
	uint64_t name_hash = hash("{closure}", 9);

	set_up("{closure}", name_hash);
	put_line(LAST_LINE + 1);
	ASSERT_OK(symbolize(NAME, name_hash, CLASS));
	ASSERT_EQ(t.line, 0);
	put_line(FIRST_LINE - 1);
	ASSERT_OK(symbolize(NAME, name_hash, CLASS));
	ASSERT_EQ(t.line, 0);
	put_line(LAST_LINE);
	ASSERT_OK(symbolize(NAME, name_hash, CLASS));
	ASSERT_EQ(t.line, LAST_LINE);
}

/* What is said of a file's code that another one includes, in its instruction OP. */
static int symbolize_file(void)
{
	struct runtime_sink sink = { .add = add_inline_frame };
	const struct php_layout layout = {
		.last = 96, .opcodes = 104, .filename = 152, .lines = 160
	};
	const uint64_t lines = 1 | (uint64_t)LAST_LINE << 32;
	uint64_t words[PHP_FRAME_WORDS] = {
		FRAME(RUNTIME_PHP, PHP_FRAME_WORDS - 1,
		      FILE_CODE | (uint64_t)PHP_CODE_REQUIRE << PHP_CODE_SHIFT),
		(uint64_t)php_identity(0, 0, OPCODES, lines, 0, hash("/some/file.php", 14)) << 32 |
			OP,
	};

	t.bytes[FILE_CODE - BASE] = PHP_USER_FUNCTION;
	put(FILE_CODE + layout.last, 20);
	put(FILE_CODE + layout.opcodes, OPCODES);
	put(FILE_CODE + layout.filename, SOURCE);
	put(FILE_CODE + layout.lines, lines);
	return php_names_symbolize(&t.target, &layout, words, PHP_FRAME_WORDS, &sink);
}

TEST(a_line_is_one_of_the_files)
{
	set_up("{closure}", 0);
	ASSERT_OK(symbolize_file());
	ASSERT_STR(t.name, "require");
	ASSERT_STR(t.source, "/some/file.php");
	ASSERT_EQ(t.line, 14);
	/* Its instructions were freed first; they are a text now. */
	put_line(1768843597);
	ASSERT_OK(symbolize_file());
	ASSERT_STR(t.name, "require");
	ASSERT_EQ(t.line, 0);
}

/* What is said of a file's code that opcache keeps, which another one includes. */
static int symbolize_kept(unsigned int code)
{
	struct runtime_sink sink = { .add = add_inline_frame };
	struct php_layout layout = { 0 };
	uint64_t words[PHP_COPY_WORDS] = {
		FRAME(RUNTIME_PHP, PHP_COPY_WORDS - 1,
		      OPCODES | (uint64_t)(PHP_CODE_KEPT | code) << PHP_CODE_SHIFT),
		(uint64_t)php_copy_identity(0, 0, hash("/some/file.php", 14)) << 32 | OP,
		0, /* no name */
		0,
		SOURCE,
		1 | (uint64_t)LAST_LINE << 32,
	};

	t.name[0] = t.source[0] = '\0';
	return php_names_symbolize(&t.target, &layout, words, PHP_COPY_WORDS, &sink);
}

TEST(a_file_that_has_run_is_named_by_what_opcache_keeps)
{
	set_up("{closure}", 0);
	ASSERT_OK(symbolize_kept(PHP_CODE_REQUIRE));
	ASSERT_STR(t.name, "require");
	ASSERT_STR(t.source, "/some/file.php");
	ASSERT(t.start_line == 1 && t.line == 14);
	ASSERT_OK(symbolize_kept(PHP_CODE_MAIN));
	ASSERT_STR(t.name, "{main}");
	ASSERT_EQ(symbolize_kept(PHP_CODE_REQUIRE_ONCE + 1), -EINVAL);
	put_string(SOURCE, "/some/else.php", hash("/some/else.php", 14));
	ASSERT_EQ(symbolize_kept(PHP_CODE_REQUIRE), -ENOENT);
}

TEST(long_names_are_cut_and_endless_ones_are_none)
{
	static char text[5000];
	uint64_t name_hash;

	memset(text, 'x', sizeof(text));
	name_hash = hash(text, sizeof(text));
	set_up("{closure}", 0);
	put(LONG_NAME + PHP_STRING_HASH, name_hash);
	put_text(LONG_NAME, text, sizeof(text));
	ASSERT_OK(symbolize(LONG_NAME, name_hash, 0));
	ASSERT_EQ(strlen(t.name), 1023);
	put(LONG_NAME + PHP_STRING_LENGTH, UINT64_MAX);
	ASSERT_EQ(symbolize(LONG_NAME, name_hash, 0), -ENOENT);
	put(LONG_NAME + PHP_STRING_LENGTH, 0);
	ASSERT_EQ(symbolize(LONG_NAME, name_hash, 0), -ENOENT);
	ASSERT_EQ(symbolize(BASE + SIZE, name_hash, 0), -ENOENT);
}
