// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/python_names.h"
#include "runtime/python/python_offsets.h"
#include "runtime/words.h"

#include "util/cleanup.h"
#include "util/map.h"
#include "util/vec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE = 4096,
	STR_FIRST_READ = 256, /* of a str or bytes object: mostly all of it */
	/* Of a code object that lives, which each function made of it counts for. What pymalloc
	 * links free memory by is larger: it lies in mappings of the kernel's choice. */
	REFCOUNT_MAX = 1 << 28,
	WIDEST_CHAR = 4,
	FRAME_WORDS = 2, /* python_abi.h */
};

/* A code object, as it was read. */
struct named_code {
	uint64_t code;
	uint32_t cookie;
	uint32_t first_line;
	const char *name, *source; /* in `memory` */
	const uint8_t *table;	   /* likewise */
	size_t table_size;
	void *memory;
};

struct python_names {
	struct runtime_kept kept; /* `codes`; comes first */
	const struct runtime_target *target;
	const struct python_record *record;
	const struct python_layout *layout;
	VEC(struct named_code) codes;
	struct map by_code; /* mixed with the cookie -> index in codes */
	size_t bytes;	    /* of all `memory` */
	/* What is read at the moment. */
	uint8_t chars[PYTHON_NAME_MAX * WIDEST_CHAR];
	char name[PYTHON_NAME_MAX + 1], source[PYTHON_NAME_MAX + 1];
};

static void forget_all(struct python_names *n)
{
	for (size_t i = 0; i < n->codes.nr; i++)
		free(n->codes.items[i].memory);
	n->codes.nr = 0;
	n->bytes = 0;
	map_clear(&n->by_code);
}

static void drop_all(struct runtime_kept *kept)
{
	struct python_names *n = (struct python_names *)kept;

	forget_all(n);
	vec_free(&n->codes);
	map_fini(&n->by_code);
}

int python_names_new(const struct runtime_target *target, const struct python_record *record,
		     const struct python_layout *layout, struct python_names **ret)
{
	struct python_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->kept.drop = drop_all;
	n->target = target;
	n->record = record;
	n->layout = layout;
	*ret = n;
	return 0;
}

void python_names_free(struct python_names *n)
{
	if (!n)
		return;
	runtime_keep_no_more(n->target->keeper, &n->kept);
	drop_all(&n->kept);
	free(n);
}

/* `size` bytes from `addr` on, of which the first `have` are at hand. */
static int read_text(const struct python_names *n, uint64_t addr, const uint8_t *at_hand,
		     size_t have, uint8_t *to, size_t size)
{
	if (have > size)
		have = size;
	memcpy(to, at_hand, have);
	return have < size ? runtime_read_or_gone(n->target, addr + have, to + have, size - have)
			   : 0;
}

/* Reads the begin of an object, up to the end of its page: `need` bytes at least. */
static int read_begin(const struct python_names *n, uint64_t addr, size_t need,
		      uint8_t (*to)[STR_FIRST_READ], size_t *ret)
{
	size_t size = PAGE - addr % PAGE;

	if (size > sizeof(*to))
		size = sizeof(*to);
	if (size < need)
		size = need;
	*ret = size;
	return runtime_read_or_gone(n->target, addr, *to, size);
}

struct str_state {
	unsigned int width;
	bool compact, ascii;
};

static int str_state(uint32_t state, struct str_state *ret)
{
	uint32_t flags = python_str_flags(state);
	unsigned int width = flags & PYTHON_STR_KIND;

	if (width != 1 && width != 2 && width != 4)
		return -ENOENT;
	*ret = (struct str_state){
		.width = width,
		.compact = flags & PYTHON_STR_COMPACT,
		.ascii = flags & PYTHON_STR_ASCII,
	};
	return 0;
}

/* A str as UTF-8, at most PYTHON_NAME_MAX bytes of it. */
static int read_str(struct python_names *n, uint64_t addr, char *to, size_t *ret)
{
	const struct python_layout *l = n->layout;
	uint8_t begin[STR_FIRST_READ];
	struct str_state state;
	uint64_t length, text;
	size_t have, skip;
	int r = read_begin(n, addr, l->str_ascii, &begin, &have);

	if (r)
		return r;
	length = word_at(begin, l->str_length);
	r = str_state(half_at(begin, l->str_state), &state);
	if (r || length > INT64_MAX)
		return -ENOENT;
	if (length > PYTHON_NAME_MAX)
		length = PYTHON_NAME_MAX;
	skip = state.ascii ? l->str_ascii : l->str_compact;
	text = addr + skip;
	if (!state.compact) {
		/* Of a class of its own: the text lies elsewhere, a pointer in place of it. */
		r = runtime_read_or_gone(n->target, addr + l->str_compact, &text, sizeof(text));
		if (r)
			return r;
		skip = have;
	}
	r = read_text(n, text, begin + (skip < have ? skip : have), skip < have ? have - skip : 0,
		      n->chars, length * state.width);
	if (!r)
		*ret = python_utf8(n->chars, length, state.width, to, PYTHON_NAME_MAX + 1);
	return r;
}

/* A bytes object, in memory of the caller's; empty if it is too large. */
static int read_bytes(const struct python_names *n, uint64_t addr, uint8_t **ret, size_t *size_ret)
{
	const struct python_layout *l = n->layout;
	uint8_t begin[STR_FIRST_READ];
	_cleanup_free_ uint8_t *data = NULL;
	uint64_t length;
	size_t have;
	int r = read_begin(n, addr, l->bytes_data, &begin, &have);

	if (r)
		return r;
	length = word_at(begin, l->bytes_length);
	if (length > PYTHON_LINE_TABLE_MAX)
		length = 0;
	data = malloc(length ? length : 1);
	if (!data)
		return -ENOMEM;
	r = read_text(n, addr + l->bytes_data, begin + l->bytes_data, have - l->bytes_data, data,
		      length);
	if (r)
		return r;
	*ret = TAKE_PTR(data);
	*size_ret = length;
	return 0;
}

/*
 * A freed object keeps most of its contents until its memory is used again, and a cookie with
 * them; but its strings may be others already. What an allocator links free memory by lies where
 * the count of references was.
 */
static bool is_alive(const struct python_layout *l, const uint8_t *code)
{
	uint64_t refs = word_at(code, 0);

	if (l->free_threaded)
		return half_at(code, 12) || word_at(code, 16) >> 2;
	/* Frozen modules': 999999999 in 3.11, then immortal, by 32 bits, in 3.14 with flags from
	 * bit 48 on. */
	if (l->minor == 11 && refs >= 900000000 && refs < 1100000000)
		return true;
	if (l->minor >= 12 && (refs & 0xffffffff) >= 0x3fffffff && !(refs >> 32 & 0xffff))
		return true;
	return refs && refs < REFCOUNT_MAX;
}

/* The code object, if it is the one that the frame ran. */
static int read_code(const struct python_names *n, uint64_t addr, uint32_t cookie,
		     uint8_t (*ret)[PYTHON_CODE_SIZE_MAX])
{
	uint32_t now;
	int r = runtime_read_or_gone(n->target, addr, *ret, n->layout->code_size);

	if (!r && !is_alive(n->layout, *ret))
		r = -ENOENT;
	if (!r)
		r = python_read_cookie(n->target, n->record, addr, &now);
	if (r)
		return r == -ESRCH ? r : -ENOENT;
	return now == cookie ? 0 : -ENOENT;
}

/* Both strings and the table, in memory of its own. */
static int keep(struct named_code *c, const char *name, size_t name_len, const char *source,
		size_t source_len, const uint8_t *table, size_t table_size, size_t *ret)
{
	size_t size = name_len + 1 + source_len + 1 + table_size;
	char *memory = malloc(size);

	if (!memory)
		return -ENOMEM;
	memcpy(memory, name, name_len + 1);
	memcpy(memory + name_len + 1, source, source_len + 1);
	memcpy(memory + size - table_size, table, table_size);
	c->memory = memory;
	c->name = memory;
	c->source = memory + name_len + 1;
	c->table = (const uint8_t *)memory + size - table_size;
	c->table_size = table_size;
	*ret = size;
	return 0;
}

/* Reads what a code object says, and then again whether it still is that one. */
static int read_named_code(struct python_names *n, struct named_code *c, size_t *ret)
{
	const struct python_layout *l = n->layout;
	uint8_t code[PYTHON_CODE_SIZE_MAX] = { 0 }, again[PYTHON_CODE_SIZE_MAX] = { 0 };
	_cleanup_free_ uint8_t *table = NULL;
	size_t name_len, source_len, table_size;
	int r = read_code(n, c->code, c->cookie, &code);

	if (!r)
		r = read_str(n, word_at(code, l->co_qualname ?: l->co_name), n->name, &name_len);
	if (!r)
		r = read_str(n, word_at(code, l->co_filename), n->source, &source_len);
	if (!r)
		r = read_bytes(n, word_at(code, l->co_linetable), &table, &table_size);
	if (!r)
		r = read_code(n, c->code, c->cookie, &again);
	if (r)
		return r;
	c->first_line = half_at(code, l->co_firstlineno);
	return keep(c, n->name, name_len, n->source, source_len, table, table_size, ret);
}

static uint64_t key_of(uint64_t code, uint32_t cookie)
{
	return code ^ (uint64_t)cookie << 32;
}

/* What was read last is at hand in any case: others go. */
static void keep_all(struct python_names *n)
{
	runtime_keep_no_more(n->target->keeper, &n->kept);
	runtime_keep(n->target->keeper, &n->kept,
		     n->bytes + n->codes.cap * sizeof(*n->codes.items) + map_bytes(&n->by_code));
}

static int remember(struct python_names *n, struct named_code *c, size_t size,
		    struct named_code **ret)
{
	int r;

	if (n->codes.nr >= PYTHON_NAMES_MAX || n->bytes + size > PYTHON_NAMES_BYTES)
		forget_all(n);
	r = vec_push(&n->codes, *c);
	if (!r) {
		r = map_put(&n->by_code, key_of(c->code, c->cookie), n->codes.nr - 1);
		n->codes.nr -= !!r;
	}
	if (r) {
		free(c->memory);
		return r;
	}
	n->bytes += size;
	keep_all(n);
	*ret = &n->codes.items[n->codes.nr - 1];
	return 0;
}

static int find_code(struct python_names *n, uint64_t code, uint32_t cookie,
		     struct named_code **ret)
{
	const uint64_t *index = map_get(&n->by_code, key_of(code, cookie));
	struct named_code c = { .code = code, .cookie = cookie };
	size_t size;
	int r;

	if (index && n->codes.items[*index].code == code &&
	    n->codes.items[*index].cookie == cookie) {
		*ret = &n->codes.items[*index];
		runtime_use_kept(n->target->keeper, &n->kept);
		return 0;
	}
	r = read_named_code(n, &c, &size);
	return r ? r : remember(n, &c, size, ret);
}

int python_names_symbolize(struct python_names *n, const uint64_t *words, size_t nr,
			   const struct runtime_sink *sink)
{
	struct runtime_inline_frame inline_frame;
	struct named_code *c;
	int r;

	if (nr < FRAME_WORDS || !FRAME_DATA(words[0]))
		return -EINVAL;
	r = find_code(n, FRAME_DATA(words[0]), PYTHON_COOKIE(words[1]), &c);
	if (r)
		return r;
	inline_frame = (struct runtime_inline_frame){
		.name = *c->name ? c->name : NULL,
		.source = *c->source ? c->source : NULL,
		.start_line = c->first_line <= INT32_MAX ? c->first_line : 0,
		.line = python_line(n->layout->minor, c->table, c->table_size, c->first_line,
				    PYTHON_LASTI(words[1])),
	};
	return sink->add(sink->ctx, &inline_frame);
}
