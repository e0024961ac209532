// SPDX-License-Identifier: Apache-2.0
/*
 * One turn: takes the samples out of the ring, then the process events out of the side band, and
 * applies both in the order of their times, so that every sample meets its process as it was then.
 * (Samples first: an event that precedes a sample has been written by the time the sample can be
 * read.)
 */
#include "record/recorder_internal.h"
#include "unwinder/budget.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
	SOON_MS = 1,		  /* until a sample that was put back */
	CALM_NS = 50000000,	  /* after news were lost: others are read again no more often */
	READ_AGAIN_PART = 10,	  /* of a CPU reading again takes one in so many, ... */
	CALM_MORE_NS = 100000000, /* ... if the pause is not longer for that */
	BATCH_PARTS = 8,	  /* of its room; see put_into_batch() */
	BATCH_CLOCK = 4,	  /* one part in so many is for the clock's samples alone */
	DRAIN_EVERY = 32,	  /* samples, of up to 64 KiB and a walk each */
	MEANWHILE_NS = 10000000,  /* for showing processes while something else is waited for */
};

/* --- process events -------------------------------------------------------------------------- */

static void track_targets(struct recorder *r, const struct side_event *e)
{
	if (e->type == SIDE_FORK && map_get(&r->targets, (uint32_t)e->parent_pid)) {
		/* The kernel's table has the child already: on_fork. */
		if (map_put(&r->targets, (uint32_t)e->pid, 1))
			log_debug("process %d is not followed: out of memory", e->pid);
	} else if (e->type == SIDE_EXIT && map_del(&r->targets, (uint32_t)e->pid)) {
		bpf_sampler_del_target(r->sampler, (uint32_t)e->pid);
	}
}

void recorder_mark_changed(struct recorder *r, int32_t pid)
{
	size_t i;

	r->events_matter = true;
	for (i = 0; i < r->changed.nr; i++)
		if (r->changed.items[i] == pid)
			return;
	if (vec_push(&r->changed, pid))
		log_debug("process %d is shown late: out of memory", pid);
}

/*
 * Who has executed something is looked at as long as it is there: if its first sample comes at its
 * end, nobody else can tell who it was.
 */
static void track_selection(struct recorder *r, const struct side_event *e)
{
	struct selection_process found;
	const uint64_t *parent;

	if (e->type == SIDE_EXIT) {
		/* Nobody asked for any: the kernel has none. */
		if (r->had_facts)
			bpf_sampler_del_facts(r->sampler, (uint32_t)e->pid);
		map_del(&r->at_exec, (uint32_t)e->pid);
	} else if (e->type == SIDE_EXEC) {
		if ((uint32_t)e->pid == r->decided_pid)
			r->decided_pid = 0;
		map_del(&r->at_exec, (uint32_t)e->pid);
		if (!r->selection.facts.nr || selection_look(&r->selection, e->pid, &found))
			return;
		if (map_put(&r->at_exec, (uint32_t)e->pid, found.verdict))
			log_debug("process %d is decided later: out of memory", e->pid);
	} else if (e->type == SIDE_FORK) {
		parent = map_get(&r->at_exec, (uint32_t)e->parent_pid);
		if (parent && map_put(&r->at_exec, (uint32_t)e->pid, *parent))
			log_debug("process %d is decided later: out of memory", e->pid);
	}
}

static void on_event(struct recorder *r, const struct side_event *e)
{
	struct process *proc;

	if (e->type == SIDE_CODE || e->type == SIDE_CODE_GONE) {
		decoder_on_kernel_code(&r->decoder, e, r->events.text.items + e->text);
		r->list_code = true;
		return;
	}
	/* Processes are read again as they are sampled (recorder_samples.c, current()). */
	if (e->type == SIDE_LOST) {
		recorder_lose(r, SOURCE_CLOCK, LOST_SIDE_BAND, e->lost);
		r->events_lost = true;
		decoder_on_lost_events(&r->decoder);
		r->turn_next_ns = r->turn_ns + CALM_NS;
	}
	if (e->type == SIDE_LOST || (e->type == SIDE_EXEC && e->pid == r->awaits_exec))
		r->awaits_exec = 0;
	if (e->type == SIDE_EXIT) /* the next process of that PID is another one */
		map_del(&r->refreshed, (uint32_t)e->pid);
	own_on_event(&r->own, e);
	if (r->options.may_select)
		track_selection(r, e);
	if (r->options.targets_only)
		track_targets(r, e);
	if (process_table_apply(&r->unwinder.processes, e, r->events.text.items)) {
		recorder_lose(r, SOURCE_CLOCK, LOST_SIDE_BAND, 1);
		/* The kernel gave the child its parent's entry, which nobody would ever take away.
		 */
		if (e->type == SIDE_FORK && !process_find(&r->unwinder.processes, e->pid))
			bpf_sampler_del_process(r->sampler, (uint32_t)e->pid);
	}
	metadata_on_event(&r->metadata, e);
	proc = e->type == SIDE_MMAP ? process_find(&r->unwinder.processes, e->pid) : NULL;
	if (proc && proc->user &&
	    ((struct published_process *)proc->user)->version != proc->version)
		recorder_mark_changed(r, e->pid);
}

/* --- one turn -------------------------------------------------------------------------------- */

static bool is_half_full(const struct recorder *r)
{
	return batch_bytes(r->next) > r->batch_bytes_max / 2;
}

/*
 * Hits are small, and full samples much smaller than stacks: none takes the others' last room.
 * Other sources may come a hundred thousand times a second, and leave some for the clock's samples,
 * as in the ring (bpf/send.bpf.c).
 */
static int put_into_batch(struct recorder *r, const struct sample_header *record, size_t size,
			  uint32_t type)
{
	size_t room = r->batch_bytes_max, part = room / BATCH_PARTS;
	int err;

	if (size >= sizeof(*record) && record->source != SOURCE_CLOCK)
		room -= room / BATCH_CLOCK;
	if (type != SAMPLE_RAW)
		return batch_add(r->next, record, size, type == SAMPLE_HIT ? room : room - part);
	err = batch_add(r->next, record, size, room - 2 * part);
	if (err == -ENOMEM && !batch_add_without_stack(r->next, record, size, room - part)) {
		recorder_lose(r, record->source, LOST_RAW_THROTTLED, 1);
		return 0;
	}
	return err;
}

static int keep_record(void *ctx, void *record, size_t size)
{
	struct recorder *r = ctx;
	const struct sample_header *h = record;
	uint32_t type = size >= sizeof(*h) ? h->type : UINT32_MAX;
	int err;

	if (is_half_full(r))
		bpf_sampler_send_raws(r->sampler, batch_bytes(r->next) > r->batch_bytes_max / 4 * 3
							  ? RAWS_NONE
							  : RAWS_SHORT);
	err = put_into_batch(r, h, size, type);
	if (err)
		recorder_lose(r, size >= sizeof(*h) ? h->source : SOURCE_CLOCK,
			      err == -EINVAL ? LOST_MALFORMED : LOST_OUT_OF_MEMORY, 1);
	/* Hits of a stack that was dropped here will come until the kernel sends it once more. */
	if (err && type == SAMPLE_FULL)
		recorder_ask_again(r, h->hash);
	if (err && type != SAMPLE_HIT && r->refused_until_ns != UINT64_MAX)
		r->refused_until_ns = now_ns() + 2 * (uint64_t)KNOWN_STACKS_STAY_NS;
	return 0;
}

/* What a sample that waits will need: its process is shown, the table of its file begun. */
static void prepare(struct recorder *r, const uint8_t *record, size_t size)
{
	const struct sample_header *h = (const struct sample_header *)record;
	const struct sample_raw *raw = (const struct sample_raw *)(h + 1);
	struct process *proc;
	uint32_t user;
	uint64_t mm;

	/* Perhaps it is not wanted. */
	if (h->flags & SAMPLE_UNDECIDED)
		return;
	if (h->type != SAMPLE_RAW || size < sizeof(*h) + sizeof(*raw))
		return;
	if (h->stop == STOP_FILE_PENDING)
		publisher_begin_table(&r->unwinder.publisher, raw->file);
	if (h->stop != STOP_NO_PROCESS)
		return;
	/* While it is read the batch may grow, and the record be elsewhere. */
	mm = raw->mm;
	user = raw->user;
	if (process_get_unknown(&r->unwinder.processes, (int32_t)h->pid, &proc))
		return;
	process_set_owner(proc, user);
	if (publisher_show(&r->unwinder.publisher, proc, mm))
		log_debug("cannot show the mappings of process %d", proc->pid);
}

/* While many samples are walked, the ring must not overflow. */
void recorder_drain(void *ctx)
{
	struct recorder *r = ctx;

	if (bpf_sampler_drain(r->sampler, keep_record, r))
		log_debug("cannot read the ring of samples");
}

/*
 * The ring must not overflow while a table is built either; and processes that began meanwhile are
 * shown, which may need nothing of what is waited for, or another table, which is begun. Only those
 * of which no event was taken in: what the others map is not known before all that came earlier is
 * done. False: there is not much room left for what waits, and those that began would be lost.
 */
bool recorder_drain_meanwhile(void *ctx)
{
	struct recorder *r = ctx;
	uint64_t begin = now_ns();

	recorder_drain(r);
	while (r->next_looked_at < r->next->pending.nr && now_ns() - begin < MEANWHILE_NS) {
		const struct pending *p = &r->next->pending.items[r->next_looked_at++];

		prepare(r, r->next->bytes.items + p->at, p->size);
	}
	return !is_half_full(r);
}

/* Of a record that cannot be put together. */
static uint8_t source_of(const struct batch *b, const struct pending *p)
{
	return ((const struct sample_header *)(b->bytes.items + p->at))->source;
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
		struct process *proc = process_find(&r->unwinder.processes, r->changed.items[i]);

		if (proc && proc->user && !proc->exited &&
		    publisher_show(&r->unwinder.publisher, proc, 0))
			log_debug("cannot show the mappings of process %d", proc->pid);
	}
	r->changed.nr = 0;
}

/*
 * Samples that are younger than the turn wait for the next one: the events that came between may
 * not have been read. Hits of known stacks wait for whatever has one, as do those that are not read
 * yet. How many are left.
 */
static size_t put_back(struct recorder *r, uint64_t until_ns)
{
	struct batch *b = r->batch;
	size_t n = b->pending.nr, i, size;
	const uint8_t *record;
	bool soon = false;

	while (n && b->pending.items[n - 1].time_ns > until_ns)
		n--;
	for (i = n; i < b->pending.nr; i++) {
		if (batch_get(b, &b->pending.items[i], &record, &size)) {
			recorder_lose(r, source_of(b, &b->pending.items[i]), LOST_OUT_OF_MEMORY, 1);
			continue;
		}
		soon |= ((const struct sample_header *)record)->type != SAMPLE_HIT;
		keep_record(r, (void *)record, size);
	}
	if (soon)
		pace_wake_in(r, SOON_MS);
	return n;
}

static void apply_sample(struct recorder *r, const struct pending *p)
{
	const uint8_t *record;
	size_t size;

	if (batch_get(r->batch, p, &record, &size))
		recorder_lose(r, source_of(r->batch, p), LOST_OUT_OF_MEMORY, 1);
	else
		recorder_on_sample(r, record, size);
}

static void apply_in_order(struct recorder *r, size_t nr_samples)
{
	const struct batch *b = r->batch;
	size_t s = 0;

	r->event_at = 0;
	while (s < nr_samples || r->event_at < r->events.events.nr) {
		const struct pending *p = s < nr_samples ? &b->pending.items[s] : NULL;

		if (r->event_at == r->events.events.nr ||
		    (s < nr_samples && p->time_ns < r->events.events.items[r->event_at].time_ns)) {
			apply_sample(r, p);
			if (++s % DRAIN_EVERY == 0)
				recorder_drain(r);
		} else {
			on_event(r, &r->events.events.items[r->event_at++]);
		}
	}
}

static void share_memory(struct recorder *r)
{
	struct budget b = budget_share(r->options.memory_limit, r->unwinder.publisher.fixed_bytes);

	if (r->lent == LENT_TO_TABLES)
		b = budget_lend(&b);
	else if (r->lent == LENT_TO_PROFILE)
		b = budget_lend_to_profile(&b, r->lent_arena_free);
	arena_set_max(&r->unwinder.store.arena, b.arena);
	r->profile_bytes_max = b.profile;
	r->batch_bytes_max = b.batch;
}

/*
 * Tables for all that runs on a busy machine may need more than their part, while turns hardly ever
 * have as many samples as there is room for. Not when the profile fills up: collecting takes what
 * it keeps once more. What is lent is not given back: it is as if the limit were shared out
 * otherwise from the begin.
 */
static void lend_memory(struct recorder *r)
{
	if (r->lent || !r->unwinder.store.is_short ||
	    profile_bytes(r->profile) > r->profile_bytes_max / 4)
		return;
	r->lent = LENT_TO_TABLES;
	share_memory(r);
	log_debug("memory: unwind tables get more, of what samples of a turn may take");
}

bool recorder_lend_to_profile(struct recorder *r)
{
	if (r->lent || r->unwinder.store.is_short)
		return false;
	r->lent = LENT_TO_PROFILE;
	r->lent_arena_free = arena_bytes_left(&r->unwinder.store.arena);
	share_memory(r);
	log_debug("memory: the profile gets more, %" PRIu64 " kB in all",
		  r->profile_bytes_max / 1024);
	return true;
}

/*
 * Walkers that have come, and the kernel's rows, have their part of the memory limit: what is left
 * is shared out as at the begin. The arena alone would lose a third of its room to them.
 */
static void update_walkers(struct recorder *r)
{
	size_t bytes;

	bpf_sampler_want_walkers(r->sampler, r->unwinder.publisher.runtimes.met, true);
	bpf_sampler_update_walkers(r->sampler, 0, 0);
	bpf_sampler_update_rows(r->sampler, 0);
	bytes = bpf_sampler_walker_bytes(r->sampler);
	if (bytes <= r->walker_bytes)
		return;
	log_debug("memory: walkers take %zu kB more", (bytes - r->walker_bytes) / 1024);
	r->unwinder.publisher.fixed_bytes += bytes - r->walker_bytes;
	r->walker_bytes = bytes;
	share_memory(r);
}

static void look_at_kernel(struct recorder *r)
{
	r->list_code |= decoder_look_at_kernel(&r->decoder) != KERNEL_SAME;
}

/*
 * What fails costs what it was about: samples stay in the ring, and where events were lost all is
 * read again.
 */
void recorder_turn(struct recorder *r)
{
	struct batch *b;
	int err;

	r->turn_ns = now_ns();
	cut_clock_look(&r->cut_clock, r->turn_ns, clock_ahead_ns(CLOCK_BOOTTIME));
	update_walkers(r);
	lend_memory(r);
	look_at_kernel(r);
	recorder_drain(r);
	err = side_band_drain_until(r->side_band, r->turn_ns, &r->events);
	b = r->batch;
	r->batch = r->next;
	r->next = b;
	batch_clear(r->next);
	r->next_looked_at = 0;
	bpf_sampler_send_raws(r->sampler, RAWS_WHOLE);
	if (r->batch->pending.nr)
		qsort(r->batch->pending.items, r->batch->pending.nr,
		      sizeof(*r->batch->pending.items), by_time);
	r->met_raw = false;
	r->nr_events += r->events.events.nr;
	r->active |= r->batch->pending.nr || r->events.events.nr;
	r->read_again_ns = 0;
	metadata_begin_turn(&r->metadata, r->turn_ns, !err && r->events.is_whole);
	apply_in_order(r, put_back(r, r->turn_ns));
	if (r->turn_next_ns > r->turn_ns)
		r->turn_next_ns += r->read_again_ns < CALM_MORE_NS / READ_AGAIN_PART
					   ? READ_AGAIN_PART * r->read_again_ns
					   : CALM_MORE_NS;
	if (err) {
		log_debug("cannot read the kernel's events: %s", strerror(-err));
		on_event(r, &(struct side_event){ .time_ns = r->turn_ns, .type = SIDE_LOST });
	}
	show_changed(r);
	publisher_update_runtimes(&r->unwinder.publisher);
	/* As long as samples come raw, showing what they lack goes first. */
	if (!r->met_raw)
		decoder_want_names(&r->decoder);
}
