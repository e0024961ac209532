// SPDX-License-Identifier: Apache-2.0
/* What an idle child is to processes of other sessions. */
#include "util/child.h"
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"

#define GROUP_FORMAT "/autogroup-%*u nice %d"

const char *test_skip_reason(void)
{
	return geteuid() ? "not root, who may raise what was lowered" : NULL;
}

/* The nice value of the group that shares the CPUs with other sessions'; false: this kernel makes
 * none. */
static bool group_nice(pid_t pid, int *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/autogroup", (int)pid);
	f = fopen(path, "re");
	return f && fscanf(f, GROUP_FORMAT, ret) == 1;
}

/* Whether it can be changed as often as one likes; root in a container may not. */
static bool may_change_groups(void)
{
	_cleanup_close_ int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	char same[16];
	int nice;

	if (fd < 0 || !group_nice(getpid(), &nice))
		return false;
	snprintf(same, sizeof(same), "%d", nice);
	return write(fd, same, strlen(same)) > 0 && write(fd, same, strlen(same)) > 0;
}

/* The child's main(): it says that it has begun, and stays. */
static int stay(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (write(CHILD_MESSAGES_FD, "", 1) != 1)
		return CHILD_FAILED;
	for (;;)
		pause();
}

static struct child start(bool idle)
{
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct child_spec spec = {
		.main = stay,
		.in_fd = null,
		.out_fd = null,
		.idle = idle,
	};
	struct child child = CHILD_NONE;
	struct pollfd begun;

	ASSERT_OK(child_start(&spec, &child));
	begun = (struct pollfd){ .fd = child.messages, .events = POLLIN };
	ASSERT_EQ(poll(&begun, 1, -1), 1);
	return child;
}

static void check(const struct child *child, bool idle)
{
	int nice;

	ASSERT_EQ(sched_getscheduler(child->pid), idle ? SCHED_IDLE : SCHED_OTHER);
	if (group_nice(child->pid, &nice) && (!idle || may_change_groups()))
		ASSERT_EQ(nice, idle ? 19 : 0);
}

/* The parent may come to it before the child has a session, or after. */
TEST(an_idle_child_is_idle_beside_other_sessions)
{
	int before = 0, after = 0;

	group_nice(getpid(), &before);
	for (int i = 0; i < 50; i++) {
		struct child child = start(true);

		check(&child, true);
		child_end(&child, true, NULL);
	}
	group_nice(getpid(), &after);
	ASSERT_EQ(before, after);
}

TEST(a_child_whose_work_is_wanted_is_as_others)
{
	struct child child = start(true);

	ASSERT_OK(child_set_idle(&child, false));
	check(&child, false);
	ASSERT_OK(child_set_idle(&child, true));
	check(&child, true);
	child_end(&child, true, NULL);
	child = start(false);
	check(&child, false);
	child_end(&child, true, NULL);
}

/* Wanted at once: perhaps before it has its session. */
TEST(a_child_is_wanted_while_it_begins)
{
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct child_spec spec = {
		.main = stay,
		.in_fd = null,
		.out_fd = null,
		.idle = true,
	};

	for (int i = 0; i < 50; i++) {
		struct child child = CHILD_NONE;
		struct pollfd begun;

		ASSERT_OK(child_start(&spec, &child));
		ASSERT_OK(child_set_idle(&child, false));
		begun = (struct pollfd){ .fd = child.messages, .events = POLLIN };
		ASSERT_EQ(poll(&begun, 1, -1), 1);
		check(&child, false);
		child_end(&child, true, NULL);
	}
}
