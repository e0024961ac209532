/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets what a profile's dictionary holds of stacks and threads that were not seen for long, so
 * that a recording can go on for months. What is left is numbered anew: whoever keeps numbers looks
 * up what has become of them.
 */
#pragma once

#include "profile/profile.h"

#define PROFILE_GONE UINT32_MAX

/* What has become of the numbers of one table. */
struct profile_moves {
	uint32_t *to; /* by old number; PROFILE_GONE */
	size_t nr;
};

/* Of all tables. */
struct profile_collected {
	struct profile_moves strings, files, functions, frames, stacks, processes, threads;
};

/*
 * Keeps stacks and threads that were used in cut `since` or later, and all that they refer to. 0,
 * and *ret is the caller's; -ENOMEM and nothing is changed. It takes room for what is kept.
 */
int profile_collect(struct profile *p, uint32_t since, struct profile_collected *ret);
/*
 * Keeps all, but of stack n at most the depths[n] outermost frames, with the note PROFILE_NOT_KEPT
 * in place of the others. Stacks become one by that, and samples. Otherwise as profile_collect().
 */
int profile_collect_to(struct profile *p, const uint32_t *depths, struct profile_collected *ret);
void profile_collected_fini(struct profile_collected *c);

/* The new number, or PROFILE_GONE. */
static inline uint32_t profile_moved(const struct profile_moves *m, uint32_t number)
{
	return number < m->nr ? m->to[number] : PROFILE_GONE;
}

/*
 * The oldest cut to keep, so that about half of what stacks take goes, but never those of this cut
 * and the last. False: that would free less than a quarter.
 */
bool profile_choose_since(const struct profile *p, uint32_t *ret);
