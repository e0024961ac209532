// SPDX-License-Identifier: Apache-2.0
#include "runtime/go/go_text.h"

#include <stdbool.h>
#include <string.h>

/* How many bytes the character has that begins with this one, as far as that tells; 0: none. */
static size_t length_of(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Unicode table 3-7: neither surrogates nor longer than need be. */
static bool is_character(const uint8_t *p, size_t len)
{
	static const struct {
		uint8_t first, low, high;
	} seconds[] = { { 0xe0, 0xa0, 0xbf },
			{ 0xed, 0x80, 0x9f },
			{ 0xf0, 0x90, 0xbf },
			{ 0xf4, 0x80, 0x8f } };

	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return false;
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		if (p[0] == seconds[i].first && (p[1] < seconds[i].low || p[1] > seconds[i].high))
			return false;
	return len > 1 || (p[0] >= 0x20 && p[0] != 0x7f);
}

void go_text(const uint8_t *bytes, size_t size, size_t length, char ret[static GO_TEXT_ROOM])
{
	static const char more[] = "...";
	bool is_cut = length > size;
	size_t end = is_cut ? size : length, n = 0;

	for (size_t at = 0; at < end;) {
		size_t len = length_of(bytes[at]);

		if (len > end - at && is_cut)
			break;
		if (!len || len > end - at || !is_character(bytes + at, len)) {
			ret[n++] = '?';
			at++;
			continue;
		}
		memcpy(ret + n, bytes + at, len);
		n += len;
		at += len;
	}
	memcpy(ret + n, is_cut ? more : "", is_cut ? sizeof(more) : 1);
}
