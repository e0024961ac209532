// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include "agent/report.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>

/* Between two messages that a report cannot be delivered. */
#define SAY_AGAIN_NS UINT64_C(60000000000)

struct agent {
	const struct agent_options *options;
	struct profile profile;
	struct recorder *recorder;
	struct output_dir *output;
	struct agent_stats stats;
	int epoll_fd, signal_fd, report_fd; /* a timer: the next report */
	uint64_t said_ns;		    /* that a report failed; 0: not since one did not */
	int error;			    /* of the last report */
	bool started, stopping;
};

static void agent_fini(struct agent *a)
{
	recorder_free(a->recorder);
	profile_fini(&a->profile);
	output_dir_free(a->output);
	close_p(&a->epoll_fd);
	close_p(&a->signal_fd);
	close_p(&a->report_fd);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void on_failure(struct agent *a, int r, uint64_t samples)
{
	uint64_t now = now_ns();

	a->stats.failed_reports++;
	a->stats.failed_samples += samples;
	if (a->said_ns && now < a->said_ns + SAY_AGAIN_NS)
		return;
	a->said_ns = now;
	log_err(r,
		"cannot write a report into '%s': %" PRIu64 " lost so far, with %" PRIu64
		" samples",
		a->options->output_dir, a->stats.failed_reports, a->stats.failed_samples);
}

static void deliver(struct agent *a, const struct report *report)
{
	a->error = output_dir_put(a->output, report->data, report->size);
	if (a->error) {
		on_failure(a, a->error, report->samples);
		return;
	}
	if (a->said_ns)
		log_info("reports can be written into '%s' again", a->options->output_dir);
	a->said_ns = 0;
	a->stats.reports++;
	a->stats.bytes += report->size;
	a->stats.samples += report->samples;
	log_debug("report %" PRIu64 ": %" PRIu64 " samples, %zu bytes", a->stats.reports,
		  report->samples, report->size);
}

/* A cut in which nothing ran has nothing to tell. */
static void report_cut(struct agent *a)
{
	uint64_t samples = profile_total(&a->profile);
	struct report report;

	if (!samples)
		return;
	recorder_name(a->recorder);
	a->error = report_make(&a->profile, &report);
	if (a->error) {
		on_failure(a, a->error, samples);
		return;
	}
	deliver(a, &report);
	report_fini(&report);
}

static int set_report_timer(struct agent *a)
{
	const struct agent_options *o = a->options;
	uint32_t random = UINT32_MAX / 2;
	double part;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		log_debug("no random numbers: this report comes without jitter");
	part = 1 + o->jitter * (2 * ((double)random / UINT32_MAX) - 1);
	return loop_set_timer(a->report_fd, 0, (uint64_t)(o->interval_s * part * 1e9) + 1);
}

static int on_report_time(struct agent *a)
{
	uint64_t expirations;

	if (read(a->report_fd, &expirations, sizeof(expirations)) < 0)
		return errno == EAGAIN ? 0 : -errno;
	report_cut(a);
	recorder_next_cut(a->recorder);
	return set_report_timer(a);
}

/* --- signals ---------------------------------------------------------------------------------- */

static void tell(struct agent *a)
{
	if (!a->started) {
		log_info("the agent is about to begin");
		return;
	}
	a->stats.output = output_dir_stats(a->output);
	a->options->tell(recorder_stats(a->recorder), &a->stats);
}

static void on_signals(struct agent *a)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			tell(a);
		else
			a->stopping = true;
	}
}

static bool go_on(void *ctx)
{
	struct agent *a = ctx;

	on_signals(a);
	return !a->stopping;
}

/* --- from start to end ------------------------------------------------------------------------ */

static int set_up_loop(struct agent *a)
{
	int err;

	a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	a->report_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = a->epoll_fd < 0 || a->report_fd < 0 ? -errno : 0;
	if (!err)
		err = loop_watch(a->epoll_fd, a->signal_fd);
	if (!err)
		err = loop_watch(a->epoll_fd, a->report_fd);
	if (!err)
		err = loop_watch(a->epoll_fd, recorder_fd(a->recorder));
	return err;
}

/* First of all: what is told to end while it begins does so in order. */
static int hear_signals(struct agent *a)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 };
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaddset(&signals, numbers[i]);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	a->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signal_fd < 0 ? -errno : 0;
}

static int loop(struct agent *a)
{
	struct epoll_event events[4];

	while (!a->stopping) {
		int n = epoll_wait(a->epoll_fd, events, 4, -1), r = 0;

		if (n < 0 && errno != EINTR)
			return -errno;
		/* Whatever woke us: a cut has all samples that were taken before it. */
		recorder_step(a->recorder);
		for (int i = 0; i < n && !r; i++) {
			if (events[i].data.fd == a->signal_fd)
				on_signals(a);
			else if (events[i].data.fd == a->report_fd)
				r = on_report_time(a);
		}
		if (r)
			return r;
	}
	return 0;
}

static int begin(struct agent *a)
{
	struct recorder_options options = a->options->recorder;
	size_t left;
	int r;

	options.keep_events = true;
	r = recorder_open(&options, &a->profile, &a->recorder);
	if (r)
		return r;
	r = set_up_loop(a);
	if (r)
		return log_err(r, "cannot set up the event loop");
	r = recorder_start(a->recorder, go_on, a, &left);
	if (r)
		return r;
	a->started = true;
	log_info("the agent samples at %u Hz and reports every %g s into '%s'",
		 options.frequency_hz, a->options->interval_s, a->options->output_dir);
	r = set_report_timer(a);
	return r ? log_err(r, "cannot set a timer") : 0;
}

int agent_run(const struct agent_options *options)
{
	_cleanup_(agent_fini) struct agent a = {
		.options = options, .epoll_fd = -1, .signal_fd = -1, .report_fd = -1
	};
	int r = hear_signals(&a);

	if (!r)
		r = profile_init(&a.profile);
	if (r)
		return log_err(r, "cannot begin");
	r = output_dir_open(options->output_dir, options->output_dir_bytes, &a.output);
	if (!r)
		r = begin(&a);
	if (r)
		return r;
	r = loop(&a);
	if (r)
		log_err(r, "the agent ends: cannot wait for events");
	recorder_stop(a.recorder);
	report_cut(&a);
	tell(&a);
	return r ? r : a.error;
}
