// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde stack`: what every thread of a live process does at this moment. The work is
 * snapshot/live_stacks.h's; here is what can be wrong with a PID, and the printing.
 */
#include "cli/command.h"

#include "snapshot/live_stacks.h"
#include "snapshot/task_iter.h"
#include "replay/replay_live.h"
#include "cli/names.h"
#include "cli/target.h"
#include "cli/term.h"
#include "cli/thread_print.h"
#include "process/proc_stat.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* Names from large debug information can wait for the next time: somebody looks at the screen. */
enum { NAMES_PATIENCE_MS = 10000 };

struct stack_options {
	struct pid_list pids;
	const char *names, *replay_dir;
	uint32_t max_frames;
	struct runtime_names_options runtimes;
	bool json, no_inlines, no_kernel, verbose, help;
	bool without_bpf, without_events;
	const struct thread_observer *observer; /* replay_dir's, or NULL */
};

#define AT(member) .offset = offsetof(struct stack_options, member)

_Static_assert(SAMPLE_FRAMES_MAX == 8192, "--max-frames' help says so");

static const struct option_spec stack_specs[] = {
	{ 'p', "pid", "PID", NULL, "another way to name PID", OPTION_PIDS, AT(pids) },
	{ 0, "json", NULL, NULL, "print JSON", OPTION_FLAG, AT(json) },
	{ 0, "no-inlines", NULL, NULL, "leave inlined functions out", OPTION_FLAG, AT(no_inlines) },
	{ 0, "names", "full|short", "full",
	  "C++, Rust, D, Swift: with parameters and template arguments, or without", OPTION_STRING,
	  AT(names) },
	NAMES_RUNTIME_OPTIONS(AT, runtimes),
	{ 0, "max-frames", "N", "8192", "user frames of a stack, at most 8192; longer ones are cut",
	  OPTION_NUMBER, AT(max_frames), .min = 1, .max = SAMPLE_FRAMES_MAX },
	{ 0, "no-kernel", NULL, NULL, "leave kernel frames out", OPTION_FLAG, AT(no_kernel) },
	{ 'v', "verbose", NULL, NULL, "tell more on standard error", OPTION_FLAG, AT(verbose) },
	{ 'h', "help", NULL, NULL, "print this", OPTION_FLAG, AT(help) },
	{ 0, "replay-dir", "DIR", NULL, "keep the walks here as replay cases", OPTION_STRING,
	  AT(replay_dir), .hidden = true },
	{ 0, "without-bpf", NULL, NULL, "as a user who may not load BPF", OPTION_FLAG,
	  AT(without_bpf), .hidden = true },
	{ 0, "without-events", NULL, NULL, "as a user who may not use perf events", OPTION_FLAG,
	  AT(without_events), .hidden = true },
	OPTIONS_END,
};

/* --- the process ----------------------------------------------------------------------------- */

static int parse_pid(const char *text, int32_t *ret)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || end == text || *end || pid <= 0 || pid > INT32_MAX) {
		log_error("'%s' is no PID: give the number of one process ('pgrep NAME' tells "
			  "those of a name); see 'sonde help stack'",
			  text);
		return -EINVAL;
	}
	*ret = (int32_t)pid;
	return 0;
}

/* By -p, or as it is. Logging. */
static int choose_pid(const struct stack_options *o, int argc, char **argv, int32_t *ret)
{
	if (o->pids.nr + (size_t)argc != 1) {
		log_error("give one PID: 'sonde stack PID'; see 'sonde help stack'");
		return -EINVAL;
	}
	if (argc)
		return parse_pid(argv[0], ret);
	*ret = o->pids.pids[0];
	return 0;
}

/* The process that `tid` is a thread of; 0 if that can't be told. */
static int32_t process_of(int32_t tid)
{
	_cleanup_free_ char *status = NULL;
	const char *line;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", tid);
	if (read_file_at(AT_FDCWD, path, 65536, &status, NULL) < 0)
		return 0;
	line = strstr(status, "\nTgid:");
	return line ? (int32_t)strtol(line + strlen("\nTgid:"), NULL, 10) : 0;
}

/* Logging. */
static int check_process(int32_t pid, bool *ret_is_kernel)
{
	struct proc_stat stat;
	int r = proc_stat_read(pid, &stat);
	int32_t tgid;

	if (r == -ESRCH) {
		log_error("there is no process %d; 'ps -e' lists those that run", pid);
		return r;
	}
	if (r)
		return log_err(r, "cannot read what process %d is", pid);
	tgid = process_of(pid);
	if (tgid > 0 && tgid != pid) {
		log_error("%d is a thread of process %d; 'sonde stack %d' shows it among the "
			  "others",
			  pid, tgid, tgid);
		return -ESRCH;
	}
	if (proc_stat_is_over(&stat)) {
		log_error("process %d has already ended (it is a zombie): its parent, process %d, "
			  "has not asked for its exit status",
			  pid, stat.parent_pid);
		return -ESRCH;
	}
	*ret_is_kernel = proc_stat_is_kernel_thread(&stat);
	return 0;
}

/* Logging. */
static int explain(int r, int32_t pid, bool is_kernel)
{
	if (is_kernel && (r == -EPERM || r == -EACCES))
		log_error("%d is a thread of the kernel: only root can see its stack", pid);
	else if (r == -EPERM || r == -EACCES)
		target_tell_forbidden(pid);
	else if (r == -ESRCH)
		log_error("process %d ended while its stacks were read", pid);
	else
		log_err(r, "cannot read the stacks of process %d", pid);
	return r;
}

/* --- printing -------------------------------------------------------------------------------- */

static const char *state_name(char state)
{
	static const struct {
		char letter;
		const char *name;
	} names[] = {
		{ 'R', "running" },	 { 'S', "sleeping" }, { 'D', "disk sleep" },
		{ 'T', "stopped" },	 { 'Z', "zombie" },   { 'X', "dead" },
		{ 't', "tracing stop" }, { 'I', "idle" },     { 'P', "parked" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].letter == state)
			return names[i].name;
	return NULL;
}

static int fill_entries(const struct live_stacks *s, struct thread_entry **ret)
{
	struct thread_entry *entries = calloc(s->threads.nr ? s->threads.nr : 1, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < s->threads.nr; i++) {
		const struct live_stack *t = &s->threads.items[i];

		entries[i] = (struct thread_entry){ .tid = t->tid,
						    .name = t->name,
						    .virtual_name = t->virtual_name,
						    .state = state_name(t->state),
						    .stack = t->stack,
						    .problem = t->problem };
	}
	*ret = entries;
	return 0;
}

static const char *why_no_kernel_frames(void)
{
	return task_iter_knows_pids()
		       ? "no kernel frames of threads that wait: these take root and BPF"
		       : "no kernel frames of threads that wait: BPF gives them, but not in a PID "
			 "namespace of its own, as a container's";
}

static int print(const struct stack_options *o, int32_t pid, bool is_kernel,
		 const struct live_stacks *s, const struct profile *profile)
{
	_cleanup_free_ struct thread_entry *entries = NULL;
	bool no_kernel_frames = !o->no_kernel && !s->by_bpf;
	char head[128], extra[64];
	const char *headlines[3] = { head };
	struct thread_report report = { .profile = profile,
					.nr_threads = s->threads.nr,
					.headlines = headlines,
					.nr_headlines = 1 };
	int r = fill_entries(s, &entries);

	if (r)
		return r;
	report.threads = entries;
	snprintf(head, sizeof(head), "%s %" PRId32 " (%s), %zu thread%s",
		 is_kernel ? "kernel thread" : "process", pid,
		 s->threads.nr ? s->threads.items[0].name : "", s->threads.nr,
		 s->threads.nr == 1 ? "" : "s");
	if (no_kernel_frames)
		headlines[report.nr_headlines++] = why_no_kernel_frames();
	if (s->capped)
		headlines[report.nr_headlines++] = "there are more threads than are shown";
	snprintf(extra, sizeof(extra), "\"pid\":%" PRId32 ",\"kernel_frames\":%s", pid,
		 o->no_kernel || no_kernel_frames ? "false" : "true");
	return o->json ? thread_print_json(&report, extra, stdout)
		       : thread_print_text(&report, stdout);
}

/* --- the command ----------------------------------------------------------------------------- */

static bool show_names_progress(void *ctx, const struct symbol_progress *progress)
{
	bool *shown = ctx;

	*shown |= names_print_progress(progress);
	return true;
}

static int take_and_print(const struct stack_options *o, int32_t pid, bool is_kernel,
			  bool short_names, struct profile *profile)
{
	_cleanup_(live_stacks_fini) struct live_stacks stacks;
	bool progress_shown = false;
	const struct symbolizer_options symbolizer = {
		.no_inlines = o->no_inlines,
		.short_names = short_names,
		.runtimes = o->runtimes,
		.builder = names_builder,
		.patience_ms = NAMES_PATIENCE_MS,
		.progress = term_width(stderr) ? show_names_progress : NULL,
		.progress_ctx = &progress_shown,
	};
	const struct live_options options = {
		.pid = pid,
		.kernel = !o->no_kernel,
		.max_frames = o->max_frames,
		.symbolizer = &symbolizer,
		.observer = o->observer,
		.without_bpf = o->without_bpf,
		.without_events = o->without_events,
	};
	int r = live_stacks_take(&stacks, &options, profile);

	if (r)
		return explain(r, pid, is_kernel);
	r = decoder_name_all(&stacks.walker.decoder);
	if (progress_shown)
		fputs("\r\033[K", stderr);
	if (!r)
		r = print(o, pid, is_kernel, &stacks, profile);
	return r ? log_err(r, "cannot show the stacks of process %d", pid) : 0;
}

static int stack_run(int argc, char **argv)
{
	_cleanup_(replay_live_free_p) struct replay_live *replay = NULL;
	_cleanup_(profile_fini) struct profile profile = { 0 };
	struct thread_observer observer;
	struct stack_options o = { 0 };
	bool short_names, is_kernel = false;
	int first, r;
	int32_t pid;

	if (options_parse(stack_specs, "stack", argc, argv, &o, &first) < 0)
		return EXIT_USAGE;
	if (o.help) {
		help_print_command(&command_stack, stdout);
		return EXIT_OK;
	}
	if (o.verbose)
		log_set_level(LOG_LEVEL_DEBUG);
	if (names_style(o.names, &short_names))
		return EXIT_USAGE;
	if (choose_pid(&o, argc - first, argv + first, &pid))
		return EXIT_USAGE;
	if (check_process(pid, &is_kernel))
		return EXIT_ERROR;
	if (o.replay_dir) {
		r = replay_live_open(o.replay_dir, &replay);
		if (r) {
			log_err(r, "cannot keep replay cases in %s", o.replay_dir);
			return EXIT_ERROR;
		}
		observer = replay_live_observer(replay);
		o.observer = &observer;
	}
	r = profile_init(&profile);
	if (r)
		log_err(r, "cannot begin");
	else
		r = take_and_print(&o, pid, is_kernel, short_names, &profile);
	return r ? EXIT_ERROR : EXIT_OK;
}

const struct command command_stack = {
	.name = "stack",
	.summary = "show the stack of every thread of a live process",
	.usage = "[OPTIONS] PID",
	.description =
		"Prints name, state and stack of every thread of process PID, innermost frame "
		"first. The\n"
		"process runs on: threads that wait are read without being touched, one that works "
		"is caught\n"
		"by an event on it, and if that is not allowed, by stopping it for less than a "
		"millisecond.\n"
		"As root, the kernel's part of each stack is shown too; everybody can look at own "
		"processes.\n",
	.options = stack_specs,
	.run = stack_run,
};
