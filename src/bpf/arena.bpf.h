/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arena (abi/unwind.h): segments that the agent adds and maps as its tables grow. The map
 * stands here, in the one object that reads it, because bpftool 7.1 can't link an extern map of
 * maps.
 */
#pragma once

#include "bpf/walk.bpf.h"

#ifdef __bpf__
struct arena_segment_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size,
	       sizeof(struct arena_segment)); /* clang forgets the type behind two pointers */
};

struct arena_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, ARENA_SEGMENTS_MAX);
	__type(key, __u32);
	__array(values, struct arena_segment_map);
};
struct arena_map arena SEC(".maps");

static __always_inline const struct arena_segment *arena_segment_of(__u32 cell)
{
	__u32 segment = cell >> ARENA_SEGMENT_SHIFT, zero = 0;
	void *inner = bpf_map_lookup_elem(&arena, &segment);

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}
#endif

static __always_inline int arena_cell(__u32 cell, __u32 *ret)
{
	const struct arena_segment *s = arena_segment_of(cell);

	if (!s)
		return -1;
	*ret = s->cells[cell & (ARENA_SEGMENT_CELLS - 1)];
	return 0;
}

/* Mapping number `i` of the array that begins at `cell`; both ends lie in one segment. */
static __always_inline const struct unwind_mapping *arena_mapping(const struct arena_segment *s,
								  __u32 cell, __u32 i)
{
	__u32 at = ((cell & (ARENA_SEGMENT_CELLS - 1)) + i * (sizeof(struct unwind_mapping) / 4)) &
		   (ARENA_SEGMENT_CELLS - 8);

	return (const struct unwind_mapping *)&s->cells[at];
}
