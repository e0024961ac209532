/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent gives up, since it has no need of it: who takes it over by a mistake of ours in
 * reading what others made has less in his hands. docs/agent.md, "Privileges", says what is left.
 *
 * Calls are those of the calling thread; children and threads that it starts have what it has.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sandbox_mode {
	SANDBOX_ON,
	SANDBOX_OFF,
	SANDBOX_KILL, /* for tests: a system call that is not allowed kills the process */
};

/*
 * No new privileges by executing anything, and the filter of system calls: what is not in the list
 * of sandbox_calls.c fails by EPERM, and by ENOSYS if it is newer than that list. To be called
 * before there are threads. 0, or negative errno: kernels may have no filters.
 */
int sandbox_filter_calls(enum sandbox_mode mode);

enum sandbox_part {
	SANDBOX_RECORDER, /* when its programs are loaded: what runtimes and CPUs still need that
			   * come later */
	SANDBOX_SENDER,	  /* a network, and files */
};

/*
 * Gives up all capabilities that this part has no need of, for what it executes, too. 0, or
 * negative errno.
 */
int sandbox_drop_capabilities(enum sandbox_part part);

/* --- for the above, and tests ----------------------------------------------------------------- */

/* Numbers of all that is allowed, in no order. */
const int *sandbox_calls(size_t *ret_nr);
/*
 * The filter's program. How many instructions; -E2BIG: more than `max`. `otherwise` is a
 * SECCOMP_RET_*, for what is not allowed.
 */
int sandbox_program(struct sock_filter *ret, size_t max, uint32_t otherwise);
