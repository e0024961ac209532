// SPDX-License-Identifier: Apache-2.0
#include "util/map.h"
#include "test.h"

TEST(holds_what_was_put)
{
	struct map m = { 0 };

	for (uint64_t i = 0; i < 10000; i++)
		ASSERT_OK(map_put(&m, i << 32, i));
	ASSERT_EQ(m.nr, 10000);
	for (uint64_t i = 0; i < 10000; i++)
		ASSERT_EQ(*map_get(&m, i << 32), i);
	ASSERT_PTR_NULL(map_get(&m, 1));
	map_fini(&m);
}

TEST(deleted_keys_are_gone_and_their_place_is_used_again)
{
	struct map m = { 0 };

	for (uint64_t i = 0; i < 100000; i++) {
		ASSERT_OK(map_put(&m, i, i));
		ASSERT(map_del(&m, i));
		ASSERT(!map_del(&m, i));
	}
	ASSERT_EQ(m.nr, 0);
	ASSERT(m.cap <= 64);
	map_fini(&m);
}

/* In each order in which they may go, so that chains are cut in front, behind and between. */
TEST(what_is_left_is_found_after_deletions)
{
	enum { KEYS = 5000 };
	struct map m = { 0 };

	for (uint64_t step = 1; step < 50; step += 2) {
		for (uint64_t i = 0; i < KEYS; i++)
			ASSERT_OK(map_put(&m, i * step, i));
		for (uint64_t i = 0; i < KEYS; i++)
			if (i % step % 3)
				ASSERT(map_del(&m, i * step));
		for (uint64_t i = 0; i < KEYS; i++)
			ASSERT_EQ(map_get(&m, i * step) != NULL, !(i % step % 3));
		for (uint64_t i = KEYS; i--;)
			ASSERT_EQ(map_del(&m, i * step), !(i % step % 3));
		ASSERT_EQ(m.nr, 0);
		/* Nothing of what was deleted is in anybody's way. */
		ASSERT_EQ(m.filled, 0);
	}
	map_fini(&m);
}

TEST(iterates_over_live_slots_only)
{
	struct map m = { 0 };
	struct map_slot *slot;
	uint64_t sum = 0;
	size_t i = 0;

	for (uint64_t k = 1; k <= 10; k++)
		ASSERT_OK(map_put(&m, k, k));
	map_del(&m, 10);
	while ((slot = map_next(&m, &i)))
		sum += slot->value;
	ASSERT_EQ(sum, 45);
	map_fini(&m);
}
