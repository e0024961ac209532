// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde top`: a recording that never ends, shown while it runs. record/recording calls us
 * (recording_options.live) every LIVE_MS and when a key was pressed; the model is brought up to
 * date every --delay.
 */
#include "cli/command.h"

#include "record/recording.h"
#include "cli/busy.h"
#include "cli/sampling.h"
#include "cli/stats.h"
#include "cli/suggest.h"
#include "cli/top.h"
#include "cli/top_screen.h"
#include "cli/tracers.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

/* CPUs: less of sonde's own is not told. */
static const double OWN_MIN = 0.005;

enum {
	LIVE_MS = 200, /* how late a change of the terminal's size may show */
};

struct top_options {
	struct pid_list pids;
	struct sampling_arguments sampling;
	uint32_t batch;
	uint32_t rows;
	double delay_s;
	const char *by, *sort, *filter, *names;
	bool verbose, help;
};

#define AT(member) .offset = offsetof(struct top_options, member)

static const struct option_spec top_specs[] = {
	{ 'p', "pid", "PID[,PID...]", NULL,
	  "show these processes, their threads, and children they fork from now on", OPTION_PIDS,
	  AT(pids) },
	{ 'F', "frequency", "HZ", "99",
	  "samples a second on each CPU, up to the kernel's perf_event_max_sample_rate",
	  OPTION_NUMBER, AT(sampling.frequency_hz), .min = 1, .max = UINT32_MAX,
	  .max_name = "kernel.perf_event_max_sample_rate" },
	{ 0, "delay", "SECONDS", "1", "between two updates", OPTION_SECONDS, AT(delay_s),
	  .max = 3600 },
	{ 'b', "batch", "N", NULL, "print N plain tables to standard output, then end",
	  OPTION_NUMBER, AT(batch), .min = 1, .max = UINT32_MAX },
	{ 'n', "rows", "N", "20", "rows of a plain table", OPTION_NUMBER, AT(rows), .min = 1,
	  .max = 100000 },
	{ 0, "by", "function|process|thread", "function", "what a row of a plain table is",
	  OPTION_STRING, AT(by) },
	{ 0, "sort", "self|total|name", "self", "the order of a plain table", OPTION_STRING,
	  AT(sort) },
	{ 0, "filter", "TEXT", NULL, "only rows of a plain table with this in their name",
	  OPTION_STRING, AT(filter) },
	{ 0, "names", "full|short", "short",
	  "C++, Rust, D, Swift: with parameters and template arguments, or without", OPTION_STRING,
	  AT(names) },
	SAMPLING_OPTIONS(AT, "64M", MEMORY_LIMIT_MIN),
	SELECT_OPTIONS(AT),
	{ 'v', "verbose", NULL, NULL, "tell more on standard error", OPTION_FLAG, AT(verbose) },
	{ 'h', "help", NULL, NULL, "print this", OPTION_FLAG, AT(help) },
	OPTIONS_END,
};

struct top {
	struct top_options options;
	struct top_view plain_view;
	struct selection selection;
	bool short_names;
	struct top_model model;
	struct top_screen *screen; /* NULL with --batch */
	uint64_t updated_ns;	   /* the model; 0: never */
	struct busy_look looked;   /* at the machine, then */
	uint64_t samples_then, lost_then, own_then_ns;
	/* What `r` counts from. */
	uint64_t samples_before, complete_before, lost_before;
	uint64_t shown_ns; /* the last update that --delay asked for; 0: none */
	bool is_begun;
	bool was_paused;
	uint32_t nr_printed;
	int error;
	bool stdout_failed;
};

static void top_fini(struct top *top)
{
	top_screen_close(top->screen);
	top_model_fini(&top->model);
	selection_fini(&top->selection);
}

/* --- the command line ------------------------------------------------------------------------- */

static int choose(const char *option, const char *value, const char *const *words, int nr)
{
	struct suggestion s = { .word = value, .len = strlen(value) };
	char list[128] = "", meant[SUGGESTION_MAX];

	for (int i = 0; i < nr; i++) {
		if (!strcmp(value, words[i]))
			return i;
		suggest_listed(&s, words[i], list, sizeof(list));
	}
	log_error("--%s takes one of: %s; not '%s'%s", option, list, value,
		  suggestion_text(&s, meant));
	return -EINVAL;
}

static int parse(int argc, char **argv, struct top *top)
{
	static const char *const by[] = { "function", "process", "thread" };
	static const char *const sort[] = { "self", "total", "name" };
	struct top_options *o = &top->options;
	int first, r;

	r = options_parse(top_specs, "top", argc, argv, o, &first);
	if (r < 0 || o->help)
		return r;
	if (first < argc) {
		log_error("'%s': top takes no arguments, processes are named by -p PID; see "
			  "'sonde help top'",
			  argv[first]);
		return -EINVAL;
	}
	r = choose("by", o->by, by, TOP_BY_MAX_);
	if (r < 0)
		return r;
	top->plain_view.by = (enum top_by)r;
	r = choose("sort", o->sort, sort, TOP_ORDER_MAX_);
	if (r < 0)
		return r;
	top->plain_view.order = (enum top_order)r;
	top->plain_view.filter = o->filter;
	r = select_parse(&o->sampling.select, NULL, "top", &top->selection);
	if (!r)
		r = tracers_parse(o->sampling.tracers, NULL, "top", &o->sampling.runtimes.runtime);
	return r ? r : names_style(o->names, &top->short_names);
}

static int prepare(struct top_options *o)
{
	int r;

	if (!o->batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		log_error("top needs a terminal; -b N prints N plain tables instead");
		return -ENOTTY;
	}
	r = target_check_frequency(o->sampling.frequency_hz);
	if (!r)
		r = target_check_pids(&o->pids);
	return r ? r : target_check_requirements("sample");
}

/* --- while it runs ---------------------------------------------------------------------------- */

static void format_status(const struct top *top, const struct recorder_stats *stats, char *buf,
			  size_t size)
{
	uint64_t samples = stats->samples - top->samples_before;
	uint64_t complete = stats->complete - top->complete_before;
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char percent[32] = "", own[32] = "", unknown[48] = "";
	uint64_t nr_unknown = stats_unknown_runtimes(stats);

	if (top_model_own(&top->model) >= OWN_MIN)
		snprintf(own, sizeof(own), " (sonde: %.2f)", top_model_own(&top->model));
	if (samples)
		snprintf(percent, sizeof(percent), " %.1f %% complete,",
			 100.0 * (double)complete / (double)samples);
	if (nr_unknown)
		snprintf(unknown, sizeof(unknown), ", %" PRIu64 " runtime%s not supported",
			 nr_unknown, nr_unknown == 1 ? "" : "s");
	snprintf(buf, size,
		 "%u Hz, %.2f of %ld CPU%s busy%s, %" PRIu64 " process%s, %" PRIu64
		 " sample%s,%s %" PRIu64 " lost%s",
		 top->options.sampling.frequency_hz, top_model_busy(&top->model), nr_cpus,
		 nr_cpus == 1 ? "" : "s", own, stats->processes, stats->processes == 1 ? "" : "es",
		 samples, samples == 1 ? "" : "s", percent,
		 stats_lost_samples(stats) - top->lost_before, unknown);
}

/* A plain table; what faded is told by its time. */
static int print_plain(struct top *top, const struct recorder_stats *stats)
{
	char status[200], title[240];
	int r;

	format_status(top, stats, status, sizeof(status));
	snprintf(title, sizeof(title), "%.1f s: %s", stats->duration_s, status);
	errno = 0;
	r = top_print_rows(&top->model, &top->plain_view, title, top->options.rows, stdout);
	if (!r && (fflush(stdout) || ferror(stdout))) {
		r = errno ? -errno : -EIO;
		top->stdout_failed = true;
	}
	top->nr_printed++;
	return r;
}

/* What is busy is counted from now on. */
static void look(struct top *top, const struct recorder_stats *stats)
{
	if (!busy_look(&top->looked))
		top->looked.at_ns = 0;
	top->samples_then = stats->samples;
	top->lost_then = stats_lost_samples(stats);
	top->own_then_ns = stats_own_ns(stats);
}

static bool is_whole_machine(const struct top *top)
{
	return !top->options.pids.nr && selection_is_empty(&top->selection) &&
	       !top->options.sampling.idle;
}

/* Since the last look: the kernel knows of the whole machine; of some of its processes what was
 * sampled in these seconds tells, whether it came here or not. */
static double busy_since(const struct top *top, const struct recorder_stats *stats, double seconds)
{
	uint64_t samples =
		stats->samples - top->samples_then + stats_lost_samples(stats) - top->lost_then;
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct busy_look now;
	double cpus = -1;

	if (is_whole_machine(top) && busy_look(&now))
		cpus = busy_cpus(&top->looked, &now, nr_cpus);
	return cpus >= 0 ? cpus
			 : busy_by_samples(samples, seconds, top->options.sampling.frequency_hz,
					   nr_cpus);
}

static int update(struct top *top, const struct profile *p, const struct recorder_stats *stats)
{
	uint64_t now = now_ns();
	double seconds =
		top->updated_ns ? (double)(now - top->updated_ns) / 1e9 : stats->duration_s;
	double cpus = busy_since(top, stats, seconds), own = 0;

	if (is_whole_machine(top) && seconds > 0)
		own = (double)(stats_own_ns(stats) - top->own_then_ns) / 1e9 / seconds;
	top->updated_ns = now;
	look(top, stats);
	return top_model_update(&top->model, p, seconds, cpus, own);
}

static bool is_time(const struct top *top, const struct recorder_stats *stats)
{
	double since = top->shown_ns ? (double)(now_ns() - top->shown_ns) / 1e9 : stats->duration_s;

	/* The first table as soon as there is something in it. */
	return since + 0.5 * LIVE_MS / 1000 >= top->options.delay_s ||
	       (top->screen && !top->shown_ns && stats->samples);
}

/* What the keys ask of the model. True: what the profile's cut holds does not count; what ran while
 * it stood still is not shown as of now. */
static bool obey(struct top *top, enum top_action action, const struct recorder_stats *stats)
{
	bool paused = top->screen && top_screen_is_paused(top->screen);
	bool goes_on = top->was_paused && !paused;

	top->was_paused = paused;
	if (action != TOP_ACTION_RESET && !goes_on)
		return false;
	top->updated_ns = now_ns();
	look(top, stats);
	if (action != TOP_ACTION_RESET)
		return true;
	top->samples_before = stats->samples;
	top->complete_before = stats->complete;
	top->lost_before = stats_lost_samples(stats);
	top_model_reset(&top->model);
	return true;
}

static enum recording_live on_live(void *ctx, const struct profile *p,
				   const struct recorder_stats *stats)
{
	struct top *top = ctx;
	enum top_action action = top->screen ? top_screen_keys(top->screen) : TOP_ACTION_NONE;
	bool due = is_time(top, stats), cut;
	char status[200];

	if (action == TOP_ACTION_QUIT)
		return RECORDING_STOP;
	cut = obey(top, action, stats);
	/* Not what it took to begin, unless there was no time to look before the first update. */
	if (!top->is_begun && !due && !busy_look(&top->looked))
		top->looked.at_ns = 0;
	top->is_begun = true;
	if (!cut && due && !top->was_paused)
		top->error = update(top, p, stats);
	if (due)
		top->shown_ns = now_ns();
	if (!top->error && top->screen) {
		format_status(top, stats, status, sizeof(status));
		top->error = top_screen_draw(top->screen, &top->model, status);
	} else if (!top->error && due) {
		top->error = print_plain(top, stats);
	}
	if (top->error || (top->options.batch && top->nr_printed >= top->options.batch))
		return RECORDING_STOP;
	return cut || due ? RECORDING_CUT : RECORDING_GO_ON;
}

static int show(struct top *top)
{
	_cleanup_(profile_fini) struct profile profile = { 0 };
	const struct top_options *o = &top->options;
	struct recorder_stats stats = { 0 };
	struct recording_options options = {
		.recorder = sampling_recorder_options(&o->sampling),
		.pids = o->pids.pids,
		.nr_pids = o->pids.nr,
		.live = on_live,
		.live_ctx = top,
		.live_ms = LIVE_MS,
		.live_fd = o->batch ? -1 : STDIN_FILENO,
	};
	int r;

	options.recorder.symbolizer.short_names = top->short_names;
	options.recorder.selection = &top->selection;
	r = profile_init(&profile);
	if (!r)
		r = top_model_init(&top->model);
	if (r)
		return log_err(r, "cannot begin");
	if (!o->batch) {
		r = top_screen_open(&top->screen);
		if (r)
			return log_err(r,
				       "cannot use this terminal (TERM=%s); -b N prints plain "
				       "tables",
				       getenv("TERM") ? getenv("TERM") : "");
	}
	look(top, &stats);
	r = recording_run(&options, &profile, &stats, NULL);
	top_screen_close(TAKE_PTR(top->screen));
	if (!r && top->stdout_failed) {
		/* It has been said, and what is left of the table is not tried again at the end. */
		__fpurge(stdout);
		clearerr(stdout);
		return log_err(top->error, "cannot write to standard output");
	}
	if (!r && top->error)
		return log_err(top->error, "cannot show what runs");
	return r;
}

static int top_run(int argc, char **argv)
{
	_cleanup_(top_fini) struct top top = { 0 };

	if (parse(argc, argv, &top) < 0)
		return EXIT_USAGE;
	if (top.options.help) {
		help_print_command(&command_top, stdout);
		return EXIT_OK;
	}
	if (top.options.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	if (prepare(&top.options) < 0)
		return EXIT_ERROR;
	return show(&top) < 0 ? EXIT_ERROR : EXIT_OK;
}

const struct command command_top = {
	.name = "top",
	.summary = "show live which functions, processes and threads take the CPUs",
	.usage = "[OPTIONS]",
	.description =
		"Samples the machine (or -p PIDs) until q or Ctrl-C and shows a table that follows "
		"it:\n"
		"in how many of the samples of the last seconds each function ran itself (self), "
		"and "
		"in\n"
		"how many it or something that it called did (total). Older samples fade, with a "
		"half-life\n"
		"of 3 seconds.\n"
		"\n"
		"Keys: f, p, t or Tab: by function, process, thread. s: sort by self, total, name. "
		"k: user\n"
		"and kernel, user only, kernel only. /: filter by a part of the name, Esc: all. "
		"Space:\n"
		"pause. r: begin anew. Arrows and page keys: scroll. ?: help. q: quit.\n"
		"\n"
		"With -b N it prints N plain tables and ends, for scripts and pipes.\n",
	.options = top_specs,
	.run = top_run,
};
