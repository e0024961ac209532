// SPDX-License-Identifier: Apache-2.0
/* Single builders: what they are called, and with whom they end. */
#include "symbol/symbol_child.h"
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/test_child_status.h"

static struct child start(char *const *builder)
{
	_cleanup_close_ int elf = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int out = memfd_create("out", MFD_CLOEXEC);
	const struct symbol_child_spec spec = { .builder = builder,
						.elf_fd = elf,
						.out_fd = out,
						.path = "x",
						.no_debug_info = true,
						.cache_dir = -1 };
	struct child child = CHILD_NONE;

	ASSERT_OK(symbol_child_start(&spec, &child));
	return child;
}

/* Waits until it has ended, but leaves it there. */
static int status_of(pid_t pid)
{
	siginfo_t info = { 0 };

	ASSERT_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	return info.si_status;
}

TEST(it_has_a_name)
{
	const char *root = getenv("SONDE_BUILD_ROOT");
	_cleanup_free_ char *program = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	char comm[64] = "", path[64];
	struct child child;
	char *argv[2] = { NULL };
	int status;

	ASSERT(asprintf(&program, "%s/src/symbol/build_symbols", root ? root : ".") > 0);
	argv[0] = program;
	child = start(argv);
	ASSERT_EQ(status_of(child.pid), SYMBOL_CHILD_OK);
	snprintf(path, sizeof(path), "/proc/%d/comm", child.pid);
	f = fopen(path, "re");
	ASSERT_PTR_NONNULL(f);
	ASSERT_PTR_NONNULL(fgets(comm, sizeof(comm), f));
	ASSERT_STR(comm, SYMBOL_CHILD_NAME "\n");
	ASSERT_OK(child_end(&child, false, &status));
	ASSERT_EQ(status, 0);
}

/* It reads what others made: debug files in anybody's folders, and needs nothing else for that. */
TEST(it_has_no_capabilities_but_to_read_files)
{
	const char *root = getenv("SONDE_BUILD_ROOT");
	_cleanup_free_ char *program = NULL;
	struct child child;
	char *argv[2] = { NULL };

	ASSERT(asprintf(&program, "%s/src/symbol/build_symbols", root ? root : ".") > 0);
	argv[0] = program;
	child = start(argv);
	assert_child_had_only(child.pid, UINT64_C(1) << CAP_DAC_READ_SEARCH);
	ASSERT_OK(child_end(&child, false, NULL));
}

static char self[] = "/proc/self/exe", say_name[] = "say-name";

/* This program, when it is the builder: says what it is called before main(). */
__attribute__((constructor)) static void be_builder(int argc, char **argv)
{
	char comm[16] = "";

	if (argc < 2 || strcmp(argv[1], say_name))
		return;
	prctl(PR_GET_NAME, comm);
	dprintf(5, "%s\n", comm);
	_exit(0);
}

/* Also between exec and main(): a recording has samples of that, too. */
TEST(it_is_never_called_exe)
{
	char *argv[] = { self, say_name, NULL }, said[64] = "", own[16] = "";
	struct child child = start(argv);
	int status;

	ASSERT_EQ(status_of(child.pid), 0);
	ASSERT(read(child.messages, said, sizeof(said) - 1) > 0);
	memcpy(own, "symbol_child_test", sizeof(own) - 1);
	ASSERT(!strncmp(said, own, strlen(own)));
	ASSERT_OK(child_end(&child, false, &status));
}

/* One that goes on for ever; it says when it has begun. */
static char shell[] = "/bin/sh", option[] = "-c";
static char script[] = "echo begun >&5; exec sleep 1000";
static char *sleeper[] = { shell, option, script, shell, NULL };

static void wait_until_it_runs(const struct child *child)
{
	char c;

	while (read(child->messages, &c, 1) != 1)
		sched_yield();
}

TEST(it_ends_when_its_lifeline_is_cut)
{
	struct child child = start(sleeper);
	int status;

	wait_until_it_runs(&child);
	close(child.lifeline[1]);
	child.lifeline[1] = -1;
	ASSERT_EQ(status_of(child.pid), SIGKILL);
	ASSERT_OK(child_end(&child, false, &status));
	/* Also if it has hardly begun. */
	child = start(sleeper);
	close(child.lifeline[1]);
	child.lifeline[1] = -1;
	ASSERT_OK(child_end(&child, false, &status));
	ASSERT(status);
}

TEST(it_stays_if_it_is_told_to)
{
	struct child child = start(sleeper);
	pid_t pid = child.pid;

	wait_until_it_runs(&child);
	child_leave(&child);
	ASSERT_EQ(child.pid, 0);
	ASSERT_OK(kill(pid, SIGTERM));
	ASSERT_EQ(status_of(pid), SIGTERM);
}
