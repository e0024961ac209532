// SPDX-License-Identifier: Apache-2.0
#include "util/intern.h"
#include "test.h"

struct numbers {
	struct map ids;
	VEC(int) values;
};

/* All have one hash. */
static int64_t find(const struct numbers *n, int value, uint64_t *ret_hash)
{
	uint64_t hash = 7;
	int64_t found = intern_find(&n->ids, hash, id, n->values.items[id] == value);

	*ret_hash = hash;
	return found;
}

static uint32_t number_of(struct numbers *n, int value)
{
	uint64_t hash;
	int64_t found = find(n, value, &hash);
	uint32_t added = UINT32_MAX;

	if (found >= 0)
		return (uint32_t)found;
	ASSERT_OK(intern_add(&n->ids, &n->values, hash, value, &added));
	return added;
}

TEST(things_of_one_hash_are_told_apart)
{
	struct numbers n = { 0 };
	uint64_t hash;

	for (int round = 0; round < 2; round++)
		for (int value = 0; value < 100; value++)
			ASSERT_EQ(number_of(&n, value * 3), value);
	ASSERT_EQ(n.values.nr, 100);
	ASSERT_EQ(find(&n, 1, &hash), -ENOENT);
	ASSERT_EQ(hash, 107);
	map_fini(&n.ids);
	vec_free(&n.values);
}

TEST(what_was_behind_one_that_went_is_added_once_more)
{
	struct numbers n = { 0 };
	uint64_t hash;

	ASSERT_EQ(number_of(&n, 10), 0);
	ASSERT_EQ(number_of(&n, 11), 1);
	ASSERT_EQ(find(&n, 10, &hash), 0);
	ASSERT(map_del(&n.ids, hash));
	ASSERT_EQ(number_of(&n, 11), 2);
	ASSERT_EQ(number_of(&n, 11), 2);
	map_fini(&n.ids);
	vec_free(&n.values);
}
