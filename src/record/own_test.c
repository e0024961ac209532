// SPDX-License-Identifier: Apache-2.0
#include "record/own.h"
#include "test.h"
#include "util/child.h"
#include "util/clock.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int until_its_input_ends(int argc, char **argv)
{
	char byte;

	(void)argc;
	(void)argv;
	return read(CHILD_IN_FD, &byte, 1) < 0;
}

struct started {
	struct child child;
	int hold; /* it lives until this is closed */
};

static struct started start(void)
{
	struct child_spec spec = { .main = until_its_input_ends };
	struct started s;
	int fds[2];

	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	spec.in_fd = spec.out_fd = fds[0];
	ASSERT_OK(child_start(&spec, &s.child));
	close(fds[0]);
	s.hold = fds[1];
	return s;
}

static void end(struct started *s)
{
	close(s->hold);
	ASSERT_OK(child_end(&s->child, false, NULL));
}

static void tell(struct own *own, enum side_event_type type, int32_t pid, int32_t parent)
{
	own_on_event(own, &(struct side_event){ .type = type, .pid = pid, .parent_pid = parent });
}

TEST(this_process_and_the_children_that_it_has_are_our_own)
{
	struct started before = start();
	uint32_t pid = (uint32_t)before.child.pid;
	struct own own;

	ASSERT_OK(own_init(&own));
	ASSERT(own_has(&own, (uint32_t)getpid()));
	ASSERT(own_has(&own, pid));
	ASSERT(!own_has(&own, (uint32_t)getppid()));
	end(&before);
	ASSERT(own_has(&own, pid)); /* samples from before its end may come */
	tell(&own, SIDE_EXIT, (int32_t)pid, getpid());
	ASSERT(!own_has(&own, pid));
	own_fini(&own);
}

TEST(children_are_our_own_from_their_fork_to_their_end)
{
	int32_t me = getpid(), child = me + 1, grandchild = me + 2, other = me + 3;
	struct own own;

	ASSERT_OK(own_init(&own));
	tell(&own, SIDE_FORK, child, me);
	tell(&own, SIDE_FORK, grandchild, child);
	tell(&own, SIDE_FORK, other, getppid());
	ASSERT(own_has(&own, (uint32_t)child));
	ASSERT(own_has(&own, (uint32_t)grandchild));
	ASSERT(!own_has(&own, (uint32_t)other));
	tell(&own, SIDE_EXIT, child, me);
	ASSERT(!own_has(&own, (uint32_t)child));
	ASSERT(own_has(&own, (uint32_t)grandchild));
	own_fini(&own);
}

TEST(whose_end_may_be_lost_is_our_own_no_longer)
{
	struct started after;
	struct own own;

	ASSERT_OK(own_init(&own));
	tell(&own, SIDE_FORK, getpid() + 1, getpid());
	after = start();
	tell(&own, SIDE_LOST, 0, 0);
	if (after.child.pid != getpid() + 1)
		ASSERT(!own_has(&own, (uint32_t)getpid() + 1));
	ASSERT(own_has(&own, (uint32_t)after.child.pid));
	ASSERT(own_has(&own, (uint32_t)getpid()));
	end(&after);
	tell(&own, SIDE_LOST, 0, 0);
	ASSERT(!own_has(&own, (uint32_t)after.child.pid));
	own_fini(&own);
}

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
static unsigned int nr_asked; /* in this program, a system call each */

pid_t __wrap_getpid(void)
{
	nr_asked++;
	return __real_getpid();
}

TEST(events_ask_the_kernel_nothing)
{
	int32_t me = getpid();
	struct own own;

	ASSERT_OK(own_init(&own));
	nr_asked = 0;
	tell(&own, SIDE_EXIT, me, me);
	tell(&own, SIDE_EXIT, me + 1, me);
	tell(&own, SIDE_FORK, me + 1, me);
	ASSERT_EQ(nr_asked, 0);
	/* It reads this, so it has not ended. */
	ASSERT(own_has(&own, (uint32_t)me));
	own_fini(&own);
}

/* Runs so long that no clock's steps matter. */
static int burn(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < 200000000)
		;
	return 0;
}

TEST(what_children_took_is_counted_while_they_run_and_afterwards)
{
	struct child_spec spec = { .main = burn, .in_fd = STDIN_FILENO, .out_fd = STDIN_FILENO };
	uint64_t before = child_cpu_ns();
	struct child child;
	char byte;

	ASSERT_OK(child_start(&spec, &child));
	while (child_cpu_ns() - before < 50000000) /* while it runs */
		;
	/* Its end of messages closes with it, and it is a zombie, or about to be one. */
	fcntl(child.messages, F_SETFL, 0);
	ASSERT_EQ(read(child.messages, &byte, 1), 0);
	ASSERT(child_cpu_ns() - before >= 190000000);
	ASSERT_OK(child_end(&child, false, NULL));
	ASSERT(child_cpu_ns() - before >= 190000000);
	ASSERT(child_cpu_ns() - before < 1000000000);
}

TEST(what_children_took_does_not_become_less_when_one_is_left)
{
	struct started s = start();
	uint64_t before = child_cpu_ns();
	pid_t pid = s.child.pid;

	child_leave(&s.child);
	ASSERT(child_cpu_ns() >= before);
	close(s.hold);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}
