/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording: loads the BPF programs, samples, fills a profile, names its frames.
 */
#pragma once

#include "agent/naming.h"
#include "profile/profile.h"

struct recorder_stats {
	uint64_t samples;	       /* delivered */
	uint64_t complete;	       /* of these, with a complete stack */
	uint64_t truncated[STOP_MAX_]; /* by enum stop_reason */
	uint64_t lost[LOST_MAX_];      /* by enum lost_reason */
	uint64_t frames;	       /* in all samples */
	uint64_t processes, files;     /* sampled */
	double bpf_ns_per_sample; /* of our programs, by the kernel's statistics; 0 if not known */
	uint64_t rss_kb, map_bytes;
	double duration_s;
	uint32_t frequency_hz;
	uint64_t replay_compared, replay_different; /* walks, with replay_dir */
	bool profile_full; /* of a live recording: the profile is emptied when `live` returns */
};

/* What the caller of a live recording wants next. */
enum recorder_live {
	RECORDER_GO_ON = 0,
	RECORDER_STOP = 1,
};

struct recorder_options {
	const int32_t *pids; /* with their threads and later children; none: the whole system */
	size_t nr_pids;
	char *const *command; /* NULL, or argv of the program to run and record */
	uint32_t frequency_hz;
	double duration_s; /* 0: until SIGINT or SIGTERM, or the command's end */
	uint64_t memory_limit;
	uint32_t max_frames;
	bool no_kernel;
	bool idle;	  /* sample idle CPUs too */
	bool keep_events; /* profile.events: the time and CPU of each sample, while there is room */
	/* Called about four times a second with what there is so far; may be NULL. */
	void (*progress)(void *ctx, const struct recorder_stats *stats);
	void *progress_ctx;
	struct naming_options naming;
	/*
	 * A recording that is watched: called every live_ms, and as soon as live_fd (-1: none) can
	 * be read, with the profile so far, named as far as symbols are there. When the profile's
	 * memory runs short, it is emptied after a call that says so (stats->profile_full), and
	 * `generation` moves on. The recording ends when live_fd hangs up; SIGHUP and SIGQUIT end
	 * it in order, too. NULL: nobody watches.
	 */
	enum recorder_live (*live)(void *ctx, const struct profile *profile,
				   const struct recorder_stats *stats, uint32_t generation);
	void *live_ctx;
	uint32_t live_ms;
	int live_fd;
	/* For tests: keep a replay case of up to `max_replay_cases` walked samples in this folder.
	 */
	const char *replay_dir;
	uint32_t max_replay_cases;
};

/*
 * Logging. 0 with the profile filled and named, and *ret_command_status the command's wait status
 * (or 0); negative errno if the recording could not start (the reason has been printed), -ENOENT
 * for a COMMAND that is not found.
 */
int recorder_run(const struct recorder_options *options, struct profile *profile,
		 struct recorder_stats *ret_stats, int *ret_command_status);
