/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read of a process: a tap between a reader of memory and who reads, which remembers
 * addresses and bytes, and the same as sorted ranges, for replay cases (replay/replay_case.h).
 */
#pragma once

#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	REPLAY_MEMORY_MAX = 16 << 20, /* bytes remembered: a deep stack of a JVM reads 1 MB */
	REPLAY_READS_MAX = 1 << 18,
};

struct replay_read {
	uint64_t addr;
	uint32_t size;
	uint32_t at; /* in `bytes` */
};

/* Zeroes are an empty one. */
struct replay_memory {
	VEC(struct replay_read) reads;
	VEC(uint8_t) bytes;
	bool full; /* something was not remembered: no memory, or above the caps */
};

void replay_memory_fini(struct replay_memory *m);
/* Forgets what was read from the first `nr` reads on. */
void replay_memory_cut(struct replay_memory *m, size_t nr);
/* Remembers that `size` bytes at `addr` were read, and what they were. */
void replay_memory_add(struct replay_memory *m, uint64_t addr, const void *data, size_t size);
/* Overwrites with zeroes what is remembered of [start, end). */
void replay_memory_blank(struct replay_memory *m, uint64_t start, uint64_t end);
/*
 * Sorts and joins: the reads are ranges then, ascending, neither overlapping nor touching. Of what
 * was read twice the later bytes count. 0 or -ENOMEM.
 */
int replay_memory_merge(struct replay_memory *m);
/* All of `size` bytes out of merged memory; 0 or -EFAULT. */
int replay_memory_read(const struct replay_memory *m, uint64_t addr, void *to, size_t size);
