// SPDX-License-Identifier: Apache-2.0
#include "record/recording.h"

#include "record/command.h"
#include "record/program.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

enum {
	SAY_AFTER_NS = 1000000000,
	PROGRESS_NS = 200000000,
	PROGRESS_MAX_NS = 1000000000, /* also while nothing else happens */
	EARLY_NS = 20000000,	      /* a step that is so early is as good as the next one */
	HOUR_MS = 3600000,
};
#define HOUR_NS (HOUR_MS * UINT64_C(1000000))

struct recording {
	const struct recording_options *options;
	struct profile *profile;
	struct recorder *recorder;
	struct command *command;
	int epoll_fd, signal_fd;
	uint64_t begin_ns;	  /* of looking at what runs */
	uint64_t start_ns;	  /* of sampling */
	uint64_t progress_ns;	  /* when it was shown last */
	uint64_t live_ns;	  /* when `live` was called last */
	unsigned int interrupted; /* by the terminal, while COMMAND ran */
	bool said_busy;
	bool stopping;
};

/* --- signals ---------------------------------------------------------------------------------- */

static void on_signal(struct recording *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	/* The terminal sent it to the command as well: its end is the recording's. */
	if (s->command && info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL &&
	    !s->interrupted++)
		return;
	if (s->command)
		command_kill(s->command, (int)info.ssi_signo);
	s->stopping = true;
}

/* While symbols are read at the end: a signal is for what is left of it. */
static bool wait_for_names(void *ctx, const struct symbol_progress *progress)
{
	const struct symbolizer_options *symbolizer;
	struct signalfd_siginfo info;
	struct recording *s = ctx;

	symbolizer = &s->options->recorder.symbolizer;
	if (symbolizer->progress && !symbolizer->progress(symbolizer->progress_ctx, progress))
		return false;
	return read(s->signal_fd, &info, sizeof(info)) != sizeof(info);
}

/* --- before the first sample ------------------------------------------------------------------ */

static int set_up_loop(struct recording *s)
{
	const struct recording_options *o = s->options;
	sigset_t signals;
	int err;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (o->live) { /* its terminal has to be given back */
		sigaddset(&signals, SIGHUP);
		sigaddset(&signals, SIGQUIT);
	}
	sigprocmask(SIG_BLOCK, &signals, NULL);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	err = s->epoll_fd < 0 || s->signal_fd < 0 ? -errno : loop_watch(s->epoll_fd, s->signal_fd);
	if (!err)
		err = loop_watch(s->epoll_fd, recorder_fd(s->recorder));
	if (!err && s->command)
		err = loop_watch(s->epoll_fd, command_fd(s->command));
	if (!err && o->live && o->live_fd >= 0)
		err = loop_watch(s->epoll_fd, o->live_fd);
	return err ? log_err(err, "cannot set up the event loop") : 0;
}

static int choose_pids(struct recording *s)
{
	const struct recording_options *o = s->options;
	size_t nr_ended = 0;
	int err = 0;

	for (size_t i = 0; i < o->nr_pids && !err; i++) {
		err = recorder_add_target(s->recorder, o->pids[i]);
		if (err != -ESRCH)
			continue;
		err = ++nr_ended == o->nr_pids ? log_err(err, "process %d", o->pids[i]) : 0;
		if (!err)
			log_warn("process %d has ended before the recording began", o->pids[i]);
	}
	return err;
}

/* The user's news, while processes are looked at. */
static bool go_on(void *ctx)
{
	struct recording *s = ctx;

	on_signal(s);
	if (!s->said_busy && now_ns() > s->begin_ns + SAY_AFTER_NS) {
		s->said_busy = true;
		if (!s->options->live)
			log_info("the machine is busy: reading what runs before the recording "
				 "begins ...");
	}
	return !s->stopping;
}

static int start(struct recording *s)
{
	size_t left;
	int err;

	s->begin_ns = now_ns();
	if (s->command)
		recorder_expect_runtimes(s->recorder, runtimes_of_command(s->options->command));
	err = recorder_start(s->recorder, go_on, s, &left);
	if (!err && left && !s->stopping && !s->options->live)
		log_info("%zu of the processes that run were not read in time: their first samples "
			 "lack the frames of Python, Java and the like",
			 left);
	s->start_ns = s->live_ns = s->progress_ns = now_ns();
	if (!err && s->command)
		err = command_start(s->command);
	return err;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void show_live(struct recording *s)
{
	const struct recording_options *o = s->options;

	recorder_name(s->recorder);
	s->live_ns = now_ns();
	switch (o->live(o->live_ctx, s->profile, recorder_stats(s->recorder))) {
	case RECORDING_GO_ON:
		break;
	case RECORDING_CUT:
		recorder_next_cut(s->recorder);
		break;
	case RECORDING_STOP:
		s->stopping = true;
	}
}

static void on_ready(struct recording *s, const struct epoll_event *event)
{
	const struct recording_options *o = s->options;

	if (event->data.fd == s->signal_fd)
		on_signal(s);
	else if (s->command && event->data.fd == command_fd(s->command))
		s->stopping = true;
	else if (o->live && event->data.fd == o->live_fd && event->events & (EPOLLHUP | EPOLLERR))
		s->stopping = true; /* a terminal that is gone can be read, too, without end */
	else if (o->live && event->data.fd == o->live_fd)
		show_live(s);
}

/* Milliseconds until the clock has something for us; -1: nothing. The recorder wakes us now and
 * then anyway, which will do for everything else. */
static int until_clock(const struct recording *s)
{
	const struct recording_options *o = s->options;
	uint64_t at = UINT64_MAX, now = now_ns();

	if (o->duration_s > 0)
		at = s->start_ns + (uint64_t)(o->duration_s * 1e9);
	if (o->live && s->live_ns + (uint64_t)o->live_ms * 1000000 < at)
		at = s->live_ns + (uint64_t)o->live_ms * 1000000;
	if (o->progress && s->progress_ns + PROGRESS_MAX_NS < at)
		at = s->progress_ns + PROGRESS_MAX_NS;
	if (at == UINT64_MAX)
		return -1;
	return at <= now ? 0 : at - now > HOUR_NS ? HOUR_MS : (int)((at - now) / 1000000) + 1;
}

static void look_at_clock(struct recording *s)
{
	const struct recording_options *o = s->options;
	uint64_t now = now_ns();

	if (o->live && now + EARLY_NS >= s->live_ns + (uint64_t)o->live_ms * 1000000)
		show_live(s);
	if (o->progress && now + EARLY_NS >= s->progress_ns + PROGRESS_NS) {
		s->progress_ns = now;
		o->progress(o->progress_ctx, recorder_stats(s->recorder));
	}
	if (o->duration_s > 0 && (double)(now - s->start_ns) / 1e9 >= o->duration_s)
		s->stopping = true;
	/* All that was to be recorded has ended. */
	if (o->nr_pids && !recorder_nr_targets(s->recorder)) {
		if (o->live && !s->stopping)
			log_info("all processes of -p have ended");
		s->stopping = true;
	}
	if (s->command && command_has_ended(s->command))
		s->stopping = true;
}

static int loop(struct recording *s)
{
	struct epoll_event events[8];

	while (!s->stopping) {
		int n = epoll_wait(s->epoll_fd, events, 8, until_clock(s));

		if (n < 0 && errno != EINTR)
			return log_err(-errno, "cannot wait for events");
		recorder_step(s->recorder);
		for (int i = 0; i < n; i++)
			on_ready(s, &events[i]);
		if (!s->stopping)
			look_at_clock(s);
	}
	return 0;
}

/* --- from start to end ------------------------------------------------------------------------ */

static int record(struct recording *s)
{
	const struct recording_options *o = s->options;
	struct recorder_options options = o->recorder;
	int err;

	options.targets_only = o->nr_pids || (o->command && !o->whole);
	options.memory_at_end = true; /* nobody is shown it before */
	options.symbolizer.progress = wait_for_names;
	options.symbolizer.progress_ctx = s;
	err = recorder_open(&options, s->profile, &s->recorder);
	if (err)
		return err;
	err = s->command && !o->whole
		      ? recorder_add_target_of_exec(s->recorder, (int32_t)command_pid(s->command))
		      : choose_pids(s);
	if (!err)
		err = set_up_loop(s);
	if (!err)
		err = start(s);
	if (!err)
		err = loop(s);
	recorder_stop(s->recorder);
	if (err)
		return err;
	if (o->live) {
		recorder_name(s->recorder);
		return 0;
	}
	return recorder_name_all(s->recorder);
}

int recording_run(const struct recording_options *options, struct profile *profile,
		  struct recorder_stats *ret_stats, int *ret_command_status)
{
	struct recording s = {
		.options = options, .profile = profile, .epoll_fd = -1, .signal_fd = -1
	};
	int err = 0, status = 0;

	*ret_stats = (struct recorder_stats){ 0 };
	/* Before anything else, so that the child inherits no descriptors of ours. */
	if (options->command)
		err = command_prepare(options->command, &s.command);
	if (!err)
		err = record(&s);
	if (s.recorder)
		*ret_stats = *recorder_stats(s.recorder);
	/* Nothing of ours stays in the kernel while a command is waited for that outlives -d. */
	recorder_free(s.recorder);
	close_p(&s.epoll_fd);
	close_p(&s.signal_fd);
	if (!err && s.command)
		err = command_wait(s.command, &status);
	command_free(s.command);
	if (!err && ret_command_status)
		*ret_command_status = status;
	return err;
}
