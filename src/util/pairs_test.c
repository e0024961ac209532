// SPDX-License-Identifier: Apache-2.0
#include "test.h"
#include "util/pairs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

TEST(names_and_values_are_read)
{
	struct pairs p;
	const char *problem;

	ASSERT_OK(pairs_parse(" service.name = a%20b%2c ,b=1=2,,c=, d=%zz%4,b=3", &p, &problem));
	ASSERT_EQ(p.nr, 5);
	ASSERT_STR(p.items[0].name, "service.name");
	ASSERT_STR(p.items[0].value, "a b,");
	ASSERT_STR(pairs_get(&p, "b"), "1=2");
	ASSERT_STR(pairs_get(&p, "c"), "");
	ASSERT_STR(pairs_get(&p, "d"), "%zz%4");
	ASSERT(!pairs_get(&p, "e"));
	pairs_fini(&p);
	ASSERT_OK(pairs_parse("", &p, &problem));
	ASSERT_EQ(p.nr, 0);
	pairs_fini(&p);
}

TEST(what_is_no_list_is_refused)
{
	static const char *const texts[] = { "a",     "=b",	"a b=c", "a=%0d%0ab",
					     "a:b=c", "a=\x7f", "a=1,b", "a\xff=1" };
	struct pairs p;
	const char *problem;
	char many[400] = "";

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		problem = NULL;
		ck_assert_msg(pairs_parse(texts[i], &p, &problem) == -EINVAL, "'%s'", texts[i]);
		ASSERT(problem);
	}
	for (int i = 0; i <= PAIRS_MAX; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "h%d=1,", i);
	ASSERT_ERR(pairs_parse(many, &p, &problem), EINVAL);
}

TEST(what_is_appended_is_found)
{
	char text[64] = "";
	size_t len = 0;
	const char *problem;
	struct pairs p;

	ASSERT_OK(pairs_append(text, sizeof(text), &len, "a", 1, "x, %41=\xc3\xa4", 9));
	ASSERT_OK(pairs_append(text, sizeof(text), &len, "b.c", 3, "", 0));
	ASSERT_ERR(pairs_append(text, sizeof(text), &len, "", 0, "x", 1), EINVAL);
	ASSERT_ERR(pairs_append(text, sizeof(text), &len, "a b", 3, "x", 1), EINVAL);
	ASSERT_ERR(pairs_append(text, sizeof(text), &len, "a\0", 2, "x", 1), EINVAL);
	ASSERT_ERR(pairs_append(text, sizeof(text), &len, "d", 1, "x\n", 2), EINVAL);
	ASSERT_ERR(pairs_append(text, sizeof(text), &len, "d", 1, "12345678901234567890", 20),
		   ENOSPC);
	ASSERT_EQ(len, strlen(text));
	ASSERT_OK(pairs_parse(text, &p, &problem));
	ASSERT_EQ(p.nr, 2);
	ASSERT_STR(pairs_get(&p, "a"), "x, %41=\xc3\xa4");
	ASSERT_STR(pairs_get(&p, "b.c"), "");
	pairs_fini(&p);
}
