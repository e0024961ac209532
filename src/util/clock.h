/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks as one number. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* CLOCK_MONOTONIC, as the kernel's events and samples have it. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}
