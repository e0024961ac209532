// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde record`: everything that can be wrong is found out first (options, privileges, processes,
 * command, output files), then recorder.h does the work, then the profile and the summary are
 * written.
 */
#include "cli/command.h"

#include "record/recording.h"
#include "replay/replay_save.h"
#include "cli/format.h"
#include "cli/off_cpu.h"
#include "cli/output.h"
#include "cli/probe.h"
#include "cli/sampling.h"
#include "cli/stats.h"
#include "cli/suggest.h"
#include "cli/term.h"
#include "cli/top.h"
#include "cli/tracers.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	YEAR_S = 366 * 24 * 3600,
};

struct record_options {
	struct pid_list pids;
	struct sampling_arguments sampling;
	double duration_s;
	const char *output, *format, *stats;
	uint32_t top;
	const char *replay_dir;
	uint32_t max_replay_cases;
	bool measure;
	uint32_t kernel_frames;
	struct off_cpu_wanted off_cpu;
	const char *type;
	struct probes_wanted probes;
	const char *names;
	bool all, lines, verbose, help;
};

#define AT(member) .offset = offsetof(struct record_options, member)

static const struct option_spec record_specs[] = {
	{ 'p', "pid", "PID[,PID...]", NULL,
	  "record these processes, their threads, and children they fork from now on", OPTION_PIDS,
	  AT(pids) },
	{ 'a', "all", NULL, NULL,
	  "record the whole system, as without -p and COMMAND, with COMMAND as long as that runs",
	  OPTION_FLAG, AT(all) },
	{ 'F', "frequency", "HZ", "99",
	  "samples a second on each CPU, up to the kernel's perf_event_max_sample_rate",
	  OPTION_NUMBER, AT(sampling.frequency_hz), .min = 1, .max = UINT32_MAX,
	  .max_name = "kernel.perf_event_max_sample_rate" },
	{ 'd', "duration", "SECONDS", NULL,
	  "stop after this time (default: at Ctrl-C, or when COMMAND ends)", OPTION_SECONDS,
	  AT(duration_s), .max = YEAR_S },
	{ 'o', "output", "FILE", NULL,
	  "write here (default: profile.html); - is standard output, as folded text without -f",
	  OPTION_STRING, AT(output) },
	{ 'f', "format", "FORMAT", NULL,
	  "html, folded, pprof, speedscope, firefox, perf or otlp (default: by the output's "
	  "extension)",
	  OPTION_STRING, AT(format) },
	{ 0, "stats", "FILE", NULL, "write the summary as JSON; - is standard output",
	  OPTION_STRING, AT(stats) },
	{ 0, "top", "N", NULL,
	  "print the N functions with the most samples to standard output at the end",
	  OPTION_NUMBER, AT(top), .min = 1, .max = 100000 },
	SAMPLING_OPTIONS(AT, "64M", MEMORY_LIMIT_MIN),
	SYMBOLIZE_OPTIONS(AT),
	SELECT_OPTIONS(AT),
	{ 0, "lines", NULL, NULL, "tell the lines of one function apart: name:line", OPTION_FLAG,
	  AT(lines) },
	{ 0, "names", "full|short", "full",
	  "C++, Rust, D, Swift: with parameters and template arguments, or without", OPTION_STRING,
	  AT(names) },
	{ 0, "idle", NULL, NULL, "sample idle CPUs too", OPTION_FLAG, AT(sampling.idle) },
	OFF_CPU_OPTIONS(AT),
	PROBE_OPTIONS(AT),
	{ 0, "type", "TYPE", NULL,
	  "of which type the output shows samples, if it shows one only (default: samples; with "
	  "--off-cpu also off_cpu, with --probe and --event theirs)",
	  OPTION_STRING, AT(type) },
	{ 'v', "verbose", NULL, NULL, "tell more on standard error", OPTION_FLAG, AT(verbose) },
	{ 'h', "help", NULL, NULL, "print this", OPTION_FLAG, AT(help) },
	{ 0, "replay-dir", "DIR", NULL, "keep walked samples here as replay cases", OPTION_STRING,
	  AT(replay_dir), .hidden = true },
	{ 0, "max-replay-cases", "N", "16", "how many", OPTION_NUMBER, AT(max_replay_cases),
	  .min = 1, .max = 100000, .hidden = true },
	{ 0, "measure", NULL, NULL, "for tests/bench: samples tell how long they took", OPTION_FLAG,
	  AT(measure), .hidden = true },
	{ 0, "kernel-frames", "N", "1",
	  "for tests: 0: bpf_get_stack()'s; 1: by rows; 2: both, compared", OPTION_NUMBER,
	  AT(kernel_frames), .max = KERNEL_FRAMES_COMPARE, .hidden = true },
	OPTIONS_END,
};

/* What one run holds from its checks to its end. */
struct recording {
	struct record_options options;
	char *const *command; /* NULL: none */
	const struct export_ops *format;
	char default_path[64];
	struct output output, stats_output;
	struct replay_save *replay;	 /* NULL: no cases are kept */
	struct sample_observer observer; /* replay's */
	struct export_options export_options;
	struct selection selection;
	struct probes probes;
	bool short_names;
	bool progress_shown;
};

static void recording_fini(struct recording *rec)
{
	output_fini(&rec->output);
	output_fini(&rec->stats_output);
	replay_save_free(rec->replay);
	selection_fini(&rec->selection);
	probes_fini(&rec->probes);
}

/* --- checks ----------------------------------------------------------------------------------- */

/* The format by -f, or by the extension of -o; the path by -o, or by the format. */
static int choose_format(struct recording *rec)
{
	struct record_options *o = &rec->options;

	rec->format = format_to_write(o->format, o->output ? o->output : "profile.html");
	if (!rec->format)
		return -EINVAL;
	if (!o->output) {
		snprintf(rec->default_path, sizeof(rec->default_path), "profile%s",
			 rec->format->extensions[0]);
		o->output = rec->default_path;
	}
	return 0;
}

/* One stream, or one file, takes one kind of text. */
static int check_outputs(const struct record_options *o)
{
	int nr = !strcmp(o->output, "-") + (o->stats && !strcmp(o->stats, "-")) + (o->top > 0);

	if (o->stats && !strcmp(o->output, o->stats) && strcmp(o->output, "-")) {
		log_error("-o and --stats both name '%s'; give two files", o->output);
		return -EINVAL;
	}
	if (nr < 2)
		return 0;
	log_error("only one of -o -, --stats - and --top can have standard output; name a file");
	return -EINVAL;
}

static int complain_type(const struct probes *probes, const char *type)
{
	struct suggestion s = { .word = type, .len = strlen(type) };
	char list[256] = "", meant[SUGGESTION_MAX];

	suggest_listed(&s, "samples", list, sizeof(list));
	suggest(&s, "off_cpu");
	for (size_t i = 0; i < probes->nr; i++)
		suggest_listed(&s, probes->sources[i].type, list, sizeof(list));
	if (s.best && !strcmp(s.best, "off_cpu") && !probes_have_type(probes, "off_cpu"))
		log_error("there are no samples of type '%s'%s without --off-cpu; see 'sonde help "
			  "record'",
			  type, s.distance ? suggestion_text(&s, meant) : "");
	else
		log_error("there are no samples of type '%s'%s, but of: %s; see 'sonde help "
			  "record'",
			  type, suggestion_text(&s, meant), list);
	return -EINVAL;
}

/* What is recorded beside the CPUs' clocks, and which of all is shown. */
static int choose_sources(struct recording *rec)
{
	const struct record_options *o = &rec->options;
	struct source_spec off_cpu;
	int r = off_cpu_source(&o->off_cpu, NULL, "record", &off_cpu);

	if (!r)
		r = probes_add(&rec->probes, &off_cpu);
	if (!r)
		r = probes_parse(&o->probes, NULL, "record", &rec->probes);
	if (r)
		return r;
	if (!o->type || !strcmp(o->type, "samples") || probes_have_type(&rec->probes, o->type))
		return 0;
	return complain_type(&rec->probes, o->type);
}

/* The command line alone: what is wrong here is a usage error. */
static int parse(int argc, char **argv, struct recording *rec)
{
	struct record_options *o = &rec->options;
	int first, r;

	r = options_parse(record_specs, "record", argc, argv, o, &first);
	if (r < 0 || o->help)
		return r;
	if (first < argc)
		rec->command = argv + first;
	else if (!strcmp(argv[argc - 1], "--")) {
		/* A script's empty variable: it does not want the whole machine until Ctrl-C. */
		log_error("there is no COMMAND behind '--'; see 'sonde help record'");
		return -EINVAL;
	}
	/* Its value may be left out: then what stands behind it is the COMMAND. */
	if (rec->command && !strcmp(argv[first - 1], "--off-cpu") && strchr(argv[first], '=')) {
		log_error("--off-cpu takes a number from 0 to 1, or weighted=TIME, not '%s'; see "
			  "'sonde help record'",
			  argv[first]);
		return -EINVAL;
	}
	if (rec->command && o->pids.nr) {
		log_error("give either -p or COMMAND ('%s'), not both", rec->command[0]);
		return -EINVAL;
	}
	if (o->all && o->pids.nr) {
		log_error("give either -p or -a, the whole system, not both");
		return -EINVAL;
	}
	rec->export_options.lines = o->lines;
	r = choose_sources(rec);
	if (!r)
		r = select_parse(&o->sampling.select, NULL, "record", &rec->selection);
	if (!r)
		r = tracers_parse(o->sampling.tracers, NULL, "record",
				  &o->sampling.runtimes.runtime);
	if (!r)
		r = names_style(o->names, &rec->short_names);
	if (!r)
		r = choose_format(rec);
	return r ? r : check_outputs(o);
}

/* The machine: what is wrong here is an error. */
static int prepare(struct recording *rec)
{
	struct record_options *o = &rec->options;
	int r;

	r = target_check_frequency(o->sampling.frequency_hz);
	if (!r)
		r = target_check_pids(&o->pids);
	if (!r && rec->command)
		r = target_check_command(rec->command[0]);
	if (!r)
		r = target_check_requirements("record");
	if (!r)
		r = probes_find(&rec->probes);
	if (!r)
		r = output_open(o->output, &rec->output);
	if (!r)
		r = output_open(o->stats, &rec->stats_output);
	return r;
}

/* --- the recording ---------------------------------------------------------------------------- */

/* The cursor stays at the line's start, so that a message that comes between overwrites it. */
static void show_progress(void *ctx, const struct recorder_stats *stats)
{
	struct recording *rec = ctx;
	char text[80];

	stats_format_progress(stats, text, sizeof(text));
	/* A line that wraps would not be overwritten. */
	fprintf(stderr, "%.*s\033[K\r", term_width(stderr) - 1, text);
	fflush(stderr);
	rec->progress_shown = true;
}

static bool show_names_progress(void *ctx, const struct symbol_progress *progress)
{
	struct recording *rec = ctx;

	if (names_print_progress(progress))
		rec->progress_shown = true;
	return true;
}

static void clear_progress(struct recording *rec)
{
	if (rec->progress_shown)
		fputs("\033[K", stderr);
	rec->progress_shown = false;
}

static int record(struct recording *rec, struct profile *profile, struct recorder_stats *ret_stats,
		  int *ret_status)
{
	const struct record_options *o = &rec->options;
	struct recording_options options = {
		.recorder = sampling_recorder_options(&o->sampling),
		.pids = o->pids.pids,
		.nr_pids = o->pids.nr,
		.command = rec->command,
		.whole = o->all,
		.duration_s = o->duration_s,
		.progress = term_width(stderr) ? show_progress : NULL,
		.progress_ctx = rec,
	};
	int r;

	options.recorder.keep_events = rec->format->wants_events;
	options.recorder.symbolizer.short_names = rec->short_names;
	options.recorder.symbolizer.progress = show_names_progress;
	options.recorder.symbolizer.progress_ctx = rec;
	options.recorder.observer = rec->replay ? &rec->observer : NULL;
	options.recorder.measure = o->measure;
	options.recorder.kernel_frames = o->kernel_frames;
	options.recorder.sources = rec->probes.sources;
	options.recorder.nr_sources = rec->probes.nr;
	options.recorder.selection = &rec->selection;
	r = recording_run(&options, profile, ret_stats, ret_status);
	clear_progress(rec);
	return r;
}

static int open_replay(struct recording *rec)
{
	const struct record_options *o = &rec->options;
	int r;

	if (!o->replay_dir)
		return 0;
	r = replay_save_open(o->replay_dir, o->max_replay_cases, &rec->replay);
	if (r)
		return log_err(r, "cannot keep replay cases in %s", o->replay_dir);
	rec->observer = replay_save_observer(rec->replay);
	return 0;
}

static void tell_replay(const struct recording *rec)
{
	uint64_t compared, different;

	if (!rec->replay)
		return;
	replay_save_counts(rec->replay, &compared, &different);
	log_info("replay: %" PRIu64 " walks compared, %" PRIu64 " differ", compared, different);
}

/* --- the results ------------------------------------------------------------------------------ */

static void tell_where(const struct recording *rec)
{
	const char *path = rec->output.path;
	struct stat st;

	if (!strcmp(path, "-") || stat(path, &st) < 0)
		return;
	if (S_ISREG(st.st_mode))
		log_info("wrote %s (%s, %" PRIu64 " kB)", path, rec->format->name,
			 ((uint64_t)st.st_size + 1023) / 1024);
}

enum { IDLE_PERCENT = 5 };

/* Shorter ones say nothing of the machine: somebody has pressed Ctrl-C while it was looked at. */
static const double SHORT_S = 0.05;

static bool is_whole_machine(const struct recording *rec)
{
	const struct record_options *o = &rec->options;

	return (o->all || !rec->command) && !o->pids.nr && !o->sampling.idle;
}

/* Writes all that was asked for, whatever fails of it; 0 or the first error. */
static int write_results(struct recording *rec, const struct profile *profile,
			 const struct recorder_stats *stats)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int r = 0, written;

	written = output_write_profile(&rec->output, rec->format, profile, &rec->export_options);
	if (rec->stats_output.path)
		r = output_write_stats(&rec->stats_output, stats);
	if (rec->options.top && top_print(profile, rec->options.top, stdout) < 0)
		log_warn("not enough memory for --top");
	fflush(stdout);
	stats_print_summary(stats, stderr);
	if (!stats->samples && stats->duration_s < SHORT_S)
		log_warn("no samples: the recording was over before it had begun");
	else if (is_whole_machine(rec) && stats_busy_percent(stats, nr_cpus) < IDLE_PERCENT)
		stats_print_idle(stats, nr_cpus, stderr);
	else if (!stats->samples && stats->others && !rec->options.type)
		log_warn("no samples of the clock: nothing of it ran on a CPU; --type shows those "
			 "that there are of others");
	else if (!stats->samples && !stats->others && stats->rejected)
		log_warn("no samples: nothing that --include and --exclude leave ran on a CPU; is "
			 "the name right?");
	else if (!stats->samples && !stats->others)
		log_warn("no samples: nothing of it ran on a CPU; record longer, or with a higher "
			 "-F");
	if (!written)
		tell_where(rec);
	return written ? written : r;
}

/* As shells do it. */
static int exit_status_of(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}

static int record_run(int argc, char **argv)
{
	_cleanup_(recording_fini) struct recording rec = { 0 };
	_cleanup_(profile_fini) struct profile profile = { 0 };
	struct recorder_stats stats = { 0 };
	int status = 0;

	if (parse(argc, argv, &rec) < 0)
		return EXIT_USAGE;
	if (rec.options.help) {
		help_print_command(&command_record, stdout);
		return EXIT_OK;
	}
	if (rec.options.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	if (prepare(&rec) < 0)
		return EXIT_ERROR;
	if (profile_init(&profile) < 0) {
		log_error("not enough memory");
		return EXIT_ERROR;
	}
	if (open_replay(&rec) < 0 || record(&rec, &profile, &stats, &status) < 0)
		return EXIT_ERROR;
	tell_replay(&rec);
	if (rec.options.type)
		profile_show_type(&profile, rec.options.type);
	if (write_results(&rec, &profile, &stats) < 0)
		return EXIT_ERROR;
	return rec.command ? exit_status_of(status) : EXIT_OK;
}

const struct command command_record = {
	.name = "record",
	.summary = "record stacks for a while and write a flame graph",
	.usage = "[OPTIONS] [-- COMMAND ARGS...]",
	.description =
		"Samples what runs on each CPU, walks the kernel's and the program's stack, and "
		"writes\n"
		"one file: an interactive flame graph, or what other tools read (-f).\n"
		"\n"
		"Without -p or COMMAND it records the whole system. With COMMAND it runs it and "
		"records\n"
		"it and all its descendants from their first instruction (with -a: the whole "
		"system\n"
		"meanwhile); the exit status is COMMAND's.\n"
		"It ends after -d SECONDS, at Ctrl-C or SIGTERM, or with COMMAND, and then writes "
		"what\n"
		"there is. Symbols that are still being read at the end are waited for; Ctrl-C "
		"goes "
		"without\n"
		"them. It must run as root ('sonde doctor' checks what else it needs).\n",
	.options = record_specs,
	.run = record_run,
};
