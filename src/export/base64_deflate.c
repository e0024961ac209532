// SPDX-License-Identifier: Apache-2.0
#include "export/base64_deflate.h"

#include <errno.h>
#include <string.h>

/* Base64 costs a third, and a page is often sent around: a good ratio, at about 30 MB/s. */
enum { LEVEL = 6 };

int base64_deflate_init(struct base64_deflate *b, FILE *out)
{
	*b = (struct base64_deflate){ .out = out };
	return deflateInit(&b->z, LEVEL) == Z_OK ? 0 : -ENOMEM;
}

static void write_group(struct base64_deflate *b, const uint8_t *in, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = (uint32_t)in[0] << 16 | (uint32_t)(len > 1 ? in[1] : 0) << 8 |
			(uint32_t)(len > 2 ? in[2] : 0);

	putc_unlocked(digits[bits >> 18], b->out);
	putc_unlocked(digits[bits >> 12 & 63], b->out);
	putc_unlocked(len > 1 ? digits[bits >> 6 & 63] : '=', b->out);
	putc_unlocked(len > 2 ? digits[bits & 63] : '=', b->out);
}

static void write_base64(struct base64_deflate *b, const uint8_t *in, size_t len)
{
	while (b->carry_len && b->carry_len < 3 && len) {
		b->carry[b->carry_len++] = *in++;
		len--;
	}
	if (b->carry_len == 3) {
		write_group(b, b->carry, 3);
		b->carry_len = 0;
	}
	for (; len >= 3; in += 3, len -= 3)
		write_group(b, in, 3);
	while (len--)
		b->carry[b->carry_len++] = *in++;
}

static void pump(struct base64_deflate *b, int flush)
{
	int r;

	b->z.next_in = b->in;
	b->z.avail_in = (uInt)b->in_len;
	do {
		b->z.next_out = b->deflated;
		b->z.avail_out = sizeof(b->deflated);
		r = deflate(&b->z, flush);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) {
			b->error = -EIO;
			break;
		}
		write_base64(b, b->deflated, sizeof(b->deflated) - b->z.avail_out);
	} while (!b->z.avail_out);
	b->in_len = 0;
}

void base64_deflate_bytes(struct base64_deflate *b, const void *data, size_t size)
{
	const uint8_t *in = data;

	while (size) {
		size_t n = sizeof(b->in) - b->in_len;

		n = n < size ? n : size;
		memcpy(b->in + b->in_len, in, n);
		b->in_len += n;
		in += n;
		size -= n;
		if (b->in_len == sizeof(b->in))
			pump(b, Z_NO_FLUSH);
	}
}

void base64_deflate_u8(struct base64_deflate *b, uint8_t value)
{
	if (b->in_len == sizeof(b->in))
		pump(b, Z_NO_FLUSH);
	b->in[b->in_len++] = value;
}

void base64_deflate_varint(struct base64_deflate *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		base64_deflate_u8(b, (uint8_t)(value | 0x80));
	base64_deflate_u8(b, (uint8_t)value);
}

int base64_deflate_finish(struct base64_deflate *b)
{
	pump(b, Z_FINISH);
	if (b->carry_len)
		write_group(b, b->carry, b->carry_len);
	deflateEnd(&b->z);
	return b->error;
}
