// SPDX-License-Identifier: Apache-2.0
/*
 * When the recorder's loop runs. Raw samples, and full ones with names to be read, wake it at once
 * (those of code that only we can follow every 20 ms: bpf/send.bpf.c, wake_for_raw()). Everything
 * else waits: hits and full samples for the next tick (five a second, on an idle machine
 * one in three seconds), process events, where there are many, for the end of a pause. A tick comes
 * with a turn that is about as late, and a pause as long as a tick's ends with one: waking up
 * alone, with cold caches, costs as much as a tick.
 */
#include "record/recorder_internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"

#include <string.h>

enum {
	TICK_MS = 200,
	/* While nothing runs that is sampled: what waking up costs is nearly all that is used then.
	 */
	IDLE_TICK_MS = 3000,
	FULL_BYTES = 1 << 10, /* more than most full records have */
	/* Between two turns for process events alone: as long as EVENTS_A_TURN take, a tenth of a
	 * ring if all are of one CPU. */
	EVENTS_MIN_MS = 10,
	EVENTS_MAX_MS = 40,
	/* As long as none of them is of something that is sampled: as its hits wait, too. */
	EVENTS_CALM_MS = TICK_MS,
	EVENTS_A_TURN = 256,
	PAUSE_MAX_MS = 900,
	EVENTS_FEW = 16, /* so few of them are waited for */
	TICK_EARLY_MS = 50,
};

void pace_set_timer(int fd, int flags, uint64_t ns)
{
	int err = loop_set_timer(fd, flags, ns);

	if (err)
		log_debug("cannot set a timer: %s", strerror(-err));
}

void pace_wake_in(struct recorder *r, uint64_t ms)
{
	pace_set_timer(r->soon_fd, 0, ms * 1000000);
}

/* Does something wait for ticks, or is it likely to come without waking us? */
static bool needs_ticks(const struct recorder *r)
{
	uint32_t cpu;

	return r->active || r->deaf || loader_is_busy(&r->unwinder.publisher.loader) ||
	       process_table_is_busy(&r->unwinder.processes) ||
	       symbolizer_is_busy(&r->decoder.symbolizer) ||
	       r->unwinder.publisher.asks_held_until_ns || cpu_set_missing_ns(r->cpus, &cpu);
}

/* Of an idle machine: known stacks come without waking us, and must not fill the ring if all CPUs
 * begin to work at once. */
static uint64_t idle_tick_ms(const struct recorder *r)
{
	uint64_t bytes_per_second =
		(uint64_t)FULL_BYTES * r->options.frequency_hz * cpu_set_size(r->cpus);
	uint64_t ms = (uint64_t)RECORDER_RING_BYTES / 2 * 1000 / (bytes_per_second + 1);

	return ms < TICK_MS ? TICK_MS : ms > IDLE_TICK_MS ? IDLE_TICK_MS : ms;
}

void pace_set_tick(struct recorder *r)
{
	uint64_t ms = needs_ticks(r) ? TICK_MS : idle_tick_ms(r);

	pace_set_timer(r->timer_fd, 0, ms * 1000000);
	r->tick_due_ns = now_ns() + ms * 1000000;
	r->ticks_slowly = ms > TICK_MS;
	r->active = false;
}

bool pace_tick_is_due(uint64_t now_ns, uint64_t due_ns)
{
	return now_ns + (uint64_t)TICK_EARLY_MS * 1000000 >= due_ns;
}

/*
 * Changed mappings should reach the kernel at once, but a machine that starts programs all the time
 * must not keep us running: after a turn for events, the side band is not listened to for a while.
 * (What runs in a mapping that the kernel does not know yet wakes us by its raw sample.) Who begins
 * and ends, and is not sampled, can wait longer; not so where who they are decides whether they
 * are, which nobody can tell any more when they have ended.
 */
static void listen_to_events(struct recorder *r, bool listen)
{
	int fd = side_band_fd(r->side_band), err;

	if (listen != r->deaf)
		return;
	err = listen ? loop_watch(r->epoll_fd, fd) : loop_unwatch(r->epoll_fd, fd);
	if (err) {
		log_debug("cannot change what is waited for: %s", strerror(-err));
		return;
	}
	r->deaf = !listen;
}

static void count_events_anew(struct recorder *r)
{
	r->nr_events = 0;
	r->events_matter = r->options.may_select && r->selection.facts.nr;
}

/* One that is as long as a tick's ends with a tick, which has a turn anyway. */
static bool ends_with_tick(const struct recorder *r)
{
	return r->pause_ms >= TICK_MS && !r->ticks_slowly;
}

static void pause_events(struct recorder *r, uint64_t ms)
{
	r->pause_ms = ms;
	r->pause_end_ns = now_ns() + ms * 1000000;
	count_events_anew(r);
	if (!ends_with_tick(r))
		pace_wake_in(r, ms);
}

uint64_t pace_events_ms(uint64_t pause_ms, uint64_t nr_events, bool matter)
{
	uint64_t ms = pause_ms * EVENTS_A_TURN / (nr_events + 1);
	uint64_t max = matter ? EVENTS_MAX_MS : EVENTS_CALM_MS;

	if (nr_events < (matter ? EVENTS_FEW : 1))
		return 0;
	return ms < EVENTS_MIN_MS ? EVENTS_MIN_MS : ms > max ? max : ms;
}

void pace_pause(struct recorder *r, uint64_t ms)
{
	listen_to_events(r, false);
	pause_events(r, ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS);
	/* Ticks have no turn meanwhile. */
	pace_wake_in(r, r->pause_ms);
}

/*
 * That process events woke us is seen by their being there: a perf event says only once that there
 * are new ones, to whoever waits for our descriptor.
 */
void pace_after_turn(struct recorder *r)
{
	if (r->ticks_slowly && r->active)
		pace_set_tick(r);
	if (!r->deaf && r->events.events.nr) {
		listen_to_events(r, false);
		pause_events(r, r->events_matter ? EVENTS_MIN_MS : EVENTS_CALM_MS);
	}
}

/* As long as there are many events, one pause follows the other. */
static void next_pause(struct recorder *r, uint64_t now)
{
	uint64_t late_ms = now > r->pause_end_ns ? (now - r->pause_end_ns) / 1000000 : 0;
	uint64_t ms = pace_events_ms(r->pause_ms + late_ms, r->nr_events, r->events_matter);

	if (!ms) {
		count_events_anew(r);
		listen_to_events(r, true);
		if (!r->deaf)
			return;
	}
	pause_events(r, ms ?: EVENTS_MAX_MS);
}

void pace_after_pause(struct recorder *r)
{
	uint64_t now = now_ns();

	if (!r->deaf)
		return;
	if (now >= r->pause_end_ns)
		next_pause(r, now);
	else if (!ends_with_tick(r)) /* it was for samples that were put back */
		pace_wake_in(r, (r->pause_end_ns - now) / 1000000 + 1);
}

void pace_end_pause_with_tick(struct recorder *r)
{
	uint64_t now = now_ns();

	if (r->deaf && ends_with_tick(r) && pace_tick_is_due(now, r->pause_end_ns))
		next_pause(r, now);
}

#define NAMES_PAUSE_NS	   UINT64_C(3000000000)
#define NAMES_PAUSE_MAX_NS UINT64_C(60000000000)

bool pace_names_due(struct name_retry *n, uint64_t nr, uint64_t now)
{
	if (!n->waits && nr == n->seen)
		return false;
	if (!n->waits) {
		if (!n->pause_ns || now - n->at_ns > NAMES_PAUSE_MAX_NS)
			n->pause_ns = NAMES_PAUSE_NS;
		n->at_ns = now + n->pause_ns;
		n->waits = true;
		return false;
	}
	if (now < n->at_ns)
		return false;
	n->pause_ns = n->pause_ns * 2 < NAMES_PAUSE_MAX_NS ? n->pause_ns * 2 : NAMES_PAUSE_MAX_NS;
	n->seen = nr;
	n->waits = false;
	return true;
}
