// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_thin.h"
#include "test.h"

#include <string.h>

enum { SIZE = 1000, FIRST = 256, LAST = 16, NEEDED = 300, LAST_BYTE = SIZE - 1 };

/* Two bytes are needed; `seen`: those that a try was without. */
struct bytes {
	uint8_t data[SIZE];
	bool seen[SIZE];
};

static bool has_needed(void *ctx)
{
	struct bytes *b = ctx;

	for (size_t i = 0; i < SIZE; i++)
		b->seen[i] |= !b->data[i];
	return b->data[NEEDED] && b->data[LAST_BYTE];
}

static void fill(struct bytes *b)
{
	memset(b->data, 1, SIZE);
	memset(b->seen, 0, sizeof(b->seen));
}

TEST(what_is_not_needed_is_zero)
{
	struct bytes b;
	struct replay_thin t = { .data = b.data,
				 .first_piece = FIRST,
				 .last_piece = LAST,
				 .is_enough = has_needed,
				 .ctx = &b };

	fill(&b);
	ASSERT_OK(replay_thin(&t, SIZE));
	for (size_t i = 0; i < SIZE; i++)
		ASSERT_EQ(b.data[i], i / LAST == NEEDED / LAST || i / LAST == LAST_BYTE / LAST);
	/* Most of it goes in a few large pieces. */
	ASSERT(t.nr_tries < SIZE / LAST / 2);
}

TEST(what_is_kept_is_not_tried)
{
	struct bytes b;
	struct replay_thin t = { .data = b.data,
				 .first_piece = FIRST,
				 .last_piece = LAST,
				 .keep_start = 511,
				 .keep_size = 2,
				 .is_enough = has_needed,
				 .ctx = &b };

	fill(&b);
	ASSERT_OK(replay_thin(&t, SIZE));
	ASSERT(b.data[511] && b.data[512] && !b.seen[511] && !b.seen[512]);
	ASSERT(b.data[496] && b.data[527] && !b.data[495] && !b.data[528]);
}

TEST(no_bytes)
{
	struct replay_thin t = { .first_piece = FIRST, .last_piece = LAST };

	ASSERT_OK(replay_thin(&t, 0));
	ASSERT_EQ(t.nr_tries, 0);
}
