// SPDX-License-Identifier: Apache-2.0
/* How long process events are waited for. */
#include "record/recorder_internal.h"

#include "test.h"

TEST(what_is_of_nothing_sampled_waits_longer)
{
	ASSERT_EQ(pace_events_ms(10, 20, true), 40);
	ASSERT_EQ(pace_events_ms(10, 1, false), 200);
	ASSERT_EQ(pace_events_ms(200, 100, false), 200);
}

TEST(where_few_come_the_next_one_wakes_us)
{
	ASSERT_EQ(pace_events_ms(10, 0, true), 0);
	ASSERT_EQ(pace_events_ms(10, 15, true), 0);
	ASSERT_EQ(pace_events_ms(200, 0, false), 0);
}

TEST(many_are_taken_in_before_a_ring_is_full)
{
	/* A hundred thousand a second: the pause is as short as it gets. */
	ASSERT_EQ(pace_events_ms(100, 10000, false), 10);
	ASSERT_EQ(pace_events_ms(10, 1000, false), 10);
	/* Five thousand a second: as long as 256 of them take. */
	ASSERT_EQ(pace_events_ms(100, 500, false), 51);
	ASSERT_EQ(pace_events_ms(40, 400, true), 25);
}

TEST(a_tick_comes_with_a_turn_that_is_nearly_as_late)
{
	ASSERT(!pace_tick_is_due(1000000000, 1200000000));
	ASSERT(pace_tick_is_due(1150000000, 1200000000));
	ASSERT(pace_tick_is_due(1200000000, 1200000000));
	ASSERT(pace_tick_is_due(9000000000, 1200000000));
}

TEST(names_that_were_put_off_are_asked_for_again_and_ever_less_often)
{
	const uint64_t second = 1000000000;
	struct name_retry n = { 0 };
	uint64_t now = 100 * second, pause = 3;

	ASSERT(!pace_names_due(&n, 0, now));
	/* More of them do not put it off. */
	ASSERT(!pace_names_due(&n, 1, now));
	ASSERT(!pace_names_due(&n, 2, now + 2 * second));
	ASSERT(pace_names_due(&n, 3, now + 3 * second));
	now += 3 * second;
	ASSERT(!pace_names_due(&n, 3, now + second));
	for (int i = 0; i < 8; i++) {
		pause = pause * 2 < 60 ? pause * 2 : 60;
		ASSERT(!pace_names_due(&n, 4 + (uint64_t)i, now));
		ASSERT(!pace_names_due(&n, 4 + (uint64_t)i, now + pause * second - 1));
		now += pause * second;
		ASSERT(pace_names_due(&n, 4 + (uint64_t)i, now));
	}
	/* After a minute without. */
	now += 61 * second;
	ASSERT(!pace_names_due(&n, 100, now));
	ASSERT(pace_names_due(&n, 100, now + 3 * second));
}
