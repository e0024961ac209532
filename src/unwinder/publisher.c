// SPDX-License-Identifier: Apache-2.0
#include "unwinder/publisher.h"
#include "unwinder/publisher_internal.h"
#include "unwinder/anon_code.h"
#include "process/proc_identity.h"
#include "profile/profile.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/owners.h"

#include <errno.h>
#include <string.h>

/* Stands for files that the table of files has no place for. */
enum { FILE_BEYOND = UNWIND_FILES_MAX - 1 };

enum {
	NO_ROOM_PAUSE_NS =
		200000000, /* until it is tried again to show something where there is no room */
	UPDATE_MAX_NS = 10000000, /* for looking at runtimes in one turn */
	FILES_AT_ONCE = 64,	  /* are opened before the ring is emptied */
	FILES_OF_SHOW = 512,	  /* are opened when a process is shown; most have some dozens */
	/* Looking at runtimes of processes that are shown already takes half of a CPU at most. */
	LOOK_PART = 2,
	LOOK_PAUSE_NS = 50000000, /* of an owner who has had his share */
	/* Numbers of files that are root's alone, of whom an attacker cannot have many:
	 * owners_may_take(). */
	NUMBERS_OF_ROOT = UNWIND_FILES_MAX / 4,
	/* How many stay with files that are used no more, the others for some time. */
	NUMBERS_KEPT = 512,
	NUMBERS_MANY = UNWIND_FILES_MAX / 4,
	/* How full the kernel's table of processes gets, and how full it is made then: children of
	 * those in it, which on_fork puts there, shall find places, whoever has the others. */
	PROCESSES_MANY = UNWIND_PROCESSES_MAX / 8 * 7,
	PROCESSES_KEPT = UNWIND_PROCESSES_MAX / 4 * 3,
};
#define NUMBERS_KEPT_NS 60000000000ull
#define MEND_SHORT_NS	1000000000ull

static void unref(struct publisher *p, struct mapping_snapshot *b)
{
	if (--b->refs)
		return;
	b->retired_ns = unwind_store_now(p->store);
	if (vec_push(&p->retired, b))
		log_debug("a retired snapshot of mappings stays: out of memory");
}

static void ref(struct publisher *p, struct mapping_snapshot *b)
{
	size_t i;

	if (b->refs++)
		return;
	for (i = 0; i < p->retired.nr; i++) {
		if (p->retired.items[i] == b) {
			p->retired.items[i] = p->retired.items[--p->retired.nr];
			return;
		}
	}
}

/* --- files ----------------------------------------------------------------------------------- */

static uint32_t nr_numbers(const struct publisher *p)
{
	return (uint32_t)(p->files.nr - p->free_numbers.nr);
}

/* May a file of that owner have one more number? */
static bool has_number(const struct publisher *p, uint32_t owner)
{
	uint32_t nr_free = nr_numbers(p) < FILE_BEYOND ? FILE_BEYOND - nr_numbers(p) : 0;

	if (!p->sampler || !owner)
		return nr_free;
	return owners_may_take(&p->nr_of_owner, owner, nr_free, NUMBERS_OF_ROOT);
}

/* The file's number, FILE_BEYOND if there are too many. */
static uint32_t number_of(struct publisher *p, struct mapped_file *file)
{
	struct shown_file shown = { file, .owner = file->owner, .unused_ns = p->store->now_ns };
	uint32_t number;

	if (file->shown)
		return file->shown;
	if (!p->files.nr && vec_push(&p->files, (struct shown_file){ 0 })) /* MAPPING_ANON's */
		return FILE_BEYOND;
	if (!has_number(p, file->owner) || vec_reserve(&p->files, p->files.nr + 1) ||
	    vec_reserve(&p->free_numbers, p->files.nr + 1) ||
	    owners_take(&p->nr_of_owner, file->owner)) {
		p->files_full = true;
		return FILE_BEYOND;
	}
	if (p->free_numbers.nr)
		number = p->free_numbers.items[--p->free_numbers.nr];
	else
		number = (uint32_t)p->files.nr++;
	p->files.items[number] = shown;
	file->shown = number;
	process_hold_file(file);
	return number;
}

static void take_number_back(struct publisher *p, uint32_t number)
{
	struct shown_file *shown = &p->files.items[number];

	owners_give_back(&p->nr_of_owner, shown->owner);
	unwind_store_forget(p->store, number);
	table_spill_drop(&p->spill, number);
	shown->file->shown = 0;
	process_let_file_go(shown->file);
	*shown = (struct shown_file){ 0 };
	p->free_numbers.items[p->free_numbers.nr++] = number;
}

/* Takes numbers back that nothing has used for long, and no walk can be using any more. */
static void take_numbers_back(struct publisher *p, uint64_t now)
{
	uint64_t kept_ns = NUMBERS_KEPT_NS;

	if (nr_numbers(p) > NUMBERS_MANY || p->files_full)
		kept_ns = RETIRE_NS;
	for (uint32_t i = 1; i < p->files.nr && nr_numbers(p) > NUMBERS_KEPT; i++) {
		const struct shown_file *shown = &p->files.items[i];

		if (shown->file && !shown->refs && shown->unused_ns + kept_ns <= now &&
		    !loader_is_building(&p->loader, i))
			take_number_back(p, i);
	}
	p->files_full = false;
}

/* A snapshot begins or ceases to use the files of its mappings. */
static void use_files(struct publisher *p, const struct mapping_snapshot *b, bool begins)
{
	const struct unwind_mapping *m = b->nr ? publisher_mappings(p, b) : NULL;

	for (uint32_t i = 0; i < b->nr; i++) {
		struct shown_file *shown;

		if (m[i].file == MAPPING_ANON || m[i].file == FILE_BEYOND)
			continue;
		shown = &p->files.items[m[i].file];
		shown->refs += begins ? 1 : UINT32_MAX;
		shown->unused_ns = unwind_store_now(p->store);
	}
}

struct mapped_file *publisher_file(const struct publisher *p, uint32_t number)
{
	if (number == MAPPING_ANON)
		return p->processes->files.items[MAPPING_ANON];
	if (number >= p->files.nr || !p->files.items[number].file)
		return p->processes->files.items[MAPPED_BEYOND];
	return p->files.items[number].file;
}

static void on_forget_file(void *ctx, const struct mapped_file *file)
{
	struct publisher *p = ctx;

	runtimes_forget_file(&p->runtimes, file->index);
	map_del(&p->complained, file->index);
	jit_code_forget_file(p, file->index);
	if (p->forget_file)
		p->forget_file(p->ctx, file->index);
}

/* --- processes ------------------------------------------------------------------------------- */

static void drop_published(struct publisher *p, struct process *proc)
{
	struct published_process *v = proc->user;

	if (!v)
		return;
	unref(p, v->snapshot);
	if (v->runtimes)
		map_del(&p->with_runtimes, (uint32_t)proc->pid);
	process_runtimes_free(v->runtimes);
	free(v);
	proc->user = NULL;
}

void publisher_hide(struct publisher *p, struct process *proc)
{
	if (proc->user && p->sampler)
		bpf_sampler_del_process(p->sampler, (uint32_t)proc->pid);
	drop_published(p, proc);
}

static void on_forget(void *ctx, struct process *proc)
{
	publisher_hide(ctx, proc);
}

/*
 * The kernel gave the child its parent's entry at the fork; it may be an older one than the
 * parent's snapshot of now, so look which. Or it is about to: the event comes before the tracepoint
 * (copy_process(), then trace_sched_process_fork() in kernel_clone()), and we may be between.
 */
static void on_forked(void *ctx, struct process *parent, struct process *child)
{
	struct publisher *p = ctx;
	struct unwind_process entry = { 0 };
	struct mapping_snapshot *b;
	struct published_process *v;
	uint64_t *found;

	if (!parent->user || !p->sampler || child->user)
		return;
	if (bpf_sampler_get_process(p->sampler, (uint32_t)child->pid, &entry))
		entry.generation = ((struct published_process *)parent->user)->snapshot->generation;
	found = map_get(&p->snapshots, entry.generation);
	v = found ? calloc(1, sizeof(*v)) : NULL;
	if (!v) {
		bpf_sampler_del_process(p->sampler, (uint32_t)child->pid);
		return;
	}
	b = (struct mapping_snapshot *)(uintptr_t)*found;
	ref(p, b);
	*v = (struct published_process){
		.snapshot = b,
		.mm = entry.mm,
		.used_ns = p->store->now_ns,
		.look = ((struct published_process *)parent->user)->runtimes != NULL
	};
	publisher_hold_child(p, v, parent->user, entry.flags);
	p->nr_told++;
	/* The mappings that the parent is published with, unless that has moved on meanwhile. */
	if (b == ((struct published_process *)parent->user)->snapshot &&
	    ((struct published_process *)parent->user)->version == parent->version)
		v->version = child->version;
	child->user = v;
}

static void on_file_came(void *ctx, struct mapped_file *file);

void publisher_init(struct publisher *p, struct process_table *processes,
		    struct unwind_store *store, struct bpf_sampler *sampler)
{
	*p = (struct publisher){
		.processes = processes,
		.store = store,
		.sampler = sampler,
		.runtimes_due_ns = UINT64_MAX,
		.follow_time.part = FOLLOW_PART,
		.spill_time.part = SPILL_PART_OF_CPU,
		.look_time.part = LOOK_PART,
	};
	loader_init(&p->loader);
	table_spill_init(&p->spill);
	runtimes_init(&p->runtimes, processes);
	processes->forget = on_forget;
	processes->forked = on_forked;
	processes->forget_file = on_forget_file;
	processes->file_came = on_file_came;
	processes->file_too_large = publisher_file_too_large;
	processes->ctx = p;
	unwind_store_set_state(store, FILE_BEYOND, FILE_STATE_UNREADABLE);
}

void publisher_fini(struct publisher *p)
{
	struct map_slot *slot;
	size_t i = 0;

	loader_fini(&p->loader);
	table_spill_fini(&p->spill);
	map_fini(&p->complained);
	map_fini(&p->with_runtimes);
	while ((slot = map_next(&p->snapshots, &i)))
		free((struct mapping_snapshot *)(uintptr_t)slot->value);
	map_fini(&p->snapshots);
	vec_free(&p->retired);
	vec_free(&p->files);
	vec_free(&p->free_numbers);
	map_fini(&p->nr_of_owner);
	map_fini(&p->follow_failed);
	anon_code_fini(p);
	time_shares_fini(&p->follow_time);
	time_shares_fini(&p->spill_time);
	time_shares_fini(&p->look_time);
	runtimes_fini(&p->runtimes);
}

static void free_cells(struct publisher *p, const struct mapping_snapshot *b)
{
	unwind_store_free_mappings(p->store, b->cell, b->nr);
	for (uint32_t i = 0; i < b->nr_records; i++)
		unwind_store_free_record(p->store, b->records[i]);
}

/* One mapping as the walker wants it. */
static struct unwind_mapping shown_mapping(struct publisher *p, const struct process *proc,
					   const struct mapping *m)
{
	struct mapped_file *file = p->processes->files.items[m->file];
	struct unwind_mapping shown = { .start = m->start, .end = m->end };
	uint32_t state;
	bool was_open;

	if (m->file == MAPPING_ANON)
		return shown;
	was_open = file->state == FILE_OPEN;
	process_open_file(p->processes, proc, m, file);
	if (file->state == FILE_OPEN && !file->is_elf)
		return shown;
	/* A core may know the segments of a file that is not there. */
	shown.bias = mapping_bias(file, m);
	shown.file = m->file == MAPPED_BEYOND ? FILE_BEYOND : number_of(p, file);
	if (shown.file == FILE_BEYOND)
		return shown;
	state = p->store->files[shown.file].state;
	if (file->state == FILE_UNREADABLE)
		unwind_store_set_state(p->store, shown.file, FILE_STATE_UNREADABLE);
	/* Unreadable before, for a process that had gone, and readable now. */
	else if (state == FILE_STATE_NONE || (state == FILE_STATE_UNREADABLE && !was_open))
		unwind_store_set_state(p->store, shown.file, FILE_STATE_PENDING);
	return shown;
}

/* Writes down what attach() found, for the walkers. */
static int add_records(struct publisher *p, const struct process_runtimes *list,
		       struct mapping_snapshot *b)
{
	uint32_t i, next = 0;
	int r = 0;

	for (i = 0; list && i < list->nr && !r; i++) {
		const struct runtime_instance *in = list->items[i];

		if (!in->proc || !in->dso->ops->record_size)
			continue;
		r = unwind_store_add_record(p->store, in->dso->ops->id, in->record,
					    (uint32_t)in->dso->ops->record_size, next,
					    &b->records[b->nr_records]);
		if (!r)
			next = b->records[b->nr_records++];
	}
	return r;
}

static size_t nr_code_ranges(const struct process_runtimes *list)
{
	size_t nr = 0;

	for (uint32_t i = 0; list && i < list->nr; i++)
		nr += list->items[i]->proc ? list->items[i]->proc->code.nr : 0;
	return nr;
}

/* One that no snapshot has, though the numbers have come round; 0 is none. */
static uint32_t next_generation(struct publisher *p)
{
	do {
		p->last_generation++;
	} while (!p->last_generation || map_get(&p->snapshots, p->last_generation));
	return p->last_generation;
}

/* Who is gone is taken for who he was. */
static uint32_t user_of(const struct process *proc)
{
	const struct published_process *v = proc->user;

	if (proc->owner_version == proc->version)
		return proc->owner;
	return proc_user(proc->pid, v && v->snapshot ? v->snapshot->user : UNWIND_USER_UNKNOWN);
}

static int new_snapshot(struct publisher *p, const struct process *proc,
			const struct process_runtimes *list, struct mapping_snapshot **ret)
{
	/* A mapping may be parted where a runtime's code begins or ends. */
	size_t max = proc->mappings.nr + 2 * nr_code_ranges(list);
	_cleanup_free_ struct unwind_mapping *shown = NULL;
	_cleanup_free_ struct mapping_snapshot *b = calloc(1, sizeof(*b));
	uint32_t nr = 0;
	int r;

	if (max > MAPPINGS_MAX)
		max = MAPPINGS_MAX;
	shown = calloc(max ? max : 1, sizeof(*shown));
	if (!shown || !b)
		return -ENOMEM;
	for (size_t i = 0; i < proc->mappings.nr; i++) {
		const struct mapping *m = &proc->mappings.items[i];
		struct unwind_mapping whole = shown_mapping(p, proc, m);

		for (uint64_t at = m->start, end; at < m->end && nr < max; at = end) {
			end = m->end;
			b->is_short |= whole.file == FILE_BEYOND;
			p->nr_refused += whole.file == FILE_BEYOND;
			whole.runtime = runtimes_of_code(list, m->file == MAPPING_ANON, at, &end);
			whole.start = at;
			whole.end = end;
			shown[nr++] = whole;
		}
	}
	r = unwind_store_add_mappings(p->store, shown, nr, &b->cell);
	if (r)
		return r;
	b->nr = nr;
	b->refs = 1;
	for (uint32_t i = 0; list && i < list->nr; i++)
		b->expects_code |= list->items[i]->proc && list->items[i]->proc->code_expected;
	if (p->sampler)
		b->user = user_of(proc);
	b->generation = next_generation(p);
	r = add_records(p, list, b);
	if (!r)
		r = map_put(&p->snapshots, b->generation, (uintptr_t)b);
	if (r) {
		free_cells(p, b);
		return r;
	}
	use_files(p, b, true);
	*ret = TAKE_PTR(b);
	return 0;
}

struct unwind_process publisher_entry(const struct mapping_snapshot *b, uint64_t mm)
{
	return (struct unwind_process){
		.mm = mm,
		.generation = b->generation,
		.nr_mappings = b->nr,
		.mappings = b->cell,
		.flags = b->expects_code ? PROCESS_CODE_EXPECTED : 0,
		.runtimes = b->nr_records ? b->records[b->nr_records - 1] : 0,
	};
}

struct place {
	struct process *proc;
	uint64_t key; /* the lowest goes first */
};

static int compare_places(const void *a_, const void *b_)
{
	const struct place *a = a_, *b = b_;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* Children that were never sampled, the oldest first, then those that were not sampled for longest.
 */
static uint64_t place_key(const struct published_process *v)
{
	return v->sampled ? v->used_ns | UINT64_C(1) << 63 : v->used_ns;
}

/*
 * Leaves PROCESSES_KEPT entries in the kernel's table, if there are more than `max`. Nothing is
 * lost with the others: the next sample of such a process comes raw, and it is shown again.
 */
static void take_places_back(struct publisher *p, size_t max)
{
	VEC(struct place) places = { 0 };
	struct map_slot *slot;
	size_t i = 0;

	p->nr_told = 0;
	while ((slot = map_next(&p->processes->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;
		const struct published_process *v = proc->user;

		if (v && !v->taken_out && vec_push(&places, (struct place){ proc, place_key(v) }))
			break;
	}
	if (places.nr > max) {
		qsort(places.items, places.nr, sizeof(*places.items), compare_places);
		for (i = 0; i < places.nr - PROCESSES_KEPT; i++) {
			((struct published_process *)places.items[i].proc->user)->taken_out = true;
			bpf_sampler_del_process(p->sampler, (uint32_t)places.items[i].proc->pid);
		}
		log_debug("the kernel's table of processes: %zu of %zu were taken out", i,
			  places.nr);
	}
	vec_free(&places);
}

int publisher_tell_kernel(struct publisher *p, const struct process *proc)
{
	struct published_process *v = proc->user;
	struct unwind_process entry;
	int r;

	if (v->taken_out)
		return 0;
	/* That of a child which the kernel had yet to show: on_forked(). */
	if (p->sampler && !v->mm &&
	    !bpf_sampler_get_process(p->sampler, (uint32_t)proc->pid, &entry))
		v->mm = entry.mm;
	if (!p->sampler || !v->mm)
		return 0;
	entry = publisher_entry(v->snapshot, v->mm);
	entry.flags |= (v->final ? PROCESS_MAPPINGS_FINAL : 0) |
		       (v->asks_held_until_ns ? PROCESS_ASKS_HELD : 0) |
		       (publisher_is_anon_silent(v) ? PROCESS_ANON_SILENT : 0);
	r = bpf_sampler_set_process(p->sampler, (uint32_t)proc->pid, &entry);
	if (r == -E2BIG && p->store->now_ns >= p->no_place_until_ns) {
		p->no_place_until_ns = p->store->now_ns + NO_ROOM_PAUSE_NS;
		take_places_back(p, PROCESSES_KEPT);
		r = bpf_sampler_set_process(p->sampler, (uint32_t)proc->pid, &entry);
	}
	/* Full of what nobody heard of, which is on its way out: until then this process's samples
	 * go on coming raw, and are walked here. */
	v->taken_out = r == -E2BIG;
	return v->taken_out ? 0 : r;
}

/* Of thousands of files, samples are taken in between. */
static void open_files(struct publisher *p, const struct process *proc)
{
	size_t nr_new = 0;

	for (size_t i = 0; i < proc->mappings.nr; i++) {
		const struct mapping *m = &proc->mappings.items[i];
		struct mapped_file *file = p->processes->files.items[m->file];

		if (m->file == MAPPING_ANON || file->state != FILE_NEW)
			continue;
		process_open_file(p->processes, proc, m, file);
		runtimes_look_at(&p->runtimes, m->file);
		if (++nr_new % FILES_AT_ONCE == 0 && p->drain)
			p->drain(p->drain_ctx);
	}
}

/* Whose share of the time for that it takes. */
static uint32_t looked_for(const struct process *proc)
{
	const struct published_process *v = proc->user;

	return v && v->snapshot ? v->snapshot->user : UNWIND_USER_UNKNOWN;
}

static void update_runtimes(struct publisher *p, struct process *proc,
			    struct process_runtimes **list)
{
	uint64_t begin = now_ns(), due;

	runtimes_update(&p->runtimes, proc, list, begin);
	if (*list) {
		time_shares_take(&p->look_time, looked_for(proc), begin, now_ns() - begin);
		if (map_put(&p->with_runtimes, (uint32_t)proc->pid, 1))
			log_debug("the runtimes of process %d are not followed: out of memory",
				  proc->pid);
	}
	due = runtimes_due(*list);
	if (due < p->runtimes_due_ns)
		p->runtimes_due_ns = due;
}

/* A snapshot with the process's present mappings and runtimes, for the published process. */
static int show_anew(struct publisher *p, struct process *proc)
{
	struct published_process *v = proc->user;
	struct mapping_snapshot *b;
	int r;

	r = new_snapshot(p, proc, v->runtimes, &b);
	if (r == -ENOSPC)
		p->no_room_until_ns = now_ns() + NO_ROOM_PAUSE_NS;
	if (r)
		return r;
	if (v->snapshot)
		unref(p, v->snapshot);
	v->snapshot = b;
	v->final &= v->version == proc->version;
	v->version = proc->version;
	if (v->runtimes)
		v->runtimes->unshown = false;
	return 0;
}

bool publisher_has_runtime(struct publisher *p, const struct process *proc)
{
	open_files(p, proc);
	return runtimes_any(&p->runtimes, proc);
}

int publisher_show(struct publisher *p, struct process *proc, uint64_t mm)
{
	struct published_process *v = proc->user;
	int r;

	/* An exec that was not heard of. */
	if (v && mm && v->mm && mm != v->mm) {
		publisher_hide(p, proc);
		v = NULL;
	}
	if (v && mm)
		publisher_sampled(p, proc);
	if (v && v->version == proc->version && (!mm || (mm == v->mm && !v->taken_out)))
		return 0;
	if (!v || v->version != proc->version) {
		struct published_process *fresh = v ? NULL : calloc(1, sizeof(*fresh));

		if (!v && !fresh)
			return -ENOMEM;
		if (now_ns() < p->no_room_until_ns) {
			free(fresh);
			return -ENOSPC;
		}
		if (!v)
			v = proc->user = fresh;
		open_files(p, proc);
		runtimes_want_refresh(v->runtimes);
		update_runtimes(p, proc, &v->runtimes);
		r = show_anew(p, proc);
		if (r && fresh) {
			process_runtimes_free(fresh->runtimes);
			free(fresh);
			proc->user = NULL;
		}
		if (r)
			return r;
	}
	if (mm) {
		p->nr_told += v->taken_out || !v->mm;
		v->taken_out = false;
		v->mm = mm;
		publisher_sampled(p, proc);
	}
	return publisher_tell_kernel(p, proc);
}

struct process_runtimes *publisher_runtimes(struct publisher *p, struct process *proc)
{
	struct published_process *v = proc->user;

	if (!v)
		return NULL;
	/* A forked child is shown by its parent's snapshot: who reads it is missing, and what the
	 * parent did not have when it forked. */
	if (v->look) {
		v->look = false;
		open_files(p, proc);
		update_runtimes(p, proc, &v->runtimes);
		if (v->runtimes && v->runtimes->unshown)
			p->runtimes_due_ns = 0;
	}
	if (v->runtimes)
		v->runtimes->used = true;
	return v->runtimes;
}

void publisher_runtime_missed(struct publisher *p, struct process *proc)
{
	struct published_process *v = proc->user;

	uint64_t due = v ? runtimes_missed(v->runtimes) : UINT64_MAX;

	if (due < p->runtimes_due_ns)
		p->runtimes_due_ns = due;
}

/* Shows the process anew if its runtimes have become ready, or moved. */
static void update_shown(struct publisher *p, struct process *proc, uint64_t now)
{
	struct published_process *v = proc->user;
	uint64_t due = runtimes_due(v->runtimes);

	if (due <= now && !time_shares_may(&p->look_time, looked_for(proc), now))
		due = now + LOOK_PAUSE_NS;
	if (due > now && !v->runtimes->unshown) {
		if (due < p->runtimes_due_ns)
			p->runtimes_due_ns = due;
		return;
	}
	update_runtimes(p, proc, &v->runtimes);
	if (!v->runtimes || !v->runtimes->unshown)
		return;
	if (!show_anew(p, proc) && !publisher_tell_kernel(p, proc))
		return;
	log_debug("cannot show the runtimes of process %d", proc->pid);
	if (p->runtimes_due_ns > now + NO_ROOM_PAUSE_NS)
		p->runtimes_due_ns = now + NO_ROOM_PAUSE_NS;
}

void publisher_update_runtimes(struct publisher *p)
{
	uint64_t begin = now_ns();
	size_t nr = p->with_runtimes.nr;
	struct map_slot *slot;

	if (begin < p->runtimes_due_ns)
		return;
	p->runtimes_due_ns = UINT64_MAX;
	/* Each once, from where the last turn had to stop. */
	while (nr--) {
		struct process *proc;
		struct published_process *v;

		slot = map_next(&p->with_runtimes, &p->runtimes_at);
		if (!slot) {
			p->runtimes_at = 0;
			slot = map_next(&p->with_runtimes, &p->runtimes_at);
		}
		if (!slot)
			return;
		proc = process_find(p->processes, (int32_t)slot->key);
		v = proc ? proc->user : NULL;
		if (v && v->runtimes)
			update_shown(p, proc, begin);
		else
			map_del(&p->with_runtimes, slot->key);
		/* The rings must not overflow meanwhile. */
		if (now_ns() - begin > UPDATE_MAX_NS) {
			p->runtimes_due_ns = begin;
			return;
		}
	}
}

/* Has a file of the process no number, and could have one now? */
static bool lacks_number(const struct publisher *p, const struct process *proc)
{
	for (size_t i = 0; i < proc->mappings.nr; i++) {
		const struct mapped_file *file =
			p->processes->files.items[proc->mappings.items[i].file];

		if (file->index != MAPPING_ANON && file->index != MAPPED_BEYOND && !file->shown &&
		    (file->is_elf || file->state != FILE_OPEN) && has_number(p, file->owner))
			return true;
	}
	return false;
}

/* Shows processes anew some of whose files had no number, or were not even in the table. */
static void mend_short(struct publisher *p, uint64_t now)
{
	uint64_t begin = now_ns();
	struct map_slot *slot;
	size_t i = 0;

	if (now < p->mend_short_ns || !p->nr_refused)
		return;
	p->mend_short_ns = now + MEND_SHORT_NS;
	while ((slot = map_next(&p->processes->by_pid, &i)) && now_ns() - begin < UPDATE_MAX_NS) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;
		const struct published_process *v = proc->user;

		if (!v || !v->snapshot->is_short || proc->exited)
			continue;
		if (proc->mappings.beyond && process_refresh(p->processes, proc))
			continue;
		if (!proc->user || !lacks_number(p, proc))
			continue;
		open_files(p, proc);
		if (!show_anew(p, proc) && publisher_tell_kernel(p, proc))
			log_debug("cannot tell the kernel of process %d", proc->pid);
	}
}

/* A file was unreadable, and is not any more: whom it was shown to is shown anew. */
static void on_file_came(void *ctx, struct mapped_file *file)
{
	struct publisher *p = ctx;
	struct map_slot *slot;
	size_t i = 0, nr = 0;

	if (file->shown) {
		table_spill_drop(&p->spill, file->shown);
		unwind_store_set_state(p->store, file->shown, FILE_STATE_PENDING);
	}
	/* What was met of it had neither an identity nor addresses of its own. */
	if (p->forget_file)
		p->forget_file(p->ctx, file->index);
	while ((slot = map_next(&p->processes->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;
		struct published_process *v = proc->user;

		if (!v || proc->exited || !process_mapping_of(proc, file->index))
			continue;
		/* Thousands of processes may map it. */
		if (++nr % FILES_AT_ONCE == 0 && p->drain)
			p->drain(p->drain_ctx);
		update_runtimes(p, proc, &v->runtimes);
		if (show_anew(p, proc) || publisher_tell_kernel(p, proc))
			log_debug("cannot show the mappings of process %d", proc->pid);
	}
}

void publisher_set_final(struct publisher *p, struct process *proc)
{
	struct published_process *v = proc->user;

	if (!v || v->final || v->version != proc->version)
		return;
	v->final = true;
	if (publisher_tell_kernel(p, proc))
		log_debug("cannot tell the kernel of process %d", proc->pid);
}

/* --- time, and what is there -------------------------------------------------------------------
 */

void publisher_tick(struct publisher *p, uint64_t now, uint64_t seen)
{
	size_t i, kept = 0;

	unwind_store_tick(p->store, now);
	process_table_tick(p->processes);
	publisher_take_tables(p, now);
	publisher_let_ask(p, now);
	for (i = 0; i < p->retired.nr; i++) {
		struct mapping_snapshot *b = p->retired.items[i];

		if (b->retired_ns + RETIRE_NS > seen) {
			p->retired.items[kept++] = b;
			continue;
		}
		map_del(&p->snapshots, b->generation);
		use_files(p, b, false);
		free_cells(p, b);
		free(b);
	}
	p->retired.nr = kept;
	take_numbers_back(p, now);
	if (p->sampler && p->nr_told > UNWIND_PROCESSES_MAX - PROCESSES_MANY)
		take_places_back(p, PROCESSES_MANY);
	mend_short(p, now);
}

const struct mapping_snapshot *publisher_snapshot(const struct publisher *p, uint32_t generation)
{
	uint64_t *found = map_get(&p->snapshots, generation);

	return found ? (const struct mapping_snapshot *)(uintptr_t)*found : NULL;
}

const struct unwind_mapping *publisher_mappings(const struct publisher *p,
						const struct mapping_snapshot *b)
{
	return (const struct unwind_mapping *)arena_cell(&p->store->arena, b->cell);
}

const struct unwind_mapping *publisher_mapping(const struct publisher *p,
					       const struct mapping_snapshot *b, uint64_t addr)
{
	const struct unwind_mapping *m;
	uint32_t lo = 0, n = b->nr;

	if (!n)
		return NULL;
	m = publisher_mappings(p, b);
	while (n > 1) {
		uint32_t half = n / 2;

		if (m[lo + half].start <= addr)
			lo += half;
		n -= half;
	}
	return addr >= m[lo].start && addr < m[lo].end ? &m[lo] : NULL;
}
