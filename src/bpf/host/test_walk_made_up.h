/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker over made-up memory: a test lays out a stack and rules by address; the tables are made
 * from these.
 */
#pragma once

#include "bpf/host/walk_host.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	CODE = 0x400000,
	CODE_SIZE = 0x10000,
	STACK = 0x7ff00000,
	STACK_WORDS = 2048,
	MAX_RULES = 64,
};

static struct {
	struct unwind_file files[3];
	struct unwind_rule rules[MAX_RULES];
	__u32 nr_rules;
	struct arena_segment *segments[2];
	__u64 stack[STACK_WORDS];
	__u64 code[CODE_SIZE / 8];
	__u64 regs[UNWIND_REGS_MAX];
	__u32 nr_mappings;
	__u64 unreadable_from, no_code_from, no_code_to;
	__u32 max_frames;
	bool may_ask, deep;
	struct cached_rule *callers, *caches; /* NULL: none */
	__u32 places[CALLER_PLACES];
	struct cached_rule leaves[LEAF_CACHE_ENTRIES];
	__u32 nr_reads; /* of the stack */
	bool replace;	/* each of these makes what is in `caches` another address's */
	__u32 flags;	/* of the process */
	struct walk_known_rule known;
	__u32 walkers_off;
	__u64 hole; /* a page that is not there; 0: none */
	struct walk walk;
} t;

static inline int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	(void)ctx;
	if (addr >= STACK && addr - STACK <= sizeof(t.stack) - size &&
	    addr + size <= t.unreadable_from &&
	    (!t.hole || addr + size <= t.hole || addr >= t.hole + 4096)) {
		t.nr_reads++;
		for (__u32 i = 0; t.replace && i < RULE_CACHE_ENTRIES; i++)
			t.caches[i].pc ^= 1;
		for (__u32 i = 0; t.replace && i < LEAF_CACHE_ENTRIES; i++)
			t.leaves[i].pc ^= 1 << 16;
		memcpy(to, (char *)t.stack + (addr - STACK), size);
		return 0;
	}
	if (addr >= CODE && addr - CODE <= CODE_SIZE - size &&
	    (addr >= t.no_code_to || addr + size <= t.no_code_from)) {
		memcpy(to, (char *)t.code + (addr - CODE), size);
		return 0;
	}
	return -EFAULT;
}

/* One file of 256 buckets, each with one row; rule 0 everywhere until rule_at_bucket(). */
static inline void set_up(void)
{
	struct unwind_mapping *m;

	memset(&t, 0, sizeof(t));
	t.unreadable_from = ~0ull;
	t.max_frames = 100;
	t.segments[0] = calloc(1, sizeof(*t.segments[0]));
	t.segments[1] = calloc(1, sizeof(*t.segments[1]));
	m = (struct unwind_mapping *)t.segments[0]->cells;
	m[0] = (struct unwind_mapping){ 0x1000, 0x2000, 0, MAPPING_ANON, 0 };
	m[1] = (struct unwind_mapping){ CODE, CODE + CODE_SIZE, CODE - 0x1000, 1, 0 };
	m[2] = (struct unwind_mapping){ 0x900000, 0x910000, 0, 2, 0 };
	t.nr_mappings = 3;
	t.files[1] = (struct unwind_file){ .start = 0x1000,
					   .nr_buckets = CODE_SIZE / 256,
					   .buckets = ARENA_SEGMENT_CELLS,
					   .rows = ARENA_SEGMENT_CELLS + 512,
					   .state = FILE_STATE_LOADED };
	t.files[2] = (struct unwind_file){ .state = FILE_STATE_PENDING };
	t.rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	t.rules[RULE_FRAME_POINTER] =
		(struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_ANON };
	t.nr_rules = 2;
	for (__u32 i = 0; i < CODE_SIZE / 256; i++) {
		t.segments[1]->cells[i] = BUCKET(i, 1);
		t.segments[1]->cells[512 + i] = ROW(0, 0);
	}
}

static inline void tear_down(void)
{
	free(t.segments[0]);
	free(t.segments[1]);
}

/* The code in bucket `n` (CODE + 256 n ...) has this rule. */
static inline void rule_in_bucket(__u32 n, struct unwind_rule rule)
{
	t.rules[t.nr_rules] = rule;
	t.segments[1]->cells[512 + n] = ROW(0, t.nr_rules++);
}

#define AT(bucket, off) (CODE + 256 * (__u64)(bucket) + (off))
#define SP(word)	(STACK + 8 * (__u64)(word))

static inline int walk(__u16 machine, __u64 pc)
{
	const struct walk_memory memory = { .read = read_test, .ctx = NULL };
	const struct walk_tables tables = { t.files, 3, t.rules, MAX_RULES, t.segments, 2 };
	const struct walk_input input = {
		.machine = machine,
		.pc = pc,
		.regs = t.regs,
		.process = { .generation = 7, .nr_mappings = t.nr_mappings, .flags = t.flags },
		.max_frames = t.max_frames,
		.may_ask = t.may_ask,
		.deep = t.deep,
		.callers = t.callers,
		.places = t.callers ? t.places : NULL,
		.leaves = t.caches ? t.leaves : NULL,
		.rules = t.caches,
		.walkers_off = t.walkers_off,
		.known = &t.known,
		.nr_known = t.known.pc != 0,
	};

	return walk_host(&tables, &memory, &input, &t.walk);
}

#define ASSERT_FRAMES(...)                                                                         \
	do {                                                                                       \
		const __u64 want_[] = { __VA_ARGS__ };                                             \
		ASSERT_EQ(t.walk.full.nr_words, sizeof(want_) / 8);                                \
		for (size_t i_ = 0; i_ < sizeof(want_) / 8; i_++)                                  \
			ASSERT_EQ(FRAME_DATA(t.walk.words[i_]), want_[i_]);                        \
	} while (0)

static const struct unwind_rule end = { .cfa = CFA_END };
static const struct unwind_rule by_sp = {
	.cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = 8, .ra_off = -1
};
