/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952) around a file: written as a stream, read as a whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What is read may be so large uncompressed, and, beyond the first 64 MiB, 256 times the input. */
#define GZIP_READ_MAX  ((size_t)1 << 30)
#define GZIP_RATIO_MAX 256
/* That limit for input of `size` bytes, with `max` in place of GZIP_READ_MAX. */
size_t gzip_read_max(size_t size, size_t max);

enum gzip_effort {
	GZIP_QUICK, /* reports take 8 % more bytes, and 0.4 of the time */
	GZIP_SMALL,
};

struct gzip_writer;
/* One member to `out`. */
int gzip_writer_new(FILE *out, enum gzip_effort effort, struct gzip_writer **ret);
void gzip_writer_free(struct gzip_writer *w);
static inline void gzip_writer_free_p(struct gzip_writer **w)
{
	gzip_writer_free(*w);
}
/* 0 or -EIO; what `out` fails to take the caller finds by ferror(). */
int gzip_write(struct gzip_writer *w, const void *data, size_t size);
int gzip_finish(struct gzip_writer *w);

bool gzip_is(const void *data, size_t size);
/*
 * All members, one behind the other; *ret is the caller's. -EBADMSG: damaged, cut off, or something
 * stands behind it; -E2BIG: larger than it may be; -ENOMEM.
 */
int gzip_read(const void *data, size_t size, uint8_t **ret, size_t *ret_size);
/* The first bytes, as far as `data`, the beginning, has them: how many. */
size_t gzip_peek(const void *data, size_t size, uint8_t *buf, size_t buf_size);
