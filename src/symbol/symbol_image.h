/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a symbol table's image, and its one encoding of rows: private to the reader
 * (symbol_table.c) and the writer (symbol_writer.c). docs/formats/symbol-table.md explains it.
 *
 * A look-up is safe by construction, whatever the bytes are: it begins to decode only inside of a
 * section, what it decodes is bounded, and behind the last section are IMAGE_PAD bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	IMAGE_VERSION = 2,
	IMAGE_BLOCK_ROWS = 32,
	IMAGE_VARINT_MAX = 5,
	/* Four numbers a row, and five of a scope. */
	IMAGE_ROW_MAX = 4 * IMAGE_VARINT_MAX,
	IMAGE_SCOPE_MAX = 5 * IMAGE_VARINT_MAX,
	IMAGE_PAD = IMAGE_BLOCK_ROWS * IMAGE_ROW_MAX,
	/* Of each section: offsets in it are 32 bits, and sums of two do not overflow. */
	IMAGE_SECTION_MAX = INT32_MAX,
	IMAGE_FILES_MAX = 1 << 24,
};

#define IMAGE_MAGIC "SNDSYMS\n"
#define IMAGE_NONE  UINT32_MAX

enum image_flags {
	IMAGE_HAS_LINES = 1 << 0,
	IMAGE_HAS_INLINES = 1 << 1,
	IMAGE_NO_DEBUG_INFO = 1 << 2,  /* there was some, and it could not be used */
	IMAGE_HAS_COMPLAINTS = 1 << 3, /* the last string: a line each */
	IMAGE_FLAGS_ALL = (1 << 4) - 1,
};

enum image_section_id {
	IMAGE_RANGES = 0, /* rows: address -> scope */
	IMAGE_RANGE_BLOCKS = 1,
	IMAGE_LINES = 2, /* rows: address -> file, line, column */
	IMAGE_LINE_BLOCKS = 3,
	IMAGE_SCOPES = 4,
	IMAGE_FUNCTIONS = 5,
	IMAGE_FILES = 6,
	IMAGE_STRINGS = 7,
	IMAGE_SECTIONS_MAX_ = 8,
};

struct image_section {
	uint64_t offset, size;
};

struct image_header {
	char magic[8];
	uint32_t version, flags;
	uint64_t size;	      /* of the image, header and padding included */
	uint64_t fingerprint; /* debug_files_fingerprint() */
	uint64_t base;	      /* addresses are offsets from it */
	uint32_t nr_functions, nr_files, nr_ranges, nr_lines;
	struct image_section sections[IMAGE_SECTIONS_MAX_];
	uint64_t body_hash;   /* XXH3 of everything behind the header */
	uint64_t header_hash; /* XXH3 of the header before this */
};
_Static_assert(sizeof(struct image_header) == 200, "the header has no hidden padding");

/* The first row of IMAGE_BLOCK_ROWS rows. Rows' values begin at 0 there. */
struct image_block {
	uint32_t addr, offset; /* of the block in its section */
};
_Static_assert(sizeof(struct image_block) == 8, "as stored");

struct image_function {
	uint32_t name;		/* offset in IMAGE_STRINGS */
	uint32_t file_language; /* of its declaration << 8 | enum symbol_language */
	uint32_t line;		/* 0: not known */
};
_Static_assert(sizeof(struct image_function) == 12, "as stored");

/*
 * What holds from `addr` on, until the next row. Of ranges, `value` is a scope's offset, of lines a
 * file's index; 0 is none. A row is stored as
 *	delta of the address << 3 | which of the others changed
 *	deltas of those that did: value, line, column
 */
struct image_row {
	uint32_t addr, value, line, column;
};

enum { ROW_VALUE = 1, ROW_LINE = 2, ROW_COLUMN = 4, ROW_SHIFT = 3 };

/* 7 bits a byte, low ones first; at most five bytes are read. */
static inline const uint8_t *image_varint(const uint8_t *p, uint64_t *ret)
{
	uint64_t value = *p & 0x7f;

	if (*p < 0x80) { /* nearly always */
		*ret = value;
		return p + 1;
	}
	for (unsigned int shift = 7; (*p++ & 0x80) && shift < 7 * IMAGE_VARINT_MAX; shift += 7)
		value |= (uint64_t)(*p & 0x7f) << shift;
	*ret = value;
	return p;
}

static inline uint8_t *image_put_varint(uint8_t *p, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*p++ = (uint8_t)(value | 0x80);
	*p++ = (uint8_t)value;
	return p;
}

static inline const uint8_t *image_delta(const uint8_t *p, uint32_t *value)
{
	uint64_t coded;

	p = image_varint(p, &coded);
	*value += (uint32_t)(coded >> 1) ^ -(uint32_t)(coded & 1);
	return p;
}

static inline uint8_t *image_put_delta(uint8_t *p, uint32_t old, uint32_t new)
{
	uint32_t delta = new - old;

	return image_put_varint(p, (uint32_t)(delta << 1) ^ -(delta >> 31));
}

/* Makes the next row of the one before. */
static inline const uint8_t *image_get_row(const uint8_t *p, struct image_row *row)
{
	uint64_t head;

	p = image_varint(p, &head);
	row->addr += (uint32_t)(head >> ROW_SHIFT);
	if (head & ROW_VALUE)
		p = image_delta(p, &row->value);
	if (head & ROW_LINE)
		p = image_delta(p, &row->line);
	if (head & ROW_COLUMN)
		p = image_delta(p, &row->column);
	return p;
}

static inline uint8_t *image_put_row(uint8_t *p, const struct image_row *old,
				     const struct image_row *new)
{
	unsigned int changed = (old->value != new->value ? ROW_VALUE : 0) |
			       (old->line != new->line ? ROW_LINE : 0) |
			       (old->column != new->column ? ROW_COLUMN : 0);

	p = image_put_varint(p, (uint64_t)(new->addr - old->addr) << ROW_SHIFT | changed);
	if (changed & ROW_VALUE)
		p = image_put_delta(p, old->value, new->value);
	if (changed & ROW_LINE)
		p = image_put_delta(p, old->line, new->line);
	if (changed & ROW_COLUMN)
		p = image_put_delta(p, old->column, new->column);
	return p;
}
