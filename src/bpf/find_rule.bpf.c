// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From an address to its unwind rule: the process's sorted mappings, then the file's buckets and
 * rows (abi/unwind.h). Called only when the CPU's cache of exact addresses misses.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/arena.bpf.h"
#include "bpf/frames.bpf.h"

enum { ROW_SEARCH_STEPS = 8, BUCKET_SIZE = 1 << BUCKET_SHIFT };
_Static_assert(1 << ROW_SEARCH_STEPS > BUCKET_ROWS_MAX, "the search must reach every row");

__noinline int WALK_NAME(find_row)(__u32 file, __u64 addr);

__noinline int WALK_NAME(find_mapping)(void)
{
	struct walk *w = current_walk();
	const struct unwind_mapping *m;
	const struct arena_segment *s;
	__u32 i, lo, n, cell;

	if (!w)
		return STOP_INTERNAL;
	cell = w->process.mappings;
	n = w->process.nr_mappings;
	if (!n)
		return STOP_NO_MAPPING;
	s = arena_segment_of(cell);
	if (!s)
		return STOP_INTERNAL;
	lo = 0;
	/* Bounds that the verifier does not know keep it from following every path of the search.
	 */
	for (i = 0; i < MAPPINGS_SEARCH_STEPS && n > 1; i++) {
		__u32 half = n / 2;

		m = arena_mapping(s, cell, lo + half);
		if (m->start <= w->pc)
			lo += half;
		n -= half;
	}
	m = arena_mapping(s, cell, lo);
	if (w->pc < m->start || w->pc >= m->end)
		return STOP_NO_MAPPING;
	w->mapping_start = m->start;
	w->mapping_len = m->end - m->start;
	w->mapping_bias = m->bias;
	w->mapping_file = m->file;
	w->mapping_runtime = m->runtime;
	return STOP_NONE;
}

/*
 * A row of the bucket of walk->pc holds from `first` to `last`. Not if the bucket is not one of the
 * mapping's alone, or file and process have their buckets at different places: then of this
 * address.
 */
static __always_inline void rule_holds(struct walk *w, __u32 first, __u32 last)
{
	__u64 bucket = w->pc & -(__u64)BUCKET_SIZE;

	if (w->mapping_bias & (BUCKET_SIZE - 1) || bucket - w->mapping_start >= w->mapping_len ||
	    bucket + BUCKET_SIZE - 1 - w->mapping_start >= w->mapping_len)
		return;
	w->rule_first = (__u8)first;
	w->rule_last = (__u8)last;
}

/* The rule of `addr` in the file's own address space: its number, or a negative stop reason. */
__noinline int WALK_NAME(find_row)(__u32 file, __u64 addr)
{
	struct walk *w = current_walk();
	const struct unwind_file *f = file_at(file);
	__u32 bucket, first, i, lo, n, nr, row, next, low = addr & (BUCKET_SIZE - 1);
	__u64 number;

	if (!f || !w)
		return -STOP_INTERNAL;
	switch (f->state) {
	case FILE_STATE_LOADED:
		break;
	case FILE_STATE_UNREADABLE:
		return -STOP_FILE_UNREADABLE;
	case FILE_STATE_EVICTED:
		return -STOP_TABLE_EVICTED;
	default:
		return row_elsewhere(file, addr);
	}
	number = (addr - f->start) >> BUCKET_SHIFT;
	if (addr < f->start || number >= f->nr_buckets)
		return -STOP_NO_RULE;
	if (arena_cell(f->buckets + (__u32)number, &bucket))
		return -STOP_INTERNAL;
	first = BUCKET_FIRST(bucket);
	n = nr = BUCKET_NR(bucket);
	/* lo: how many of the bucket's rows begin at or before addr. */
	lo = 0;
	for (i = 0; i < ROW_SEARCH_STEPS && n; i++) {
		__u32 half = n / 2;

		if (arena_cell(f->rows + first + lo + half, &row))
			return -STOP_INTERNAL;
		if ((row >> 24) <= low) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (!(first + lo))
		return -STOP_NO_RULE;
	if (arena_cell(f->rows + first + lo - 1, &row))
		return -STOP_INTERNAL;
	next = 0;
	if (lo < nr && arena_cell(f->rows + first + lo, &next))
		return -STOP_INTERNAL;
	rule_holds(w, lo ? row >> 24 : 0, (lo < nr ? next >> 24 : BUCKET_SIZE) - 1);
	return ROW_RULE(row);
}

__noinline int WALK_NAME(find_rule)(void)
{
	struct walk *w = current_walk();
	int stop;

	if (!w)
		return -STOP_INTERNAL;
	w->rule_first = w->rule_last = (__u8)w->pc;
	if (w->pc - w->mapping_start >= w->mapping_len) {
		stop = WALK_NAME(find_mapping)();
		if (stop)
			return -stop;
	}
	if (w->mapping_runtime)
		return RULE_RUNTIMES + (w->mapping_runtime & (RUNTIME_MAX_ - 1));
	if (w->mapping_file == MAPPING_ANON)
		return RULE_FRAME_POINTER;
	return WALK_NAME(find_row)(w->mapping_file, w->pc - w->mapping_bias);
}

/* Here because the arena can be read in one object only. */
__noinline int WALK_NAME(load_record)(__u32 id, __u32 nr)
{
	struct walk *w = current_walk();
	const struct runtime_record *r = NULL;
	__u32 i, cell;

	if (!w)
		return STOP_INTERNAL;
	w->record_runtime = id;
	w->record_cell = cell = w->process.runtimes;
	w->record_generation = w->process.generation;
	w->record_size = 0;
	for (i = 0; i < RUNTIMES_OF_PROCESS_MAX && cell; i++) {
		const struct arena_segment *s = arena_segment_of(cell);
		__u32 at = cell & (ARENA_SEGMENT_CELLS - 8);

		if (!s || at > ARENA_SEGMENT_CELLS - RUNTIME_RECORD_CELLS)
			return STOP_INTERNAL;
		r = (const struct runtime_record *)&s->cells[at];
		if (r->runtime == id && !nr--) {
			if (bpf_probe_read_kernel(w->record, sizeof(w->record), r + 1))
				return STOP_INTERNAL;
			w->record_size = r->size;
			return STOP_NONE;
		}
		cell = r->next;
	}
	return STOP_RUNTIME_UNKNOWN;
}
