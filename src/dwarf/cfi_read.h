/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded reads of DWARF's primitive types from a byte range. A read past the end gives 0, moves
 * to the end and sets `failed`, so that callers check once after a group of reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cfi_reader {
	const uint8_t *pos;
	const uint8_t *end;
	bool failed;
};

static inline size_t cfi_left(const struct cfi_reader *r)
{
	return r->end - r->pos;
}

static inline const uint8_t *cfi_take(struct cfi_reader *r, size_t size)
{
	const uint8_t *p = r->pos;

	if (size > cfi_left(r)) {
		r->failed = true;
		r->pos = r->end;
		return NULL;
	}
	r->pos += size;
	return p;
}

static inline uint64_t cfi_fixed(struct cfi_reader *r, size_t size)
{
	const uint8_t *p = cfi_take(r, size);
	uint64_t v = 0;

	/* Little-endian files on a little-endian machine: elf_file reads nothing else. */
	if (p)
		memcpy(&v, p, size);
	return v;
}

static inline uint8_t cfi_u8(struct cfi_reader *r)
{
	if (r->pos == r->end) {
		r->failed = true;
		return 0;
	}
	return *r->pos++;
}

static inline uint64_t cfi_u16(struct cfi_reader *r)
{
	return cfi_fixed(r, 2);
}

static inline uint64_t cfi_u32(struct cfi_reader *r)
{
	return cfi_fixed(r, 4);
}

static inline uint64_t cfi_u64(struct cfi_reader *r)
{
	return cfi_fixed(r, 8);
}

/*
 * A unit's length, and how large offsets are in it: 4, or 8 bytes (DWARF 5 section 7.4). Values
 * that are reserved are failures.
 */
static inline uint64_t cfi_length(struct cfi_reader *r, uint8_t *ret_offset_size)
{
	uint64_t length = cfi_u32(r);

	*ret_offset_size = 4;
	if (length < 0xfffffff0)
		return length;
	if (length == 0xffffffff) {
		*ret_offset_size = 8;
		return cfi_u64(r);
	}
	r->failed = true;
	return 0;
}

/* The string that stands here; NULL if it has no end. */
static inline const char *cfi_string(struct cfi_reader *r)
{
	const uint8_t *begin = r->pos;
	const uint8_t *nul = cfi_left(r) ? memchr(begin, 0, cfi_left(r)) : NULL;

	if (!nul) {
		r->failed = true;
		r->pos = r->end;
		return NULL;
	}
	r->pos = nul + 1;
	return (const char *)begin;
}

/* Numbers of more than 64 bits lose their high bits: writers pad, so that is no error. */
static inline uint64_t cfi_uleb(struct cfi_reader *r)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t b;

	do {
		b = cfi_u8(r);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	return v;
}

static inline int64_t cfi_sleb(struct cfi_reader *r)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t b;

	do {
		b = cfi_u8(r);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	if (shift < 64 && (b & 0x40))
		v |= ~0ull << shift;
	return v;
}
