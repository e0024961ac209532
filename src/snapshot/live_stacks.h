/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of all threads of a live process, which runs on meanwhile. docs/stack.md says how.
 *
 * A thread that is on no CPU is not touched: it is read (live_threads.h), its stack is walked in
 * its own memory, and it is read again; if it did not run in between, that was its stack. The
 * others are caught at work by an event (thread_event.h), or, where that is not allowed, by a short
 * stop (thread_stop.h). The walker, the tables and the names are the recorder's.
 */
#pragma once

#include "snapshot/live_walk.h"
#include "profile/profile.h"

struct live_stack {
	int32_t tid;
	char state; /* as in /proc/PID/stat; '?' if not known */
	char name[32];
	uint32_t virtual_name; /* of the virtual thread that it carries, in the profile; 0: none */
	uint32_t stack;	       /* in the profile; UINT32_MAX: none */
	const char *problem;   /* why there is none, or what is wrong with it; NULL: nothing */
};

struct live_options {
	int32_t pid;
	bool kernel; /* kernel frames too */
	uint32_t max_frames;
	const struct symbolizer_options *symbolizer; /* may be NULL */
	const struct thread_observer *observer;	     /* of the walks; NULL: nobody */
	bool without_bpf, without_events;	     /* tests: as if we were not allowed to */
};

struct live_stacks {
	VEC(struct live_stack) threads; /* by tid, ascending */
	bool capped;			/* there are more than LIVE_THREADS_MAX */
	bool by_bpf;			/* with BPF: all registers, and kernel frames */
	struct live_walker walker;	/* its decoder finds the names */
};

/*
 * Takes the stacks into `profile`, without names (decoder_name_all(&s->walker.decoder)). 0, or:
 * -ESRCH: no such process, or it ended meanwhile; -EPERM: we may not read it. Non-logging.
 * live_stacks_fini() in any case.
 */
int live_stacks_take(struct live_stacks *s, const struct live_options *options,
		     struct profile *profile);
void live_stacks_fini(struct live_stacks *s);
