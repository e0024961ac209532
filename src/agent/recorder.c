// SPDX-License-Identifier: Apache-2.0
/*
 * The recording: one thread, one epoll loop. Each turn takes the samples out of the ring, then the
 * process events out of the side band, and applies both in the order of their times, so that every
 * sample meets its process as it was then. (Samples first: an event that precedes a sample has been
 * written by the time the sample can be read.)
 */
#include "agent/recorder_internal.h"
#include "agent/budget.h"
#include "agent/present.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

enum {
	TICK_MS = 200,
	PRIORITY = -15,
	EVENTS_MIN_MS = 10,	/* between two turns for process events alone */
	SOON_MS = 1,		/* until a sample that was put back */
	SIDE_BAND_PAGES = 64,	/* 256 KiB a CPU: about 2,500 mappings */
	RING_BYTES = 4 << 20,	/* 64 raw records of full size, or 80,000 hits */
	EXPIRE_NS = 1000000000, /* dead processes stay for samples that are on their way */
	RSS_INTERVAL_NS = 1000000000,
	DRAIN_EVERY = 32, /* samples, of up to 64 KiB and a walk each */
	SAY_AFTER_NS = 1000000000,
	MEANWHILE_NS = 10000000, /* for showing processes while something else is waited for */
};

/* --- process events -------------------------------------------------------------------------- */

static void track_targets(struct recorder *r, const struct side_event *e)
{
	if (e->type == SIDE_FORK && map_get(&r->targets, (uint32_t)e->parent_pid)) {
		/* The kernel's table has the child already: on_fork. */
		if (map_put(&r->targets, (uint32_t)e->pid, 1))
			log_debug("process %d is not followed: out of memory", e->pid);
	} else if (e->type == SIDE_EXIT && map_del(&r->targets, (uint32_t)e->pid)) {
		kernel_side_del_target(r->ks, (uint32_t)e->pid);
	}
}

static void mark_changed(struct recorder *r, int32_t pid)
{
	size_t i;

	for (i = 0; i < r->changed.nr; i++)
		if (r->changed.items[i] == pid)
			return;
	if (vec_push(&r->changed, pid))
		log_debug("process %d is shown late: out of memory", pid);
}

/* News were lost: nothing that is shown can be trusted; processes are read again as they are met.
 */
static void hide_all(struct recorder *r)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&r->processes.by_pid, &i)))
		publisher_hide(&r->publisher, (struct process *)(uintptr_t)slot->value);
}

static void on_event(struct recorder *r, const struct side_event *e)
{
	struct process *proc;

	if (e->type == SIDE_LOST) {
		r->stats.lost[LOST_SIDE_BAND] += e->lost;
		r->events_lost = true;
		map_clear(&r->refreshed);
		hide_all(r);
	}
	if (e->type == SIDE_LOST ||
	    (e->type == SIDE_EXEC && r->command && e->pid == command_pid(r->command)))
		r->command_runs = true;
	if (e->type == SIDE_EXIT) /* the next process of that PID is another one */
		map_del(&r->refreshed, (uint32_t)e->pid);
	if (r->options->nr_pids || r->options->command)
		track_targets(r, e);
	if (process_table_apply(&r->processes, e, r->events.text.items))
		r->stats.lost[LOST_SIDE_BAND]++;
	census_on_event(&r->census, e);
	proc = e->type == SIDE_MMAP ? process_find(&r->processes, e->pid) : NULL;
	if (proc && proc->user && ((struct view *)proc->user)->version != proc->version)
		mark_changed(r, e->pid);
}

/* --- one turn -------------------------------------------------------------------------------- */

static int keep_record(void *ctx, void *record, size_t size)
{
	struct recorder *r = ctx;
	const struct sample_header *h = record;
	struct batch *b = &r->next;
	struct pending p = { .at = (uint32_t)b->bytes.nr, .size = (uint32_t)size };

	if (size < sizeof(*h)) {
		r->stats.lost[LOST_MALFORMED]++;
		return 0;
	}
	p.time_ns = h->time_ns;
	if (b->bytes.nr > r->batch_bytes_max / 2)
		kernel_side_hold_raws(r->ks, true);
	if (b->bytes.nr + size > r->batch_bytes_max ||
	    vec_reserve(&b->bytes, b->bytes.nr + size + 8) || vec_push(&b->pending, p)) {
		r->stats.lost[LOST_OUT_OF_MEMORY]++;
		return 0;
	}
	memcpy(b->bytes.items + b->bytes.nr, record, size);
	b->bytes.nr += (size + 7) & ~7ull;
	return 0;
}

static void show_if_unknown(struct recorder *r, const uint8_t *record, size_t size)
{
	const struct sample_header *h = (const struct sample_header *)record;
	const struct sample_raw *raw = (const struct sample_raw *)(h + 1);
	struct process *proc;

	if (h->type != SAMPLE_RAW || h->stop != STOP_NO_PROCESS || size < sizeof(*h) + sizeof(*raw))
		return;
	if (!process_get_unknown(&r->processes, (int32_t)h->pid, &proc) &&
	    publisher_show(&r->publisher, proc, raw->mm))
		log_debug("cannot show the mappings of process %d", proc->pid);
}

/* While many samples are walked, the ring must not overflow. */
static void drain_to_next(struct recorder *r)
{
	if (kernel_side_drain(r->ks, keep_record, r))
		log_debug("cannot read the ring of samples");
}

/*
 * Nor while a table is built; and processes that began meanwhile are shown, which may need nothing
 * of what is waited for. Only those of which no event was taken in: what the others map is not
 * known before all that came earlier is done.
 */
static void drain_meanwhile(void *ctx)
{
	struct recorder *r = ctx;
	uint64_t begin = now_ns();

	drain_to_next(r);
	while (r->next_looked_at < r->next.pending.nr && now_ns() - begin < MEANWHILE_NS) {
		const struct pending *p = &r->next.pending.items[r->next_looked_at++];

		show_if_unknown(r, r->next.bytes.items + p->at, p->size);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void show_changed(struct recorder *r)
{
	size_t i;

	for (i = 0; i < r->changed.nr; i++) {
		struct process *proc = process_find(&r->processes, r->changed.items[i]);

		if (proc && proc->user && !proc->exited && publisher_show(&r->publisher, proc, 0))
			log_debug("cannot show the mappings of process %d", proc->pid);
	}
	r->changed.nr = 0;
}

static void wake_in(struct recorder *r, long ms)
{
	struct itimerspec soon = { .it_value = { .tv_nsec = ms * 1000000 } };

	if (timerfd_settime(r->soon_fd, 0, &soon, NULL))
		log_debug("cannot set a timer: %s", strerror(errno));
}

/*
 * Samples that are younger than the turn wait for the next one: the events that came between may
 * not have been read. How many are left.
 */
static size_t put_back(struct recorder *r, const struct batch *b, uint64_t until_ns)
{
	size_t n = b->pending.nr, i;

	while (n && b->pending.items[n - 1].time_ns > until_ns)
		n--;
	for (i = n; i < b->pending.nr; i++)
		keep_record(r, b->bytes.items + b->pending.items[i].at, b->pending.items[i].size);
	if (n < b->pending.nr)
		wake_in(r, SOON_MS);
	return n;
}

static void apply_in_order(struct recorder *r, const struct batch *b, size_t nr_samples)
{
	size_t s = 0;

	r->event_at = 0;
	while (s < nr_samples || r->event_at < r->events.events.nr) {
		const struct pending *p = &b->pending.items[s];

		if (r->event_at == r->events.events.nr ||
		    (s < nr_samples && p->time_ns < r->events.events.items[r->event_at].time_ns)) {
			recorder_on_sample(r, b->bytes.items + p->at, p->size);
			if (++s % DRAIN_EVERY == 0)
				drain_to_next(r);
		} else {
			on_event(r, &r->events.events.items[r->event_at++]);
		}
	}
}

static int turn(struct recorder *r)
{
	struct batch b;
	int err;

	r->turn_ns = now_ns();
	err = kernel_side_drain(r->ks, keep_record, r);
	if (!err)
		err = side_band_drain_until(r->side_band, r->turn_ns, &r->events);
	if (err)
		return log_err(err, "cannot read the kernel's records");
	b = r->batch;
	r->batch = r->next;
	r->next = b;
	r->next.bytes.nr = r->next.pending.nr = r->next_looked_at = 0;
	kernel_side_hold_raws(r->ks, false);
	b = r->batch;
	qsort(b.pending.items, b.pending.nr, sizeof(*b.pending.items), by_time);
	r->met_raw = false;
	apply_in_order(r, &b, put_back(r, &b, r->turn_ns));
	show_changed(r);
	publisher_update_runtimes(&r->publisher);
	/* As long as samples come raw, showing what they lack goes first. */
	if (!r->met_raw)
		resolver_want_names(&r->resolver);
	return 0;
}

/* --- the life of a recording ----------------------------------------------------------------- */

static void update_stats(struct recorder *r)
{
	struct recorder_stats *s = &r->stats;
	uint64_t runs;
	size_t i;

	kernel_side_lost(r->ks, s->lost);
	kernel_side_run_time(r->ks, &r->run_ns, &runs);
	s->bpf_ns_per_sample = s->samples ? (double)r->run_ns / (double)s->samples : 0;
	s->lost[LOST_FILES_EVICTED] = r->store.nr_evicted + r->publisher.nr_too_big;
	s->lost[LOST_RULES_FULL] = r->store.nr_rules_lost;
	s->lost[LOST_MAPPINGS_CAPPED] = r->processes.nr_mappings_capped;
	s->processes = (uint32_t)r->profile->processes.nr;
	s->files = 0;
	for (i = 0; i < r->resolver.profile_files.nr; i++)
		s->files += r->resolver.profile_files.items[i] != UINT32_MAX;
	/* Not at every key and tick: it takes milliseconds. */
	if (!r->rss_at_ns || r->stopping || now_ns() - r->rss_at_ns >= RSS_INTERVAL_NS) {
		s->rss_kb = budget_resident() / 1024;
		r->rss_at_ns = now_ns();
	}
	s->map_bytes = kernel_side_map_bytes(r->ks) + unwind_store_bytes(&r->store);
	s->duration_s = (double)(now_ns() - r->start_ns) / 1e9;
	s->frequency_hz = r->options->frequency_hz;
}

/* Targets whose end was among the lost events. */
static void drop_dead_targets(struct recorder *r)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&r->targets, &i))) {
		uint32_t pid = (uint32_t)slot->key;

		if (!kill((pid_t)pid, 0) || errno != ESRCH)
			continue;
		map_del(&r->targets, pid);
		kernel_side_del_target(r->ks, pid);
	}
}

/* Each recovers from something that went wrong since the last tick. */
static void mend(struct recorder *r)
{
	if (r->forget_stacks)
		kernel_side_forget_stacks(r->ks);
	if (r->events_lost)
		drop_dead_targets(r);
	r->forget_stacks = r->events_lost = false;
}

static int tick(struct recorder *r)
{
	uint64_t now = now_ns();
	int err;

	publisher_tick(&r->publisher, now);
	process_table_expire(&r->processes, now - EXPIRE_NS);
	resolver_name_anonymous(&r->resolver);
	resolver_want_names(&r->resolver);
	naming_tick(&r->resolver.naming);
	mend(r);
	err = kernel_side_sync_cpus(r->ks);
	if (!err)
		err = side_band_sync_cpus(r->side_band);
	if (err)
		log_debug("cannot follow the CPUs: %s", strerror(-err));
	if (r->options->progress) {
		update_stats(r);
		r->options->progress(r->options->progress_ctx, &r->stats);
	}
	if (r->options->duration_s > 0 &&
	    (double)(now - r->start_ns) / 1e9 >= r->options->duration_s)
		r->stopping = true;
	/* All that was to be recorded has ended. */
	if (r->options->nr_pids && !r->targets.nr) {
		if (r->options->live)
			log_info("all processes of -p have ended");
		r->stopping = true;
	}
	if (r->command && command_has_ended(r->command))
		r->stopping = true;
	return 0;
}

/* --- a recording that is watched ---------------------------------------------------------------
 */

/* Begins counting anew: the kernel sends every stack in full once more. */
static void clear_profile(struct recorder *r)
{
	profile_clear_samples(r->profile);
	/* Names alone would fill it in time. */
	if (profile_bytes(r->profile) > r->profile_bytes_max / 4 &&
	    !profile_forget_names(r->profile))
		naming_forget(&r->resolver.naming);
	census_forget(&r->census);
	resolver_forget(&r->resolver);
	map_clear(&r->stacks);
	map_clear(&r->virtuals);
	kernel_side_forget_stacks(r->ks);
	r->live_generation++;
}

static int show_live(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	int err = resolver_name_ready(&r->resolver);

	if (err)
		return err;
	update_stats(r);
	r->stats.profile_full = profile_bytes(r->profile) > r->profile_bytes_max / 4 * 3;
	if (o->live(o->live_ctx, r->profile, &r->stats, r->live_generation) == RECORDER_STOP)
		r->stopping = true;
	if (r->stats.profile_full)
		clear_profile(r);
	r->stats.profile_full = false;
	return 0;
}

/* A terminal that is gone can be read, too, without end. */
static int on_live_fd(struct recorder *r, uint32_t events)
{
	if (!(events & (EPOLLHUP | EPOLLERR)))
		return show_live(r);
	r->stopping = true;
	return 0;
}

static int watch(struct recorder *r, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int set_up_live(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	struct timespec period = { o->live_ms / 1000, (long)(o->live_ms % 1000) * 1000000 };
	struct itimerspec interval = { .it_interval = period, .it_value = period };
	int err;

	r->live_timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->live_timer_fd < 0 || timerfd_settime(r->live_timer_fd, 0, &interval, NULL))
		return -errno;
	err = watch(r, r->live_timer_fd);
	return err || o->live_fd < 0 ? err : watch(r, o->live_fd);
}

static int set_up_loop(struct recorder *r)
{
	struct itimerspec interval = {
		.it_interval = { .tv_nsec = TICK_MS * 1000000 },
		.it_value = { .tv_nsec = TICK_MS * 1000000 },
	};
	sigset_t signals;
	int err = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (r->options->live) { /* its terminal has to be given back */
		sigaddset(&signals, SIGHUP);
		sigaddset(&signals, SIGQUIT);
	}
	sigprocmask(SIG_BLOCK, &signals, NULL);
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r->soon_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->epoll_fd < 0 || r->timer_fd < 0 || r->soon_fd < 0 || r->signal_fd < 0 ||
	    timerfd_settime(r->timer_fd, 0, &interval, NULL))
		err = -errno;
	if (!err)
		err = watch(r, r->timer_fd);
	if (!err)
		err = watch(r, r->soon_fd);
	if (!err)
		err = watch(r, r->signal_fd);
	if (!err)
		err = watch(r, kernel_side_fd(r->ks));
	if (!err)
		err = watch(r, side_band_fd(r->side_band));
	if (!err && r->command)
		err = watch(r, command_fd(r->command));
	if (!err && r->options->live)
		err = set_up_live(r);
	return err ? log_err(err, "cannot set up the event loop") : 0;
}

static void on_signal(struct recorder *r)
{
	struct signalfd_siginfo info;

	if (read(r->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	/* The terminal sent it to the command as well: its end is the recording's. */
	if (r->command && info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL &&
	    !r->interrupted++)
		return;
	if (r->command)
		command_kill(r->command, (int)info.ssi_signo);
	r->stopping = true;
}

/*
 * Changed mappings should reach the kernel at once, but a machine that starts programs all the time
 * must not keep us running: after a turn for events, the side band is not listened to for a while.
 */
static void listen_to_events(struct recorder *r, bool listen)
{
	struct epoll_event event = { .events = listen ? EPOLLIN : 0,
				     .data.fd = side_band_fd(r->side_band) };

	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, event.data.fd, &event))
		log_debug("cannot change what is waited for: %s", strerror(errno));
}

static void after_events(struct recorder *r)
{
	listen_to_events(r, false);
	wake_in(r, EVENTS_MIN_MS);
}

/* Milliseconds until some process's runtimes are to be looked at again; -1: they are not. */
static int until_runtimes_are_due(const struct recorder *r)
{
	uint64_t due = r->publisher.runtimes_due_ns, now = now_ns();

	if (due == UINT64_MAX)
		return -1;
	return due <= now ? 0 : due - now > 1000000000 ? 1000 : (int)((due - now) / 1000000) + 1;
}

static int loop(struct recorder *r)
{
	struct epoll_event events[8];
	uint64_t expirations;
	int i, n, err;

	while (!r->stopping) {
		n = epoll_wait(r->epoll_fd, events, 8, until_runtimes_are_due(r));
		if (n < 0 && errno != EINTR)
			return log_err(-errno, "cannot wait for events");
		err = turn(r);
		for (i = 0; i < n && !err; i++) {
			if (events[i].data.fd == r->signal_fd)
				on_signal(r);
			else if (r->command && events[i].data.fd == command_fd(r->command))
				r->stopping = true;
			else if (events[i].data.fd == side_band_fd(r->side_band))
				after_events(r);
			else if (events[i].data.fd == r->soon_fd &&
				 read(r->soon_fd, &expirations, sizeof(expirations)) > 0)
				listen_to_events(r, true);
			else if (events[i].data.fd == r->timer_fd &&
				 read(r->timer_fd, &expirations, sizeof(expirations)) > 0)
				err = tick(r);
			else if (r->options->live && events[i].data.fd == r->options->live_fd)
				err = on_live_fd(r, events[i].events);
			else if (r->options->live && events[i].data.fd == r->live_timer_fd &&
				 read(r->live_timer_fd, &expirations, sizeof(expirations)) > 0)
				err = show_live(r);
		}
		if (err)
			return err;
	}
	return 0;
}

static int add_target(struct recorder *r, uint32_t pid)
{
	int err = kernel_side_add_target(r->ks, pid);

	if (!err)
		err = map_put(&r->targets, pid, 1);
	return err ? log_err(err, "cannot choose process %u", pid) : 0;
}

static int get_target(struct recorder *r, int32_t pid, struct process **ret)
{
	int err = process_get(&r->processes, pid, ret);

	if (err == -ESRCH)
		return log_err(err, "process %d", pid);
	return err ? log_err(err,
			     "cannot read the mappings of process %d (does a security module or a "
			     "sandbox forbid it?)",
			     pid)
		   : 0;
}

/* The processes that are to be recorded, told to the kernel. */
static int choose_targets(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	struct process *proc;
	size_t i;
	int err = 0;

	if (o->command)
		return add_target(r, (uint32_t)command_pid(r->command));
	for (i = 0; i < o->nr_pids && !err; i++)
		err = add_target(r, (uint32_t)o->pids[i]);
	for (i = 0; i < o->nr_pids && !err; i++)
		err = get_target(r, o->pids[i], &proc);
	return err;
}

/*
 * While processes are shown that a sample may soon be of: their news, and the user's. News each
 * time, so that an address space of after an exec is never shown with the mappings of before.
 */
static bool go_on_showing(void *ctx)
{
	struct recorder *r = ctx;

	on_signal(r);
	if (turn(r))
		return false;
	if (!r->said_busy && now_ns() > r->start_ns + SAY_AFTER_NS) {
		r->said_busy = true;
		if (!r->options->live)
			log_info("the machine is busy: reading what runs before the recording "
				 "begins ...");
	}
	return !r->stopping;
}

/* So that their first samples are walked in the kernel already. */
static void show_present(struct recorder *r)
{
	struct present_options options = {
		.all = r->options->nr_pids,
		.go_on = go_on_showing,
		.ctx = r,
	};
	size_t left;

	if (r->options->command)
		return;
	r->start_ns = now_ns();
	left = present_show(&r->publisher, &options);
	if (left && !r->stopping && !r->options->live)
		log_info("%zu of the processes that run were not read in time: their first samples "
			 "lack the frames of Python, Java and the like",
			 left);
}

/* A descriptor is kept for each sampled file. The command was forked before, with its own limit. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		log_debug("cannot raise the limit of open files: %s", strerror(errno));
}

/*
 * On a busy machine the ring must be emptied in time; it takes little of a CPU. This thread only:
 * tables are built at the priority that we were started with. No real-time priority: what we do
 * when a large process appears takes longer than others' work may wait.
 */
static void raise_priority(void)
{
	if (setpriority(PRIO_PROCESS, 0, PRIORITY))
		log_debug("cannot raise the priority: %s", strerror(errno));
}

/* While symbols are read at the end: a signal is for what is left of it. */
static bool wait_for_names(void *ctx, const struct symbol_progress *progress)
{
	struct recorder *r = ctx;
	struct signalfd_siginfo info;

	if (r->options->naming.progress &&
	    !r->options->naming.progress(r->options->naming.progress_ctx, progress))
		return false;
	return read(r->signal_fd, &info, sizeof(info)) != sizeof(info);
}

static int set_up(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	struct kernel_side_options ks_options = {
		.frequency_hz = o->frequency_hz,
		.max_frames = o->max_frames,
		.ring_bytes = RING_BYTES,
		.targets_only = o->nr_pids || o->command,
		.no_kernel = o->no_kernel,
		.idle = o->idle,
		.raw_too = o->replay_dir != NULL,
	};
	struct naming_options naming = o->naming;
	struct unwind_store_maps maps;
	struct budget budget;
	int err;

	raise_file_limit();
	raise_priority();
	r->walk = malloc(sizeof(*r->walk));
	if (!r->walk)
		return -ENOMEM;
	err = kernel_side_open(&ks_options, &r->ks);
	if (err)
		return err;
	budget = budget_share(o->memory_limit, budget_resident() + kernel_side_map_bytes(r->ks));
	maps = kernel_side_maps(r->ks);
	err = unwind_store_init(&r->store, &maps, budget.arena);
	if (!err)
		err = process_table_init(&r->processes);
	if (!err) {
		publisher_init(&r->publisher, &r->processes, &r->store, r->ks);
		r->publisher.wait = (struct loader_wait){ drain_meanwhile, r };
		r->publisher.max_transient = budget.transient;
		naming.progress = wait_for_names;
		naming.progress_ctx = r;
		err = resolver_init(&r->resolver, &r->publisher, r->profile, &naming);
	}
	if (!err)
		err = side_band_open(SIDE_BAND_PAGES, &r->side_band);
	if (err)
		return log_err(err, "cannot follow the processes' events");
	if (o->replay_dir) {
		err = replay_save_open(o->replay_dir, o->max_replay_cases, &r->publisher,
				       &r->replay);
		if (err)
			return log_err(err, "cannot keep replay cases in %s", o->replay_dir);
	}
	r->profile_bytes_max = budget.profile;
	r->batch_bytes_max = budget.batch;
	r->keep_events = o->keep_events;
	census_init(&r->census, r->profile);
	return 0;
}

static void tear_down(struct recorder *r)
{
	replay_save_free(r->replay);
	side_band_free(r->side_band);
	side_events_fini(&r->events);
	resolver_fini(&r->resolver);
	process_table_fini(&r->processes);
	publisher_fini(&r->publisher);
	unwind_store_fini(&r->store);
	kernel_side_free(r->ks);
	command_free(r->command);
	map_fini(&r->stacks);
	map_fini(&r->virtuals);
	map_fini(&r->targets);
	census_fini(&r->census);
	map_fini(&r->refreshed);
	vec_free(&r->batch.bytes);
	vec_free(&r->batch.pending);
	vec_free(&r->next.bytes);
	vec_free(&r->next.pending);
	vec_free(&r->changed);
	free(r->walk);
	close_p(&r->epoll_fd);
	close_p(&r->timer_fd);
	close_p(&r->soon_fd);
	close_p(&r->live_timer_fd);
	close_p(&r->signal_fd);
}

static int record(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	int err, i;

	err = set_up(r);
	if (!err) {
		publisher_tick(&r->publisher, now_ns());
		err = choose_targets(r);
	}
	if (!err)
		err = set_up_loop(r);
	if (err)
		return err;
	show_present(r);
	r->profile->start_ns = clock_ns(CLOCK_REALTIME);
	r->profile->frequency_hz = r->options->frequency_hz;
	r->start_ns = now_ns();
	publisher_tick(&r->publisher, r->start_ns);
	err = kernel_side_start(r->ks);
	if (!err && r->command)
		err = command_start(r->command);
	if (!err)
		err = loop(r);
	kernel_side_stop(r->ks);
	/* The second for what the first put back. */
	if (!err)
		err = turn(r);
	if (!err)
		err = turn(r);
	r->profile->duration_ns = now_ns() - r->start_ns;
	update_stats(r);
	for (i = 0; i < STOP_MAX_; i++)
		if (r->nr_raw[i])
			log_debug("%lu samples were walked by the agent: %s",
				  (unsigned long)r->nr_raw[i], profile_stop_name(i));
	if (r->replay) {
		replay_save_counts(r->replay, &r->stats.replay_compared,
				   &r->stats.replay_different);
		log_info("replay: %lu walks compared, %lu differ",
			 (unsigned long)r->stats.replay_compared,
			 (unsigned long)r->stats.replay_different);
	}
	if (!err && o->live)
		return resolver_name_ready(&r->resolver);
	return err ? err : resolver_name_all(&r->resolver);
}

int recorder_run(const struct recorder_options *options, struct profile *profile,
		 struct recorder_stats *ret_stats, int *ret_command_status)
{
	struct recorder r = { .options = options,
			      .profile = profile,
			      .epoll_fd = -1,
			      .soon_fd = -1,
			      .timer_fd = -1,
			      .live_timer_fd = -1,
			      .signal_fd = -1 };
	struct command *command;
	int err = 0, status = 0;

	/* Before anything else, so that the child inherits no descriptors of ours. */
	if (options->command)
		err = command_prepare(options->command, &r.command);
	if (!err)
		err = record(&r);
	*ret_stats = r.stats;
	/* Nothing of ours stays in the kernel while a command is waited for that outlives -d. */
	command = TAKE_PTR(r.command);
	tear_down(&r);
	if (!err && command)
		err = command_wait(command, &status);
	command_free(command);
	if (!err && ret_command_status)
		*ret_command_status = status;
	return err;
}
