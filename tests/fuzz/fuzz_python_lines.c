// SPDX-License-Identifier: Apache-2.0
/*
 * Line tables and strings of CPython, of any bytes: a byte that chooses version and width, four of
 * the first line, then the table, which is a string as well. Lines are lines; neighbours in one
 * entry have the same; text is UTF-8, whole characters, within its room.
 */
#include "fuzz.h"
#include "runtime/python/python_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OFFSETS_MAX = 600, TEXT_MAX = 64 };

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_lines(unsigned int minor, const uint8_t *table, size_t size, uint32_t first)
{
	for (uint32_t offset = 0; offset < OFFSETS_MAX; offset += 2) {
		uint32_t line = python_line(minor, table, size, first, offset);

		check(line <= INT32_MAX);
		/* A code unit has one line (the pairs of co_lnotab may end anywhere). */
		check(minor < 11 || line == python_line(minor, table, size, first, offset + 1));
	}
	check(python_line(minor, table, size, first, (uint32_t)-3) <= INT32_MAX);
	check(python_line(minor, table, size, first, (uint32_t)-1) ==
	      (first <= INT32_MAX ? first : 0));
}

/* The length of the UTF-8 character at `s`, strictly; 0: none is there. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] >= 0x80 && (s[0] < 0xc2 || s[0] > 0xf4))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static void check_text(const uint8_t *chars, size_t nr, unsigned int width, size_t room)
{
	char to[TEXT_MAX + 1];
	size_t len, at = 0, n;

	memset(to, 'X', sizeof(to));
	len = python_utf8(chars, nr, width, to, room);
	check(len < room && !to[len] && strlen(to) == len && to[room] == 'X');
	for (; at < len; at += n) {
		n = utf8_length((const unsigned char *)to + at);
		check(n > 0);
	}
	check(at == len);
	/* It ends early only where the next character might not fit. */
	check(len + 4 >= room || len >= nr);
}

FUZZER(data, size)
{
	unsigned int width;
	uint32_t first;

	if (size < 5)
		return 0;
	memcpy(&first, data + 1, sizeof(first));
	check_lines(6 + (data[0] & 15) % 9, data + 5, size - 5, first);
	width = 1u << (data[0] >> 4) % 3;
	for (size_t room = 1; room <= TEXT_MAX; room += 9)
		check_text(data + 5, (size - 5) / width, width, room);
	return 0;
}
