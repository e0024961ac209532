// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_heap.h"
#include "util/utf8.h"

#include <errno.h>
#include <string.h>

enum {
	TAG = 1,
	MINIMAL = 3,	   /* fields of a small object, read where a whole page's rest is missing */
	STRING_PARTS = 32, /* of a string that is put together */
	STRING_HOPS = 8,
	PAGE = 4096,
};

int v8_read_bytes(const struct v8_heap *h, uint64_t at, void *to, size_t size)
{
	struct v8_work *work = h->work;

	if (!work->reads || work->bytes < size)
		return -ENOENT;
	work->reads--;
	work->bytes -= size;
	return runtime_read_or_gone(h->target, at, to, size);
}

int v8_read_up_to(const struct v8_heap *h, uint64_t at, void *to, size_t size, size_t least)
{
	size_t left = PAGE - at % PAGE;
	int r;

	memset(to, 0, size);
	r = v8_read_bytes(h, at, to, size);
	/* The last one before memory that is not there. */
	if (r == -ENOENT && left < size && left >= least)
		r = v8_read_bytes(h, at, to, left);
	return r;
}

int v8_read_tagged(const struct v8_heap *h, uint64_t at, uint64_t *ret)
{
	uint64_t bytes = 0;
	int r = v8_read_bytes(h, at, &bytes, v8_tagged_size(h->layout));

	if (!r)
		*ret = v8_tagged_of(h->layout, at, &bytes);
	return r;
}

static int read_object(const struct v8_heap *h, uint64_t at, struct v8_object *ret)
{
	ret->at = at;
	return v8_read_up_to(h, at, ret->words, sizeof(ret->words),
			     MINIMAL * v8_tagged_size(h->layout));
}

/* What an object begins with: its map, or while it is moved where it is now (MapWord). */
static uint64_t map_word(const struct v8_heap *h, const struct v8_object *o)
{
	if (!h->layout->record.compressed)
		return o->words[0];
	return V8_NEAR(o->at, o->words[0]);
}

int v8_read(const struct v8_heap *h, uint64_t tagged, struct v8_object *ret)
{
	uint64_t map;
	int r;

	if (!v8_is_object(tagged))
		return -ENOENT;
	r = read_object(h, tagged - TAG, ret);
	map = map_word(h, ret);
	if (!r && !(map & TAG) && map) {
		r = read_object(h, map, ret);
		map = map_word(h, ret);
	}
	if (r)
		return r;
	if (!v8_is_object(map))
		return -ENOENT;
	return v8_read_bytes(h, map - TAG + h->layout->record.map_type, &ret->type,
			     sizeof(ret->type));
}

int v8_read_as(const struct v8_heap *h, uint64_t tagged, uint16_t type, struct v8_object *ret)
{
	int r = v8_read(h, tagged, ret);

	return r ? r : ret->type == type ? 0 : -ENOENT;
}

/* --- strings ---------------------------------------------------------------------------------- */

bool v8_is_string(const struct v8_heap *h, const struct v8_object *o)
{
	return o->type < h->layout->first_nonstring;
}

uint32_t v8_string_length(const struct v8_heap *h, const struct v8_object *o)
{
	return v8_field_4(o, h->layout->string_length);
}

/* Follows what only stands for another one, from `from` on in that; then where its units are. */
static int find_units(const struct v8_heap *h, struct v8_object *s, uint32_t *from, uint64_t *ret)
{
	const struct v8_layout *l = h->layout;

	for (int i = 0; i < STRING_HOPS; i++) {
		uint16_t kind = s->type & l->string_representation;
		uint64_t next;
		int r;

		if (!v8_is_string(h, s))
			return -ENOENT;
		if (!kind) {
			*ret = s->at + l->string_chars;
			return 0;
		}
		if (kind == l->string_external) {
			*ret = v8_field(s, l->external_data);
			return *ret ? 0 : -ENOENT;
		}
		if (kind == l->string_thin) {
			next = v8_tagged(h, s, l->thin_actual);
		} else if (kind == l->string_sliced) {
			next = v8_tagged(h, s, l->sliced_parent);
			*from += (uint32_t)v8_small(v8_tagged(h, s, l->sliced_offset));
		} else if (kind == l->string_cons) {
			struct v8_object second;

			/* Flattened, its second half is empty. */
			r = v8_read(h, v8_tagged(h, s, l->cons_second), &second);
			if (r)
				return r;
			if (v8_string_length(h, &second))
				return -ENOTSUP;
			next = v8_tagged(h, s, l->cons_first);
		} else {
			return -ENOENT;
		}
		r = v8_read(h, next, s);
		if (r)
			return r;
	}
	return -ENOENT;
}

int v8_read_units(const struct v8_heap *h, const struct v8_object *string, uint32_t from,
		  uint32_t nr, void *to, bool *ret_wide)
{
	struct v8_object s = *string;
	uint64_t at;
	bool wide;
	int r = find_units(h, &s, &from, &at);

	if (r)
		return r;
	wide = !(s.type & h->layout->string_one_byte);
	*ret_wide = wide;
	return v8_read_bytes(h, at + ((uint64_t)from << wide), to, (size_t)nr << wide);
}

/* Units as UTF-8, behind `len` bytes that are there; how many there are then. */
static size_t append_units(char ret[V8_TEXT_MAX + 1], size_t len, const void *units, uint32_t nr,
			   bool wide)
{
	const uint8_t *bytes = units;
	const uint16_t *words = units;

	for (uint32_t i = 0; i < nr && len + 4 <= V8_TEXT_MAX; i++) {
		uint32_t c = wide ? words[i] : bytes[i];

		if (c >> 10 == 0x36 && i + 1 < nr && words[i + 1] >> 10 == 0x37)
			c = 0x10000 + ((c & 0x3ff) << 10) + (words[++i] & 0x3ff);
		else if (c >> 11 == 0x1b)
			c = 0xfffd;
		else if (!c)
			c = 0x2400; /* names have no end before their own */
		len += utf8_put(c, ret + len);
	}
	return len;
}

int v8_read_string(const struct v8_heap *h, const struct v8_object *string,
		   char ret[V8_TEXT_MAX + 1])
{
	const struct v8_layout *l = h->layout;
	struct v8_object parts[STRING_PARTS];
	size_t nr_parts = 1, len = 0, steps = 0;

	parts[0] = *string;
	while (nr_parts && len + 4 <= V8_TEXT_MAX) {
		struct v8_object s = parts[--nr_parts];
		uint16_t units[V8_TEXT_MAX];
		uint32_t nr;
		bool wide;
		int r;

		if (!v8_is_string(h, &s) || ++steps > 4 * STRING_PARTS)
			return -ENOENT;
		nr = v8_string_length(h, &s);
		if (!nr)
			continue;
		if (nr > V8_TEXT_MAX)
			nr = V8_TEXT_MAX;
		r = v8_read_units(h, &s, 0, nr, units, &wide);
		if (r == -ENOTSUP) {
			/* What is put together of more than this is cut. */
			if (nr_parts + 2 > STRING_PARTS ||
			    (s.type & l->string_representation) != l->string_cons)
				return -ENOENT;
			r = v8_read(h, v8_tagged(h, &s, l->cons_second), &parts[nr_parts]);
			if (!r)
				r = v8_read(h, v8_tagged(h, &s, l->cons_first),
					    &parts[nr_parts + 1]);
			nr_parts += 2;
			if (r)
				return r;
			continue;
		}
		if (r)
			return r;
		len = append_units(ret, len, units, nr, wide);
	}
	ret[len] = '\0';
	return 0;
}
