// SPDX-License-Identifier: Apache-2.0
#include "util/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t slot_of(const struct map *m, uint64_t key)
{
	uint64_t h = key * 0x9e3779b97f4a7c15ull;

	return (h ^ (h >> 32)) & (m->cap - 1);
}

void map_fini(struct map *m)
{
	free(m->slots);
	*m = (struct map){ 0 };
}

uint64_t *map_get(const struct map *m, uint64_t key)
{
	size_t i;

	if (!m->cap)
		return NULL;
	for (i = slot_of(m, key); m->states[i]; i = (i + 1) & (m->cap - 1))
		if (m->states[i] == 1 && m->slots[i].key == key)
			return &m->slots[i].value;
	return NULL;
}

static void insert_new(struct map *m, uint64_t key, uint64_t value)
{
	size_t i = slot_of(m, key);

	while (m->states[i] == 1)
		i = (i + 1) & (m->cap - 1);
	if (!m->states[i])
		m->filled++;
	m->slots[i] = (struct map_slot){ key, value };
	m->states[i] = 1;
	m->nr++;
}

static int rehash(struct map *m)
{
	struct map bigger = { 0 };
	size_t i;

	bigger.cap = 16;
	while (bigger.cap < m->nr * 2 + 2)
		bigger.cap *= 2;
	bigger.slots = calloc(1, map_bytes(&bigger));
	if (!bigger.slots)
		return -ENOMEM;
	bigger.states = (uint8_t *)(bigger.slots + bigger.cap);
	for (i = 0; i < m->cap; i++)
		if (m->states[i] == 1)
			insert_new(&bigger, m->slots[i].key, m->slots[i].value);
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
	uint64_t *old = map_get(m, key);
	int r;

	if (old) {
		*old = value;
		return 0;
	}
	if ((m->filled + 1) * 4 > m->cap * 3) {
		r = rehash(m);
		if (r)
			return r;
	}
	insert_new(m, key, value);
	return 0;
}

/* What is deleted is passed over by whoever looks for what is behind it: nobody does where nothing
 * is. Where keys come and go all the time the others would be searched for among these. */
static void clean_behind(struct map *m, size_t i)
{
	if (m->states[(i + 1) & (m->cap - 1)])
		return;
	for (; m->states[i] == 2; i = (i - 1) & (m->cap - 1)) {
		m->states[i] = 0;
		m->filled--;
	}
}

bool map_del(struct map *m, uint64_t key)
{
	uint64_t *value = map_get(m, key);
	struct map_slot *slot;

	if (!value)
		return false;
	slot = (struct map_slot *)((char *)value - offsetof(struct map_slot, value));
	m->states[slot - m->slots] = 2;
	m->nr--;
	clean_behind(m, (size_t)(slot - m->slots));
	return true;
}

void map_clear(struct map *m)
{
	if (m->cap)
		memset(m->states, 0, m->cap);
	m->nr = m->filled = 0;
}

struct map_slot *map_next(const struct map *m, size_t *i)
{
	while (*i < m->cap)
		if (m->states[(*i)++] == 1)
			return &m->slots[*i - 1];
	return NULL;
}
