// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include "agent/metrics.h"
#include "agent/notify.h"
#include "agent/report.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/jitter.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/start_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

/* For a request to /metrics to come, and for its answer to be taken. */
#define HTTP_TIMEOUT_NS UINT64_C(10000000000)

/* Between two messages of a kind. */
#define SAY_AGAIN_NS UINT64_C(60000000000)

struct agent {
	const struct agent_options *options;
	struct profile profile;
	struct recorder *recorder;
	struct sender *sender;
	struct notify manager;
	struct http_server *http; /* or NULL */
	struct agent_stats stats;
	struct probability probability;
	bool switch_again; /* not all clocks were switched as they should be */
	int epoll_fd, signal_fd;
	int report_fd; /* a timer: the next report */
	int draw_fd;   /* another: the next interval, of which is drawn if it is profiled; or -1 */
	int clock_fd;  /* one that never expires: whether somebody has set the wall clock; or -1 */
	int error;     /* of making the last report */
	uint64_t said_nameless_ns; /* 0: never */
	bool started, stopping, reload;
	uint64_t stop_ns; /* when that was said */
	bool *ret_in_use;
};

static void agent_fini(struct agent *a)
{
	recorder_free(a->recorder);
	profile_fini(&a->profile);
	*a->ret_in_use = !sender_free(a->sender);
	http_server_free(a->http);
	notify_close(&a->manager);
	close_p(&a->epoll_fd);
	close_p(&a->signal_fd);
	close_p(&a->report_fd);
	close_p(&a->draw_fd);
	close_p(&a->clock_fd);
}

/* --- reports ---------------------------------------------------------------------------------- */

struct reporting {
	struct agent *agent;
	uint64_t samples; /* that are in reports */
};

static void put_report(void *ctx, struct report *report)
{
	struct reporting *reporting = ctx;

	reporting->samples += report->samples;
	if (report->nameless)
		reporting->agent->stats.nameless += report->samples;
	reporting->agent->stats.oversized +=
		report->plain_size > reporting->agent->options->report.max_size;
	sender_put(reporting->agent->sender, report);
}

/* Of any type. */
static bool has_samples(const struct profile *p)
{
	for (uint32_t type = 0; type < profile_nr_types(p); type++)
		if (profile_cut_of(p, type)->samples.nr)
			return true;
	return false;
}

/* Of which runtimes the samples are. */
static void count_cut(struct agent *a)
{
	const struct profile *p = &a->profile;

	a->stats.cuts++;
	a->stats.untimed_cuts += p->cut.events_dropped;
	for (size_t i = 0; i < p->cut.samples.nr; i++) {
		const struct profile_sample *sample = &p->cut.samples.items[i];
		const struct profile_stack *stack = &p->stacks.items[sample->stack];
		uint32_t kinds = 0;

		for (uint32_t k = 0; k < stack->nr; k++) {
			uint16_t kind =
				p->frames.items[p->stack_frames.items[stack->first + k]].kind;

			if (kind >= FRAME_KIND_MAX_)
				continue;
			a->stats.kind_frames[kind] += sample->count;
			if (!(kinds & 1u << kind))
				a->stats.kind_samples[kind] += sample->count;
			kinds |= 1u << kind;
		}
	}
}

/* Once a minute: who makes them does so in each report. */
static void tell_of_nameless(struct agent *a, uint64_t samples)
{
	uint64_t now = now_ns();

	if (!samples || (a->said_nameless_ns && now < a->said_nameless_ns + SAY_AGAIN_NS))
		return;
	a->said_nameless_ns = now;
	log_warn("%" PRIu64 " samples of a report have no names of functions: those of a user's "
		 "processes take more than his share of it",
		 samples);
}

/* A cut in which nothing ran has nothing to tell. */
static void report_cut(struct agent *a)
{
	struct reporting reporting = { .agent = a };
	uint64_t lost, before = a->stats.nameless;

	if (!has_samples(&a->profile))
		return;
	recorder_name(a->recorder);
	count_cut(a);
	a->error = report_make(&a->profile, &a->options->report, put_report, &reporting);
	tell_of_nameless(a, a->stats.nameless - before);
	if (!a->error)
		return;
	lost = profile_total(&a->profile) - reporting.samples;
	a->stats.unmade_reports++;
	a->stats.unmade_samples += lost;
	log_err(a->error, "cannot make a report of %" PRIu64 " samples", lost);
}

static void tell_what_it_does(const struct agent *a)
{
	const struct agent_options *o = a->options;

	log_info("the agent samples at %u Hz and reports every %g s %s '%s'",
		 o->recorder.frequency_hz, o->interval_s, o->sender.output_dir ? "into" : "to",
		 o->sender.place);
}

static int tell_attributes(struct agent *a)
{
	const struct agent_options *o = a->options;
	struct profile_host *host = &a->profile.host;
	int r = profile_string(&a->profile, o->service ? o->service : "", &host->service);

	return r ? r
		 : profile_string(&a->profile, o->attributes ? o->attributes : "",
				  &host->attributes);
}

static int set_report_timer(struct agent *a)
{
	const struct agent_options *o = a->options;

	return loop_set_timer(a->report_fd, 0,
			      (uint64_t)(o->interval_s * jitter(o->jitter) * 1e9) + 1);
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

/* --- probabilistic profiling ------------------------------------------------------------------ */

/* Whether this interval is profiled. */
static bool draw(struct agent *a)
{
	uint32_t number = probability_draw(&a->probability);
	bool chosen = probability_chooses(&a->probability, number);

	a->stats.intervals[chosen]++;
	log_debug("probabilistic profiling: %u was drawn, the threshold is %u", number,
		  a->probability.options.threshold);
	return chosen;
}

static void tell_profiling(const struct agent *a)
{
	log_info("probabilistic profiling: the CPUs are %ssampled from now on",
		 a->stats.profiling ? "" : "not ");
}

/* A report is of intervals that were chosen, or of others: it ends where that changes. */
static void set_profiling(struct agent *a, bool on)
{
	uint64_t before = clock_ns(CLOCK_REALTIME);
	int r;

	if (on) {
		report_cut(a);
		recorder_next_cut(a->recorder);
		before = clock_ns(CLOCK_REALTIME);
	}
	r = recorder_pause(a->recorder, !on);
	if (!on) {
		recorder_step(a->recorder);
		report_cut(a);
		recorder_next_cut(a->recorder);
	}
	if (r)
		log_warn("not all CPUs' clocks could be switched %s: %s", on ? "on" : "off",
			 strerror(-r));
	a->stats.profiling = on;
	a->switch_again = r != 0;
	tell_profiling(a);
	log_debug("the clocks were switched %s from %" PRIu64 " to %" PRIu64 " ns",
		  on ? "on" : "off", before, clock_ns(CLOCK_REALTIME));
}

static int set_draw_timer(struct agent *a)
{
	return loop_set_timer(a->draw_fd, 0, (uint64_t)(a->probability.options.interval_s * 1e9));
}

static int on_draw_time(struct agent *a)
{
	uint64_t expirations;
	bool on;

	if (read(a->draw_fd, &expirations, sizeof(expirations)) < 0)
		return errno == EAGAIN ? 0 : -errno;
	on = draw(a);
	if (on != a->stats.profiling)
		set_profiling(a, on);
	else if (a->switch_again)
		a->switch_again = recorder_pause(a->recorder, !on) != 0;
	return set_draw_timer(a);
}

/* Before the first sample. */
static int begin_probability(struct agent *a)
{
	const struct probability_options *o = &a->options->probability;
	int r;

	a->stats.profiling = true;
	if (o->threshold >= PROBABILITY_ALWAYS)
		return 0;
	probability_init(&a->probability, o);
	a->draw_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->draw_fd < 0)
		return -errno;
	r = loop_watch(a->epoll_fd, a->draw_fd);
	if (!r)
		r = set_draw_timer(a);
	a->stats.profiling = draw(a);
	if (!r && !a->stats.profiling)
		r = recorder_pause(a->recorder, true);
	if (!r)
		tell_profiling(a);
	return r;
}

/* --- the wall clock --------------------------------------------------------------------------- */

/*
 * A report has one wall clock, so it ends where somebody sets that, or where the machine wakes up:
 * CLOCK_MONOTONIC, by which samples are timed, has stood still meanwhile.
 */
static int on_clock_set(struct agent *a)
{
	uint64_t expirations;

	if (read(a->clock_fd, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED)
		return 0;
	log_info("the wall clock was set: a new report begins");
	report_cut(a);
	recorder_next_cut(a->recorder);
	return set_report_timer(a);
}

/* Without it a report's times are wrong from there to its end, those of the next one right. */
static void watch_clock(struct agent *a)
{
	const struct itimerspec never = { .it_value.tv_sec = INT64_C(9000000000) };

	a->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->clock_fd >= 0 &&
	    !timerfd_settime(a->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never,
			     NULL) &&
	    !loop_watch(a->epoll_fd, a->clock_fd))
		return;
	log_debug("cannot hear of it when the wall clock is set: %s", strerror(errno));
	close_p(&a->clock_fd);
	a->clock_fd = -1;
}

/* --- what is asked over HTTP ------------------------------------------------------------------ */

static int answer_metrics(struct agent *a, struct http_reply *ret)
{
	const struct metrics m = { .recorder = recorder_stats(a->recorder),
				   .agent = &a->stats,
				   .http = http_server_stats(a->http),
				   .profile = &a->profile };

	a->stats.sender = sender_stats(a->sender);
	ret->content_type = METRICS_CONTENT_TYPE;
	return metrics_write(&m, &ret->body, &ret->size);
}

/* That the loop answers at all is its health; it is ready when it samples. */
static int answer(void *ctx, const char *path, struct http_reply *ret)
{
	struct agent *a = ctx;

	if (!strcmp(path, "/healthz"))
		return 0;
	if (strcmp(path, "/readyz") && strcmp(path, "/metrics"))
		return -ENOENT;
	if (!a->started)
		return -EAGAIN;
	return *(path + 1) == 'm' ? answer_metrics(a, ret) : 0;
}

static int open_http(struct agent *a)
{
	const struct http_server_options options = { .address = a->options->metrics_listen,
						     .timeout_ns = HTTP_TIMEOUT_NS,
						     .answer = answer,
						     .ctx = a };
	int r = options.address ? http_server_open(&options, &a->http) : 0;

	if (a->http)
		log_info("metrics are at http://%s/metrics", http_server_place(a->http));
	return r;
}

/* --- signals ---------------------------------------------------------------------------------- */

static void tell(struct agent *a)
{
	if (!a->started) {
		log_info("the agent is about to begin");
		return;
	}
	a->stats.sender = sender_stats(a->sender);
	a->options->tell(recorder_stats(a->recorder), &a->stats);
}

static void stop(struct agent *a)
{
	a->stop_ns = a->stopping ? a->stop_ns : now_ns();
	a->stopping = true;
}

static void on_signals(struct agent *a)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			tell(a);
		else if (info.ssi_signo == SIGHUP && a->options->reload)
			a->reload = true;
		else
			stop(a);
	}
}

static bool go_on(void *ctx)
{
	struct agent *a = ctx;

	on_signals(a);
	if (a->http)
		http_server_step(a->http);
	return !a->stopping;
}

/* --- what changes while it runs --------------------------------------------------------------- */

static int set_frequency(struct agent *a, uint32_t frequency_hz)
{
	return frequency_hz == recorder_stats(a->recorder)->frequency_hz
		       ? 0
		       : recorder_set_frequency(a->recorder, frequency_hz);
}

static int select_next(struct agent *a, const struct agent_options *next)
{
	int r = recorder_select(a->recorder, next->recorder.selection);

	return r ? log_err(r, "cannot change which processes are sampled") : 0;
}

/* All of it, or nothing. */
static int change_to(struct agent *a, const struct agent_options *next)
{
	uint32_t before = recorder_stats(a->recorder)->frequency_hz;
	int r = set_frequency(a, next->recorder.frequency_hz);

	if (r)
		return log_err(r, "cannot sample at %u Hz", next->recorder.frequency_hz);
	r = select_next(a, next);
	if (!r)
		r = sender_change(a->sender, &next->sender, next->release);
	if (r)
		(void)select_next(a, a->options);
	if (r && set_frequency(a, before))
		log_warn("the agent samples at %u Hz now", next->recorder.frequency_hz);
	return r;
}

/* A report has one frequency, and one place to go to: what was seen so far is reported first. */
static int reload(struct agent *a)
{
	const struct agent_options *next;

	a->reload = false;
	if (a->options->reload(a->options, &next))
		return 0;
	report_cut(a);
	recorder_next_cut(a->recorder);
	if (change_to(a, next)) {
		log_error("the configuration stays as it was");
		next->release(&next->sender);
		return 0;
	}
	a->options = next;
	log_set_level(next->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	if (tell_attributes(a))
		log_warn("there is no memory for attributes of all processes");
	tell_what_it_does(a);
	return set_report_timer(a);
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
	if (!err && a->http)
		err = loop_watch(a->epoll_fd, http_server_fd(a->http));
	if (!err)
		watch_clock(a);
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
	struct epoll_event events[8];

	while (!a->stopping) {
		int n = epoll_wait(a->epoll_fd, events, 8, notify_wait_ms(&a->manager)), r = 0;

		if (n < 0 && errno != EINTR)
			return -errno;
		/* Whatever woke us: a cut has all samples that were taken before it. */
		recorder_step(a->recorder);
		notify_alive(&a->manager);
		for (int i = 0; i < n && !r; i++) {
			if (events[i].data.fd == a->signal_fd)
				on_signals(a);
			else if (events[i].data.fd == a->report_fd)
				r = on_report_time(a);
			else if (events[i].data.fd == a->draw_fd)
				r = on_draw_time(a);
			else if (events[i].data.fd == a->clock_fd)
				r = on_clock_set(a);
			else if (a->http && events[i].data.fd == http_server_fd(a->http))
				http_server_step(a->http);
		}
		if (!r && a->reload && !a->stopping)
			r = reload(a);
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

	/* pprof has no place for them. */
	options.keep_events = a->options->report.format == REPORT_OTLP;
	/* A resource is what a process was when its samples were taken. */
	options.each_program = true;
	/* Loading programs takes most memory of all. */
	start_pages_drop();
	r = recorder_open(&options, &a->profile, &a->recorder);
	if (r)
		return r;
	r = tell_attributes(a);
	if (!r)
		r = set_up_loop(a);
	if (!r)
		r = begin_probability(a);
	if (r)
		return log_err(r, "cannot set up the event loop");
	r = recorder_start(a->recorder, go_on, a, &left);
	if (r)
		return r;
	a->started = true;
	if (a->options->sandbox != SANDBOX_OFF && (r = sandbox_drop_capabilities(SANDBOX_RECORDER)))
		log_warn("cannot give up capabilities: %s", strerror(-r));
	tell_what_it_does(a);
	r = set_report_timer(a);
	if (r)
		return log_err(r, "cannot set a timer");
	start_pages_drop();
	notify_send(&a->manager, "READY=1");
	return 0;
}

int agent_run(const struct agent_options *options, bool *ret_in_use)
{
	_cleanup_(agent_fini) struct agent a = { .options = options,
						 .epoll_fd = -1,
						 .signal_fd = -1,
						 .report_fd = -1,
						 .draw_fd = -1,
						 .clock_fd = -1,
						 .ret_in_use = ret_in_use };
	int r, sent;

	notify_open(&a.manager);
	r = sandbox_filter_calls(options->sandbox);
	if (r)
		log_warn("system calls are not filtered: %s", strerror(-r));
	r = hear_signals(&a);
	if (!r)
		r = profile_init(&a.profile);
	if (r)
		return log_err(r, "cannot begin");
	r = open_http(&a);
	if (!r)
		r = sender_open(&options->sender, &a.sender);
	if (!r)
		r = begin(&a);
	if (r)
		return r;
	r = loop(&a);
	notify_send(&a.manager, "STOPPING=1");
	/* From here on nobody would answer. */
	http_server_free(TAKE_PTR(a.http));
	if (r)
		log_err(r, "the agent ends: cannot wait for events");
	recorder_stop(a.recorder);
	report_cut(&a);
	sent = sender_end(a.sender, a.stopping ? a.stop_ns : now_ns());
	tell(&a);
	return r ? r : a.error ? a.error : sent;
}
