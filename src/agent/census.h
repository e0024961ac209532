/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who was sampled: turns PID, TID and comm of a sample into the profile's thread, and keeps what is
 * known of the processes (executable, user, container, lifetime) and threads (lifetime). They are
 * looked at in /proc once, when the first sample comes, and processes again after an exec.
 */
#pragma once

#include "process/side_band.h"
#include "profile/profile.h"
#include "util/map.h"

struct census {
	struct profile *profile; /* borrowed */
	struct map by_pid;	 /* -> the profile's number of the process, and CENSUS_* */
	struct map by_tid;	 /* -> the profile's number of the thread; main ones not */
	uint64_t last_key;
	uint64_t wall_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
};

void census_init(struct census *c, struct profile *profile);
void census_fini(struct census *c);
/* The profile's thread; the comm is a name at the sample's time. 0 or -ENOMEM. */
int census_thread(struct census *c, int32_t pid, int32_t tid, const char *comm, uint32_t *ret);
/* The same of a virtual thread called `name`, which the thread `tid` carries. */
int census_virtual_thread(struct census *c, int32_t pid, int32_t tid, const char *comm,
			  const char *name, uint32_t *ret);
/* The same if process and thread are known; else -ENOENT: nothing is added. `name` NULL:
 * the thread `tid` itself. */
int census_known_thread(const struct census *c, int32_t pid, int32_t tid, const char *comm,
			const char *name, uint32_t *ret);
/* A fork, exec or exit: the PID is another process, has another image, or it or a thread ended. */
void census_on_event(struct census *c, const struct side_event *event);
/* The profile was cleared: it forgot its processes. */
void census_forget(struct census *c);
