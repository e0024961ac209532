// SPDX-License-Identifier: Apache-2.0
/* The walker over made-up memory: what only aarch64 has. */
#include "bpf/host/test_walk_made_up.h"

TEST(a64_leaf_by_link_register_then_frame_records)
{
	set_up();
	/* A leaf that has saved nothing; its return address is signed. */
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = A64_SP,
						.ra = RA_IN_REG,
						.ra_off = A64_LR,
						.flags = RULE_RA_SIGNED });
	rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = A64_SP,
						.cfa_off = 48,
						.ra_off = -5,
						.slot_off = { -6 } });
	rule_in_bucket(3, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = A64_FP,
						.cfa_off = 32,
						.ra_off = -3,
						.slot_off = { -4 } });
	rule_in_bucket(4, end);
	t.regs[A64_SP] = SP(10);
	t.regs[A64_LR] = AT(2, 0x10) | 0x2aull << 48;
	t.stack[10] = SP(20);
	t.stack[11] = AT(3, 0x10) | 0x55ull << 48;
	t.stack[20] = 0;
	t.stack[21] = AT(4, 0x10);
	ASSERT_EQ(walk(EM_AARCH64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0x0f), AT(3, 0x0f), AT(4, 0x0f));
	/* A new thread, whose x0 is 0, has the link register of the one that made it. */
	t.rules[2].flags |= RULE_NEW_THREAD;
	t.regs[0] = 0;
	ASSERT_EQ(walk(EM_AARCH64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0));
	t.regs[0] = 1234;
	ASSERT_EQ(walk(EM_AARCH64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0x0f), AT(3, 0x0f), AT(4, 0x0f));
	tear_down();
}

TEST(a64_the_link_register_is_the_interrupted_frames_only)
{
	set_up();
	rule_in_bucket(1, (struct unwind_rule){
				  .cfa = CFA_REG, .cfa_reg = A64_SP, .cfa_off = 16, .ra_off = -1 });
	rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = A64_SP,
						.cfa_off = 16,
						.ra = RA_IN_REG,
						.ra_off = A64_LR });
	t.regs[A64_SP] = SP(10);
	t.regs[A64_LR] = AT(3, 0);
	t.stack[11] = AT(2, 4);
	ASSERT_EQ(walk(EM_AARCH64, AT(1, 0)), STOP_UNKNOWN_REGISTER);
	ASSERT_FRAMES(AT(1, 0), AT(2, 3));
	tear_down();
}

TEST(a64_a_cfa_in_a_register_that_the_callee_keeps)
{
	for (int kept = 0; kept < 2; kept++) {
		set_up();
		rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_REG,
							.cfa_reg = A64_SP,
							.ra = RA_IN_REG,
							.ra_off = A64_LR });
		rule_in_bucket(2,
			       (struct unwind_rule){
				       .cfa = CFA_REG, .cfa_reg = 9, .cfa_off = 16, .ra_off = -1 });
		rule_in_bucket(3, end);
		t.regs[A64_SP] = SP(10);
		t.regs[A64_LR] = AT(2, 0x10);
		t.regs[9] = SP(20);
		t.stack[21] = AT(3, 0x10);
		/* bl, or b */
		t.code[AT(3, 8) / 8 - CODE / 8] = kept ? 0x94000010d503201f : 0x14000010d503201f;
		ASSERT_EQ(walk(EM_AARCH64, AT(1, 4)), kept ? STOP_COMPLETE : STOP_UNKNOWN_REGISTER);
		tear_down();
	}
}

TEST(a64_a_signal_frame)
{
	set_up();
	rule_in_bucket(1,
		       (struct unwind_rule){ .cfa = CFA_SIGNAL, .cfa_reg = A64_SP, .cfa_off = 64 });
	/* Interrupted at its first instruction: the return address is in x30 of the block. */
	rule_in_bucket(
		2, (struct unwind_rule){
			   .cfa = CFA_REG, .cfa_reg = A64_SP, .ra = RA_IN_REG, .ra_off = A64_LR });
	rule_in_bucket(3, end);
	t.regs[A64_SP] = SP(10);
	t.stack[18 + 30] = AT(3, 8);
	t.stack[18 + 31] = SP(200);
	t.stack[18 + 32] = AT(2, 0);
	ASSERT_EQ(walk(EM_AARCH64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0), AT(3, 7));
	tear_down();
}

TEST(a64_signed_return_addresses_in_code_of_no_file)
{
	set_up();
	rule_in_bucket(3, end);
	t.regs[A64_SP] = SP(10);
	t.regs[A64_FP] = SP(20);
	t.stack[20] = 0;
	t.stack[21] = AT(3, 0x10) | 0x45ull << 48;
	ASSERT_EQ(walk(EM_AARCH64, 0x1100), STOP_COMPLETE);
	/* Between them stands that a caller may be missing: the code is not there to be looked at.
	 */
	ASSERT_EQ(t.walk.full.nr_words, 4);
	ASSERT_EQ(FRAME_DATA(t.walk.words[3]), AT(3, 0x0f));
	tear_down();
}

TEST(a64_frame_pointers_with_prologue_and_epilogue)
{
	static const struct {
		__u32 before, at;
		int sp_word, caller;
	} cases[] = {
		{ 0, 0xa9be7bfd, 30, 0x20 },	      /* stp x29, x30, [sp, #-32]! */
		{ 0, 0xd503233f, 30, 0x20 },	      /* paciasp */
		{ 0xa9be7bfd, 0x910003fd, 10, 0x10 }, /* mov x29, sp behind the stp */
		{ 0, 0xd65f03c0, 30, 0x20 },	      /* ret */
		{ 0, 0xf9400000, 5, 0x40 },	      /* the body */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up();
		rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER });
		rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER });
		t.code[256 / 8] = (__u64)cases[i].before << 32;
		t.code[256 / 8 + 1] = cases[i].at;
		t.regs[A64_SP] = SP(cases[i].sp_word);
		t.regs[A64_LR] = AT(2, 0x21);
		t.regs[A64_FP] = SP(20);
		t.stack[10] = SP(20);
		t.stack[11] = AT(2, 0x11);
		t.stack[20] = 0;
		t.stack[21] = AT(2, 0x41);
		walk(EM_AARCH64, AT(1, 8));
		ASSERT(t.walk.full.nr_words >= 2);
		ASSERT_EQ(FRAME_DATA(t.walk.words[1]), AT(2, cases[i].caller));
		tear_down();
	}
}
