// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include "export/proto/gzip.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <zlib.h>

/* Of the file and of what it unpacks to: a day of a busy machine is some 100 MB. */
#define INPUT_MAX ((size_t)2 << 30)

enum {
	CHUNK = 256 << 10,
	/* What formats are recognised by. */
	BEGIN = 64 << 10,
};

struct buffer {
	char *items;
	size_t nr, cap;
};

static int reserve_chunk(struct buffer *b, size_t max)
{
	if (b->nr >= max)
		return -EFBIG;
	return vec_reserve(b, b->nr + CHUNK);
}

static int read_fd(int fd, struct buffer *b)
{
	for (;;) {
		ssize_t n;
		int r = reserve_chunk(b, INPUT_MAX);

		if (r < 0)
			return r;
		n = read(fd, b->items + b->nr, b->cap - b->nr);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		b->nr += (size_t)n;
	}
}

static int read_path(const char *path, struct buffer *b)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!strcmp(path, "-"))
		return read_fd(STDIN_FILENO, b);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		return -EISDIR;
	return read_fd(fd, b);
}

/* Members follow one another, as gzip and pigz write them (RFC 1952, 2.2). */
static int inflate_all(z_stream *z, size_t max, struct buffer *ret)
{
	for (;;) {
		int r = reserve_chunk(ret, max), status;
		size_t room;

		if (r < 0)
			return r;
		room = ret->cap - ret->nr < INT32_MAX ? ret->cap - ret->nr : INT32_MAX;
		z->next_out = (Bytef *)ret->items + ret->nr;
		z->avail_out = (uInt)room;
		status = inflate(z, Z_NO_FLUSH);
		ret->nr += room - z->avail_out;
		if (status == Z_STREAM_END && !z->avail_in)
			return 0;
		if (status == Z_STREAM_END)
			status = inflateReset(z);
		if (status == Z_MEM_ERROR)
			return -ENOMEM;
		/* Z_BUF_ERROR too: there is room, so it is the input that ends too early. */
		if (status != Z_OK)
			return -EBADMSG;
	}
}

/* -EFBIG: it is larger than *ret_max. */
static int unpack(struct buffer *b, size_t *ret_max)
{
	const int gzip_only = 16 + MAX_WBITS;
	struct buffer unpacked = { 0 };
	z_stream z = { .next_in = (Bytef *)b->items, .avail_in = (uInt)b->nr };
	int r;

	if (b->nr < 2 || memcmp(b->items, "\x1f\x8b", 2))
		return 0;
	if (inflateInit2(&z, gzip_only) != Z_OK)
		return -ENOMEM;
	*ret_max = gzip_read_max(b->nr, INPUT_MAX);
	r = inflate_all(&z, *ret_max, &unpacked);
	inflateEnd(&z);
	if (r < 0) {
		vec_free(&unpacked);
		return r;
	}
	vec_free(b);
	*b = unpacked;
	return 0;
}

const char *input_name(const char *path, char buf[static INPUT_NAME_MAX])
{
	if (!strcmp(path, "-"))
		return "standard input";
	snprintf(buf, INPUT_NAME_MAX, "'%s'", path);
	return buf;
}

int input_read(const char *path, struct input *ret)
{
	char name[INPUT_NAME_MAX];
	struct buffer b = { 0 };
	size_t max = 0;
	int r = read_path(path, &b);

	if (!r)
		r = unpack(&b, &max);
	if (!r && !b.nr)
		r = -ENODATA;
	if (!r) {
		*ret = (struct input){ b.items, b.nr };
		return 0;
	}
	vec_free(&b);
	if (r == -ENODATA)
		log_error("%s is empty", input_name(path, name));
	else if (r == -EBADMSG)
		log_error("%s is packed by gzip, and damaged", input_name(path, name));
	else if (r == -EFBIG && max)
		log_error("%s unpacks to more than %zu MB, the limit for its size; if it is to be "
			  "trusted, unpack it by gunzip, and convert that",
			  input_name(path, name), max >> 20);
	else if (r == -EFBIG)
		log_error("%s has more than the %zu MB that can be read", input_name(path, name),
			  INPUT_MAX >> 20);
	else
		log_err(r, "cannot read %s", input_name(path, name));
	return r;
}

void input_fini(struct input *input)
{
	free(input->data);
	*input = (struct input){ 0 };
}

const struct export_ops *input_format_by_path(const char *path)
{
	const struct export_ops *ops = strcmp(path, "-") ? export_by_path(path) : NULL;
	_cleanup_free_ char *unpacked = NULL;
	size_t len = strlen(path);

	if (ops || len < 4 || strcasecmp(path + len - 3, ".gz"))
		return ops;
	unpacked = strndup(path, len - 3);
	return unpacked && strcmp(unpacked, "-") ? export_by_path(unpacked) : NULL;
}

const struct export_ops *input_format_by_content(const struct input *input)
{
	size_t size = input->size < BEGIN ? input->size : BEGIN;

	for (const struct export_ops *const *f = export_formats; *f; f++)
		if ((*f)->read && (*f)->recognise && (*f)->recognise(input->data, size))
			return *f;
	return NULL;
}
