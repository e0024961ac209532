// SPDX-License-Identifier: Apache-2.0
#include "agent/publisher.h"
#include "bpf/host/walk_host.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

/* Stands for files that the table of files has no place for. */
enum { FILE_BEYOND = UNWIND_FILES_MAX - 1 };

enum {
	NO_ROOM_PAUSE_NS =
		200000000,	  /* until it is tried again to show something in a full arena */
	UPDATE_MAX_NS = 10000000, /* for looking at runtimes in one turn */
	LARGE_CODE = 2 << 20,
	LOAD_AHEAD_NS = 50000000, /* of CPU, a process, for files that are no runtime's */
};

static void unref(struct publisher *p, struct block *b)
{
	if (--b->refs)
		return;
	b->retired_ns = p->store->now_ns;
	if (vec_push(&p->retired, b))
		log_debug("a retired block of mappings stays: out of memory");
}

static void ref(struct publisher *p, struct block *b)
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

static void drop_view(struct publisher *p, struct process *proc)
{
	struct view *v = proc->user;

	if (!v)
		return;
	unref(p, v->block);
	process_runtimes_free(v->runtimes);
	free(v);
	proc->user = NULL;
}

void publisher_hide(struct publisher *p, struct process *proc)
{
	if (proc->user && p->ks)
		kernel_side_del_process(p->ks, (uint32_t)proc->pid);
	drop_view(p, proc);
}

static void on_forget(void *ctx, struct process *proc)
{
	publisher_hide(ctx, proc);
}

/*
 * The kernel gave the child its parent's entry at the fork; it may be an older one than the
 * parent's view of now, so look which. Or it is about to: the event comes before the tracepoint
 * (copy_process(), then trace_sched_process_fork() in kernel_clone()), and we may be between.
 */
static void on_forked(void *ctx, struct process *parent, struct process *child)
{
	struct publisher *p = ctx;
	struct unwind_process entry = { 0 };
	struct block *b;
	struct view *v;
	uint64_t *found;

	if (!parent->user || !p->ks || child->user)
		return;
	if (kernel_side_get_process(p->ks, (uint32_t)child->pid, &entry))
		entry.generation = ((struct view *)parent->user)->block->generation;
	found = map_get(&p->blocks, entry.generation);
	v = found ? calloc(1, sizeof(*v)) : NULL;
	if (!v) {
		kernel_side_del_process(p->ks, (uint32_t)child->pid);
		return;
	}
	b = (struct block *)(uintptr_t)*found;
	ref(p, b);
	*v = (struct view){ .block = b,
			    .mm = entry.mm,
			    .look = ((struct view *)parent->user)->runtimes != NULL };
	/* The same mappings as the parent's view shows, unless that has moved on meanwhile. */
	if (b == ((struct view *)parent->user)->block &&
	    ((struct view *)parent->user)->version == parent->version)
		v->version = child->version;
	child->user = v;
}

void publisher_init(struct publisher *p, struct process_table *processes,
		    struct unwind_store *store, struct kernel_side *ks)
{
	*p = (struct publisher){
		.processes = processes,
		.store = store,
		.ks = ks,
		.max_transient = SIZE_MAX,
		.runtimes_due_ns = UINT64_MAX,
	};
	runtimes_init(&p->runtimes, processes);
	processes->forget = on_forget;
	processes->forked = on_forked;
	processes->ctx = p;
	unwind_store_set_state(store, FILE_BEYOND, FILE_STATE_UNREADABLE);
}

void publisher_fini(struct publisher *p)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&p->blocks, &i)))
		free((struct block *)(uintptr_t)slot->value);
	map_fini(&p->blocks);
	vec_free(&p->retired);
	runtimes_fini(&p->runtimes);
}

static void free_cells(struct publisher *p, const struct block *b)
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
	struct unwind_mapping shown = { .start = m->start, .end = m->end, .file = m->file };
	bool was_open;

	if (m->file == MAPPING_ANON)
		return shown;
	if (m->file >= FILE_BEYOND) {
		shown.file = FILE_BEYOND;
		return shown;
	}
	was_open = file->state == FILE_OPEN;
	process_open_file(p->processes, proc, m, file);
	if (file->state == FILE_UNREADABLE) {
		unwind_store_set_state(p->store, m->file, FILE_STATE_UNREADABLE);
		/* A core may know the segments of a file that is not there. */
		shown.bias = mapping_bias(file, m);
	} else if (!file->is_elf) {
		shown.file = MAPPING_ANON;
	} else {
		shown.bias = mapping_bias(file, m);
		/* Unreadable before, for a process that had gone, and readable now. */
		if (p->store->files[m->file].state == FILE_STATE_NONE ||
		    (p->store->files[m->file].state == FILE_STATE_UNREADABLE && !was_open))
			unwind_store_set_state(p->store, m->file, FILE_STATE_PENDING);
	}
	return shown;
}

/* Writes down what attach() found, for the walkers. */
static int add_records(struct publisher *p, const struct process_runtimes *list, struct block *b)
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

static int new_block(struct publisher *p, const struct process *proc,
		     const struct process_runtimes *list, struct block **ret)
{
	/* A mapping may be parted where a runtime's code begins or ends. */
	size_t max = proc->mappings.nr + 2 * nr_code_ranges(list);
	_cleanup_free_ struct unwind_mapping *shown = NULL;
	_cleanup_free_ struct block *b = calloc(1, sizeof(*b));
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
	b->generation = ++p->last_generation;
	r = add_records(p, list, b);
	if (!r)
		r = map_put(&p->blocks, b->generation, (uintptr_t)b);
	if (r) {
		free_cells(p, b);
		return r;
	}
	*ret = TAKE_PTR(b);
	return 0;
}

struct unwind_process publisher_entry(const struct block *b, uint64_t mm)
{
	return (struct unwind_process){
		.mm = mm,
		.generation = b->generation,
		.nr_mappings = b->nr,
		.mappings = b->cell,
		.runtimes = b->nr_records ? b->records[b->nr_records - 1] : 0,
	};
}

static int tell_kernel(struct publisher *p, const struct process *proc)
{
	struct view *v = proc->user;
	struct unwind_process entry;
	int r;

	/* That of a child which the kernel had yet to show: on_forked(). */
	if (p->ks && !v->mm && !kernel_side_get_process(p->ks, (uint32_t)proc->pid, &entry))
		v->mm = entry.mm;
	if (!p->ks || !v->mm)
		return 0;
	entry = publisher_entry(v->block, v->mm);
	entry.flags = v->final ? PROCESS_MAPPINGS_FINAL : 0;
	r = kernel_side_set_process(p->ks, (uint32_t)proc->pid, &entry);
	/* A full table: this process's samples go on coming raw, and are walked here. */
	return r == -E2BIG ? 0 : r;
}

static void open_files(struct publisher *p, const struct process *proc)
{
	for (size_t i = 0; i < proc->mappings.nr; i++) {
		const struct mapping *m = &proc->mappings.items[i];

		if (m->file != MAPPING_ANON)
			process_open_file(p->processes, proc, m,
					  p->processes->files.items[m->file]);
	}
}

static void update_runtimes(struct publisher *p, struct process *proc,
			    struct process_runtimes **list)
{
	uint64_t due;

	runtimes_update(&p->runtimes, proc, list, now_ns());
	due = runtimes_due(*list);
	if (due < p->runtimes_due_ns)
		p->runtimes_due_ns = due;
}

/* A block with the process's present mappings and runtimes, for its view. */
static int show_anew(struct publisher *p, struct process *proc)
{
	struct view *v = proc->user;
	struct block *b;
	int r;

	r = new_block(p, proc, v->runtimes, &b);
	if (r == -ENOSPC)
		p->no_room_until_ns = now_ns() + NO_ROOM_PAUSE_NS;
	if (r)
		return r;
	if (v->block)
		unref(p, v->block);
	v->block = b;
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
	struct view *v = proc->user;
	int r;

	if (v && v->version == proc->version && (!mm || mm == v->mm))
		return 0;
	if (!v || v->version != proc->version) {
		struct view *fresh = v ? NULL : calloc(1, sizeof(*fresh));

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
	if (mm)
		v->mm = mm;
	return tell_kernel(p, proc);
}

struct process_runtimes *publisher_runtimes(struct publisher *p, struct process *proc)
{
	struct view *v = proc->user;

	if (!v)
		return NULL;
	/* A forked child is shown by its parent's block: who reads it is missing, and what the
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
	struct view *v = proc->user;

	uint64_t due = v ? runtimes_missed(v->runtimes) : UINT64_MAX;

	if (due < p->runtimes_due_ns)
		p->runtimes_due_ns = due;
}

/* Shows the process anew if its runtimes have become ready, or moved. */
static void update_shown(struct publisher *p, struct process *proc, uint64_t now)
{
	struct view *v = proc->user;
	uint64_t due = runtimes_due(v->runtimes);

	if (due > now && !v->runtimes->unshown) {
		if (due < p->runtimes_due_ns)
			p->runtimes_due_ns = due;
		return;
	}
	update_runtimes(p, proc, &v->runtimes);
	if (!v->runtimes || !v->runtimes->unshown)
		return;
	if (!show_anew(p, proc) && !tell_kernel(p, proc))
		return;
	log_debug("cannot show the runtimes of process %d", proc->pid);
	if (p->runtimes_due_ns > now + NO_ROOM_PAUSE_NS)
		p->runtimes_due_ns = now + NO_ROOM_PAUSE_NS;
}

void publisher_update_runtimes(struct publisher *p)
{
	uint64_t begin = now_ns();
	struct map_slot *slot;
	size_t i = 0;

	if (begin < p->runtimes_due_ns)
		return;
	p->runtimes_due_ns = UINT64_MAX;
	while ((slot = map_next(&p->processes->by_pid, &i))) {
		struct process *proc = (struct process *)(uintptr_t)slot->value;
		struct view *v = proc->user;

		if (v && v->runtimes)
			update_shown(p, proc, begin);
		/* The rings must not overflow meanwhile. */
		if (now_ns() - begin > UPDATE_MAX_NS) {
			p->runtimes_due_ns = begin;
			return;
		}
	}
}

void publisher_tick(struct publisher *p, uint64_t now)
{
	size_t i, kept = 0;

	unwind_store_tick(p->store, now);
	for (i = 0; i < p->retired.nr; i++) {
		struct block *b = p->retired.items[i];

		if (b->retired_ns + RETIRE_NS > now) {
			p->retired.items[kept++] = b;
			continue;
		}
		map_del(&p->blocks, b->generation);
		free_cells(p, b);
		free(b);
	}
	p->retired.nr = kept;
}

void publisher_set_final(struct publisher *p, struct process *proc)
{
	struct view *v = proc->user;

	if (!v || v->final || v->version != proc->version)
		return;
	v->final = true;
	if (tell_kernel(p, proc))
		log_debug("cannot tell the kernel of process %d", proc->pid);
}

enum unwind_file_state publisher_load(struct publisher *p, uint32_t index)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(unwind_table_free_p) struct unwind_table *table = NULL;
	const struct runtime_dso *dso;
	struct mapped_file *file;
	int r;

	if (index >= FILE_BEYOND || index >= p->processes->files.nr)
		return FILE_STATE_UNREADABLE;
	if (p->store->files[index].state != FILE_STATE_PENDING)
		return p->store->files[index].state;
	file = p->processes->files.items[index];
	dso = runtimes_dso(&p->runtimes, index);
	r = mapped_file_elf(file, &elf);
	if (!r)
		r = loader_build(elf, dso ? dso->follow : 0, p->max_transient, &p->wait, &table);
	if (r == -EFBIG) {
		log_debug("%s: its unwind information is too big for the memory limit", file->path);
		unwind_store_set_state(p->store, index, FILE_STATE_EVICTED);
		p->nr_too_big++;
		return FILE_STATE_EVICTED;
	}
	if (r) {
		log_debug("no unwind table of %s: %s", file->path, strerror(-r));
		unwind_store_set_state(p->store, index, FILE_STATE_UNREADABLE);
		return FILE_STATE_UNREADABLE;
	}
	if (runtimes_mark(&p->runtimes, index, table))
		log_debug("%s: no room to mark its interpreter", file->path);
	r = unwind_store_load(p->store, index, table);
	log_debug("%s: %u rows, %u rules, %u bad FDEs%s", file->path, table->nr_rows,
		  table->nr_rules, table->nr_bad_fdes, r ? ": no room" : "");
	return p->store->files[index].state;
}

void publisher_load_ahead(struct publisher *p, const struct process *proc)
{
	const struct view *v = proc->user;
	uint64_t begin;
	uint32_t i;

	if (!v || !v->runtimes)
		return;
	for (i = 0; i < v->runtimes->nr; i++)
		publisher_load(p, v->runtimes->items[i]->file);
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	/* Of the others as many as that takes little time: the large ones, which few stacks are in,
	 * behind the small ones and the C library. */
	for (i = 0; i < 2 * proc->mappings.nr; i++) {
		const struct mapping *m = &proc->mappings.items[i % proc->mappings.nr];

		if (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin > LOAD_AHEAD_NS ||
		    unwind_store_is_half_full(p->store))
			break;
		if (m->file != MAPPING_ANON &&
		    (m->end - m->start > LARGE_CODE) == (i >= proc->mappings.nr))
			publisher_load(p, m->file);
	}
}

const struct block *publisher_block(const struct publisher *p, uint32_t generation)
{
	uint64_t *found = map_get(&p->blocks, generation);

	return found ? (const struct block *)(uintptr_t)*found : NULL;
}

const struct unwind_mapping *publisher_mappings(const struct publisher *p, const struct block *b)
{
	const struct arena_segment *segment = p->store->segments[b->cell >> ARENA_SEGMENT_SHIFT];

	return (const struct unwind_mapping *)&segment->cells[b->cell & (ARENA_SEGMENT_CELLS - 1)];
}

const struct unwind_mapping *publisher_mapping(const struct publisher *p, const struct block *b,
					       uint64_t addr)
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
