// SPDX-License-Identifier: Apache-2.0
#include "record/frame_places.h"
#include "test.h"

enum { NR = 4096, PAGE = 0x1000, BASE = 0x10000000 };

/* Odd mappings are of file 107, even ones of 106. */
static uint32_t file_of(void *ctx, uint32_t mapping_file)
{
	(void)ctx;
	return mapping_file + 100;
}

static struct frame_places many_mappings(void)
{
	static struct unwind_mapping mappings[NR];

	for (uint32_t i = 0; i < NR; i++)
		mappings[i] = (struct unwind_mapping){ .start = BASE + i * PAGE,
						       .end = BASE + (i + 1) * PAGE,
						       .bias = BASE,
						       .file = 6 + i % 2 };
	return (struct frame_places){ .mappings = mappings, .nr = NR, .file_of = file_of };
}

TEST(frames_are_found_by_file_and_address)
{
	struct frame_places p = many_mappings();

	ASSERT_EQ(frame_places_find(&p, 107, 5 * PAGE + 1), BASE + 5 * PAGE + 1);
	ASSERT_EQ(frame_places_find(&p, 106, 4 * PAGE), BASE + 4 * PAGE);
	ASSERT_EQ(frame_places_find(&p, 107, 4 * PAGE), 0);
	ASSERT_EQ(frame_places_find(&p, 106, NR * PAGE), 0);
	p.nr = 0;
	ASSERT_EQ(frame_places_find(&p, 106, 4 * PAGE), 0);
}

/* A deep stack in the last of many mappings. */
TEST(frames_of_one_library_are_found_soon)
{
	struct frame_places p = many_mappings();

	for (uint64_t i = 0; i < 1000; i++)
		ASSERT_EQ(frame_places_find(&p, 107, (NR - 1) * PAGE + i),
			  BASE + (NR - 1) * PAGE + i);
}

/* Frames that are all over a process that has as many mappings as there can be. */
TEST(the_search_has_an_end)
{
	struct frame_places p = many_mappings();

	for (uint64_t i = 0; i < 1000; i++)
		frame_places_find(&p, 107, (i % 2 * (NR / 2) + 1) * PAGE);
	ASSERT_EQ(p.nr_looks, FRAME_PLACES_LOOKS_MAX);
	ASSERT_EQ(frame_places_find(&p, 107, PAGE), 0);
}
