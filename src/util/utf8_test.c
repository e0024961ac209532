// SPDX-License-Identifier: Apache-2.0
#include "util/utf8.h"

#include "test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int encode(uint32_t c, char *to)
{
	if (c < 0x80)
		return to[0] = (char)c, 1;
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

TEST(every_character_and_nothing_behind_the_last)
{
	for (uint32_t c = 0; c < 0x1fffff; c++) {
		char s[5] = "";
		size_t n = (size_t)encode(c, s);
		bool is_one = c < 0xd800 || (c > 0xdfff && c < 0x110000);

		if (utf8_len(s, n) != (is_one ? n : 0) || utf8_len(s, SIZE_MAX) != (is_one ? n : 0))
			FAIL("U+%x", c);
		if (n > 1 && utf8_len(s, n - 1))
			FAIL("U+%x, cut", c);
		if (is_one && utf8_is_control(s, n) != (c < 32 || (c >= 127 && c < 160)))
			FAIL("U+%x: is it a control character?", c);
	}
}

TEST(what_is_longer_than_it_has_to_be_is_none)
{
	static const char *const bad[] = {
		"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",	    "\xf0\x8f\xbf\xbf",	   "\x80",
		"\xbf",	    "\xff",	"\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (utf8_len(bad[i], strlen(bad[i])))
			FAIL("%zu", i);
}

/* Where a text ends in the middle of a character, what stands behind it may be no memory of ours.
 */
TEST(the_end_of_a_text_is_not_crossed)
{
	static const char *const cut[] = { "\xc3", "\xe2\x82", "\xe2", "\xf0\x9f\x98", "\xf0" };

	for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
		char *text = strdup(cut[i]);

		ASSERT_EQ(utf8_len(text, SIZE_MAX), 0);
		ASSERT_EQ(utf8_len(text, strlen(text)), 0);
		free(text);
	}
}
