// SPDX-License-Identifier: Apache-2.0
/*
 * Which processes are shown before the first sample, and in what order: made-up threads.
 */
#include "record/startup_scan.h"
#include "test.h"

#include <stdlib.h>

static const uint64_t second = 1000000000;

/* CPU 1's clock is a day behind CPU 0's. */
static const uint64_t clocks[] = { 100000 * 1000000000ull, 13600 * 1000000000ull };

static struct task_space thread_of(uint32_t pid, uint32_t flags, uint32_t cpu, uint64_t idle_ns)
{
	return (struct task_space){ .pid = pid,
				    .flags = flags,
				    .mm = 0x1000 + pid,
				    .ran_ns = clocks[cpu] - idle_ns,
				    .cpu = cpu };
}

TEST(order)
{
	const struct task_space spaces[] = {
		thread_of(10, 0, 0, 3 * second),
		thread_of(11, 0, 1, 2 * second),
		thread_of(12, SPACE_RUNNABLE, 0, 5 * second),
		thread_of(13, 0, 0, 20 * second),
		thread_of(14, SPACE_RUNNABLE, 1, 0),
		thread_of(13, 0, 1, second), /* another thread of it */
		thread_of(15, 0, 0, 0),
	};
	static const uint32_t want[] = { 14, 12, 15, 13, 11, 10 };
	struct startup_scan_list list;

	ASSERT_OK(startup_scan_sort(spaces, 7, false, &list));
	ASSERT_EQ(list.nr, 6);
	for (size_t i = 0; i < list.nr; i++) {
		ASSERT_EQ(list.items[i].pid, want[i]);
		ASSERT_EQ(list.items[i].mm, 0x1000 + want[i]);
	}
	vec_free(&list);
}

TEST(left_out)
{
	const struct task_space spaces[] = {
		thread_of(10, 0, 0, 3600 * second),		 /* sleeps for long */
		thread_of(11, SPACE_BLOCKED, 1, 30 * second),	 /* hangs */
		thread_of(12, SPACE_BLOCKED, 1, second / 10),	 /* waits for its disk */
		thread_of(13, SPACE_RUNNABLE, 0, 3600 * second), /* has never had its turn */
		thread_of(14, SPACE_RUNNABLE, 0, 0),
		thread_of(14, SPACE_BLOCKED, 0, 30 * second), /* a thread of it hangs */
		thread_of(15, 0, 1, 0),
	};
	static const uint32_t want[] = { 13, 15, 12 };
	struct startup_scan_list list;

	ASSERT_OK(startup_scan_sort(spaces, 7, false, &list));
	ASSERT_EQ(list.nr, 3);
	for (size_t i = 0; i < list.nr; i++)
		ASSERT_EQ(list.items[i].pid, want[i]);
	vec_free(&list);
	/* Of those that were asked for, none. */
	ASSERT_OK(startup_scan_sort(spaces, 7, true, &list));
	ASSERT_EQ(list.nr, 6);
	vec_free(&list);
	ASSERT_OK(startup_scan_sort(NULL, 0, false, &list));
	ASSERT_EQ(list.nr, 0);
	vec_free(&list);
}
