/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable array: any struct with members `T *items; size_t nr; size_t cap;`.
 *
 * VEC(struct foo) declares one in place, `{ 0 }` is an empty one. Nothing here is bounded: who
 * fills a vector from input states and enforces the cap.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t nr, cap;                                                                    \
	}

int vec_grow(void **items, size_t *cap, size_t item_size, size_t want);

/* Room for `want` items in all; 0 or -ENOMEM. */
#define vec_reserve(v, want)                                                                       \
	((want) <= (v)->cap                                                                        \
		 ? 0                                                                               \
		 : vec_grow((void **)&(v)->items, &(v)->cap, sizeof(*(v)->items), (want)))

/* Appends one item; 0 or -ENOMEM. */
#define vec_push(v, ...)                                                                           \
	({                                                                                         \
		int vec_r_ = vec_reserve((v), (v)->nr + 1);                                        \
		if (!vec_r_)                                                                       \
			(v)->items[(v)->nr++] = __VA_ARGS__;                                       \
		vec_r_;                                                                            \
	})

/* Gives back the room behind its items, if there is memory to do so. */
#define vec_shrink(v)                                                                              \
	do {                                                                                       \
		void *vec_less_ =                                                                  \
			(v)->nr ? realloc((v)->items, (v)->nr * sizeof(*(v)->items)) : NULL;       \
		if (vec_less_) {                                                                   \
			(v)->items = vec_less_;                                                    \
			(v)->cap = (v)->nr;                                                        \
		}                                                                                  \
	} while (0)

#define vec_free(v)                                                                                \
	do {                                                                                       \
		free((v)->items);                                                                  \
		(v)->items = NULL;                                                                 \
		(v)->nr = (v)->cap = 0;                                                            \
	} while (0)
