// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include "util/child.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LOST(name, NAME, id, sentence) [id] = { #name, sentence },
static const struct {
	const char *name, *sentence;
} lost_reasons[LOST_MAX_] = {
#include "abi/lost_reasons.def"
};
#undef LOST

static const char *const kernel_walk_ends[KERNEL_WALK_ENDS_] = {
	[KERNEL_WALK_WHOLE] = "whole",
	[KERNEL_WALK_NO_CODE] = "no_code",
	[KERNEL_WALK_NO_RULE] = "no_rule",
	[KERNEL_WALK_UNREADABLE] = "unreadable",
	[KERNEL_WALK_OUT_OF_ORDER] = "out_of_order",
};

/* --- the format ------------------------------------------------------------------------------- */

static void begin_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Of names of ours: they have nothing to escape. */
static void labelled(FILE *out, const char *name, const char *label, const char *value, uint64_t nr)
{
	fprintf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, value, nr);
}

static void quoted(FILE *out, const char *value)
{
	fputc('"', out);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', out);
		if (*value == '\n')
			fputs("\\n", out);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

static void counter(FILE *out, const char *name, const char *help, uint64_t nr)
{
	begin_family(out, name, "counter", help);
	fprintf(out, "%s %" PRIu64 "\n", name, nr);
}

static void gauge(FILE *out, const char *name, const char *help, uint64_t nr)
{
	begin_family(out, name, "gauge", help);
	fprintf(out, "%s %" PRIu64 "\n", name, nr);
}

/* Whole microseconds: no locale has a say. */
static void seconds(FILE *out, const char *name, const char *help, uint64_t ns)
{
	begin_family(out, name, "counter", help);
	fprintf(out, "%s %" PRIu64 ".%06" PRIu64 "\n", name, ns / 1000000000,
		ns % 1000000000 / 1000);
}

/* --- what there is to tell -------------------------------------------------------------------- */

/* One source is the clocks, the others are called as the types of their samples. */
static void by_source(FILE *out, const struct metrics *m, const char *name, size_t offset)
{
	for (uint32_t i = 0; i < profile_nr_types(m->profile); i++) {
		const char *type = (const char *)&m->recorder->types[i];

		fprintf(out, "%s{source=", name);
		quoted(out, i ? profile_type_name(m->profile, i) : "clock");
		fprintf(out, "} %" PRIu64 "\n", *(const uint64_t *)(type + offset));
	}
}

static void write_sources(FILE *out, const struct metrics *m)
{
	static const char samples[] = "sonde_source_samples_total";

	begin_family(out, samples, "counter", "Samples that were taken, by what they are of.");
	by_source(out, m, samples, offsetof(struct recorder_type_stats, samples));
	begin_family(out, "sonde_source_samples_complete_total", "counter",
		     "Of these, with a complete stack.");
	by_source(out, m, "sonde_source_samples_complete_total",
		  offsetof(struct recorder_type_stats, complete));
	begin_family(out, "sonde_samples_limited_total", "counter",
		     "Samples of probes that were not taken: more than their rate.");
	by_source(out, m, "sonde_samples_limited_total",
		  offsetof(struct recorder_type_stats, limited));
	begin_family(out, "sonde_samples_rejected_total", "counter",
		     "Samples that were not taken: their processes are not selected.");
	by_source(out, m, "sonde_samples_rejected_total",
		  offsetof(struct recorder_type_stats, rejected));
}

/* How a reason's sentence begins: "samples: the ring buffer was full". */
static bool is_of(int reason, const char *what)
{
	size_t len = strlen(what);

	return lost_reasons[reason].name && !strncmp(lost_reasons[reason].sentence, what, len) &&
	       lost_reasons[reason].sentence[len] == ':';
}

/* What is of no source (forks, tables of files) is not here. */
static void write_lost_of_sources(FILE *out, const struct metrics *m)
{
	static const char name[] = "sonde_source_lost_total";

	begin_family(out, name, "counter",
		     "What was lost of samples, and of sleeps, by what they are of and why.");
	for (uint32_t type = 0; type < profile_nr_types(m->profile); type++) {
		for (int i = 0; i < LOST_MAX_; i++) {
			uint64_t nr = m->recorder->types[type].lost[i];

			if (!is_of(i, "samples") && !(is_of(i, "sleeps") && nr))
				continue;
			fprintf(out, "%s{source=", name);
			quoted(out, type ? profile_type_name(m->profile, type) : "clock");
			fprintf(out, ",reason=\"%s\"} %" PRIu64 "\n", lost_reasons[i].name, nr);
		}
	}
}

static void write_samples(FILE *out, const struct recorder_stats *s)
{
	static const char truncated[] = "sonde_samples_truncated_total";

	counter(out, "sonde_samples_total", "Samples of the CPU clocks that were taken.",
		s->samples);
	counter(out, "sonde_samples_complete_total", "Of these, with a complete stack.",
		s->complete);
	begin_family(out, truncated, "counter", "Of these, with a stack that was cut, by why.");
	for (int i = 0; i < STOP_MAX_; i++)
		if (i != STOP_NONE && i != STOP_COMPLETE && strcmp(profile_stop_name(i), "unknown"))
			labelled(out, truncated, "reason", profile_stop_name(i), s->truncated[i]);
	counter(out, "sonde_samples_other_total",
		"Samples of other sources, of sleeps for example.", s->others);
	counter(out, "sonde_memory_reads_given_up_total",
		"Reads of a process's memory that waited for a file's server, which did not "
		"answer.",
		s->reads_given_up);
	counter(out, "sonde_samples_left_out_total",
		"Samples that were taken and not wanted, of idle CPUs for example.", s->left_out);
	counter(out, "sonde_samples_undecided_total",
		"Samples of processes that ended before it was known if they are selected.",
		s->undecided);
	counter(out, "sonde_frames_total", "Frames of all samples.", s->frames);
}

/* Each costs some microseconds of ours, and a copy of a stack. */
static void write_raw(FILE *out, const struct recorder_stats *s)
{
	static const char name[] = "sonde_raw_samples_total";

	begin_family(out, name, "counter",
		     "Samples that the agent walked, by why the kernel could not.");
	for (int i = 0; i < STOP_MAX_; i++)
		if (i != STOP_NONE && strcmp(profile_stop_name(i), "unknown"))
			labelled(out, name, "reason", profile_stop_name(i), s->raw[i]);
}

static void write_lost(FILE *out, const struct recorder_stats *s)
{
	begin_family(out, "sonde_lost_total", "counter",
		     "What was lost or is less than it should be: what, and why.");
	for (int i = 0; i < LOST_MAX_; i++)
		if (lost_reasons[i].name)
			fprintf(out, "sonde_lost_total{what=\"%.*s\",reason=\"%s\"} %" PRIu64 "\n",
				(int)strcspn(lost_reasons[i].sentence, ":"),
				lost_reasons[i].sentence, lost_reasons[i].name, s->lost[i]);
	begin_family(out, "sonde_kernel_walks_total", "counter",
		     "Walks of the kernel's stacks by its own unwind tables, by how they ended.");
	for (int i = 0; i < KERNEL_WALK_ENDS_; i++)
		if (kernel_walk_ends[i])
			labelled(out, "sonde_kernel_walks_total", "end", kernel_walk_ends[i],
				 s->kernel_walks[i]);
}

/* NULL: it is nobody's. */
static const char *kind_name(unsigned kind)
{
	return kind == FRAME_KIND_KERNEL   ? "kernel"
	       : kind == FRAME_KIND_NATIVE ? "native"
					   : profile_runtime_name(kind);
}

static void write_kinds(FILE *out, const char *name, const char *help, const uint64_t *counts)
{
	begin_family(out, name, "counter", help);
	for (unsigned kind = 0; kind < FRAME_KIND_MAX_; kind++)
		if (kind_name(kind))
			labelled(out, name, "runtime", kind_name(kind), counts[kind]);
}

static void write_reports(FILE *out, const struct agent_stats *a)
{
	static const char reports[] = "sonde_exports_total",
			  samples[] = "sonde_export_samples_total";
	const struct sender_stats *s = &a->sender;

	begin_family(out, reports, "counter", "Requests (or files), by what became of them.");
	labelled(out, reports, "result", "delivered", s->reports);
	labelled(out, reports, "result", "failed", s->failed_reports);
	labelled(out, reports, "result", "dropped", s->dropped_reports);
	labelled(out, reports, "result", "unmade", a->unmade_reports);
	begin_family(out, samples, "counter", "Samples in them.");
	labelled(out, samples, "result", "delivered", s->samples);
	labelled(out, samples, "result", "failed", s->failed_samples);
	labelled(out, samples, "result", "dropped", s->dropped_samples);
	labelled(out, samples, "result", "unmade", a->unmade_samples);
	counter(out, "sonde_export_nameless_samples_total",
		"Samples in requests without names of functions: a user's had more than his share.",
		a->nameless);
	counter(out, "sonde_export_oversized_total",
		"Requests larger than --otlp-request-size: a stack cannot be parted.",
		a->oversized);
	counter(out, "sonde_export_bytes_total", "Bytes of requests that were delivered, packed.",
		s->bytes);
	counter(out, "sonde_export_retries_total", "Tries that failed, and are made again.",
		s->retries);
	counter(out, "sonde_export_rejected_profiles_total",
		"Profiles that the collector did not take of requests that it took.",
		s->rejected_profiles);
	gauge(out, "sonde_queue_requests", "Requests that wait to be delivered.",
	      s->waiting_reports);
	gauge(out, "sonde_queue_bytes", "Bytes of these.", s->waiting_bytes);
	gauge(out, "sonde_output_dir_files", "Files in --output-dir.", s->output.files);
	gauge(out, "sonde_output_dir_bytes", "Bytes of these.", s->output.bytes);
	counter(out, "sonde_output_dir_removed_total", "Files that were removed to make room.",
		s->output.removed);
}

/* Without a spool all are 0. */
static void write_spool(FILE *out, const struct sender_spool_stats *s)
{
	gauge(out, "sonde_spool_files", "Reports in --spool.", s->files);
	gauge(out, "sonde_spool_bytes", "Bytes of these.", s->bytes);
	counter(out, "sonde_spool_found_reports_total",
		"Reports that another agent had left there.", s->found_reports);
	counter(out, "sonde_spool_found_samples_total", "Samples in these.", s->found_samples);
	counter(out, "sonde_spool_corrupt_total",
		"Files there that were not whole or not ours, and were removed.", s->corrupt);
	counter(out, "sonde_spool_failed_writes_total",
		"How often a report could not be written there.", s->failed_writes);
	counter(out, "sonde_spool_failed_removes_total",
		"How often one that was acknowledged could not be removed: it will be sent again.",
		s->failed_removes);
}

static void write_cuts(FILE *out, const struct agent_stats *a)
{
	counter(out, "sonde_cuts_total", "Intervals that were reported.", a->cuts);
	counter(out, "sonde_cuts_untimed_total",
		"Of these, in which there was no room for the times of samples.", a->untimed_cuts);
	write_kinds(out, "sonde_runtime_samples_total",
		    "Samples in reports that have a frame of this runtime.", a->kind_samples);
	write_kinds(out, "sonde_runtime_frames_total", "Frames of this runtime in these.",
		    a->kind_frames);
}

static void write_unknown(FILE *out, const struct recorder_stats *s)
{
	static const char name[] = "sonde_runtime_files_unknown_total";

	begin_family(out, name, "counter",
		     "Files of this runtime that were met, of a version that is not known.");
	for (unsigned kind = 0; kind < FRAME_KIND_MAX_; kind++)
		if (profile_runtime_name(kind))
			labelled(out, name, "runtime", profile_runtime_name(kind),
				 s->unknown_runtimes[kind]);
}

static void write_cost(FILE *out, const struct metrics *m)
{
	const struct recorder_stats *s = m->recorder;

	seconds(out, "sonde_bpf_cpu_seconds_total", "CPU time of BPF programs in the kernel.",
		s->bpf_ns);
	counter(out, "sonde_bpf_runs_total", "How often the sampling program ran.", s->bpf_runs);
	seconds(out, "sonde_cpu_seconds_total", "CPU time of this process.", s->own_ns);
	seconds(out, "sonde_children_cpu_seconds_total",
		"CPU time of its children, which build tables, read symbols and load walkers.",
		child_cpu_ns());
	gauge(out, "sonde_resident_memory_bytes", "Resident memory, without pages of BPF maps.",
	      s->rss_kb * 1024);
	gauge(out, "sonde_bpf_memory_bytes", "Kernel memory of BPF maps and programs.",
	      s->map_bytes);
	gauge(out, "sonde_profile_bytes", "Memory of what is known: stacks, frames, names.",
	      profile_bytes(m->profile));
	gauge(out, "sonde_profile_full",
	      "1: nothing new is taken in until there is room, which is counted as lost.",
	      m->profile->full);
	gauge(out, "sonde_profile_processes", "Processes that are known.", s->processes);
	gauge(out, "sonde_profile_files", "Files that are known.", s->files);
}

static void write_http(FILE *out, const struct http_server_stats *s)
{
	static const char name[] = "sonde_http_requests_total";

	begin_family(out, name, "counter", "Requests to this server, by what became of them.");
	labelled(out, name, "result", "answered", s->answered);
	labelled(out, name, "result", "refused", s->refused);
	labelled(out, name, "result", "timed_out", s->timed_out);
	labelled(out, name, "result", "pushed_out", s->pushed_out);
	labelled(out, name, "result", "broken", s->broken);
}

int metrics_write(const struct metrics *m, char **ret, size_t *ret_size)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out)
		return -ENOMEM;
	begin_family(out, "sonde_build_info", "gauge", "Which version this is.");
	labelled(out, "sonde_build_info", "version", SONDE_VERSION, 1);
	gauge(out, "sonde_frequency_hertz", "Samples a second on each CPU.",
	      m->recorder->frequency_hz);
	gauge(out, "sonde_probabilistic_profiling_enabled",
	      "1: the CPUs are sampled; 0: not in this interval.", m->agent->profiling);
	begin_family(out, "sonde_probabilistic_intervals_total", "counter",
		     "Intervals of which was drawn whether they are profiled, by what came of it.");
	labelled(out, "sonde_probabilistic_intervals_total", "profiled", "no",
		 m->agent->intervals[0]);
	labelled(out, "sonde_probabilistic_intervals_total", "profiled", "yes",
		 m->agent->intervals[1]);
	seconds(out, "sonde_sampling_seconds_total", "How long it has sampled.",
		(uint64_t)(m->recorder->duration_s * 1e9));
	write_samples(out, m->recorder);
	write_sources(out, m);
	write_raw(out, m->recorder);
	write_lost(out, m->recorder);
	write_lost_of_sources(out, m);
	write_cuts(out, m->agent);
	write_unknown(out, m->recorder);
	write_reports(out, m->agent);
	write_spool(out, &m->agent->sender.spool);
	write_cost(out, m);
	counter(out, "sonde_log_unsaid_total", "Messages that came too often, and were not said.",
		log_unsaid());
	write_http(out, m->http);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	*ret_size = size;
	return 0;
}
