/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers things of which no two are equal: they lie in an array, and a map leads from the hash of
 * each to its number. Two things of one hash take the next key, so that equality stays exact. One
 * that is taken away (map_del) hides those behind it, which are then added once more.
 */
#pragma once

#include "util/map.h"
#include "util/vec.h"

#include <errno.h>
#include <stdint.h>

/*
 * The number of the thing, or -ENOENT. `same` is an expression that tells, of the variable that is
 * called `number`, whether the thing of that number is it. `hash` is a variable: on return it is
 * the key of what was found, or the one for intern_add().
 */
#define intern_find(ids, hash, number, same)                                                       \
	({                                                                                         \
		int64_t intern_r_ = -ENOENT;                                                       \
		const uint64_t *intern_at_;                                                        \
                                                                                                   \
		for (; (intern_at_ = map_get((ids), (hash))); (hash)++) {                          \
			const uint32_t number = (uint32_t)*intern_at_;                             \
                                                                                                   \
			if (same) {                                                                \
				intern_r_ = number;                                                \
				break;                                                             \
			}                                                                          \
		}                                                                                  \
		intern_r_;                                                                         \
	})

/* Appends `item` to the VEC, under the key that intern_find() left. 0 and its number, -ENOMEM,
 * -EOVERFLOW; on failure nothing is added. */
#define intern_add(ids, vec, hash, item, ret)                                                      \
	({                                                                                         \
		int intern_add_r_ =                                                                \
			(vec)->nr >= UINT32_MAX ? -EOVERFLOW : vec_push((vec), (item));            \
                                                                                                   \
		if (!intern_add_r_) {                                                              \
			intern_add_r_ = map_put((ids), (hash), (vec)->nr - 1);                     \
			if (intern_add_r_)                                                         \
				(vec)->nr--;                                                       \
			else                                                                       \
				*(ret) = (uint32_t)((vec)->nr - 1);                                \
		}                                                                                  \
		intern_add_r_;                                                                     \
	})
