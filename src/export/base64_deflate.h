/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of bytes, numbers and strings, deflated (zlib) and written as base64: what a page
 * carries. Errors are kept and returned by finish(); a failed write is the FILE's (ferror).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

struct base64_deflate {
	FILE *out;
	z_stream z;
	int error;
	size_t in_len;
	size_t carry_len; /* bytes that do not fill a group of three yet */
	uint8_t carry[3];
	uint8_t in[32768];
	uint8_t deflated[32768];
};

/* 0 or -ENOMEM. Always end with finish(). */
int base64_deflate_init(struct base64_deflate *b, FILE *out);
void base64_deflate_bytes(struct base64_deflate *b, const void *data, size_t size);
void base64_deflate_u8(struct base64_deflate *b, uint8_t value);
/* LEB128 */
void base64_deflate_varint(struct base64_deflate *b, uint64_t value);
int base64_deflate_finish(struct base64_deflate *b);
