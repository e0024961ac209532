// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* References of generational ZGC, followed by the step: a virtual thread whose callers wait in a
 * chunk, to which its continuation refers in every colour. */
#include "runtime/hotspot/test_hotspot_walk.h"

enum {
	GOOD = META + 0x3000, /* ZPointerLoadGoodMask */
	YOUNG = META + 0x3100,
	OLD = META + 0x3200,
	FORWARDING = META + 0x3400,
	ENTRIES_OF_IT = 64,
	NR_ENTRIES = 8,
	TAIL = CONTINUATION + 32,
	WAS = META + 0x5028, /* where the chunk was */
	GRANULE = 4096,
	REMAPPED_00 = 0,
	REMAPPED_01,
	REMAPPED_10,
	REMAPPED_11,
	OLD_TO_OLD = 3 << 4,
};

static __u64 leaf, caller;

static __u64 mask(__u32 colour)
{
	return 1ull << (12 + colour);
}

static __u64 coloured(__u64 address, __u32 colour)
{
	return address << (13 + colour) | mask(colour) | 1 << 8 | 1 << 10 | 1 << 4;
}

static void set_up_zgc(__u32 good)
{
	leaf = virtual_thread(&caller);
	know_chunks();
	t.record.oop_size = 8;
	t.record.oop_shift = 0;
	t.record.zgc = (struct hotspot_zgc){
		.good = GOOD,
		.offset_mask = 0xffffff,
		.young = YOUNG,
		.old = OLD,
		.granules = 16,
		.granule_shift = 12,
		.start = 8,
		.alignment = 16,
		.length = 24,
		.entries = ENTRIES_OF_IT,
	};
	put_8(GOOD, mask(good));
	/* One compiled frame. */
	put_4(CHUNK + 12, 16);
	put_4(CHUNK + 24, 10);
	put_8(CHUNK + 64 + 8 * 9, caller + 0x40);
	put_8(CHUNK + 64 + 8 * 15, t.record.cont_return);
}

/* Objects of the granule of WAS were moved. */
static void move(__u64 table)
{
	put_8(table + (WAS - META) / GRANULE * 8, FORWARDING);
	put_8(FORWARDING + 8, 0x5000); /* as an offset */
	put_8(FORWARDING + 16, 3);
	put_8(FORWARDING + 24, NR_ENTRIES);
}

/* The object at WAS is at CHUNK now; `at`: the entry that says so. */
static void move_chunk(__u64 at)
{
	__u64 entry = 1 | (CHUNK & 0xffffff) << 1 | 0x28ull / 8 << 46;

	put_8(FORWARDING + ENTRIES_OF_IT + 8 * at, entry);
}

/* OpenJDK's ZHash. */
static __u32 first_entry(__u32 key)
{
	key = ~key + (key << 15);
	key = key ^ (key >> 12);
	key = key + (key << 2);
	key = key ^ (key >> 4);
	key = key * 2057;
	key = key ^ (key >> 16);
	return key % NR_ENTRIES;
}

static void expect_chunk(void)
{
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 5);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(2)[1]), 79);
}

static void expect_frozen(void)
{
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 5);
	ASSERT_EQ(*frame(1), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_FROZEN));
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(2)[1]), 79);
}

TEST(a_reference_of_the_good_colour)
{
	for (__u32 colour = REMAPPED_00; colour <= REMAPPED_11; colour++) {
		set_up_zgc(colour);
		put_8(TAIL, coloured(CHUNK, colour));
		expect_chunk();
		/* None, in this colour. */
		put_8(TAIL, coloured(0, colour));
		expect_frozen();
	}
}

TEST(of_an_older_colour_to_what_did_not_move)
{
	for (__u32 colour = REMAPPED_00; colour <= REMAPPED_11; colour++) {
		set_up_zgc(REMAPPED_01);
		move(YOUNG);
		move(OLD);
		put_8(TAIL, coloured(CHUNK, colour));
		expect_chunk();
	}
}

TEST(of_an_older_colour_to_what_moved)
{
	const struct {
		__u32 colour;
		__u64 bits, table;
	} cases[] = {
		{ REMAPPED_00, 0, YOUNG }, /* the young generation's was flipped, the old one's */
		{ REMAPPED_11, 0, OLD },   { REMAPPED_10, 0, YOUNG }, /* both */
		{ REMAPPED_10, 0, OLD },   { REMAPPED_10, OLD_TO_OLD, OLD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		set_up_zgc(REMAPPED_01);
		move(cases[i].table);
		put_8(TAIL, coloured(WAS, cases[i].colour) | cases[i].bits);
		/* Not yet. */
		expect_frozen();
		move_chunk(first_entry(0x28 / 8));
		expect_chunk();
		/* Another object's entry is where its own would be. */
		put_8(FORWARDING + ENTRIES_OF_IT + 8 * first_entry(0x28 / 8),
		      1 | 0x7000 << 1 | 9ull << 46);
		expect_frozen();
		move_chunk((first_entry(0x28 / 8) + 1) % NR_ENTRIES);
		expect_chunk();
	}
}

TEST(only_the_generation_of_the_colour_counts)
{
	set_up_zgc(REMAPPED_01);
	move(OLD);
	move_chunk(first_entry(0x28 / 8));
	/* The young generation's colour is old: nothing of it was moved from there. */
	put_8(TAIL, coloured(WAS, REMAPPED_00));
	expect_frozen();
	/* An old object, to which a young one's address would lead. */
	put_8(TAIL, coloured(WAS, REMAPPED_10) | OLD_TO_OLD);
	expect_chunk();
}

TEST(what_makes_no_sense_is_not_followed)
{
	set_up_zgc(REMAPPED_01);
	/* Two colours, none, an address beyond the tables. */
	put_8(TAIL, coloured(CHUNK, REMAPPED_01) | mask(REMAPPED_00));
	expect_frozen();
	put_8(TAIL, (__u64)CHUNK << 16);
	expect_frozen();
	t.record.zgc.granules = 2;
	put_8(TAIL, coloured(CHUNK, REMAPPED_00));
	expect_frozen();
	/* The colour of now cannot be read. */
	t.record.zgc.granules = 16;
	put_8(TAIL, coloured(CHUNK, REMAPPED_01));
	expect_chunk();
	t.record.zgc.good = 8;
	expect_frozen();
}
