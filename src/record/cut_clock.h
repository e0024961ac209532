/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When samples were taken, since their cut began, on the wall. The kernel's times are
 * CLOCK_MONOTONIC, which stands still while the machine sleeps: what was taken behind that is later
 * by as much as CLOCK_BOOTTIME went on meanwhile. Somebody has to look, often; who wakes up with
 * the machine looks at once.
 *
 * Where somebody sets the wall clock, a cut goes by what it was at its begin.
 */
#pragma once

#include <stdint.h>

struct cut_clock {
	uint64_t begin_ns;  /* of the cut: CLOCK_MONOTONIC */
	uint64_t asleep_ns; /* the machine was, since it booted */
	uint64_t slept_ns;  /* in this cut */
	/* The last time that it slept in this cut, and when that was noticed: CLOCK_MONOTONIC. */
	uint64_t last_slept_ns, woke_ns;
};

/* `asleep_ns`: how far CLOCK_BOOTTIME is ahead (clock_ahead_ns()). */
void cut_clock_begin(struct cut_clock *c, uint64_t monotonic_ns, uint64_t asleep_ns);
/* The machine may have slept since. */
void cut_clock_look(struct cut_clock *c, uint64_t monotonic_ns, uint64_t asleep_ns);
/* The cut begins with what was taken then, before its begin. */
void cut_clock_begin_earlier(struct cut_clock *c, uint64_t monotonic_ns);
/* How long after its begin a time of the kernel's was. */
uint64_t cut_clock_since(const struct cut_clock *c, uint64_t monotonic_ns);
