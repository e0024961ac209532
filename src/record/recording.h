/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording for somebody who waits for it, from its start to its end: which processes, or a
 * command that is run for it; how long; signals; progress. The recorder does the rest.
 */
#pragma once

#include "record/recorder.h"

/* What the caller of a live recording wants next. */
enum recording_live {
	RECORDING_GO_ON = 0,
	RECORDING_STOP = 1,
	RECORDING_CUT = 2, /* the profile begins its next cut */
};

struct recording_options {
	/* targets_only is by what follows. */
	struct recorder_options recorder;
	const int32_t *pids; /* with their threads and later children; none: the whole system */
	size_t nr_pids;
	char *const *command; /* NULL, or argv of the program to run and record */
	bool whole;	      /* with a command: the whole system as long as it runs */
	double duration_s;    /* 0: until SIGINT or SIGTERM, or the command's end */
	/* Called about four times a second with what there is so far; may be NULL. */
	void (*progress)(void *ctx, const struct recorder_stats *stats);
	void *progress_ctx;
	/*
	 * A recording that is watched: called every live_ms, and as soon as live_fd (-1: none) can
	 * be read, with the profile's cut so far, named as far as symbols are there. The recording
	 * ends when live_fd hangs up; SIGHUP and SIGQUIT end it in order, too. NULL: nobody
	 * watches.
	 */
	enum recording_live (*live)(void *ctx, const struct profile *profile,
				    const struct recorder_stats *stats);
	void *live_ctx;
	uint32_t live_ms;
	int live_fd;
};

/*
 * Logging. 0 with the profile filled and named, and *ret_command_status the command's wait status
 * (or 0); negative errno if the recording could not start (the reason has been printed), -ENOENT
 * for a COMMAND that is not found.
 */
int recording_run(const struct recording_options *options, struct profile *profile,
		  struct recorder_stats *ret_stats, int *ret_command_status);
