// SPDX-License-Identifier: Apache-2.0
#include "record/known_stacks.h"
#include "abi/off_cpu.h"
#include "test.h"

static void put(struct known_stacks *k, uint64_t hash, uint32_t stack, uint32_t name)
{
	ASSERT_OK(known_stacks_put(
		k, hash, &(struct known_stack){ .stack = stack, .thread_name = name }, NULL, 0));
}

static const struct known_stack *find(const struct known_stacks *k, uint64_t hash)
{
	const struct profile_label *labels;

	return known_stacks_find(k, hash, &labels);
}

TEST(hits_on_their_way_find_what_is_forgotten)
{
	struct known_stacks k = { 0 };

	put(&k, 1, 10, 0);
	put(&k, 2, 20, 0);
	put(&k, 2, 21, 0);
	ASSERT_EQ(find(&k, 2)->stack, 21);
	ASSERT(!find(&k, 3));
	known_stacks_tick(&k, 100);
	ASSERT_EQ(find(&k, 1)->stack, 10);
	known_stacks_forget(&k, 100);
	put(&k, 3, 30, 0);
	ASSERT_EQ(find(&k, 1)->stack, 10);
	ASSERT_EQ(find(&k, 3)->stack, 30);
	known_stacks_tick(&k, 100 + KNOWN_STACKS_STAY_NS - 1);
	ASSERT_EQ(find(&k, 1)->stack, 10);
	known_stacks_tick(&k, 100 + KNOWN_STACKS_STAY_NS);
	ASSERT(!find(&k, 1));
	ASSERT_EQ(find(&k, 3)->stack, 30);
	known_stacks_fini(&k);
}

TEST(a_hit_means_a_stack_of_its_own_process)
{
	const struct known_stack stack = { .stack = 10, .pid = 1000 };
	const struct profile_label *labels;
	struct known_stacks k = { 0 };

	ASSERT_OK(known_stacks_put(&k, 1, &stack, NULL, 0));
	ASSERT_EQ(known_stacks_find_of(&k, 1, 1000, &labels)->stack, 10);
	ASSERT(!known_stacks_find_of(&k, 1, 1001, &labels));
	known_stacks_forget(&k, 1);
	ASSERT(!known_stacks_find_of(&k, 1, 1001, &labels));
	known_stacks_fini(&k);
}

TEST(numbers_follow_a_collection)
{
	uint32_t stacks[] = { PROFILE_GONE, 0, 1, 2, 3 }, strings[] = { 0, PROFILE_GONE, 1 };
	const struct profile_collected c = { .stacks = { stacks, 5 }, .strings = { strings, 3 } };
	struct known_stacks k = { 0 };

	put(&k, 1, 1, 0);
	known_stacks_forget(&k, 1);
	put(&k, 2, 0, 0);
	put(&k, 3, 2, 0);
	put(&k, 4, 3, 2);
	put(&k, 5, 4, 1); /* a name that is gone */
	known_stacks_collected(&k, &c);
	ASSERT_EQ(find(&k, 1)->stack, 0);
	ASSERT(!find(&k, 2));
	ASSERT_EQ(find(&k, 3)->stack, 1);
	ASSERT_EQ(find(&k, 4)->stack, 2);
	ASSERT_EQ(find(&k, 4)->thread_name, 1);
	ASSERT(!find(&k, 5));
	put(&k, 2, 7, 0);
	ASSERT_EQ(find(&k, 2)->stack, 7);
	known_stacks_fini(&k);
}

/* Processes of which each has a stack with the same hash as the other's, but for the process in it.
 */
TEST(a_wakers_stack_is_its_processs_alone)
{
	const uint64_t hash = 0x0123456789abcdef;
	const struct known_stack mine = { .stack = 10, .pid = 1000 },
				 others = { .stack = 11, .pid = 4194303 };
	const struct profile_label *labels;
	struct known_stacks k = { 0 };

	ASSERT_OK(known_stacks_put(&k, WAKER_HASH(hash, mine.pid), &mine, NULL, 0));
	ASSERT_OK(known_stacks_put(&k, WAKER_HASH(hash, others.pid), &others, NULL, 0));
	ASSERT_EQ(known_stacks_find_waker(&k, WAKER_HASH(hash, mine.pid), &labels)->stack, 10);
	ASSERT_EQ(known_stacks_find_waker(&k, WAKER_HASH(hash, others.pid), &labels)->stack, 11);
	/* What another one has put in that place is not taken for it. */
	ASSERT_OK(known_stacks_put(&k, WAKER_HASH(hash, mine.pid), &others, NULL, 0));
	ASSERT(!known_stacks_find_waker(&k, WAKER_HASH(hash, mine.pid), &labels));
	known_stacks_fini(&k);
}

static void put_labels(struct known_stacks *k, uint64_t hash, uint32_t text, size_t nr)
{
	const struct profile_label labels[] = { { .key = 1, .text = text },
						{ .key = 2, .text = text } };

	ASSERT_OK(known_stacks_put(k, hash, &(struct known_stack){ .stack = 1 }, labels, nr));
}

TEST(labels_are_each_stack_s_own)
{
	uint32_t stacks[] = { 0, 1 }, strings[] = { 0, 1, 2, 7, PROFILE_GONE };
	const struct profile_collected c = { .stacks = { stacks, 2 }, .strings = { strings, 5 } };
	const struct profile_label *labels;
	struct known_stacks k = { 0 };

	put_labels(&k, 1, 3, 2);
	put_labels(&k, 2, 4, 1);
	put(&k, 3, 1, 0);
	put_labels(&k, 1, 3, 2); /* sent again */
	ASSERT_EQ(k.now.labels.nr, 3);
	ASSERT_EQ(known_stacks_find(&k, 1, &labels)->nr_labels, 2);
	ASSERT_EQ(labels[1].key, 2);
	ASSERT_EQ(labels[1].text, 3);
	ASSERT_EQ(known_stacks_find(&k, 3, &labels)->nr_labels, 0);
	known_stacks_collected(&k, &c);
	ASSERT_EQ(known_stacks_find(&k, 1, &labels)->nr_labels, 2);
	ASSERT_EQ(labels[0].text, 7);
	ASSERT(!find(&k, 2)); /* a text that is gone */
	known_stacks_fini(&k);
}

static void keep_hash(void *ctx, uint64_t hash)
{
	*(uint64_t *)ctx += hash;
}

TEST(those_that_lack_names_are_told)
{
	struct known_stacks k = { 0 };
	uint64_t sum = 0;

	put(&k, 1, 10, 0);
	for (uint64_t hash = 2; hash < 5; hash++)
		ASSERT_OK(known_stacks_put(
			&k, hash, &(struct known_stack){ .stack = 11, .lacks_names = true }, NULL,
			0));
	put(&k, 4, 12, 0); /* sent once more */
	known_stacks_each_unnamed(&k, keep_hash, &sum);
	ASSERT_EQ(sum, 2 + 3);
	known_stacks_fini(&k);
}

TEST(there_are_only_so_many)
{
	struct known_stacks k = { 0 };

	for (uint32_t i = 0; i < KNOWN_STACKS_MAX; i++)
		put(&k, i, i, 0);
	put(&k, 7, 8, 0);
	ASSERT_ERR(known_stacks_put(&k, KNOWN_STACKS_MAX, &(struct known_stack){ 0 }, NULL, 0),
		   ENOSPC);
	known_stacks_forget(&k, 1);
	put(&k, KNOWN_STACKS_MAX, 1, 0);
	ASSERT_EQ(find(&k, 7)->stack, 8);
	known_stacks_fini(&k);
}
