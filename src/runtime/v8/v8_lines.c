// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_lines.h"

#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>

enum {
	TAG = 1,
	PIECE = 32 << 10, /* units of source read at once */
};

static void drop_lines(struct runtime_kept *kept)
{
	struct v8_script_lines *s = (struct v8_script_lines *)kept;

	vec_free(&s->ends);
	s->source = 0;
}

static void forget(const struct v8_heap *h, struct v8_script_lines *s)
{
	runtime_keep_no_more(h->target->keeper, &s->kept);
	drop_lines(&s->kept);
}

void v8_lines_fini(const struct v8_heap *h, struct v8_lines *lines)
{
	for (size_t i = 0; i < V8_SCRIPTS; i++)
		forget(h, &lines->scripts[i]);
}

/* In V8's own table: how many lines end before that offset; -1: it has none yet. */
static int64_t line_of_table(const struct v8_heap *h, const struct v8_function *f, int32_t offset)
{
	const struct v8_layout *l = h->layout;
	const uint64_t size = v8_tagged_size(l);
	struct v8_object ends;
	int32_t low = 0, high;

	if (v8_read_as(h, v8_tagged(h, &f->script, l->script_line_ends), l->type_fixed_array,
		       &ends))
		return -1;
	high = v8_array_length(h, &ends);
	if (high <= 0)
		return -1;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		uint64_t end;

		if (v8_read_tagged(h, ends.at + l->array_data + size * (uint64_t)middle, &end) ||
		    !v8_is_small(end))
			return -1;
		if (v8_small(end) < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_end(uint32_t c, uint32_t next)
{
	return c == '\n' || (c == '\r' && next != '\n') || c == 0x2028 || c == 0x2029;
}

static int find_ends(const struct v8_heap *h, uint64_t source, struct v8_script_lines *to)
{
	_cleanup_free_ uint16_t *units = malloc(PIECE * sizeof(*units));
	struct v8_object string;
	uint32_t length;
	int r = units ? v8_read(h, source, &string) : -ENOMEM;

	if (r)
		return r;
	if (!v8_is_string(h, &string))
		return -ENOENT;
	length = v8_string_length(h, &string);
	if (length > V8_SOURCE_MAX)
		return -ENOENT;
	for (uint32_t at = 0; at < length && !r;) {
		uint32_t nr = length - at < PIECE ? length - at : PIECE;
		const uint8_t *bytes = (const uint8_t *)units;
		bool wide;

		r = v8_read_units(h, &string, at, nr, units, &wide);
		/* The last one is looked at with what follows it. */
		for (uint32_t i = 0; i < nr && !r; i++) {
			bool last = at + i + 1 == length;
			uint32_t c = wide ? units[i] : bytes[i];

			if (i + 1 == nr && !last) {
				nr--;
				break;
			}
			if (is_end(c, last ? 0 : wide ? units[i + 1] : bytes[i + 1]))
				r = to->ends.nr < V8_LINES_MAX ? vec_push(&to->ends, at + i)
							       : -ENOENT;
		}
		at += nr;
	}
	return r;
}

/* What the function's script has as its source, now. */
static int read_source(const struct v8_heap *h, const struct v8_function *f,
		       struct v8_script_lines *ret)
{
	const struct v8_layout *l = h->layout;
	struct v8_object script, string;
	uint64_t source;
	int r = v8_read_as(h, f->script.at + TAG, l->type_script, &script);

	if (r)
		return r;
	source = v8_tagged(h, &script, l->script_source);
	r = v8_read(h, source, &string);
	if (!r && !v8_is_string(h, &string))
		r = -ENOENT;
	if (r)
		return r;
	ret->source = source;
	ret->length = v8_string_length(h, &string);
	ret->script = v8_small(v8_tagged(h, &script, l->record.script_id));
	return 0;
}

static bool is_same(const struct v8_script_lines *a, const struct v8_script_lines *b)
{
	return a->source == b->source && a->script == b->script && a->length == b->length;
}

/* The lines of that source, in place of those that were not used for longest. */
static int add_lines(const struct v8_heap *h, struct v8_lines *lines, const struct v8_function *f,
		     const struct v8_script_lines *wanted, struct v8_script_lines **ret)
{
	struct v8_script_lines *to = &lines->scripts[0], now;
	int r;

	for (size_t i = 1; i < V8_SCRIPTS && to->source; i++)
		if (!lines->scripts[i].source || lines->scripts[i].used < to->used)
			to = &lines->scripts[i];
	forget(h, to);
	r = find_ends(h, wanted->source, to);
	to->failed = r != 0;
	if (r)
		vec_free(&to->ends);
	/* If it was moved meanwhile, what was read may be anything. */
	if (r != -ESRCH && r != -ENOMEM)
		r = read_source(h, f, &now);
	if (!r && !is_same(&now, wanted))
		r = -ENOENT;
	if (r) {
		vec_free(&to->ends);
		return r;
	}
	to->source = wanted->source;
	to->length = wanted->length;
	to->script = wanted->script;
	to->kept.drop = drop_lines;
	if (to->ends.cap)
		runtime_keep(h->target->keeper, &to->kept, to->ends.cap * sizeof(*to->ends.items));
	*ret = to;
	return 0;
}

/* By the source; -1: it is not known. */
static int64_t line_of_source(const struct v8_heap *h, struct v8_lines *lines,
			      const struct v8_function *f, int32_t offset)
{
	struct v8_script_lines *s = NULL, wanted;
	size_t low = 0, high;

	if (read_source(h, f, &wanted))
		return -1;
	for (size_t i = 0; i < V8_SCRIPTS && !s; i++)
		if (is_same(&lines->scripts[i], &wanted))
			s = &lines->scripts[i];
	if (!s && add_lines(h, lines, f, &wanted, &s))
		return -1;
	s->used = ++lines->now;
	if (s->failed)
		return -1;
	runtime_use_kept(h->target->keeper, &s->kept);
	high = s->ends.nr;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->ends.items[middle] < (uint32_t)offset)
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low;
}

uint32_t v8_line(const struct v8_heap *h, struct v8_lines *lines, const struct v8_function *f,
		 int32_t offset)
{
	int64_t line;

	if (!f->has_script || offset < 0)
		return 0;
	line = line_of_table(h, f, offset);
	if (line < 0)
		line = line_of_source(h, lines, f, offset);
	if (line < 0)
		return 0;
	line += 1 + v8_small(v8_tagged(h, &f->script, h->layout->script_line_offset));
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
