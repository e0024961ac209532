// SPDX-License-Identifier: Apache-2.0
#include "util/cut.h"
#include "test.h"

TEST(what_fits_is_not_copied)
{
	const char *text = "seven77";
	char buf[8];

	ASSERT(cut_text(text, buf, sizeof(buf)) == text);
}

TEST(what_is_longer_ends_in_dots)
{
	char buf[8];

	ASSERT_STR(cut_text("eight888", buf, sizeof(buf)), "eigh...");
}

TEST(characters_stay_whole)
{
	char buf[8];

	/* The dots would stand in the second or third byte of the euro sign. */
	ASSERT_STR(cut_text("abc\u20ac\u20ac", buf, sizeof(buf)), "abc...");
	ASSERT_STR(cut_text("ab\u20ac\u20ac", buf, sizeof(buf)), "ab...");
	ASSERT_STR(cut_text("a\u20ac\u20ac\u20ac", buf, sizeof(buf)), "a\u20ac...");
}
