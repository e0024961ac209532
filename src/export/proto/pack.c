// SPDX-License-Identifier: Apache-2.0
#include "export/proto/pack.h"

#include <inttypes.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "export/proto/wire.h"
#include "util/intern.h"

enum { VARINT_MAX = 10 };

void pack_fini(struct pack *b)
{
	vec_free(b);
}

static void put_varint(struct pack *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		b->items[b->nr++] = (uint8_t)(value | 0x80);
	b->items[b->nr++] = (uint8_t)value;
}

static int put_key(struct pack *b, uint32_t field, enum wire_type type, size_t extra)
{
	int r = vec_reserve(b, b->nr + 2 * VARINT_MAX + extra);

	if (!r)
		put_varint(b, (uint64_t)field << 3 | type);
	return r;
}

int pack_number(struct pack *b, uint32_t field, uint64_t value)
{
	int r = value ? put_key(b, field, WIRE_VARINT, 0) : 0;

	if (!r && value)
		put_varint(b, value);
	return r;
}

int pack_fixed64(struct pack *b, uint32_t field, uint64_t value)
{
	int r = value ? put_key(b, field, WIRE_FIXED64, 0) : 0;

	for (int i = 0; !r && value && i < 8; i++)
		b->items[b->nr++] = (uint8_t)(value >> (8 * i));
	return r;
}

int pack_header(struct pack *b, uint32_t field, size_t size)
{
	int r = put_key(b, field, WIRE_BYTES, 0);

	if (!r)
		put_varint(b, size);
	return r;
}

int pack_bytes(struct pack *b, uint32_t field, const void *data, size_t size)
{
	int r = put_key(b, field, WIRE_BYTES, size);

	if (r)
		return r;
	put_varint(b, size);
	if (size)
		memcpy(b->items + b->nr, data, size);
	b->nr += size;
	return 0;
}

int pack_message(struct pack *b, uint32_t field, const void *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	int r = put_key(b, field, WIRE_BYTES, size);

	if (r)
		return r;
	put_varint(b, size);
	b->nr += protobuf_c_message_pack(message, b->items + b->nr);
	return 0;
}

/* --- tables ----------------------------------------------------------------------------------- */

int pack_table_init(struct pack_table *t, uint32_t field)
{
	uint32_t id;

	*t = (struct pack_table){ .field = field };
	return pack_table_bytes(t, NULL, 0, &id);
}

void pack_table_fini(struct pack_table *t)
{
	pack_fini(&t->bytes);
	vec_free(&t->at);
	map_fini(&t->ids);
}

/* Is record `id` the same as what stands from `begin` on? */
static bool is_record(const struct pack_table *t, uint32_t id, size_t begin)
{
	size_t at = t->at.items[id], size = t->bytes.nr - begin;
	size_t end = id + 1 < t->at.nr ? t->at.items[id + 1] : begin;

	return end - at == size && !memcmp(t->bytes.items + at, t->bytes.items + begin, size);
}

/* The record that begins at `begin` and has just been put at the end: its number, new or known. */
static int number_last(struct pack_table *t, size_t begin, uint32_t *ret)
{
	const uint8_t *bytes = t->bytes.items;
	size_t size = t->bytes.nr - begin;
	uint64_t hash = XXH3_64bits(bytes + begin, size);
	int64_t found = intern_find(&t->ids, hash, id, is_record(t, id, begin));
	int r = 0;

	if (found >= 0)
		*ret = (uint32_t)found;
	else
		r = t->at.nr >= INT32_MAX ? -E2BIG : intern_add(&t->ids, &t->at, hash, begin, ret);
	if (r || found >= 0)
		t->bytes.nr = begin;
	return r;
}

int pack_table_bytes(struct pack_table *t, const void *data, size_t size, uint32_t *ret)
{
	size_t begin = t->bytes.nr;
	int r = pack_bytes(&t->bytes, t->field, data, size);

	return r ? r : number_last(t, begin, ret);
}

int pack_table_message(struct pack_table *t, const void *message, uint32_t *ret)
{
	size_t begin = t->bytes.nr;
	int r = pack_message(&t->bytes, t->field, message);

	return r ? r : number_last(t, begin, ret);
}

/* --- text ------------------------------------------------------------------------------------- */

void pack_text_fini(struct pack_text *t)
{
	free(t->text);
	*t = (struct pack_text){ 0 };
}

int pack_clean(struct pack_text *t, const char *s, const char **ret)
{
	size_t len = strlen(s), in = 0, out = 0;

	if (len + 1 > t->cap) {
		char *p = realloc(t->text, 2 * len + 64);

		if (!p)
			return -ENOMEM;
		t->text = p;
		t->cap = 2 * len + 64;
	}
	/* profile_clean_text() takes ';' too, so it gets what stands between them. */
	while (in < len) {
		size_t piece = strcspn(s + in, ";");

		out += profile_clean_text(s + in, piece, t->text + out, t->cap - out);
		in += piece;
		if (in < len) {
			t->text[out++] = ';';
			in++;
		}
	}
	t->text[out] = '\0';
	*ret = t->text;
	return 0;
}

const char pack_kernel_path[] = "[kernel.kallsyms]";

const char *pack_path(const char *profile_path)
{
	return strcmp(profile_path, "[kernel]") ? profile_path : pack_kernel_path;
}

static bool begins(const char *s, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && !memcmp(s, with, n);
}

static bool is(const char *s, size_t len, const char *what)
{
	return len == strlen(what) && begins(s, len, what);
}

const char *pack_path_back(const char *path, size_t len, size_t *ret_len)
{
	/* perf's name may have "_text" or "_stext" behind it, by which a kernel is relocated. */
	if (begins(path, len, pack_kernel_path) || is(path, len, "vmlinux")) {
		*ret_len = strlen("[kernel]");
		return "[kernel]";
	}
	*ret_len = len;
	return path;
}

bool pack_is_kernel_path(const char *path, size_t len)
{
	/* What else stands in brackets in /proc/PID/maps, or in a profile. */
	static const char *const user[] = { "[anon",	   "[unknown", "[vdso]", "[vsyscall]",
					    "[heap",	   "[stack",   "[vvar",	 "[uprobes",
					    "[uretprobes", "[bpf",     "[memfd", "[vectors",
					    "[sigpage",	   "[exe]",    "[jit" };

	if (is(path, len, "vmlinux") || (len > 3 && begins(path + len - 3, 3, ".ko")))
		return true;
	if (len < 3 || path[0] != '[')
		return false;
	for (size_t i = 0; i < sizeof(user) / sizeof(user[0]); i++)
		if (begins(path, len, user[i]))
			return false;
	return true;
}

enum stop_reason pack_parse_marker(const char *name, size_t len)
{
	static const char prefix[] = "[truncated: ";
	size_t skip = sizeof(prefix) - 1;

	if (len < skip + 2 || memcmp(name, prefix, skip) || name[len - 1] != ']')
		return STOP_MAX_;
	name += skip;
	len -= skip + 1;
	if (is(name, len, "complete") || is(name, len, "unknown"))
		return STOP_NONE;
	for (unsigned i = 0; i < STOP_MAX_; i++)
		if (is(name, len, profile_stop_name(i)))
			return i;
	return STOP_NONE;
}

uint64_t pack_period_ns(const struct profile *p)
{
	if (strcmp(profile_unit_type(p), "samples") || strcmp(profile_unit_unit(p), "count"))
		return 0;
	return p->frequency_hz ? 1000000000ull / p->frequency_hz : 0;
}
