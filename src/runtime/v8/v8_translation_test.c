// SPDX-License-Identifier: Apache-2.0
/* Tables as V8's builders write them (FrameTranslationBuilder, MaglevSafepointTableBuilder). */
#include "runtime/v8/v8_translation.h"

#include "test.h"

enum {
	FRAME = 1, /* INTERPRETED_FRAME_WITHOUT_RETURN: bytecode, function, bytecodes, height */
	FRAME_WITH_RETURN = 0, /* and two more */
	BUILTIN = 2,
	BEGIN = 14,
	SLOT = 40,
	MATCH = 44,
	SHORT_MATCH = 45, /* and how many operations */
	SECOND = 20,
	THIRD = 33,
};
/* A signed operand. */
#define S(n) ((n) << 1)

static const uint8_t table[] = {
	/* Two functions, one inlined into the other; between them a value. */
	BEGIN, 0, S(2), S(2), FRAME, S(10), S(3), S(4), 5, SLOT, S(2), FRAME_WITH_RETURN, S(7),
	S(6), S(8), 5, S(0), S(1), SLOT, S(3),
	/* As the first, but for where the inlined one is. */
	BEGIN + 1, SECOND, S(2), S(2), SHORT_MATCH + 2, FRAME, 0x80 | (S(100) & 0x7f), S(100) >> 7,
	S(6), S(8), 5, SLOT, S(3),
	/* One that goes along with the first to its end, written the long way, with a builtin. */
	BEGIN, THIRD, S(3), S(3), MATCH, 3, BUILTIN, S(1), S(2), S(0)
};

TEST(functions_of_translations)
{
	static const struct {
		uint32_t at;
		int nr;
		struct v8_translated inlined;
	} wants[] = { { 0, 2, { 7, 6 } }, { SECOND, 2, { 100, 6 } }, { THIRD, 2, { 7, 6 } } };

	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		struct v8_translated found[4] = { 0 };
		uint32_t operations = 1000;

		ck_assert_int_eq(v8_translation(table, sizeof(table), V8_DEOPT_13_6, wants[i].at,
						&operations, found, 4),
				 wants[i].nr);
		ck_assert_int_eq(found[0].bytecode, 10);
		ck_assert_int_eq(found[0].literal, 3);
		ck_assert_int_eq(found[1].bytecode, wants[i].inlined.bytecode);
		ck_assert_int_eq(found[1].literal, wants[i].inlined.literal);
		/* There is not room for all. */
		ck_assert_int_eq(v8_translation(table, sizeof(table), V8_DEOPT_13_6, wants[i].at,
						&operations, found, 1),
				 -1);
	}
}

TEST(translations_that_make_no_sense)
{
	static const uint8_t forward[] = { BEGIN, 9, S(1), S(1), SHORT_MATCH + 1 };
	static const uint8_t nothing[] = { BEGIN, 0, S(1), S(1), SHORT_MATCH };
	struct v8_translated found[4];
	uint32_t operations = 1000;

	for (size_t size = 0; size < SECOND - 2; size++)
		ck_assert_int_eq(
			v8_translation(table, size, V8_DEOPT_13_6, 0, &operations, found, 4), -1);
	/* What is there is no begin. */
	ck_assert_int_eq(
		v8_translation(table, sizeof(table), V8_DEOPT_13_6, 4, &operations, found, 4), -1);
	ck_assert_int_eq(
		v8_translation(table, sizeof(table), V8_DEOPT_13_6, 4000, &operations, found, 4),
		-1);
	ck_assert_int_eq(
		v8_translation(forward, sizeof(forward), V8_DEOPT_13_6, 0, &operations, found, 4),
		-1);
	ck_assert_int_eq(
		v8_translation(nothing, sizeof(nothing), V8_DEOPT_13_6, 0, &operations, found, 4),
		-1);
}

TEST(safepoints_of_calls)
{
	/* 3 of them, with a byte of registers, two of a pc, one of an entry: the second has none.
	 */
	static const uint8_t
		safepoints[] = { 9,    0, 0, 0, 3,    0, 0, 0, 0xa3, 0, 0, 0,
				 7,    0, 0, 0, 0x10, 0, 1, 0, 0x02, 0, 0, /* entry 0 at 0x10 */
				 0x34, 1, 0, 0, 0,    0, 0,		   /* none at 0x134 */
				 0x40, 1, 6, 8, 2,    1, 5 /* entry 5 at 0x140 */ };

	ck_assert_int_eq(v8_safepoint_entry(safepoints, sizeof(safepoints), V8_DEOPT_13_6, 0x10),
			 0);
	ck_assert_int_eq(v8_safepoint_entry(safepoints, sizeof(safepoints), V8_DEOPT_13_6, 0x134),
			 -1);
	ck_assert_int_eq(v8_safepoint_entry(safepoints, sizeof(safepoints), V8_DEOPT_13_6, 0x140),
			 5);
	ck_assert_int_eq(v8_safepoint_entry(safepoints, sizeof(safepoints), V8_DEOPT_13_6, 0x141),
			 -1);
	for (size_t size = 0; size < sizeof(safepoints); size++)
		ck_assert_int_eq(v8_safepoint_entry(safepoints, size, V8_DEOPT_13_6, 0x10), -1);
}

/* As Deno 2.9.6 has it for a function with a loop: of the calls that return to 0x5b0, 0x6f9 and
 * 0x76d there is nothing. */
TEST(packed_safepoints)
{
	static const uint8_t packed[] = {
		0x16, 0,    0,	  0, 0x29, 0, 0,    0x80, 0xa0, 0x0b, 0x0e, 0x9b, 0x12, 0x0b,
		0x45, 0x0f, 0,	  0, 0xcc, 1, 1,    4,	  0x91, 0x0e, 0x7d, 0,	  0,	0x74,
		0,    0x21, 0xd6, 1, 1,	   4, 0xb1, 0x0e, 0x74, 1,    4,    0xa1, 0x0e, 0xcc,
	};
	static const struct {
		uint32_t at;
		int64_t entry;
	} calls[] = {
		{ 0, -1 },     { 1, -1 },     { 0x5a0, -1 }, { 0x5a1, 13 },	 { 0x5a2, -1 },
		{ 0x5b0, -1 }, { 0x67c, 14 }, { 0x6f9, -1 }, { 0x76d, -1 },	 { 0x843, 15 },
		{ 0x8b7, 16 }, { 0x8b8, -1 }, { 0x983, -1 }, { 0xffffffff, -1 },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		ck_assert_int_eq(v8_packed_safepoint_entry(packed, sizeof(packed), calls[i].at),
				 calls[i].entry);
	for (size_t size = 0; size < 0x29; size++)
		ck_assert_int_eq(v8_packed_safepoint_entry(packed, size, 0x5a1), -1);
}

/* With registers, and with slots as bytes; and what has nothing of deoptimization, or ends within
 * an entry. */
TEST(packed_safepoints_of_other_forms)
{
	uint8_t packed[] = { 9, 0,	0, 0, 22, 0, 0, 0xc0, 0x0f, 1, 7, 0x81,
			     1, 3 << 1, 1, 2, 3,  8, 2, 5,    3,    0, 0 };

	ck_assert_int_eq(v8_packed_safepoint_entry(packed, sizeof(packed), 0x10), 0);
	ck_assert_int_eq(v8_packed_safepoint_entry(packed, sizeof(packed), 0x18), 2);
	/* More bytes than there are. */
	packed[13] = 100;
	ck_assert_int_eq(v8_packed_safepoint_entry(packed, sizeof(packed), 0x18), -1);
	packed[13] = 3 << 1;
	packed[4] = 19;
	ck_assert_int_eq(v8_packed_safepoint_entry(packed, sizeof(packed), 0x10), 0);
	ck_assert_int_eq(v8_packed_safepoint_entry(packed, sizeof(packed), 0x18), -1);
	packed[4] = 22;
	packed[7] = 0x40;
	ck_assert_int_eq(v8_packed_safepoint_entry(packed, sizeof(packed), 0x10), -1);
}

/* There frames have no bytecodes, and one value less comes before the last operation. */
TEST(what_12_9_writes)
{
	static const uint8_t older[] = { BEGIN, 0, S(2), S(2), FRAME, S(10), S(3), 5, SLOT, S(2),
					 FRAME_WITH_RETURN, S(7), S(6), 5, S(0), S(1),
					 /* As the first, but for where the inlined one is. */
					 BEGIN + 1, 16, S(2), S(2), SHORT_MATCH - 1 + 2, FRAME,
					 S(9), S(6), 5 };
	static const uint8_t safepoints[] = {
		2, 0,	 0, 0, 0xa3, 0, 0, 0, 7,    0, 0, 0, 9, 0, 0,
		0, 0x10, 0, 1, 0,    2, 0, 0, 0x40, 1, 6, 8, 2, 1, 5
	};
	struct v8_translated found[4];
	uint32_t operations = 1000;

	ck_assert_int_eq(
		v8_translation(older, sizeof(older), V8_DEOPT_12_9, 0, &operations, found, 4), 2);
	ck_assert_int_eq(found[0].bytecode, 10);
	ck_assert_int_eq(found[0].literal, 3);
	ck_assert_int_eq(found[1].bytecode, 7);
	ck_assert_int_eq(found[1].literal, 6);
	ck_assert_int_eq(
		v8_translation(older, sizeof(older), V8_DEOPT_12_9, 16, &operations, found, 4), 2);
	ck_assert_int_eq(found[0].bytecode, 10);
	ck_assert_int_eq(found[1].bytecode, 9);
	ck_assert_int_eq(v8_safepoint_entry(safepoints, sizeof(safepoints), V8_DEOPT_12_9, 0x10),
			 0);
	ck_assert_int_eq(v8_safepoint_entry(safepoints, sizeof(safepoints), V8_DEOPT_12_9, 0x140),
			 5);
	ck_assert_int_eq(v8_safepoint_entry(safepoints, sizeof(safepoints), V8_DEOPT_13_6, 0x10),
			 -1);
}

TEST(translations_that_are_too_long)
{
	uint8_t values[4096] = { BEGIN, 0, S(1), S(1) };
	struct v8_translated found[4];
	uint32_t operations = 3000;

	for (size_t i = 4; i + 1 < sizeof(values); i += 2)
		values[i] = SLOT;
	/* Two thousand values come first, then the frame. */
	values[4090] = FRAME;
	values[4091] = S(10);
	values[4092] = S(3);
	values[4093] = S(4);
	values[4094] = 5;
	ck_assert_int_eq(
		v8_translation(values, sizeof(values), V8_DEOPT_13_6, 0, &operations, found, 4), 1);
	ck_assert_int_eq(found[0].bytecode, 10);
	ck_assert_uint_eq(operations, 3000 - 2045);
	/* The second time, they do not suffice. */
	ck_assert_int_eq(
		v8_translation(values, sizeof(values), V8_DEOPT_13_6, 0, &operations, found, 4),
		-1);
	ck_assert_uint_eq(operations, 0);
}

/* 8.3: numbers with their sign above a bit that says whether another byte follows; a table of plain
 * words. */
TEST(what_8_3_writes)
{
#define N(n) ((n) << 2)
	static const uint8_t older[] = {
		/* Two functions, one inlined into the other; between them a builtin and a value. */
		N(0),  N(3), N(3), N(0), N(1), N(10), N(3),  N(4), N(0), N(0),
		N(18), N(2), N(3), N(9), N(3), N(2),  N(18), N(1), N(1), 0x81,
		0x02,  N(6), N(8), N(0), N(0), N(26), N(1),  N(2),
	};
	static const uint8_t safepoints[] = {
		2,    0,    0,	  0,	1,    0,    0,	  0,	0x10, 0, 0, 0,
		4,    0,    0,	  0,	0xff, 0xff, 0xff, 0xff, 0x34, 1, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,    0,
	};
	struct v8_translated found[4];
	uint32_t operations = 1000;

	ck_assert_int_eq(
		v8_translation(older, sizeof(older), V8_DEOPT_8_3, 0, &operations, found, 4), 2);
	ck_assert_int_eq(found[0].bytecode, 10);
	ck_assert_int_eq(found[0].literal, 3);
	ck_assert_int_eq(found[1].bytecode, 96);
	ck_assert_int_eq(found[1].literal, 6);
	ck_assert_uint_eq(operations, 1000 - 6);
	for (size_t size = 0; size < sizeof(older) - 3; size++)
		ck_assert_int_eq(
			v8_translation(older, size, V8_DEOPT_8_3, 0, &operations, found, 4), -1);
	ck_assert_int_eq(
		v8_translation(older, sizeof(older), V8_DEOPT_8_3, 0, &operations, found, 1), -1);
	ck_assert_int_eq(
		v8_translation(older, sizeof(older), V8_DEOPT_8_3, 4, &operations, found, 4), -1);
	operations = 3;
	ck_assert_int_eq(
		v8_translation(older, sizeof(older), V8_DEOPT_8_3, 0, &operations, found, 4), -1);
	ck_assert_int_eq(v8_plain_safepoint_entry(safepoints, sizeof(safepoints), 0x10), 4);
	ck_assert_int_eq(v8_plain_safepoint_entry(safepoints, sizeof(safepoints), 0x134), -1);
	ck_assert_int_eq(v8_plain_safepoint_entry(safepoints, sizeof(safepoints), 0x11), -1);
	for (size_t size = 0; size < 32; size++)
		ck_assert_int_eq(v8_plain_safepoint_entry(safepoints, size, 0x10), -1);
#undef N
}
