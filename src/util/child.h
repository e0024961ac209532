/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes that do a piece of work beside ours: they read what is hostile or large, in
 * memory that goes back whole, and at a priority of their own.
 *
 * Told by arguments and descriptors: 3 what it reads, 4 what it writes, 5 messages to its parent, 6
 * its lifeline, from 7 on what else it needs. 0 to 2 are /dev/null.
 *
 * The lifeline is a pipe whose other end is our process's alone: when that ends, however it does,
 * the kernel kills the child, unless it was told to stay. (PR_SET_PDEATHSIG would end it with the
 * thread that started it.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
	CHILD_IN_FD = 3,
	CHILD_OUT_FD = 4,
	CHILD_MESSAGES_FD = 5,
	CHILD_LIFELINE_FD = 6,
	CHILD_MORE_FD = 7,
	CHILD_MORE_MAX = 32,
};

struct child_spec {
	char *const *program; /* argv, to which `args` are added; NULL: fork, and `main` */
	int (*main)(int argc, char **argv);
	char *const *args;
	size_t nr_args;
	int in_fd, out_fd;
	int more_fds[CHILD_MORE_MAX];
	size_t nr_more_fds;
	bool idle; /* lowest priority; else a normal one */
};

struct child {
	pid_t pid;    /* 0: none */
	int messages; /* what it writes to 5; the end of that is the child's */
	int lifeline[2];
};

#define CHILD_NONE ((struct child){ .messages = -1, .lifeline = { -1, -1 } })

/* What a child ends with that could not even begin. */
enum { CHILD_FAILED = 1 };

int child_start(const struct child_spec *spec, struct child *ret);
/* SCHED_IDLE and the like, or as other processes. -EPERM: we may not raise it. */
int child_set_idle(const struct child *child, bool idle);
/* It need not end with us. */
void child_let_stay(const struct child *child);
/* Lets it stay, and forgets it. */
void child_leave(struct child *child);
/*
 * Takes its status (of waitpid()); -ECHILD if another took it. `kill_it`: kills it first, and does
 * not wait for long.
 */
int child_end(struct child *child, bool kill_it, int *ret_status);
/* The CPU time in it. */
static inline uint64_t child_usage_ns(const struct rusage *used)
{
	return (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) * 1000;
}
/* Calls `each` for those that were started, and neither ended nor left. */
void child_each(void (*each)(void *ctx, pid_t pid), void *ctx);
/* CPU time of all so far, those that run included. */
uint64_t child_cpu_ns(void);

/* For the child itself: as prlimit() would; the hard limit is `grace` above `value`. */
void child_limit(int resource, uint64_t value, uint64_t grace);
/* No core file, at most so much of a file, so many seconds of CPU, so many bytes of memory. */
void child_restrict(uint64_t file_bytes, uint64_t cpu_s, uint64_t memory);
/*
 * Gives up all capabilities but those of `keep`, a bit each, and that anything executed would have
 * more. What was opened stays open. Where it is not ours to take them away, whoever started us has.
 */
void child_drop_capabilities(uint64_t keep);
