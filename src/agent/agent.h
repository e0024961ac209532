/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: a recorder that goes on until it is told to end, and reports what it saw every few
 * seconds. SIGTERM and SIGINT (and SIGHUP, SIGQUIT) end it, after a last report; SIGUSR1 asks for
 * its state. One thread, one loop.
 */
#pragma once

#include "agent/output_dir.h"
#include "record/recorder.h"

struct agent_stats {
	uint64_t reports, bytes, samples; /* that were delivered */
	uint64_t failed_reports, failed_samples;
	struct output_dir_stats output;
};

struct agent_options {
	struct recorder_options recorder; /* keep_events is set */
	double interval_s;		  /* between two reports ... */
	double jitter; /* ... give or take this part of it, so that hosts do not report together */
	const char *output_dir;
	uint64_t output_dir_bytes;
	/* Logs the state: at SIGUSR1 and at the end. */
	void (*tell)(const struct recorder_stats *stats, const struct agent_stats *agent);
};

/* Logging. 0, or negative errno if it cannot begin or the last report is lost. */
int agent_run(const struct agent_options *options);
