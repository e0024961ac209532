// SPDX-License-Identifier: Apache-2.0
/*
 * Facts: V8's src/heap/factory.cc (Factory::NewScriptWithId() appends to the root script_list),
 * src/objects/script.tq (shared_function_infos, later infos), src/heap/mark-compact.cc
 * (ClearNonLiveReferences() is before anything is swept) at 7.8 to 15.0. The heap's roots lie in
 * its isolate, before the heap: where the list is among them, its content tells.
 */
#include "runtime/v8/v8_alive.h"

#include <errno.h>
#include <string.h>

enum {
	WORD = 8,
	CHUNK = 256 << 10, /* pages of a heap begin at multiples of this */
	WEAK = 3,	   /* how a pointer ends that does not hold what it leads to */
	PAGE = 4096,
	ROOTS_PAGES = 16, /* before the heap, that have its roots */
	TRIES = 8,
	LIST_HEADER = 3, /* fields, of a WeakArrayList */
	LIST_MAX = 1 << 20,
	LOOKED_AT = 8, /* elements, to see whether it is the list of scripts */
	PIECE = 512,   /* elements */
};

struct list {
	uint64_t at; /* of its elements */
	uint32_t length;
};

/* The heap that an object lies in. */
static int find_heap(const struct v8_heap *h, uint64_t object, uint64_t *ret)
{
	const struct v8_layout *l = h->layout;
	uint64_t at = object & ~(uint64_t)(CHUNK - 1);
	int r = 0;

	if (l->chunk_metadata)
		r = v8_read_bytes(h, at + l->chunk_metadata, &at, sizeof(at));
	return r ? r : v8_read_bytes(h, at + l->chunk_heap, ret, sizeof(*ret));
}

/* WeakArrayList: capacity, length, elements. */
static int read_list(const struct v8_heap *h, uint64_t tagged, struct list *ret)
{
	const uint64_t size = v8_tagged_size(h->layout);
	bool plain = h->layout->plain_lengths;
	uint64_t capacity, length;
	struct v8_object list;
	int r;

	if (!v8_is_object(tagged))
		return -ENOENT;
	list.at = tagged & ~(uint64_t)WEAK;
	r = v8_read_bytes(h, list.at, list.words, LIST_HEADER * size);
	if (r)
		return r;
	capacity = v8_tagged(h, &list, (uint16_t)size);
	length = v8_tagged(h, &list, (uint16_t)(2 * size));
	if (!v8_is_object(v8_tagged(h, &list, 0)) ||
	    (!plain && (!v8_is_small(capacity) || !v8_is_small(length))))
		return -ENOENT;
	length = plain ? capacity >> 32 : length >> 32;
	capacity = plain ? capacity & UINT32_MAX : capacity >> 32;
	*ret = (struct list){ list.at + (plain ? 2 : 3) * size, (uint32_t)length };
	return length && length <= LIST_MAX && capacity >= length ? 0 : -ENOENT;
}

/* Elements of an array, as v8_tagged_of(). */
static int read_elements(const struct v8_heap *h, uint64_t at, uint32_t nr, uint64_t *ret)
{
	const size_t size = v8_tagged_size(h->layout);
	int r = v8_read_bytes(h, at, ret, size * nr);

	/* From the last one on: they become no smaller. */
	for (uint32_t i = r ? 0 : nr; i-- > 0;)
		ret[i] = v8_tagged_of(h->layout, at, (const char *)ret + size * i);
	return r;
}

/* Whether that list has scripts that it does not hold, and nothing else. */
static bool has_scripts(const struct v8_heap *h, uint64_t tagged)
{
	uint64_t elements[LOOKED_AT];
	struct v8_object script;
	struct list list;
	uint32_t nr, found = 0;

	if (read_list(h, tagged, &list))
		return false;
	nr = list.length < LOOKED_AT ? list.length : LOOKED_AT;
	if (read_elements(h, list.at, nr, elements))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		if ((elements[i] & WEAK) != WEAK)
			return false;
		if ((uint32_t)elements[i] == WEAK) /* what was there is not alive */
			continue;
		/* With the tag of what it would hold. */
		if (v8_read_as(h, elements[i] - 2, h->layout->type_script, &script))
			return false;
		found++;
	}
	return found > 0;
}

/* Looks for the pointer to the list among the roots, which lie before the heap. */
static int find_list(const struct v8_heap *of, struct v8_scripts *s, uint64_t heap)
{
	struct v8_work work = { .reads = 4 * ROOTS_PAGES * PAGE / WORD, .bytes = 1 << 20 };
	const struct v8_heap h = { of->target, of->layout, &work };
	uint64_t words[PAGE / WORD];

	if (s->tries >= TRIES)
		return -ENODATA;
	s->tries++;
	for (uint64_t page = 1; page <= ROOTS_PAGES; page++) {
		if (v8_read_bytes(&h, heap - page * PAGE, words, sizeof(words)))
			break;
		for (size_t i = 0; i < PAGE / WORD; i++)
			if (v8_is_object(words[i]) && has_scripts(&h, words[i])) {
				s->list = (int64_t)(WORD * i) - (int64_t)(page * PAGE);
				return 0;
			}
	}
	return -ENODATA;
}

static int look_at(const struct v8_heap *h, const struct list *list, uint32_t from, uint32_t nr,
		   uint64_t element, uint32_t *ret)
{
	uint64_t piece[PIECE];
	uint64_t at = list->at + v8_tagged_size(h->layout) * (uint64_t)from;
	int r = read_elements(h, at, nr, piece);

	for (uint32_t i = 0; i < nr && !r; i++)
		if (piece[i] == element) {
			*ret = from + i;
			return 0;
		}
	return r ? r : -ENOENT;
}

/* Where the list has that element. New scripts are at its end, those that stay at its begin. */
static int find_element(const struct v8_heap *h, struct v8_scripts *s, const struct list *list,
			uint64_t element, uint32_t id)
{
	uint32_t *hint = &s->hints[id % V8_SCRIPT_HINTS].index, low = 0, high = list->length, nr;
	int r = -ENOENT;

	if (s->hints[id % V8_SCRIPT_HINTS].id == id && *hint < list->length)
		r = look_at(h, list, *hint, 1, element, hint);
	while (r == -ENOENT && low < high) {
		nr = high - low < PIECE ? high - low : PIECE;
		r = look_at(h, list, high -= nr, nr, element, hint);
		if (r != -ENOENT || low == high)
			break;
		nr = high - low < PIECE ? high - low : PIECE;
		r = look_at(h, list, low, nr, element, hint);
		low += nr;
	}
	if (!r)
		s->hints[id % V8_SCRIPT_HINTS].id = id;
	return r;
}

static int script_is_alive(const struct v8_heap *h, struct v8_scripts *s, uint64_t script,
			   uint32_t id)
{
	uint64_t heap, tagged, again;
	struct list list;
	int r = find_heap(h, script, &heap);

	if (!r)
		r = v8_read_bytes(h, heap + (uint64_t)s->list, &tagged, sizeof(tagged));
	if (!r)
		r = read_list(h, tagged, &list);
	if (!r)
		r = find_element(h, s, &list, script + WEAK, id);
	/* One that another one has replaced is not cleared any more. */
	if (!r)
		r = v8_read_bytes(h, heap + (uint64_t)s->list, &again, sizeof(again));
	return r ? r : again == tagged ? 0 : -ENOENT;
}

int v8_is_alive(const struct v8_heap *h, struct v8_scripts *scripts, const struct v8_identity *f)
{
	const struct v8_layout *l = h->layout;
	uint64_t functions, length, element, heap;
	int r;

	if (!l->chunk_heap)
		return -ENODATA;
	if (!scripts->list) {
		r = find_heap(h, f->script, &heap);
		if (!r)
			r = find_list(h, scripts, heap);
		if (r)
			return r == -ESRCH ? r : -ENODATA;
	}
	if (f->literal <= INT32_MAX) {
		r = v8_read_tagged(h, f->script + l->script_functions, &functions);
		if (!r && !v8_is_object(functions))
			r = -ENOENT;
		if (!r)
			r = v8_read_tagged(h, functions - 1 + l->array_length, &length);
		if (!r && f->literal >= (l->plain_lengths ? (uint32_t)length
							  : (uint32_t)v8_small(length)))
			r = -ENOENT;
		if (!r)
			r = v8_read_tagged(h,
					   functions - 1 + l->array_data +
						   v8_tagged_size(l) * (uint64_t)f->literal,
					   &element);
		if (r)
			return r;
		if (element != f->shared + WEAK)
			return -ENOENT;
	}
	/* Last: as long as the script is alive, so is its list. */
	return script_is_alive(h, scripts, f->script, f->id);
}
