// SPDX-License-Identifier: Apache-2.0
#include "util/patience.h"
#include "test.h"

enum { ROOT = 0, SOMEBODY = 4000000001, MS = 1000000 };
#define BEGIN	(10000ull * MS)
#define OF_FILE (300ull * MS)
#define MAX	(1000ull * MS)

TEST(a_file_has_its_part_and_the_last_half_is_of_who_is_trusted)
{
	struct patience p = patience_new(OF_FILE, MAX, BEGIN);

	ASSERT_EQ(patience_for(&p, SOMEBODY, BEGIN), OF_FILE);
	patience_take(&p, 300ull * MS);
	ASSERT_EQ(patience_for(&p, SOMEBODY, BEGIN), 200ull * MS);
	patience_take(&p, 200ull * MS);
	ASSERT_EQ(patience_for(&p, SOMEBODY, BEGIN), 0);
	ASSERT_EQ(patience_for(&p, geteuid(), BEGIN), OF_FILE);
	patience_take(&p, 300ull * MS);
	ASSERT_EQ(patience_for(&p, ROOT, BEGIN), 200ull * MS);
	/* Whoever waited longer than that owes nothing. */
	patience_take(&p, 5000ull * MS);
	ASSERT_EQ(patience_for(&p, ROOT, BEGIN), 0);
	ASSERT_EQ(patience_for(&p, ROOT, BEGIN + 40 * MS), 10ull * MS);
}

TEST(a_quarter_of_the_time_is_saved_up_to_the_maximum)
{
	struct patience p = patience_new(MAX, MAX, BEGIN);

	patience_take(&p, MAX);
	for (uint64_t i = 1; i <= 1000; i++)
		patience_for(&p, SOMEBODY, BEGIN + i * MS);
	ASSERT_EQ(p.left_ns, 250ull * MS);
	ASSERT_EQ(patience_for(&p, SOMEBODY, BEGIN + 1000 * MS), 0);
	ASSERT_EQ(patience_for(&p, ROOT, BEGIN + 1000 * MS), 250ull * MS);
	ASSERT_EQ(patience_for(&p, ROOT, BEGIN + 3600000ull * MS), MAX);
	ASSERT_EQ(patience_for(&p, SOMEBODY, BEGIN + 3600000ull * MS), MAX / 2);
	/* A clock that was read earlier takes nothing away, and gives nothing twice. */
	ASSERT_EQ(patience_for(&p, ROOT, BEGIN), MAX);
	patience_take(&p, MAX);
	ASSERT_EQ(patience_for(&p, ROOT, BEGIN + 3600000ull * MS), 0);
}
