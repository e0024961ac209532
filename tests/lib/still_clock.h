/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of a test's own: all of them stand still but where the test has time go by. A machine that
 * has no time for a test would else give shares of time back, or let what is held go, meanwhile.
 * For one file of an executable that is linked with -Wl,--wrap=clock_gettime.
 */
#pragma once

#include <stdint.h>
#include <time.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

/* What has gone by. */
static uint64_t still_clock_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	enum { BEGIN_S = 1000, S_NS = 1000000000 };

	(void)clock;
	ret->tv_sec = BEGIN_S + (time_t)(still_clock_ns / S_NS);
	ret->tv_nsec = (long)(still_clock_ns % S_NS);
	return 0;
}
