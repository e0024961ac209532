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
	uint32_t cpu;
	int n = 0;

	ASSERT_OK(cpu_set_open(&set));
	ASSERT_OK(cpu_set_listen(set, count, &n));
	ASSERT_EQ(n, sysconf(_SC_NPROCESSORS_ONLN));
	ASSERT_OK(cpu_set_sync(set));
	ASSERT_EQ(n, sysconf(_SC_NPROCESSORS_ONLN));
	ASSERT_EQ(cpu_set_missing_ns(set, &cpu), 0);
	ASSERT_EQ(cpu_set_size(set), n);
	cpu_set_free(set);
}

enum { TEXT_MAX = 65536 };

static char text[TEXT_MAX];
static int answer; /* of the first listener, to CPU 0's coming */

static void write_down(const char *who, uint32_t cpu, bool online)
{
	size_t len = strlen(text);

	snprintf(text + len, TEXT_MAX - len, "%s%c%u", who, online ? '+' : '-', cpu);
}

static int first(void *ctx, uint32_t cpu, bool online)
{
	(void)ctx;
	write_down("a", cpu, online);
	return online && !cpu ? answer : 0;
}

static int second(void *ctx, uint32_t cpu, bool online)
{
	(void)ctx;
	write_down("b", cpu, online);
	return 0;
}

TEST(a_listed_cpu_is_offered_until_it_is_there)
{
	struct cpu_set *set;
	uint32_t missing = 1;
	int a, b;

	ASSERT_OK(cpu_set_open(&set));
	answer = -ENODEV;
	ASSERT_OK(cpu_set_listen(set, first, &a));
	ASSERT(strstr(text, "a+0"));
	ASSERT(sysconf(_SC_NPROCESSORS_ONLN) < 2 || strstr(text, "a+1"));
	/* Who came later hears of it when who came first has it. */
	text[0] = '\0';
	ASSERT_OK(cpu_set_listen(set, second, &b));
	ASSERT(strstr(text, "a+0"));
	ASSERT(!strstr(text, "b+0"));
	ASSERT(cpu_set_missing_ns(set, &missing) > 0);
	ASSERT_EQ(missing, 0);
	text[0] = '\0';
	answer = 0;
	ASSERT_OK(cpu_set_sync(set));
	ASSERT_STR(text, "a+0b+0");
	ASSERT_EQ(cpu_set_missing_ns(set, &missing), 0);
	cpu_set_leave(set, &b);
	ASSERT_OK(cpu_set_sync(set));
	ASSERT_STR(text, "a+0b+0");
	cpu_set_free(set);
}

TEST(an_error_is_told_and_tried_again)
{
	struct cpu_set *set;
	int a;

	ASSERT_OK(cpu_set_open(&set));
	answer = -EPERM;
	ASSERT_ERR(cpu_set_listen(set, first, &a), EPERM);
	answer = 0;
	text[0] = '\0';
	ASSERT_OK(cpu_set_sync(set));
	ASSERT_STR(text, "a+0");
	cpu_set_free(set);
}

/* A file in the place of a perf event's: count and time, at each reading. */
TEST(a_cpu_that_is_back_before_a_look_went_nevertheless)
{
	static const uint64_t readings[] = { 0, 5, 0, 7, 0, 7 };
	FILE *event = tmpfile();
	struct cpu_set *set;
	int a, b;

	ASSERT(event);
	ASSERT_EQ(write(fileno(event), readings, sizeof(readings)), sizeof(readings));
	ASSERT_EQ(lseek(fileno(event), 0, SEEK_SET), 0);
	ASSERT_OK(cpu_set_open(&set));
	ASSERT_OK(cpu_set_listen(set, first, &a));
	ASSERT_OK(cpu_set_listen(set, second, &b));
	ASSERT_OK(cpu_set_watch(set, 0, fileno(event)));
	text[0] = '\0';
	/* It is read once in a second. */
	while (!*text)
		ASSERT_OK(cpu_set_sync(set));
	ASSERT_STR(text, "a-0b-0a+0b+0");
	ASSERT_EQ(lseek(fileno(event), 0, SEEK_CUR), sizeof(readings));
	cpu_set_free(set);
	fclose(event);
}
