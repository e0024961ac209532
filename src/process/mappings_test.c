// SPDX-License-Identifier: Apache-2.0
#include "process/process_internal.h"

#include <stdlib.h>

#include "test.h"

struct row {
	const char *what;
	struct mapping before[4], added, after[5];
	int r;
};

/* start, end, offset, file; file 0 is anonymous. */
static const struct row rows[] = {
	{ "into nothing", { { 0 } }, { 10, 20, 5, 1 }, { { 10, 20, 5, 1 } }, 1 },
	{ "before",
	  { { 30, 40, 0, 1 } },
	  { 10, 20, 0, 1 },
	  { { 10, 20, 0, 1 }, { 30, 40, 0, 1 } },
	  1 },
	{ "behind",
	  { { 30, 40, 0, 1 } },
	  { 50, 60, 0, 1 },
	  { { 30, 40, 0, 1 }, { 50, 60, 0, 1 } },
	  1 },
	{ "the same", { { 10, 20, 5, 1 } }, { 10, 20, 5, 1 }, { { 10, 20, 5, 1 } }, 0 },
	{ "a part of the same", { { 10, 20, 5, 1 } }, { 12, 15, 7, 1 }, { { 10, 20, 5, 1 } }, 0 },
	{ "same place, other offset",
	  { { 10, 20, 5, 1 } },
	  { 10, 20, 6, 1 },
	  { { 10, 20, 6, 1 } },
	  1 },
	{ "same place, other file",
	  { { 10, 20, 5, 1 } },
	  { 10, 20, 5, 2 },
	  { { 10, 20, 5, 2 } },
	  1 },
	{ "in the middle",
	  { { 10, 20, 5, 1 } },
	  { 12, 15, 0, 2 },
	  { { 10, 12, 5, 1 }, { 12, 15, 0, 2 }, { 15, 20, 10, 1 } },
	  1 },
	{ "in the middle, same file elsewhere",
	  { { 10, 20, 5, 1 } },
	  { 12, 15, 0, 1 },
	  { { 10, 12, 5, 1 }, { 12, 15, 0, 1 }, { 15, 20, 10, 1 } },
	  1 },
	{ "head", { { 10, 20, 5, 1 } }, { 8, 12, 0, 2 }, { { 8, 12, 0, 2 }, { 12, 20, 7, 1 } }, 1 },
	{ "exact head",
	  { { 10, 20, 5, 1 } },
	  { 10, 12, 0, 2 },
	  { { 10, 12, 0, 2 }, { 12, 20, 7, 1 } },
	  1 },
	{ "tail",
	  { { 10, 20, 5, 1 } },
	  { 18, 25, 0, 2 },
	  { { 10, 18, 5, 1 }, { 18, 25, 0, 2 } },
	  1 },
	{ "exact tail",
	  { { 10, 20, 5, 1 } },
	  { 18, 20, 0, 2 },
	  { { 10, 18, 5, 1 }, { 18, 20, 0, 2 } },
	  1 },
	{ "over several",
	  { { 10, 20, 0, 1 }, { 20, 30, 0, 2 }, { 35, 40, 0, 3 } },
	  { 15, 37, 0, 4 },
	  { { 10, 15, 0, 1 }, { 15, 37, 0, 4 }, { 37, 40, 2, 3 } },
	  1 },
	{ "over all",
	  { { 10, 20, 0, 1 }, { 20, 30, 0, 2 }, { 35, 40, 0, 3 } },
	  { 5, 50, 0, 4 },
	  { { 5, 50, 0, 4 } },
	  1 },
	{ "between two",
	  { { 10, 20, 0, 1 }, { 30, 40, 0, 2 } },
	  { 20, 30, 0, 3 },
	  { { 10, 20, 0, 1 }, { 20, 30, 0, 3 }, { 30, 40, 0, 2 } },
	  1 },
	{ "a file goes on", { { 10, 20, 0, 1 } }, { 20, 30, 10, 1 }, { { 10, 30, 0, 1 } }, 1 },
	{ "a file is closed up",
	  { { 10, 20, 0, 1 }, { 30, 40, 20, 1 } },
	  { 20, 30, 10, 1 },
	  { { 10, 40, 0, 1 } },
	  1 },
	{ "grown by the kernel", { { 10, 20, 0, 1 } }, { 5, 30, 0, 0 }, { { 5, 30, 0, 0 } }, 1 },
	{ "anonymous joins",
	  { { 10, 20, 0, 0 }, { 30, 40, 0, 0 } },
	  { 20, 30, 0, 0 },
	  { { 10, 40, 0, 0 } },
	  1 },
	{ "anonymous overlaps", { { 10, 20, 0, 0 } }, { 15, 30, 0, 0 }, { { 10, 30, 0, 0 } }, 1 },
	{ "anonymous within", { { 10, 20, 0, 0 } }, { 15, 18, 0, 0 }, { { 10, 20, 0, 0 } }, 0 },
	{ "file out of anonymous",
	  { { 10, 20, 0, 0 } },
	  { 12, 15, 3, 1 },
	  { { 10, 12, 0, 0 }, { 12, 15, 3, 1 }, { 15, 20, 0, 0 } },
	  1 },
	{ "anonymous heals",
	  { { 10, 12, 0, 0 }, { 12, 15, 3, 1 }, { 15, 20, 0, 0 } },
	  { 12, 15, 0, 0 },
	  { { 10, 20, 0, 0 } },
	  1 },
	{ "the top of memory",
	  { { 10, 20, 0, 1 } },
	  { 1ull << 63, UINT64_MAX, 0, 2 },
	  { { 10, 20, 0, 1 }, { 1ull << 63, UINT64_MAX, 0, 2 } },
	  1 },
};

static void assert_list(const struct mapping_list *list, const struct mapping *expected, size_t max,
			const char *what)
{
	for (size_t i = 0; i < max && expected[i].end; i++) {
		ck_assert_msg(i < list->nr, "%s: %zu mappings", what, list->nr);
		ck_assert_msg(list->items[i].start == expected[i].start &&
				      list->items[i].end == expected[i].end &&
				      list->items[i].offset == expected[i].offset &&
				      list->items[i].file == expected[i].file,
			      "%s: piece %zu is %d-%d offset %d file %u", what, i,
			      (int)list->items[i].start, (int)list->items[i].end,
			      (int)list->items[i].offset, list->items[i].file);
		ck_assert_msg(i + 1 < max && expected[i + 1].end ? list->nr > i + 1
								 : list->nr == i + 1,
			      "%s: %zu mappings", what, list->nr);
	}
}

TEST(carves)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mapping_list list = { 0 };

		for (size_t k = 0; k < 4 && rows[i].before[k].end; k++)
			ASSERT_OK(vec_push(&list, rows[i].before[k]));
		ck_assert_msg(mapping_list_carve(&list, &rows[i].added) == rows[i].r, "%s",
			      rows[i].what);
		assert_list(&list, rows[i].after, 5, rows[i].what);
		vec_free(&list);
	}
}

enum { PAGES = 64 };

struct page {
	bool mapped;
	uint64_t offset;
	uint32_t file;
};

static void assert_same(const struct mapping_list *list, const struct page *pages)
{
	struct process proc = { .mappings = *list };

	for (size_t i = 0; i < list->nr; i++) {
		ASSERT(list->items[i].start < list->items[i].end);
		ASSERT(!i || list->items[i - 1].end <= list->items[i].start);
	}
	for (uint64_t p = 0; p < PAGES; p++) {
		const struct mapping *m = process_mapping(&proc, p);

		ASSERT_EQ(m != NULL, pages[p].mapped);
		if (!m)
			continue;
		ASSERT_EQ(m->file, pages[p].file);
		if (m->file != MAPPING_ANON)
			ASSERT_EQ(m->offset + (p - m->start), pages[p].offset);
	}
}

/* Against a plain array of pages. */
TEST(carves_as_memory_does)
{
	srandom(1);
	for (int round = 0; round < 200; round++) {
		struct page pages[PAGES] = { 0 };
		struct mapping_list list = { 0 };

		for (int step = 0; step < 100; step++) {
			struct mapping m = { .start = (uint64_t)random() % PAGES };
			int r;

			m.end = m.start + 1 + (uint64_t)random() % (PAGES - m.start);
			if (random() % 2 && m.end > m.start + 8)
				m.end = m.start + 8;
			m.file = (uint32_t)random() % 3;
			m.offset = m.file ? m.start + (uint64_t)(random() % 2) * 100 : 0;
			for (uint64_t p = m.start; p < m.end; p++)
				pages[p] = (struct page){ true, m.offset + p - m.start, m.file };
			r = mapping_list_carve(&list, &m);
			ASSERT_OK(r);
			assert_same(&list, pages);
		}
		vec_free(&list);
	}
}

TEST(there_are_at_most_mappings_max)
{
	struct mapping_list list = { 0 };
	struct mapping m;

	for (uint64_t i = 0; i < MAPPINGS_MAX; i++) {
		m = (struct mapping){ 10 * i, 10 * i + 5, 0, 0 };
		ASSERT_EQ(mapping_list_carve(&list, &m), 1);
	}
	m = (struct mapping){ 10 * MAPPINGS_MAX, 10 * MAPPINGS_MAX + 5, 0, 0 };
	ASSERT_ERR(mapping_list_carve(&list, &m), ENOSPC);
	m = (struct mapping){ 1, 3, 0, 1 };
	ASSERT_ERR(mapping_list_carve(&list, &m), ENOSPC);
	ASSERT_EQ(list.nr, MAPPINGS_MAX);
	/* What makes it smaller, or no larger, is welcome. */
	m = (struct mapping){ 5, 10, 0, 0 };
	ASSERT_EQ(mapping_list_carve(&list, &m), 1);
	ASSERT_EQ(list.nr, MAPPINGS_MAX - 1);
	vec_free(&list);
}

/* A JIT flips its pages between writable and executable: each time an event, never a change. */
TEST(a_jit_that_flips_pages_changes_nothing)
{
	struct mapping_list list = { 0 };
	struct mapping region = { 1000, 2000, 0, 0 };
	int changes = 0;

	ASSERT_EQ(mapping_list_carve(&list, &region), 1);
	for (uint64_t i = 0; i < 100000; i++) {
		struct mapping m = { 1000 + i % 999, 1001 + i % 999, 0, 0 };

		changes += mapping_list_carve(&list, &m);
	}
	ASSERT_EQ(changes, 0);
	ASSERT_EQ(list.nr, 1);
	vec_free(&list);
}

TEST(a_jit_that_grows_page_by_page_is_one_mapping)
{
	struct mapping_list list = { 0 };

	for (uint64_t i = 0; i < 100000; i++) {
		struct mapping m = { 1000 + i, 1001 + i, 0, 0 };

		ASSERT_EQ(mapping_list_carve(&list, &m), 1);
	}
	ASSERT_EQ(list.nr, 1);
	vec_free(&list);
}

TEST(finds_by_address)
{
	struct mapping items[] = { { 10, 20, 0, 1 }, { 20, 30, 0, 2 }, { 40, 50, 0, 3 } };
	struct process proc = { .mappings = { .items = items, .nr = 3, .cap = 3 } }, empty = { 0 };

	ASSERT_PTR_NULL(process_mapping(&empty, 10));
	ASSERT_PTR_NULL(process_mapping(&proc, 9));
	ASSERT(process_mapping(&proc, 10) == &items[0]);
	ASSERT(process_mapping(&proc, 19) == &items[0]);
	ASSERT(process_mapping(&proc, 20) == &items[1]);
	ASSERT_PTR_NULL(process_mapping(&proc, 30));
	ASSERT(process_mapping(&proc, 49) == &items[2]);
	ASSERT_PTR_NULL(process_mapping(&proc, 50));
	ASSERT_PTR_NULL(process_mapping(&proc, UINT64_MAX));
}
