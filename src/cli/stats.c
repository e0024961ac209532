// SPDX-License-Identifier: Apache-2.0
#include "cli/stats.h"

#include <inttypes.h>
#include <string.h>

#define LOST(name, NAME, id, sentence) [id] = #name,
static const char *const lost_names[LOST_MAX_] = {
#include "abi/lost_reasons.def"
};
#undef LOST

#define LOST(name, NAME, id, sentence) [id] = sentence,
static const char *const lost_sentences[LOST_MAX_] = {
#include "abi/lost_reasons.def"
};
#undef LOST

const char *lost_name(enum lost_reason reason)
{
	return (unsigned int)reason < LOST_MAX_ && lost_names[reason] ? lost_names[reason]
								      : "unknown";
}

const char *lost_sentence(enum lost_reason reason)
{
	return (unsigned int)reason < LOST_MAX_ && lost_sentences[reason] ? lost_sentences[reason]
									  : "no known reason";
}

uint64_t stats_unknown_runtimes(const struct recorder_stats *stats)
{
	uint64_t nr = 0;

	for (int i = 0; i < FRAME_KIND_MAX_; i++)
		nr += stats->unknown_runtimes[i];
	return nr;
}

/* What is lost for a reason; its sentence begins with that. */
static const char *lost_kind(int reason)
{
	if (reason == LOST_RAW_THROTTLED) /* it is there, without its user part */
		return "lost in part";
	return strncmp(lost_sentence(reason), "samples:", 8) ? "lost beside samples" : "lost";
}

uint64_t stats_lost_samples(const struct recorder_stats *stats)
{
	uint64_t nr = 0;

	for (int i = 0; i < LOST_MAX_; i++)
		if (!strcmp(lost_kind(i), "lost"))
			nr += stats->lost[i];
	return nr;
}

double stats_complete_percent(const struct recorder_stats *stats)
{
	return stats->samples ? 100.0 * (double)stats->complete / (double)stats->samples : 100.0;
}

/* "name": {"reason": count, ...}, for the reasons that occurred. */
static void write_reasons(FILE *out, const char *name, const uint64_t *counts, int nr,
			  const char *(*reason_name)(int))
{
	const char *separator = "";

	fprintf(out, "\t\"%s\": {", name);
	for (int i = 0; i < nr; i++) {
		if (!counts[i])
			continue;
		fprintf(out, "%s\"%s\": %" PRIu64, separator, reason_name(i), counts[i]);
		separator = ", ";
	}
	fputs("},\n", out);
}

static const char *stop_reason_name(int reason)
{
	return profile_stop_name((enum stop_reason)reason);
}

static const char *runtime_name(int kind)
{
	return profile_runtime_name((unsigned)kind);
}

static const char *lost_reason_name(int reason)
{
	return lost_name((enum lost_reason)reason);
}

/* Every way but the complete one: those are counted by their own key. */
static void only_truncated(const struct recorder_stats *stats, uint64_t truncated[STOP_MAX_])
{
	memcpy(truncated, stats->truncated, sizeof(stats->truncated));
	truncated[STOP_NONE] = 0;
	truncated[STOP_COMPLETE] = 0;
}

static const char *kernel_walk_name(int end)
{
	static const char *const names[KERNEL_WALK_ENDS_] = {
		[KERNEL_WALK_WHOLE] = "whole",
		[KERNEL_WALK_NO_CODE] = "no_code",
		[KERNEL_WALK_NO_RULE] = "no_rule",
		[KERNEL_WALK_UNREADABLE] = "unreadable",
		[KERNEL_WALK_OUT_OF_ORDER] = "out_of_order",
	};

	return names[end] ? names[end] : "unknown";
}

/* By hand: Debian has no static cJSON, and no string here needs escaping. */
void stats_write_json(const struct recorder_stats *stats, FILE *out)
{
	uint64_t truncated[STOP_MAX_];

	only_truncated(stats, truncated);
	fprintf(out, "{\n\t\"samples\": %" PRIu64 ",\n", stats->samples);
	fprintf(out, "\t\"complete\": %" PRIu64 ",\n", stats->complete);
	write_reasons(out, "truncated", truncated, STOP_MAX_, stop_reason_name);
	write_reasons(out, "lost", stats->lost, LOST_MAX_, lost_reason_name);
	write_reasons(out, "kernel_walks", stats->kernel_walks, KERNEL_WALK_ENDS_,
		      kernel_walk_name);
	write_reasons(out, "unknown_runtimes", stats->unknown_runtimes, FRAME_KIND_MAX_,
		      runtime_name);
	fprintf(out, "\t\"own\": %" PRIu64 ",\n", stats->own);
	fprintf(out, "\t\"frames\": %" PRIu64 ",\n", stats->frames);
	fprintf(out, "\t\"others\": %" PRIu64 ",\n", stats->others);
	fprintf(out, "\t\"limited\": %" PRIu64 ",\n", stats->limited);
	fprintf(out, "\t\"reads_given_up\": %" PRIu64 ",\n", stats->reads_given_up);
	fprintf(out, "\t\"rejected\": %" PRIu64 ",\n", stats->rejected);
	fprintf(out, "\t\"rejected_others\": %" PRIu64 ",\n", stats->rejected_others);
	fprintf(out, "\t\"undecided\": %" PRIu64 ",\n", stats->undecided);
	fprintf(out, "\t\"processes\": %" PRIu64 ",\n", stats->processes);
	fprintf(out, "\t\"files\": %" PRIu64 ",\n", stats->files);
	fprintf(out, "\t\"bpf_ns_per_sample\": %.1f,\n", stats->bpf_ns_per_sample);
	fprintf(out, "\t\"rss_kb\": %" PRIu64 ",\n", stats->rss_kb);
	fprintf(out, "\t\"map_bytes\": %" PRIu64 ",\n", stats->map_bytes);
	fprintf(out, "\t\"duration_s\": %.3f,\n", stats->duration_s);
	fprintf(out, "\t\"frequency_hz\": %" PRIu32 "\n}\n", stats->frequency_hz);
}

double stats_busy_percent(const struct recorder_stats *stats, long nr_cpus)
{
	double most = stats->duration_s * stats->frequency_hz * (double)nr_cpus;
	double samples = (double)(stats->samples - stats->own + stats_lost_samples(stats) +
				  stats->rejected + stats->undecided);

	return most > 0 ? 100 * samples / most : 0;
}

static void print_others(const struct recorder_stats *stats, FILE *out)
{
	if (!stats->others && !stats->limited)
		return;
	fprintf(out, "sonde: %" PRIu64 " samples of other types", stats->others);
	if (stats->limited)
		fprintf(out, "; %" PRIu64 " more were not taken: their rate is limited",
			stats->limited);
	fputc('\n', out);
}

static void print_rejected(const struct recorder_stats *stats, FILE *out)
{
	if (stats->rejected || stats->rejected_others)
		fprintf(out,
			"sonde: not selected: %" PRIu64 " samples, %" PRIu64 " of other sources\n",
			stats->rejected, stats->rejected_others);
	if (stats->undecided)
		fprintf(out,
			"sonde: undecided: %" PRIu64 " samples (of processes that ended before it "
			"was known if they are selected)\n",
			stats->undecided);
}

void stats_print_idle(const struct recorder_stats *stats, long nr_cpus, FILE *out)
{
	uint64_t others = stats->samples - stats->own;

	fprintf(out,
		"sonde: the machine was idle: %.1f %% of its %ld CPU%s busy, %" PRIu64 " sample%s",
		stats_busy_percent(stats, nr_cpus), nr_cpus, nr_cpus == 1 ? "" : "s", others,
		others == 1 ? "" : "s");
	if (stats->own)
		fprintf(out,
			" beside %" PRIu64 " of sonde's own work (getting ready, reading names)",
			stats->own);
	fputs("; 'sonde record -- COMMAND' records a program from its start\n", out);
}

void stats_print_summary(const struct recorder_stats *stats, FILE *out)
{
	uint64_t truncated[STOP_MAX_];

	fprintf(out, "sonde: %" PRIu64 " sample%s in %.1f s at %" PRIu32 " Hz: ", stats->samples,
		stats->samples == 1 ? "" : "s", stats->duration_s, stats->frequency_hz);
	if (stats->samples)
		fprintf(out, "%.2f %% complete, ", stats_complete_percent(stats));
	fprintf(out, "%" PRIu64 " lost; %" PRIu64 " process%s, %" PRIu64 " file%s\n",
		stats_lost_samples(stats), stats->processes, stats->processes == 1 ? "" : "es",
		stats->files, stats->files == 1 ? "" : "s");
	fputs("sonde: cost: ", out);
	if (stats->bpf_ns > 0 && stats->duration_s > 0)
		fprintf(out, "%.2f %% of a CPU in the kernel, ",
			(double)stats->bpf_ns / stats->duration_s / 1e7);
	if (stats->own_ns > 0 && stats->duration_s > 0)
		fprintf(out, "%.2f %% of one in sonde, ",
			(double)stats_own_ns(stats) / stats->duration_s / 1e7);
	fprintf(out, "%.1f MB of memory, %.1f MB of BPF maps\n", (double)stats->rss_kb / 1024,
		(double)stats->map_bytes / (1024 * 1024));
	print_others(stats, out);
	print_rejected(stats, out);
	only_truncated(stats, truncated);
	for (int i = 0; i < STOP_MAX_; i++)
		if (truncated[i])
			fprintf(out, "sonde: truncated: %" PRIu64 " %s (%s)\n", truncated[i],
				profile_stop_name(i), profile_stop_sentence(i));
	for (int i = 0; i < LOST_MAX_; i++)
		if (stats->lost[i])
			fprintf(out, "sonde: %s: %" PRIu64 " %s (%s)\n", lost_kind(i),
				stats->lost[i], lost_name(i), lost_sentence(i));
	for (int i = 0; i < FRAME_KIND_MAX_; i++)
		if (stats->unknown_runtimes[i])
			fprintf(out,
				"sonde: unknown: %" PRIu64 " file%s of %s (of a version or a build "
				"that is not known: a message above says what is not shown)\n",
				stats->unknown_runtimes[i],
				stats->unknown_runtimes[i] == 1 ? "" : "s", runtime_name(i));
}

void stats_format_progress(const struct recorder_stats *stats, char *buf, size_t size)
{
	char complete[32] = "";

	if (stats->samples)
		snprintf(complete, sizeof(complete), "  %.2f %% complete",
			 stats_complete_percent(stats));
	snprintf(buf, size, "%.1f s  %" PRIu64 " samples%s  %" PRIu64 " lost", stats->duration_s,
		 stats->samples, complete, stats_lost_samples(stats));
}
