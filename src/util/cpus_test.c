// SPDX-License-Identifier: Apache-2.0
#include "util/cpus.h"
#include "test.h"

#include <errno.h>
#include <unistd.h>

TEST(lists_are_parsed)
{
	uint64_t bits[CPUS_MAX / 64];

	ASSERT_OK(cpu_list_parse("0-3,5,64-65\n", bits));
	ASSERT_EQ(bits[0], 0x2f);
	ASSERT_EQ(bits[1], 3);
	ASSERT_ERR(cpu_list_parse("x", bits), EINVAL);
	ASSERT_ERR(cpu_list_parse("3-1", bits), EINVAL);
	ASSERT_ERR(cpu_list_parse("0-99999", bits), EINVAL);
	ASSERT_EQ(bits[0], 0x2f);
}

static int count(void *ctx, uint32_t cpu, bool online)
{
	ASSERT(online);
	(void)cpu;
	++*(int *)ctx;
	return 0;
}

TEST(the_first_look_reports_all_and_the_second_nothing)
{
	struct cpu_set *set;
	int n = 0;

	ASSERT_OK(cpu_set_open(&set));
	ASSERT_OK(cpu_set_sync(set, count, &n));
	ASSERT_EQ(n, sysconf(_SC_NPROCESSORS_ONLN));
	ASSERT_OK(cpu_set_sync(set, count, &n));
	ASSERT_EQ(n, sysconf(_SC_NPROCESSORS_ONLN));
	cpu_set_free(set);
}
