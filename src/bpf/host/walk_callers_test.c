// SPDX-License-Identifier: Apache-2.0
/* The walker over made-up memory: callers that are remembered from walk to walk. */
#include "bpf/host/test_walk_made_up.h"

/*
 * `nr` frames of five kinds, each of its own size, from SP(10) on, in buckets 1 and up: registers
 * saved in each place that there is, the CFA by either pointer, and of the fifth two words away
 * from the return address's own.
 */
static void lay_out_callers(__u32 nr)
{
	const struct unwind_rule kinds[] = {
		by_sp,
		{ CFA_REG, X86_RSP, .cfa_off = 48, .ra_off = -1, .slot_off = { -2, -3 } },
		{ CFA_REG, X86_RSP, .cfa_off = 96, .ra_off = -1,
		  .slot_off = { 0, -6, -5, -4, -3, -2, -7 } },
		{ CFA_REG, X86_RSP, .cfa_off = 24, .ra_off = -1, .slot_off = { [0] = -2 } },
		{ CFA_REG, X86_RBP, .cfa_off = 16, .ra_off = -1, .slot_off = { -2, -4 } },
	};
	__u32 i, at = 10;

	for (i = 0; i < nr; i++) {
		const struct unwind_rule *r = &kinds[i % 5];
		__u32 size = r->cfa_reg == X86_RBP ? 7 : r->cfa_off / 8;

		rule_in_bucket(1 + i, *r);
		for (__u32 k = 0; k < size; k++)
			t.stack[at + k] = 0x1000 * i + k;
		at += size;
		t.stack[at - 1] = AT(2 + i, 1);
		/* The fourth's caller has its frame by this pointer. */
		if (i % 5 == 3)
			t.stack[at - 2] = SP(at + 5);
	}
	t.regs[X86_RSP] = SP(10);
}

/* How the walk ends is the same whatever is remembered, and so is all that it has found. */
static int walk_thrice(void)
{
	int stop = walk(EM_X86_64, AT(1, 0));
	struct walk *fresh = malloc(sizeof(*fresh));

	*fresh = t.walk;
	t.callers = calloc(CALLER_CACHE_ENTRIES, sizeof(*t.callers));
	t.caches = calloc(RULE_CACHE_ENTRIES, sizeof(*t.caches));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), stop);
		ASSERT_EQ(t.walk.full.nr_words, fresh->full.nr_words);
		ASSERT_EQ(t.walk.nr_frames, fresh->nr_frames);
		ASSERT_EQ(t.walk.hash, fresh->hash);
		ASSERT_EQ(t.walk.pc, fresh->pc);
		ASSERT_EQ(t.walk.valid, fresh->valid);
		ASSERT_EQ(t.walk.by_frame_pointer, fresh->by_frame_pointer);
		ASSERT(!memcmp(t.walk.regs, fresh->regs, sizeof(fresh->regs)));
		ASSERT(!memcmp(t.walk.words, fresh->words, 8 * fresh->full.nr_words));
	}
	free(t.callers);
	free(t.caches);
	t.callers = t.caches = NULL;
	free(fresh);
	return stop;
}

TEST(x86_remembered_callers_are_what_they_were)
{
	set_up();
	t.deep = true;
	lay_out_callers(60);
	rule_in_bucket(61, end);
	ASSERT_EQ(walk_thrice(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 61);
	for (__u32 i = 1; i < 61; i++)
		ASSERT_EQ(FRAME_DATA(t.walk.words[i]), AT(1 + i, 0));
	for (t.max_frames = 1; t.max_frames < 61; t.max_frames++) {
		ASSERT_EQ(walk_thrice(), STOP_MAX_FRAMES);
		ASSERT_EQ(t.walk.full.nr_words, t.max_frames);
	}
	t.max_frames = 100;
	/* The frame pointer is lost: gone for who needs it, though its register has the value that
	 * would do. */
	t.stack[15] = SP(37);
	t.rules[2 + 3].slot_off[0] = SLOT_LOST;
	ASSERT_EQ(walk_thrice(), STOP_UNKNOWN_REGISTER);
	/* It is saved, but another register is out of the window's reach. */
	t.rules[2 + 3].slot_off[0] = -2;
	t.rules[2 + 4].slot_off[1] = 400;
	ASSERT_EQ(walk_thrice(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 61);
	/* It is no place on a stack. */
	t.rules[2 + 4].slot_off[1] = -4;
	t.stack[30] = SP(37) + 4;
	ASSERT_EQ(walk_thrice(), STOP_STACK_UNREADABLE);
	t.stack[30] = SP(37);
	/* What is remembered of another array of mappings counts for nothing. */
	t.callers = calloc(CALLER_CACHE_ENTRIES, sizeof(*t.callers));
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	for (__u32 i = 0; i < CALLER_CACHE_ENTRIES; i++)
		t.callers[i].generation++;
	t.rules[2 + 21] = end;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 22);
	free(t.callers);
	tear_down();
}

static __u32 nr_remembered(void)
{
	__u32 n = 0;

	for (__u32 i = 0; i < CALLER_CACHE_ENTRIES; i++)
		n += t.callers[i].pc != 0;
	return n;
}

/* What was remembered of one stack is found by others that have its outer frames. */
TEST(x86_stacks_share_the_callers_that_they_share)
{
	enum { SIZE = sizeof(struct cached_rule) * CALLER_CACHE_ENTRIES, NR_INNER = 4 };
	struct cached_rule *before = malloc(SIZE);
	__u64 inner[NR_INNER] = { AT(1, 0), AT(1, 3), AT(100, 0), AT(101, 0) };

	set_up();
	t.deep = true;
	lay_out_callers(40);
	rule_in_bucket(41, end);
	rule_in_bucket(100, by_sp);
	rule_in_bucket(101, by_sp);
	/* The two functions that they part in have saved a register far away, which is taken back
	 * the general way, and return from different places. */
	t.rules[2 + 1] = (struct unwind_rule){ CFA_REG, X86_RSP, .cfa_off = 48, .ra_off = -1,
					       .slot_off = { 0, 400 } };
	rule_in_bucket(102, t.rules[2 + 1]);
	t.rules[2 + 1].ra_off = -2;
	t.callers = calloc(CALLER_CACHE_ENTRIES, sizeof(*t.callers));
	t.caches = calloc(RULE_CACHE_ENTRIES, sizeof(*t.caches));
	for (__u32 round = 0; round < 4; round++) {
		for (__u32 i = 0; i < NR_INNER; i++) {
			bool other = i > 1;

			t.stack[10] = other ? AT(102, 1) : AT(2, 1);
			t.stack[15] = other ? 0 : AT(3, 1);
			t.stack[16] = other ? AT(3, 1) : 0;
			ASSERT_EQ(walk(EM_X86_64, inner[i]), STOP_COMPLETE);
			ASSERT_EQ(t.walk.full.nr_words, 41);
			ASSERT_EQ(FRAME_DATA(t.walk.words[0]), inner[i]);
			ASSERT_EQ(FRAME_DATA(t.walk.words[1]), AT(other ? 102 : 2, 0));
			for (__u32 k = 2; k < 41; k++)
				ASSERT_EQ(FRAME_DATA(t.walk.words[k]), AT(1 + k, 0));
		}
		/* 40 callers, and one more of two in place of the other. */
		ASSERT_EQ(nr_remembered(), 41);
		if (round == 2)
			memcpy(before, t.callers, SIZE);
	}
	/* Who leads to whom is known, too. */
	ASSERT(!memcmp(before, t.callers, SIZE));
	free(t.callers);
	free(t.caches);
	free(before);
	tear_down();
}

/* A function that calls itself leads to itself, as often as it did, and then to its caller. */
TEST(x86_a_function_that_calls_itself_is_remembered_with_each_of_its_callers)
{
	set_up();
	t.deep = true;
	rule_in_bucket(1, by_sp);
	rule_in_bucket(2, by_sp);
	rule_in_bucket(3, end);
	t.callers = calloc(CALLER_CACHE_ENTRIES, sizeof(*t.callers));
	t.caches = calloc(RULE_CACHE_ENTRIES, sizeof(*t.caches));
	for (__u32 round = 0; round < 20; round++) {
		__u32 depth = 3 + round * 7 % 11, size = by_sp.cfa_off / 8;

		t.regs[X86_RSP] = SP(10);
		for (__u32 i = 1; i <= depth + 1; i++)
			t.stack[10 + i * size - 1] = AT(i > depth ? 3 : 2, 1);
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
		ASSERT_EQ(t.walk.full.nr_words, depth + 2);
		for (__u32 i = 1; i <= depth + 1; i++)
			ASSERT_EQ(FRAME_DATA(t.walk.words[i]), AT(i > depth ? 3 : 2, 0));
	}
	free(t.callers);
	free(t.caches);
	tear_down();
}

TEST(x86_remembered_callers_end_as_others_do)
{
	for (__u32 nr = 2; nr < 40; nr++) {
		set_up();
		t.deep = true;
		lay_out_callers(nr);
		rule_in_bucket(nr + 1, end);
		/* A frame that leads nowhere, at its turn. */
		t.rules[1 + nr] = by_sp;
		t.rules[1 + nr].cfa_off = -8;
		ASSERT_EQ(walk_thrice(), STOP_NO_PROGRESS);
		ASSERT_EQ(t.walk.full.nr_words, nr);
		/* One whose function is called by a hand-made return address. */
		t.rules[1 + nr] = by_sp;
		t.rules[1 + nr].flags = RULE_NO_CALL;
		walk_thrice();
		ASSERT_EQ(FRAME_DATA(t.walk.words[nr - 1]), AT(nr, 1));
		/* The first one of a thread, which returns to 0. */
		t.rules[1 + nr] = by_sp;
		for (__u32 i = 10; i < STACK_WORDS; i++)
			if (t.stack[i] == AT(nr, 1))
				t.stack[i + 1] = 0;
		ASSERT_EQ(walk_thrice(), STOP_COMPLETE);
		ASSERT_EQ(t.walk.full.nr_words, nr);
		tear_down();
	}
}

TEST(x86_a_deep_stack_is_read_in_fewer_pieces)
{
	__u32 nr;

	set_up();
	lay_out_callers(30);
	rule_in_bucket(31, end);
	ASSERT_EQ(walk_thrice(), STOP_COMPLETE);
	t.nr_reads = 0;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	nr = t.nr_reads;
	t.deep = true;
	ASSERT_EQ(walk_thrice(), STOP_COMPLETE);
	t.nr_reads = 0;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 31);
	ASSERT_EQ(nr, 2);
	ASSERT_EQ(t.nr_reads, 1);
	/* Where it ends within what is read, all of it is there. */
	t.unreadable_from = (SP(10 + 30 / 5 * 31) + 4095) & ~4095ull;
	ASSERT_EQ(walk_thrice(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 31);
	tear_down();
}

/* What the general way looks up once more must be the frame's. */
TEST(x86_a_rule_that_became_another_address_s_is_not_used)
{
	const struct unwind_rule saved = { CFA_DEREF, X86_RSP, .ra_off = -1,
					   .slot_off = { [UNWIND_CFA_OFF2_SLOT] = 16 } };

	set_up();
	rule_in_bucket(1, saved);
	rule_in_bucket(2, end);
	t.regs[X86_RSP] = SP(10);
	t.stack[10] = SP(20);
	t.stack[21] = AT(2, 1);
	t.caches = calloc(RULE_CACHE_ENTRIES, sizeof(*t.caches));
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0));
	t.replace = true;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_INTERNAL);
	ASSERT_FRAMES(AT(1, 0));
	free(t.caches);
	tear_down();
}

/* How the walk from each address of the first two buckets ends, with what was remembered of others,
 * is how it ends with nothing. */
static void walk_from_everywhere(__u32 step)
{
	static int stops[512];
	static __u64 hashes[512];

	for (__u32 at = 0; at < 512; at++) {
		stops[at] = walk(EM_X86_64, AT(1, at));
		hashes[at] = t.walk.hash;
	}
	t.caches = calloc(RULE_CACHE_ENTRIES, sizeof(*t.caches));
	memset(t.leaves, 0, sizeof(t.leaves));
	for (__u32 i = 0; i < 2 * 512; i++) {
		__u32 at = i * step % 512;

		ASSERT_EQ(walk(EM_X86_64, AT(1, at)), stops[at]);
		ASSERT_EQ(t.walk.hash, hashes[at]);
	}
	free(t.caches);
	t.caches = NULL;
}

static __u32 nr_leaves(void)
{
	__u32 n = 0;

	for (__u32 i = 0; i < LEAF_CACHE_ENTRIES; i++)
		n += t.leaves[i].pc != 0;
	return n;
}

/* The rule of an interrupted address is that of all of the row that are in the bucket, and of no
 * other. */
TEST(x86_interrupted_code_is_remembered_by_row)
{
	struct unwind_mapping *m;
	struct unwind_rule by_16 = by_sp, by_24 = by_sp;

	set_up();
	by_16.cfa_off = 16;
	by_24.cfa_off = 24;
	t.regs[X86_RSP] = SP(10);
	for (__u32 i = 0; i < 3; i++)
		t.stack[10 + i] = AT(10 + i, 1);
	for (__u32 i = 0; i < 3; i++)
		rule_in_bucket(10 + i, end);
	rule_in_bucket(1, by_sp);
	rule_in_bucket(3, by_16);
	rule_in_bucket(4, by_24);
	/* Bucket 1: two rows, the first of which does not begin with it. Bucket 2: the second goes
	 * on, then the first. */
	t.segments[1]->cells[1] = BUCKET(300, 2);
	t.segments[1]->cells[2] = BUCKET(302, 1);
	t.segments[1]->cells[512 + 299] = ROW(9, t.nr_rules - 3);
	t.segments[1]->cells[512 + 300] = ROW(16, t.nr_rules - 2);
	t.segments[1]->cells[512 + 301] = ROW(200, t.nr_rules - 1);
	t.segments[1]->cells[512 + 302] = ROW(255, t.nr_rules - 3);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 15)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 15), AT(10, 0));
	ASSERT_EQ(walk(EM_X86_64, AT(1, 199)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 199), AT(11, 0));
	ASSERT_EQ(walk(EM_X86_64, AT(2, 254)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(2, 254), AT(12, 0));
	walk_from_everywhere(1);
	ASSERT_EQ(nr_leaves(), 2);
	walk_from_everywhere(7);
	walk_from_everywhere(255);
	/* The begin of bucket 1 and the end of bucket 2 are of no mapping, or of another. */
	m = (struct unwind_mapping *)t.segments[0]->cells;
	m[1].start = AT(1, 100);
	m[1].end = AT(2, 50);
	walk_from_everywhere(7);
	m[0] = (struct unwind_mapping){ CODE, m[1].start, 0, MAPPING_ANON, 0 };
	walk_from_everywhere(7);
	/* The file's buckets are not the process's. */
	m[0].end = m[1].start = CODE;
	m[1].end = CODE + CODE_SIZE;
	m[1].bias += 100;
	walk_from_everywhere(7);
	/* Nothing of another process's, nor of an address that only its lower bits have. */
	m[1].bias -= 100;
	t.caches = calloc(RULE_CACHE_ENTRIES, sizeof(*t.caches));
	ASSERT_EQ(walk(EM_X86_64, AT(1, 15)), STOP_COMPLETE);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 15) | 1ull << 56), STOP_NO_MAPPING);
	for (__u32 i = 0; i < LEAF_CACHE_ENTRIES; i++)
		t.leaves[i].generation++;
	t.rules[t.nr_rules - 3] = end;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 15)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 15));
	free(t.caches);
	tear_down();
}

/* Functions whose places have the same number, and the same mark, are told apart by what is there.
 */
TEST(x86_places_that_lead_astray)
{
	set_up();
	t.deep = true;
	lay_out_callers(40);
	rule_in_bucket(41, end);
	t.callers = calloc(CALLER_CACHE_ENTRIES, sizeof(*t.callers));
	t.caches = calloc(RULE_CACHE_ENTRIES, sizeof(*t.caches));
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	for (__u32 round = 1; round < 50; round++) {
		/* All lead to another's place, and all links are lost. */
		for (__u32 i = 0; i < CALLER_PLACES; i++)
			if (t.places[i])
				t.places[i] = (t.places[i] & 0xffff0000) | (1 + round);
		for (__u32 i = 0; i < CALLER_CACHE_ENTRIES; i++)
			t.callers[i].link = t.callers[i].tag = 0;
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
		ASSERT_EQ(t.walk.full.nr_words, 41);
		for (__u32 k = 1; k < 41; k++)
			ASSERT_EQ(FRAME_DATA(t.walk.words[k]), AT(1 + k, 0));
	}
	free(t.callers);
	free(t.caches);
	tear_down();
}
