// SPDX-License-Identifier: Apache-2.0
/*
 * Merging of frames into functions: every frame, comm and stop reason is turned into (label, kind,
 * file, source), interned, and at last numbered anew by sorting. Memory: 44 bytes a function and
 * its label, 4 bytes a frame, an inline frame of one, and a thread of the profile.
 */
#include "export/functions.h"

#include "util/cleanup.h"
#include "util/intern.h"

#include <string.h>
#include <xxhash.h>

struct function_key {
	uint32_t label; /* strtab of the table */
	uint32_t path;	/* strtab of the profile; 0 if files don't count */
	uint32_t kind;
	uint32_t source, start_line;
};

struct builder {
	struct function_table *t;
	const struct profile *p;
	enum function_merge merge;
	bool lines;
	struct map ids; /* hash of a function_key -> index into keys */
	VEC(struct function_key) keys;
	char *buf;
	size_t buf_size;
};

/* `function` has all but its label's final address. */
static int intern(struct builder *b, const struct function *function, uint32_t *ret)
{
	const struct profile_file *files = b->p->files.items;
	struct function_key key = { .kind = function->kind,
				    .source = function->source,
				    .start_line = function->start_line };
	struct function to = *function;
	uint64_t hash;
	int64_t found;
	int r;

	r = strtab_intern(&b->t->labels, to.label, strlen(to.label), &key.label);
	if (r)
		return r;
	to.label = strtab_get(&b->t->labels, key.label);
	if (b->merge != MERGE_BY_TEXT && to.file < b->p->files.nr)
		key.path = files[to.file].path;
	hash = XXH3_64bits(&key, sizeof(key));
	found = intern_find(&b->ids, hash, id, !memcmp(&b->keys.items[id], &key, sizeof(key)));
	if (found >= 0) {
		*ret = (uint32_t)found;
		return 0;
	}
	r = vec_push(&b->t->functions, to);
	return r ? r : intern_add(&b->ids, &b->keys, hash, key, ret);
}

static int reserve_buf(struct builder *b, size_t size)
{
	char *p;

	if (size <= b->buf_size)
		return 0;
	p = realloc(b->buf, size * 2);
	if (!p)
		return -ENOMEM;
	b->buf = p;
	b->buf_size = size * 2;
	return 0;
}

static uint16_t kind_of(const struct builder *b, uint32_t frame, size_t inline_frame)
{
	bool inlined =
		b->merge != MERGE_INLINED_TOO && profile_is_inlined(b->p, frame, inline_frame);
	uint16_t kind = b->p->frames.items[frame].kind;

	if (!profile_runtime_name(kind))
		return inlined ? FUNCTION_KIND_INLINED : kind;
	if (b->merge == MERGE_BY_TEXT)
		return inlined ? FUNCTION_KIND_INLINED : FRAME_KIND_NATIVE;
	return inlined ? FUNCTION_KIND_INLINED_OF + kind : kind;
}

static int add_inline_frame(struct builder *b, uint32_t frame, size_t inline_frame, uint32_t *ret)
{
	const struct profile_frame *f = &b->p->frames.items[frame];
	const struct profile_line *line = profile_frame_line(b->p, frame, inline_frame);
	struct function function = { .file = f->file, .kind = kind_of(b, frame, inline_frame) };
	size_t len;
	int r;

	r = reserve_buf(b, profile_frame_label_size(b->p, frame, inline_frame));
	if (r)
		return r;
	profile_frame_name(b->p, frame, inline_frame, b->buf, b->buf_size);
	len = strlen(b->buf);
	if (b->lines && line && line->line)
		snprintf(b->buf + len, b->buf_size - len, ":%u", line->line);
	if (line && profile_runtime_name(f->kind) && b->merge != MERGE_BY_TEXT) {
		function.source = b->p->functions.items[line->function].source;
		function.start_line = b->p->functions.items[line->function].start_line;
	}
	function.label = b->buf;
	return intern(b, &function, ret);
}

static int add_frames(struct builder *b)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < b->p->frames.nr; i++) {
		size_t nr = profile_nr_inline_frames(b->p, i);

		b->t->first_inline[i] = at;
		for (size_t inline_frame = 0; inline_frame < nr; inline_frame++) {
			int r = add_inline_frame(b, i, inline_frame, &b->t->of_inline[at++]);

			if (r)
				return r;
		}
	}
	b->t->first_inline[b->p->frames.nr] = at;
	return 0;
}

static void replace_blanks(char *s)
{
	for (; *s; s++)
		if (*s == ' ')
			*s = '_';
}

static int add_comms(struct builder *b)
{
	for (size_t i = 0; i < b->p->threads.nr; i++) {
		const char *comm = strtab_get(&b->p->strings, b->p->threads.items[i].comm);
		int r;

		r = reserve_buf(b, strlen(comm) + 1);
		if (r)
			return r;
		profile_clean_text(comm, strlen(comm), b->buf, b->buf_size);
		if (b->merge == MERGE_BY_TEXT)
			replace_blanks(b->buf);
		r = intern(b,
			   &(struct function){ .label = *comm ? b->buf : "[no_name]",
					       .file = PROFILE_NO_FILE,
					       .kind = FUNCTION_KIND_COMM },
			   &b->t->of_thread[i]);
		if (r)
			return r;
	}
	return 0;
}

static int add_truncations(struct builder *b)
{
	for (size_t i = 0; i < b->p->stacks.nr; i++) {
		unsigned stop = b->p->stacks.items[i].stop;
		char label[80];
		int r;

		if (stop == STOP_COMPLETE || stop >= STOP_MAX_ ||
		    b->t->truncated[stop] != UINT32_MAX)
			continue;
		snprintf(label, sizeof(label), "[truncated: %s]", profile_stop_name(stop));
		r = intern(b,
			   &(struct function){ .label = label,
					       .file = PROFILE_NO_FILE,
					       .kind = FRAME_KIND_TRUNCATED },
			   &b->t->truncated[stop]);
		if (r)
			return r;
	}
	return 0;
}

static int compare(const void *a, const void *b, void *ctx)
{
	const uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	const struct builder *builder = ctx;
	const struct function *fa = &builder->t->functions.items[ia];
	const struct function *fb = &builder->t->functions.items[ib];
	int r = strcmp(fa->label, fb->label);

	if (!r)
		r = (int)fa->kind - (int)fb->kind;
	if (!r)
		r = strcmp(strtab_get(&builder->p->strings, builder->keys.items[ia].path),
			   strtab_get(&builder->p->strings, builder->keys.items[ib].path));
	if (!r)
		r = strcmp(strtab_get(&builder->p->strings, fa->source),
			   strtab_get(&builder->p->strings, fb->source));
	if (!r)
		r = (fa->start_line > fb->start_line) - (fa->start_line < fb->start_line);
	return r;
}

static void renumber(uint32_t *ids, size_t nr, const uint32_t *rank)
{
	for (size_t i = 0; i < nr; i++)
		if (ids[i] != UINT32_MAX)
			ids[i] = rank[ids[i]];
}

static int sort_functions(struct builder *b)
{
	size_t nr = b->t->functions.nr;
	_cleanup_free_ struct function *sorted = calloc(nr + 1, sizeof(*sorted));
	_cleanup_free_ uint32_t *order = calloc(nr + 1, sizeof(*order));
	_cleanup_free_ uint32_t *rank = calloc(nr + 1, sizeof(*rank));

	if (!sorted || !order || !rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), compare, b);
	for (uint32_t i = 0; i < nr; i++) {
		sorted[i] = b->t->functions.items[order[i]];
		rank[order[i]] = i;
	}
	if (nr)
		memcpy(b->t->functions.items, sorted, nr * sizeof(*sorted));
	renumber(b->t->of_inline, b->t->first_inline[b->p->frames.nr], rank);
	renumber(b->t->of_thread, b->p->threads.nr, rank);
	renumber(b->t->truncated, STOP_MAX_, rank);
	return 0;
}

static int build(struct builder *b)
{
	size_t nr_inline_frames = 0;
	int r;

	for (uint32_t i = 0; i < b->p->frames.nr; i++)
		nr_inline_frames += profile_nr_inline_frames(b->p, i);
	if (nr_inline_frames > UINT32_MAX)
		return -EOVERFLOW;
	b->t->first_inline = calloc(b->p->frames.nr + 1, sizeof(uint32_t));
	b->t->of_inline = calloc(nr_inline_frames + 1, sizeof(uint32_t));
	b->t->of_thread = calloc(b->p->threads.nr + 1, sizeof(uint32_t));
	if (!b->t->first_inline || !b->t->of_inline || !b->t->of_thread)
		return -ENOMEM;
	memset(b->t->truncated, 0xff, sizeof(b->t->truncated));
	r = strtab_init(&b->t->labels);
	if (!r)
		r = add_frames(b);
	if (!r)
		r = add_comms(b);
	if (!r)
		r = add_truncations(b);
	return r ? r : sort_functions(b);
}

int function_table_init(struct function_table *t, const struct profile *p,
			enum function_merge merge, bool lines)
{
	struct builder b = { .t = t, .p = p, .merge = merge, .lines = lines };
	int r;

	*t = (struct function_table){ 0 };
	r = build(&b);
	map_fini(&b.ids);
	vec_free(&b.keys);
	free(b.buf);
	if (r)
		function_table_fini(t);
	return r;
}

void function_table_fini(struct function_table *t)
{
	strtab_fini(&t->labels);
	vec_free(&t->functions);
	free(t->first_inline);
	free(t->of_inline);
	free(t->of_thread);
	*t = (struct function_table){ 0 };
}
