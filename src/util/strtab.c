// SPDX-License-Identifier: Apache-2.0
#include "util/strtab.h"
#include "util/intern.h"

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

/* The string's number, or -ENOENT; *ret_hash is its key, or that of a new one. */
static int64_t find(const struct strtab *t, const char *s, size_t len, uint64_t *ret_hash)
{
	uint64_t hash = XXH3_64bits(s, len);
	int64_t found = intern_find(&t->by_hash, hash, id, equals(t->strings.items[id], s, len));

	*ret_hash = hash;
	return found;
}

bool strtab_find(const struct strtab *t, const char *s, size_t len, uint32_t *ret)
{
	uint64_t hash;
	int64_t found = find(t, s, strnlen(s, len), &hash);

	if (found < 0)
		return false;
	*ret = (uint32_t)found;
	return true;
}

int strtab_intern(struct strtab *t, const char *s, size_t len, uint32_t *ret)
{
	const char *copy;
	uint64_t hash;
	int64_t found;

	len = strnlen(s, len);
	found = find(t, s, len, &hash);
	if (found >= 0) {
		*ret = (uint32_t)found;
		return 0;
	}
	copy = store(t, s, len);
	return copy ? intern_add(&t->by_hash, &t->strings, hash, copy, ret) : -ENOMEM;
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return id < t->strings.nr ? t->strings.items[id] : "";
}
