// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_writer.h"
#include "util/cleanup.h"
#include "util/hash_index.h"
#include "util/vec.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

struct symbol_writer {
	int fd;
	XXH3_state_t *hash;
	uint64_t pos; /* in the file, `pending` bytes not counted */
	size_t pending;
	struct image_header header;
	enum image_section_id rows; /* that are being written */
	struct image_row last;	    /* not written yet, if has_last */
	struct image_row written;
	bool has_last;
	uint32_t nr_rows; /* written */
	VEC(struct image_block) blocks;
	VEC(uint8_t) scopes;
	VEC(struct image_function) functions;
	VEC(uint32_t) files;
	VEC(char) strings;
	struct hash_index by_string, by_function, by_file;
	uint8_t buf[64 << 10];
};

void symbol_writer_free(struct symbol_writer *w)
{
	if (!w)
		return;
	XXH3_freeState(w->hash);
	vec_free(&w->blocks);
	vec_free(&w->scopes);
	vec_free(&w->functions);
	vec_free(&w->files);
	vec_free(&w->strings);
	hash_index_fini(&w->by_string);
	hash_index_fini(&w->by_function);
	hash_index_fini(&w->by_file);
	free(w);
}

/* --- bytes into the file ---------------------------------------------------------------------- */

static int write_all(int fd, const void *data, size_t size, uint64_t pos)
{
	const uint8_t *p = data;

	while (size) {
		ssize_t n = pwrite(fd, p, size, (off_t)pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p += n;
		pos += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

static int flush(struct symbol_writer *w)
{
	int r = write_all(w->fd, w->buf, w->pending, w->pos);

	if (r)
		return r;
	XXH3_64bits_update(w->hash, w->buf, w->pending);
	w->pos += w->pending;
	w->pending = 0;
	return 0;
}

static int put(struct symbol_writer *w, const void *data, size_t size)
{
	const uint8_t *p = data;

	while (size) {
		size_t n = sizeof(w->buf) - w->pending;

		if (!n) {
			int r = flush(w);

			if (r)
				return r;
			continue;
		}
		n = n < size ? n : size;
		memcpy(w->buf + w->pending, p, n);
		w->pending += n;
		p += n;
		size -= n;
	}
	return 0;
}

static uint64_t position(const struct symbol_writer *w)
{
	return w->pos + w->pending;
}

static int begin_section(struct symbol_writer *w, enum image_section_id id)
{
	static const uint8_t zeros[8];
	int r = put(w, zeros, -position(w) % sizeof(zeros));

	w->header.sections[id].offset = position(w);
	return r;
}

static int put_section(struct symbol_writer *w, enum image_section_id id, const void *data,
		       size_t size)
{
	int r = begin_section(w, id);

	if (size > IMAGE_SECTION_MAX)
		return -EFBIG;
	w->header.sections[id].size = size;
	return r ? r : put(w, data, size);
}

/* --- what is interned ------------------------------------------------------------------------- */

int symbol_writer_string(struct symbol_writer *w, const char *s, uint32_t *ret)
{
	size_t size = strlen(s) + 1;
	uint32_t hash = (uint32_t)XXH3_64bits(s, size), offset;
	size_t pos = hash;
	int r;

	while (hash_index_next(&w->by_string, hash, &pos, &offset)) {
		if (!strcmp(w->strings.items + offset, s)) {
			*ret = offset;
			return 0;
		}
	}
	if (size > IMAGE_SECTION_MAX - w->strings.nr)
		return -EFBIG;
	r = hash_index_reserve(&w->by_string);
	if (!r)
		r = vec_reserve(&w->strings, w->strings.nr + size);
	if (r)
		return r;
	offset = (uint32_t)w->strings.nr;
	memcpy(w->strings.items + offset, s, size);
	w->strings.nr += size;
	hash_index_add(&w->by_string, hash, offset);
	*ret = offset;
	return 0;
}

const char *symbol_writer_text(const struct symbol_writer *w, uint32_t string)
{
	return w->strings.items + string;
}

int symbol_writer_function(struct symbol_writer *w, const struct image_function *function,
			   uint32_t *ret)
{
	uint32_t hash = (uint32_t)XXH3_64bits(function, sizeof(*function)), number;
	size_t pos = hash;
	int r;

	while (hash_index_next(&w->by_function, hash, &pos, &number)) {
		if (!memcmp(&w->functions.items[number], function, sizeof(*function))) {
			*ret = number;
			return 0;
		}
	}
	if (w->functions.nr >= IMAGE_SECTION_MAX / sizeof(*function))
		return -EFBIG;
	r = hash_index_reserve(&w->by_function);
	if (!r)
		r = vec_push(&w->functions, *function);
	if (r)
		return r;
	*ret = (uint32_t)w->functions.nr - 1;
	hash_index_add(&w->by_function, hash, *ret);
	return 0;
}

int symbol_writer_file(struct symbol_writer *w, const char *path, uint32_t *ret)
{
	uint32_t string, hash, number;
	size_t pos;
	int r = symbol_writer_string(w, path, &string);

	if (r)
		return r;
	pos = hash = (uint32_t)XXH3_64bits(&string, sizeof(string));
	while (hash_index_next(&w->by_file, hash, &pos, &number)) {
		if (w->files.items[number] == string) {
			*ret = number;
			return 0;
		}
	}
	if (w->files.nr >= IMAGE_FILES_MAX)
		return -EFBIG;
	r = hash_index_reserve(&w->by_file);
	if (!r)
		r = vec_push(&w->files, string);
	if (r)
		return r;
	*ret = (uint32_t)w->files.nr - 1;
	hash_index_add(&w->by_file, hash, *ret);
	return 0;
}

/* --- scopes and rows -------------------------------------------------------------------------- */

int symbol_writer_scope(struct symbol_writer *w, const struct symbol_scope *scope, uint32_t *ret)
{
	uint32_t offset = (uint32_t)w->scopes.nr;
	uint8_t *p;
	int r;

	if (offset > IMAGE_SECTION_MAX - IMAGE_SCOPE_MAX)
		return -EFBIG;
	r = vec_reserve(&w->scopes, offset + IMAGE_SCOPE_MAX);
	if (r)
		return r;
	p = image_put_varint(w->scopes.items + offset, scope->function);
	p = image_put_varint(p, scope->parent ? offset - scope->parent : 0);
	if (scope->parent) {
		p = image_put_varint(p, scope->call_file);
		p = image_put_varint(p, scope->call_line);
		p = image_put_varint(p, scope->call_column);
		w->header.flags |= IMAGE_HAS_INLINES;
	}
	w->scopes.nr = (size_t)(p - w->scopes.items);
	*ret = offset;
	return 0;
}

static int begin_block(struct symbol_writer *w, uint32_t addr)
{
	uint64_t offset = position(w) - w->header.sections[w->rows].offset;

	if (offset > IMAGE_SECTION_MAX)
		return -EFBIG;
	w->written = (struct image_row){ .addr = addr };
	return vec_push(&w->blocks, (struct image_block){ addr, (uint32_t)offset });
}

static int write_last(struct symbol_writer *w)
{
	uint8_t bytes[IMAGE_ROW_MAX], *end;
	int r = 0;

	if (!w->has_last)
		return 0;
	if (w->nr_rows % IMAGE_BLOCK_ROWS == 0)
		r = begin_block(w, w->last.addr);
	if (r)
		return r;
	end = image_put_row(bytes, &w->written, &w->last);
	w->written = w->last;
	w->has_last = false;
	w->nr_rows++;
	return put(w, bytes, (size_t)(end - bytes));
}

static bool says_the_same(const struct image_row *a, const struct image_row *b)
{
	return a->value == b->value && a->line == b->line && a->column == b->column;
}

int symbol_writer_row(struct symbol_writer *w, const struct image_row *row)
{
	int r;

	if (w->has_last && w->last.addr == row->addr) {
		/* What now says the same as its predecessor stays: it is rare, and right. */
		w->last = *row;
		return 0;
	}
	if (w->has_last ? says_the_same(&w->last, row) : !row->value && !w->nr_rows)
		return 0;
	r = write_last(w);
	if (r)
		return r;
	w->last = *row;
	w->has_last = true;
	return 0;
}

static int end_rows(struct symbol_writer *w, enum image_section_id blocks, uint32_t *ret_nr)
{
	int r = write_last(w);
	uint64_t size = position(w) - w->header.sections[w->rows].offset;

	if (!r && size > IMAGE_SECTION_MAX)
		r = -EFBIG;
	if (r)
		return r;
	w->header.sections[w->rows].size = size;
	*ret_nr = w->nr_rows;
	w->nr_rows = 0;
	r = put_section(w, blocks, w->blocks.items, w->blocks.nr * sizeof(*w->blocks.items));
	w->blocks.nr = 0;
	return r;
}

int symbol_writer_begin_lines(struct symbol_writer *w)
{
	int r = end_rows(w, IMAGE_RANGE_BLOCKS, &w->header.nr_ranges);

	w->rows = IMAGE_LINES;
	return r ? r : begin_section(w, IMAGE_LINES);
}

/* --- begin and end ---------------------------------------------------------------------------- */

int symbol_writer_new(int fd, struct symbol_writer **ret)
{
	_cleanup_(symbol_writer_free_p) struct symbol_writer *w = calloc(1, sizeof(*w));
	uint32_t zero;
	int r;

	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->pos = sizeof(w->header);
	w->rows = IMAGE_RANGES;
	w->hash = XXH3_createState();
	if (!w->hash)
		return -ENOMEM;
	XXH3_64bits_reset(w->hash);
	/* String 0 and file 0 are "", and no scope has offset 0. */
	r = symbol_writer_file(w, "", &zero);
	if (!r)
		r = vec_push(&w->scopes, 0);
	if (!r)
		r = begin_section(w, IMAGE_RANGES);
	if (r)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

static int put_rest(struct symbol_writer *w)
{
	static const uint8_t padding[IMAGE_PAD];
	int r = put_section(w, IMAGE_SCOPES, w->scopes.items, w->scopes.nr);

	if (!r)
		r = put_section(w, IMAGE_FUNCTIONS, w->functions.items,
				w->functions.nr * sizeof(*w->functions.items));
	if (!r)
		r = put_section(w, IMAGE_FILES, w->files.items,
				w->files.nr * sizeof(*w->files.items));
	if (!r)
		r = put_section(w, IMAGE_STRINGS, w->strings.items, w->strings.nr);
	if (!r)
		r = put(w, padding, sizeof(padding));
	return r ? r : flush(w);
}

int symbol_writer_finish(struct symbol_writer *w, struct image_header *header)
{
	struct image_header *h = &w->header;
	int r = end_rows(w, IMAGE_LINE_BLOCKS, &h->nr_lines);

	if (!r)
		r = put_rest(w);
	if (r)
		return r;
	memcpy(h->magic, IMAGE_MAGIC, sizeof(h->magic));
	h->version = IMAGE_VERSION;
	h->flags |= header->flags | (h->nr_lines ? IMAGE_HAS_LINES : 0);
	h->size = w->pos;
	h->fingerprint = header->fingerprint;
	h->base = header->base;
	h->nr_functions = (uint32_t)w->functions.nr;
	h->nr_files = (uint32_t)w->files.nr;
	h->body_hash = XXH3_64bits_digest(w->hash);
	h->header_hash = XXH3_64bits(h, offsetof(struct image_header, header_hash));
	r = write_all(w->fd, h, sizeof(*h), 0);
	if (r)
		return r;
	*header = *h;
	return 0;
}
