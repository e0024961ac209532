// SPDX-License-Identifier: Apache-2.0
#include "util/hash_index.h"
#include "test.h"

static uint32_t count(const struct hash_index *index, uint32_t hash, uint32_t *ret_sum)
{
	size_t pos = hash;
	uint32_t nr = 0, number;

	*ret_sum = 0;
	while (hash_index_next(index, hash, &pos, &number)) {
		*ret_sum += number;
		nr++;
	}
	return nr;
}

static void add(struct hash_index *index, uint32_t hash, uint32_t number)
{
	ASSERT_OK(hash_index_reserve(index));
	hash_index_add(index, hash, number);
}

TEST(an_empty_one_has_nothing)
{
	struct hash_index index = { 0 };
	uint32_t sum;

	hash_index_clear(&index);
	ASSERT_EQ(count(&index, 7, &sum), 0);
	hash_index_fini(&index);
}

TEST(all_numbers_of_a_hash_are_found_and_no_others)
{
	struct hash_index index = { 0 };
	uint32_t sum;

	/* Equal hashes, and others that begin at the same slot, around the end of the table. */
	for (uint32_t i = 0; i < 5; i++) {
		add(&index, HASH_INDEX_MIN - 1, i);
		add(&index, 2 * HASH_INDEX_MIN - 1, 100 + i);
	}
	ASSERT_EQ(count(&index, HASH_INDEX_MIN - 1, &sum), 5);
	ASSERT_EQ(sum, 0 + 1 + 2 + 3 + 4);
	ASSERT_EQ(count(&index, 2 * HASH_INDEX_MIN - 1, &sum), 5);
	ASSERT_EQ(sum, 500 + 10);
	ASSERT_EQ(count(&index, 0, &sum), 0);
	hash_index_clear(&index);
	ASSERT_EQ(count(&index, HASH_INDEX_MIN - 1, &sum), 0);
	hash_index_fini(&index);
}

TEST(it_grows)
{
	enum { NR = 100000 };
	struct hash_index index = { 0 };
	uint32_t sum;

	for (uint32_t i = 0; i < NR; i++)
		add(&index, i * 2654435761u, i);
	ASSERT_EQ(index.nr, NR);
	ASSERT(index.nr <= index.cap / 4 * 3);
	for (uint32_t i = 0; i < NR; i++) {
		ASSERT_EQ(count(&index, i * 2654435761u, &sum), 1);
		ASSERT_EQ(sum, i);
	}
	hash_index_fini(&index);
}
