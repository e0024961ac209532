/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: loads the BPF programs, samples, fills a profile, and names its frames. It may go
 * on for months: the profile is cut (profile/profile.h) as often as its owner likes, and what no
 * cut had for long is forgotten.
 *
 *	recorder_open -> recorder_add_target ... -> recorder_start
 *	  -> recorder_step whenever recorder_fd can be read
 *	       -> recorder_name, read the profile, recorder_next_cut
 *	  -> recorder_stop -> recorder_name_all -> recorder_free
 *
 * It knows nothing of terminals, signals, commands, nor of when to end: record/recording.h does.
 * One thread.
 */
#pragma once

#include "kernel/source.h"
#include "profile/profile.h"
#include "record/selection.h"
#include "symbolize/symbolizer.h"
#include "unwinder/walk_observer.h"

/* What came of samples of one type of the profile. */
struct recorder_type_stats {
	uint64_t samples; /* delivered */
	uint64_t complete;
	uint64_t limited, rejected; /* not taken: more than the rate; of processes not selected */
	uint64_t lost[LOST_MAX_];   /* by enum lost_reason: samples and sleeps of it */
};

struct recorder_stats {
	uint64_t samples;	       /* delivered, of the clock */
	uint64_t complete;	       /* of these, with a complete stack */
	uint64_t truncated[STOP_MAX_]; /* by enum stop_reason */
	uint64_t lost[LOST_MAX_];      /* by enum lost_reason */
	uint64_t frames;	       /* in all samples */
	uint64_t own;		       /* of samples: of sonde itself (record/own.h) */
	uint64_t others;	       /* delivered, of other sources; nothing above counts them */
	uint64_t limited;	       /* of these sources, not taken: more than their rate */
	uint64_t left_out; /* taken, but not wanted: of idle CPUs, of a command before its exec */
	/* Of processes that are not selected: not taken; of these, those of other sources; taken,
	 * but the process had ended before it was known who it is. */
	uint64_t rejected, rejected_others, undecided;
	uint64_t reads_given_up;   /* of processes' memory, which did not come (process/memory.h) */
	uint64_t processes, files; /* in the profile; that are known */
	/* By kind of frame: files of runtimes whose version or build is not known. */
	uint64_t unknown_runtimes[FRAME_KIND_MAX_];
	double bpf_ns_per_sample; /* of our programs, by the kernel's statistics; 0 if not known */
	/* CPU time: of our programs in the kernel; of this process; of its children (util/child.h)
	 */
	uint64_t bpf_ns, own_ns, children_ns;
	uint64_t bpf_runs; /* of the sampling program; 0 if not known */
	uint64_t rss_kb, map_bytes;
	uint64_t kernel_walks[KERNEL_WALK_ENDS_];	     /* by enum kernel_walk_end */
	struct recorder_type_stats types[PROFILE_TYPES_MAX]; /* type 0 is the clocks' */
	uint64_t raw[STOP_MAX_]; /* walked by us, by why the kernel could not */
	double duration_s;
	uint32_t frequency_hz;
};

struct recorder_options {
	uint32_t frequency_hz;
	uint64_t memory_limit;
	uint64_t beside_bytes; /* of the limit: what the recorder's owner takes */
	uint32_t max_frames;
	bool targets_only;	   /* sample the targets alone, else the whole system */
	const uint64_t *only_cpus; /* see struct bpf_sampler_options; borrowed */
	bool no_kernel;
	bool idle; /* sample idle CPUs too */
	bool no_kernel_threads;
	const char *variables; /* of processes' environments, kept: names with commas; or NULL */
	bool each_program;     /* see struct metadata */
	bool memory_at_end;    /* stats.rss_kb and map_bytes are told when it has stopped, only */
	bool keep_events; /* profile.events: the time and CPU of each sample, while there is room */
	struct symbolizer_options symbolizer;
	char *const *file_copier;   /* argv of a program that is file_copy_child_main(), or NULL */
	char *const *memory_reader; /* the same for memory_child_main(); NULL: fork */
	char *const *table_builder; /* argv of a program that is loader_child_main(); NULL: fork */
	char *const *walker_loader; /* the same for walkers_child_main() */
	const struct sample_observer *observer; /* borrowed, or NULL; costs a raw record a sample */
	enum kernel_frames kernel_frames;
	bool measure; /* for benchmarks: BPF's map `times` tells how long each sample took */
	const struct selection *selection; /* is copied; NULL or empty: all processes */
	bool may_select;		   /* recorder_select() may bring one */
	const struct source_spec *sources; /* see struct bpf_sampler_options */
	size_t nr_sources;
};

struct recorder;

/* Loads what is needed; nothing is sampled yet. Borrows both. Logging. */
int recorder_open(const struct recorder_options *options, struct profile *profile,
		  struct recorder **ret);
void recorder_free(struct recorder *r);
static inline void recorder_free_p(struct recorder **r)
{
	recorder_free(*r);
}

/*
 * Samples this process, all its threads, and children that it forks from now on. -ESRCH: there is
 * none, or it has ended. Logging, but for that.
 */
int recorder_add_target(struct recorder *r, int32_t pid);
/* Adds a process that is about to execute what is to be recorded: it counts from its next
 * exec on. */
int recorder_add_target_of_exec(struct recorder *r, int32_t pid);
/* Runtimes (bit N: runtime N) that are likely to have samples at once: what they need is waited for
 * by recorder_start(). Those of processes that run need not be told. */
void recorder_expect_runtimes(struct recorder *r, uint32_t ids);
/* How many of them live, with their children. */
size_t recorder_nr_targets(const struct recorder *r);

/*
 * Begins to sample. What runs already and is likely to need it is looked at first: the targets;
 * else programs of runtimes, for a second at most. Meanwhile `go_on` is called often; false: begin
 * without the rest. *ret_left: how many processes were not looked at. Logging.
 */
int recorder_start(struct recorder *r, bool (*go_on)(void *ctx), void *ctx, size_t *ret_left);
/*
 * While it samples: from now on so often, or as before, and the error. A profile has one frequency:
 * the caller reads the cut before, and begins the next one behind it.
 */
int recorder_set_frequency(struct recorder *r, uint32_t frequency_hz);
/*
 * No samples of clocks and perf's events until it is called again with false; of probes,
 * tracepoints and sleeps they go on. Also before the start. The first error: not so everywhere.
 */
int recorder_pause(struct recorder *r, bool paused);
/*
 * From now on these processes. -EINVAL: there was no selection when it was opened, nor was it said
 * that one might come (may_select).
 */
int recorder_select(struct recorder *r, const struct selection *selection);
/* No further samples; those that were taken are in the profile. */
void recorder_stop(struct recorder *r);

/* Can be read when recorder_step() has something to do; about once a second at least. */
int recorder_fd(const struct recorder *r);
/*
 * Takes in what has happened; never waits. What fails in it is lost and counted, and the next step
 * goes on.
 */
void recorder_step(struct recorder *r);

/* Up to now. Valid until the next call. */
const struct recorder_stats *recorder_stats(struct recorder *r);

/*
 * Names the frames whose symbols are there by now, and tells the cut how long it is. With
 * each_program there may be a turn first: the cut may have more samples afterwards.
 */
void recorder_name(struct recorder *r);
/* Waits for what is missing (symbolizer_options.progress); 0 or -ENOMEM. */
int recorder_name_all(struct recorder *r);
/* The profile's next cut begins: its counts are forgotten, what it knows stays. */
void recorder_next_cut(struct recorder *r);
