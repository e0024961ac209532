/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: a recorder that goes on until it is told to end, and reports what it saw every few
 * seconds. SIGTERM and SIGINT (and SIGQUIT) end it, after a last report; SIGHUP: what may change
 * is read again; SIGUSR1 asks for its state. One thread, one loop; reports are brought out by a
 * second thread (agent/sender.h).
 */
#pragma once

#include "agent/probability.h"
#include "agent/sandbox.h"
#include "agent/sender.h"
#include "record/recorder.h"

struct agent_stats {
	struct sender_stats sender;
	uint64_t unmade_reports, unmade_samples; /* for want of memory */
	uint64_t nameless;     /* samples in requests that have no names of functions */
	uint64_t oversized;    /* requests: of one time or value whose stack alone is too large */
	uint64_t cuts;	       /* that were reported */
	uint64_t untimed_cuts; /* of these, without room for the times of samples */
	bool profiling;	       /* 0: this interval was not chosen */
	uint64_t intervals[2]; /* that were drawn: not chosen, chosen */
	/* By enum frame_kind: samples of the clock in these with such a frame; these frames. */
	uint64_t kind_samples[FRAME_KIND_MAX_], kind_frames[FRAME_KIND_MAX_];
};

struct agent_options {
	struct recorder_options recorder; /* keep_events is set */
	double interval_s;		  /* between two reports ... */
	double jitter; /* ... give or take this part of it, so that hosts do not report together */
	struct probability_options probability; /* as it was at the start */
	/* Of all processes that say nothing else of themselves; NULL: none. */
	const char *service, *attributes; /* util/pairs.h */
	struct report_options report;
	struct sender_options sender;
	const char *metrics_listen; /* where /metrics is answered (net/http_server.h); NULL: not */
	enum sandbox_mode sandbox;
	bool verbose;
	/*
	 * SIGHUP: *ret is what counts from now on, as far as it can: frequency, intervals, how
	 * reports go out, what is said of all processes. It is borrowed until `release` is called,
	 * with its `sender`, by any thread. Or why all stays as it is. Logging. NULL: SIGHUP ends
	 * the agent.
	 */
	int (*reload)(const struct agent_options *now, const struct agent_options **ret);
	sender_release_fn *release;
	/* Logs the state: at SIGUSR1 and at the end. */
	void (*tell)(const struct recorder_stats *stats, const struct agent_stats *agent);
};

/*
 * Logging. 0, or negative errno if it cannot begin or the last report is lost. *ret_in_use: a
 * thread hangs, and uses *options, and what `reload` gave, until the process ends.
 */
int agent_run(const struct agent_options *options, bool *ret_in_use);
