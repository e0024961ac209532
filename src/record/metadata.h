/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process metadata, of who was sampled: turns PID, TID and comm of a sample into the profile's
 * thread, and keeps what is known of the processes (executable, user, container, lifetime) and
 * threads (lifetime). They are looked at in /proc once, when the first sample comes, and processes
 * again after an exec, and after lost events.
 *
 * What /proc says holds from the last exec before it was read to the next one. An exec is heard of
 * later than that: then it is settled whose the description is that was read since. If it may have
 * been lost, names tell: that of the thread when it was sampled, and what /proc calls it.
 */
#pragma once

#include "process/side_band.h"
#include "process/user_names.h"
#include "profile/collect.h"
#include "util/map.h"
#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* When /proc was read of a process, CLOCK_MONOTONIC; 0: never. */
struct metadata_reading {
	uint64_t begin_ns, end_ns;
	uint32_t comm;	/* of its main thread when that was sampled first: the profile's strings */
	bool is_unread; /* it was executing something just then, or is_held: it is read again */
};

struct metadata {
	struct profile *profile; /* borrowed */
	/* A process that executes another program is another one in the profile from there on; else
	 * it stays one, and is what it was last. */
	bool each_program;
	const char *variables; /* of environments, that are to be kept; or NULL, borrowed */
	struct map by_pid;     /* -> the profile's number of the process, and METADATA_* */
	struct map by_tid;     /* -> the profile's number of the thread; main ones not */
	struct user_names users;
	uint64_t last_key;
	/* With each_program, by the profile's number of the process; may end before that. */
	VEC(struct metadata_reading) readings;
	uint64_t read_ns; /* the last one's end */
	uint64_t turn_ns; /* events up to here were read; some may be missing: in_doubt */
	bool in_doubt;
	/* Its owner's: nothing is read for now, but with the next sample behind that. */
	bool is_held;
};

void metadata_init(struct metadata *c, struct profile *profile);
void metadata_fini(struct metadata *c);
/* Tells the profile which machine this is. 0 or -ENOMEM. */
int metadata_host(struct profile *profile);
/* The profile's thread; the comm is a name at the sample's time. 0, -ENOMEM, or -ENOSPC: it is
 * new and the profile full. */
int metadata_thread(struct metadata *c, int32_t pid, int32_t tid, const char *comm, uint32_t *ret);
/* That of a virtual thread called `name`, which the thread `tid` carries. */
int metadata_virtual_thread(struct metadata *c, int32_t pid, int32_t tid, const char *comm,
			    const char *name, uint32_t *ret);
/* Samples and events follow, of up to `now`; of the events some may be missing if not `is_whole`.
 */
void metadata_begin_turn(struct metadata *c, uint64_t now, bool is_whole);
/* A fork, exec or exit: the PID is another process, has another image, or it or a thread ended. A
 * loss of events: any of that. */
void metadata_on_event(struct metadata *c, const struct side_event *event);
/* The profile was collected: processes that it forgot are met anew. */
void metadata_collected(struct metadata *c, const struct profile_collected *collected);
