/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena (abi/unwind.h): cells of tables and mappings, in segments that are added when they are
 * needed, in BPF maps that are also mapped here or in plain memory. Which cells are whose is
 * unwind_store.c's business.
 *
 * One thread. Cells that are retired are given out again RETIRE_NS later: a walk that runs
 * meanwhile, or a child that inherited an entry, never reads foreign cells.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "util/vec.h"

#define RETIRE_NS 3000000000ull

struct arena_segment;

struct cell_range {
	uint32_t first, nr;
	uint64_t retired_ns; /* of retired ranges */
};

struct arena {
	int fd; /* the map of segments, borrowed; -1: plain memory */
	struct arena_segment *segments[ARENA_SEGMENTS_MAX]; /* by number; most are NULL */
	int segment_fds[ARENA_SEGMENTS_MAX];
	uint32_t nr_segments, max_segments;
	VEC(struct cell_range) free_ranges; /* sorted by first, coalesced */
	VEC(struct cell_range) retired;
};

/* At most `max_bytes`; one segment if that is less. 0 or negative errno; arena_fini() also then. */
int arena_init(struct arena *a, int fd, size_t max_bytes);
void arena_fini(struct arena *a);
/* It may have so many bytes from now on, or what it has taken already. */
void arena_set_max(struct arena *a, size_t max_bytes);

uint32_t *arena_cell(const struct arena *a, uint32_t number);
/*
 * Room for `nr` cells; the first. Cells of `one_segment` begin where a mapping may, and do not
 * straddle segments. -ENOSPC, or another negative errno.
 */
int arena_alloc(struct arena *a, uint32_t nr, bool one_segment, uint32_t *ret);
/* As arena_alloc(), of cells that lie less than `reach` behind `from`. */
int arena_alloc_behind(struct arena *a, uint32_t nr, uint32_t from, uint32_t reach, uint32_t *ret);
void arena_retire(struct arena *a, uint32_t first, uint32_t nr, uint64_t now_ns);
/* Gives back what was retired RETIRE_NS ago or earlier. */
void arena_tick(struct arena *a, uint64_t now_ns);
/* Has a segment's worth of cells free whenever it can, so that a process's first samples do not
 * wait for a new segment. */
void arena_keep_spare(struct arena *a);

/* What segments that could be added would take. */
size_t arena_bytes_left(const struct arena *a);
/* Cells that are free, or could be added; and those that come back in time. */
uint64_t arena_nr_free(const struct arena *a);
uint64_t arena_nr_coming(const struct arena *a);
/* Is there a place for so many in a row? */
bool arena_has(const struct arena *a, uint32_t nr);
/* Of the free ones those that count for so many: for what is larger than a segment only whole ones
 * do. */
uint64_t arena_nr_for(const struct arena *a, uint32_t nr);
/* Cells that are neither free nor could be added. */
uint64_t arena_nr_used(const struct arena *a);
size_t arena_bytes(const struct arena *a);

/* The values of a BPF array, or as much plain memory if `fd` is negative; NULL. */
void *arena_map_array(int fd, size_t size);
