// SPDX-License-Identifier: Apache-2.0
#include "util/child.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 50 };

static int end_well(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* As the agent has its signals blocked, since it reads them from a descriptor. */
TEST(what_is_sent_to_our_group_is_not_for_children)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct child_spec spec = { .main = end_well, .in_fd = null, .out_fd = null };
	sigset_t signals;

	ASSERT(null >= 0);
	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&signals, numbers[i]);
	ASSERT_OK(sigprocmask(SIG_BLOCK, &signals, NULL));
	ASSERT(!setpgid(0, 0) || getpgid(0) == getpid());
	for (size_t i = 0; i < TIMES; i++) {
		int number = numbers[i % (sizeof(numbers) / sizeof(numbers[0]))], status = -1, got;
		struct child child;

		ASSERT_OK(child_start(&spec, &child));
		/* Mostly before it has a group of its own. */
		ASSERT_OK(kill(0, number));
		ASSERT_OK(child_end(&child, false, &status));
		ASSERT_EQ(status, 0);
		ASSERT_OK(sigwait(&signals, &got));
		ASSERT_EQ(got, number);
	}
	close(null);
}
