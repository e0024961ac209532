// SPDX-License-Identifier: Apache-2.0
#include "util/strtab.h"

#include <string.h>
#include <xxhash.h>

enum { CHUNK_SIZE = 32 * 1024 };

struct strtab_chunk {
	struct strtab_chunk *next;
	size_t used, cap;
	char data[];
};

int strtab_init(struct strtab *t)
{
	uint32_t id;

	*t = (struct strtab){ 0 };
	return strtab_intern(t, "", 0, &id);
}

void strtab_fini(struct strtab *t)
{
	struct strtab_chunk *c;

	while ((c = t->chunks)) {
		t->chunks = c->next;
		free(c);
	}
	vec_free(&t->strings);
	map_fini(&t->by_hash);
}

static char *store(struct strtab *t, const char *s, size_t len)
{
	struct strtab_chunk *c = t->chunks;
	char *p;

	if (!c || c->cap - c->used < len + 1) {
		size_t cap = len + 1 > CHUNK_SIZE ? len + 1 : CHUNK_SIZE;

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		*c = (struct strtab_chunk){ .next = t->chunks, .cap = cap };
		t->chunks = c;
		t->bytes += sizeof(*c) + cap;
	}
	p = c->data + c->used;
	memcpy(p, s, len);
	p[len] = '\0';
	c->used += len + 1;
	return p;
}

static bool equals(const char *interned, const char *s, size_t len)
{
	return !strncmp(interned, s, len) && !interned[len];
}

bool strtab_find(const struct strtab *t, const char *s, size_t len, uint32_t *ret)
{
	const uint64_t *found;

	len = strnlen(s, len);
	for (uint64_t hash = XXH3_64bits(s, len); (found = map_get(&t->by_hash, hash)); hash++) {
		if (equals(t->strings.items[*found], s, len)) {
			*ret = (uint32_t)*found;
			return true;
		}
	}
	return false;
}

int strtab_intern(struct strtab *t, const char *s, size_t len, uint32_t *ret)
{
	uint64_t hash, *found;
	const char *copy;
	int r;

	len = strnlen(s, len);
	/* Two strings of one hash take the next key, so that equality stays exact. */
	for (hash = XXH3_64bits(s, len); (found = map_get(&t->by_hash, hash)); hash++) {
		if (equals(t->strings.items[*found], s, len)) {
			*ret = (uint32_t)*found;
			return 0;
		}
	}
	copy = store(t, s, len);
	if (!copy)
		return -ENOMEM;
	r = vec_push(&t->strings, copy);
	if (r)
		return r;
	r = map_put(&t->by_hash, hash, t->strings.nr - 1);
	if (r) {
		t->strings.nr--;
		return r;
	}
	*ret = (uint32_t)(t->strings.nr - 1);
	return 0;
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return id < t->strings.nr ? t->strings.items[id] : "";
}
