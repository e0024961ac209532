// SPDX-License-Identifier: Apache-2.0
/*
 * Tables as V8 11.3 made them (Node.js 20), compared with what it prints of them itself
 * (--print-bytecode, --print-code), and made-up ones.
 */
#include "runtime/v8/v8_positions.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

/* Module._compile of Node.js 20.20.2: its bytecodes and their places. */
static const char table_text[] =
	"01e0f40b029001044404780b000d20103804500b300ac8010b000cb4010b000cc001044c052c0a8c011f000ca0"
	"020a640c5c088001052c0a501f000ad401021c02600b140b000c94010b000cb001047c0a74026806200d440a24"
	"0b3011070c540b00068c01051409380828052405030f4c0d000c9c020d000b5f0ae8012b2410b8040b9c011598"
	"011524152415201528159f030ce40305140938082c0d440a2409280c300438";

static const struct v8_position_format since_9 = { .first = -1 };

static size_t bytes_of(const char *text, uint8_t *to)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned int byte;

		ck_assert_int_eq(sscanf(text + 2 * i, "%2x", &byte), 1);
		to[i] = (uint8_t)byte;
	}
	return n;
}

TEST(positions_are_those_that_v8_prints)
{
	static const struct {
		uint32_t at;
		int32_t offset;
	} places[] = { { 98, 49256 },  { 101, 49256 }, { 103, 49288 }, { 104, 49299 },
		       { 124, 49319 }, { 300, 50064 }, { 349, 50100 }, { 350, 49996 },
		       { 356, 50117 }, { 387, 50195 }, { 389, 50209 }, { 9999, 50209 } };
	uint8_t table[256];
	size_t size = bytes_of(table_text, table);

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct v8_position p = v8_position_at(table, size, &since_9, places[i].at);

		ck_assert_msg(p.offset == places[i].offset && p.inlined == -1, "%u: %d in %d",
			      places[i].at, p.offset, p.inlined);
	}
}

TEST(positions_of_nothing)
{
	static const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
	static const uint8_t half[] = { 0x01 };

	ck_assert_int_eq(v8_position_at(NULL, 0, &since_9, 5).offset, -1);
	ck_assert_int_eq(v8_position_at(endless, sizeof(endless), &since_9, 5).offset, -1);
	ck_assert_int_eq(v8_position_at(half, sizeof(half), &since_9, 5).offset, -1);
	/* Of a file that builtins are made from. */
	ck_assert_int_eq(v8_position_of(0x7001).offset, -1);
	/* In the fourth inlined call, at 9. */
	ck_assert_int_eq(v8_position_of((4ll << 31) | 10 << 1).inlined, 3);
	ck_assert_int_eq(v8_position_of((4ll << 31) | 10 << 1).offset, 9);
}

/* As V8 14.6 writes them: at 0 a statement at 10, at 5 an expression at 8, at 200 one at 300. */
TEST(positions_with_flags)
{
	static const uint8_t table[] = { 1 << 2 | 3,
					 20 << 1,
					 5 << 2,
					 (2 << 1) - 1,
					 0x80 | (195 << 2 & 0x7f),
					 195 << 2 >> 7,
					 0x80 | (584 << 1 & 0x7f),
					 584 << 1 >> 7 };
	static const struct v8_position_format format = { .first = -1, .flagged = true };
	static const struct {
		uint32_t at;
		int32_t offset;
	} places[] = { { 0, 9 }, { 4, 9 }, { 5, 8 }, { 199, 8 }, { 200, 300 }, { 999, 300 } };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		ck_assert_int_eq(v8_position_at(table, sizeof(table), &format, places[i].at).offset,
				 places[i].offset);
}

/* As V8 15.0 writes them: at 0 a statement at 10 of a script, at 5 a place in another file, which
 * stands as it is, and at 9 one of the script again, also as a step from that. */
TEST(positions_with_three_flags)
{
	static const uint8_t table[] = {
		1 << 3 | 3, 20 << 1, 5 << 3 | 4, 41 << 1, 4 << 3 | 1, (25 << 1) - 1,
	};
	static const struct v8_position_format format = { .first = -1,
							  .flagged = true,
							  .absolute = true };
	static const struct {
		uint32_t at;
		int32_t offset;
	} places[] = { { 0, 9 }, { 4, 9 }, { 5, -1 }, { 8, -1 }, { 9, 7 }, { 99, 7 } };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		ck_assert_int_eq(v8_position_at(table, sizeof(table), &format, places[i].at).offset,
				 places[i].offset);
}

TEST(bytecodes_of_baseline_code)
{
	/* function (a) { return a + 1; }: Ldar, AddSmi, Return */
	static const uint8_t bytecodes[] = { 0x0b, 0x03, 0x44, 0x01, 0x00, 0xa9 };
	static const uint8_t table[] = { 0x11, 0x04, 0x11, 0x11 };
	static const uint8_t wide[] = { 0x00, 0x44, 0x01, 0x00, 0x00, 0x00, 0xa9 };
	struct v8_bytecode_sizes sizes = { .nr = 198 };

	sizes.sizes[0][0x0b] = 2;
	sizes.sizes[0][0x44] = 3;
	sizes.sizes[1][0x44] = 5;
	sizes.sizes[0][0xa9] = 1;
	for (uint32_t at = 0; at < 60; at++) {
		int64_t found = v8_bytecode_of_code(table, sizeof(table), bytecodes,
						    sizeof(bytecodes), &sizes, at);
		int64_t want = at < 17 ? -1 : at < 21 ? 0 : at < 38 ? 2 : at < 55 ? 5 : -1;

		ck_assert_msg(found == want, "%u: %ld, not %ld", at, (long)found, (long)want);
	}
	ck_assert_int_eq(v8_bytecode_of_code(table, sizeof(table), wide, sizeof(wide), &sizes, 22),
			 6);
	/* One that is not known. */
	sizes.sizes[0][0x0b] = 0;
	ck_assert_int_eq(
		v8_bytecode_of_code(table, sizeof(table), bytecodes, sizeof(bytecodes), &sizes, 22),
		-1);
}
