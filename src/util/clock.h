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

/*
 * What `clock` is ahead of CLOCK_MONOTONIC: one set to the past is so by a negative number, as
 * uint64_t has it. Read in between two looks at the latter that are close together: who is stopped,
 * or gets no turn, between his look at the one and that at the other would be wrong by all of that
 * time.
 */
static inline uint64_t clock_ahead_ns(clockid_t clock)
{
	enum { TRIES = 4, CLOSE_NS = 100000 };
	uint64_t least = UINT64_MAX, ret = 0;

	for (int i = 0; i < TRIES && least > CLOSE_NS; i++) {
		uint64_t before = now_ns(), at = clock_ns(clock), took = now_ns() - before;

		if (took >= least)
			continue;
		least = took;
		ret = at - (before + took / 2);
	}
	return ret;
}

static inline uint64_t wall_offset_ns(void)
{
	return clock_ahead_ns(CLOCK_REALTIME);
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}
