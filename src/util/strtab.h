/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings: equal strings have equal ids, id 0 is "". Strings live until strtab_fini().
 */
#pragma once

#include "util/map.h"
#include "util/vec.h"

#include <stdint.h>

struct strtab_chunk;

struct strtab {
	struct strtab_chunk *chunks;
	VEC(const char *) strings; /* by id */
	struct map by_hash;
	size_t bytes; /* held, all included */
};

int strtab_init(struct strtab *t);
void strtab_fini(struct strtab *t);
/* 0 and the id, or -ENOMEM. The string is copied. */
int strtab_intern(struct strtab *t, const char *s, size_t len, uint32_t *ret);
/* Whether the string is there already, and its id. */
bool strtab_find(const struct strtab *t, const char *s, size_t len, uint32_t *ret);
const char *strtab_get(const struct strtab *t, uint32_t id);
