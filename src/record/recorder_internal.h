/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's state, shared by recorder.c (its life), recorder_pace.c (when it runs),
 * recorder_turn.c (what happened since the last turn) and recorder_samples.c (what becomes of one
 * sample). Nobody else includes this.
 */
#pragma once

#include "record/batch.h"
#include "record/cut_clock.h"
#include "record/metadata.h"
#include "kernel/bpf_sampler.h"
#include "record/known_stacks.h"
#include "record/process_contexts.h"
#include "unwinder/raw_walk.h"
#include "unwinder/unwinder.h"
#include "record/own.h"
#include "record/recorder.h"
#include "record/waker.h"
#include "symbolize/decoder.h"

enum {
	RECORDER_RING_BYTES = 4 << 20, /* 64 raw records of full size, or 58,000 hits */
	/* With less --memory-limit, 6 MB for rows of the kernel's code would be missing elsewhere.
	 */
	KERNEL_ROWS_LIMIT = 48 << 20,
};

/* Names that were put off: pace_names_due(). */
struct name_retry {
	uint64_t seen;	/* so many are asked for again */
	uint64_t at_ns; /* when they are, or were last */
	uint64_t pause_ns;
	bool waits;
};

struct recorder {
	struct recorder_options options;
	struct recorder_stats stats;
	struct profile *profile;
	/* The profile's, of each source's samples; of wake-ups, which are the last source and have
	 * none: that of the sleeps. */
	uint32_t types[SAMPLE_SOURCES_MAX];
	double sleep_scale; /* for how many times its time each sleep stands */
	struct bpf_sampler *sampler;
	struct cpu_set *cpus;
	struct side_band *side_band;
	struct side_events events;
	struct unwinder unwinder;
	struct decoder decoder;
	struct metadata metadata;
	struct process_contexts contexts;
	struct walk *walk;
	const struct sample_observer *observer; /* or NULL */
	struct selection selection;
	bool had_facts; /* some selection, so that the kernel may have facts of processes */
	/* By source: since what they are was found out by us. */
	uint64_t rejected_here[SAMPLE_SOURCES_MAX];
	uint64_t lost_here[SAMPLE_SOURCES_MAX][LOST_MAX_]; /* by us; others in the kernel */
	struct map at_exec; /* pid -> enum select_verdict, as of its last exec: if it has ended */
	/* The process that was decided last, and in which turn; 0: none. */
	uint32_t decided_pid;
	enum select_verdict decided;
	uint64_t decided_ns;
	uint64_t decided_met_ns; /* it was somebody else before; 0: not known */
	struct known_stacks known;
	struct waker_frames waker_frames; /* where stacks are joined */
	struct own own;
	struct map targets;	    /* live processes that are recorded, if there is a choice */
	struct map refreshed;	    /* pid -> when its maps were read again last */
	struct batch batches[2];    /* each with 16 KB of places */
	struct batch *batch;	    /* the turn's samples */
	size_t event_at;	    /* the next of the turn's events */
	struct batch *next;	    /* those that came while a table was built */
	size_t next_looked_at;	    /* so many of these */
	VEC(int32_t) changed;	    /* processes to show anew at the end of the turn */
	uint64_t start_ns;	    /* of the recording */
	struct cut_clock cut_clock; /* of the profile's cut */
	uint64_t profile_bytes_max, batch_bytes_max;
	uint64_t pruned_bytes;	  /* the profile's, when it was pruned in this cut; 0: it was not */
	bool list_code;		  /* of the kernel: modules or BPF programs came or went */
	uint64_t list_code_at_ns; /* not before */
	bool keep_events;	  /* as long as there is room for them */
	uint64_t run_ns, start_cpu_ns, start_children_ns;
	size_t kernel_map_bytes; /* when rss_at_ns was */
	size_t walker_bytes;	 /* that were taken off what is shared out */
	enum {
		LENT_NOTHING,
		LENT_TO_TABLES,	 /* budget_lend() */
		LENT_TO_PROFILE, /* budget_lend_to_profile() of lent_arena_free */
	} lent;
	size_t lent_arena_free;
	uint64_t turn_ns;	/* when the last turn was */
	uint64_t turn_next_ns;	/* not before */
	uint64_t read_again_ns; /* that it took since, since news were lost */
	uint64_t rss_at_ns;	/* when stats.rss_kb was read */
	int epoll_fd, timer_fd;
	uint64_t collect_at_ns; /* when the profile is to be collected; 0: it is not ... */
	uint32_t collect_since; /* ... from this cut on */
	/* Until when hits may come for stacks that found no room; UINT64_MAX: there is none yet. */
	uint64_t refused_until_ns;
	int soon_fd; /* a timer: samples that were put back wait, or process events */
	bool deaf;   /* process events do not wake us */
	uint64_t pause_ms, pause_end_ns; /* for so long, until then */
	uint64_t nr_events;		 /* since it began */
	bool events_matter;		 /* some of these, or may: pace_events_ms() */
	bool active;			 /* something was sampled or happened since the last tick */
	bool ticks_slowly;
	uint64_t tick_due_ns; /* the next tick, by timer_fd */
	uint64_t expire_at_ns;
	int due_fd; /* a timer: runtimes are to be looked at, at due_ns */
	uint64_t due_ns;
	uint32_t expected_runtimes; /* recorder_expect_runtimes() */
	int32_t awaits_exec;	    /* a target that counts from its exec on: 0: none */
	bool has_pruned;	    /* since the kernel was last told to send each stack anew */
	struct map to_ask; /* hashes of stacks that the kernel shall send in full once more */
	struct name_retry unnamed;
	bool met_raw;	    /* in this turn */
	bool said_missing;  /* that a CPU is not sampled */
	bool said_given_up; /* that memory does not come */
	bool events_lost;   /* exits of targets may have been among them */
	bool stopped;
};

/* One turn of what has happened. */
void recorder_turn(struct recorder *r);
/* Keeps what is in the ring for the next turn. */
void recorder_drain(void *ctx);
/* Counts what was lost here, of a source. */
void recorder_lose(struct recorder *r, uint8_t source, enum lost_reason reason, uint64_t nr);
/* The process is to be shown anew at the end of the turn. */
void recorder_mark_changed(struct recorder *r, int32_t pid);
/* While a table is waited for, within a turn; false: it must not be any longer. */
bool recorder_drain_meanwhile(void *ctx);
/* Takes one record of the ring into the profile, as of the process events that were applied so far.
 */
void recorder_on_sample(struct recorder *r, const uint8_t *record, size_t size);
/* The profile may take more, of what others have left; false: of nothing, or it was done. */
bool recorder_lend_to_profile(struct recorder *r);
/* Of a tick: makes room in a profile that is nearly full. */
void recorder_make_room(struct recorder *r, uint64_t now_ns);
/* And between two samples of a turn, when it is full. */
void recorder_make_room_at_once(struct recorder *r);
/* The kernel shall send that stack in full once more. */
void recorder_ask_again(struct recorder *r, uint64_t hash);
/* The kernel shall send each stack in full once more: some were dropped. */
void recorder_forget_stacks(struct recorder *r);

/* loop_set_timer(): without it there are fewer turns than there should be. */
void pace_set_timer(int fd, int flags, uint64_t ns);
/* In so many milliseconds there is a turn. */
void pace_wake_in(struct recorder *r, uint64_t ms);
/* Sets the timer of the next tick. */
void pace_set_tick(struct recorder *r);
/* Whether a turn at that time brings the tick with it that is to be at `due_ns`. */
bool pace_tick_is_due(uint64_t now_ns, uint64_t due_ns);
/*
 * How long after a pause of `pause_ms`, in which so many process events came, the next turn for
 * such events is to be; 0: with the first of them. `matter`: one was of something that is sampled.
 */
uint64_t pace_events_ms(uint64_t pause_ms, uint64_t nr_events, bool matter);
/* Of a turn that took in process events: no more of them for a while. */
void pace_after_turn(struct recorder *r);
/* There shall be no turn for so long. */
void pace_pause(struct recorder *r, uint64_t ms);
/* The time of pace_wake_in() has come, and there was a turn. */
void pace_after_pause(struct recorder *r);
/* There was a turn, and a tick: before the next one is set. */
void pace_end_pause_with_tick(struct recorder *r);
/*
 * Is it time to ask once more for names that were put off? `nr`: how often that happened so far.
 * Three seconds after the first of them, then six, up to a minute, since each of their stacks comes
 * anew for that. A minute without any: as at first.
 */
bool pace_names_due(struct name_retry *n, uint64_t nr, uint64_t now);
