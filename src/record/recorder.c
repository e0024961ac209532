// SPDX-License-Identifier: Apache-2.0
/*
 * The recorder's life: one thread, one set of descriptors. Each step is a turn (recorder_turn.c)
 * and, at each tick (recorder_pace.c), what is due by the clock.
 */
#include "record/recorder_internal.h"
#include "record/startup_scan.h"
#include "process/memory.h"
#include "process/proc_stat.h"
#include "unwinder/budget.h"
#include "util/child.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

enum {
	PRIORITY = -15,
	SIDE_BAND_PAGES = 64,	/* 256 KiB a CPU: about 2,500 mappings */
	EXPIRE_NS = 1000000000, /* dead processes stay for samples that are on their way ... */
	EXPIRE_EVERY_NS = 1000000000, /* ... and are looked for among all so often */
	RSS_INTERVAL_NS = 1000000000,
	SAY_AFTER_NS = 1000000000,
	LIST_CODE_NS = 1000000000, /* between two looks at what the kernel has loaded */
	WALKERS_POLL_MS = 5,
	SETTLE_TURNS = 3,
	LARGE_BYTES = 256 << 10,
	HEAP_KEPT_BYTES = 1 << 20, /* at its end */
};

/* To the verifier, which may have to wait for a CPU; a second is much. */
#define WALKERS_NS 20000000000ull

/* --- what is due by the clock ----------------------------------------------------------------- */

/* The kernel follows a target's children by itself: those whose fork, or end, was among the lost
 * events are found there. */
static void check_target(void *ctx, uint32_t pid)
{
	struct recorder *r = ctx;

	if (kill((pid_t)pid, 0) && errno == ESRCH) {
		map_del(&r->targets, pid);
		bpf_sampler_del_target(r->sampler, pid);
	} else if (map_put(&r->targets, pid, 1)) {
		log_debug("process %u is not followed: out of memory", pid);
	}
}

/* What the kernel gave to a child whose fork was lost, and which was never sampled. */
static void check_entry(void *ctx, uint32_t pid)
{
	struct recorder *r = ctx;

	if (!process_find(&r->unwinder.processes, (int32_t)pid))
		bpf_sampler_del_process(r->sampler, pid);
}

static void check_facts(void *ctx, uint32_t pid)
{
	struct recorder *r = ctx;

	if (kill((pid_t)pid, 0) && errno == ESRCH)
		bpf_sampler_del_facts(r->sampler, pid);
}

/* Stacks that are not kept here, or only in part, while the kernel takes them for known. */
static void ask_again(struct recorder *r)
{
	VEC(uint64_t) hashes = { 0 };
	struct map_slot *slot;
	size_t i = 0;
	int err = 0;

	while (!err && (slot = map_next(&r->to_ask, &i)))
		err = vec_push(&hashes, slot->key);
	if (!err && hashes.nr)
		err = bpf_sampler_ask_again(r->sampler, hashes.items, hashes.nr);
	vec_free(&hashes);
	if (err)
		log_debug("stacks are asked for later: %s", strerror(-err));
	else
		map_clear(&r->to_ask);
}

/* Each recovers from something that went wrong since the last tick. */
static void mend(struct recorder *r, uint64_t now)
{
	ask_again(r);
	/* A machine that loads programs all the time is not to be busy with that. */
	if (r->list_code && now >= r->list_code_at_ns) {
		bpf_sampler_list_code(r->sampler);
		r->list_code = false;
		r->list_code_at_ns = now + LIST_CODE_NS;
	}
	if (r->events_lost && r->options.targets_only)
		bpf_sampler_each_target(r->sampler, check_target, r);
	if (r->events_lost)
		bpf_sampler_each_process(r->sampler, check_entry, r);
	if (r->events_lost && r->options.may_select) {
		bpf_sampler_each_facts(r->sampler, check_facts, r);
		map_clear(&r->at_exec);
	}
	r->events_lost = false;
}

static void ask_for(void *ctx, uint64_t hash)
{
	recorder_ask_again(ctx, hash);
}

/* Stacks with names that were put off are known by now, and would be unknown for good. */
static void ask_for_names(struct recorder *r, uint64_t now)
{
	if (pace_names_due(&r->unnamed, r->decoder.nr_unnamed, now))
		known_stacks_each_unnamed(&r->known, ask_for, r);
}

static void follow_cpus(struct recorder *r)
{
	uint32_t cpu;
	int err = cpu_set_sync(r->cpus);
	uint64_t missing_ns = cpu_set_missing_ns(r->cpus, &cpu);

	if (err)
		log_debug("cannot follow the CPUs: %s", strerror(-err));
	if (missing_ns > SAY_AFTER_NS && !r->said_missing)
		log_warn("CPU %u is online, but cannot be sampled so far", cpu);
	r->said_missing = missing_ns > SAY_AFTER_NS;
}

/* Once is enough: whoever can do it once can do it always. */
static void say_given_up(struct recorder *r)
{
	int32_t pid;

	if (r->said_given_up || !memory_guard_given_up(&pid))
		return;
	log_warn("process %d has memory that must come from a file's server, which does not "
		 "answer: it is not waited for (further ones are counted)",
		 pid);
	r->said_given_up = true;
}

static void expire_processes(struct recorder *r, uint64_t now)
{
	if (now < r->expire_at_ns && !process_table_must_expire(&r->unwinder.processes))
		return;
	process_table_expire(&r->unwinder.processes, now - EXPIRE_NS);
	r->expire_at_ns = now + EXPIRE_EVERY_NS;
}

static void tick(struct recorder *r)
{
	uint64_t now = now_ns();

	publisher_tick(&r->unwinder.publisher, now, r->turn_ns);
	expire_processes(r, now);
	jit_names_tick(&r->decoder.jit);
	decoder_want_names(&r->decoder);
	symbolizer_tick(&r->decoder.symbolizer);
	ask_for_names(r, now);
	mend(r, now);
	recorder_make_room(r, now);
	follow_cpus(r);
	memory_guard_tick();
	say_given_up(r);
	pace_end_pause_with_tick(r);
	pace_set_tick(r);
}

/* --- a step ----------------------------------------------------------------------------------- */

int recorder_fd(const struct recorder *r)
{
	return r->epoll_fd;
}

/* Some process's runtimes may have to be looked at before anything else happens. */
static void set_due(struct recorder *r)
{
	uint64_t due = r->unwinder.publisher.runtimes_due_ns;

	if (due < r->turn_next_ns)
		due = r->turn_next_ns;
	if (due == r->due_ns)
		return;
	/* At once (0) must not disarm it. */
	pace_set_timer(r->due_fd, TFD_TIMER_ABSTIME, due == UINT64_MAX ? 0 : due ? due : 1);
	r->due_ns = due;
}

static void on_ready(struct recorder *r, int fd)
{
	uint64_t expirations;

	if (fd == r->soon_fd && read(fd, &expirations, sizeof(expirations)) > 0) {
		pace_after_pause(r);
	} else if (fd == r->due_fd && read(fd, &expirations, sizeof(expirations)) > 0) {
		r->due_ns = UINT64_MAX; /* it is not set any more */
	}
}

/* When news were lost there is no turn for a while, and the ring is emptied only. */
static void turn_or_wait(struct recorder *r)
{
	uint64_t now = now_ns();

	if (now >= r->turn_next_ns) {
		recorder_turn(r);
		return;
	}
	recorder_drain(r);
	pace_pause(r, (r->turn_next_ns - now) / 1000000 + 1);
}

void recorder_step(struct recorder *r)
{
	struct epoll_event events[8];
	int n = epoll_wait(r->epoll_fd, events, 8, 0);

	turn_or_wait(r);
	pace_after_turn(r);
	for (int i = 0; i < n; i++)
		on_ready(r, events[i].data.fd);
	if (pace_tick_is_due(now_ns(), r->tick_due_ns))
		tick(r);
	set_due(r);
}

/* --- cuts and counts -------------------------------------------------------------------------- */

/* What was not taken, by type and in all. */
static void update_not_taken(struct recorder *r)
{
	uint64_t rejected[SAMPLE_SOURCES_MAX], limited[SAMPLE_SOURCES_MAX];
	struct recorder_stats *s = &r->stats;

	bpf_sampler_rejected(r->sampler, rejected);
	bpf_sampler_limited(r->sampler, limited);
	s->rejected = s->rejected_others = s->limited = 0;
	for (size_t i = 0; i < PROFILE_TYPES_MAX; i++)
		s->types[i].rejected = s->types[i].limited = 0;
	for (size_t i = SOURCE_CLOCK; i <= r->options.nr_sources; i++) {
		struct recorder_type_stats *type = &s->types[r->types[i]];

		rejected[i] += r->rejected_here[i];
		type->rejected += rejected[i];
		type->limited += limited[i];
		s->limited += limited[i];
		if (i == SOURCE_CLOCK)
			s->rejected = rejected[i];
		else
			s->rejected_others += rejected[i];
	}
}

void recorder_lose(struct recorder *r, uint8_t source, enum lost_reason reason, uint64_t nr)
{
	if (source >= SAMPLE_SOURCES_MAX)
		source = SOURCE_CLOCK;
	r->lost_here[source][reason] += nr;
	r->stats.lost[reason] += nr;
	r->stats.types[r->types[source]].lost[reason] += nr;
}

/* In the kernel and here, by type and in all. */
static void update_lost(struct recorder *r)
{
	uint64_t lost[SAMPLE_SOURCES_MAX][LOST_MAX_];
	struct recorder_stats *s = &r->stats;

	bpf_sampler_lost(r->sampler, lost);
	memset(s->lost, 0, sizeof(s->lost));
	for (size_t i = 0; i < PROFILE_TYPES_MAX; i++)
		memset(s->types[i].lost, 0, sizeof(s->types[i].lost));
	for (size_t source = 0; source < SAMPLE_SOURCES_MAX; source++) {
		struct recorder_type_stats *type = &s->types[r->types[source]];

		for (size_t reason = 0; reason < LOST_MAX_; reason++) {
			uint64_t nr = lost[source][reason] + r->lost_here[source][reason];

			s->lost[reason] += nr;
			type->lost[reason] += nr;
		}
	}
	s->lost[LOST_FILES_EVICTED] =
		r->unwinder.store.nr_evicted + r->unwinder.publisher.nr_too_big;
	s->lost[LOST_RULES_FULL] = r->unwinder.store.nr_rules_lost;
	s->lost[LOST_MAPPINGS_CAPPED] = r->unwinder.processes.nr_mappings_capped;
	s->lost[LOST_NAMES_THROTTLED] = r->decoder.nr_unnamed;
}

/* Not at every key and tick: it takes milliseconds, for each map's file in /proc and for smaps. */
static bool is_memory_due(const struct recorder *r)
{
	if (r->stopped)
		return true;
	return !r->options.memory_at_end &&
	       (!r->rss_at_ns || now_ns() - r->rss_at_ns >= RSS_INTERVAL_NS);
}

static void update_stats(struct recorder *r)
{
	struct recorder_stats *s = &r->stats;
	struct kernel_walk_counts walks;

	update_lost(r);
	bpf_sampler_run_time(r->sampler, &r->run_ns, &s->bpf_runs);
	bpf_sampler_kernel_walks(r->sampler, &walks);
	for (int i = 0; i < KERNEL_WALK_ENDS_; i++)
		s->kernel_walks[i] = walks.ends[i];
	update_not_taken(r);
	s->reads_given_up = memory_guard_given_up(NULL);
	for (unsigned id = 0; id < RUNTIME_MAX_; id++)
		if (runtimes[id] && runtimes[id]->probe)
			s->unknown_runtimes[FRAME_KIND_OF(id)] =
				r->unwinder.publisher.runtimes.nr_unknown[id];
	s->bpf_ns = r->run_ns;
	s->own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - r->start_cpu_ns;
	s->children_ns = child_cpu_ns() - r->start_children_ns;
	s->bpf_ns_per_sample =
		s->samples ? (double)r->run_ns / (double)(s->samples + s->others) : 0;
	s->processes = (uint32_t)r->profile->processes.nr;
	s->files = r->decoder.nr_files;
	if (is_memory_due(r)) {
		s->rss_kb = budget_resident() / 1024;
		r->kernel_map_bytes = bpf_sampler_bytes(r->sampler);
		r->rss_at_ns = now_ns();
	}
	s->map_bytes = r->kernel_map_bytes + unwind_store_bytes(&r->unwinder.store);
	s->duration_s = (double)(now_ns() - r->start_ns) / 1e9;
	s->frequency_hz = r->options.frequency_hz;
}

const struct recorder_stats *recorder_stats(struct recorder *r)
{
	/* What comes after the stop, names above all, is not its cost. */
	if (!r->stopped)
		update_stats(r);
	return &r->stats;
}

/*
 * What was read of a process since the last turn may be of a program that it has executed, of which
 * the next turn hears. That may meet a process, too: in the end such a one has to wait.
 */
static void settle_metadata(struct recorder *r)
{
	for (int i = 1; i <= SETTLE_TURNS && r->metadata.read_ns > r->turn_ns; i++) {
		r->metadata.is_held = i == SETTLE_TURNS;
		recorder_turn(r);
	}
	r->metadata.is_held = false;
}

void recorder_name(struct recorder *r)
{
	int err;

	settle_metadata(r);
	err = decoder_name_ready(&r->decoder);
	if (err)
		log_debug("some frames get their names later: %s", strerror(-err));
	process_contexts_look(&r->contexts, r->profile);
	r->profile->cut.duration_ns = cut_clock_since(&r->cut_clock, now_ns());
}

int recorder_name_all(struct recorder *r)
{
	return decoder_name_all(&r->decoder);
}

int recorder_set_frequency(struct recorder *r, uint32_t frequency_hz)
{
	int err = bpf_sampler_set_frequency(r->sampler, frequency_hz);

	if (err)
		return err;
	r->options.frequency_hz = frequency_hz;
	r->profile->frequency_hz = frequency_hz;
	pace_set_tick(r);
	return 0;
}

int recorder_pause(struct recorder *r, bool paused)
{
	return bpf_sampler_pause(r->sampler, paused);
}

int recorder_select(struct recorder *r, const struct selection *selection)
{
	struct selection next = { 0 };
	int err;

	if (!r->options.may_select)
		return selection && !selection_is_empty(selection) ? -EINVAL : 0;
	err = selection ? selection_copy(selection, &next) : 0;
	r->had_facts |= next.facts.nr != 0;
	if (!err)
		err = bpf_sampler_select(r->sampler, &next.rules);
	if (err) {
		selection_fini(&next);
		return err;
	}
	selection_fini(&r->selection);
	r->selection = next;
	map_clear(&r->at_exec);
	r->decided_pid = 0;
	return 0;
}

static void begin_cut(struct recorder *r)
{
	cut_clock_begin(&r->cut_clock, now_ns(), clock_ahead_ns(CLOCK_BOOTTIME));
	r->profile->cut.start_ns = r->cut_clock.begin_ns + wall_offset_ns();
	r->keep_events = r->options.keep_events;
}

void recorder_next_cut(struct recorder *r)
{
	profile_next_cut(r->profile);
	r->pruned_bytes = 0;
	begin_cut(r);
}

/* --- targets ---------------------------------------------------------------------------------- */

static int add_target(struct recorder *r, uint32_t pid)
{
	int err = bpf_sampler_add_target(r->sampler, pid);

	if (!err)
		err = map_put(&r->targets, pid, 1);
	return err ? log_err(err, "cannot choose process %u", pid) : 0;
}

/* -ESRCH: it has ended meanwhile, and its end may have been told before we listened. */
static int get_target(struct recorder *r, int32_t pid)
{
	struct process *proc;
	struct proc_stat stat;
	int err = process_get(&r->unwinder.processes, pid, &proc);

	if (!err && (proc_stat_read(pid, &stat) || proc_stat_is_over(&stat)))
		err = -ESRCH;
	if (err && err != -ESRCH)
		return log_err(err,
			       "cannot read the mappings of process %d (does a security module or "
			       "a sandbox forbid it?)",
			       pid);
	return err;
}

int recorder_add_target(struct recorder *r, int32_t pid)
{
	int err = add_target(r, (uint32_t)pid);

	if (!err)
		err = get_target(r, pid);
	if (err == -ESRCH) {
		map_del(&r->targets, (uint32_t)pid);
		bpf_sampler_del_target(r->sampler, (uint32_t)pid);
	}
	return err;
}

int recorder_add_target_of_exec(struct recorder *r, int32_t pid)
{
	r->awaits_exec = pid;
	return add_target(r, (uint32_t)pid);
}

void recorder_expect_runtimes(struct recorder *r, uint32_t ids)
{
	r->expected_runtimes |= ids;
}

size_t recorder_nr_targets(const struct recorder *r)
{
	return r->targets.nr;
}

/* --- from open to free ------------------------------------------------------------------------ */

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

/*
 * What is large and freed goes back to the system at once, and what grows is moved by its pages:
 * the C library would keep it, from the first large thing on that was freed, in a heap with holes.
 */
static void return_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
}

static int set_up_step(struct recorder *r)
{
	int *const timers[] = { &r->timer_fd, &r->soon_fd, &r->due_fd };
	int err = 0;

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(timers) / sizeof(*timers) && !err; i++) {
		*timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		err = *timers[i] < 0 ? -errno : loop_watch(r->epoll_fd, *timers[i]);
	}
	if (!err)
		err = loop_watch(r->epoll_fd, bpf_sampler_fd(r->sampler));
	return err ? err : loop_watch(r->epoll_fd, side_band_fd(r->side_band));
}

static int set_up_names(struct recorder *r)
{
	struct symbolizer_options options = r->options.symbolizer;
	struct rlimit limit;
	int err;

	/* Two descriptors each, of a quarter of all. */
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		options.max_waiting = limit.rlim_cur / 8;
	err = decoder_init(&r->decoder, &r->unwinder.publisher, r->profile, &options);

	if (err)
		return err;
	r->decoder.name_time.part = DECODER_NAME_PART;
	metadata_init(&r->metadata, r->profile);
	r->metadata.variables = r->options.variables;
	r->metadata.each_program = r->options.each_program;
	return metadata_host(r->profile);
}

/* Where the symbol cache is. */
static int spill_folder(void *ctx)
{
	struct recorder *r = ctx;

	return symbol_store_folder(r->decoder.symbolizer.store);
}

static int set_up_tables(struct recorder *r)
{
	size_t fixed = budget_resident() + bpf_sampler_bytes(r->sampler) + r->options.beside_bytes;
	struct budget budget = budget_share(r->options.memory_limit, fixed);
	const struct unwinder_options options = {
		.sampler = r->sampler,
		.arena_bytes = budget.arena,
		.fixed_bytes = fixed,
		.wait = { recorder_drain_meanwhile, r },
		.drain = recorder_drain,
		.spill_folder = spill_folder,
		.drain_ctx = r,
		.table_builder = r->options.table_builder,
		.file_copier = r->options.file_copier,
		.copy_bytes = r->options.memory_limit,
	};

	memory_guard_meanwhile(recorder_drain, r);
	r->profile_bytes_max = budget.profile;
	r->batch_bytes_max = budget.batch;
	log_debug(
		"memory: %zu kB are taken; %zu kB for tables and mappings, %zu kB for the profile",
		fixed / 1024, budget.arena / 1024, budget.profile / 1024);
	return unwinder_init(&r->unwinder, &options);
}

static int set_up(struct recorder *r)
{
	const struct recorder_options *o = &r->options;
	struct bpf_sampler_options sampler_options = {
		.frequency_hz = o->frequency_hz,
		.max_frames = o->max_frames,
		.ring_bytes = RECORDER_RING_BYTES,
		.targets_only = o->targets_only,
		.select = o->may_select,
		.no_kernel = o->no_kernel,
		.idle = o->idle,
		.no_kernel_threads = o->no_kernel_threads,
		.only_cpus = o->only_cpus,
		.raw_too = o->observer != NULL,
		.walker_loader = o->walker_loader,
		.measure = o->measure,
		.kernel_frames = o->memory_limit < KERNEL_ROWS_LIMIT ? KERNEL_FRAMES_HELPER
								     : o->kernel_frames,
		.sources = o->sources,
		.nr_sources = o->nr_sources,
	};
	int err;

	raise_file_limit();
	raise_priority();
	return_memory();
	r->walk = malloc(sizeof(*r->walk));
	if (!r->walk)
		return -ENOMEM;
	err = bpf_sampler_open(&sampler_options, &r->sampler);
	if (err)
		return err;
	err = recorder_select(r, o->selection);
	if (err)
		return log_err(err, "cannot select processes");
	for (size_t i = 0; i < o->nr_sources && !err; i++) {
		err = profile_add_type(r->profile, o->sources[i].type,
				       source_unit(o->sources[i].value),
				       &r->types[SOURCE_CLOCK + 1 + i]);
		if (o->sources[i].kind != SOURCE_SLEEPS)
			continue;
		r->sleep_scale = off_cpu_scale(&o->sources[i].off_cpu);
		if (o->nr_sources + 1 < SAMPLE_SOURCES_MAX)
			r->types[o->nr_sources + 1] = r->types[SOURCE_CLOCK + 1 + i];
	}
	if (!err)
		err = set_up_tables(r);
	if (!err)
		err = set_up_names(r);
	if (!err)
		err = cpu_set_open(&r->cpus);
	if (!err)
		err = side_band_open(r->cpus, SIDE_BAND_PAGES, &r->side_band);
	if (!err)
		err = own_init(&r->own);
	if (err)
		return log_err(err, "cannot follow the processes' events");
	err = set_up_step(r);
	if (err)
		return log_err(err, "cannot set up the event loop");
	r->observer = o->observer;
	return r->observer ? r->observer->begin(r->observer->ctx, &r->unwinder.publisher) : 0;
}

int recorder_open(const struct recorder_options *options, struct profile *profile,
		  struct recorder **ret)
{
	_cleanup_(recorder_free_p) struct recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->options = *options;
	memory_guard_begin(MEMORY_GUARDED, options->memory_reader);
	memory_guard_tick();
	r->profile = profile;
	r->options.may_select |= options->selection && !selection_is_empty(options->selection);
	r->batch = &r->batches[0];
	r->next = &r->batches[1];
	r->epoll_fd = r->timer_fd = r->soon_fd = r->due_fd = -1;
	r->due_ns = UINT64_MAX;
	err = set_up(r);
	if (err)
		return err;
	publisher_tick(&r->unwinder.publisher, now_ns(), 0);
	*ret = TAKE_PTR(r);
	return 0;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	memory_guard_meanwhile(NULL, NULL);
	side_band_free(r->side_band);
	side_events_fini(&r->events);
	decoder_fini(&r->decoder);
	unwinder_fini(&r->unwinder);
	bpf_sampler_free(r->sampler);
	cpu_set_free(r->cpus);
	known_stacks_fini(&r->known);
	map_fini(&r->to_ask);
	own_fini(&r->own);
	map_fini(&r->targets);
	selection_fini(&r->selection);
	map_fini(&r->at_exec);
	metadata_fini(&r->metadata);
	process_contexts_fini(&r->contexts);
	map_fini(&r->refreshed);
	batch_fini(&r->batches[0]);
	batch_fini(&r->batches[1]);
	vec_free(&r->changed);
	vec_free(&r->waker_frames.frames);
	memory_guard_end();
	free(r->walk);
	close_p(&r->epoll_fd);
	close_p(&r->timer_fd);
	close_p(&r->soon_fd);
	close_p(&r->due_fd);
	free(r);
}

/* While processes are shown that a sample may soon be of: their news. Each time, so that an address
 * space of after an exec is never shown with the mappings of before. */
struct showing {
	struct recorder *recorder;
	bool (*go_on)(void *ctx);
	void *ctx;
};

static bool go_on_showing(void *ctx)
{
	struct showing *s = ctx;
	struct recorder *r = s->recorder;

	bpf_sampler_want_walkers(r->sampler, r->unwinder.publisher.runtimes.met, true);
	recorder_turn(r);
	return s->go_on(s->ctx);
}

/* Of runtimes that will have samples at once; others' are loaded beside the recording. */
static void wait_for_walkers(struct showing *s)
{
	struct recorder *r = s->recorder;
	uint32_t ids = (r->unwinder.publisher.runtimes.met | r->expected_runtimes) &
		       ~r->options.symbolizer.runtimes.runtime.off;
	uint64_t until = now_ns() + WALKERS_NS;

	bpf_sampler_want_walkers(r->sampler, ids, true);
	while (bpf_sampler_update_walkers(r->sampler, ids, WALKERS_POLL_MS) && now_ns() < until)
		if (!go_on_showing(s))
			break;
}

int recorder_start(struct recorder *r, bool (*go_on)(void *ctx), void *ctx, size_t *ret_left)
{
	struct showing showing = { r, go_on, ctx };
	const struct startup_scan_options scan = { .all = r->options.targets_only,
						   .go_on = go_on_showing,
						   .ctx = &showing };
	int err;

	*ret_left = 0;
	/* The first samples shall be walked in the kernel already. */
	if (!r->awaits_exec)
		*ret_left = startup_scan_show(&r->unwinder.publisher, &scan);
	wait_for_walkers(&showing);
	r->start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	r->start_children_ns = child_cpu_ns();
	r->profile->frequency_hz = r->options.frequency_hz;
	begin_cut(r);
	r->start_ns = r->cut_clock.begin_ns;
	publisher_tick(&r->unwinder.publisher, r->start_ns, 0);
	pace_set_tick(r);
	err = bpf_sampler_start(r->sampler, r->cpus);
	if (!err)
		bpf_sampler_want_walkers(r->sampler, ~r->options.symbolizer.runtimes.runtime.off,
					 false);
	return err;
}

/* What has become of each run of the clocks' program; tests/agent/load_test.py adds it up. */
static void log_runs(const struct recorder_stats *s)
{
	uint64_t lost = s->lost[LOST_RING_FULL] + s->lost[LOST_NO_SCRATCH] +
			s->lost[LOST_UNKNOWN_STACK] + s->lost[LOST_OUT_OF_MEMORY] +
			s->lost[LOST_MALFORMED];

	log_debug("of %" PRIu64 " runs of the sampling program %" PRIu64 " gave samples, %" PRIu64
		  " were lost, %" PRIu64 " not selected, %" PRIu64 " not wanted, %" PRIu64
		  " undecided",
		  s->bpf_runs, s->samples, lost, s->rejected, s->left_out, s->undecided);
}

static void log_counts(struct recorder *r)
{
	struct kernel_walk_counts walks;

	log_runs(&r->stats);

	for (int i = 0; i < STOP_MAX_; i++)
		if (r->stats.raw[i])
			log_debug("%lu samples were walked by the agent: %s",
				  (unsigned long)r->stats.raw[i], profile_stop_name(i));
	if (r->options.kernel_frames != KERNEL_FRAMES_COMPARE)
		return;
	bpf_sampler_kernel_walks(r->sampler, &walks);
	log_debug("kernel stacks by rows: %lu equal the helper's in all %lu frames, %lu do not",
		  (unsigned long)walks.equal, (unsigned long)walks.equal_frames,
		  (unsigned long)walks.differ);
}

void recorder_stop(struct recorder *r)
{
	bpf_sampler_stop(r->sampler);
	/* The second for what the first put back. */
	recorder_turn(r);
	recorder_turn(r);
	settle_metadata(r);
	r->profile->cut.duration_ns = cut_clock_since(&r->cut_clock, now_ns());
	process_contexts_look(&r->contexts, r->profile);
	r->stopped = true;
	update_stats(r);
	log_counts(r);
}
