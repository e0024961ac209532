/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sampled processes publish of themselves (process/process_context.h): looked for when a cut
 * has samples of them, and again, after longer and longer pauses, since they do so when they like.
 *
 * What was published replaces what the process's environment said: it is what its SDK made of that.
 */
#pragma once

#include "profile/profile.h"
#include "util/map.h"
#include "util/vec.h"

/* Of one process. */
struct context_look {
	uint64_t key; /* of the process in the profile */
	uint64_t addr, stamp;
	uint64_t next_ns;  /* not before */
	uint64_t pause_ns; /* after a look in vain */
};

struct process_contexts {
	VEC(struct context_look) looks; /* no more than the profile had processes */
	struct map by_key;		/* -> number of the look */
};

void process_contexts_fini(struct process_contexts *c);
/* Of the processes that the profile's cut has. A few ms at most; the rest comes next time. */
void process_contexts_look(struct process_contexts *c, struct profile *p);
/* The profile was collected: looks at processes that it forgot are forgotten, too. */
void process_contexts_collected(struct process_contexts *c, const struct profile *p);
