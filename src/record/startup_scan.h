/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that are there when a recording begins, shown to the walkers before the first
 * sample: else their first samples are walked late, in copies of their stacks, where frames of
 * runtimes can't be found any more. On a machine with more work than CPUs that goes on for seconds.
 *
 * Those that run go first, then those that ran lately: whoever sleeps for long costs nothing.
 */
#pragma once

#include "unwinder/publisher.h"

/* A process that a sample may soon be of. */
struct startup_scan_process {
	uint32_t pid;
	uint32_t flags; /* SPACE_* of any of its threads */
	uint64_t mm;
	uint64_t idle_ns; /* since one of its threads ran */
};

struct startup_scan_list {
	struct startup_scan_process *items;
	size_t nr, cap;
};

/*
 * What threads say, put together by process, in the order in which they are to be shown. Without
 * those that have not run for long, unless `all`: nor those that hang, whose files may be where
 * whoever touches them hangs, too. 0 or -ENOMEM.
 */
int startup_scan_sort(const struct task_space *spaces, size_t nr, bool all,
		      struct startup_scan_list *ret);

struct startup_scan_options {
	/* The processes that were asked for: all of them, however long that takes. Else those that
	 * have a runtime, and a second's work at most. */
	bool all;
	/* Called before each, to take in what became of processes meanwhile; false: enough. */
	bool (*go_on)(void *ctx);
	void *ctx;
};

/* How many of those that were to be looked at were not. */
size_t startup_scan_show(struct publisher *p, const struct startup_scan_options *options);
