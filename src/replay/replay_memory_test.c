// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_memory.h"
#include "test.h"

#include <errno.h>

static void add(struct replay_memory *m, uint64_t addr, const char *text)
{
	replay_memory_add(m, addr, text, strlen(text));
}

static const char *at(const struct replay_memory *m, uint64_t addr, size_t size)
{
	static char text[64];

	memset(text, 0, sizeof(text));
	return replay_memory_read(m, addr, text, size) ? NULL : text;
}

TEST(reads_that_overlap_or_touch_become_one_range)
{
	struct replay_memory m = { 0 };

	add(&m, 120, "later");
	add(&m, 100, "abcdef");
	add(&m, 104, "efghij");
	add(&m, 110, "klm");
	add(&m, 101, "bc");
	ASSERT_OK(replay_memory_merge(&m));
	ASSERT_EQ(m.reads.nr, 2);
	ASSERT_STR(at(&m, 100, 13), "abcdefghijklm");
	ASSERT_STR(at(&m, 120, 5), "later");
	ASSERT_STR(at(&m, 112, 1), "m");
	replay_memory_fini(&m);
}

TEST(what_was_not_read_is_not_there)
{
	struct replay_memory m = { 0 };

	ASSERT_PTR_NULL(at(&m, 100, 1));
	add(&m, 100, "abc");
	add(&m, 110, "xyz");
	ASSERT_OK(replay_memory_merge(&m));
	ASSERT_PTR_NULL(at(&m, 99, 1));
	ASSERT_PTR_NULL(at(&m, 99, 2));
	ASSERT_PTR_NULL(at(&m, 100, 4));
	ASSERT_PTR_NULL(at(&m, 103, 1));
	ASSERT_PTR_NULL(at(&m, 102, 9));
	ASSERT_PTR_NULL(at(&m, UINT64_MAX, 2));
	ASSERT_PTR_NULL(at(&m, 112, SIZE_MAX));
	replay_memory_fini(&m);
}

TEST(the_later_bytes_count)
{
	struct replay_memory m = { 0 };

	add(&m, 102, "first");
	add(&m, 100, "second");
	ASSERT_OK(replay_memory_merge(&m));
	ASSERT_STR(at(&m, 100, 7), "secondt");
	add(&m, 104, "T");
	ASSERT_OK(replay_memory_merge(&m));
	ASSERT_STR(at(&m, 100, 7), "secoTdt");
	replay_memory_fini(&m);
}

TEST(a_cut_forgets_later_reads_and_a_blank_zeroes)
{
	struct replay_memory m = { 0 };
	char bytes[6];

	add(&m, 100, "abcdef");
	add(&m, 200, "ghi");
	replay_memory_cut(&m, 1);
	add(&m, 300, "jkl");
	replay_memory_blank(&m, 103, 302);
	ASSERT_OK(replay_memory_merge(&m));
	ASSERT_PTR_NULL(at(&m, 200, 1));
	ASSERT_OK(replay_memory_read(&m, 100, bytes, 6));
	ASSERT(!memcmp(bytes, "abc\0\0\0", 6));
	ASSERT_OK(replay_memory_read(&m, 300, bytes, 3));
	ASSERT(!memcmp(bytes, "\0\0l", 3));
	replay_memory_fini(&m);
}

TEST(what_is_too_much_is_said)
{
	struct replay_memory m = { 0 };
	char *much = calloc(1, REPLAY_MEMORY_MAX);

	ASSERT_PTR_NONNULL(much);
	replay_memory_add(&m, 0, much, REPLAY_MEMORY_MAX);
	ASSERT(!m.full);
	add(&m, 1ull << 40, "a");
	ASSERT(m.full);
	ASSERT_EQ(m.reads.nr, 1);
	replay_memory_fini(&m);
	add(&m, UINT64_MAX - 1, "abc");
	ASSERT(m.full);
	free(much);
	replay_memory_fini(&m);
}
