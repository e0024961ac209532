/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording has to say about itself: for people on stderr, for programs as JSON. */
#pragma once

#include "record/recorder.h"

#include <stdio.h>

/* "ring_full" and its sentence; "unknown" for a number that no reason has. */
const char *lost_name(enum lost_reason reason);
const char *lost_sentence(enum lost_reason reason);

/* Samples that were taken and did not make it into the profile. */
uint64_t stats_lost_samples(const struct recorder_stats *stats);
/* Files of runtimes of a version or a build that is not known. */
uint64_t stats_unknown_runtimes(const struct recorder_stats *stats);
/* Percent of the samples that are complete; 100 if there are none. */
double stats_complete_percent(const struct recorder_stats *stats);

/*
 * One JSON object and a newline. Keys: samples, complete, truncated, lost (objects by reason's
 * name; only reasons that occurred), own, frames, processes, files, bpf_ns_per_sample, rss_kb,
 * map_bytes, duration_s, frequency_hz. The caller checks ferror().
 */
void stats_write_json(const struct recorder_stats *stats, FILE *out);
/* How busy the CPUs were beside sonde itself, by the samples of a recording of the whole machine
 * without idle CPUs. */
double stats_busy_percent(const struct recorder_stats *stats, long nr_cpus);
/* CPU time of sonde itself, with its children. */
static inline uint64_t stats_own_ns(const struct recorder_stats *stats)
{
	return stats->own_ns + stats->children_ns;
}
/* The line that says so if there was not much: whose the samples are, and how to get others. */
void stats_print_idle(const struct recorder_stats *stats, long nr_cpus, FILE *out);
/* The summary: two lines, and one for each reason that occurred. */
void stats_print_summary(const struct recorder_stats *stats, FILE *out);
/* The progress line's text, no newline; as much as fits. */
void stats_format_progress(const struct recorder_stats *stats, char *buf, size_t size);
