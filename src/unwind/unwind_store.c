// SPDX-License-Identifier: Apache-2.0
/*
 * Cells are given out first-fit from a sorted list of free ranges; segments are added when nothing
 * fits. A table's cells may straddle segments, a process's mappings may not.
 */
#include "unwind/unwind_store.h"
#include "bpf/host/walk_host.h"
#include "util/cleanup.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

enum {
	CELLS_PER_MAPPING = sizeof(struct unwind_mapping) / 4,
	/* Whole mappings' worth, which keeps both aligned. */
	RECORD_CELLS = (RUNTIME_RECORD_CELLS + CELLS_PER_MAPPING - 1) & -CELLS_PER_MAPPING,
	/* Free at the arena's end whenever it can be, so that a process's first samples do not wait
	 * for a new segment (see show_segments). */
	SPARE_CELLS = ARENA_SEGMENT_CELLS,
	/* The part of the arena that is not for tables: without a table some stacks are cut, but
	 * without its mappings nothing of a process is known. */
	PART_FOR_MAPPINGS = 8,
};

static void *map_array(int fd, size_t size)
{
	void *p;

	if (fd < 0)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

static int add_rule(struct unwind_store *s, const struct unwind_rule *rule, uint32_t *ret)
{
	uint64_t hash, *found;
	int r;

	for (hash = XXH3_64bits(rule, sizeof(*rule)); (found = map_get(&s->rule_ids, hash));
	     hash++) {
		if (!memcmp(&s->rules[*found], rule, sizeof(*rule))) {
			*ret = (uint32_t)*found;
			return 0;
		}
	}
	if (s->nr_rules == UNWIND_RULES_MAX)
		return -ENOSPC;
	r = map_put(&s->rule_ids, hash, s->nr_rules);
	if (r)
		return r;
	s->rules[s->nr_rules] = *rule;
	*ret = s->nr_rules++;
	return 0;
}

static int add_fixed_rules(struct unwind_store *s)
{
	static const struct unwind_rule fixed[] = {
		[0] = { .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE },
		[RULE_FRAME_POINTER] = { .cfa = CFA_FRAME_POINTER },
		[RULE_TABLE_EVICTED] = { .cfa = CFA_STOP, .cfa_off = STOP_TABLE_EVICTED },
	};
	struct unwind_rule runtime = { .cfa = CFA_RUNTIME };
	uint32_t id;
	size_t i;
	int r = 0;

	for (i = 0; i < sizeof(fixed) / sizeof(fixed[0]) && !r; i++)
		r = add_rule(s, &fixed[i], &id);
	for (; runtime.cfa_off < RUNTIME_MAX_ && !r; runtime.cfa_off++)
		r = add_rule(s, &runtime, &id);
	return r;
}

static void destroy_segment(struct unwind_store *s, uint32_t i)
{
	if (s->segments[i])
		munmap(s->segments[i], sizeof(*s->segments[i]));
	if (s->segment_fds[i] >= 0)
		close(s->segment_fds[i]);
	s->segments[i] = NULL;
	s->segment_fds[i] = -1;
}

/* --- cells ----------------------------------------------------------------------------------- */

static int free_range(struct unwind_store *s, uint32_t first, uint32_t nr)
{
	struct cell_range *f;
	size_t i = 0;
	int r;

	while (i < s->free_ranges.nr && s->free_ranges.items[i].first < first)
		i++;
	if (i && s->free_ranges.items[i - 1].first + s->free_ranges.items[i - 1].nr == first) {
		f = &s->free_ranges.items[--i];
		f->nr += nr;
	} else {
		r = vec_push(&s->free_ranges, (struct cell_range){ 0 });
		if (r)
			return r; /* lost to the arena, but not in doubt */
		f = &s->free_ranges.items[i];
		memmove(f + 1, f, (s->free_ranges.nr - 1 - i) * sizeof(*f));
		*f = (struct cell_range){ .first = first, .nr = nr };
	}
	if (i + 1 < s->free_ranges.nr && f->first + f->nr == f[1].first) {
		f->nr += f[1].nr;
		memmove(f + 1, f + 2, (s->free_ranges.nr - i - 2) * sizeof(*f));
		s->free_ranges.nr--;
	}
	return 0;
}

/* Creates segment number `i`; not yet in the outer map. */
static int create_segment(struct unwind_store *s, uint32_t i)
{
	struct bpf_map_create_opts opts = { .sz = sizeof(opts), .map_flags = BPF_F_MMAPABLE };
	int fd = -1;

	if (s->maps.arena_fd >= 0) {
		fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_arena", 4, sizeof(*s->segments[i]),
				    1, &opts);
		if (fd < 0)
			return fd;
	}
	s->segments[i] = map_array(fd, sizeof(*s->segments[i]));
	s->segment_fds[i] = fd;
	return s->segments[i] ? 0 : -ENOMEM;
}

/*
 * Puts segments into the outer map. Each update of a map of maps waits for the kernel's readers, 10
 * ms and more, so they go in one batch; kernels that have none for this map (before 5.15) take one
 * by one.
 */
static int show_segments(struct unwind_store *s, uint32_t first, uint32_t nr)
{
	_cleanup_free_ uint32_t *keys = calloc(nr, sizeof(*keys));
	uint32_t i, count = nr;
	int r = 0;

	if (!keys)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		keys[i] = first + i;
	if (!bpf_map_update_batch(s->maps.arena_fd, keys, &s->segment_fds[first], &count, NULL))
		return 0;
	for (i = 0; i < nr && !r; i++)
		r = bpf_map_update_elem(s->maps.arena_fd, &keys[i], &s->segment_fds[first + i],
					BPF_ANY);
	return r;
}

/* Adds segments for at least `nr` cells. */
static int add_segments(struct unwind_store *s, uint32_t nr)
{
	uint32_t first = s->nr_segments, i;
	uint32_t n = (nr + ARENA_SEGMENT_CELLS - 1) >> ARENA_SEGMENT_SHIFT;
	int r = 0;

	if (n > s->max_segments - first)
		return -ENOSPC;
	for (i = first; i < first + n && !r; i++)
		r = create_segment(s, i);
	if (!r && s->maps.arena_fd >= 0)
		r = show_segments(s, first, n);
	if (!r)
		r = free_range(s, first << ARENA_SEGMENT_SHIFT, n << ARENA_SEGMENT_SHIFT);
	if (r) {
		for (i = first; i < first + n; i++)
			destroy_segment(s, i);
		return r;
	}
	s->nr_segments += n;
	return 0;
}

/* Takes `nr` cells out of free range number `i`, from `first` on. */
static int take(struct unwind_store *s, size_t i, uint32_t first, uint32_t nr)
{
	struct cell_range old = s->free_ranges.items[i];
	uint32_t behind = old.first + old.nr - (first + nr);
	int r;

	if (first > old.first) {
		if (behind) {
			/* May fail, so it comes first. */
			r = vec_reserve(&s->free_ranges, s->free_ranges.nr + 1);
			if (r)
				return r;
		}
		s->free_ranges.items[i].nr = first - old.first;
	} else {
		memmove(&s->free_ranges.items[i], &s->free_ranges.items[i + 1],
			(s->free_ranges.nr - i - 1) * sizeof(old));
		s->free_ranges.nr--;
	}
	return behind ? free_range(s, first + nr, behind) : 0;
}

static bool find_free(const struct unwind_store *s, uint32_t nr, bool one_segment, size_t *ret_i,
		      uint32_t *ret_first)
{
	size_t i;

	for (i = 0; i < s->free_ranges.nr; i++) {
		const struct cell_range *f = &s->free_ranges.items[i];
		uint32_t first = one_segment
					 ? (f->first + CELLS_PER_MAPPING - 1) & -CELLS_PER_MAPPING
					 : f->first;

		if (one_segment && nr &&
		    first >> ARENA_SEGMENT_SHIFT != (first + nr - 1) >> ARENA_SEGMENT_SHIFT)
			first = (first + nr - 1) & -(uint32_t)ARENA_SEGMENT_CELLS;
		if (first + nr <= f->first + f->nr) {
			*ret_i = i;
			*ret_first = first;
			return true;
		}
	}
	return false;
}

/* Free cells at the arena's end. */
static uint32_t spare_at_end(const struct unwind_store *s)
{
	const struct cell_range *last;

	if (!s->free_ranges.nr)
		return 0;
	last = &s->free_ranges.items[s->free_ranges.nr - 1];
	return last->first + last->nr == s->nr_segments << ARENA_SEGMENT_SHIFT ? last->nr : 0;
}

/* How many cells are missing for `nr` behind the free ones at the arena's end. */
static uint32_t missing_at_end(const struct unwind_store *s, uint32_t nr)
{
	uint32_t spare = spare_at_end(s);

	return spare < nr ? nr - spare : nr;
}

static int alloc_cells(struct unwind_store *s, uint32_t nr, bool one_segment, uint32_t *ret)
{
	uint32_t first;
	size_t i;
	int r;

	if (!find_free(s, nr, one_segment, &i, &first)) {
		/* What is free at the end counts, but a little more does no harm. */
		r = add_segments(s, nr);
		if (r == -ENOSPC && !one_segment)
			r = add_segments(s, missing_at_end(s, nr));
		if (r)
			return r;
		if (!find_free(s, nr, one_segment, &i, &first))
			return -ENOSPC;
	}
	r = take(s, i, first, nr);
	if (!r)
		*ret = first;
	return r;
}

static void retire(struct unwind_store *s, uint32_t first, uint32_t nr)
{
	struct cell_range range = { first, nr, s->now_ns };

	if (nr && vec_push(&s->retired, range))
		return; /* without memory for the note, the cells stay unused */
}

static uint32_t *cell(const struct unwind_store *s, uint32_t number)
{
	return &s->segments[number >> ARENA_SEGMENT_SHIFT]
			->cells[number & (ARENA_SEGMENT_CELLS - 1)];
}

/* --- the store ------------------------------------------------------------------------------- */

int unwind_store_init(struct unwind_store *s, const struct unwind_store_maps *maps,
		      size_t max_bytes)
{
	size_t max_segments = max_bytes / sizeof(struct arena_segment);
	int r = -ENOMEM;

	memset(s, 0, sizeof(*s));
	s->maps = *maps;
	if (!max_segments)
		max_segments = 1;
	s->max_segments =
		max_segments < ARENA_SEGMENTS_MAX ? (uint32_t)max_segments : ARENA_SEGMENTS_MAX;
	memset(s->segment_fds, -1, sizeof(s->segment_fds));
	s->files = map_array(maps->files_fd, UNWIND_FILES_MAX * sizeof(*s->files));
	s->rules = map_array(maps->rules_fd, UNWIND_RULES_MAX * sizeof(*s->rules));
	s->used_ns = calloc(UNWIND_FILES_MAX, sizeof(*s->used_ns));
	s->wanted = calloc(UNWIND_FILES_MAX, sizeof(*s->wanted));
	if (s->files && s->rules && s->used_ns && s->wanted)
		r = add_fixed_rules(s);
	if (!r)
		r = add_segments(s, s->max_segments > 1 ? 2 * SPARE_CELLS : SPARE_CELLS);
	if (r)
		unwind_store_fini(s);
	return r;
}

void unwind_store_fini(struct unwind_store *s)
{
	uint32_t i;

	if (s->files)
		munmap(s->files, UNWIND_FILES_MAX * sizeof(*s->files));
	if (s->rules)
		munmap(s->rules, UNWIND_RULES_MAX * sizeof(*s->rules));
	for (i = 0; i < s->nr_segments; i++)
		destroy_segment(s, i);
	map_fini(&s->rule_ids);
	vec_free(&s->free_ranges);
	vec_free(&s->retired);
	vec_free(&s->tables);
	free(s->used_ns);
	free(s->wanted);
	memset(s, 0, sizeof(*s));
}

/* --- tables ---------------------------------------------------------------------------------- */

void unwind_store_set_state(struct unwind_store *s, uint32_t file, enum unwind_file_state state)
{
	if (file < UNWIND_FILES_MAX)
		__atomic_store_n(&s->files[file].state, state, __ATOMIC_RELEASE);
}

static void drop_table(struct unwind_store *s, size_t i)
{
	struct file_table *t = &s->tables.items[i];

	unwind_store_set_state(s, t->file, FILE_STATE_EVICTED);
	s->wanted[t->file] = t->nr;
	retire(s, t->first, t->nr);
	*t = s->tables.items[--s->tables.nr];
}

/*
 * Makes room by giving up tables, the longest unused first, but none that a sample needed within
 * RETIRE_NS (they would come back at once). The cells come back later: true if any were found.
 */
static bool evict_for(struct unwind_store *s, uint32_t nr)
{
	bool any = false;

	while (nr) {
		size_t i, oldest = SIZE_MAX;

		for (i = 0; i < s->tables.nr; i++) {
			uint64_t used = s->used_ns[s->tables.items[i].file];

			if (used + RETIRE_NS < s->now_ns &&
			    (oldest == SIZE_MAX || used < s->used_ns[s->tables.items[oldest].file]))
				oldest = i;
		}
		if (oldest == SIZE_MAX)
			return any;
		nr -= s->tables.items[oldest].nr < nr ? s->tables.items[oldest].nr : nr;
		drop_table(s, oldest);
		s->nr_evicted++;
		any = true;
	}
	return any;
}

/* So that `nr` cells come back in time, without what is on its way already. */
static void make_room(struct unwind_store *s, uint32_t nr)
{
	uint64_t coming = 0;
	size_t i;

	for (i = 0; i < s->retired.nr; i++)
		coming += s->retired.items[i].nr;
	if (coming < nr)
		evict_for(s, nr - (uint32_t)coming);
}

static uint64_t nr_free(const struct unwind_store *s)
{
	uint64_t nr = (uint64_t)(s->max_segments - s->nr_segments) << ARENA_SEGMENT_SHIFT;

	for (size_t i = 0; i < s->free_ranges.nr; i++)
		nr += s->free_ranges.items[i].nr;
	return nr;
}

static uint64_t for_mappings(const struct unwind_store *s)
{
	return (uint64_t)(s->max_segments / PART_FOR_MAPPINGS) << ARENA_SEGMENT_SHIFT;
}

static bool has_room(const struct unwind_store *s, uint32_t nr)
{
	uint32_t unused = (s->max_segments - s->nr_segments) << ARENA_SEGMENT_SHIFT, first;
	size_t i;

	return nr_free(s) >= nr + for_mappings(s) &&
	       (find_free(s, nr, false, &i, &first) || missing_at_end(s, nr) <= unused);
}

/*
 * A file whose table was refused or given up may come again once there is room for it; for one that
 * samples are in, room is made. One at a time, the first come takes it.
 */
static void admit_again(struct unwind_store *s)
{
	uint32_t i;

	for (i = 0; i < UNWIND_FILES_MAX; i++) {
		if (!s->wanted[i])
			continue;
		if (has_room(s, s->wanted[i])) {
			s->wanted[i] = 0;
			unwind_store_set_state(s, i, FILE_STATE_PENDING);
			return;
		}
		if (s->used_ns[i] + RETIRE_NS > s->now_ns)
			make_room(s, s->wanted[i]);
	}
}

void unwind_store_tick(struct unwind_store *s, uint64_t now_ns)
{
	size_t i, kept = 0;

	s->now_ns = now_ns;
	for (i = 0; i < s->retired.nr; i++) {
		const struct cell_range *range = &s->retired.items[i];

		if (range->retired_ns + RETIRE_NS > now_ns ||
		    free_range(s, range->first, range->nr))
			s->retired.items[kept++] = *range;
	}
	s->retired.nr = kept;
	if (nr_free(s) < for_mappings(s))
		make_room(s, (uint32_t)(for_mappings(s) - nr_free(s)));
	admit_again(s);
	if (spare_at_end(s) < SPARE_CELLS)
		add_segments(s, SPARE_CELLS); /* or later, when there is no other way */
}

/* Numbers of the table's rules in the shared array. */
static uint32_t *map_rules(struct unwind_store *s, const struct unwind_table *table)
{
	uint32_t *ids = calloc(table->nr_rules ? table->nr_rules : 1, sizeof(*ids)), i;

	for (i = 0; ids && i < table->nr_rules; i++) {
		if (add_rule(s, &table->rules[i], &ids[i])) {
			ids[i] = RULE_TABLE_EVICTED;
			s->nr_rules_lost++;
		}
	}
	return ids;
}

/* Copies cells in, segment by segment; with `ids`, rows whose rule numbers are translated. */
static void copy_cells(struct unwind_store *s, uint32_t first, const uint32_t *from, uint32_t nr,
		       const uint32_t *ids)
{
	while (nr) {
		uint32_t *to = cell(s, first), i;
		uint32_t n = ARENA_SEGMENT_CELLS - (first & (ARENA_SEGMENT_CELLS - 1));

		if (n > nr)
			n = nr;
		for (i = 0; i < n; i++)
			to[i] = ids ? (from[i] & 0xff000000) | ids[ROW_RULE(from[i])] : from[i];
		first += n;
		from += n;
		nr -= n;
	}
}

int unwind_store_load(struct unwind_store *s, uint32_t file, const struct unwind_table *table)
{
	struct file_table t = { .file = file, .nr = table->nr_buckets + table->nr_rows };
	struct unwind_file *f;
	uint32_t *ids, i;
	int r;

	if (file >= UNWIND_FILES_MAX)
		return -E2BIG;
	f = &s->files[file];
	for (i = 0; i < s->tables.nr; i++)
		if (s->tables.items[i].file == file)
			drop_table(s, i--);
	r = has_room(s, t.nr) ? alloc_cells(s, t.nr, false, &t.first) : -ENOSPC;
	s->wanted[file] = r == -ENOSPC ? t.nr : 0;
	if (r == -ENOSPC)
		make_room(s, t.nr);
	ids = r ? NULL : map_rules(s, table);
	if (!r && (!ids || vec_push(&s->tables, t))) {
		retire(s, t.first, t.nr);
		r = -ENOMEM;
	}
	if (r) {
		free(ids);
		unwind_store_set_state(s, file, FILE_STATE_EVICTED);
		return r;
	}
	copy_cells(s, t.first, table->buckets, table->nr_buckets, NULL);
	copy_cells(s, t.first + table->nr_buckets, table->rows, table->nr_rows, ids);
	free(ids);
	f->start = table->start;
	f->nr_buckets = table->nr_buckets;
	f->buckets = t.first;
	f->rows = t.first + table->nr_buckets;
	unwind_store_touch(s, file);
	unwind_store_set_state(s, file, FILE_STATE_LOADED);
	return 0;
}

void unwind_store_touch(struct unwind_store *s, uint32_t file)
{
	if (file < UNWIND_FILES_MAX)
		s->used_ns[file] = s->now_ns;
}

/* --- mappings -------------------------------------------------------------------------------- */

int unwind_store_add_mappings(struct unwind_store *s, const struct unwind_mapping *mappings,
			      uint32_t nr, uint32_t *ret_cell)
{
	uint32_t nr_cells = nr * CELLS_PER_MAPPING, first;
	int r;

	if (nr > MAPPINGS_MAX)
		return -E2BIG;
	if (!nr) {
		*ret_cell = 0;
		return 0;
	}
	r = alloc_cells(s, nr_cells, true, &first);
	if (r == -ENOSPC)
		make_room(s, ARENA_SEGMENT_CELLS);
	if (r)
		return r;
	memcpy(cell(s, first), mappings, nr * sizeof(*mappings));
	*ret_cell = first;
	return 0;
}

void unwind_store_free_mappings(struct unwind_store *s, uint32_t first, uint32_t nr)
{
	retire(s, first, nr * CELLS_PER_MAPPING);
}

int unwind_store_add_record(struct unwind_store *s, uint32_t runtime, const void *record,
			    uint32_t size, uint32_t next, uint32_t *ret_cell)
{
	uint32_t nr_cells = RECORD_CELLS, first;
	struct runtime_record *to;
	int r;

	if (size > RUNTIME_RECORD_MAX)
		return -E2BIG;
	r = alloc_cells(s, nr_cells, true, &first);
	if (!r && !first) /* 0 means none: these cells stay unused */
		r = alloc_cells(s, nr_cells, true, &first);
	if (r == -ENOSPC)
		make_room(s, ARENA_SEGMENT_CELLS);
	if (r)
		return r;
	to = (struct runtime_record *)cell(s, first);
	memset(to, 0, nr_cells * sizeof(uint32_t));
	*to = (struct runtime_record){ .runtime = runtime, .next = next, .size = size };
	memcpy(to + 1, record, size);
	*ret_cell = first;
	return 0;
}

void unwind_store_free_record(struct unwind_store *s, uint32_t cell)
{
	retire(s, cell, RECORD_CELLS);
}

size_t unwind_store_bytes(const struct unwind_store *s)
{
	return (size_t)s->nr_segments * sizeof(struct arena_segment);
}

bool unwind_store_is_half_full(const struct unwind_store *s)
{
	return nr_free(s) < (uint64_t)s->max_segments << (ARENA_SEGMENT_SHIFT - 1);
}
