// SPDX-License-Identifier: Apache-2.0
#include "util/hex.h"
#include "test.h"

#include <string.h>

/* How many characters were read, or -1. */
static long parse(const char *text, uint64_t *ret)
{
	const char *end = hex_parse(text, text + strlen(text), ret);

	return end ? end - text : -1;
}

TEST(numbers_end_where_digits_do)
{
	uint64_t v = 0;

	ASSERT_EQ(parse("0", &v), 1);
	ASSERT_EQ(v, 0);
	ASSERT_EQ(parse("7fFfA9 rest", &v), 6);
	ASSERT_EQ(v, 0x7fffa9);
	ASSERT_EQ(parse("ffffffffffffffff", &v), 16);
	ASSERT_EQ(v, UINT64_MAX);
	ASSERT_EQ(parse("0x10", &v), 1);
	ASSERT_EQ(parse("12g4", &v), 2);
}

TEST(what_is_no_number_is_refused)
{
	uint64_t v = 5;

	ASSERT_EQ(parse("", &v), -1);
	ASSERT_EQ(parse("x1", &v), -1);
	ASSERT_EQ(parse(" 1", &v), -1);
	ASSERT_EQ(parse("10000000000000000", &v), -1);
	ASSERT_EQ(v, 5);
}
