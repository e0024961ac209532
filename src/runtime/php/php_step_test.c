// SPDX-License-Identifier: Apache-2.0
/* PHP's step over a process that lies: how much is read before the stack is cut. */
#include "runtime/php/php_abi.h"
#include "runtime/test_lying_process.h"

enum { CALL = LEAF + 0x20 /* where a call of another function than the loop returns to */ };

/*
 * Code of the JIT's, whose loop is looked for by the stack protector's word: all words of the stack
 * are that, and look like where the loop returns to, but none is. Then the frame pointer leads to
 * code of the JIT's again.
 */
TEST(words_that_may_be_a_loops_cut_the_stack)
{
	enum { WORDS = 66, ROUNDS = 2500 };
	const struct php_record record = {
		.jit_frame = 16, .canary = 8, .text = LEAF, .text_size = 0x100, .loop_start = LOOP
	};

	lie_set_up(RUNTIME_PHP, &record, sizeof(record));
	lie.code[CALL - 5 - CODE] = 0xe8; /* of what is behind it */
	lie_put(THREAD + 0x28, CALL);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t at = STACK + 8 * WORDS * i;

		for (uint64_t word = 0; word < WORDS; word++)
			lie_put(at + 8 * word, CALL);
		lie_put(at + 8 * (WORDS - 2), at + 8 * (2 * WORDS - 2));
		lie_put(at + 8 * (WORDS - 1), MADE + 0x11);
	}
	lie.regs[X86_RBP] = STACK + 8 * (WORDS - 2);
	/* Behind the prologue: mov %rsp,%rbp */
	memcpy(lie.made + 0x10 - 3, "\x48\x89\xe5", 3);
	assert_cut(lie_walk(MADE + 0x10));
}

enum {
	OTHER_CALL = LEAF + 0x40, /* another call's, that has returned */
	EXIT_SAVED = 248,	  /* what the JIT saves where a trace is left */
	NEAR = 2,		  /* words that its code takes otherwise */
};

static bool has_frame(uint64_t pc)
{
	for (uint32_t i = 0; i < lie.walk.full.nr_words; i++)
		if (FRAME_DATA(lie.walk.words[i]) == pc)
			return true;
	return false;
}

/* A walk from `pc`, with `sp` in the code of the JIT's: which words are where a call of the loop
 * returns to? */
static void walk_exit(uint64_t pc, uint64_t sp, uint64_t near, uint64_t far)
{
	enum { FRAME_SIZE = 16 /* of the loop */ };
	static const uint8_t add[] = { 0x48, 0x81, 0xc4, EXIT_SAVED, 0, 0, 0 };
	const struct php_record record = { .jit_frame = FRAME_SIZE,
					   .text = LEAF,
					   .text_size = 0x100,
					   .loop_start = LOOP,
					   .callers = { CALL - LEAF, OTHER_CALL - LEAF },
					   .nr_callers = 2 };

	lie_set_up(RUNTIME_PHP, &record, sizeof(record));
	memcpy(lie.made + 0x20, add, sizeof(add));
	lie_put(STACK, MADE + 0x20);
	lie_put(sp + 8 * NEAR + FRAME_SIZE - 8, near);
	lie_put(sp + EXIT_SAVED + 8 * NEAR + FRAME_SIZE - 8, far);
	lie_walk(pc);
	lie_tear_down();
}

/* The loop has neither a stack protector's word nor a frame pointer. */
TEST(a_loop_is_found_by_who_has_called_it)
{
	walk_exit(MADE + 0x10, STACK, CALL, 0);
	ASSERT(has_frame(CALL - 1));
	walk_exit(MADE + 0x10, STACK, 0, CALL);
	ASSERT(has_frame(CALL - 1));
	/* No call of the loop. */
	walk_exit(MADE + 0x10, STACK, CALL + 1, 0);
	ASSERT(!has_frame(CALL));
	/* One of them is an old one. */
	walk_exit(MADE + 0x10, STACK, OTHER_CALL, CALL);
	ASSERT(!has_frame(CALL - 1) && !has_frame(OTHER_CALL - 1));
	/* The code that called LEAF tells which. */
	walk_exit(LEAF, STACK + 8, OTHER_CALL, CALL);
	ASSERT(has_frame(CALL - 1) && !has_frame(OTHER_CALL - 1));
	walk_exit(LEAF, STACK + 8, OTHER_CALL, 0);
	ASSERT(!has_frame(OTHER_CALL - 1));
}
