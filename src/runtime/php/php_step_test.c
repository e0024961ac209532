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

enum {
	FRAME = LIE, /* of PHP's, each PHP_FRAME_SIZE bytes */
	FUNCTIONS = LIE + 0x1000,
	USER = FUNCTIONS,
	INTERNAL = FUNCTIONS + 0x100,
	FIBER = FUNCTIONS + 0x200, /* the begin of a fiber runs it */
	OPCODES = FUNCTIONS + 0x300,
	CURRENT = FUNCTIONS + 0x1000, /* EG(current_execute_data) */
};
static const struct php_layout layout = {
	.last = 60, .opcodes = 64, .filename = 136, .lines = 144
};

/* The chain is one of frames of these functions, the innermost first. */
static void put_chain(const uint64_t *functions, size_t nr)
{
	lie_put(USER, PHP_USER_FUNCTION);
	lie_put(USER + PHP_FUNCTION_NAME, LIE + 0x3000);
	lie_put(USER + layout.opcodes, OPCODES);
	lie_put(USER + (layout.last & ~7u), (uint64_t)100 << 32);
	lie_put(INTERNAL, PHP_INTERNAL_FUNCTION);
	lie_put(INTERNAL + PHP_FUNCTION_NAME, LIE + 0x3100);
	lie_put(FIBER, PHP_INTERNAL_FUNCTION);
	for (size_t i = 0; i < nr; i++) {
		uint64_t frame = FRAME + PHP_FRAME_SIZE * i;

		lie_put(frame + PHP_FRAME_FUNC, functions[i]);
		lie_put(frame + PHP_FRAME_PREVIOUS, i + 1 < nr ? frame + PHP_FRAME_SIZE : 0);
	}
	lie_put(CURRENT, FRAME);
}

/* The frames of PHP's that the walk found, innermost first: u, i, and o for another stack. */
static const char *frames_found(void)
{
	static char text[64];
	size_t nr = 0;

	for (uint32_t i = 0; i < lie.walk.full.nr_words; i += 1 + FRAME_EXTRA(lie.walk.words[i])) {
		uint64_t word = lie.walk.words[i], data = FRAME_DATA(word);

		if (FRAME_RUNTIME(word) != RUNTIME_PHP)
			continue;
		ASSERT(nr + 1 < sizeof(text));
		text[nr++] = data == USER ? 'u' : data == INTERNAL ? 'i' : 'o';
	}
	text[nr] = '\0';
	return text;
}

/* Of a fiber's stack that has no loop: its first function has called what runs. */
static const char *walk_fiber(const uint64_t *functions, size_t nr)
{
	const struct php_record record = {
		.current = CURRENT, .layout = layout, .fiber = LOOP, .fiber_size = 0x100
	};

	lie_set_up(RUNTIME_PHP, &record, sizeof(record));
	lie_put(STACK, LOOP + 0x11);
	put_chain(functions, nr);
	ASSERT_EQ(lie_walk(LEAF), STOP_COMPLETE);
	lie_tear_down();
	return frames_found();
}

TEST(a_fiber_that_begins_or_ends)
{
	/* The chain is still that of who begins it, which may be a fiber, too. */
	ASSERT_STR(walk_fiber((const uint64_t[]){ INTERNAL, USER }, 2), "oiu");
	ASSERT_STR(walk_fiber((const uint64_t[]){ INTERNAL, USER, FIBER, INTERNAL, USER }, 5),
		   "oiuoiu");
	/* It is the fiber's. */
	ASSERT_STR(walk_fiber((const uint64_t[]){ FIBER, INTERNAL, USER }, 3), "oiu");
	/* What it runs is about to begin, or is a function in C. */
	ASSERT_STR(walk_fiber((const uint64_t[]){ USER, FIBER, INTERNAL, USER }, 4), "uoiu");
	ASSERT_STR(walk_fiber((const uint64_t[]){ INTERNAL, FIBER, INTERNAL, USER }, 4), "ioiu");
	/* Nobody has begun it. */
	ASSERT_STR(walk_fiber((const uint64_t[]){ FIBER }, 1), "o");
	ASSERT_STR(walk_fiber(NULL, 0), "o");
}

/* The loop that called for the change of stacks: whose frames the chain has nobody knows. */
TEST(a_change_of_fibers_that_no_register_tells_of_is_marked)
{
	const struct php_record record = {
		.current = CURRENT, .layout = layout, .change = LOOP, .change_size = 0x100
	};

	lie_set_up(RUNTIME_PHP, &record, sizeof(record));
	lie_put(STACK, LOOP + 0x11);
	lie_put(STACK + 8, CALL);
	put_chain((const uint64_t[]){ INTERNAL, USER }, 2);
	ASSERT_EQ(lie_walk(LEAF), STOP_COMPLETE);
	ASSERT_STR(frames_found(), "o");
	ASSERT(has_frame(LOOP + 0x10));
	lie_tear_down();
}
