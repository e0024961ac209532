// SPDX-License-Identifier: Apache-2.0
#include "util/cpus.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
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

enum { TEXT_MAX = 65536 };

static int write_down(void *ctx, uint32_t cpu, bool online)
{
	size_t len = strlen(ctx);

	snprintf((char *)ctx + len, TEXT_MAX - len, "%c%u", online ? '+' : '-', cpu);
	return 0;
}

/* A file in the place of a perf event's: count and time, at each reading. */
TEST(a_cpu_that_is_back_before_a_look_went_nevertheless)
{
	static const uint64_t readings[] = { 0, 5, 0, 7, 0, 7 };
	FILE *event = tmpfile();
	static char text[TEXT_MAX];
	struct cpu_set *set;

	ASSERT(event);
	ASSERT_EQ(write(fileno(event), readings, sizeof(readings)), sizeof(readings));
	ASSERT_EQ(lseek(fileno(event), 0, SEEK_SET), 0);
	ASSERT_OK(cpu_set_open(&set));
	ASSERT_OK(cpu_set_sync(set, write_down, text));
	ASSERT(strstr(text, "+0"));
	ASSERT_OK(cpu_set_watch(set, 0, fileno(event)));
	text[0] = '\0';
	/* It is read once in a second. */
	while (!*text)
		ASSERT_OK(cpu_set_sync(set, write_down, text));
	ASSERT_STR(text, "-0+0");
	ASSERT_EQ(lseek(fileno(event), 0, SEEK_CUR), sizeof(readings));
	cpu_set_free(set);
	fclose(event);
}
