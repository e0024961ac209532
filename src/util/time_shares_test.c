// SPDX-License-Identifier: Apache-2.0
#include "util/time_shares.h"
#include "test.h"

enum { ROOT = 0, GREEDY = 4000000001, OTHER = 4000000002, MS = 1000000, PART = 5 };
#define BEGIN (10000ull * MS)

/* Does work for the owner as long as that may go on. How much was done. */
static int use_up(struct time_shares *s, uint32_t owner, uint64_t now)
{
	int n = 0;

	for (; time_shares_may(s, owner, now); n++)
		time_shares_take(s, owner, now, MS);
	return n;
}

TEST(who_is_alone_has_all_but_what_is_kept_for_others)
{
	struct time_shares s = { .part = PART };
	int n = 0;

	ASSERT_EQ(use_up(&s, GREEDY, BEGIN), 100);
	for (int i = 1; i <= 1000; i++)
		n += use_up(&s, GREEDY, BEGIN + (uint64_t)i * MS);
	ASSERT_EQ(n, 1000 / PART);
	time_shares_fini(&s);
}

TEST(who_has_had_little_is_served_beside_who_wants_all)
{
	struct time_shares s = { .part = PART };
	int nr_greedy = 0, nr_other = 0;

	use_up(&s, GREEDY, BEGIN);
	ASSERT(!time_shares_may(&s, GREEDY, BEGIN));
	ASSERT(time_shares_may(&s, OTHER, BEGIN));
	for (int i = 1; i <= 6000; i++) {
		nr_greedy += use_up(&s, GREEDY, BEGIN + (uint64_t)i * MS);
		nr_other += use_up(&s, OTHER, BEGIN + (uint64_t)i * MS);
	}
	/* A third of all that there was, at least. */
	ASSERT(nr_other >= 6000 / PART / 3);
	ASSERT(nr_greedy >= 6000 / PART / 3);
	time_shares_fini(&s);
}

TEST(many_users_leave_some_for_root)
{
	struct time_shares s = { .part = PART };

	for (uint32_t i = 0; i < 1000; i++)
		use_up(&s, GREEDY + i, BEGIN);
	ASSERT(!time_shares_may(&s, OTHER, BEGIN));
	ASSERT_EQ(use_up(&s, ROOT, BEGIN), 50);
	time_shares_fini(&s);
}

TEST(long_work_of_one_holds_others_for_a_second_at_most)
{
	struct time_shares s = { .part = PART };

	time_shares_take(&s, GREEDY, BEGIN, 60000ull * MS);
	ASSERT(!time_shares_may(&s, ROOT, BEGIN));
	ASSERT(time_shares_may(&s, ROOT, BEGIN + 1001 * MS));
	ASSERT(time_shares_may(&s, OTHER, BEGIN + 1300 * MS));
	ASSERT(!time_shares_may(&s, GREEDY, BEGIN + 1300 * MS));
	time_shares_fini(&s);
}

TEST(more_owners_than_are_counted_have_one_share)
{
	struct time_shares s = { .part = 1 };

	for (uint32_t i = 0; i < 300; i++)
		time_shares_take(&s, GREEDY + i, BEGIN, 1);
	ASSERT(s.used_each.nr <= 257);
	/* A second later nobody has spent anything. */
	time_shares_take(&s, OTHER, BEGIN + 2000 * MS, 1);
	ASSERT_EQ(s.used_each.nr, 1);
	time_shares_fini(&s);
}
