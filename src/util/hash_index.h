/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers by the hash of what they stand for, where the caller has hash and things and says which
 * are equal: half of what util/map.h takes, and inline. Open addressing; a slot is the hash << 32 |
 * the number + 1, or 0: eight bytes. Nothing is taken away but all. Zeroes are an empty one.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct hash_index {
	uint64_t *slots;
	size_t cap, nr; /* a power of two, or 0 */
};

enum { HASH_INDEX_MIN = 1024 };

static inline void hash_index_fini(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){ 0 };
}

/* Keeps its room. */
static inline void hash_index_clear(struct hash_index *index)
{
	if (index->cap)
		memset(index->slots, 0, index->cap * sizeof(*index->slots));
	index->nr = 0;
}

static inline void hash_index_insert(uint64_t *slots, size_t cap, uint64_t slot)
{
	size_t i = (slot >> 32) & (cap - 1);

	while (slots[i])
		i = (i + 1) & (cap - 1);
	slots[i] = slot;
}

/* Room for one more: 0 or -ENOMEM. */
static inline int hash_index_reserve(struct hash_index *index)
{
	size_t cap = index->cap ? index->cap * 2 : HASH_INDEX_MIN;
	uint64_t *slots;

	if (index->nr < index->cap / 4 * 3)
		return 0;
	slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->cap; i++)
		if (index->slots[i])
			hash_index_insert(slots, cap, index->slots[i]);
	free(index->slots);
	index->slots = slots;
	index->cap = cap;
	return 0;
}

/* There is room; `number` is below UINT32_MAX. */
static inline void hash_index_add(struct hash_index *index, uint32_t hash, uint32_t number)
{
	hash_index_insert(index->slots, index->cap, (uint64_t)hash << 32 | (number + 1));
	index->nr++;
}

/* Walks over what may be equal: numbers of that hash. Begin with *pos = hash. */
static inline bool hash_index_next(const struct hash_index *index, uint32_t hash, size_t *pos,
				   uint32_t *ret)
{
	while (index->cap) {
		uint64_t slot = index->slots[*pos & (index->cap - 1)];

		++*pos;
		if (!slot)
			break;
		if (slot >> 32 == hash) {
			*ret = (uint32_t)slot - 1;
			return true;
		}
	}
	return false;
}
