// SPDX-License-Identifier: Apache-2.0
/* Unwind tables: built, loaded, and, where there is no room, kept on a disk (table_spill.h). */
#include "unwinder/publisher.h"
#include "unwinder/publisher_internal.h"
#include "unwinder/budget.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

enum {
	LARGE_CODE = 2 << 20,
	LOAD_AHEAD_NS = 100000000, /* a process, for files that are no runtime's */
	COMPLAINTS_MAX = 32,	   /* about tables: somebody may have files without number */
};

/* --- tables ---------------------------------------------------------------------------------- */

/* True: not said before, and not too much. */
static bool say_once(struct publisher *p, const struct mapped_file *file)
{
	if (p->nr_complaints > COMPLAINTS_MAX || map_get(&p->complained, file->index) ||
	    map_put(&p->complained, file->index, 1))
		return false;
	if (p->nr_complaints++ < COMPLAINTS_MAX)
		return true;
	log_warn("the unwind tables of further files found no room: they are counted");
	return false;
}

static void say_no_room(struct publisher *p, const struct mapped_file *file,
			const struct unwind_table *table)
{
	size_t bytes = ((size_t)table->nr_buckets + table->nr_rows) * sizeof(uint32_t);
	uint64_t limit =
		budget_limit_for_arena(unwind_store_bytes_with(p->store, table), p->fixed_bytes);

	if (!p->fixed_bytes || !say_once(p, file))
		return;
	log_warn("%.512s: no room for its unwind table (%.1f MB), stacks through it are cut; "
		 "--memory-limit %lluM would do",
		 file->path, (double)bytes / 1e6, (unsigned long long)(limit >> 20));
}

void publisher_file_too_large(void *ctx, const struct mapped_file *file, uint64_t bytes)
{
	struct publisher *p = ctx;

	if (say_once(p, file))
		log_warn("%.512s: too large to be copied from its server (more than %llu MB): "
			 "stacks "
			 "through it are cut",
			 file->path, (unsigned long long)(bytes >> 20));
}

static void table_failed(struct publisher *p, uint32_t number, int r)
{
	const struct mapped_file *file = publisher_file(p, number);

	if (r != -EFBIG) {
		log_debug("no unwind table of %s: %s", file->path, strerror(-r));
		unwind_store_set_state(p->store, number, FILE_STATE_UNREADABLE);
		return;
	}
	p->nr_too_big++;
	unwind_store_set_state(p->store, number, FILE_STATE_EVICTED);
	if (say_once(p, file))
		log_warn("%.512s: its unwind information is larger than any that can be used: "
			 "stacks "
			 "through it are cut",
			 file->path);
}

/* --- where there is no room ------------------------------------------------------------------ */

/* How long it is not tried again to keep tables when that failed. */
#define SPILL_PAUSE_NS 10000000000ull

/* Some file's table has no room: from now on it is kept, if there is a disk for that. */
static void begin_to_spill(struct publisher *p, uint64_t now)
{
	int r;

	if (p->store->spills || !p->spill_folder || now < p->spill_from_ns)
		return;
	if (p->spill.folder < 0) {
		int folder = p->spill_folder(p->drain_ctx);

		r = folder < 0 ? -ENOENT : table_spill_use(&p->spill, folder);
		log_debug("tables that there is no room for %s",
			  r ? "cannot be kept" : "are kept beside the symbol cache");
		if (r) {
			p->spill_folder = NULL;
			return;
		}
	}
	unwind_store_set_spills(p->store, true);
}

/* Is the table where walks on the host can read it? */
static bool keep(struct publisher *p, uint32_t number, const struct unwind_table *table)
{
	uint64_t now = now_ns();
	int r;

	begin_to_spill(p, now);
	if (!p->store->spills)
		return false;
	if (table_spill_has(&p->spill, number))
		return true;
	r = table_spill_put(&p->spill, number, publisher_file(p, number)->owner, table);
	if (!r)
		return true;
	log_debug("cannot keep the table of %s: %s", publisher_file(p, number)->path, strerror(-r));
	if (r == -E2BIG) {
		unwind_store_set_state(p->store, number, FILE_STATE_EVICTED);
		return false;
	}
	/* The disk is full, or worse. */
	p->spill_from_ns = now + SPILL_PAUSE_NS;
	unwind_store_set_spills(p->store, false);
	return false;
}

bool publisher_may_read_spilled(const struct publisher *p, const struct mapping_snapshot *b)
{
	return time_shares_may(&p->spill_time, snapshot_user(b), now_ns());
}

void publisher_read_spilled(struct publisher *p, const struct mapping_snapshot *b, uint64_t took_ns)
{
	time_shares_take(&p->spill_time, snapshot_user(b), now_ns(), RAW_SAMPLE_NS + took_ns);
}

/* --- loading --------------------------------------------------------------------------------- */

/* What came of building a file's table. */
static void take_table(void *ctx, uint32_t number, int result, struct unwind_table *table)
{
	struct publisher *p = ctx;
	const struct mapped_file *file = publisher_file(p, number);
	int r;

	if (result) {
		table_failed(p, number, result);
		return;
	}
	/* Of what was given up the store says when it may come again. */
	r = publisher_has_spilled(p, number) ? -ENOSPC : unwind_store_load(p->store, number, table);
	if (r == -ENOSPC && !keep(p, number, table))
		say_no_room(p, file, table);
	log_debug("%s: %u rows, %u rules, %u bad FDEs%s", file->path, table->nr_rows,
		  table->nr_rules, table->nr_bad_fdes, r ? ": no room" : "");
	unwind_table_free(table);
}

/* Registers that runtimes want of a file that is none of them: runtime_ops.follow. */
static unsigned int wanted_of_module(const struct elf_file *elf)
{
	unsigned int wanted = 0;

	for (int i = 0; i < RUNTIME_MAX_; i++)
		if (runtimes[i] && runtimes[i]->follow)
			wanted |= runtimes[i]->follow(elf);
	return wanted;
}

/* What is to be built for a file; *ret_elf is the caller's. -EAGAIN: not now. */
static int make_job(struct publisher *p, uint32_t number, struct loader_job *job,
		    struct elf_file **ret_elf)
{
	const struct mapped_file *file = publisher_file(p, number);
	const struct runtime_dso *dso;
	int r;

	/* What a runtime says of it belongs to its table. */
	if (!runtimes_look_at(&p->runtimes, file->index))
		return -EAGAIN;
	*job = (struct loader_job){ .file = number, .owner = file->owner };
	dso = runtimes_dso(&p->runtimes, file->index);
	if (dso)
		loader_job_of_runtime(job, dso);
	r = mapped_file_elf(p->processes, file, ret_elf);
	job->elf = *ret_elf;
	if (!r && !dso)
		job->follow = wanted_of_module(job->elf);
	return r;
}

void publisher_begin_table(struct publisher *p, uint32_t number)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct loader_job job;

	if (number >= p->files.nr || p->store->files[number].state != FILE_STATE_PENDING ||
	    loader_is_building(&p->loader, number) || p->begun_last == number)
		return;
	p->begun_last = number;
	if (!make_job(p, number, &job, &elf) && !loader_begin(&p->loader, &job))
		log_debug("%s: its table is begun ahead", publisher_file(p, number)->path);
}

enum unwind_file_state publisher_load(struct publisher *p, const struct mapping_snapshot *b,
				      uint32_t number)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct unwind_table *table = NULL;
	struct loader_job job;
	int r;

	if (number >= p->files.nr)
		return FILE_STATE_UNREADABLE;
	/* What was built meanwhile need not wait for the end of a long turn, nor keep others from
	 * it. */
	if (loader_is_busy(&p->loader))
		loader_tick(&p->loader, take_table, p);
	if (p->store->files[number].state != FILE_STATE_PENDING &&
	    (!publisher_has_spilled(p, number) || table_spill_has(&p->spill, number)))
		return p->store->files[number].state;
	unwind_store_touch(p->store, number, snapshot_user(b));
	if (loader_is_building(&p->loader, number) && !loader_is_ahead(&p->loader, number))
		return FILE_STATE_PENDING;
	if (!table_spill_open(&p->spill, number, &table)) {
		take_table(p, number, 0, table);
		return p->store->files[number].state;
	}
	r = make_job(p, number, &job, &elf);
	if (!r)
		r = loader_build(&p->loader, &job, &table);
	if (r != -EINPROGRESS && r != -EAGAIN)
		take_table(p, number, r, table);
	return p->store->files[number].state;
}

bool publisher_get_table(struct publisher *p, const struct mapping_snapshot *b, uint32_t number)
{
	bool was_kept = table_spill_has(&p->spill, number);

	switch (publisher_load(p, b, number)) {
	case FILE_STATE_LOADED:
		return true;
	case FILE_STATE_SPILLED:
		return !was_kept && table_spill_has(&p->spill, number);
	default:
		return false;
	}
}

void publisher_take_tables(struct publisher *p, uint64_t now)
{
	loader_tick(&p->loader, take_table, p);
	if (p->store->nr_wanted)
		begin_to_spill(p, now);
}

void publisher_load_ahead(struct publisher *p, const struct process *proc)
{
	const struct published_process *v = proc->user;
	uint64_t begin;
	uint32_t i;

	if (!v || !runtimes_any(&p->runtimes, proc))
		return;
	for (i = 0; i < proc->mappings.nr; i++) {
		uint32_t file = proc->mappings.items[i].file;

		if (runtimes_is_one(&p->runtimes, file))
			publisher_load(p, v->snapshot, p->processes->files.items[file]->shown);
	}
	begin = now_ns();
	/* Of the others as many as that takes little time: the large ones, which few stacks are in,
	 * behind the small ones and the C library. */
	for (i = 0; i < 2 * proc->mappings.nr; i++) {
		const struct mapping *m = &proc->mappings.items[i % proc->mappings.nr];

		if (now_ns() - begin > LOAD_AHEAD_NS || unwind_store_is_half_full(p->store))
			break;
		if (m->file != MAPPING_ANON &&
		    (m->end - m->start > LARGE_CODE) == (i >= proc->mappings.nr))
			publisher_load(p, v->snapshot, p->processes->files.items[m->file]->shown);
	}
}
