// SPDX-License-Identifier: Apache-2.0
#include "agent/probability.h"
#include "test.h"

/* How many of a thousand intervals are chosen. */
static int chosen(uint32_t threshold, uint32_t seed)
{
	struct probability_options o = { .threshold = threshold, .seed = seed };
	struct probability p;
	int nr = 0;

	probability_init(&p, &o);
	for (int i = 0; i < 1000; i++) {
		uint32_t number = probability_draw(&p);

		ASSERT(number < PROBABILITY_ALWAYS);
		nr += probability_chooses(&p, number);
	}
	return nr;
}

TEST(a_hundred_is_always_and_zero_never)
{
	ASSERT_EQ(chosen(100, 0), 1000);
	ASSERT_EQ(chosen(0, 0), 0);
	ASSERT_EQ(chosen(100, 7), 1000);
	ASSERT_EQ(chosen(0, 7), 0);
}

TEST(the_threshold_is_the_part_that_is_chosen)
{
	for (uint32_t seed = 1; seed < 20; seed++) {
		ASSERT(chosen(50, seed) > 420 && chosen(50, seed) < 580);
		ASSERT(chosen(10, seed) > 50 && chosen(10, seed) < 150);
	}
}
