// SPDX-License-Identifier: Apache-2.0
#include "util/strtab.h"
#include "test.h"

#include <stdio.h>

TEST(equal_strings_have_one_id)
{
	struct strtab t;
	uint32_t a, b, c;

	ASSERT_OK(strtab_init(&t));
	ASSERT_OK(strtab_intern(&t, "hello", 5, &a));
	ASSERT_OK(strtab_intern(&t, "hello world", 5, &b));
	ASSERT_OK(strtab_intern(&t, "hello world", 11, &c));
	ASSERT_EQ(a, b);
	ASSERT(a != c);
	ASSERT_STR(strtab_get(&t, a), "hello");
	ASSERT_STR(strtab_get(&t, c), "hello world");
	strtab_fini(&t);
}

TEST(the_empty_string_is_0)
{
	struct strtab t;
	uint32_t id = 7;

	ASSERT_OK(strtab_init(&t));
	ASSERT_OK(strtab_intern(&t, "", 0, &id));
	ASSERT_EQ(id, 0);
	ASSERT_STR(strtab_get(&t, 12345), "");
	strtab_fini(&t);
}

TEST(many_strings_stay_where_they_are)
{
	struct strtab t;
	char buf[32];
	uint32_t id;

	ASSERT_OK(strtab_init(&t));
	for (int i = 0; i < 20000; i++) {
		snprintf(buf, sizeof(buf), "string %d", i);
		ASSERT_OK(strtab_intern(&t, buf, sizeof(buf), &id));
		ASSERT_EQ(id, i + 1);
	}
	ASSERT_STR(strtab_get(&t, 1), "string 0");
	ASSERT_STR(strtab_get(&t, 20000), "string 19999");
	strtab_fini(&t);
}
