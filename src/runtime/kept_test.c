// SPDX-License-Identifier: Apache-2.0
/* One budget for what all processes have kept of them. */
#include "runtime/kept.h"

#include "test.h"

struct thing {
	struct runtime_kept kept;
	bool dropped;
};

static void drop_thing(struct runtime_kept *kept)
{
	((struct thing *)kept)->dropped = true;
}

TEST(what_was_not_used_for_longest_goes_first)
{
	enum { PART = RUNTIME_KEPT_MAX / 4 };
	struct runtime_keeper keeper = { 0 };
	struct thing things[6];

	for (size_t i = 0; i < 6; i++)
		things[i] = (struct thing){ .kept = { .drop = drop_thing } };
	for (size_t i = 0; i < 4; i++)
		runtime_keep(&keeper, &things[i].kept, PART);
	ASSERT_EQ(keeper.bytes, RUNTIME_KEPT_MAX);
	runtime_use_kept(&keeper, &things[0].kept);
	runtime_keep(&keeper, &things[4].kept, 1);
	ASSERT(things[1].dropped && !things[0].dropped && !things[2].dropped);
	ASSERT_EQ(keeper.nr_dropped, 1);
	/* One that needs most of it. */
	runtime_keep(&keeper, &things[5].kept, 3 * PART);
	ASSERT(things[2].dropped && things[3].dropped && things[0].dropped);
	ASSERT(!things[4].dropped);
	ASSERT_EQ(keeper.bytes, 3 * PART + 1);
	/* Its owner frees one, and one that went long ago. */
	runtime_keep_no_more(&keeper, &things[4].kept);
	runtime_keep_no_more(&keeper, &things[1].kept);
	ASSERT(!things[4].dropped);
	runtime_use_kept(&keeper, &things[4].kept);
	ASSERT(keeper.oldest == &things[5].kept && keeper.newest == &things[5].kept);
	runtime_keep_no_more(&keeper, &things[5].kept);
	ASSERT(!keeper.oldest && !keeper.newest && !keeper.bytes);
}
