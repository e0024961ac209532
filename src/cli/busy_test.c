// SPDX-License-Identifier: Apache-2.0
#include "cli/busy.h"

#include "test.h"

#include <errno.h>
#include <unistd.h>

TEST(what_ran_is_told_from_what_waited)
{
	uint64_t ticks = 0;

	ASSERT_OK(busy_parse("cpu  1 20 300 4000 50000 600000 7000000 80000000 900 0\ncpu0 1\n",
			     &ticks));
	ASSERT_EQ(ticks, 7600321);
	ASSERT_EQ(busy_parse("cpu  1 20 300 4000\n", &ticks), -EINVAL);
	ASSERT_EQ(busy_parse("cpu0 1 2 3 4 5 6 7 8\n", &ticks), -EINVAL);
	ASSERT_EQ(busy_parse("", &ticks), -EINVAL);
}

TEST(cpus_are_ticks_a_time)
{
	uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct busy_look from = { 1000000000, 500 };
	struct busy_look to = { 3000000000, 500 + 3 * second }, none = { 0 };

	ASSERT(busy_cpus(&from, &to, 2) == 1.5);
	ASSERT(busy_cpus(&none, &to, 2) == -1);
	ASSERT(busy_cpus(&to, &from, 2) == -1);
	ASSERT(busy_cpus(&from, &from, 2) == -1);
}

TEST(no_more_are_busy_than_there_are)
{
	uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct busy_look from = { 1000000000, 500 };
	struct busy_look to = { 2000000000, 500 + 2 * second + 2 };

	ASSERT(busy_cpus(&from, &to, 2) == 2);
	ASSERT(busy_by_samples(99, 1, 99, 2) == 1);
	ASSERT(busy_by_samples(200, 1, 99, 2) == 2);
	ASSERT(busy_by_samples(200, 0, 99, 2) == 0);
}

TEST(this_machine_tells)
{
	struct busy_look look;

	ASSERT(busy_look(&look));
	ASSERT(look.at_ns && look.ticks);
}
