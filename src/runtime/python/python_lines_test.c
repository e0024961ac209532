// SPDX-License-Identifier: Apache-2.0
/*
 * Line tables as each Python on this machine makes them, every instruction compared with what that
 * Python says; made-up ones for what compilers seldom make; strings of all widths.
 */
#include "runtime/python/python_lines.h"

#include "runtime/python/test_pythons.h"

#include "test.h"
#include "util/cleanup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
	uint8_t *data;
	size_t size;
	uint32_t first_line;
	uint32_t nr_codes, nr_lines, nr_none;
};

static void take_table(struct table *t, char *line)
{
	char *hex;

	t->first_line = (uint32_t)strtoul(line, &hex, 10);
	hex++;
	t->size = strcspn(hex, "\n") / 2;
	t->data = realloc(t->data, t->size + 1);
	for (size_t i = 0; i < t->size; i++) {
		unsigned int byte;

		ASSERT_EQ(sscanf(hex + 2 * i, "%2x", &byte), 1);
		t->data[i] = (uint8_t)byte;
	}
	t->nr_codes++;
}

static void compare(struct table *t, unsigned int minor, const char *python, const char *line)
{
	uint32_t offset, want, got;

	ASSERT_EQ(sscanf(line, "%u %u", &offset, &want), 2);
	got = python_line(minor, t->data, t->size, t->first_line, offset);
	if (got != want)
		FAIL("%s: code object %u, from line %u on: offset %u is line %u, not %u", python,
		     t->nr_codes, t->first_line, offset, want, got);
	t->nr_lines++;
	t->nr_none += !want;
}

static void check_python(const char *python, unsigned int minor)
{
	char command[2 * PATH_MAX];
	_cleanup_free_ char *line = NULL;
	struct table t = { 0 };
	size_t room = 0;
	FILE *f;

	snprintf(command, sizeof(command), "'%s' %s/tests/runtimes/python/dump_lines.py", python,
		 test_source_root());
	f = popen(command, "r");
	ASSERT(f);
	while (getline(&line, &room, f) > 0) {
		if (!strncmp(line, "code ", 5))
			take_table(&t, line + 5);
		else
			compare(&t, minor, python, line);
	}
	ASSERT_EQ(pclose(f), 0);
	free(t.data);
	ASSERT(t.nr_codes > 500 && t.nr_lines > 10000);
}

TEST(as_each_python_says)
{
	ASSERT(test_pythons(check_python) > 0);
}

#define LINE(minor, first, offset, ...)                                                            \
	python_line(minor, (const uint8_t[]){ __VA_ARGS__ },                                       \
		    sizeof((const uint8_t[]){ __VA_ARGS__ }), first, offset)

TEST(instructions_without_a_location_shift_nothing)
{
	/* 2 units of line 10, 1 without one, 1 of line 11 (3.11: no columns, none, one-line). */
	ASSERT_EQ(LINE(11, 10, 2, 0xe9, 0, 0xf8, 0xd8, 0, 0), 10);
	ASSERT_EQ(LINE(11, 10, 4, 0xe9, 0, 0xf8, 0xd8, 0, 0), 0);
	ASSERT_EQ(LINE(11, 10, 6, 0xe9, 0, 0xf8, 0xd8, 0, 0), 11);
	ASSERT_EQ(LINE(11, 10, 8, 0xe9, 0, 0xf8, 0xd8, 0, 0), 0);
	ASSERT_EQ(LINE(10, 10, 2, 4, 0, 2, 0x80, 2, 1), 10);
	ASSERT_EQ(LINE(10, 10, 4, 4, 0, 2, 0x80, 2, 1), 0);
	ASSERT_EQ(LINE(10, 10, 6, 4, 0, 2, 0x80, 2, 1), 11);
	ASSERT_EQ(LINE(10, 10, 8, 4, 0, 2, 0x80, 2, 1), 0);
}

TEST(long_forms)
{
	/* Lines by -40 (as 81: 0x51 0x01), the end by 2, columns 5 and 70. */
	ASSERT_EQ(LINE(12, 100, 0, 0xf0, 0x51, 0x01, 2, 5, 0x46, 1, 0xe0, 2), 60);
	ASSERT_EQ(LINE(12, 100, 2, 0xf0, 0x51, 0x01, 2, 5, 0x46, 1, 0xe0, 2), 62);
}

TEST(before_the_first_instruction)
{
	ASSERT_EQ(LINE(8, 7, (uint32_t)-1, 0, 1), 7);
	ASSERT_EQ(LINE(13, 7, (uint32_t)-2, 0xe0, 2), 7);
}

TEST(broken_tables)
{
	ASSERT_EQ(LINE(11, 10, 0, 0x69, 0), 0);			     /* no entry begins here */
	ASSERT_EQ(LINE(11, 10, 0, 0xf0, 0x40, 0x40, 0x40, 0x40), 0); /* cut off */
	ASSERT_EQ(LINE(11, 10, 0, 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f, 0), 0); /* endless */
	ASSERT_EQ(LINE(11, 10, 0, 0xe8, 0x43, 0x3f), 0); /* before line 1 */
	ASSERT_EQ(LINE(9, 10, 300, 1), 10);		 /* half a pair */
	ASSERT_EQ(LINE(9, 10, 300, 1, 0x80), 0);	 /* before line 1 */
	ASSERT_EQ(python_line(11, NULL, 0, 10, 0), 0);
	ASSERT_EQ(python_line(9, NULL, 0, 10, 0), 10);
	ASSERT_EQ(python_line(9, NULL, 0, UINT32_MAX, 0), 0);
}

#define UTF8(nr, width, room, ...)                                                                 \
	python_utf8((const uint8_t[]){ __VA_ARGS__ }, nr, width, to, room)

TEST(strings_of_all_widths)
{
	char to[64];

	ASSERT_EQ(UTF8(2, 1, 64, 'a', 'z'), 2);
	ASSERT_STR(to, "az");
	ASSERT_EQ(UTF8(2, 1, 64, 'a', 0xe9), 3);
	ASSERT_STR(to, "a\u00e9");
	ASSERT_EQ(UTF8(2, 2, 64, 0xac, 0x20, 'x', 0), 4);
	ASSERT_STR(to, "\u20acx");
	ASSERT_EQ(UTF8(2, 4, 64, 0x00, 0xf6, 1, 0, 0xff, 0xff, 0x10, 0), 8);
	ASSERT_STR(to, "\U0001f600\U0010ffff");
	ASSERT_EQ(UTF8(0, 1, 1, 0), 0);
	ASSERT_STR(to, "");
}

TEST(what_has_no_utf8)
{
	char to[64];

	/* Surrogates: how Python keeps bytes of file names that are not UTF-8. */
	ASSERT_EQ(UTF8(3, 2, 64, 'a', 0, 0x80, 0xdc, 'b', 0), 5);
	ASSERT_STR(to, "a\ufffdb");
	ASSERT_EQ(UTF8(1, 4, 64, 0, 0, 0x11, 0), 3);
	ASSERT_STR(to, "\ufffd");
	ASSERT_EQ(UTF8(2, 1, 64, 0, 'x'), 4);
	ASSERT_STR(to, "\ufffdx");
}

TEST(cut_at_a_character)
{
	char to[64];

	memset(to, 'X', sizeof(to));
	ASSERT_EQ(UTF8(3, 2, 6, 'a', 0, 0xac, 0x20, 0xac, 0x20), 4);
	ASSERT_STR(to, "a\u20ac");
	ASSERT_EQ(UTF8(3, 2, 1, 'a', 0, 0xac, 0x20, 0xac, 0x20), 0);
	ASSERT_STR(to, "");
}
