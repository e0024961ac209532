// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_names.h"

#include <errno.h>
#include <string.h>

enum {
	TAG = 1,
	/* ScopeFlags (src/objects/scope-info.tq): the same in all versions */
	SCOPE_TYPE = 15,
	SCOPE_RECEIVER_SHIFT = 7,
	RECEIVER_STACK = 1,
	RECEIVER_CONTEXT = 2,
	LOCALS_MAX = 1 << 16,
	SCOPE_WORDS = 6,
};

static const char anonymous[] = "(anonymous)";

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

/* What stands behind the locals; at least the first one of it. */
static int read_words(const struct v8_heap *h, uint64_t at, uint64_t words[SCOPE_WORDS])
{
	const size_t size = v8_tagged_size(h->layout);
	uint8_t bytes[8 * SCOPE_WORDS];
	int r = v8_read_up_to(h, at, bytes, SCOPE_WORDS * size, size);

	for (size_t i = 0; i < SCOPE_WORDS; i++)
		words[i] = v8_tagged_of(h->layout, at, bytes + i * size);
	return r;
}

/* What a ScopeInfo says: the name, else the one that V8 thought of, and where the function is. */
static int read_scope(const struct v8_heap *h, const struct v8_object *scope, struct v8_function *f)
{
	const struct v8_layout *l = h->layout;
	uint32_t flags = l->scope_plain_flags
				 ? v8_field_4(scope, l->scope_flags)
				 : (uint32_t)v8_small(v8_tagged(h, scope, l->scope_flags));
	unsigned int receiver = flags >> SCOPE_RECEIVER_SHIFT & 3;
	const uint64_t size = v8_tagged_size(l);
	uint64_t words[SCOPE_WORDS];
	int32_t locals = v8_small(v8_tagged(h, scope, l->scope_locals));
	uint64_t at = scope->at + l->scope_parts;
	size_t used = 0;
	int r;

	if (locals < 0 || locals > LOCALS_MAX)
		return -ENOENT;
	if ((flags & SCOPE_TYPE) == l->scope_module)
		at += size;
	at += size * (locals < l->scope_locals_max ? (uint64_t)locals : 1) +
	      size * (uint64_t)locals;
	if (flags & l->scope_saved_class)
		at += size;
	if (l->scope_receiver && (receiver == RECEIVER_STACK || receiver == RECEIVER_CONTEXT))
		at += size;
	r = read_words(h, at, words);
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
		words[used] = v8_tagged(h, scope, l->scope_start);
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
	r = v8_read(h, v8_tagged(h, &f->shared, l->shared_name), &o);
	if (!r && o.type == l->type_scope)
		r = read_scope(h, &o, f);
	else if (!r && v8_is_string(h, &o))
		r = v8_read_string(h, &o, f->name);
	else if (!r)
		r = -ENOENT;
	/* A small number has the place of a name that was never given. */
	if (r && (r == -ESRCH || !v8_is_small(v8_tagged(h, &f->shared, l->shared_name))))
		return r;
	if (!f->name[0])
		memcpy(f->name, anonymous, sizeof(anonymous));
	r = v8_read_as(h, v8_tagged(h, &f->shared, l->record.shared_script), l->type_script,
		       &f->script);
	f->has_script = !r;
	if (!r)
		r = text_of(h, v8_tagged(h, &f->script, l->script_name), f->source);
	return r == -ESRCH ? r : 0;
}
