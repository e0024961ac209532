// SPDX-License-Identifier: Apache-2.0
/* HotSpot's step over a JVM that is made up: what it reads, and stubs that call Java or are called
 * by it in ways of their own. */
#include "runtime/hotspot/test_hotspot_walk.h"

/* What walks cost is reads: two a compiled frame, none if it is of the same method. */
TEST(compiled_frames_take_two_reads)
{
	__u64 code[20];

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
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	/* And the code around the pc, and what is the call stub's. */
	ASSERT_EQ(t.nr_reads, 2 * 20 + 1 + 5);
	for (__u32 i = 0; i < 19; i++)
		t.stack[100 + 4 * i + 3] = code[0] + 0xa0;
	ASSERT_TO_NATIVE(walk(code[0] + 0xa0), 22);
	ASSERT_EQ(t.nr_reads, 2 + 1 + 5);
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
	/* The same with sub $0x70 and from 0 on; with sub $0x140, from 0x7c on: the next is far */
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
