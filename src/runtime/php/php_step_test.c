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
