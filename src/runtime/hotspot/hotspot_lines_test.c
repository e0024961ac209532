// SPDX-License-Identifier: Apache-2.0
/* The tables are written out by hand, by the rules of CompressedLineNumberWriteStream
 * (method.inline.hpp, method.cpp): bci << 3 | line where both fit, else 255 and two signed numbers.
 */
#include "runtime/hotspot/hotspot_lines.h"

#include "test.h"

#include <errno.h>

static struct hotspot_line find(const void *table, size_t size, bool no_zero, int32_t bci)
{
	struct hotspot_line line;

	ASSERT_OK(hotspot_find_line(table, size, no_zero, bci, &line));
	return line;
}

TEST(lines_of_bytecodes)
{
	/* 0: 40, 3: 41, 20: 39 (a loop's head), 31: 46 */
	static const uint8_t table[] = { 255, 0, 80, 3 << 3 | 1, 255, 34, 3, 11 << 3 | 7, 0 };
	static const struct {
		int32_t bci;
		uint32_t line;
	} lines[] = { { 0, 40 },  { 1, 40 },  { 2, 40 },  { 3, 41 },  { 19, 41 },
		      { 20, 39 }, { 30, 39 }, { 31, 46 }, { 32, 46 }, { 65535, 46 },
		      { -1, 40 }, { -2, 0 },  { -4, 0 } };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct hotspot_line l = find(table, sizeof(table), false, lines[i].bci);

		ASSERT_EQ(l.line, lines[i].line);
		ASSERT_EQ(l.start_line, 39);
	}
}

TEST(lines_without_zero_bytes)
{
	/* As JDK 20 and later write it: each byte of a number is one more. */
	static const uint8_t table[] = { 255, 1, 81, 3 << 3 | 1, 255, 35, 4, 11 << 3 | 7, 0 };

	ASSERT_EQ(find(table, sizeof(table), true, 2).line, 40);
	ASSERT_EQ(find(table, sizeof(table), true, 3).line, 41);
	ASSERT_EQ(find(table, sizeof(table), true, 25).line, 39);
	ASSERT_EQ(find(table, sizeof(table), true, 100).line, 46);
}

TEST(large_lines)
{
	/* line 65535 = 131070 as signed: 131070 = 192 + 62 + 64 * (y), see unsigned5.hpp */
	static const uint8_t table[] = { 255, 0, 192 + 62, 192 + 60, 28, 0 };

	ASSERT_EQ(find(table, sizeof(table), false, 0).line, 65535);
}

TEST(first_of_equal_entries_and_last_before)
{
	/* 4: 10, 4: 12, 9: 20, 9: 21 */
	static const uint8_t table[] = { 255, 8, 20, 0 << 3 | 2, 255, 10, 16, 0 << 3 | 1, 0 };

	ASSERT_EQ(find(table, sizeof(table), false, 4).line, 10);
	ASSERT_EQ(find(table, sizeof(table), false, 5).line, 12);
	ASSERT_EQ(find(table, sizeof(table), false, 9).line, 20);
	ASSERT_EQ(find(table, sizeof(table), false, 10).line, 21);
	/* Before the first entry. */
	ASSERT_EQ(find(table, sizeof(table), false, 3).line, 0);
	ASSERT_EQ(find(table, sizeof(table), false, 3).start_line, 10);
}

TEST(an_empty_table)
{
	ASSERT_EQ(find("", 1, true, 0).line, 0);
	ASSERT_EQ(find("", 1, true, 0).start_line, 0);
}

TEST(damaged_lines)
{
	static const uint8_t table[] = { 255, 0, 80, 3 << 3 | 1, 255, 34, 3, 11 << 3 | 7, 0 };
	static const uint8_t negative[] = { 255, 0, 3, 0 };
	static const uint8_t backwards[] = { 255, 1, 80, 0 };
	static const uint8_t excluded[] = { 255, 0, 80, 0 };
	struct hotspot_line line = { 7, 7 };

	for (size_t size = 0; size < sizeof(table); size++)
		ASSERT_ERR(hotspot_find_line(table, size, false, 0, &line), EINVAL);
	ASSERT_ERR(hotspot_find_line(negative, sizeof(negative), false, 0, &line), EINVAL);
	ASSERT_ERR(hotspot_find_line(backwards, sizeof(backwards), false, 0, &line), EINVAL);
	ASSERT_ERR(hotspot_find_line(excluded, sizeof(excluded), true, 0, &line), EINVAL);
	ASSERT_EQ(line.line, 7);
	ASSERT_EQ(line.start_line, 7);
}
