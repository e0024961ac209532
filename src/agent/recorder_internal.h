/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's state, shared by recorder.c (its life, the loop, process events) and
 * recorder_samples.c (what becomes of one sample). Nobody else includes this.
 */
#pragma once

#include "agent/census.h"
#include "agent/command.h"
#include "agent/kernel_side.h"
#include "agent/publisher.h"
#include "agent/raw_walk.h"
#include "agent/recorder.h"
#include "agent/replay_save.h"
#include "agent/resolver.h"

struct pending {
	uint64_t time_ns;
	uint32_t at, size; /* in batch.bytes */
};

/* Samples out of the ring. */
struct batch {
	VEC(uint8_t) bytes;
	VEC(struct pending) pending;
};

struct recorder {
	const struct recorder_options *options;
	struct recorder_stats stats;
	struct profile *profile;
	struct kernel_side *ks;
	struct side_band *side_band;
	struct side_events events;
	struct process_table processes;
	struct unwind_store store;
	struct publisher publisher;
	struct resolver resolver;
	struct census census;
	struct command *command;
	struct walk *walk;
	struct replay_save *replay;
	struct map
		stacks; /* hash of a kernel-walked stack -> generation << 32 | profile's number */
	struct map virtuals;   /* hash of one of a virtual thread -> its name, in the profile */
	struct map targets;    /* live processes that are recorded, if there is a choice */
	struct map refreshed;  /* pid -> when its maps were read again last */
	struct batch batch;    /* the turn's samples */
	size_t event_at;       /* the next of the turn's events */
	struct batch next;     /* those that came while a table was built */
	size_t next_looked_at; /* so many of these */
	VEC(int32_t) changed;  /* processes to show anew at the end of the turn */
	uint64_t start_ns, profile_bytes_max, batch_bytes_max;
	bool keep_events; /* as long as there is room for them */
	uint64_t run_ns;
	uint64_t turn_ns;   /* when the last turn was */
	uint64_t rss_at_ns; /* when stats.rss_kb was read */
	int epoll_fd, timer_fd, signal_fd;
	int live_timer_fd; /* for options->live */
	uint32_t live_generation;
	int soon_fd;		    /* a timer: process events wait */
	uint64_t nr_raw[STOP_MAX_]; /* by why the kernel could not walk them */
	unsigned int interrupted;   /* by the terminal, while COMMAND ran */
	bool forget_stacks; /* hits came for a stack that is not kept: the kernel shall forget */
	bool met_raw;	    /* in this turn */
	bool said_busy;
	bool events_lost;  /* exits of targets may have been among them */
	bool command_runs; /* until its exec it is our own child, with our name */
	bool stopping;
};

/* Takes one record of the ring into the profile, as of the process events that were applied so far.
 */
void recorder_on_sample(struct recorder *r, const uint8_t *record, size_t size);
