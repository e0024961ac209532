// SPDX-License-Identifier: Apache-2.0
/* Names of virtual threads, in the words that the step makes of a String's bytes. */
#include "runtime/hotspot/hotspot_threads.h"

#include "test.h"

#include <errno.h>
#include <string.h>

/* `bytes` as Latin-1 or UTF-16 of `size` bytes, of which the words have the first. */
static void expect(const void *bytes, size_t size, bool utf16, const char *name)
{
	bool cut = size > HOTSPOT_VIRTUAL_NAME_MAX;
	uint64_t words[HOTSPOT_VIRTUAL_WORDS] = { 0 };
	char text[HOTSPOT_THREAD_NAME_SIZE];

	size = cut ? HOTSPOT_VIRTUAL_NAME_MAX : size;
	memcpy(words, bytes, size);
	memset(text, 'x', sizeof(text));
	ASSERT_OK(hotspot_thread_name(HOTSPOT_VIRTUAL_NAME(size, utf16, cut), words, text));
	ASSERT_STR(text, name);
}

static void expect_utf16(const uint16_t *units, size_t nr, const char *name)
{
	expect(units, 2 * nr, true, name);
}

TEST(latin_1)
{
	char longest[65], two[65], twice[131];

	expect("worker-17", 9, false, "worker-17");
	expect("gr\xfcn", 4, false, "gr\xc3\xbcn");
	memset(longest, 'n', 64);
	longest[64] = '\0';
	expect(longest, 64, false, longest);
	/* The longest that there is: two bytes of each, and it goes on. */
	memset(two, 0xff, 64);
	for (size_t i = 0; i < 64; i++)
		memcpy(twice + 2 * i, "\xc3\xbf", 3);
	expect(two, 64, false, twice);
}

TEST(utf_16)
{
	uint16_t units[40];

	expect_utf16((const uint16_t[]){ 'a', 0x434, 0x7dd1 }, 3, "a\xd0\xb4\xe7\xb7\x91");
	expect_utf16((const uint16_t[]){ 0xd83d, 0xdfe2, 'b' }, 3,
		     "\xf0\x9f\x9f\xa2"
		     "b");
	/* Halves of pairs: alone, in the wrong order, at the end. */
	expect_utf16((const uint16_t[]){ 0xdfe2, 'b' }, 2,
		     "\xef\xbf\xbd"
		     "b");
	expect_utf16((const uint16_t[]){ 0xd83d, 'b' }, 2,
		     "\xef\xbf\xbd"
		     "b");
	expect_utf16((const uint16_t[]){ 'b', 0xd83d }, 2, "b\xef\xbf\xbd");
	for (size_t i = 0; i < 40; i++)
		units[i] = 'u';
	expect_utf16(units, 40, "uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu...");
	/* A pair that is cut in two is left out. */
	units[31] = 0xd83d;
	units[32] = 0xdfe2;
	expect_utf16(units, 40, "uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu...");
}

TEST(without_a_name)
{
	uint64_t words[HOTSPOT_VIRTUAL_WORDS] = { 31 };
	char text[HOTSPOT_THREAD_NAME_SIZE];

	ASSERT_OK(hotspot_thread_name(HOTSPOT_VIRTUAL_NAME(0, 0, 0), words, text));
	ASSERT_STR(text, "virtual-#31");
	words[0] = UINT64_MAX;
	ASSERT_OK(hotspot_thread_name(HOTSPOT_VIRTUAL_NAME(0, 0, 0), words, text));
	ASSERT_STR(text, "virtual-#18446744073709551615");
	ASSERT_OK(hotspot_thread_name(0, words, text));
	ASSERT_STR(text, "[hotspot: unknown virtual thread]");
	ASSERT_ERR(hotspot_thread_name(HOTSPOT_VIRTUAL_NAME(65, 0, 0), words, text), EINVAL);
}
