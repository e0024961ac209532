/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's time for one kind of work, which anybody's processes can ask for without end: all
 * of it takes a part of a CPU at most, and what nobody needed is saved for later, up to a second.
 *
 * Half of what is saved is anybody's, so that who is alone may use all of the part. A quarter is
 * for owners who have had less than their share of late (owners.h), the last for who is trusted.
 */
#pragma once

#include "util/map.h"

#include <stdbool.h>
#include <stdint.h>

struct time_shares {
	uint32_t part;	      /* one `part`th of a CPU */
	uint64_t used_ns;     /* until then the time is spent; earlier than now: saved */
	struct map used_each; /* owner -> the same, of an owner's share */
};

void time_shares_fini(struct time_shares *s);
/* May work for that owner be done now? */
bool time_shares_may(const struct time_shares *s, uint32_t owner, uint64_t now_ns);
/* It was done, and took so long. */
void time_shares_take(struct time_shares *s, uint32_t owner, uint64_t now_ns, uint64_t took_ns);
/*
 * What is done between the two is work for that owner, by this thread. It counts by the CPU's
 * clock: on a busy machine others have most of the wall's, and what is waited for has bounds of its
 * own. False: not now, and there is nothing to end.
 */
bool time_shares_begin(const struct time_shares *s, uint32_t owner, uint64_t *ret_begin_ns);
void time_shares_end(struct time_shares *s, uint32_t owner, uint64_t begin_ns);
