// SPDX-License-Identifier: Apache-2.0
#include "export/proto/gzip.h"

#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	GZIP_BITS = 15 + 16, /* the largest window; a gzip header, not zlib's */
	FIRST_SIZE = 256 * 1024,
};

struct gzip_writer {
	z_stream z;
	FILE *out;
	unsigned char chunk[64 * 1024];
};

int gzip_writer_new(FILE *out, enum gzip_effort effort, struct gzip_writer **ret)
{
	int level = effort == GZIP_QUICK ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
	struct gzip_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->out = out;
	if (deflateInit2(&w->z, level, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(w);
		return -ENOMEM;
	}
	*ret = w;
	return 0;
}

void gzip_writer_free(struct gzip_writer *w)
{
	if (w)
		deflateEnd(&w->z);
	free(w);
}

static int run(struct gzip_writer *w, int flush)
{
	int r;

	do {
		w->z.next_out = w->chunk;
		w->z.avail_out = sizeof(w->chunk);
		r = deflate(&w->z, flush);
		if (r == Z_STREAM_ERROR)
			return -EIO;
		fwrite(w->chunk, 1, sizeof(w->chunk) - w->z.avail_out, w->out);
	} while (flush == Z_FINISH ? r != Z_STREAM_END : !w->z.avail_out);
	return 0;
}

int gzip_write(struct gzip_writer *w, const void *data, size_t size)
{
	const unsigned char *at = data;
	int r = 0;

	while (!r && size) {
		uInt piece = size > 1 << 30 ? 1 << 30 : (uInt)size;

		w->z.next_in = (unsigned char *)at; /* zlib's type; it is not written to */
		w->z.avail_in = piece;
		r = run(w, Z_NO_FLUSH);
		at += piece;
		size -= piece;
	}
	return r;
}

int gzip_finish(struct gzip_writer *w)
{
	w->z.avail_in = 0;
	return run(w, Z_FINISH);
}

bool gzip_is(const void *data, size_t size)
{
	return size >= 3 && !memcmp(data, "\x1f\x8b\x08", 3);
}

struct output {
	uint8_t *data;
	size_t size, cap, max;
};

static int make_room(struct output *out)
{
	size_t cap = out->cap ? out->cap * 2 : FIRST_SIZE;
	uint8_t *p;

	if (out->size < out->cap)
		return 0;
	if (out->cap >= out->max)
		return -E2BIG;
	if (cap > out->max)
		cap = out->max;
	p = realloc(out->data, cap);
	if (!p)
		return -ENOMEM;
	out->data = p;
	out->cap = cap;
	return 0;
}

/* To the end of one member. */
static int read_member(z_stream *z, struct output *out)
{
	int r, status;

	do {
		size_t room;

		r = make_room(out);
		if (r)
			return r;
		room = out->cap - out->size;
		z->next_out = out->data + out->size;
		z->avail_out = room > 1 << 30 ? 1 << 30 : (uInt)room;
		room = z->avail_out;
		status = inflate(z, Z_NO_FLUSH);
		out->size += room - z->avail_out;
		if (status == Z_MEM_ERROR)
			return -ENOMEM;
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return -EBADMSG;
		/* The input ended within the member. */
		if (status != Z_STREAM_END && !z->avail_in && z->avail_out)
			return -EBADMSG;
	} while (status != Z_STREAM_END);
	return 0;
}

static int read_members(const void *data, size_t size, struct output *out)
{
	z_stream z = { .next_in = (unsigned char *)data, .avail_in = (uInt)size };
	int r = inflateInit2(&z, GZIP_BITS) == Z_OK ? 0 : -ENOMEM;

	while (!r) {
		r = read_member(&z, out);
		if (r || !z.avail_in)
			break;
		r = gzip_is(z.next_in, z.avail_in) ? 0 : -EBADMSG;
		if (!r && inflateReset(&z) != Z_OK)
			r = -EBADMSG;
	}
	inflateEnd(&z);
	return r;
}

size_t gzip_read_max(size_t size, size_t max)
{
	const size_t least = (size_t)64 << 20;

	return size < (max - least) / GZIP_RATIO_MAX ? least + GZIP_RATIO_MAX * size : max;
}

int gzip_read(const void *data, size_t size, uint8_t **ret, size_t *ret_size)
{
	struct output out = { .max = gzip_read_max(size, GZIP_READ_MAX) };
	int r;

	if (size > GZIP_READ_MAX)
		return -E2BIG;
	r = read_members(data, size, &out);
	if (r) {
		free(out.data);
		return r;
	}
	*ret = out.data;
	*ret_size = out.size;
	return 0;
}

size_t gzip_peek(const void *data, size_t size, uint8_t *buf, size_t buf_size)
{
	z_stream z = { .next_in = (unsigned char *)data,
		       .avail_in = size > 1 << 20 ? 1 << 20 : (uInt)size,
		       .next_out = buf,
		       .avail_out = (uInt)buf_size };

	if (inflateInit2(&z, GZIP_BITS) != Z_OK)
		return 0;
	inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
	return buf_size - z.avail_out;
}
