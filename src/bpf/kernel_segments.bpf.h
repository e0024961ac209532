/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rows of the kernel's code (abi/kernel_rows.h): segments as the arena's, and which code they
 * are of. For the one object that reads them, as arena.bpf.h.
 */
#pragma once

#include "bpf/walk.bpf.h"

#ifdef __bpf__
struct kernel_segment_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, sizeof(struct arena_segment));
};

struct kernel_segments_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, KERNEL_SEGMENTS_MAX);
	__type(key, __u32);
	__array(values, struct kernel_segment_map);
};
struct kernel_segments_map kernel_segments SEC(".maps");

static __always_inline int kernel_cell(__u32 cell, __u32 *ret)
{
	__u32 segment = cell >> ARENA_SEGMENT_SHIFT, zero = 0;
	void *inner = bpf_map_lookup_elem(&kernel_segments, &segment);
	const struct arena_segment *s = inner ? bpf_map_lookup_elem(inner, &zero) : NULL;

	if (!s)
		return -1;
	*ret = s->cells[cell & (ARENA_SEGMENT_CELLS - 1)];
	return 0;
}

/* The code that has this address; NULL: none of which there are rows. */
static __always_inline const struct kernel_code *kernel_code_of(__u64 pc)
{
	__u32 i;

	UNROLL
	for (i = 0; i < KERNEL_CODES_MAX; i++)
		if (pc - kernel_codes[i].start < *(volatile __u64 *)&kernel_codes[i].size)
			return &kernel_codes[i];
	return NULL;
}
#endif
