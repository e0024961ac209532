// SPDX-License-Identifier: Apache-2.0
#include "symbol/code_names.h"

#include "test.h"

#include <errno.h>
#include <stdio.h>

static struct code_names c;
static uint64_t now;

static void expect(uint64_t addr, bool known, const char *name)
{
	const char *found = "?";

	ASSERT_EQ(code_names_find(&c, addr, &found), known);
	if (known && name)
		ASSERT_STR(found, name);
	else if (known)
		ASSERT(!found);
}

#define NAME(name) "bpf_prog_0123456789abcdef_" name

TEST(who_is_there_is_who_came_last)
{
	expect(0x1000, false, NULL);
	ASSERT(code_names_add(&c, now += 1000000, 0x2000, 0x100, NAME("two")));
	ASSERT(code_names_add(&c, now += 1000000, 0x1000, 0x100, NAME("one")));
	expect(0xfff, false, NULL);
	expect(0x1000, true, NAME("one"));
	expect(0x10ff, true, NAME("one"));
	expect(0x1100, false, NULL);
	expect(0x20ff, true, NAME("two"));
	ASSERT(code_names_gone(&c, 0x1000, 0x100, NAME("one")));
	expect(0x10ff, true, NULL);
	expect(0x2000, true, NAME("two"));
	ASSERT(code_names_add(&c, now += 1000000, 0x1080, 0x40, NAME("one")));
	expect(0x1080, true, NAME("one"));
	/* Who was there before is not, in any part. */
	expect(0x1000, false, NULL);
	ASSERT(code_names_add(&c, now += 1000000, 0x1000, 0x2000, NAME("all")));
	expect(0x1080, true, NAME("all"));
	expect(0x2000, true, NAME("all"));
	ASSERT_EQ(c.items.nr, 1);
	code_names_forget_all(&c);
	expect(0x1000, false, NULL);
}

TEST(what_is_gone_is_forgotten_when_all_is_read)
{
	ASSERT(code_names_gone(&c, 0x1000, 0x100, ""));
	ASSERT(code_names_add(&c, now += 1000000, 0x2000, 0x100, NAME("two")));
	ASSERT(code_names_gone(&c, 0x3000, 0x100, ""));
	code_names_forget_gone(&c);
	expect(0x1000, false, NULL);
	expect(0x2000, true, NAME("two"));
	expect(0x3000, false, NULL);
	ASSERT_EQ(c.nr_gone, 0);
	code_names_forget_all(&c);
}

/* What is told otherwise than it is: nothing is known of what is there then. */
TEST(what_may_be_untrue_is_not_believed)
{
	ASSERT(code_names_add(&c, now += 1000000, 0x1000, 0x100, NAME("one")));
	ASSERT(!code_names_add(&c, now += 1000000, 0x1000, 0x1000, "bpf_trampoline_6442450944"));
	expect(0x1000, false, NULL);
	ASSERT(code_names_add(&c, now += 1000000, 0x1100, 0x100, NAME("one")));
	ASSERT(!code_names_gone(&c, 0x1000, 0x1000, "bpf_trampoline_6442450944"));
	expect(0x1000, false, NULL);
	expect(0x1100, false, NULL);
	ASSERT(code_names_add(&c, now += 1000000, 0x1100, 0x100, NAME("one")));
	ASSERT(!code_names_add(&c, now += 1000000, 0x1100, 0x100, ""));
	expect(0x1100, false, NULL);
	ASSERT(!code_names_add(&c, now += 1000000, 0x1000, 0, NAME("none")));
	ASSERT(!code_names_add(&c, now += 1000000, UINT64_MAX - 8, 64, NAME("round the end")));
	ASSERT(!code_names_gone(&c, 0x1000, 0, ""));
	ASSERT_EQ(c.items.nr, 0);
	code_names_forget_all(&c);
}

/* Linux 5.8 to 6.1. */
TEST(functions_that_all_have_the_name_of_the_first_one_are_not_believed)
{
	/* Two programs that are the same. */
	ASSERT(code_names_add(&c, now += 1000000, 0x1000, 0x100, NAME("one")));
	ASSERT(code_names_add(&c, now += 100000, 0x2000, 0x100, NAME("one")));
	expect(0x1000, true, NAME("one"));
	expect(0x2000, true, NAME("one"));
	ASSERT(code_names_add(&c, now += 1000000, 0x3000, 0x100, NAME("three")));
	ASSERT(code_names_add(&c, now += 1000, 0x3100, 0x100, NAME("its function")));
	/* One program. */
	ASSERT(code_names_add(&c, now += 1000000, 0x4000, 0x100, NAME("four")));
	ASSERT(!code_names_add(&c, now += 2000, 0x4100, 0x100, NAME("four")));
	ASSERT(!code_names_add(&c, now += 1000000, 0x5000, 0x100, NAME("five")));
	expect(0x1000, false, NULL);
	expect(0x4000, false, NULL);
	/* That somebody goes is true. */
	ASSERT(code_names_gone(&c, 0x4000, 0x100, NAME("four")));
	expect(0x4000, true, NULL);
	code_names_forget_all(&c);
	ASSERT(c.distrusted);
	c.distrusted = false;
}

TEST(there_is_room_for_so_many)
{
	char name[64];

	for (uint64_t i = 0; i < CODE_NAMES_GONE_MAX; i++)
		ASSERT(code_names_gone(&c, i * 64, 64, ""));
	ASSERT(!code_names_gone(&c, UINT64_C(1) << 40, 64, ""));
	/* One that comes takes the place of one that is gone. */
	ASSERT(code_names_add(&c, now += 1000000, 0, 64, NAME("first")));
	ASSERT(code_names_gone(&c, UINT64_C(1) << 40, 64, ""));
	code_names_forget_gone(&c);
	ASSERT_EQ(c.items.nr, 1);
	for (uint64_t i = 1; i < CODE_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "bpf_prog_%016llx", (unsigned long long)i);
		ASSERT(code_names_add(&c, now += 1000000, i * 64, 64, name));
	}
	ASSERT(!code_names_add(&c, now += 1000000, UINT64_C(1) << 40, 64, NAME("too many")));
	expect(UINT64_C(1) << 40, false, NULL);
	expect(64 * (CODE_NAMES_MAX - 1), true, name);
	code_names_forget_all(&c);
}
