// SPDX-License-Identifier: Apache-2.0
/* Ruby's step over a process that lies: how much is read before the stack is cut. */
#include "runtime/ruby/ruby_abi.h"
#include "runtime/test_lying_process.h"

enum {
	FAR = LIE + (8 << 20),
	FRAMES = LIE + 0x1000,
	CFP_SIZE = 56,
	EC = THREAD, /* ec: 0, from the thread pointer on */
	STRINGS = FAR + 0x10000,
	LABEL_AT = 64,
	PATH_AT = 72,
};

static const struct ruby_record record = { .how = RUBY_EC_TLS,
					   .ec = 0,
					   .cfp_size = CFP_SIZE,
					   .stack = 64,
					   .label = LABEL_AT,
					   .path = PATH_AT };

/* The thread has that many frames, all of which have this iseq, pc and environment. */
static void put_frames(uint64_t nr, uint64_t iseq, uint64_t pc, uint64_t env)
{
	uint64_t ec = LIE;

	lie_put(THREAD, ec);
	lie_put(ec, FRAMES);			  /* vm_stack */
	lie_put(ec + 8, (nr + 1) * CFP_SIZE / 8); /* its size */
	lie_put(ec + 16, FRAMES);		  /* cfp */
	for (uint64_t i = 0; i < nr; i++) {
		lie_put(FRAMES + i * CFP_SIZE, pc);
		lie_put(FRAMES + i * CFP_SIZE + 16, iseq);
		lie_put(FRAMES + i * CFP_SIZE + 32, env);
	}
	lie_put(STACK, LOOP + 0x11);
}

/* No iseq, and not of a method in C. The environment is not on the VM's stack. */
TEST(frames_that_are_not_shown_cut_the_stack)
{
	lie_set_up(RUNTIME_RUBY, &record, sizeof(record));
	put_frames(120000, 0, 0, FAR);
	lie_put(FAR, RUBY_FRAME_METHOD);
	assert_cut(lie_walk(LEAF + 5));
}

/* Of blocks within blocks, none of which is a method's; and each environment has some object. */
TEST(environments_around_environments_cut_the_stack)
{
	enum { DEPTH = 12, NR = 2700 };
	uint64_t iseq = FAR + 0x8000, body = FAR + 0x9000;

	lie_set_up(RUNTIME_RUBY, &record, sizeof(record));
	put_frames(NR, iseq, body + 8, FAR);
	for (uint64_t i = 0; i <= DEPTH; i++) {
		uint64_t env = FAR + 0x40 * i;

		lie_put(env - 16, FAR + 0x4000 + 0x40 * i);
		lie_put(env - 8, env + 0x40);
		lie_put(env, i ? 1 : RUBY_FRAME_BLOCK);
	}
	lie_put(iseq, RUBY_T_IMEMO | RUBY_IMEMO_ISEQ << RUBY_IMEMO_SHIFT);
	lie_put(iseq + 16, body);
	assert_cut(lie_walk(LEAF + 5));
}

/*
 * Code of a JIT's: it is looked for where that was called, among words that are all addresses of
 * Ruby's own code. Nothing is shown for it, but one frame of native code for each.
 */
TEST(words_that_may_have_called_cut_the_stack)
{
	enum { WORDS = 12, ROUNDS = 8000 };
	const struct ruby_record jit = {
		.how = RUBY_EC_TLS, .cfp_size = CFP_SIZE, .text = LEAF, .text_size = 0x100
	};

	lie_set_up(RUNTIME_RUBY, &jit, sizeof(jit));
	lie.code[0x10] = 0xff; /* call *%rax */
	lie.code[0x11] = 0xd0;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		for (uint64_t word = 0; word < WORDS; word++)
			lie_put(STACK + 8 * ((WORDS + 1) * i + word),
				word == WORDS - 1 ? LEAF + 0x12 : LEAF + 0x40);
		lie_put(STACK + 8 * ((WORDS + 1) * i + WORDS), MADE + 0x11);
	}
	assert_cut(lie_walk(MADE + 0x10));
}

/*
 * The innermost frame is a method's in C, and the innermost code the loop's own, which has taken
 * its last frame away; or it is a library's that MJIT has made, which may have pushed that frame.
 */
TEST(a_method_in_c_at_code_of_mjits_is_not_known_to_be_the_callers)
{
	static const __u64 note = FRAME(RUNTIME_RUBY, 0, FRAME_NOTE_MISMATCH);
	struct ruby_record mjit = record;

	mjit.error = 32;
	mjit.own_size = LOOP - LEAF;
	for (int of_mjit = 0; of_mjit < 2; of_mjit++) {
		mjit.own = of_mjit ? LOOP : LEAF;
		lie_set_up(RUNTIME_RUBY, &mjit, sizeof(mjit));
		put_frames(1, 0, 0, FAR);
		lie_put(FAR, RUBY_FRAME_CFUNC | RUBY_FRAME_NATIVE);
		lie_walk(LEAF + 5);
		ASSERT_EQ(lie.walk.words[0], FRAME(RUNTIME_NATIVE, 0, LEAF + 5));
		ASSERT_EQ(FRAME_DATA(lie.walk.words[1]), LOOP + 0x10);
		ASSERT_EQ(lie.walk.words[2] == note, of_mjit);
		lie_tear_down();
	}
}
