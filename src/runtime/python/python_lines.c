// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/python_lines.h"
#include "util/utf8.h"

#include <stdbool.h>
#include <string.h>

/* Lines are C's int; what leaves that range is not a line. */
static uint32_t as_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs (bytes of code, signed lines): a pair's lines count from behind its bytes on. */
static uint32_t line_by_lnotab(const uint8_t *table, size_t size, int64_t line, uint64_t offset)
{
	uint64_t addr = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		addr += table[i];
		if (addr > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return as_line(line);
}

/* Pairs (bytes of code, signed lines): a pair's lines count for its bytes; -128: these have none.
 */
static uint32_t line_by_linetable(const uint8_t *table, size_t size, int64_t line, uint64_t offset)
{
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		if (delta != INT8_MIN)
			line += delta;
		end += table[i];
		if (offset < end)
			return delta == INT8_MIN ? 0 : as_line(line);
	}
	return 0;
}

/* Six bits a byte, the lowest first; bit 6: more follow. False: cut off, or beyond 32 bits. */
static bool read_varint(const uint8_t *table, size_t size, size_t *at, uint32_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 36; shift += 6) {
		uint8_t byte;

		if (*at >= size)
			return false;
		byte = table[(*at)++];
		value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64)) {
			*ret = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

enum location_code {
	LOCATION_ONE_LINE_0 = 10,
	LOCATION_ONE_LINE_2 = 12,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Entries: a byte with bit 7, the code and the number of code units - 1, then what the code has. */
static uint32_t line_by_locations(const uint8_t *table, size_t size, int64_t line, uint64_t offset)
{
	uint64_t end = 0;
	size_t at = 0;

	while (at < size) {
		unsigned int code = table[at] >> 3 & 15;
		uint32_t delta;

		if (!(table[at] & 128))
			return 0;
		end += 2 * ((table[at++] & 7) + 1);
		if (code == LOCATION_LONG || code == LOCATION_NO_COLUMNS) {
			if (!read_varint(table, size, &at, &delta))
				return 0;
			line += delta & 1 ? -(int64_t)(delta >> 1) : (int64_t)(delta >> 1);
		} else if (code >= LOCATION_ONE_LINE_0 && code <= LOCATION_ONE_LINE_2) {
			line += code - LOCATION_ONE_LINE_0;
		}
		if (offset < end)
			return code == LOCATION_NONE ? 0 : as_line(line);
		/* Columns and end lines: nothing that we want. */
		while (at < size && !(table[at] & 128))
			at++;
	}
	return 0;
}

uint32_t python_line(unsigned int minor, const uint8_t *table, size_t size, uint32_t first_line,
		     uint32_t offset)
{
	if (offset >= (uint32_t)-2)
		return as_line(first_line);
	if (minor >= PYTHON_LOCATIONS)
		return line_by_locations(table, size, first_line, offset);
	if (minor >= PYTHON_LINETABLE)
		return line_by_linetable(table, size, first_line, offset);
	return line_by_lnotab(table, size, first_line, offset);
}

static uint32_t char_at(const uint8_t *chars, size_t i, unsigned int width)
{
	uint32_t c = 0;

	/* Little-endian, as all machines that we know. */
	memcpy(&c, chars + i * width, width);
	return c;
}

size_t python_utf8(const void *chars, size_t nr, unsigned int width, char *to, size_t room)
{
	size_t len = 0;

	for (size_t i = 0; i < nr; i++) {
		uint32_t c = char_at(chars, i, width);
		char bytes[4];
		size_t n;

		if (!c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
			c = 0xfffd;
		n = utf8_put(c, bytes);
		if (len + n >= room)
			break;
		memcpy(to + len, bytes, n);
		len += n;
	}
	to[len] = '\0';
	return len;
}
