/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose things are trusted, and how much of something scarce each owner of files has: no user may
 * take all of it.
 */
#pragma once

#include "util/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Root and we ourselves. */
static inline bool owner_is_trusted(uid_t owner)
{
	return !owner || owner == geteuid();
}

/* An owner has at most a third of what is free; the last `reserved` are for those who are trusted.
 */
enum { OWNERS_PART = 3 };

/* `taken`: owner -> number. May somebody who is not trusted take one more of `nr_free`? */
static inline bool owners_may_take(const struct map *taken, uint32_t owner, size_t nr_free,
				   size_t reserved)
{
	const uint64_t *nr = map_get(taken, owner);

	return nr_free > reserved && (!nr || *nr < nr_free / OWNERS_PART);
}

/* 0 or -ENOMEM. */
static inline int owners_take(struct map *taken, uint32_t owner)
{
	const uint64_t *nr = map_get(taken, owner);

	return map_put(taken, owner, nr ? *nr + 1 : 1);
}

static inline void owners_give_back(struct map *taken, uint32_t owner)
{
	uint64_t *nr = map_get(taken, owner);

	if (nr && !--*nr)
		map_del(taken, owner);
}
