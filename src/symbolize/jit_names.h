/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code in anonymous memory, out of the perf maps that JITs write (symbol/perf_map.h), for
 * frames of the profile that wait for one.
 *
 * A map is as large as its process likes, and may have no name for what was sampled: each process
 * has its search, a piece of each is made in turn, for a twentieth of the time at most, and what
 * all of it takes has a cap. What a process has no name for when it has ended is waited for no
 * more. Each user has a share of what is capped, however many processes: see util/owners.h.
 */
#pragma once

#include "process/process.h"
#include "profile/collect.h"

enum {
	/* Frames that wait; the process that has most of them gives way, the one of a user who has
	 * most of all. */
	JIT_FRAMES_MAX = 65536,
	JIT_PROCESSES_MAX = 1024,
	/* Bytes of names, of a process and of all; a user may have as many as are left for others.
	 * Twenty thousand functions are about a megabyte. */
	JIT_PROCESS_NAMES_MAX = 2 << 20,
	JIT_NAMES_MAX = 8 << 20,
};

#define JIT_OWNER_UNKNOWN UINT32_MAX

struct perf_search;

struct jit_frames {
	VEC(uint32_t) items; /* frames of the profile */
};

struct jit_process {
	uint32_t pid;
	uint64_t image; /* of struct process; 0: not known */
	uint32_t owner; /* its user, JIT_OWNER_UNKNOWN if it was gone */
	struct jit_frames waiting;
	struct jit_frames searched; /* by `search`, or none */
	struct perf_search *search;
	bool ended;	   /* nothing more will come into its map */
	bool no_map;	   /* it had none at the last look */
	bool looked;	   /* for all that wait */
	bool holds;	   /* `search` goes on: its map is open */
	uint64_t next_ns;  /* CLOCK_MONOTONIC: not looked at before, while it runs */
	uint64_t pause_ns; /* after the last look; 0: that found names */
	size_t name_bytes;
};

struct jit_names {
	struct profile *profile;	       /* borrowed */
	const struct process_table *processes; /* borrowed */
	VEC(struct jit_process) waiting;       /* processes */
	struct map by_pid;		       /* -> index in `waiting` */
	struct map nr_of_owner;		       /* processes */
	struct map bytes_of_owner;	       /* of names */
	size_t nr_frames, next, name_bytes, nr_open;
	uint64_t at_ns;	     /* CLOCK_MONOTONIC: when to go on */
	uint64_t nr_dropped; /* frames that were not waited for */
};

void jit_names_init(struct jit_names *j, struct profile *profile,
		    const struct process_table *processes);
void jit_names_fini(struct jit_names *j);
/* The profile was collected. */
void jit_names_collected(struct jit_names *j, const struct profile_collected *c);
/* A frame of the profile, new, that wants a name. 0 or -ENOMEM. */
int jit_names_want(struct jit_names *j, uint32_t pid, uint32_t frame);
/*
 * Goes on for some milliseconds, seldom enough: call it often, while the processes live. A process
 * without a map, or whose map has none of the names, is looked at ever more seldom.
 */
void jit_names_tick(struct jit_names *j);
/* Looks once for all that wait, for `max_ns` at most. How many frames were not looked for. */
size_t jit_names_finish(struct jit_names *j, uint64_t max_ns);
