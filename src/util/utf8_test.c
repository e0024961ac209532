// SPDX-License-Identifier: Apache-2.0
#include "util/utf8.h"

#include "test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

TEST(characters_of_each_length)
{
	static const struct {
		uint32_t c;
		const char *bytes;
	} known[] = {
		{ 'a', "a" },
		{ 0x7f, "\x7f" },
		{ 0x80, "\xc2\x80" },
		{ 0xe9, "\xc3\xa9" },
		{ 0x7ff, "\xdf\xbf" },
		{ 0x800, "\xe0\xa0\x80" },
		{ 0x20ac, "\xe2\x82\xac" },
		{ 0xffff, "\xef\xbf\xbf" },
		{ 0x10000, "\xf0\x90\x80\x80" },
		{ 0x1f7e2, "\xf0\x9f\x9f\xa2" },
		{ 0x10ffff, "\xf4\x8f\xbf\xbf" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		char s[5] = "";

		ASSERT_EQ(utf8_put(known[i].c, s), strlen(known[i].bytes));
		ASSERT_STR(s, known[i].bytes);
	}
}

TEST(every_character_and_nothing_behind_the_last)
{
	for (uint32_t c = 0; c < 0x1fffff; c++) {
		char s[5] = "";
		size_t n = utf8_put(c, s);
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
