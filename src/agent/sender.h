/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings reports out, in a thread of its own: into a folder, or to a collector. What waits is
 * bounded in bytes: the oldest go first, and are counted. With a spool it is on the disk, and what
 * is not delivered when the agent ends, however that is, is the next agent's. docs/agent.md,
 * "Delivery".
 */
#pragma once

#include "agent/output_dir.h"
#include "agent/report.h"
#include "net/client.h"

/* For what still waits when the agent ends, since it was told to; but the least in any case. */
#define SENDER_END_NS	    UINT64_C(4200000000)
#define SENDER_END_LEAST_NS UINT64_C(500000000)

struct sender_options {
	const char *output_dir; /* or NULL: to the collector */
	uint64_t output_dir_bytes;
	enum report_format output_format; /* of the reports there */
	struct net_options collector;	  /* wake_fd and stop_ns are the sender's */
	bool no_gzip;			  /* requests to the collector go unpacked */
	const char *spool_dir;		  /* or NULL: what waits is in memory only */
	uint64_t spool_bytes;
	const char *place; /* how messages call it */
	uint64_t queue_bytes;
	double timeout_s; /* of one request */
	double retry_s;	  /* the first pause; each further one is twice as long, up to 30 of it */
	bool keep_privileges; /* else the thread gives up what it has no need of */
};

struct sender_spool_stats {
	bool is_there;
	uint64_t files, bytes;		       /* there now */
	uint64_t found_reports, found_samples; /* of an agent before this one */
	uint64_t corrupt;		       /* files that were no reports */
	uint64_t failed_writes;
	uint64_t failed_removes; /* of what is delivered, and may be sent again by the next agent */
};

struct sender_stats {
	uint64_t reports, bytes, samples;	   /* that were delivered */
	uint64_t failed_reports, failed_samples;   /* could not be written, or were refused */
	uint64_t dropped_reports, dropped_samples; /* for want of room, or of time at the end */
	uint64_t retries;
	uint64_t rejected_profiles; /* of what was delivered, by partial success */
	uint64_t waiting_reports, waiting_bytes;
	struct output_dir_stats output;
	struct sender_spool_stats spool;
};

struct sender;

/* *options is borrowed. Logging. The thread has the caller's mask of signals. */
int sender_open(const struct sender_options *options, struct sender **ret);
/* Somebody's options are used no more; called by either thread. */
typedef void sender_release_fn(const struct sender_options *options);
/*
 * From the next request on: another collector, or other limits; what waits goes there. It is tried
 * at once. Not from a folder to a collector, nor to another folder. *options is borrowed until
 * `release` is called. 0; or why there is no client for it, and all stays as it was. Logging.
 */
int sender_change(struct sender *s, const struct sender_options *options,
		  sender_release_fn *release);
/* Takes what is in *report. Never waits. */
void sender_put(struct sender *s, struct report *report);
struct sender_stats sender_stats(struct sender *s);
/*
 * Delivers what waits, up to SENDER_END_NS after `told_ns` (CLOCK_MONOTONIC), when the agent was
 * told to end; nothing can be put after that. 0, or why something of it was lost; what stays in the
 * spool is not. A thread that hangs (the system's resolver has no limit) is not waited for: what it
 * had goes into the spool, or is counted. Logging.
 */
int sender_end(struct sender *s, uint64_t told_ns);
/*
 * After sender_end(), or without it: then what waits is lost. False: its thread hangs, and uses
 * the options until the process ends.
 */
bool sender_free(struct sender *s);
static inline void sender_free_p(struct sender **s)
{
	sender_free(*s);
}
