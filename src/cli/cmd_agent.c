// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde agent`: the daemon. What can be wrong is found out here; agent/agent.h does the work.
 */
#include "cli/command.h"

#include "agent/agent.h"
#include "cli/config.h"
#include "cli/names.h"
#include "cli/stats.h"
#include "cli/target.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>

struct agent_arguments {
	uint32_t frequency_hz;
	double interval_s, jitter;
	const char *output_dir, *config;
	uint64_t output_dir_bytes;
	uint64_t memory_limit;
	uint32_t max_frames;
	struct runtime_names_options runtimes;
	bool no_kernel, no_inlines, idle, verbose, print_config, version, help;
};

#define AT(member) .offset = offsetof(struct agent_arguments, member)

/* The OpenTelemetry profiler has it: its unit files shall do here, too. */
#define IGNORED(name_, arg_)                                                                       \
	{                                                                                          \
		.name = name_, .arg = arg_, .type = OPTION_IGNORED, .hidden = true                 \
	}

static const struct option_spec agent_specs[] = {
	{ 0, "output-dir", "DIR", NULL, "write reports into this folder, each a file",
	  OPTION_STRING, AT(output_dir) },
	{ 0, "output-dir-size", "SIZE", "256M",
	  "all files there together; the oldest are removed first", OPTION_SIZE,
	  AT(output_dir_bytes), .min = UINT64_C(1) << 20, .max = UINT64_C(1) << 40 },
	{ 0, "samples-per-second", "HZ", "20", "on each CPU", OPTION_NUMBER, AT(frequency_hz),
	  .min = 1, .max = UINT32_MAX, .max_name = "kernel.perf_event_max_sample_rate" },
	{ 0, "reporter-interval", "SECONDS", "5", "between two reports", OPTION_SECONDS,
	  AT(interval_s), .max = 3600 },
	{ 0, "reporter-jitter", "PART", "0.2",
	  "give or take this part of the interval, so that hosts do not report together",
	  OPTION_FRACTION, AT(jitter) },
	{ 0, "memory-limit", "SIZE", "64M", "own memory and BPF maps together", OPTION_SIZE,
	  AT(memory_limit), .min = MEMORY_LIMIT_MIN, .max = MEMORY_LIMIT_MAX },
	{ 0, "max-frames", "N", "8192",
	  "user frames of a stack, at most 8192; longer ones are truncated", OPTION_NUMBER,
	  AT(max_frames), .min = 1, .max = SAMPLE_FRAMES_MAX },
	{ 0, "no-kernel", NULL, NULL, "leave kernel frames out", OPTION_FLAG, AT(no_kernel) },
	{ 0, "no-inlines", NULL, NULL, "leave inlined functions out", OPTION_FLAG, AT(no_inlines) },
	NAMES_RUNTIME_OPTIONS(AT),
	{ 0, "send-idle-frames", NULL, NULL, "sample idle CPUs too", OPTION_FLAG, AT(idle) },
	{ 0, "config", "FILE", NULL, "read options from here, too: lines 'key = value'",
	  OPTION_STRING, AT(config) },
	{ 0, "print-config", NULL, NULL,
	  "print all options and where their values came from, as such a file, and end",
	  OPTION_FLAG, AT(print_config) },
	{ 0, "version", NULL, NULL, "print which version this is", OPTION_FLAG, AT(version) },
	{ 'v', "verbose", NULL, NULL, "tell more on standard error", OPTION_FLAG, AT(verbose) },
	{ 'h', "help", NULL, NULL, "print this", OPTION_FLAG, AT(help) },
	IGNORED("bpf-log-level", "LEVEL"),
	IGNORED("bpffs-root", "DIR"),
	IGNORED("clock-sync-interval", "TIME"),
	IGNORED("frame-cache-size", "N"),
	IGNORED("map-scale-factor", "N"),
	IGNORED("monitor-interval", "TIME"),
	IGNORED("no-kernel-version-check", NULL),
	IGNORED("pprof", "ADDRESS"),
	IGNORED("send-error-frames", NULL),
	OPTIONS_END,
};

static void tell_state(const struct recorder_stats *stats, const struct agent_stats *agent)
{
	log_info("state: %.0f s, %" PRIu64 " samples, %.1f %% complete, %" PRIu64
		 " lost; CPU time: %.2f s, in the kernel %.2f s; memory: %" PRIu64
		 " kB, BPF maps %" PRIu64 " kB",
		 stats->duration_s, stats->samples, stats_complete_percent(stats),
		 stats_lost_samples(stats), (double)stats->own_ns / 1e9,
		 (double)stats->bpf_ns / 1e9, stats->rss_kb, stats->map_bytes / 1024);
	log_info("state: %" PRIu64 " reports with %" PRIu64 " samples, %" PRIu64
		 " kB, were written, %" PRIu64 " with %" PRIu64 " samples were not; %" PRIu64
		 " files of %" PRIu64 " kB are there, %" PRIu64 " were removed to make room",
		 agent->reports, agent->samples, agent->bytes / 1024, agent->failed_reports,
		 agent->failed_samples, agent->output.files, agent->output.bytes / 1024,
		 agent->output.removed);
}

static int run_agent(const struct agent_arguments *args)
{
	const struct agent_options options = {
		.recorder = { .frequency_hz = args->frequency_hz,
			      .memory_limit = args->memory_limit,
			      .max_frames = args->max_frames,
			      .no_kernel = args->no_kernel,
			      .idle = args->idle,
			      .symbolizer = { .no_inlines = args->no_inlines,
					      .runtimes = args->runtimes,
					      .builder = names_builder },
			      .table_builder = names_table_builder,
			      .file_copier = names_file_copier,
			      .walker_loader = names_walker_loader },
		.interval_s = args->interval_s,
		.jitter = args->jitter,
		.output_dir = args->output_dir,
		.output_dir_bytes = args->output_dir_bytes,
		.tell = tell_state,
	};
	int r = target_check_frequency(args->frequency_hz);

	if (!r)
		r = target_check_requirements("sample");
	return r ? r : agent_run(&options);
}

static int agent_main(int argc, char **argv)
{
	_cleanup_(config_fini) struct config config = { 0 };
	struct agent_arguments args = { 0 };
	int r = config_read(agent_specs, "agent", argc, argv, &args, sizeof(args), &args.config,
			    &config);

	if (r < 0)
		return EXIT_USAGE;
	if (args.help)
		help_print_command(&command_agent, stdout);
	else if (args.version)
		puts("sonde " SONDE_VERSION);
	else if (args.print_config)
		config_print(&config, stdout);
	if (args.help || args.version || args.print_config)
		return EXIT_OK;
	if (!args.output_dir) {
		log_error("say where reports go: --output-dir DIR; see 'sonde help agent'");
		return EXIT_USAGE;
	}
	if (args.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	return run_agent(&args) < 0 ? EXIT_ERROR : EXIT_OK;
}

const struct command command_agent = {
	.name = "agent",
	.summary = "the daemon: sample all the time, report every few seconds",
	.usage = "--output-dir DIR [OPTIONS]",
	.description =
		"Samples the whole machine until it is told to end, and writes an OTLP profile (a "
		"gzip\n"
		"file, NUMBER-TIME.otlp.gz) into DIR every few seconds. 'sonde convert' and "
		"whatever "
		"reads\n"
		"OTLP opens them. A name appears when its file is whole. SIGTERM: a last report, "
		"then the\n"
		"end. SIGUSR1: the state is logged.\n"
		"\n"
		"All options may also be given with one dash, as variables "
		"(SONDE_SAMPLES_PER_SECOND) and in\n"
		"a file (--config; samples-per-second = 20). The command line goes before "
		"variables, these\n"
		"before the file.\n",
	.options = agent_specs,
	.run = agent_main,
};
