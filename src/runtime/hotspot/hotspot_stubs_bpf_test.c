// SPDX-License-Identifier: Apache-2.0
/* HotSpot's step over a JVM that is made up: what it reads, and stubs that call Java or are called
 * by it in ways of their own. */
#include "runtime/hotspot/test_hotspot_walk.h"

/* 20 nmethods that call one another, the first of all called by native code. */
static void set_up_chain(__u64 code[20])
{
	set_up();
	for (__u32 i = 0; i < 20; i++)
		code[i] = add_blob(i % 2 ? "nmethod" : "native nmethod", 256, 4, 16, 100 + i);
	/* As attach() finds them. */
	memcpy(&t.record.name_native, at(code[0] - HEADER, 8), 8);
	memcpy(&t.record.name_nmethod, at(code[1] - HEADER, 8), 8);
	for (__u32 i = 0; i < 20; i++) {
		memcpy(at(code[i] - HEADER, 8),
		       i % 2 ? &t.record.name_nmethod : &t.record.name_native, 8);
		t.stack[100 + 4 * i + 3] = code[i + 1 < 20 ? i + 1 : 0] + 0xa0;
	}
	t.stack[100 + 4 * 19 + 3] = t.record.call_stub_return;
	t.stack[100 + 4 * 19 + 2] = SP(200);
	call_stub_at(200);
	t.regs[X86_RSP] = SP(100);
}

/* What walks cost is reads: two a compiled frame, none if it is of the same method. */
TEST(compiled_frames_take_two_reads)
{
	__u64 code[20];

	set_up_chain(code);
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	/* And the code around the pc, and what is the call stub's. */
	ASSERT_EQ(t.nr_reads, 2 * 20 + 1 + 5);
	for (__u32 i = 0; i < 19; i++)
		t.stack[100 + 4 * i + 3] = code[0] + 0xa0;
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_EQ(t.nr_reads, 2 + 1 + 5);
}

/* Callers can be proved. */
static void set_up_known(__u64 code[20])
{
	set_up_chain(code);
	t.record.proof_size = BLOCK_HEADER + 32;
	t.record.proof_used = 8;
	t.record.proof_name = BLOCK_HEADER;
	t.record.proof_id = BLOCK_HEADER + 24;
	for (__u32 i = 0; i < 20; i++)
		put(code[i] - HEADER - BLOCK_HEADER + 8, "\1", 1);
	put(t.call_stub - HEADER - BLOCK_HEADER + 8, "\1", 1);
}

/* Where a walk finds the callers that an earlier one found, one read proves each. */
TEST(callers_that_are_known_take_one_read)
{
	struct cached_rule *callers = calloc(CALLER_CACHE_ENTRIES, sizeof(*callers));
	__u64 code[20], block, stub;

	ASSERT_PTR_NONNULL(callers);
	set_up_known(code);
	stub = t.call_stub - HEADER;
	t.callers = callers;
	for (__u32 round = 0; round < 3; round++) {
		ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
		for (__u32 i = 1; i < 20; i++)
			ASSERT_BLOB(i, i % 2 ? HOTSPOT_COMPILED : HOTSPOT_NATIVE, code[i], 100 + i,
				    0xa0);
		ASSERT_EQ(t.nr_reads, (round ? 2 + 19 : 2 * 20) + 1 + (round ? 1 : 5));
	}
	/* The stub's blob became a larger one. */
	put_4(stub + 8, HEADER + 260);
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_EQ(t.nr_reads, 2 + 19 + 1 + 1 + 5);
	memcpy(&block, at(stub, 8), 8);
	ASSERT_BLOB(20, HOTSPOT_STUB, t.call_stub, hotspot_stub_check(block, HEADER + 260), 0x80);
	/* It is used no more. */
	put(stub - BLOCK_HEADER + 8, "\0", 1);
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_EQ(t.nr_reads, 2 + 19 + 1 + 1 + 5);
	/* Another nmethod at the same address, also one of the other kind. */
	put_4(code[5] - HEADER + 24, 555);
	put_8(code[6] - HEADER, t.record.name_nmethod);
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_BLOB(5, HOTSPOT_COMPILED, code[5], 555, 0xa0);
	ASSERT_BLOB(6, HOTSPOT_COMPILED, code[6], 106, 0xa0);
	/* One that was freed, in whose place another begins behind it. */
	block = code[7] - HEADER - BLOCK_HEADER;
	put(block + SEGMENT, at(block, BLOCK_HEADER + HEADER), BLOCK_HEADER + HEADER);
	put_4(block + SEGMENT + BLOCK_HEADER + 24, 777);
	put(block + 8, "\0", 1);
	t.segmap[(block - HEAP) / SEGMENT + 1] = 0;
	t.segmap[(block - HEAP) / SEGMENT + 2] = 1;
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_BLOB(7, HOTSPOT_COMPILED, code[7] + SEGMENT, 777, 0xa0 - SEGMENT);
	free(callers);
}

/*
 * Where a number says that no VM operation has ended since, the callers that were proved are where
 * they were, and one read is enough for all of them.
 */
TEST(known_callers_take_no_read_while_nothing_was_freed)
{
	struct cached_rule *callers = calloc(CALLER_CACHE_ENTRIES, sizeof(*callers));
	__u64 code[20];

	ASSERT_PTR_NONNULL(callers);
	set_up_known(code);
	t.record.operations = OPERATIONS;
	t.callers = callers;
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	/* Proved first, then known: of what a walk was the first to find it is not said. */
	for (__u32 round = 0; round < 3; round++) {
		ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
		for (__u32 i = 1; i < 20; i++)
			ASSERT_BLOB(i, i % 2 ? HOTSPOT_COMPILED : HOTSPOT_NATIVE, code[i], 100 + i,
				    0xa0);
		ASSERT_EQ(t.nr_reads, 2 + 1 + 1 + (round ? 0 : 19) + 1);
	}
	/* Once the number is another, another nmethod in the place of one is found. */
	put_4(code[5] - HEADER + 24, 555);
	put_8(OPERATIONS, 1234567);
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_BLOB(5, HOTSPOT_COMPILED, code[5], 555, 0xa0);
	/* A number that cannot be read says nothing. */
	t.record.operations = META - 8;
	put_4(code[5] - HEADER + 24, 557);
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_BLOB(5, HOTSPOT_COMPILED, code[5], 557, 0xa0);
	free(callers);
}

TEST(a_recursive_interpreted_method_is_read_once)
{
	set_up();
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(120);
	for (__u32 i = 0; i < 10; i++)
		interpreted_at(120 + 20 * i, 124 + 20 * i, SP(140 + 20 * i), INTERPRETER + 0x500,
			       i);
	interpreted_at(320, 324, SP(400), t.record.call_stub_return, 10);
	call_stub_at(400);
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 13);
	for (__u32 i = 0; i <= 10; i++)
		ASSERT_METHOD(i, i);
	/* The method's six, the code around the pc, and what is the call stub's. */
	ASSERT_EQ(t.nr_reads, 6 + 1 + 5);
}

/* Another method of the same class, whose Method lies behind its ConstMethod, as they mostly do. */
TEST(methods_of_one_class_share_its_reads)
{
	const __u64 const_method = META + 0x740, method = META + 0x790;
	__u32 cookies[3];

	set_up();
	put(const_method, at(CONST_METHOD, 64), 64);
	put_4(const_method + 32, 24 | NAME_INDEX << 16);
	put_8(method + 8, const_method);
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(120);
	for (__u32 i = 0; i < 3; i++)
		interpreted_at(120 + 20 * i, 124 + 20 * i, SP(140 + 20 * i), INTERPRETER + 0x500,
			       i);
	t.stack[140 - 3] = method;
	t.stack[140 - t.record.interpreter_bcp / 8] = const_method + 48 + 7;
	t.stack[161] = t.record.call_stub_return;
	t.stack[160] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 5);
	ASSERT_METHOD(0, 0);
	ASSERT_METHOD(2, 2);
	ASSERT_EQ(HOTSPOT_FRAME_ADDRESS(FRAME_DATA(frame(1)[0])), method);
	ASSERT_EQ(HOTSPOT_WORD_WHERE(frame(1)[1]), 7);
	ASSERT_EQ(t.nr_reads, 6 + 1 + 2 + 1 + 5);
	/* It is the same one if it is read alone. */
	for (__u32 i = 0; i < 3; i++)
		cookies[i] = HOTSPOT_WORD_CHECK(frame(i)[1]);
	for (__u32 i = 0; i < 3; i++)
		t.stack[120 + 20 * i - 3] = method;
	t.stack[120 - t.record.interpreter_bcp / 8] = 0;
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 5);
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(0)[1]), cookies[1]);
	ASSERT(cookies[0] != cookies[1]);
	ASSERT_EQ(t.nr_reads, 6 + 1 + 5);
}

/* Names of methods are read with what is around them, which may not be there. */
TEST(constants_that_end_where_memory_does)
{
	const __u64 constants = META + META_SIZE - 48 - 8 * (NAME_INDEX + 1);
	__u32 nr_reads;

	set_up();
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(120);
	interpreted_at(120, 124, SP(200), t.record.call_stub_return, 0);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 3);
	ASSERT_METHOD(0, 0);
	nr_reads = t.nr_reads;
	put_8(CONST_METHOD + 8, constants);
	put_8(constants + 24, HOLDER);
	put_8(constants + 48 + 8 * NAME_INDEX, METHOD_NAME);
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 3);
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(0)[1]), cookie_of(constants));
	ASSERT_EQ(t.nr_reads, nr_reads + 1);
}

/* A native method that is interpreted, whose few instructions are all that there is yet. */
TEST(a_blob_at_the_end_of_a_touched_page)
{
	__u64 blob;

	set_up();
	t.record.header_size = 256; /* an nmethod's */
	t.missing = HEAP + 0x2000;
	t.next_segment = 0x2000 / SEGMENT - 1;
	blob = add_blob("native signature handlers", 2048, 0, -1, 0);
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(120);
	t.stack[100] = INTERPRETER + 0x500;
	interpreted_at(120, 124, SP(200), t.record.call_stub_return, 3);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(blob + 8), 4);
	ASSERT_METHOD(1, 3);
}

/* Calls go by here until the next safepoint (icBuffer_x86.cpp, up to 22): mov $imm64,%rax; jmp. It
 * is filled in a bit at a time. */
TEST(the_last_stub_of_a_touched_page)
{
	__u64 buffer, stub, caller;

	set_up();
	caller = add_blob("nmethod", 256, 6, 16, 78);
	buffer = add_blob("InlineCacheBuffer", 8192, 0, -1, 0);
	t.missing = (buffer + 4096) & ~4095ull;
	stub = t.missing - 16;
	put(stub, "\x48\xb8\1\2\3\4\5\6\7\0\xe9\xff\xff\0\0", 15);
	put(caller + 0x3b, "\xe8", 1);
	put_4(caller + 0x3c, (__u32)(stub - caller - 0x40));
	t.regs[X86_RSP] = SP(103);
	t.stack[103] = caller + 0x40;
	t.stack[109] = t.record.call_stub_return;
	t.stack[108] = SP(200);
	call_stub_at(200);
	for (__u32 i = 0; i <= 10; i += 10) {
		ASSERT_TO_NATIVE(walk(stub + i), 4);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	}
}

TEST(the_barrier_at_an_entry)
{
	__u64 stubs, caller;
	__u32 d32;

	set_up();
	stubs = add_blob("StubRoutines (2)", 512, 0, -1, 0);
	caller = add_blob("nmethod", 256, 6, 48, 78);
	d32 = (__u32)(stubs + 0x80 - (caller + 0x28));
	put(caller + 0x23, "\xe8", 1);
	put_4(caller + 0x24, d32);
	/* push $-1; push %rbp; mov %rsp,%rbp; and registers below, many */
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(150);
	t.stack[150] = SP(200);
	t.stack[151] = ~0ull;
	t.stack[152] = caller + 0x28;
	t.stack[158] = t.record.call_stub_return;
	t.stack[157] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(stubs + 0x90), 4);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x28);
	t.stack[151] = 0;
	ASSERT_EQ(walk(stubs + 0x90), STOP_RUNTIME_UNREADABLE);
}

TEST(arguments_that_were_pushed_for_a_stub)
{
	__u64 stub, caller;

	set_up();
	stub = add_blob("C1 Runtime slow_subtype_check_blob", 256, 2, -1, 0);
	caller = add_blob("nmethod", 256, 6, 16, 78);
	put(caller + 0x3b, "\xe8", 1);
	put_4(caller + 0x3c, (__u32)(stub - (caller + 0x40)));
	put(caller + 0x40, "\x5e\x41\x58", 3); /* pop %rsi; pop %r8 */
	t.regs[X86_RSP] = SP(100);
	t.stack[104] = caller + 0x40;
	t.stack[112] = t.record.call_stub_return; /* 6 words from 107 on */
	t.stack[111] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(stub + 0x30), 4);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
}

/*
 * C1's handle_exception_from_callee, called by a method of 6 words from 106 on, which an
 * interpreted one called. At `pc`, or, if that is 0, in native code's callee, with the stack
 * pointer at `sp`.
 */
static int thrown_from_callee(__u32 pc, __u32 sp, __u64 fp, __u64 *caller)
{
	/* push %rbp; mov %rsp,%rbp; mov %rax,d32(%r15); and $-16,%rsp; call; mov %rax,8(%rbp);
	 * leave; pop %rcx; jmp *%rcx */
	static const char code[] = "\x55\x48\x8b\xec\x49\x89\x87\0\x04\0\0\x48\x83\xe4\xf0"
				   "\xe8\0\0\0\0\x48\x89\x45\x08\xc9\x59\xff\xe1";
	__u64 stub, native;

	set_up();
	stub = add_blob("handle_exception_from_callee Runtime1 stub", 256, 2, -1, 0);
	native = add_blob("native nmethod", 256, 2, -1, 79);
	*caller = add_blob("nmethod", 256, 6, 16, 78);
	put(stub, code, sizeof(code) - 1);
	/* Its caller's link leads to an interpreted method, as that of what calls may do. */
	t.stack[104] = SP(150);
	t.stack[105] = *caller + 0x40;
	t.stack[110] = SP(150);
	t.stack[111] = INTERPRETER + 0x500;
	interpreted_at(150, 154, SP(200), t.record.call_stub_return, 7);
	call_stub_at(200);
	t.regs[X86_RBP] = fp;
	t.regs[X86_RCX] = *caller + 0x40;
	t.regs[X86_RSP] = SP(sp);
	if (pc)
		return walk(stub + pc - 1);
	/* What it has called returns to it: here, a method whose frame is two words. */
	t.stack[sp - 2] = fp;
	t.stack[sp - 1] = stub + 20;
	t.regs[X86_RSP] = SP(sp - 2);
	return walk(native + 0x30);
}

TEST(an_exception_of_a_callee)
{
	static const struct {
		__u32 pc, sp;
		__u64 fp;
	} at[] = {
		{ 1, 105, SP(150) },  { 2, 104, SP(150) },  { 5, 104, SP(104) },
		{ 12, 104, SP(104) }, { 16, 103, SP(104) }, { 21, 103, SP(104) },
		{ 25, 103, SP(104) }, { 26, 105, SP(150) }, { 27, 106, SP(150) },
	};
	__u64 caller, deopt;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		ASSERT_TO_NATIVE(thrown_from_callee(at[i].pc, at[i].sp, at[i].fp, &caller), 5);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
		ASSERT_METHOD(2, 7);
	}
	/* It calls: its stack pointer was aligned, or not. */
	for (__u32 sp = 103; sp <= 104; sp++) {
		ASSERT_TO_NATIVE(thrown_from_callee(0, sp, SP(104), &caller), 6);
		ASSERT_BLOB(2, HOTSPOT_COMPILED, caller, 78, 0x40);
		ASSERT_METHOD(3, 7);
	}
	/* It goes on in the blob that takes its caller's frame away, or nowhere. */
	thrown_from_callee(5, 104, SP(104), &caller);
	deopt = add_blob("DeoptimizationBlob", 256, 6, -1, 0);
	t.stack[105] = deopt + 0x40;
	ASSERT_EQ(walk(caller - 2 * 384 + 26), STOP_RUNTIME_UNREADABLE);
}

/* A blob has made interpreted frames of a compiled one, and has called native code which fills them
 * in: what was there before is not believed. */
TEST(frames_that_a_deoptimization_fills_in)
{
	static const char *const blobs[] = { "DeoptimizationBlob", "UncommonTrapBlob" };

	for (__u32 i = 0; i < 8; i++) {
		__u32 aligned = i & 1, unfilled = i >> 2 & 1, fp = 104 + aligned;
		__u64 blob, leaf;

		set_up();
		blob = add_blob(blobs[i >> 1 & 1], 256, 6, -1, 0);
		put(blob + 0x3b, "\xe8\x00\x00\x00\x01", 5);
		leaf = add_blob("nmethod", 256, 4, 16, 77);
		t.regs[X86_RSP] = SP(96);
		t.stack[99] = blob + 0x40;
		t.stack[98] = SP(fp);
		t.stack[fp] = SP(120);
		t.stack[fp + 1] = INTERPRETER + 0x500;
		interpreted_at(120, 124, SP(140), INTERPRETER + 0x500, 3);
		interpreted_at(140, 144, SP(160), INTERPRETER + 0x500, 7);
		interpreted_at(160, 164, SP(200), t.record.call_stub_return, 9);
		t.stack[118] = unfilled ? 0 : SP(110);
		t.stack[138] = unfilled ? 0 : SP(130);
		t.stack[158] = SP(150);
		call_stub_at(200);
		ASSERT_TO_NATIVE(walk(leaf + 0x30), unfilled ? 6 : 7);
		if (unfilled) {
			ASSERT_EQ(*frame(2), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_UNREADABLE));
			ASSERT_METHOD(3, HOTSPOT_NO_BCI);
		} else {
			ASSERT_METHOD(2, HOTSPOT_NO_BCI);
			ASSERT_METHOD(3, 7);
			ASSERT_METHOD(4, 9);
		}
	}
}

/* Out of a stub to native code that seems to have called it: such a walk has no end but one that
 * unwind information knows. */
TEST(a_guess_is_not_complete)
{
	__u64 stub;

	set_up();
	stub = add_blob("jni_fast_GetIntField", 256, 0, -1, 0);
	put(NATIVE + 0xe, "\xff\x50\x20", 3); /* call *0x20(%rax) */
	t.regs[X86_RSP] = SP(100);
	t.stack[100] = NATIVE + 0x11;
	t.stack[103] = 0;
	t.anonymous = true;
	t.regs[X86_RBP] = SP(102);
	ASSERT_EQ(walk(stub + 0x30), STOP_RUNTIME_UNREADABLE);
	ASSERT_EQ(t.walk.nr_frames, 2);
	t.regs[X86_RBP] = 0;
	ASSERT_EQ(walk(stub + 0x30), STOP_FRAME_POINTER);
	t.anonymous = false;
	ASSERT_EQ(walk(stub + 0x30), STOP_FILE_UNREADABLE);
}

/* Native code calls Java by a pointer: walks end there, with the registers that it had. */
static void check_upcall(const char *code, size_t size, __u32 pc, bool interrupted, bool known,
			 __u32 frame, __u32 saved)
{
	static const __u8 regs[] = { X86_RBX, X86_R12, X86_R13, X86_R14, X86_R15 };
	__u64 stub, leaf;

	set_up();
	stub = add_blob("upcall_stub_(Ljava/lang/Object;)V", 512, 0, -1, 0);
	leaf = add_blob("nmethod", 256, 4, 16, 77);
	put(stub, code, size);
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(104 + frame);
	if (interrupted)
		t.regs[X86_RSP] = SP(104);
	for (__u32 i = 0; i < 5; i++) {
		t.regs[regs[i]] = 0x2000 + i;
		t.stack[104 + saved + i] = 0x1000 + i;
	}
	t.stack[103] = stub + pc;
	t.stack[102] = SP(104 + frame);
	t.stack[104 + frame] = SP(900);
	t.stack[105 + frame] = NATIVE + 0x11;
	ASSERT_EQ(walk(interrupted ? stub + pc : leaf + 0x30), STOP_FILE_UNREADABLE);
	ASSERT_EQ(t.walk.nr_frames, interrupted ? 2 : 3);
	ASSERT_EQ(t.walk.regs[X86_RBP], SP(900));
	ASSERT_EQ(t.walk.regs[X86_RSP], SP(106 + frame));
	for (__u32 i = 0; i < 5; i++) {
		ASSERT_EQ(!!(t.walk.valid & 1u << regs[i]), known);
		if (known)
			ASSERT_EQ(t.walk.regs[regs[i]],
				  (interrupted && pc < 0x20 ? 0x2000 : 0x1000) + i);
	}
}

TEST(upcalls)
{
	/* push %rbp; mov %rsp,%rbp; sub $0xa0,%rsp; mov %rdi,0x40(%rsp); mov %rbx,0x60(%rsp);
	 * mov %r12,0x68(%rsp); ... */
	static const char near[] = "\x55\x48\x8b\xec\x48\x81\xec\xa0\0\0\0\x48\x89\x7c\x24\x40"
				   "\x48\x89\x5c\x24\x60\x4c\x89\x64\x24\x68";
	/* With sub $0x70 and from 0 on; with sub $0x140, from 0x7c on: the next is far */
	static const char none[] = "\x55\x48\x8b\xec\x48\x83\xec\x70\x48\x89\x1c\x24"
				   "\x4c\x89\x64\x24\x08";
	static const char far[] = "\x55\x48\x8b\xec\x48\x81\xec\x40\x01\0\0"
				  "\x48\x89\x9c\x24\x80\0\0\0\x4c\x89\xa4\x24\x88\0\0\0";

	check_upcall(near, sizeof(near), 0xf0, false, true, 20, 12);
	check_upcall(none, sizeof(none), 0xf0, false, true, 14, 0);
	check_upcall(far, sizeof(far), 0xf0, false, true, 40, 16);
	check_upcall(near, sizeof(near), 0xf0, true, true, 20, 12);
	check_upcall(near, sizeof(near), 0x10, true, true, 20, 12);
	/* What is not understood loses them. */
	check_upcall(near, 20, 0xf0, false, false, 20, 12);
}

/* A deoptimization's blob, interrupted at `behind`, with its frame pointer so many words above the
 * stack pointer, -1: it is still its caller's. */
static int deoptimize(__u64 behind, int sp, int pushed)
{
	/* push %rbp; mov %rsp,%rbp; pushf; sub $8,%rsp; ...; leave; ret */
	static const char begin[] = "\x55\x48\x8b\xec\x9c\x48\x83\xec\x08\x48\x89\x44\x24\x78";
	__u64 blob, caller;

	set_up();
	blob = add_blob("DeoptimizationBlob", 512, 20, -1, 0);
	caller = add_blob("nmethod", 256, 6, 16, 78);
	put(blob + 0x40, begin, sizeof(begin) - 1);
	put(blob + 0x100, "\xc9\xc3", 2);
	t.regs[X86_RSP] = SP(sp);
	t.regs[X86_RBP] = pushed < 0 ? SP(150) : SP(sp + pushed);
	t.stack[105] = SP(150);
	t.stack[106] = caller + 0x40;
	t.stack[112] = t.record.call_stub_return;
	t.stack[111] = SP(200);
	call_stub_at(200);
	return walk(blob + 0x40 + behind);
}

TEST(a_deoptimization_between_its_calls)
{
	static const struct {
		__u32 behind;
		int sp, pushed;
	} places[] = {
		{ 0, 106, -1 },	  { 1, 105, -1 },   { 4, 105, 0 },
		{ 5, 104, 1 },	  { 9, 103, 2 },    { 14, 103, 2 },
		{ 0x80, 87, 18 }, { 0x80, 86, 19 }, { 0xc1, 106, -1 },
	};

	for (__u32 i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		ASSERT_TO_NATIVE(deoptimize(places[i].behind, places[i].sp, places[i].pushed), 4);
		ASSERT_EQ(HOTSPOT_FRAME_KIND(FRAME_DATA(frame(1)[0])), HOTSPOT_COMPILED);
	}
	/* Where it makes frames, what the frame pointer leads to is not told. */
	ASSERT_EQ(deoptimize(0x80, 103, 2), STOP_RUNTIME_UNREADABLE);
}

/* What both blobs have where they take the compiled frame away and make others: JDK 17 and 25. */
static const __u8 making[] = {
	0x8b, 0x0f,			    /* mov (%rdi),%ecx */
	0x48, 0x03, 0xe1,		    /* add %rcx,%rsp */
	0x48, 0x8b, 0x6f, 0x30,		    /* mov 0x30(%rdi),%rbp */
	0x48, 0x8b, 0x4f, 0x18,		    /* mov 0x18(%rdi),%rcx */
	0x48, 0x83, 0xc4, 0x08,		    /* add $8,%rsp */
	0x48, 0x8b, 0x77, 0x10,		    /* mov 0x10(%rdi),%rsi */
	0x8b, 0x57, 0x08,		    /* mov 8(%rdi),%edx */
	0x4c, 0x8b, 0xc4,		    /* mov %rsp,%r8 */
	0x8b, 0x5f, 0x04,		    /* mov 4(%rdi),%ebx */
	0x48, 0x2b, 0xe3,		    /* sub %rbx,%rsp */
	0x48, 0x8b, 0x1e,		    /* mov (%rsi),%rbx */
	0x48, 0x83, 0xeb, 0x10,		    /* sub $16,%rbx */
	0x48, 0xff, 0x31,		    /* push (%rcx) */
	0x55,				    /* push %rbp */
	0x48, 0x8b, 0xec,		    /* mov %rsp,%rbp */
	0x48, 0x2b, 0xe3,		    /* sub %rbx,%rsp */
	0x4c, 0x89, 0x45, 0xf8,		    /* mov %r8,-8(%rbp) */
	0x48, 0xc7, 0x45, 0xf0, 0, 0, 0, 0, /* movq $0,-16(%rbp) */
	0x4c, 0x8b, 0xc4,		    /* mov %rsp,%r8 */
	0x48, 0x83, 0xc6, 0x08,		    /* add $8,%rsi */
	0x48, 0x83, 0xc1, 0x08,		    /* add $8,%rcx */
	0xff, 0xca,			    /* dec %edx */
	0x75, 0xd4,			    /* jne */
	0x48, 0xff, 0x31,		    /* push (%rcx) */
	0x55,				    /* push %rbp */
	0x48, 0x8b, 0xec,		    /* mov %rsp,%rbp */
	0x48, 0x83, 0xec, 0x00,		    /* sub $0,%rsp */
};
enum {
	UNROLL_BLOCK = META + 0x2000,
	UNROLL_PCS = META + 0x2100,
	COMPILED_WORDS = 60, /* of the frame that is taken away */
	MAKING_AT = 0x41,
	MAKING_LOOP = 33,
};

/* The next frame that has none of its own yet returns here. */
static __u64 deopt_entry(__u32 i)
{
	return INTERPRETER + 0x100 + i;
}

static void walk_making(__u64 blob, __u32 behind, __u32 skeletons, bool gone)
{
	int stop = walk(blob + MAKING_AT + behind);

	/* The stub; a note for what is missing, or the frame; its caller; the call stub; native. */
	if (stop != STOP_FILE_UNREADABLE || t.walk.nr_frames != 5)
		FAIL("at %u, with %u frames made: %d, %u frames", behind, skeletons, stop,
		     t.walk.nr_frames);
	if (gone)
		ASSERT_EQ(*frame(1), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_UNREADABLE));
	else
		ASSERT_EQ(HOTSPOT_FRAME_KIND(FRAME_DATA(frame(1)[0])), HOTSPOT_COMPILED);
	ASSERT_EQ(HOTSPOT_FRAME_KIND(FRAME_DATA(frame(2)[0])), HOTSPOT_COMPILED);
	ASSERT_EQ(HOTSPOT_WORD_WHERE(frame(2)[1]), 0x48);
	ASSERT_EQ(HOTSPOT_FRAME_ADDRESS(FRAME_DATA(*frame(3))), t.call_stub - HEADER);
}

/* The registers and the stack of that code, before each instruction. */
struct machine {
	__u64 sp, fp, rcx, r8;
};

static void push_word(struct machine *m, __u64 value)
{
	m->sp -= 8;
	t.stack[(m->sp - STACK) / 8] = value;
}

/* Runs the instruction at `place`; *made: how many frames it has made. */
static void execute(struct machine *m, __u32 place, __u32 *made)
{
	__u64 pushed;

	switch (place) {
	case 2:
		m->sp += 8 * COMPILED_WORDS;
		break;
	case 5:
		m->fp = SP(300);
		break;
	case 9:
		m->rcx = UNROLL_PCS;
		break;
	case 13:
		m->sp += 8;
		break;
	case 24:
	case 62:
		m->r8 = m->sp;
		break;
	case 30:
		m->sp -= 16;
		break;
	case 40:
	case 77:
		memcpy(&pushed, at(m->rcx, 8), 8);
		push_word(m, pushed);
		break;
	case 43:
	case 80:
		push_word(m, m->fp);
		break;
	case 44:
	case 81:
		m->fp = m->sp;
		break;
	case 47:
		m->sp -= 80;
		break;
	case 50:
		t.stack[(m->fp - STACK) / 8 - 1] = m->r8;
		break;
	case 54:
		t.stack[(m->fp - STACK) / 8 - 2] = 0;
		break;
	case 69:
		m->rcx += 8;
		(*made)++;
		break;
	}
}

/* Interrupted at each instruction, while three frames are made of one. */
static void make_frames(const char *name, int frame_size)
{
	static const __u8 lengths[] = { 2, 3, 4, 4, 4, 4, 3, 3, 3, 3, 3, 4, 3, 1,
					3, 3, 4, 8, 3, 4, 4, 2, 2, 3, 1, 3, 4 };
	__u64 blob, compiled, caller;
	__u32 place, i, made = 0;
	struct machine m = { 0 };

	set_up();
	blob = add_blob(name, 512, frame_size, -1, 0);
	compiled = add_blob("nmethod", 256, COMPILED_WORDS, 16, 77);
	caller = add_blob("nmethod", 256, 6, 16, 78);
	put(blob + MAKING_AT, making, sizeof(making));
	put_8(UNROLL_BLOCK + 0x30, SP(300));
	put_8(UNROLL_PCS, caller + 0x48);
	for (i = 1; i <= 3; i++)
		put_8(UNROLL_PCS + 8 * i, deopt_entry(i));
	/* Its return address; its frame; that of its caller. */
	m.sp = SP(100);
	m.fp = SP(99);
	t.stack[100] = compiled + 0x40;
	t.stack[99 + COMPILED_WORDS] = SP(300);
	t.stack[100 + COMPILED_WORDS] = caller + 0x48;
	t.stack[105 + COMPILED_WORDS] = SP(300);
	t.stack[106 + COMPILED_WORDS] = t.record.call_stub_return;
	call_stub_at(300);
	for (place = 0, i = 0; place < sizeof(making); place += lengths[i++]) {
		t.regs[X86_RSP] = m.sp;
		t.regs[X86_RBP] = m.fp;
		t.regs[X86_RCX] = m.rcx;
		t.regs[X86_R8] = m.r8;
		t.regs[X86_RDI] = UNROLL_BLOCK;
		walk_making(blob, place, made, place >= 5);
		execute(&m, place, &made);
		if (making[place] == 0x75 && made < 3) {
			i = 9; /* the one before the loop */
			place = MAKING_LOOP - lengths[i];
		}
	}
	ASSERT_EQ(made, 3);
	/* Behind it the blob has a frame again. */
	t.regs[X86_RSP] = m.sp - 8 * ((__u64)frame_size - 2);
	t.regs[X86_RBP] = m.fp;
	walk_making(blob, sizeof(making), made, true);
}

TEST(frames_that_a_deoptimization_makes)
{
	make_frames("DeoptimizationBlob", 20);
	make_frames("UncommonTrapBlob", 2);
}

/* Its own frame: sub $8,%rsp; mov %rbp,(%rsp); ...; add $8,%rsp; ...; leave; ret */
TEST(an_uncommon_trap_between_its_calls)
{
	static const struct {
		__u32 behind;
		int sp, fp;
	} places[] = {
		{ 0, 106, 150 },    { 4, 105, 150 },	{ 8, 105, 150 },    { 0x3d, 105, 150 },
		{ 0x9c, 105, 105 }, { 0xbf, 104, 105 }, { 0xf1, 106, 150 },
	};

	for (__u32 i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		__u64 blob, caller;

		set_up();
		blob = add_blob("UncommonTrapBlob", 512, 2, -1, 0);
		caller = add_blob("nmethod", 256, 6, 16, 78);
		put(blob, "\x48\x83\xec\x08\x48\x89\x2c\x24", 8);
		put(blob + MAKING_AT, making, sizeof(making));
		put(blob + 0xf0, "\xc9\xc3", 2);
		t.regs[X86_RSP] = SP(places[i].sp);
		t.regs[X86_RBP] = SP(places[i].fp);
		t.stack[105] = SP(150);
		t.stack[106] = caller + 0x40;
		t.stack[112] = t.record.call_stub_return;
		t.stack[111] = SP(200);
		call_stub_at(200);
		ASSERT_TO_NATIVE(walk(blob + places[i].behind), 4);
		ASSERT_EQ(HOTSPOT_WORD_WHERE(frame(1)[1]), 0x40);
	}
}

/* A caller whose frame pointer is as far away as the blob's own would be. */
TEST(a_deoptimization_that_begins_has_not_its_caller_s_frame)
{
	__u64 blob, caller;

	set_up();
	blob = add_blob("DeoptimizationBlob", 512, 20, -1, 0);
	caller = add_blob("nmethod", 256, 6, 16, 78);
	put(blob, "\x55\x48\x8b\xec\x9c", 5);
	t.regs[X86_RSP] = SP(106);
	t.regs[X86_RBP] = SP(124);
	t.stack[106] = caller + 0x40;
	t.stack[111] = SP(200);
	t.stack[112] = t.record.call_stub_return;
	t.stack[124] = SP(200);
	t.stack[125] = t.record.call_stub_return;
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(blob), 4);
	ASSERT_EQ(HOTSPOT_FRAME_KIND(FRAME_DATA(frame(1)[0])), HOTSPOT_COMPILED);
	/* mov %rdx,d32(%r15); mov %rax,d32(%r15); push $0: thrown at rdx. */
	put(blob + 0x80, "\x49\x89\x97\xd8\3\0\0\x49\x89\x87\xd0\3\0\0\x68\0\0\0\0", 19);
	t.regs[X86_RDX] = caller + 0x40;
	for (__u32 at_rdx = 0; at_rdx <= 7; at_rdx += 7) {
		t.stack[106 + 4] = SP(200);
		t.stack[106 + 5] = t.record.call_stub_return;
		ASSERT_TO_NATIVE(walk(blob + 0x80 + at_rdx), 4);
		ASSERT_EQ(HOTSPOT_WORD_WHERE(frame(1)[1]), 0x40);
	}
}

/* Two blobs that call each other, with frames of four words, until the stack's end. */
static void call_each_other(__u64 a, __u64 b)
{
	t.max_frames = SAMPLE_FRAMES_MAX;
	t.regs[X86_RSP] = SP(0);
	for (__u32 word = 0, i = 0; word + 4 <= STACK_WORDS; word += 4, i++) {
		t.stack[word + 2] = SP(0);
		t.stack[word + 3] = i & 1 ? a : b;
	}
}

/* The segment map leads one segment back at a time, of code that is compiled, says its name. */
TEST(segments_without_end_cut_the_stack)
{
	enum { SEGMENTS = 47 };
	__u64 blobs[2];

	set_up();
	for (__u32 i = 0; i < 2; i++) {
		__u32 first = t.next_segment;

		blobs[i] = add_blob("nmethod", SEGMENTS * SEGMENT, 4, 16, 77 + i);
		for (__u32 j = 1; j < SEGMENTS; j++)
			t.segmap[first + j] = 1;
		blobs[i] += SEGMENTS * SEGMENT - 2 * SEGMENT;
	}
	call_each_other(blobs[0], blobs[1]);
	ASSERT_EQ(walk(blobs[0] + 1), STOP_TOO_MUCH_WORK);
	ASSERT(t.nr_reads < 2 * WALK_WORK_MAX);
}

/* Adapters without a frame call each other, each through code to be gone through up to a jump. */
TEST(code_that_is_gone_through_for_each_frame_cuts_the_stack)
{
	enum { NOPS = 180 };
	__u64 adapter;

	set_up();
	adapter = add_blob("I2C/C2I adapters", NOPS + 16, 0, 0, 0);
	memset(at(adapter, NOPS), 0x90, NOPS);
	put(adapter + NOPS, "\xe9\0\x10\0\0", 5);
	t.max_frames = SAMPLE_FRAMES_MAX;
	t.regs[X86_RSP] = SP(0);
	for (__u32 i = 0; i < STACK_WORDS; i++)
		t.stack[i] = adapter + 1;
	ASSERT_EQ(walk(adapter + 1), STOP_TOO_MUCH_WORK);
}
