/* SPDX-License-Identifier: Apache-2.0 */
/* What tests that load walkers need of the machine. */
#pragma once

#include "kernel/walkers.h"

#include <sys/resource.h>
#include <unistd.h>

/* Of TEST_SKIP_REASON(). */
static inline const char *test_walkers_skip_reason(void)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (geteuid())
		return "loading BPF programs needs root";
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* kernels before 5.11 charge maps against it */
	return walkers_can_be_called() == 1 ? NULL : "this kernel has one program for all";
}
