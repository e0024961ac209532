// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_frame.h"

#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TAG = 1,
	READINGS = 4, /* two of which, one behind the other, must be the same */
};

/* Of one reading: to find where the frame is, and to name what is there. */
static const struct v8_work places_work = { .reads = 16 << 10,
					    .bytes = 16 << 20,
					    .operations = 100000 };
static const struct v8_work names_work = { .reads = 8 << 10, .bytes = 80 << 20 };

/* One function at work, and what tells it apart. */
struct inline_frame {
	uint64_t script_at, shared_at;
	uint32_t script, literal;
	uint16_t token;
	bool has_script;
	uint32_t start_line, line;
	char name[V8_TEXT_MAX + 1], source[V8_TEXT_MAX + 1];
};

struct reading {
	bool has_code; /* it was found in which code the frame is */
	int nr;
	struct inline_frame inline_frames[V8_INLINED_MAX];
};

void v8_frames_fini(struct v8_frames *frames)
{
	const struct v8_heap heap = { .target = frames->target };

	v8_codes_fini(&frames->codes);
	v8_lines_fini(&heap, &frames->lines);
}

/* Whether it is still the function that the step saw. */
static bool is_same(const struct v8_heap *h, const struct v8_function *f, const uint64_t *words)
{
	const struct v8_record *r = &h->layout->record;

	return f->has_script &&
	       (uint32_t)v8_small(v8_tagged(h, &f->script, r->script_id)) == words[1] >> 32 &&
	       v8_field_4(&f->shared, r->shared_literal) == (uint32_t)words[1] &&
	       (uint16_t)v8_field_4(&f->shared, r->shared_token) == words[2] >> 48;
}

/* Where the function is; what is not known has no line. `ret->has_code`: look for its code. */
static int find_places(struct v8_frames *fs, const struct v8_heap *h, const struct v8_function *f,
		       const uint64_t *words, struct reading *ret,
		       struct v8_place places[V8_INLINED_MAX])
{
	uint64_t at = words[2] & V8_ADDRESS_MASK;
	struct v8_object code;
	int nr = -ENOENT;

	places[0] = (struct v8_place){ .offset = -1 };
	if (V8_FRAME_KIND(FRAME_DATA(words[0])) == V8_INTERPRETED) {
		if (at != V8_NO_PLACE)
			places[0].offset = v8_bytecode_place(h, &f->shared, (uint32_t)at);
		return 1;
	}
	if (ret->has_code)
		nr = v8_code_find(h, &fs->codes, at, &code);
	ret->has_code = !nr;
	if (!nr)
		nr = v8_code_places(h, &code, &f->shared, fs->sizes, at, places);
	if (nr == -ENOENT) {
		places[0] = (struct v8_place){ .offset = -1 };
		nr = 1;
	}
	return nr;
}

/* Whether the lines of V8's source are those of the file that it is called by. */
static bool has_lines(const struct v8_layout *l, const char *source)
{
	static const char *const others[] = { ".ts", ".mts", ".cts", ".tsx", ".jsx" };
	size_t length = strlen(source);

	for (size_t i = 0; l->makes_sources && i < sizeof(others) / sizeof(*others); i++) {
		size_t n = strlen(others[i]);

		if (length >= n && !memcmp(source + length - n, others[i], n))
			return false;
	}
	return true;
}

static void tell(struct v8_frames *fs, const struct v8_heap *h, const struct v8_function *f,
		 int32_t offset, struct inline_frame *to)
{
	const struct v8_record *r = &h->layout->record;

	to->has_script = f->has_script;
	to->script_at = f->script.at;
	to->shared_at = f->shared.at;
	to->script = f->has_script ? (uint32_t)v8_small(v8_tagged(h, &f->script, r->script_id)) : 0;
	to->literal = v8_field_4(&f->shared, r->shared_literal);
	to->token = (uint16_t)v8_field_4(&f->shared, r->shared_token);
	memcpy(to->name, f->name, strlen(f->name) + 1);
	memcpy(to->source, f->source, strlen(f->source) + 1);
	to->start_line = to->line = 0;
	if (!has_lines(fs->layout, f->source))
		return;
	to->start_line = v8_line(h, &fs->lines, f, f->start);
	to->line = v8_line(h, &fs->lines, f, offset);
}

static int read_frame(struct v8_frames *fs, const uint64_t *words, struct reading *ret)
{
	uint64_t shared = V8_FRAME_ADDRESS(FRAME_DATA(words[0])) + TAG;
	struct v8_place places[V8_INLINED_MAX];
	struct v8_work work = places_work;
	struct v8_heap h = { fs->target, fs->layout, &work };
	struct v8_function own, inlined;
	int r = v8_function_read(&h, shared, &own), nr;

	if (r)
		return r;
	if (!is_same(&h, &own, words))
		return -ENOENT;
	nr = find_places(fs, &h, &own, words, ret, places);
	if (nr < 0)
		return nr;
	work = names_work;
	for (int i = 0; i < nr; i++) {
		if (places[i].unknown) {
			ret->inline_frames[i] =
				(struct inline_frame){ .name = "[v8: inlined_unknown]" };
			continue;
		}
		r = places[i].shared ? v8_function_read(&h, places[i].shared, &inlined) : 0;
		if (r)
			return r;
		tell(fs, &h, places[i].shared ? &inlined : &own, places[i].offset,
		     &ret->inline_frames[i]);
	}
	ret->nr = nr;
	return 0;
}

static bool inline_frames_equal(const struct inline_frame *a, const struct inline_frame *b)
{
	return a->has_script == b->has_script && a->script == b->script &&
	       a->literal == b->literal && a->token == b->token && a->start_line == b->start_line &&
	       a->line == b->line && !strcmp(a->name, b->name) && !strcmp(a->source, b->source);
}

static bool readings_equal(const struct reading *a, const struct reading *b)
{
	bool equal = a->nr == b->nr;

	for (int i = 0; i < a->nr && equal; i++)
		equal = inline_frames_equal(&a->inline_frames[i], &b->inline_frames[i]);
	return equal;
}

/* Whether the functions are alive, and what was read of them their own therefore; where that cannot
 * be told, it is believed. */
static int are_alive(struct v8_frames *fs, const struct reading *reading)
{
	struct v8_work work = names_work;
	const struct v8_heap h = { fs->target, fs->layout, &work };
	int r = 0;

	for (int i = 0; i < reading->nr && !r; i++) {
		const struct inline_frame *l = &reading->inline_frames[i];

		if (l->has_script)
			r = v8_is_alive(&h, &fs->scripts,
					&(struct v8_identity){ .script = l->script_at,
							       .shared = l->shared_at,
							       .id = l->script,
							       .literal = l->literal });
	}
	return r == -ENODATA ? 0 : r;
}

int v8_frame_name(struct v8_frames *frames, const uint64_t words[3],
		  const struct runtime_sink *sink)
{
	_cleanup_free_ struct reading *last = calloc(1, sizeof(*last));
	_cleanup_free_ struct reading *now = calloc(1, sizeof(*now));
	bool same = false;
	int r;

	if (!last || !now)
		return -ENOMEM;
	last->has_code = true;
	r = read_frame(frames, words, last);
	/* One that failed may have met what was just moved: so must the next one. */
	for (int i = 1; i < READINGS && (!r || r == -ENOENT) && !same; i++) {
		struct reading *before = last;
		int r_before = r;

		now->has_code = last->has_code;
		r = read_frame(frames, words, now);
		same = r == r_before && (r || readings_equal(now, last));
		if (same && !r) {
			r = are_alive(frames, now);
			same = !r;
		}
		last = now;
		now = before;
	}
	if (!r && !same)
		r = -ENOENT;
	for (int i = 0; i < last->nr && !r; i++) {
		const struct inline_frame *l = &last->inline_frames[i];

		r = sink->add(sink->ctx, &(struct runtime_inline_frame){
						 .name = l->name,
						 .source = l->source[0] ? l->source : NULL,
						 .start_line = l->start_line,
						 .line = l->line });
	}
	return r;
}
