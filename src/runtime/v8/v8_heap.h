/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in V8's heap, read out of a process: of what type they are, and strings. A garbage
 * collection may move them meanwhile; then the first word leads to where an object is now.
 *
 * Pointers are untagged here (the object's first byte); what stands in memory is tagged.
 */
#pragma once

#include "runtime/runtime.h"
#include "runtime/v8/v8_layout.h"

#include <stdbool.h>
#include <string.h>

enum { V8_TEXT_MAX = 1024 }; /* bytes of a string */

/*
 * How much may still be done for what is asked: a process can make up objects that never end.
 * Where it is used up, memory cannot be read (-ENOENT).
 */
struct v8_work {
	uint32_t reads;
	uint64_t bytes;	     /* of these */
	uint32_t operations; /* of translations (v8_translation.h) */
};

struct v8_heap {
	const struct runtime_target *target;
	const struct v8_layout *layout;
	struct v8_work *work;
};

struct v8_object {
	uint64_t at; /* where it is now */
	uint64_t words[V8_OBJECT_SIZE / 8];
	uint16_t type;
};

static inline bool v8_is_object(uint64_t tagged)
{
	return (tagged & 3) == 1;
}

static inline bool v8_is_small(uint64_t tagged)
{
	return !(uint32_t)tagged;
}

static inline int32_t v8_small(uint64_t tagged)
{
	return (int32_t)(tagged >> 32);
}

/* 8 bytes that are no tagged field; behind what was read is nothing. */
static inline uint64_t v8_field(const struct v8_object *o, uint16_t offset)
{
	uint64_t value = 0;

	if (offset <= V8_OBJECT_SIZE - sizeof(value))
		memcpy(&value, (const char *)o->words + offset, sizeof(value));
	return value;
}

static inline uint32_t v8_field_4(const struct v8_object *o, uint16_t offset)
{
	uint32_t value = 0;

	if (offset <= V8_OBJECT_SIZE - sizeof(value))
		memcpy(&value, (const char *)o->words + offset, sizeof(value));
	return value;
}

/*
 * What those bytes of a tagged field stand for, as v8_is_object(), v8_is_small() and others take
 * it. All that has a tag lies in the same 4 GB if pointers are compressed: `near` is any of it.
 */
static inline uint64_t v8_tagged_of(const struct v8_layout *l, uint64_t near, const void *bytes)
{
	uint64_t value;
	uint32_t low;

	if (!l->record.compressed) {
		memcpy(&value, bytes, sizeof(value));
		return value;
	}
	memcpy(&low, bytes, sizeof(low));
	return V8_DECOMPRESS(near, low);
}

static inline uint64_t v8_tagged(const struct v8_heap *h, const struct v8_object *o,
				 uint16_t offset)
{
	if (offset > V8_OBJECT_SIZE - 8)
		return 0;
	return v8_tagged_of(h->layout, o->at, (const char *)o->words + offset);
}

/* How many elements an array has that is no BytecodeArray; -1: more than arrays have. */
static inline int32_t v8_array_length(const struct v8_heap *h, const struct v8_object *array)
{
	const struct v8_layout *l = h->layout;
	int32_t length = l->plain_lengths ? (int32_t)v8_field_4(array, l->array_length)
					  : v8_small(v8_tagged(h, array, l->array_length));

	return length < 0 ? -1 : length;
}

/* The object behind a tagged pointer. -ENOENT: there is none; -ESRCH: the process is gone. */
int v8_read(const struct v8_heap *h, uint64_t tagged, struct v8_object *ret);
/* As v8_read(); an object of another type is -ENOENT. */
int v8_read_as(const struct v8_heap *h, uint64_t tagged, uint16_t type, struct v8_object *ret);
/* Bytes of memory; errors as above. */
int v8_read_bytes(const struct v8_heap *h, uint64_t at, void *to, size_t size);
/* A tagged field of memory, as v8_tagged_of(). */
int v8_read_tagged(const struct v8_heap *h, uint64_t at, uint64_t *ret);
/* `size` bytes, or at least `least`, then zeros, where memory ends with the page. */
int v8_read_up_to(const struct v8_heap *h, uint64_t at, void *to, size_t size, size_t least);
bool v8_is_string(const struct v8_heap *h, const struct v8_object *o);
/* How many UTF-16 units it has. */
uint32_t v8_string_length(const struct v8_heap *h, const struct v8_object *o);
/* A string as UTF-8, cut to what fits: at most V8_TEXT_MAX bytes and a NUL. */
int v8_read_string(const struct v8_heap *h, const struct v8_object *string,
		   char ret[V8_TEXT_MAX + 1]);
/*
 * Up to `nr` UTF-16 units of a string from `from` on, which lie side by side; *ret_wide: each has
 * two bytes, else one. Those of a string that is put together of others (rare, of sources) are
 * -ENOTSUP.
 */
int v8_read_units(const struct v8_heap *h, const struct v8_object *string, uint32_t from,
		  uint32_t nr, void *to, bool *ret_wide);
