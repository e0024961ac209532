// SPDX-License-Identifier: Apache-2.0
/* Times of a cut in whose middle the machine sleeps. */
#include "record/cut_clock.h"

#include "test.h"

#define SECOND UINT64_C(1000000000)

TEST(times_are_the_kernels_less_the_begin)
{
	struct cut_clock c;

	cut_clock_begin(&c, 100 * SECOND, 5 * SECOND);
	cut_clock_look(&c, 101 * SECOND, 5 * SECOND);
	ASSERT_EQ(cut_clock_since(&c, 100 * SECOND), 0);
	ASSERT_EQ(cut_clock_since(&c, 103 * SECOND), 3 * SECOND);
}

TEST(what_comes_behind_a_sleep_is_later_by_it)
{
	struct cut_clock c;

	cut_clock_begin(&c, 100 * SECOND, 5 * SECOND);
	cut_clock_look(&c, 102 * SECOND, 65 * SECOND);
	ASSERT_EQ(cut_clock_since(&c, 101 * SECOND), 1 * SECOND);
	ASSERT_EQ(cut_clock_since(&c, 102 * SECOND), 62 * SECOND);
	/* Once more, for ten seconds. */
	cut_clock_look(&c, 103 * SECOND, 75 * SECOND);
	ASSERT_EQ(cut_clock_since(&c, 103 * SECOND - 1), 63 * SECOND - 1);
	ASSERT_EQ(cut_clock_since(&c, 104 * SECOND), 74 * SECOND);
	/* The next cut began when nobody slept any more. */
	cut_clock_begin(&c, 105 * SECOND, 75 * SECOND);
	ASSERT_EQ(cut_clock_since(&c, 106 * SECOND), 1 * SECOND);
}

TEST(a_look_that_is_not_exact_is_no_sleep)
{
	struct cut_clock c;

	cut_clock_begin(&c, 100 * SECOND, 5 * SECOND);
	cut_clock_look(&c, 101 * SECOND, 5 * SECOND + 1000);
	cut_clock_look(&c, 102 * SECOND, 5 * SECOND - 1000);
	ASSERT_EQ(cut_clock_since(&c, 103 * SECOND), 3 * SECOND);
}

TEST(a_cut_may_turn_out_to_begin_earlier)
{
	struct cut_clock c;

	cut_clock_begin(&c, 100 * SECOND, 0);
	cut_clock_begin_earlier(&c, 101 * SECOND);
	ASSERT_EQ(cut_clock_since(&c, 101 * SECOND), 1 * SECOND);
	cut_clock_begin_earlier(&c, 99 * SECOND);
	ASSERT_EQ(cut_clock_since(&c, 101 * SECOND), 2 * SECOND);
}
