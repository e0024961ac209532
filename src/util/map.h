/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from u64 to u64, open addressing. Keys may be any value; hash wider keys first (XXH3)
 * and keep the full key where the value points, if a collision would matter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	uint64_t value;
};

struct map {
	struct map_slot *slots;
	uint8_t *states; /* of each slot: 0 never used, 1 live, 2 deleted; behind the slots */
	size_t cap;	 /* a power of two, or 0 */
	size_t nr;	 /* live */
	size_t filled;	 /* live and deleted */
};

void map_fini(struct map *m);
/* What it takes. */
static inline size_t map_bytes(const struct map *m)
{
	return m->cap * (sizeof(*m->slots) + sizeof(*m->states));
}
/* The value's place, NULL if absent. Valid until the next map_put(). */
uint64_t *map_get(const struct map *m, uint64_t key);
/* Adds or replaces; 0 or -ENOMEM. */
int map_put(struct map *m, uint64_t key, uint64_t value);
bool map_del(struct map *m, uint64_t key);
void map_clear(struct map *m);
/* Iteration: for (i = 0; (slot = map_next(m, &i));) */
struct map_slot *map_next(const struct map *m, size_t *i);
