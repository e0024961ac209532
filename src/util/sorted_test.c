// SPDX-License-Identifier: Apache-2.0
#include "util/sorted.h"
#include "test.h"

TEST(the_first_that_does_not_come_before)
{
	const int items[] = { 1, 3, 3, 5, 9 };

	ASSERT_EQ(sorted_before(5, i, items[i] < 0), 0);
	ASSERT_EQ(sorted_before(5, i, items[i] < 3), 1);
	ASSERT_EQ(sorted_before(5, i, items[i] <= 3), 3);
	ASSERT_EQ(sorted_before(5, i, items[i] < 6), 4);
	ASSERT_EQ(sorted_before(5, i, items[i] <= 9), 5);
	ASSERT_EQ(sorted_before(0, i, items[i] < 6), 0);
	for (size_t nr = 0; nr < 200; nr++)
		for (size_t at = 0; at <= nr; at++)
			ASSERT_EQ(sorted_before(nr, i, i < at), at);
}
