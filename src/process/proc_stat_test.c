// SPDX-License-Identifier: Apache-2.0
#include "process/proc_stat.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define REST " 1 7 8 0 -1 4194560 175 0 0 0 0 0 0 0 20 -5 3 0 9223372036854775808 2461696 195"

static int parse(const char *text, struct proc_stat *ret)
{
	return proc_stat_parse(text, strlen(text), ret);
}

TEST(reads_the_fields)
{
	struct proc_stat s;

	ASSERT_OK(parse("42 (cat) S" REST "\n", &s));
	ASSERT_EQ(s.state, 'S');
	ASSERT_EQ(s.parent_pid, 1);
	ASSERT(s.group_pid == 7 && s.session_pid == 8 && !s.has_terminal);
	ASSERT_EQ(s.flags, 4194560);
	ASSERT_EQ(s.nr_threads, 3);
	ASSERT_EQ(s.start_time, 1ull << 63);
}

TEST(a_terminal_has_a_number)
{
	struct proc_stat s;

	ASSERT_OK(parse("42 (cat) S 1 7 7 34816 -1 0 0 0 0 0 0 0 0 0 20 -5 3 0 9 2461696", &s));
	ASSERT(s.has_terminal);
}

TEST(a_comm_can_hold_anything)
{
	struct proc_stat s;

	ASSERT_OK(parse("42 (a) R 1 (b\n) Z" REST " 7 8 9\n", &s));
	ASSERT_EQ(s.state, 'Z');
	ASSERT_OK(parse("42 () X" REST, &s));
	ASSERT_EQ(s.state, 'X');
}

TEST(junk_is_refused)
{
	static const char whole[] = "42 (cat) S" REST;
	struct proc_stat s = { .state = '?' };

	for (size_t size = 0; size < sizeof(whole) - 32; size++)
		ASSERT_ERR(proc_stat_parse(whole, size, &s), EINVAL);
	ASSERT_ERR(parse("42 (cat) SS" REST, &s), EINVAL);
	ASSERT_ERR(parse("42 (cat) S x" REST, &s), EINVAL);
	ASSERT_ERR(parse("42 (cat)S" REST, &s), EINVAL);
	ASSERT_ERR(parse("42 (cat)  S" REST, &s), EINVAL);
	ASSERT_EQ(s.state, '?');
}

TEST(tells_the_living_from_the_dead)
{
	struct proc_stat s;
	siginfo_t info;
	pid_t pid;

	ASSERT_OK(proc_stat_read(getpid(), &s));
	ASSERT(!proc_stat_is_over(&s) && !proc_stat_is_kernel_thread(&s));
	ASSERT_EQ(s.parent_pid, getppid());
	ASSERT(s.group_pid == getpgrp() && s.session_pid == getsid(0));
	ASSERT_EQ(s.nr_threads, 1);
	ASSERT(s.start_time > 0);
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	ASSERT_OK(proc_stat_read(pid, &s));
	ASSERT(proc_stat_is_over(&s));
	ASSERT(!proc_is_gone(pid));
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT(proc_is_gone(pid));
	ASSERT_ERR(proc_stat_read(pid, &s), ESRCH);
}
