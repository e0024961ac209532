// SPDX-License-Identifier: Apache-2.0
/* The walker over made-up memory: every kind of rule, and every way to end; aarch64's own:
 * walk_a64_test.c; what is remembered: walk_callers_test.c. */
#include "bpf/host/test_walk_made_up.h"

TEST(x86_frames_by_stack_pointer)
{
	set_up();
	rule_in_bucket(1, by_sp);
	rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = X86_RSP,
						.cfa_off = 32,
						.ra_off = -1,
						.slot_off = { [1] = -2 } });
	rule_in_bucket(3,
		       (struct unwind_rule){
			       .cfa = CFA_REG, .cfa_reg = X86_RBX, .cfa_off = 16, .ra_off = -1 });
	rule_in_bucket(4, end);
	t.regs[X86_RSP] = SP(10);
	t.stack[10] = AT(2, 0x10); /* the leaf's return address */
	t.stack[13] = SP(20);	   /* rbx, saved by the second */
	t.stack[14] = AT(3, 0x20);
	t.stack[21] = AT(4, 0x30); /* CFA = rbx + 16 = SP(22) */
	ASSERT_EQ(walk(EM_X86_64, AT(1, 5)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 5), AT(2, 0x0f), AT(3, 0x1f), AT(4, 0x2f));
	ASSERT_EQ(t.walk.full.generation, 7);
	/* What the leaf returns to is what a new thread, whose rax is 0, will call. */
	t.rules[2].flags = RULE_NEW_THREAD;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 5)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 5));
	t.regs[X86_RAX] = 1234;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 5)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 5), AT(2, 0x0f), AT(3, 0x1f), AT(4, 0x2f));
	tear_down();
}

TEST(x86_a_return_address_at_a_functions_end_belongs_to_the_caller)
{
	set_up();
	rule_in_bucket(1, by_sp);
	rule_in_bucket(2, end); /* a noreturn call is its last instruction */
	t.regs[X86_RSP] = SP(10);
	t.stack[10] = AT(3, 0);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0xff));
	tear_down();
}

TEST(x86_a_realigned_frame)
{
	set_up();
	/* gcc: CFA = *(rbp - 8); rbp is saved where it points to. */
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_DEREF,
						.cfa_reg = X86_RBP,
						.cfa_off = -8,
						.flags = RULE_SLOTS_AT_FP,
						.ra_off = -1,
						.slot_off = { -1 } });
	rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = X86_RBP,
						.cfa_off = 16,
						.ra_off = -1,
						.slot_off = { -2 } });
	rule_in_bucket(3, end);
	t.regs[X86_RSP] = SP(4);
	t.regs[X86_RBP] = SP(12);
	t.stack[11] = SP(17); /* the CFA */
	t.stack[12] = SP(20); /* the caller's rbp */
	t.stack[16] = AT(2, 1);
	t.stack[20] = 0;
	t.stack[21] = AT(3, 1);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0), AT(3, 0));
	tear_down();
}

TEST(x86_a_signal_frame_gives_back_all_registers)
{
	static const __u64 gregs[] = { 8,
				       9,
				       10,
				       11,
				       12,
				       13,
				       14,
				       15,
				       /* rdi rsi rbp rbx */ 5,
				       4,
				       6,
				       3,
				       /* rdx rax rcx */ 2,
				       0,
				       1 };
	set_up();
	rule_in_bucket(1, by_sp);
	rule_in_bucket(
		2, (struct unwind_rule){ .cfa = CFA_SIGNAL, .cfa_reg = X86_RSP, .cfa_off = 40 });
	/* The interrupted code hangs on rax, which only an interrupted frame can have. */
	rule_in_bucket(3, (struct unwind_rule){
				  .cfa = CFA_REG, .cfa_reg = X86_RAX, .cfa_off = 8, .ra_off = -1 });
	rule_in_bucket(4, end);
	t.regs[X86_RSP] = SP(10);
	t.stack[10] = AT(2, 1); /* the handler returns to the trampoline */
	for (int i = 0; i < 15; i++)
		t.stack[11 + 5 + i] = 0x1000 + gregs[i];
	t.stack[11 + 5 + 13] = SP(100);	 /* rax */
	t.stack[11 + 5 + 15] = SP(90);	 /* rsp */
	t.stack[11 + 5 + 16] = AT(3, 0); /* rip: exactly a function's first byte */
	t.stack[100] = AT(4, 9);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	/* The trampoline's own address, not a byte before it. */
	ASSERT_FRAMES(AT(1, 0), AT(2, 1), AT(3, 0), AT(4, 8));
	tear_down();
}

TEST(x86_signal_frames_that_lead_to_themselves)
{
	set_up();
	rule_in_bucket(
		2, (struct unwind_rule){ .cfa = CFA_SIGNAL, .cfa_reg = X86_RSP, .cfa_off = 40 });
	t.max_frames = 1000;
	t.regs[X86_RSP] = SP(11);
	t.stack[11 + 5 + 15] = SP(11);	 /* rsp */
	t.stack[11 + 5 + 16] = AT(2, 1); /* rip */
	ASSERT_EQ(walk(EM_X86_64, AT(2, 1)), STOP_TOO_MUCH_WORK);
	/* As dear: each saved register is far from the others. */
	t.rules[2] = (struct unwind_rule){ CFA_DEREF, X86_RSP, .ra_off = 1,
					   .slot_off = { 1, 200, 400, 600, 800 } };
	t.max_frames = SAMPLE_FRAMES_MAX;
	t.stack[11] = SP(11);
	t.stack[12] = AT(2, 1);
	ASSERT_EQ(walk(EM_X86_64, AT(2, 1)), STOP_TOO_MUCH_WORK);
	tear_down();
}

/* As OpenSSL's AES-GCM: a helper leaves rax alone, in which its caller keeps its CFA. */
static void set_up_kept(void)
{
	set_up();
	rule_in_bucket(1, by_sp);
	rule_in_bucket(2, (struct unwind_rule){
				  .cfa = CFA_REG, .cfa_reg = X86_RAX, .cfa_off = 8, .ra_off = -1 });
	rule_in_bucket(3, end);
	t.regs[X86_RSP] = SP(10);
	t.regs[X86_RAX] = SP(20);
	t.stack[10] = AT(2, 0x10);
	t.stack[20] = AT(3, 0x10);
	t.code[AT(3, 8) / 8 - CODE / 8] = 0x12345678e8909090; /* call, up to AT(3, 0x10) */
}

TEST(x86_a_cfa_in_a_register_that_the_callee_keeps)
{
	set_up_kept();
	ASSERT_EQ(walk(EM_X86_64, AT(1, 5)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 5), AT(2, 0x0f), AT(3, 0x0f));
	tear_down();
}

TEST(x86_every_form_of_a_call_is_one)
{
	static const struct {
		__u64 before;
		bool call;
	} codes[] = {
		{ 0xd0ff909090909090, true },  /* call *%rax */
		{ 0xd2ff419090909090, true },  /* call *%r10 */
		{ 0x10ff909090909090, true },  /* call *(%rax) */
		{ 0xc814ff9090909090, true },  /* call *(%rax,%rcx,8) */
		{ 0x0850ff9090909090, true },  /* call *8(%rax) */
		{ 0x082454ff90909090, true },  /* call *8(%rsp) */
		{ 0x0000007815ff9090, true },  /* call *0x78(%rip) */
		{ 0x0000007890ff9090, true },  /* call *0x78(%rax) */
		{ 0x000000782494ff90, true },  /* call *0x78(%rsp) */
		{ 0x000000782514ff90, true },  /* call *0x78 */
		{ 0xe0ff909090909090, false }, /* jmp *%rax */
		{ 0x1415ff9090909090, false }, { 0x14ff909090909090, false },
		{ 0x0000000000000000, false }, { 0x909090e890909090, false },
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		set_up_kept();
		t.code[AT(3, 8) / 8 - CODE / 8] = codes[i].before;
		ck_assert_msg(walk(EM_X86_64, AT(1, 5)) ==
				      (codes[i].call ? STOP_COMPLETE : STOP_UNKNOWN_REGISTER),
			      "%016llx", codes[i].before);
		tear_down();
	}
}

TEST(x86_a_register_that_was_not_kept_after_all)
{
	static const __u64 values[] = { 0, SP(9), SP(10), SP(20) + 4, SP(21), STACK - 8, ~0ull };

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		set_up_kept();
		t.regs[X86_RAX] = values[i];
		ck_assert_msg(walk(EM_X86_64, AT(1, 5)) == STOP_UNKNOWN_REGISTER, "%llx",
			      values[i]);
		ASSERT_FRAMES(AT(1, 5), AT(2, 0x0f));
		tear_down();
	}
}

TEST(x86_a_register_that_a_function_uses_itself_is_not_its_callers)
{
	set_up_kept();
	rule_in_bucket(1,
		       (struct unwind_rule){
			       .cfa = CFA_REG, .cfa_reg = X86_RAX, .cfa_off = -72, .ra_off = -1 });
	ASSERT_EQ(walk(EM_X86_64, AT(1, 5)), STOP_UNKNOWN_REGISTER);
	ASSERT_FRAMES(AT(1, 5), AT(2, 0x0f));
	tear_down();
}

TEST(x86_a_callee_saved_register_that_is_lost_is_not_kept)
{
	set_up_kept();
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = X86_RSP,
						.cfa_off = 8,
						.ra_off = -1,
						.slot_off = { [X86_SLOT_RBX] = SLOT_LOST } });
	rule_in_bucket(2, (struct unwind_rule){
				  .cfa = CFA_REG, .cfa_reg = X86_RBX, .cfa_off = 8, .ra_off = -1 });
	t.regs[X86_RBX] = SP(20);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 5)), STOP_UNKNOWN_REGISTER);
	tear_down();
}

TEST(x86_a_plt_stub_before_and_behind_its_push)
{
	const struct unwind_rule plt = { .cfa = CFA_PLT,
					 .cfa_reg = X86_RSP,
					 .cfa_off = 8,
					 .ra_off = -1,
					 .slot_off = { [UNWIND_CFA_OFF2_SLOT] = 11 } };
	for (int pushed = 0; pushed < 2; pushed++) {
		set_up();
		rule_in_bucket(1, plt);
		rule_in_bucket(2, end);
		t.regs[X86_RSP] = SP(10 - pushed);
		t.stack[10] = AT(2, 1);
		ASSERT_EQ(walk(EM_X86_64, AT(1, pushed ? 11 : 6)), STOP_COMPLETE);
		ASSERT_FRAMES(AT(1, pushed ? 11 : 6), AT(2, 0));
		tear_down();
	}
}

TEST(x86_vfork_has_its_return_address_in_rdi)
{
	set_up();
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_REG,
						.cfa_reg = X86_RSP,
						.cfa_off = 0,
						.ra = RA_IN_REG,
						.ra_off = X86_RDI });
	rule_in_bucket(2, end);
	t.regs[X86_RSP] = SP(10);
	t.regs[X86_RDI] = AT(2, 1);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0));
	tear_down();
}

/* Code bytes at CODE + 256 * 1 + 0x20, where the pc is put `at` bytes behind. */
static int walk_code(const char *bytes, size_t size, __u64 at, __u64 sp)
{
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER });
	rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER });
	memcpy((char *)t.code + 256 + 0x20, bytes, size);
	t.regs[X86_RSP] = sp;
	t.regs[X86_RBP] = SP(20);
	t.stack[10] = AT(2, 1);
	t.stack[20] = 0;
	t.stack[21] = AT(2, 0x81);
	return walk(EM_X86_64, AT(1, 0x20 + at));
}

TEST(x86_frame_pointers_with_prologue_and_epilogue)
{
	static const struct {
		const char *bytes;
		size_t size, at;
		int sp_word;
		int caller; /* offset in bucket 2 */
	} cases[] = {
		{ "\x55\x48\x89\xe5", 4, 0, 10, 0 },		     /* at push */
		{ "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5", 8, 0, 10, 0 }, /* at endbr64 */
		{ "\xc3", 1, 0, 10, 0 },			     /* at ret */
		{ "\x5d\xe9\x11\x22\x33\x44", 6, 1, 10, 0 },	     /* at a tail jump */
		{ "\x48\x8b\x45\xf8", 4, 0, 5, 0x80 },		     /* in the body */
		{ "\x5d\xc3", 2, 0, 20, 0x80 },			     /* at pop %rbp */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up();
		t.stack[20] = 0;
		walk_code(cases[i].bytes, cases[i].size, cases[i].at, SP(cases[i].sp_word));
		ASSERT(t.walk.full.nr_words >= 2);
		ASSERT_EQ(FRAME_DATA(t.walk.words[1]), AT(2, cases[i].caller));
		tear_down();
	}
	/* Between push and mov the old frame pointer lies at sp. */
	set_up();
	t.stack[9] = SP(20);
	walk_code("\x55\x48\x89\xe5", 4, 1, SP(9));
	ASSERT_EQ(FRAME_DATA(t.walk.words[1]), AT(2, 0));
	ASSERT_EQ(FRAME_DATA(t.walk.words[2]), AT(2, 0x80));
	tear_down();
}

static const __u64 unsure = FRAME(RUNTIME_NATIVE, 1, FRAME_NOTE_CALLER_UNSURE);

TEST(a_caller_is_in_doubt_where_the_code_is_not_there)
{
	/* The page of the very push that was interrupted by its fault. */
	set_up();
	t.no_code_from = CODE;
	t.no_code_to = CODE + CODE_SIZE;
	walk_code("\x55\x48\x89\xe5", 4, 0, SP(10));
	ASSERT_EQ(t.walk.words[1], unsure);
	ASSERT_EQ(t.walk.words[2], 0);
	ASSERT_EQ(FRAME_DATA(t.walk.words[3]), AT(2, 0x80));
	/* The page before it does not matter. */
	t.no_code_to = AT(1, 0x20);
	walk_code("\x55\x48\x89\xe5", 4, 0, SP(10));
	ASSERT_EQ(FRAME_DATA(t.walk.words[1]), AT(2, 0));
	tear_down();
}

TEST(a_caller_is_in_doubt_where_a_frame_may_be_missing)
{
	static const char body[] = "\x48\x8b\x45\xf8";

	for (int call = 0; call < 2; call++) {
		set_up();
		/* Before where stack[10] leads: add %al,(%rax), or a call. */
		t.code[AT(1, 0xf8) / 8 - CODE / 8] = call ? 0x000000e800000000 : 0;
		t.code[AT(2, 0) / 8 - CODE / 8] = 0x9090909090909000;
		walk_code(body, 4, 0, SP(10));
		if (call)
			ASSERT_EQ(t.walk.words[1], unsure);
		else
			ASSERT_EQ(FRAME_DATA(t.walk.words[1]), AT(2, 0x80));
		/* What lies there is no return address. */
		walk_code(body, 4, 0, SP(12));
		ASSERT_EQ(FRAME_DATA(t.walk.words[1]), AT(2, 0x80));
		tear_down();
	}
}

/* As walk_code(), in code of a file that is known as `known`. */
static int walk_known(const char *bytes, size_t size, size_t at, enum unwind_code known)
{
	walk_code(bytes, size, at, SP(10));
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = known });
	rule_in_bucket(2, end);
	return walk(EM_X86_64, AT(1, 0x20 + at));
}

TEST(a_caller_is_in_doubt_where_code_may_be_a_runtimes)
{
	static const char body[] = "\x48\x8b\x45\xf8";

	set_up();
	ASSERT_EQ(walk_known(body, 4, 0, CODE_ANON), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0x20), AT(2, 0x80));
	t.flags = PROCESS_CODE_EXPECTED;
	ASSERT_EQ(walk_known(body, 4, 0, CODE_ANON), STOP_COMPLETE);
	ASSERT_EQ(t.walk.words[1], unsure);
	ASSERT_EQ(FRAME_DATA(t.walk.words[3]), AT(2, 0x80));
	ASSERT(t.walk.skipped);
	/* That of a file is not. */
	ASSERT_EQ(walk_known(body, 4, 0, CODE_BYTES), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0x20), AT(2, 0x80));
	ASSERT(!t.walk.skipped);
	tear_down();
}

TEST(a_caller_of_code_in_no_file_is_in_doubt_where_a_function_of_a_file_was_called)
{
	/* Of what is called, from the return address on: the file's code; the code in no file. */
	static const int32_t distances[] = { 0x100, -0x140 };
	static const char body[] = "\x48\x8b\x45\xf8";
	struct unwind_mapping *m;

	for (int i = 0; i < 2; i++) {
		set_up();
		m = (struct unwind_mapping *)t.segments[0]->cells;
		m[0] = (struct unwind_mapping){ CODE, AT(2, 0), 0, MAPPING_ANON, 0 };
		m[1] = (struct unwind_mapping){ AT(2, 0), CODE + CODE_SIZE, CODE - 0x1000, 1, 0 };
		((char *)t.code)[AT(2, 0x7c) - CODE] = (char)0xe8;
		memcpy((char *)t.code + AT(2, 0x7d) - CODE, &distances[i], 4);
		ASSERT_EQ(walk_known(body, 4, 0, CODE_BYTES), STOP_COMPLETE);
		if (i) {
			ASSERT_FRAMES(AT(1, 0x20), AT(2, 0x80));
		} else {
			ASSERT_EQ(t.walk.words[1], unsure);
			ASSERT_EQ(FRAME_DATA(t.walk.words[3]), AT(2, 0x80));
			t.may_ask = true;
			ASSERT_EQ(walk_known(body, 4, 0, CODE_BYTES), STOP_CODE_PENDING);
			ASSERT_FRAMES(AT(1, 0x20));
			t.flags = PROCESS_NO_ANON_ASKS;
			ASSERT_EQ(walk_known(body, 4, 0, CODE_BYTES), STOP_COMPLETE);
			ASSERT_EQ(t.walk.words[1], unsure);
		}
		tear_down();
	}
}

TEST(code_that_can_be_followed_is_asked_for_or_in_doubt)
{
	static const char leaf[] = "\x48\x8b\x45\xf8", push[] = "\x55\x48\x89\xe5\x90";

	set_up();
	ASSERT_EQ(walk_known(leaf, 4, 0, CODE_UNFOLLOWED), STOP_COMPLETE);
	ASSERT_EQ(t.walk.words[1], unsure);
	t.may_ask = true;
	ASSERT_EQ(walk_known(leaf, 4, 0, CODE_UNFOLLOWED), STOP_CODE_PENDING);
	ASSERT_FRAMES(AT(1, 0x20));
	/* That was done. */
	ASSERT_EQ(walk_known(leaf, 4, 0, CODE_UNDECIDED), STOP_COMPLETE);
	ASSERT_EQ(t.walk.words[1], unsure);
	/* The bytes tell. */
	ASSERT_EQ(walk_known(push, 5, 0, CODE_UNFOLLOWED), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0x20), AT(2, 0));
	ASSERT_EQ(walk_known(push, 5, 4, CODE_UNFOLLOWED), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0x24), AT(2, 0x80));
	tear_down();
}

TEST(a_caller_in_code_that_can_be_followed_is_asked_for_or_in_doubt)
{
	for (enum unwind_code known = CODE_BYTES; known <= CODE_UNDECIDED; known++) {
		set_up();
		rule_in_bucket(1, by_sp);
		rule_in_bucket(2,
			       (struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = known });
		rule_in_bucket(3, end);
		t.regs[X86_RSP] = SP(10);
		t.regs[X86_RBP] = SP(20);
		t.stack[10] = AT(2, 1);
		t.stack[21] = AT(3, 1);
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
		if (known == CODE_BYTES) {
			ASSERT_FRAMES(AT(1, 0), AT(2, 0), AT(3, 0));
		} else {
			ASSERT_EQ(t.walk.words[2], unsure);
			ASSERT_EQ(FRAME_DATA(t.walk.words[4]), AT(3, 0));
		}
		t.may_ask = true;
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)),
			  known == CODE_UNFOLLOWED ? STOP_CODE_PENDING : STOP_COMPLETE);
		/* No frame pointer: that is no end. */
		t.may_ask = false;
		t.regs[X86_RBP] = 0;
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)),
			  known == CODE_BYTES ? STOP_COMPLETE : STOP_FRAME_POINTER);
		tear_down();
	}
}

TEST(code_of_no_file_is_asked_for_where_its_frame_pointer_leads_nowhere)
{
	const __u64 data[] = { 0, 1, CODE + CODE_SIZE, STACK };

	for (size_t i = 0; i < sizeof(data) / sizeof(*data); i++) {
		set_up();
		rule_in_bucket(3, end);
		t.regs[X86_RSP] = SP(10);
		t.regs[X86_RBP] = SP(20);
		t.stack[12] = AT(3, 1);
		t.stack[21] = data[i];
		ASSERT_EQ(walk(EM_X86_64, 0x1100), STOP_FRAME_POINTER);
		ASSERT_FRAMES(0x1100);
		t.may_ask = true;
		ASSERT_EQ(walk(EM_X86_64, 0x1100), STOP_CODE_PENDING);
		t.regs[X86_RBP] = 0;
		ASSERT_EQ(walk(EM_X86_64, 0x1100), STOP_CODE_PENDING);
		/* It was followed. */
		t.known = (struct walk_known_rule){
			0x1100, { .cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = 24, .ra_off = -1 }
		};
		ASSERT_EQ(walk(EM_X86_64, 0x1100), STOP_COMPLETE);
		ASSERT_FRAMES(0x1100, AT(3, 0));
		/* Of another frame that says nothing. */
		ASSERT_EQ(walk(EM_X86_64, 0x1104), STOP_CODE_PENDING);
		t.may_ask = false;
		ASSERT_EQ(walk(EM_X86_64, 0x1104), STOP_FRAME_POINTER);
		tear_down();
	}
}

TEST(a_function_that_went_over_to_another_stack)
{
	struct unwind_rule by_fp = {
		.cfa = CFA_REG, .cfa_reg = X86_RBP, .cfa_off = 16, .ra_off = -1, .slot_off = { -2 }
	};
	/* OCaml 5's caml_c_call: C code runs on the thread's stack, its callers on another one. */
	const struct unwind_rule saved = { .cfa = CFA_DEREF,
					   .cfa_reg = X86_RSP,
					   .cfa_off = 8,
					   .ra_off = -1,
					   .slot_off = { [UNWIND_CFA_OFF2_SLOT] = 8 } };

	for (int other = 0; other < 3; other++) {
		by_fp.flags = other ? RULE_OTHER_STACK : 0;
		set_up();
		rule_in_bucket(1, by_sp);
		rule_in_bucket(2, other == 2 ? saved : by_fp);
		rule_in_bucket(3, end);
		t.regs[X86_RSP] = SP(1000);
		t.regs[X86_RBP] = SP(20);
		t.stack[1000] = AT(2, 1);
		t.stack[1002] = SP(21);
		t.stack[21] = AT(3, 1);
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), other ? STOP_COMPLETE : STOP_NO_PROGRESS);
		if (other)
			ASSERT_FRAMES(AT(1, 0), AT(2, 0), AT(3, 0));
		/* From which nothing leads back: a caller is the first frame, what runs is cut. */
		rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER,
							.cfa_off = CODE_SWITCHED });
		t.regs[X86_RBP] = 0;
		ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
		ASSERT_EQ(t.walk.words[2], FRAME(RUNTIME_NATIVE, 1, FRAME_NOTE_OTHER_STACK));
		/* What it left in the frame pointer is the other stack's. */
		t.regs[X86_RBP] = SP(1020);
		t.stack[1021] = AT(3, 1);
		ASSERT_EQ(walk(EM_X86_64, AT(2, 0)), STOP_FRAME_POINTER);
		ASSERT_EQ(t.walk.full.nr_words, 3);
		ASSERT_EQ(t.walk.words[1], FRAME(RUNTIME_NATIVE, 1, FRAME_NOTE_OTHER_STACK));
		tear_down();
	}
}

TEST(a_frame_pointer_of_0_is_the_first_frame)
{
	set_up();
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER });
	t.regs[X86_RSP] = SP(10);
	t.regs[X86_RBP] = SP(20);
	t.stack[20] = 0;
	t.stack[21] = AT(1, 0x80);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0x40)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0x40), AT(1, 0x80) - 1);
	/* What runs has one, or uses the register for something else. */
	t.regs[X86_RBP] = 0;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0x40)), STOP_FRAME_POINTER);
	ASSERT_FRAMES(AT(1, 0x40));
	tear_down();
}

TEST(no_thread_begins_in_code_made_at_run_time)
{
	enum { ANON = 0x1000 };

	for (int machine = 0; machine < 2; machine++) {
		__u16 m = machine ? EM_AARCH64 : EM_X86_64;
		int fp = machine ? A64_FP : X86_RBP;

		set_up();
		rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER });
		t.regs[machine ? A64_SP : X86_RSP] = SP(10);
		t.regs[fp] = SP(20);
		t.stack[20] = 0;
		t.stack[21] = ANON + 0x80;
		ASSERT_EQ(walk(m, AT(1, 0x40)), STOP_FRAME_POINTER);
		ASSERT_FRAMES(AT(1, 0x40), ANON + 0x80 - 1);
		/* It does not either where data is taken for a frame that returns to 0. */
		t.stack[20] = SP(30);
		ASSERT_EQ(walk(m, AT(1, 0x40)), STOP_FRAME_POINTER);
		ASSERT_FRAMES(AT(1, 0x40), ANON + 0x80 - 1);
		t.stack[31] = AT(1, 0x60);
		ASSERT_EQ(walk(m, AT(1, 0x40)), STOP_COMPLETE);
		ASSERT_FRAMES(AT(1, 0x40), ANON + 0x80 - 1, AT(1, 0x60) - 1);
		tear_down();
	}
}

TEST(a_frame_pointer_that_leads_nowhere_adds_no_frame)
{
	set_up();
	rule_in_bucket(1, (struct unwind_rule){ .cfa = CFA_FRAME_POINTER });
	t.regs[X86_RSP] = SP(10);
	t.regs[X86_RBP] = SP(20);
	t.stack[20] = SP(30);
	t.stack[21] = 0x123456789; /* in no mapping, */
	t.flags = PROCESS_MAPPINGS_FINAL;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0x40)), STOP_FRAME_POINTER);
	ASSERT_FRAMES(AT(1, 0x40));
	/* or in one that is not known yet, as a JIT's newest. */
	t.flags = 0;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0x40)), STOP_NO_MAPPING);
	ASSERT_FRAMES(AT(1, 0x40));
	t.regs[X86_RBP] = 3;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0x40)), STOP_FRAME_POINTER);
	tear_down();
}

TEST(every_other_way_to_end)
{
	set_up();
	t.regs[X86_RSP] = SP(10);
	ASSERT_EQ(walk(EM_X86_64, AT(9, 0)), STOP_NO_RULE);
	ASSERT_FRAMES(AT(9, 0));
	ASSERT_EQ(walk(EM_X86_64, 0x777777), STOP_NO_MAPPING);
	ASSERT_FRAMES(0x777777);
	ASSERT_EQ(walk(EM_X86_64, 0x900010), STOP_FILE_PENDING);
	t.files[2].state = FILE_STATE_UNREADABLE;
	ASSERT_EQ(walk(EM_X86_64, 0x900010), STOP_FILE_UNREADABLE);
	t.files[2].state = FILE_STATE_EVICTED;
	ASSERT_EQ(walk(EM_X86_64, 0x900010), STOP_TABLE_EVICTED);
	rule_in_bucket(1, by_sp);
	t.stack[10] = 0x888888; /* a caller that is nowhere is no frame */
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_NO_MAPPING);
	ASSERT_FRAMES(AT(1, 0));
	t.stack[10] = 0;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	t.regs[X86_RSP] = 0x10;
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_STACK_UNREADABLE);
	rule_in_bucket(2, (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_BAD_CFI });
	ASSERT_EQ(walk(EM_X86_64, AT(2, 0)), STOP_BAD_CFI);
	/* A register that only the interrupted frame had. */
	rule_in_bucket(3, (struct unwind_rule){
				  .cfa = CFA_REG, .cfa_reg = X86_R11, .cfa_off = 8, .ra_off = -1 });
	t.regs[X86_RSP] = SP(10);
	t.regs[X86_R11] = SP(10);
	t.stack[10] = AT(3, 1);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_UNKNOWN_REGISTER);
	/* The stack grows the wrong way. */
	rule_in_bucket(4,
		       (struct unwind_rule){
			       .cfa = CFA_REG, .cfa_reg = X86_RBP, .cfa_off = 16, .ra_off = -1 });
	t.regs[X86_RBP] = SP(3);
	t.stack[4] = AT(4, 1);
	ASSERT_EQ(walk(EM_X86_64, AT(4, 0)), STOP_NO_PROGRESS);
	tear_down();
}

TEST(a_stack_is_read_up_to_its_last_byte)
{
	set_up();
	rule_in_bucket(1, by_sp);
	rule_in_bucket(2, end);
	/* The page ends behind the return address: a whole window can't be read. */
	t.regs[X86_RSP] = SP(511);
	t.unreadable_from = SP(512);
	ASSERT_EQ(SP(512) & 4095, 0);
	t.stack[511] = AT(2, 1);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0));
	tear_down();
}

TEST(a_stack_pointer_may_be_in_a_page_that_is_not_there)
{
	const struct unwind_rule leaf = {
		.cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = 256, .ra_off = -1
	};
	const struct unwind_rule caller = { .cfa = CFA_REG,
					    .cfa_reg = X86_RSP,
					    .cfa_off = 32,
					    .ra_off = -1,
					    .slot_off = { [X86_SLOT_RBX] = -3 } };

	set_up();
	rule_in_bucket(1, leaf);
	rule_in_bucket(2, caller);
	rule_in_bucket(3, end);
	t.hole = SP(0);
	ASSERT_EQ(SP(512) & 4095, 0);
	t.regs[X86_RSP] = SP(511 - 20); /* nothing is saved below */
	t.stack[511 + 11] = AT(2, 1);
	t.stack[512 + 14] = AT(3, 1);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_COMPLETE);
	ASSERT_FRAMES(AT(1, 0), AT(2, 0), AT(3, 0));
	/* Unless that is where the return address is. */
	t.regs[X86_RSP] = SP(511 - 40);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_STACK_UNREADABLE);
	tear_down();
}

TEST(a_loop_ends_at_max_frames)
{
	set_up();
	rule_in_bucket(1, by_sp);
	for (int i = 0; i < STACK_WORDS; i++)
		t.stack[i] = AT(1, 1);
	t.regs[X86_RSP] = SP(0);
	ASSERT_EQ(walk(EM_X86_64, AT(1, 0)), STOP_MAX_FRAMES);
	ASSERT_EQ(t.walk.full.nr_words, 100);
	tear_down();
}

/* `nr` frames of 16 bytes, of two runtimes' loops in turn, and a native one. Neither runtime is
 * known of the process: Python's step leaves a note, HotSpot's has nothing to say. */
static void two_runtimes_in_turn(__u32 nr)
{
	set_up();
	for (__u32 i = 0; i < 2; i++)
		rule_in_bucket(i, (struct unwind_rule){
					  .cfa = CFA_REG,
					  .cfa_reg = X86_RSP,
					  .cfa_off = 16,
					  .ra = RA_AT_CFA | (i ? RUNTIME_HOTSPOT : RUNTIME_PYTHON)
								    << RULE_RUNTIME_SHIFT,
					  .ra_off = -1,
				  });
	rule_in_bucket(2, end);
	t.regs[X86_RSP] = SP(0);
	for (__u32 i = 0; i < nr; i++)
		t.stack[2 * i + 1] = AT(i + 1 < nr ? (i + 1) % 2 : 2, 0x40);
}

static __u32 nr_notes(enum frame_note note)
{
	__u32 nr = 0;

	for (__u32 i = 0; i < t.walk.full.nr_words; i += 1 + FRAME_EXTRA(t.walk.words[i]))
		nr += FRAME_IS_NOTE(t.walk.words[i]) && FRAME_DATA(t.walk.words[i]) == note;
	return nr;
}

TEST(a_stack_changes_33_times_from_runtime_to_runtime)
{
	two_runtimes_in_turn(33);
	ASSERT_EQ(walk(EM_X86_64, AT(0, 0x40)), STOP_COMPLETE);
	ASSERT_EQ(nr_notes(FRAME_NOTE_NOT_READY), 17);
	ASSERT_EQ(t.walk.full.nr_words, 33 + 17 + 1);
	tear_down();
	two_runtimes_in_turn(34);
	ASSERT_EQ(walk(EM_X86_64, AT(0, 0x40)), STOP_RUNTIME_CHANGES);
	ASSERT_EQ(t.walk.full.nr_words, 34 + 17);
	tear_down();
}

TEST(a_runtime_whose_walker_is_off_leaves_a_note)
{
	two_runtimes_in_turn(40);
	t.walkers_off = 1u << RUNTIME_PYTHON | 1u << RUNTIME_HOTSPOT;
	ASSERT_EQ(walk(EM_X86_64, AT(0, 0x40)), STOP_COMPLETE);
	ASSERT_EQ(nr_notes(FRAME_NOTE_OFF), 40);
	ASSERT_EQ(t.walk.full.nr_words, 40 + 40 + 1);
	tear_down();
}

TEST(code_of_a_runtime_whose_walker_is_off_ends_the_walk)
{
	set_up();
	rule_in_bucket(0, (struct unwind_rule){ .cfa = CFA_RUNTIME, .cfa_off = RUNTIME_HOTSPOT });
	t.walkers_off = 1u << RUNTIME_HOTSPOT;
	ASSERT_EQ(walk(EM_X86_64, AT(0, 0x40)), STOP_RUNTIME_OFF);
	tear_down();
}

TEST(the_last_row_of_an_earlier_bucket_holds)
{
	set_up();
	rule_in_bucket(1, end);
	/* Buckets 2 to 4 are inside the same function: no rows of their own. */
	for (__u32 i = 2; i <= 4; i++)
		t.segments[1]->cells[i] = BUCKET(2, 0);
	/* Bucket 5's only row begins in its middle. */
	t.segments[1]->cells[5] = BUCKET(2, 1);
	t.segments[1]->cells[512 + 2] = ROW(0x80, 0);
	t.regs[X86_RSP] = SP(10);
	ASSERT_EQ(walk(EM_X86_64, AT(4, 0x55)), STOP_COMPLETE);
	ASSERT_EQ(walk(EM_X86_64, AT(5, 0x7f)), STOP_COMPLETE);
	ASSERT_EQ(walk(EM_X86_64, AT(5, 0x80)), STOP_NO_RULE);
	tear_down();
}
