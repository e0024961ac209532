// SPDX-License-Identifier: Apache-2.0
#include "unwind/arena.h"

#include <errno.h>
#include <string.h>

#include "bpf/host/walk_host.h"
#include "test.h"

/* What is given out, and moved, is segments: of each STEP cells one tells whose it is, and the last
 * one. */
enum { SEGMENT = ARENA_SEGMENT_CELLS, SEGMENTS = 6, STEP = 64 };

static struct arena a;
static uint64_t now_ns;

static void set_up(void)
{
	now_ns = 0;
	ASSERT_OK(arena_init(&a, -1, SEGMENTS * sizeof(struct arena_segment)));
}

static uint32_t alloc(uint32_t nr)
{
	uint32_t first;

	ASSERT_OK(arena_alloc(&a, nr, false, &first));
	for (uint32_t i = 0; i < nr; i += STEP)
		*arena_cell(&a, first + i) = first + i;
	*arena_cell(&a, first + nr - 1) = first + nr - 1;
	return first;
}

/* A segment each. */
static void set_up_full(uint32_t at[SEGMENTS])
{
	set_up();
	for (int i = 0; i < SEGMENTS; i++)
		at[i] = alloc(SEGMENT);
}

static void give_back(uint32_t first, uint32_t nr)
{
	arena_retire(&a, first, nr, now_ns);
	now_ns += RETIRE_NS;
	arena_tick(&a, now_ns);
}

static void expect_kept(uint32_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i += STEP)
		ASSERT_EQ(*arena_cell(&a, first + i), first + i);
	ASSERT_EQ(*arena_cell(&a, first + nr - 1), first + nr - 1);
}

/* Room that is free here and there is room for what must be in a row. */
TEST(what_is_in_a_row_fits_wherever_segments_are_free)
{
	uint32_t at[SEGMENTS], two, refused;

	set_up_full(at);
	ASSERT_ERR(arena_alloc(&a, 1, false, &refused), ENOSPC);
	ASSERT(!arena_has(&a, 1));
	give_back(at[1], SEGMENT);
	give_back(at[4], SEGMENT);
	ASSERT(arena_has(&a, 2 * SEGMENT));
	ASSERT(!arena_has(&a, 2 * SEGMENT + 1));
	two = alloc(2 * SEGMENT);
	ASSERT_EQ(a.nr_segments, SEGMENTS);
	expect_kept(two, 2 * SEGMENT);
	expect_kept(at[0], SEGMENT);
	expect_kept(at[2], 2 * SEGMENT);
	expect_kept(at[5], SEGMENT);
	ASSERT_EQ(arena_nr_free(&a), 0);
	/* And again, with numbers that were given back. */
	for (int round = 0; round < 2000; round++) {
		give_back(two, 2 * SEGMENT);
		give_back(at[round % 2 ? 0 : 5], SEGMENT);
		two = alloc(2 * SEGMENT);
		at[round % 2 ? 0 : 5] = alloc(SEGMENT);
	}
	expect_kept(at[2], 2 * SEGMENT);
	ASSERT_EQ(a.nr_segments, SEGMENTS);
	ASSERT_EQ(arena_nr_free(&a), 0);
	arena_fini(&a);
}

/* A cell in a segment keeps it from what is larger, and from that alone. */
TEST(a_segment_with_something_in_it_is_not_moved)
{
	uint32_t at[SEGMENTS], rest, cell;

	set_up_full(at);
	give_back(at[1], SEGMENT - 1);
	give_back(at[3], SEGMENT);
	ASSERT(!arena_has(&a, 2 * SEGMENT));
	ASSERT_EQ(arena_nr_free(&a), 2 * SEGMENT - 1);
	ASSERT_EQ(arena_nr_for(&a, 10), 2 * SEGMENT - 1);
	ASSERT_EQ(arena_nr_for(&a, SEGMENT), SEGMENT);
	expect_kept(at[1] + SEGMENT - 1, 1);
	rest = alloc(SEGMENT - 1);
	ASSERT_EQ(rest, at[1]);
	ASSERT_OK(arena_alloc(&a, 8, true, &cell));
	ASSERT_EQ(cell, at[3]);
	arena_fini(&a);
}

/* Further rows of a table lie behind its first ones, also when these have a high number. */
TEST(what_must_be_behind_something_gets_a_number_behind_it)
{
	uint32_t at[SEGMENTS], behind, refused;

	set_up_full(at);
	give_back(at[0], SEGMENT);
	ASSERT_OK(arena_alloc_behind(&a, 100, at[5], 1 << 24, &behind));
	ASSERT(behind >= at[5] + SEGMENT);
	*arena_cell(&a, behind) = 1;
	expect_kept(at[1], 5 * SEGMENT);
	/* Out of reach. */
	ASSERT_ERR(arena_alloc_behind(&a, 100, at[1], SEGMENT, &refused), ENOSPC);
	arena_fini(&a);
}
