// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_names.h"

#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

enum {
	TAG = 1,
	SMI = 8,
	/* ScopeFlags (src/objects/scope-info.tq): the same in all versions */
	SCOPE_TYPE = 15,
	SCOPE_RECEIVER_SHIFT = 7,
	RECEIVER_STACK = 1,
	RECEIVER_CONTEXT = 2,
	LOCALS_MAX = 1 << 16,
	PIECE = 32 << 10, /* units of source read at once */
};

static const char anonymous[] = "(anonymous)";

void v8_lines_fini(struct v8_lines *lines)
{
	for (size_t i = 0; i < V8_SCRIPTS; i++)
		vec_free(&lines->scripts[i].ends);
}

/* --- names -------------------------------------------------------------------------------------
 */

static int text_of(const struct v8_heap *h, uint64_t tagged, char ret[V8_TEXT_MAX + 1])
{
	struct v8_object string;
	int r;

	ret[0] = '\0';
	if (!v8_is_object(tagged))
		return 0;
	r = v8_read(h, tagged, &string);
	if (r || !v8_is_string(h, &string))
		return r;
	return v8_read_string(h, &string, ret);
}

/* What a ScopeInfo says: the name, else the one that V8 thought of, and where the function is. */
static int read_scope(const struct v8_heap *h, const struct v8_object *scope, struct v8_function *f)
{
	const struct v8_layout *l = h->layout;
	uint64_t flags = v8_field(scope, l->scope_flags) >> (l->scope_plain_flags ? 0 : 32);
	unsigned int receiver = (unsigned int)flags >> SCOPE_RECEIVER_SHIFT & 3;
	uint64_t words[6];
	int32_t locals = v8_small(v8_field(scope, l->scope_locals));
	uint64_t at = scope->at + l->scope_parts;
	size_t used = 0;
	int r;

	if (locals < 0 || locals > LOCALS_MAX)
		return -ENOENT;
	if ((flags & SCOPE_TYPE) == l->scope_module)
		at += SMI;
	at += SMI * (locals < l->scope_locals_max ? (uint64_t)locals : 1) + SMI * (uint64_t)locals;
	if (flags & l->scope_saved_class)
		at += SMI;
	if (l->scope_receiver && (receiver == RECEIVER_STACK || receiver == RECEIVER_CONTEXT))
		at += SMI;
	r = v8_read_bytes(h, at, words, sizeof(words));
	if (r)
		return r;
	if (flags >> l->scope_function_shift & 3) {
		r = text_of(h, words[0], f->name);
		used = 2;
	}
	if (!r && flags & l->scope_inferred && !f->name[0])
		r = text_of(h, words[used], f->name);
	used += (flags & l->scope_inferred) != 0;
	if (l->scope_start)
		words[used] = v8_field(scope, l->scope_start);
	if (!r && v8_is_small(words[used]))
		f->start = v8_small(words[used]);
	return r;
}

int v8_function_read(const struct v8_heap *h, uint64_t shared, struct v8_function *f)
{
	const struct v8_layout *l = h->layout;
	struct v8_object o;
	int r = v8_read_as(h, shared, l->type_shared, &f->shared);

	f->name[0] = f->source[0] = '\0';
	f->start = -1;
	if (r)
		return r;
	r = v8_read(h, v8_field(&f->shared, l->shared_name), &o);
	if (!r && o.type == l->type_scope)
		r = read_scope(h, &o, f);
	else if (!r && v8_is_string(h, &o))
		r = v8_read_string(h, &o, f->name);
	if (r == -ESRCH)
		return r;
	if (!f->name[0])
		memcpy(f->name, anonymous, sizeof(anonymous));
	r = v8_read_as(h, v8_field(&f->shared, l->record.shared_script), l->type_script,
		       &f->script);
	f->has_script = !r;
	if (!r)
		r = text_of(h, v8_field(&f->script, l->script_name), f->source);
	return r == -ESRCH ? r : 0;
}

/* --- lines -------------------------------------------------------------------------------------
 */

/* In V8's own table: how many lines end before that offset; -1: it has none yet. */
static int64_t line_of_table(const struct v8_heap *h, const struct v8_function *f, int32_t offset)
{
	const struct v8_layout *l = h->layout;
	struct v8_object ends;
	int32_t low = 0, high;

	if (v8_read_as(h, v8_field(&f->script, l->script_line_ends), l->type_fixed_array, &ends))
		return -1;
	high = v8_small(v8_field(&ends, l->array_length));
	if (high <= 0)
		return -1;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		uint64_t end;

		if (v8_read_bytes(h, ends.at + l->array_data + SMI * (uint64_t)middle, &end,
				  sizeof(end)) ||
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

/* By the source, which is read once. */
static int64_t line_of_source(const struct v8_heap *h, struct v8_lines *lines,
			      const struct v8_function *f, int32_t offset)
{
	const struct v8_layout *l = h->layout;
	uint64_t source = v8_field(&f->script, l->script_source);
	int32_t id = v8_small(v8_field(&f->script, l->record.script_id));
	struct v8_script_lines *s = NULL;
	size_t low = 0, high;

	for (size_t i = 0; i < V8_SCRIPTS && !s; i++)
		if (lines->scripts[i].source == source && lines->scripts[i].script == id)
			s = &lines->scripts[i];
	if (!s) {
		s = &lines->scripts[lines->next++ % V8_SCRIPTS];
		vec_free(&s->ends);
		s->source = source;
		s->script = id;
		if (find_ends(h, source, s)) {
			vec_free(&s->ends);
			s->source = 0;
		}
	}
	if (!s->source)
		return -1;
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
	line += 1 + v8_small(v8_field(&f->script, h->layout->script_line_offset));
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
