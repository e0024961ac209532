// SPDX-License-Identifier: Apache-2.0
/*
 * HotSpot's step on aarch64, over a JVM that is made up: what the code around an interrupted pc
 * tells, where stubs keep what they return to, and calls of native code.
 */
#include "runtime/hotspot/test_hotspot_walk.h"

enum {
	RET = 0xd65f03c0,
	NOP = 0xd503201f,
	STP = 0xa9bf7bfd,    /* stp x29,x30,[sp,#-16]! */
	MOV_FP = 0x910003fd, /* mov x29,sp */
	LEAVE = 0x910003bf,  /* mov sp,x29 */
	LDP = 0xa8c17bfd,    /* ldp x29,x30,[sp],#16 */
	BLR_8 = 0xd63f0100,
	LDR_POLL = 0xb940011f, /* ldr wzr,[x8] */
	LDP_32 = 0xa9427bfd,   /* ldp x29,x30,[sp,#32] */
	ADD_48 = 0x9100c3ff,   /* add sp,sp,#48 */
	SAVED_PC = 0x40,
};

#define CODE(addr, ...)                                                                            \
	do {                                                                                       \
		const __u32 code_[] = { __VA_ARGS__ };                                             \
		put(addr, code_, sizeof(code_));                                                   \
	} while (0)

static __u64 caller, leaf;

/* A compiled caller, whose frame of 4 words begins at SP(100), was called by the call stub. Its
 * callee has a frame of 6 words. */
static void set_up_arm64(void)
{
	set_up();
	t.machine = EM_AARCH64;
	t.record.interpreter_bcp = 72;
	t.record.thread_saved_pc = SAVED_PC;
	leaf = add_blob("nmethod", 256, 6, 16, 77);
	caller = add_blob("nmethod", 256, 4, 16, 78);
	t.regs[A64_SP] = SP(100);
	t.regs[A64_FP] = 0xabcd; /* of no use to compiled code */
	t.regs[A64_LR] = caller + 0x40;
	t.regs[28] = THREAD;
	CODE(caller + 0x3c, BLR_8);
	t.stack[102] = SP(200);
	t.stack[103] = t.record.call_stub_return;
	t.stack[200] = SP(900);
	t.stack[201] = NATIVE + 0x11;
	for (__u32 i = 0; i < 10; i++)
		t.stack[200 - 9 - i] = 0x1000 + i; /* x19 to x28 */
}

/* The stack goes from this pc by the caller to native code: `nr` frames, the caller is `at`. */
#define ASSERT_BY_CALLER(pc, nr, at)                                                               \
	do {                                                                                       \
		ASSERT_TO_NATIVE(walk(pc), nr);                                                    \
		ASSERT_BLOB(at, HOTSPOT_COMPILED, caller, 78, 0x40);                               \
		ASSERT_EQ(t.walk.regs[19], 0x1000);                                                \
		ASSERT_EQ(t.walk.regs[28], 0x1009);                                                \
	} while (0)

/* C1's: stp x30,x0,[sp,#-16]!; mov x0,x28; mov x1,x30; stp x8,x12,[sp,#-16]!; blr x8; ldp; ldp */
TEST(an_exception_that_leaves_a_method)
{
	__u64 stub;

	set_up_arm64();
	stub = add_blob("RuntimeStub - unwind_exception", 256, -1, -1, 0);
	CODE(stub, 0xa9bf03fe, 0xaa1c03e0, 0xaa1e03e1, 0xa9bf33e8, BLR_8, 0xa8c133e8, 0xaa0003e1,
	     0xa8c103fe, 0xaa1e03e3, 0xd61f0020);
	ASSERT_BY_CALLER(stub, 4, 1);
	t.regs[A64_SP] = SP(98);
	t.stack[98] = caller + 0x40;
	t.regs[A64_LR] = stub + 20;
	ASSERT_BY_CALLER(stub + 4, 4, 1);
	ASSERT_BY_CALLER(stub + 28, 4, 1);
	t.regs[A64_SP] = SP(96);
	ASSERT_BY_CALLER(stub + 20, 4, 1);
	t.regs[A64_SP] = SP(100);
	t.regs[A64_LR] = caller + 0x40;
	ASSERT_BY_CALLER(stub + 32, 4, 1);
}

/* It is jumped to; the link register is of no use. */
TEST(a_safepoint_in_a_loop)
{
	__u64 blob;

	set_up_arm64();
	blob = add_blob("SafepointBlob", 512, 64, -1, 0);
	CODE(blob, STP, MOV_FP, 0xa9bf77fc); /* stp x28,x29,[sp,#-16]! */
	CODE(leaf + 0x80, LDR_POLL, NOP, 0x17ffff00);
	put_8(THREAD + SAVED_PC, leaf + 0x80);
	t.regs[A64_LR] = leaf + 0x60; /* left over, of a call */
	t.regs[A64_SP] = SP(94);
	t.stack[94 + 4] = 0xabcd;
	t.stack[94 + 5] = caller + 0x40;
	for (__u32 i = 0; i < 4; i++) {
		__u32 at = i == 0 ? 94 : i < 3 ? 92 : 90;

		t.regs[A64_SP] = SP(at);
		if (at == 92) {
			t.stack[92] = 0xabcd;
			t.stack[93] = leaf + 0x60;
		}
		ASSERT_BY_CALLER(blob + 4 * i, 5, 2);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, leaf, 77, 0x80);
	}
	/* Far from its begin the frame hangs on x29, and has the right address some time. */
	t.regs[A64_FP] = SP(92);
	t.regs[A64_SP] = SP(60);
	ASSERT_BY_CALLER(blob + 256, 5, 2);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, leaf, 77, 0x80);
	t.stack[93] = leaf + 0x80;
	t.regs[A64_LR] = blob + 0x44;
	ASSERT_BY_CALLER(blob + 256, 5, 2);
	/* Nothing says where it polled. */
	t.regs[A64_LR] = t.stack[93] = leaf + 0x60;
	t.record.thread_saved_pc = 0;
	ASSERT_EQ(walk(blob + 256), STOP_RUNTIME_UNREADABLE);
	ASSERT_EQ(t.walk.nr_frames, 1);
}

TEST(a_safepoint_on_return)
{
	__u64 blob;

	set_up_arm64();
	blob = add_blob("SafepointBlob", 512, 64, -1, 0);
	CODE(blob, STP, MOV_FP);
	CODE(leaf + 0x80, LDP_32, ADD_48, LDR_POLL, RET);
	put_8(THREAD + SAVED_PC, leaf + 0x88);
	ASSERT_BY_CALLER(blob, 4, 1);
}

/* From here on to the return: its frame is there (0), gone (6). */
TEST(compiled_code_at_its_end)
{
	/* ldr x8,[x28,#imm]; cmp sp,x8; b.hi; ret */
	static const __u32 polls[] = { LDP_32, ADD_48, 0xf9402388, 0xeb2863ff, 0x54000108, RET };
	/* adr x8; str x8,[x28,#imm]; adrp x8; add x8,x8,#imm; br x8 */
	static const __u32 slow[] = { 0x10fffe08, 0xf9012388, 0x90000008, 0x91000108, 0xd61f0100 };
	static const __u32 jumps[] = { LDP_32, ADD_48, 0x14000010 };

	for (__u32 i = 0; i < 6; i++) {
		set_up_arm64();
		t.stack[98] = 0xabcd;
		t.stack[99] = caller + 0x40;
		t.regs[A64_SP] = SP(i < 2 ? 94 : 100);
		put(leaf + 0x80, polls, sizeof(polls));
		ASSERT_BY_CALLER(leaf + 0x80 + 4 * i, 4, 1);
	}
	for (__u32 i = 0; i < 5; i++) {
		set_up_arm64();
		put(leaf + 0x80, slow, sizeof(slow));
		ASSERT_BY_CALLER(leaf + 0x80 + 4 * i, 4, 1);
	}
	set_up_arm64();
	put(leaf + 0x80, jumps, sizeof(jumps));
	ASSERT_BY_CALLER(leaf + 0x88, 4, 1);
	/* A loop's jump. */
	set_up_arm64();
	CODE(leaf + 0x80, NOP, 0x17fffff0);
	t.regs[A64_SP] = SP(94);
	t.stack[99] = caller + 0x40;
	ASSERT_BY_CALLER(leaf + 0x84, 4, 1);
}

/* stp xzr,x9,[sp,#-16]!; ...; blr x8; add sp,sp,#16 */
TEST(compiled_code_that_calls_native_code)
{
	set_up_arm64();
	CODE(leaf + 0x80, 0xa9bf27ff, BLR_8, 0x910043ff);
	t.stack[99] = caller + 0x40;
	t.regs[A64_SP] = SP(92);
	ASSERT_BY_CALLER(leaf + 0x84, 4, 1);
	ASSERT_BY_CALLER(leaf + 0x88, 4, 1);
	t.regs[A64_SP] = SP(94);
	ASSERT_BY_CALLER(leaf + 0x80, 4, 1);
}

/* Continuation.doYield: stp; mov; ...; stp x8,x12,[sp,#-16]!; movz; movk; movk; blr; ldp x8,x12 */
TEST(code_of_the_vm_that_calls_native_code)
{
	__u64 yield;

	set_up_arm64();
	yield = add_blob("native nmethod", 256, 2, 8, 79);
	CODE(yield + 0x40, 0xa9bf33e8, 0xd2800008, 0xf2a00008, 0xf2c00008, BLR_8, 0xa8c133e8, NOP,
	     NOP, NOP, NOP, NOP, LEAVE, LDP, RET);
	t.stack[98] = 0xabcd;
	t.stack[99] = caller + 0x40;
	for (__u32 i = 0; i < 11; i++) {
		t.regs[A64_SP] = SP(i && i < 6 ? 96 : 98);
		t.regs[A64_LR] = i < 5 ? 0 : yield + 0x54;
		ASSERT_BY_CALLER(yield + 0x40 + 4 * i, 4, 1);
	}
	/* Called from there: the frame begins above what was pushed. */
	CODE(leaf + 0x80, RET);
	t.regs[A64_LR] = yield + 0x54;
	t.regs[A64_SP] = SP(96);
	ASSERT_BY_CALLER(leaf + 0x80, 5, 2);
	ASSERT_BLOB(1, HOTSPOT_NATIVE, yield, 79, 0x54);
}

/* Continuation.enterSpecial: a long prologue, and a jump over the call behind. */
TEST(code_of_the_vm_that_jumps_within_itself)
{
	__u64 enter;

	set_up_arm64();
	enter = add_blob("native nmethod", 256, 10, 100, 79);
	CODE(enter, STP, MOV_FP, 0xd10103ff);
	for (__u32 i = 3; i < 30; i++)
		put_4(enter + 4 * i, NOP);
	CODE(enter + 0x80, 0x94000010, 0x14000002, 0x94000010, LEAVE, LDP, RET);
	t.stack[98] = 0xabcd;
	t.stack[99] = caller + 0x40;
	t.regs[A64_FP] = SP(98);
	t.regs[A64_SP] = SP(90);
	for (__u32 i = 3; i < 25; i++)
		ASSERT_BY_CALLER(enter + 4 * i, 4, 1);
	t.regs[A64_LR] = enter + 0x84;
	for (__u32 i = 0; i < 3; i++)
		ASSERT_BY_CALLER(enter + 0x80 + 4 * i, 4, 1);
}

/* A native method's wrapper forwards an exception: leave; ldr; cbnz; ret; then far_jump(). */
TEST(a_native_method_that_throws)
{
	__u64 wrapper;

	set_up_arm64();
	wrapper = add_blob("native nmethod", 256, 10, 16, 79);
	CODE(wrapper + 0x80, LEAVE, LDP, 0xf9400388, 0xb5000048, RET, 0x14001000, NOP);
	for (__u32 i = 2; i < 6; i++)
		ASSERT_BY_CALLER(wrapper + 0x80 + 4 * i, 4, 1);
	CODE(wrapper + 0x94, 0x90000008, 0x91000108, 0xd61f0100);
	for (__u32 i = 2; i < 8; i++)
		ASSERT_BY_CALLER(wrapper + 0x80 + 4 * i, 4, 1);
}

/* Code of StubRoutines' with a frame record, called by its address in x8: movz; movk; movk; blr. */
TEST(a_stub_that_is_called_by_its_address)
{
	__u64 stubs;

	set_up_arm64();
	stubs = add_blob("StubRoutines (2)", 512, 0, -1, 0);
	CODE(caller + 0x30, 0xd2800008 | (__u32)(stubs & 0xffff) << 5,
	     0xf2a00008 | (__u32)(stubs >> 16 & 0xffff) << 5, 0xf2c00008, BLR_8);
	t.stack[98] = 0xabcd;
	t.stack[99] = caller + 0x40;
	t.regs[A64_FP] = SP(98);
	t.regs[A64_SP] = SP(60);
	t.regs[A64_LR] = stubs + 0x104;
	ASSERT_BY_CALLER(stubs + 0x108, 4, 1);
}

/* To the interpreter: ...; stp; mov; blr; leave; ldp; mov x13,sp; sub sp,sp,#32; ... */
TEST(an_adapter)
{
	__u64 blob;

	set_up_arm64();
	add_blob("a blob before", 1024, 0, -1, 0);
	blob = add_blob("I2C/C2I adapters", 512, 0, -1, 0);
	CODE(blob, NOP, STP, MOV_FP, NOP, BLR_8, LEAVE, LDP, 0x910003ed, 0xd10083ff, 0xf90003e0);
	t.stack[98] = 0xabcd;
	t.stack[99] = caller + 0x40;
	for (__u32 i = 0; i < 10; i++) {
		t.regs[A64_SP] = SP(i < 2 ? 100 : i < 4 ? 98 : i < 6 ? 90 : i < 7 ? 98 : 100);
		t.regs[A64_FP] = i < 3 || i > 6 ? 0xabcd : SP(98);
		/* Until it is set it may be anything. */
		t.regs[13] = i < 8 ? SP(107) : SP(100);
		t.regs[A64_LR] = i < 5 || i > 6 ? caller + 0x40 : blob + 20;
		if (i == 9)
			t.regs[A64_SP] = SP(96);
		ASSERT_BY_CALLER(blob + 4 * i, 4, 1);
	}
}

/* mov sp,x29; ldp x29,x30,[sp],#16; mov x20,x9; and sp,x20,#-16; ret */
TEST(an_interpreted_method_that_returns)
{
	set_up_arm64();
	t.next_segment = (INTERPRETER - HEAP) / SEGMENT - 1;
	add_blob("Interpreter", INTERPRETER_SIZE, 0, -1, 0);
	CODE(INTERPRETER + 0x200, LEAVE, LDP, 0xaa0903f4, 0x927cee9f, RET);
	t.regs[A64_SP] = SP(90);
	t.regs[9] = SP(100);
	for (__u32 i = 2; i < 5; i++) {
		if (i == 3)
			t.regs[20] = SP(100);
		if (i == 4)
			t.regs[A64_SP] = SP(100);
		walk(INTERPRETER + 0x200 + 4 * i);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
		ASSERT_EQ(t.walk.regs[19], 0x1000);
	}
}

/* stp x29,x30,[sp,#-16]!; mov x29,sp; sub sp,sp,#160; str x0,[sp]; str x19,[sp,#16]; ... */
TEST(an_upcall)
{
	__u64 stub;

	set_up_arm64();
	stub = add_blob("upcall_stub", 512, 22, -1, 0);
	CODE(stub, STP, MOV_FP, 0xd10283ff, 0xf90003e0, 0xf9000bf3, 0xf9000ff4, 0xf90013f5);
	CODE(stub + 0x80, BLR_8);
	/* The caller was called by it. */
	t.stack[103] = stub + 0x84;
	t.stack[102] = SP(124);
	t.stack[124] = SP(900);
	t.stack[125] = NATIVE + 0x11;
	for (__u32 i = 0; i < 10; i++)
		t.stack[104 + 2 + i] = 0x2000 + i;
	CODE(leaf + 0x80, RET);
	ASSERT_EQ(walk(leaf + 0x80), STOP_FILE_UNREADABLE);
	ASSERT_EQ(t.walk.nr_frames, 4);
	ASSERT_BLOB(2, HOTSPOT_STUB, stub,
		    hotspot_stub_check(*(__u64 *)at(stub - HEADER, 8), HEADER + 512), 0x84);
	ASSERT_EQ(t.walk.regs[19], 0x2000);
	ASSERT_EQ(t.walk.regs[28], 0x2009);
	ASSERT_EQ(t.walk.regs[A64_SP], SP(126));
	ASSERT_EQ(*frame(3), FRAME(RUNTIME_NATIVE, 0, NATIVE + 0x10));
}
