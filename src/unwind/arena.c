// SPDX-License-Identifier: Apache-2.0
/*
 * Cells are given out first-fit from a sorted list of free ranges; segments are added when nothing
 * fits. Many tables are larger than a segment, and must be in a row: they begin with a segment of
 * their own, and numbers of segments are many more than segments, so that those that nobody has any
 * more can be put in a row wherever they were.
 */
#include "unwind/arena.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/host/walk_host.h"
#include "util/cleanup.h"

enum {
	CELLS_PER_MAPPING = sizeof(struct unwind_mapping) / 4,
	SPARE_CELLS = ARENA_SEGMENT_CELLS,
};

/* --- segments -------------------------------------------------------------------------------- */

void *arena_map_array(int fd, size_t size)
{
	void *p;

	if (fd < 0)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void destroy_segment(struct arena *a, uint32_t i)
{
	if (a->segments[i])
		munmap(a->segments[i], sizeof(*a->segments[i]));
	if (a->segment_fds[i] >= 0)
		close(a->segment_fds[i]);
	a->segments[i] = NULL;
	a->segment_fds[i] = -1;
}

static int free_range(struct arena *a, uint32_t first, uint32_t nr)
{
	struct cell_range *f;
	size_t i = 0;
	int r;

	while (i < a->free_ranges.nr && a->free_ranges.items[i].first < first)
		i++;
	if (i && a->free_ranges.items[i - 1].first + a->free_ranges.items[i - 1].nr == first) {
		f = &a->free_ranges.items[--i];
		f->nr += nr;
	} else {
		r = vec_push(&a->free_ranges, (struct cell_range){ 0 });
		if (r)
			return r; /* lost to the arena, but not in doubt */
		f = &a->free_ranges.items[i];
		memmove(f + 1, f, (a->free_ranges.nr - 1 - i) * sizeof(*f));
		*f = (struct cell_range){ .first = first, .nr = nr };
	}
	if (i + 1 < a->free_ranges.nr && f->first + f->nr == f[1].first) {
		f->nr += f[1].nr;
		memmove(f + 1, f + 2, (a->free_ranges.nr - i - 2) * sizeof(*f));
		a->free_ranges.nr--;
	}
	return 0;
}

/* Creates segment number `i`; not yet in the outer map. */
static int create_segment(struct arena *a, uint32_t i)
{
	struct bpf_map_create_opts opts = { .sz = sizeof(opts), .map_flags = BPF_F_MMAPABLE };
	int fd = -1;

	if (a->fd >= 0) {
		fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_arena", 4, sizeof(*a->segments[i]),
				    1, &opts);
		if (fd < 0)
			return fd;
	}
	a->segments[i] = arena_map_array(fd, sizeof(*a->segments[i]));
	a->segment_fds[i] = fd;
	return a->segments[i] ? 0 : -ENOMEM;
}

/*
 * Puts segments into the outer map. Each update of a map of maps waits for the kernel's readers, 10
 * ms and more, so they go in one batch; kernels that have none for this map (before 5.15) take one
 * by one.
 */
static int show_segments(struct arena *a, uint32_t first, uint32_t nr)
{
	_cleanup_free_ uint32_t *keys = calloc(nr, sizeof(*keys));
	uint32_t i, count = nr;
	int r = 0;

	if (!keys)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		keys[i] = first + i;
	if (!bpf_map_update_batch(a->fd, keys, &a->segment_fds[first], &count, NULL))
		return 0;
	for (i = 0; i < nr && !r; i++)
		r = bpf_map_update_elem(a->fd, &keys[i], &a->segment_fds[first + i], BPF_ANY);
	return r;
}

/* Takes `nr` cells out of free range number `i`, from `first` on. */
static int take(struct arena *a, size_t i, uint32_t first, uint32_t nr)
{
	struct cell_range old = a->free_ranges.items[i];
	uint32_t behind = old.first + old.nr - (first + nr);
	int r;

	if (first > old.first) {
		if (behind) {
			/* May fail, so it comes first. */
			r = vec_reserve(&a->free_ranges, a->free_ranges.nr + 1);
			if (r)
				return r;
		}
		a->free_ranges.items[i].nr = first - old.first;
	} else {
		memmove(&a->free_ranges.items[i], &a->free_ranges.items[i + 1],
			(a->free_ranges.nr - i - 1) * sizeof(old));
		a->free_ranges.nr--;
	}
	return behind ? free_range(a, first + nr, behind) : 0;
}

static uint32_t segments_for(uint32_t nr)
{
	return (nr + ARENA_SEGMENT_CELLS - 1) >> ARENA_SEGMENT_SHIFT;
}

/* Where `nr` cells could begin in a free range that begins at `first`. */
static uint32_t aligned(uint32_t first, uint32_t nr, bool one_segment)
{
	if (nr >= ARENA_SEGMENT_CELLS)
		return segments_for(first) << ARENA_SEGMENT_SHIFT;
	if (!one_segment)
		return first;
	first = (first + CELLS_PER_MAPPING - 1) & -CELLS_PER_MAPPING;
	if (nr && first >> ARENA_SEGMENT_SHIFT != (first + nr - 1) >> ARENA_SEGMENT_SHIFT)
		first = (first + nr - 1) & -(uint32_t)ARENA_SEGMENT_CELLS;
	return first;
}

static bool find_free(const struct arena *a, uint32_t nr, bool one_segment, uint32_t from,
		      size_t *ret_i, uint32_t *ret_first)
{
	for (size_t i = 0; i < a->free_ranges.nr; i++) {
		const struct cell_range *f = &a->free_ranges.items[i];
		uint32_t first = aligned(f->first > from ? f->first : from, nr, one_segment);

		if (first + nr > f->first + f->nr)
			continue;
		*ret_i = i;
		*ret_first = first;
		return true;
	}
	return false;
}

/* --- more segments ---------------------------------------------------------------------------- */

/* Segments within a free range: how many, and the first. */
static uint32_t whole_segments(const struct cell_range *f, uint32_t *ret_first)
{
	uint32_t first = segments_for(f->first);
	uint32_t end = (f->first + f->nr) >> ARENA_SEGMENT_SHIFT;

	*ret_first = first;
	return end > first ? end - first : 0;
}

static uint32_t nr_whole(const struct arena *a)
{
	uint32_t nr = 0, first;

	for (size_t i = 0; i < a->free_ranges.nr; i++)
		nr += whole_segments(&a->free_ranges.items[i], &first);
	return nr;
}

/* Segments that could be added, new ones and such. */
static uint32_t nr_to_be_had(const struct arena *a)
{
	return a->max_segments - a->nr_segments + nr_whole(a);
}

/* The first of `nr` numbers in a row, from `from` on, that no segment has. */
static uint32_t find_numbers(const struct arena *a, uint32_t nr, uint32_t from)
{
	for (uint32_t i = from, n = 0; i < ARENA_SEGMENTS_MAX; i++) {
		n = a->segments[i] ? 0 : n + 1;
		if (n == nr)
			return i + 1 - nr;
	}
	return ARENA_SEGMENTS_MAX;
}

/*
 * Gives a segment in which nothing is any more the number `to`. Walkers may still find it under the
 * old one, too, where none of them looks for anything.
 */
static int move_segment(struct arena *a, uint32_t to)
{
	uint32_t first = 0;
	size_t i = a->free_ranges.nr;
	int r;

	while (i && !whole_segments(&a->free_ranges.items[i - 1], &first))
		i--;
	if (!i)
		return -ENOSPC;
	r = take(a, i - 1, first << ARENA_SEGMENT_SHIFT, ARENA_SEGMENT_CELLS);
	if (r)
		return r;
	a->segments[to] = a->segments[first];
	a->segment_fds[to] = a->segment_fds[first];
	a->segments[first] = NULL;
	a->segment_fds[first] = -1;
	return 0;
}

/*
 * Adds segments for `nr` cells in a row, with numbers from `from` on: new ones, and when there may
 * be no more of these, ones in which nothing is.
 */
static int add_segments(struct arena *a, uint32_t nr, uint32_t from)
{
	uint32_t n = segments_for(nr), first = find_numbers(a, n, from), i;
	int r = 0;

	if (first == ARENA_SEGMENTS_MAX || n > nr_to_be_had(a))
		return -ENOSPC;
	for (i = first; i < first + n && !r; i++) {
		if (a->nr_segments >= a->max_segments) {
			r = move_segment(a, i);
			continue;
		}
		r = create_segment(a, i);
		if (r)
			destroy_segment(a, i);
		else
			a->nr_segments++;
	}
	if (!r && a->fd >= 0)
		r = show_segments(a, first, n);
	if (!r)
		return free_range(a, first << ARENA_SEGMENT_SHIFT, n << ARENA_SEGMENT_SHIFT);
	for (i = first; i < first + n && a->segments[i]; i++) {
		destroy_segment(a, i);
		a->nr_segments--;
	}
	return r;
}

int arena_alloc(struct arena *a, uint32_t nr, bool one_segment, uint32_t *ret)
{
	uint32_t first;
	size_t i;
	int r;

	if (!find_free(a, nr, one_segment, 0, &i, &first)) {
		r = add_segments(a, nr, 0);
		if (r)
			return r;
		if (!find_free(a, nr, one_segment, 0, &i, &first))
			return -ENOSPC;
	}
	r = take(a, i, first, nr);
	if (!r)
		*ret = first;
	return r;
}

int arena_alloc_behind(struct arena *a, uint32_t nr, uint32_t from, uint32_t reach, uint32_t *ret)
{
	uint32_t first = 0;
	size_t i;
	int r;

	if (!find_free(a, nr, false, from, &i, &first) || first + nr - from > reach) {
		r = add_segments(a, nr, segments_for(from));
		if (r)
			return r;
		if (!find_free(a, nr, false, from, &i, &first) || first + nr - from > reach)
			return -ENOSPC;
	}
	r = take(a, i, first, nr);
	if (!r)
		*ret = first;
	return r;
}

void arena_retire(struct arena *a, uint32_t first, uint32_t nr, uint64_t now_ns)
{
	struct cell_range range = { first, nr, now_ns };

	if (nr && vec_push(&a->retired, range))
		return; /* without memory for the note, the cells stay unused */
}

uint32_t *arena_cell(const struct arena *a, uint32_t number)
{
	return &a->segments[number >> ARENA_SEGMENT_SHIFT]
			->cells[number & (ARENA_SEGMENT_CELLS - 1)];
}

size_t arena_bytes_left(const struct arena *a)
{
	return (a->max_segments - a->nr_segments) * sizeof(*a->segments[0]);
}

uint64_t arena_nr_free(const struct arena *a)
{
	uint64_t nr = (uint64_t)(a->max_segments - a->nr_segments) << ARENA_SEGMENT_SHIFT;

	for (size_t i = 0; i < a->free_ranges.nr; i++)
		nr += a->free_ranges.items[i].nr;
	return nr;
}

uint64_t arena_nr_coming(const struct arena *a)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < a->retired.nr; i++)
		nr += a->retired.items[i].nr;
	return nr;
}

int arena_init(struct arena *a, int fd, size_t max_bytes)
{
	*a = (struct arena){ .fd = fd };
	memset(a->segment_fds, -1, sizeof(a->segment_fds));
	arena_set_max(a, max_bytes);
	return add_segments(a, a->max_segments > 1 ? 2 * SPARE_CELLS : SPARE_CELLS, 0);
}

void arena_set_max(struct arena *a, size_t max_bytes)
{
	size_t nr = max_bytes / sizeof(struct arena_segment);

	if (nr < 1)
		nr = 1;
	if (nr > ARENA_SEGMENTS_MAX)
		nr = ARENA_SEGMENTS_MAX;
	a->max_segments = nr < a->nr_segments ? a->nr_segments : (uint32_t)nr;
}

void arena_fini(struct arena *a)
{
	for (uint32_t i = 0; i < ARENA_SEGMENTS_MAX; i++)
		if (a->segments[i])
			destroy_segment(a, i);
	vec_free(&a->free_ranges);
	vec_free(&a->retired);
	*a = (struct arena){ .fd = -1 };
}

void arena_tick(struct arena *a, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->retired.nr; i++) {
		const struct cell_range *range = &a->retired.items[i];

		if (range->retired_ns + RETIRE_NS > now_ns ||
		    free_range(a, range->first, range->nr))
			a->retired.items[kept++] = *range;
	}
	a->retired.nr = kept;
}

void arena_keep_spare(struct arena *a)
{
	uint64_t unused = (uint64_t)(a->max_segments - a->nr_segments) << ARENA_SEGMENT_SHIFT;

	if (unused && arena_nr_free(a) - unused < SPARE_CELLS)
		add_segments(a, SPARE_CELLS, 0); /* or later, when there is no other way */
}

bool arena_has(const struct arena *a, uint32_t nr)
{
	uint32_t first, n = segments_for(nr);
	size_t i;

	return find_free(a, nr, false, 0, &i, &first) ||
	       (n <= nr_to_be_had(a) && find_numbers(a, n, 0) < ARENA_SEGMENTS_MAX);
}

uint64_t arena_nr_for(const struct arena *a, uint32_t nr)
{
	uint64_t free = arena_nr_free(a), whole;

	if (nr < ARENA_SEGMENT_CELLS)
		return free;
	whole = (uint64_t)nr_to_be_had(a) << ARENA_SEGMENT_SHIFT;
	return whole < free ? whole : free;
}

uint64_t arena_nr_used(const struct arena *a)
{
	return ((uint64_t)a->max_segments << ARENA_SEGMENT_SHIFT) - arena_nr_free(a);
}

size_t arena_bytes(const struct arena *a)
{
	return (size_t)a->nr_segments * sizeof(struct arena_segment);
}
