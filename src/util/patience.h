/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the recorder waits for somebody else's work on files: for each file, and of all time, so
 * much. A quarter of the time that goes by may be waited, and what nobody needed is saved up to a
 * maximum. The last half of what is saved is for files of those who are trusted (owners.h).
 */
#pragma once

#include "util/owners.h"

#include <stdint.h>

enum { PATIENCE_PART = 4 };

struct patience {
	uint64_t of_file_ns, max_ns;
	uint64_t left_ns, at_ns; /* what is left, and as of when */
};

/* With all of `max_ns` saved. */
static inline struct patience patience_new(uint64_t of_file_ns, uint64_t max_ns, uint64_t now_ns)
{
	return (struct patience){ of_file_ns, max_ns, .left_ns = max_ns, .at_ns = now_ns };
}

/* How long a file of that owner may be waited for, now. */
static inline uint64_t patience_for(struct patience *p, uint32_t owner, uint64_t now_ns)
{
	uint64_t kept = owner_is_trusted(owner) ? 0 : p->max_ns / 2, left;

	if (now_ns > p->at_ns) {
		p->left_ns += (now_ns - p->at_ns) / PATIENCE_PART;
		p->at_ns = now_ns;
	}
	if (p->left_ns > p->max_ns)
		p->left_ns = p->max_ns;
	left = p->left_ns > kept ? p->left_ns - kept : 0;
	return left < p->of_file_ns ? left : p->of_file_ns;
}

/* Takes off what was waited. */
static inline void patience_take(struct patience *p, uint64_t waited_ns)
{
	p->left_ns -= waited_ns < p->left_ns ? waited_ns : p->left_ns;
}
