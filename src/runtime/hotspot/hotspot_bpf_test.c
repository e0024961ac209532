// SPDX-License-Identifier: Apache-2.0
/* HotSpot's step over a JVM that is made up: frames of each kind, prologues and epilogues. */
#include "runtime/hotspot/test_hotspot_walk.h"

TEST(compiled_frames_down_to_native_code)
{
	__u64 leaf, caller;

	set_up();
	leaf = add_blob("nmethod", 256, 4, 16, 77);
	caller = add_blob("native nmethod", 256, 6, 16, 78);
	t.regs[X86_RSP] = SP(100);
	t.stack[103] = caller + 0x40;
	t.stack[102] = SP(500); /* rbp of no use between compiled frames */
	t.stack[109] = t.record.call_stub_return;
	t.stack[108] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 4);
	ASSERT_BLOB(0, HOTSPOT_COMPILED | HOTSPOT_INTERRUPTED, leaf, 77, 0x30);
	ASSERT_BLOB(1, HOTSPOT_NATIVE, caller, 78, 0x40);
	/* Native code has its registers back. */
	ASSERT_EQ(t.walk.regs[X86_RBX], 0x1000);
	ASSERT_EQ(t.walk.regs[X86_R15], 0x1004);
	ASSERT_EQ(t.walk.regs[X86_RBP], SP(900));
	ASSERT_EQ(t.walk.regs[X86_RSP], SP(202));
	ASSERT(t.walk.valid & 1u << X86_R12);
}

/* An nmethod with a frame of 6 words, interrupted `at` bytes behind the begin of these; `sp` words
 * above 100. Its caller is known if the frame was understood. */
static void check_leaf(const char *bytes, size_t size, size_t behind, __u32 code_at, int complete,
		       int sp)
{
	__u64 leaf, caller;

	set_up();
	leaf = add_blob("nmethod", 256, 6, complete, 77);
	caller = add_blob("nmethod", 256, 4, 16, 78);
	put(leaf + code_at, bytes, size);
	put(caller + 0x40 - 5, "\xe8\0\0\0\0", 5);
	t.regs[X86_RSP] = SP(100 + sp);
	/* rbp is the caller's own until it is pushed; then it lies at 104. */
	t.regs[X86_RBP] = 0xabcd;
	t.stack[104] = 0xabcd;
	t.stack[105] = caller + 0x40;
	t.stack[109] = t.record.call_stub_return;
	t.stack[108] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(leaf + code_at + behind), 4);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
}

TEST(compiled_code_that_builds_its_frame)
{
	/* mov %eax,-0x14000(%rsp); push %rbp; sub $0x20,%rsp; cmpl $1,0x20(%r15) */
	static const char bang[] =
		"\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x83\xec\x20\x41\x81\x7f\x20";
	/* push %rbp; mov %rsp,%rbp; sub $0x20,%rsp */
	static const char fp[] = "\x55\x48\x8b\xec\x48\x81\xec\x20\0\0\0\x90";
	/* sub $0x28,%rsp; mov %rbp,0x20(%rsp) */
	static const char plain[] = "\x48\x81\xec\x28\0\0\0\x48\x89\x6c\x24\x20\x90";

	check_leaf(bang, 16, 0, 8, 24, 5);
	check_leaf(bang, 16, 7, 8, 24, 5);
	check_leaf(bang, 16, 8, 8, 24, 4);
	check_leaf(bang, 16, 12, 8, 24, 0);
	check_leaf(fp, 12, 0, 8, 24, 5);
	check_leaf(fp, 12, 1, 8, 24, 4);
	check_leaf(fp, 12, 4, 8, 24, 4);
	check_leaf(fp, 12, 11, 8, 24, 0);
	check_leaf(plain, 13, 0, 8, 24, 5);
	check_leaf(plain, 13, 7, 8, 24, 0);
	check_leaf(plain, 13, 12, 8, 24, 0);
}

TEST(compiled_code_that_has_pushed_a_word)
{
	/* vmovdqu (%rdi,%rax),%ymm0 in the loop of String.compareTo's intrinsic */
	check_leaf("\xc5\xfe\x6f\x04\x07", 5, 0, 64, 16, -1);
	check_leaf("\x90", 1, 0, 64, 16, 0);
}

/*
 * String.indexOf's intrinsic has pushed so many words below a frame of 6, the last of them the
 * stack pointer that this has if `kept`; rcx has that, too. Where the return address would be if
 * nothing had been pushed stands one of a call that was before.
 */
static void check_search(int words, bool kept, size_t behind)
{
	/* push %rax; push %rsi; push %rdi; push %rcx; mov %rdi,%rbx; vpcmpestri $13,(%rbx),%xmm0 */
	static const char pushes[] = "\x50\x56\x57\x51\x48\x8b\xdf\xc4\xe3\x79\x61\x03\x0d";
	__u64 leaf, caller, before;

	set_up();
	leaf = add_blob("nmethod", 256, 6, 16, 77);
	caller = add_blob("nmethod", 256, 4, 16, 78);
	before = add_blob("nmethod", 256, 4, 16, 79);
	put(leaf + 64, pushes, sizeof(pushes) - 1);
	put(caller + 0x40 - 5, "\xe8\0\0\0\0", 5);
	put(before + 0x40 - 5, "\xe8\0\0\0\0", 5);
	t.regs[X86_RSP] = SP(100 - words);
	t.regs[X86_RCX] = SP(100);
	t.stack[104] = 0xabcd;
	t.stack[105 - words] = before + 0x40;
	t.stack[105] = caller + 0x40;
	if (kept)
		t.stack[100 - words] = SP(100);
	t.stack[109] = t.record.call_stub_return;
	t.stack[108] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(leaf + 64 + behind), 4);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
}

TEST(compiled_code_that_looks_for_a_string)
{
	check_search(0, false, 0);
	check_search(1, false, 1);
	check_search(2, false, 2);
	check_search(3, false, 3);
	check_search(4, true, 4);
	check_search(4, true, 7);
	/* One string, or both, were copied to the stack. */
	check_search(6, true, 7);
	check_search(8, true, 7);
	/* A constant is looked for. */
	check_search(1, true, 7);
	check_search(3, true, 7);
}

/* What such a search has left, in a frame that does not search: the other place looks as good. */
TEST(compiled_code_with_an_old_stack_pointer_in_its_frame)
{
	__u64 leaf, caller;

	set_up();
	leaf = add_blob("nmethod", 256, 6, 16, 77);
	caller = add_blob("nmethod", 256, 4, 16, 78);
	t.regs[X86_RSP] = SP(100);
	t.stack[100] = SP(104);
	t.stack[105] = caller + 0x40;
	t.stack[109] = t.record.call_stub_return;
	t.stack[108] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(leaf + 0x60), 4);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
}

TEST(compiled_code_that_takes_its_frame_down)
{
	/* add $0x20,%rsp; pop %rbp; cmp 0x388(%r15),%rsp; ja; ret */
	static const char poll[] =
		"\x48\x83\xc4\x20\x5d\x49\x3b\xa7\x88\x03\0\0\x0f\x87\x10\0\0\0\xc3";
	/* add; pop %rbp; mov 0x108(%r15),%r10; test %eax,(%r10); ret */
	static const char old[] = "\x48\x83\xc4\x20\x5d\x4d\x8b\x97\x08\x01\0\0\x41\x85\x02\xc3";
	/* add; pop %rbp; jmp */
	static const char jump[] = "\x48\x83\xc4\x20\x5d\xe9\x10\0\0\0";
	/* The poll's slow path: lea d32(%rip),%r10; mov %r10,0x388(%r15); jmp */
	static const char slow[] =
		"\x4c\x8d\x15\xf0\xff\xff\xff\x4d\x89\x97\x88\x03\0\0\xe9\0\0\0\0";
	/* leave; cmpq $0,8(%r15); jne; ret */
	static const char native[] = "\xc9\x49\x83\x7f\x08\0\x0f\x85\x01\0\0\0\xc3";

	check_leaf(poll, 19, 0, 64, 16, 0);
	check_leaf(poll, 19, 4, 64, 16, 4);
	check_leaf(poll, 19, 5, 64, 16, 5);
	check_leaf(poll, 19, 12, 64, 16, 5);
	check_leaf(poll, 19, 18, 64, 16, 5);
	check_leaf(old, 16, 4, 64, 16, 4);
	check_leaf(old, 16, 5, 64, 16, 5);
	check_leaf(old, 16, 12, 64, 16, 5);
	check_leaf(old, 16, 15, 64, 16, 5);
	check_leaf(jump, 10, 4, 64, 16, 4);
	check_leaf(jump, 10, 5, 64, 16, 5);
	check_leaf(slow, 19, 0, 64, 16, 5);
	check_leaf(slow, 19, 7, 64, 16, 5);
	check_leaf(slow, 19, 14, 64, 16, 5);
	check_leaf(native, 13, 0, 64, 16, 0);
	check_leaf(native, 13, 1, 64, 16, 5);
	check_leaf(native, 13, 6, 64, 16, 5);
	check_leaf(native, 13, 12, 64, 16, 5);
	/* push 0x50(%rsp); pop 0x28(%rsp): between the two */
	check_leaf("\x48\x8f\x44\x24\x28", 5, 0, 64, 16, -1);
}

TEST(a_jump_that_only_looks_like_an_epilogue)
{
	/* mov 0x5d(%rax),..; jmp: the last byte of an instruction is 0x5d. */
	check_leaf("\x48\x8b\x40\x5d\xe9\x10\0\0\0", 9, 4, 64, 16, 0);
	/* A loop's poll: test %eax,(%r10); jmp back */
	check_leaf("\x41\x85\x02\xe9\xf0\xff\xff\xff", 8, 0, 64, 16, 0);
}

TEST(a_callers_frame_that_will_be_deoptimized)
{
	__u64 leaf, caller;

	set_up();
	leaf = add_blob("nmethod", 256, 4, 16, 77);
	caller = add_blob("nmethod", 256, 6, 16, 78);
	t.regs[X86_RSP] = SP(100);
	t.stack[103] = caller + 256 - 8; /* its handler */
	t.stack[106] = caller + 0x40;	 /* where it really goes on: 16 bytes from its sp */
	t.stack[109] = t.record.call_stub_return;
	t.stack[108] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 4);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	t.stack[106] = leaf + 0x40; /* that is not of this nmethod */
	ASSERT_EQ(walk(leaf + 0x30), STOP_RUNTIME_UNREADABLE);
}

/* When the walk comes later than the sample, other methods may be where these were. */
TEST(what_ran_cannot_be_told_later)
{
	__u64 leaf, caller, native;

	set_up();
	leaf = add_blob("nmethod", 256, 4, 16, 77);
	caller = add_blob("nmethod", 256, 6, 16, 78);
	native = add_blob("RuntimeStub (1)", 256, 4, 16, 0);
	t.late = true;
	t.regs[X86_RSP] = SP(100);
	t.stack[103] = caller + 0x40;
	t.stack[109] = native + 0x40;
	t.stack[113] = caller + 0x50;
	t.stack[118] = SP(140);
	t.stack[119] = INTERPRETER + 0x500;
	interpreted_at(140, 150, SP(200), t.record.call_stub_return, 22);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 5);
	ASSERT_EQ(*frame(0), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_NOT_READY));
	ASSERT_EQ(HOTSPOT_FRAME_KIND(FRAME_DATA(*frame(1))), HOTSPOT_STUB);
	ASSERT_EQ(*frame(2), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_NOT_READY));
}

TEST(interpreted_frames_and_their_compiled_caller)
{
	__u64 caller;

	set_up();
	caller = add_blob("nmethod", 256, 6, 16, 78);
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(120);
	t.regs[X86_R13] = CODES + 9;
	interpreted_at(120, 124, SP(140), INTERPRETER + 0x500, 7);
	/* The compiled caller's frame ends at 150: two arguments were moved behind it. */
	interpreted_at(140, 150, 0xabcd, caller + 0x40, 22);
	t.stack[155] = t.record.call_stub_return;
	t.stack[154] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 5);
	/* The interrupted one's bytecode pointer is in r13; what others have there is not theirs.
	 */
	ASSERT_METHOD(0, 9);
	ASSERT_METHOD(1, 22);
	ASSERT_BLOB(2, HOTSPOT_COMPILED, caller, 78, 0x40);
}

/* Its stack pointer was set below what it may push, and lies below the frame of what it calls. */
TEST(an_interpreted_caller_on_aarch64)
{
	set_up();
	t.machine = EM_AARCH64;
	t.record.interpreter_bcp = 72;
	t.regs[A64_SP] = SP(90);
	t.regs[A64_FP] = SP(120);
	interpreted_at(120, 110, SP(140), INTERPRETER + 0x500, 7);
	interpreted_at(140, 130, SP(160), INTERPRETER + 0x500, 8);
	/* A caller that is no interpreted method has its own end. */
	interpreted_at(160, 150, SP(180), HEAP + 0x40, 22);
	ASSERT_EQ(walk(INTERPRETER + 0x200), STOP_RUNTIME_UNREADABLE);
	ASSERT_EQ(t.walk.nr_frames, 3);
	ASSERT_METHOD(1, 8);
	ASSERT_METHOD(2, 22);
}

/* Its method is pushed last but some: below lies what was left of another's frame. */
TEST(an_interpreted_frame_that_is_being_built)
{
	set_up();
	t.regs[X86_RSP] = SP(118);
	t.regs[X86_RBP] = SP(120);
	t.regs[X86_RBX] = METHOD;
	interpreted_at(120, 124, SP(200), t.record.call_stub_return, 7);
	t.stack[117] = HOLDER;
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 3);
	ASSERT_METHOD(0, HOTSPOT_NO_BCI);
}

/* One interpreted frame of a class of this name, which lies at `name`. */
static __u32 cookie_of_class(__u64 name, const char *text)
{
	__u16 head[3] = { 1, 0x1234, (__u16)strlen(text) };

	set_up();
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(120);
	interpreted_at(120, 124, SP(200), t.record.call_stub_return, 7);
	call_stub_at(200);
	put_8(HOLDER + 24, name);
	put(name, head, sizeof(head));
	put(name + 6, text, strlen(text));
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 3);
	ASSERT_METHOD(0, 7);
	return HOTSPOT_WORD_CHECK(frame(0)[1]);
}

TEST(classes_are_told_apart_by_all_of_their_names)
{
	static const char long_name[] =
		"org/example/generated/by/something/that/has/a/lot/to/say/Accessor$$00000001";
	char other[sizeof(long_name)];

	memcpy(other, long_name, sizeof(other));
	other[sizeof(other) - 2]++;
	ASSERT(cookie_of_class(SYMBOL, long_name) != cookie_of_class(SYMBOL, other));
	ASSERT(cookie_of_class(SYMBOL, "a/Gen0000123") != cookie_of_class(SYMBOL, "a/Gen0000124"));
	/* What stands behind it is not its own: set_up() has that of another length there. */
	put_8(SYMBOL + 16, 0);
	/* At the end of what can be read. */
	for (int len = 1; len <= 12; len++)
		cookie_of_class(META + META_SIZE - ((6 + len + 7) & ~7), &"abcdefghijkl"[12 - len]);
}

TEST(a_method_that_cannot_be_read_costs_its_own_frame)
{
	set_up();
	t.regs[X86_RSP] = SP(100);
	t.regs[X86_RBP] = SP(120);
	interpreted_at(120, 124, SP(200), t.record.call_stub_return, 7);
	t.stack[117] = 0x123450;
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200), 3);
	ASSERT_EQ(*frame(0), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_UNREADABLE));
}

/* A method's entry, called by compiled code whose frame ends at 110. pushed: so many words of its
 * own frame, -1: it has none yet. */
static void check_entry(const char *bytes, size_t size, size_t behind, int sp, int pushed)
{
	__u64 caller;

	set_up();
	caller = add_blob("nmethod", 256, 6, 16, 78);
	put(ENTRIES + 64, bytes, size);
	t.regs[X86_RSP] = SP(sp);
	t.regs[X86_RBP] = pushed < 0 ? 0xabcd : SP(sp + pushed);
	t.regs[X86_RBX] = METHOD;
	t.regs[X86_RAX] = caller + 0x40;
	t.regs[X86_R13] = SP(110);
	t.stack[106] = caller + 0x40;
	t.stack[105] = 0xabcd;
	t.stack[115] = t.record.call_stub_return;
	t.stack[114] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(ENTRIES + 64 + behind), 4);
	ASSERT_METHOD(0, HOTSPOT_NO_BCI);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
}

TEST(a_methods_entry)
{
	/* movzwl (%rdx),%ecx; pop %rax; lea -8(%rsp,%rcx,8),%r14; test %edx,%edx; jle; push $0;
	 * dec %edx; jg; push %rax; push %rbp; mov %rsp,%rbp; push %r13 */
	static const char entry[] =
		"\x0f\xb7\x0a\x58\x4e\x8d\x74\xcc\xf8\x85\xd2\x0f\x8e\x08\0\0\0\x6a\x00\xff\xca\x7f"
		"\xfa\x50\x55\x48\x8b\xec\x41\x55";
	static const char long_push[] =
		"\x58\x4c\x8d\x74\xcc\xf8\x85\xd2\x0f\x8e\x09\0\0\0\x68\0\0\0\0\xff\xca\x7f\xf7"
		"\x50\x55\x48\x8b\xec\x41\x55";
	static const char by_rax[] = "\x48\x8b\xec\x41\x55\x48\x8b\x43\x08\x4c\x8d\x68\x38";
	static const char native_method[] =
		"\x58\x4c\x8d\x74\xcc\xf8\x68\0\0\0\0\x68\0\0\0\0\x50\x55\x48\x8b\xec";

	check_entry(entry, sizeof(entry) - 1, 0, 106, -1);
	check_entry(entry, sizeof(entry) - 1, 3, 106, -1);
	check_entry(entry, sizeof(entry) - 1, 4, 107, -1);
	check_entry(entry, sizeof(entry) - 1, 9, 107, -1);
	check_entry(entry, sizeof(entry) - 1, 11, 107, -1);
	check_entry(entry, sizeof(entry) - 1, 19, 104, -1);
	check_entry(entry, sizeof(entry) - 1, 23, 104, -1);
	check_entry(entry, sizeof(entry) - 1, 24, 106, -1);
	check_entry(entry, sizeof(entry) - 1, 25, 105, -1);
	check_entry(entry, sizeof(entry) - 1, 28, 105, 0);
	/* As of 17: push $0 has 5 bytes; a native method has two of them. */
	check_entry(long_push, sizeof(long_push) - 1, 14, 104, -1);
	check_entry(long_push, sizeof(long_push) - 1, 19, 102, -1);
	check_entry(long_push, sizeof(long_push) - 1, 21, 104, -1);
	check_entry(native_method, sizeof(native_method) - 1, 6, 107, -1);
	check_entry(native_method, sizeof(native_method) - 1, 11, 106, -1);
	/* As of 25: r13 is loaded by way of rax. */
	check_entry(by_rax, sizeof(by_rax) - 1, 5, 104, 1);
	check_entry(by_rax, sizeof(by_rax) - 1, 9, 104, 1);
	/* An intrinsic's: pop %rdi; mov %r13,%rsp; jmp *%rdi */
	check_entry("\x5f\x49\x8b\xe5\xff\xe7", 6, 0, 106, -1);
}

TEST(an_interpreted_method_that_returns)
{
	/* leave; pop %r13; mov %rbx,%rsp; jmp *%r13 */
	static const char exit_code[] = "\xc9\x41\x5d\x48\x8b\xe3\x41\xff\xe5";
	static const struct {
		__u32 at;
		int sp;
	} cases[] = { { 1, 106 }, { 3, 107 }, { 6, 110 } };
	__u64 caller;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up();
		caller = add_blob("nmethod", 256, 6, 16, 78);
		t.next_segment = (INTERPRETER - HEAP) / SEGMENT - 1;
		add_blob("Interpreter", INTERPRETER_SIZE, 0, -1, 0);
		put(INTERPRETER + 0x200, exit_code, sizeof(exit_code));
		t.regs[X86_RSP] = SP(cases[i].sp);
		t.regs[X86_RBP] = 0xabcd;
		t.regs[X86_RBX] = SP(110);
		t.regs[X86_R13] = cases[i].at == 1 ? CODES : caller + 0x40;
		t.stack[106] = caller + 0x40;
		t.stack[115] = t.record.call_stub_return;
		t.stack[114] = SP(200);
		call_stub_at(200);
		ASSERT_TO_NATIVE(walk(INTERPRETER + 0x200 + cases[i].at), 4);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	}
}

TEST(adapters)
{
	/* mov %rsp,%r11; pop %rax; and $-16,%rsp; push %rax; mov %r11,%rax; jmp *%r11 */
	static const char i2c[] = "\x4c\x8b\xdc\x58\x48\x83\xe4\xf0\x50\x49\x8b\xc3\x41\xff\xe3";
	/* pop %rax; mov %rsp,%r13; sub $32,%rsp; mov %rax,(%rsp); mov %rsi,0x10(%rsp); jmp *%rcx */
	static const char c2i[] = "\x58\x4c\x8b\xec\x48\x83\xec\x20\x48\x89\x04\x24"
				  "\x48\x89\x74\x24\x10\xff\xe1";
	/* lea 8(%rsp),%r13; pop %rax; sub $24,%rsp; push %rax; mov %rsi,0x10(%rsp); jmp *%rcx */
	static const char c2i_25[] = "\x4c\x8d\x6c\x24\x08\x58\x48\x83\xec\x18\x50"
				     "\x48\x89\x74\x24\x10\xff\xe1";
	static const struct {
		const char *code;
		size_t size, at;
		int sp;
	} cases[] = {
		{ i2c, 15, 0, 105 },	 { i2c, 15, 3, 105 },	  { i2c, 15, 4, 106 },
		{ i2c, 15, 8, 106 },	 { i2c, 15, 9, 105 },	  { c2i, 19, 0, 105 },
		{ c2i, 19, 1, 106 },	 { c2i, 19, 4, 106 },	  { c2i, 19, 8, 102 },
		{ c2i, 19, 12, 102 },	 { c2i_25, 18, 0, 105 },  { c2i_25, 18, 5, 105 },
		{ c2i_25, 18, 6, 106 },	 { c2i_25, 18, 10, 103 }, { c2i_25, 18, 11, 102 },
		{ c2i_25, 18, 16, 102 },
	};
	__u64 adapter, caller;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up();
		adapter = add_blob("I2C/C2I adapters", 256, 0, -1, 0);
		caller = add_blob("nmethod", 256, 6, 16, 78);
		put(adapter + 64, cases[i].code, cases[i].size);
		t.regs[X86_RSP] = SP(cases[i].sp);
		t.regs[X86_RAX] = caller + 0x40;
		t.regs[X86_R13] = SP(106);
		t.stack[105] = t.stack[102] = caller + 0x40;
		t.stack[111] = t.record.call_stub_return;
		t.stack[110] = SP(200);
		call_stub_at(200);
		ASSERT_TO_NATIVE(walk(adapter + 64 + cases[i].at), 4);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	}
}

/* What a collector does at the entry of an interpreted method, and the caller's patching. */
static const __u8 barrier[] = {
	0x9c,					  /* 0: pushf */
	0x48, 0x83, 0xec, 0x08,			  /* 1: sub $8,%rsp */
	0x48, 0x81, 0xec, 0x80, 0,    0,    0,	  /* 5: sub $0x80,%rsp */
	0x4c, 0x89, 0x6c, 0x24, 0x10,		  /* 12: mov %r13,0x10(%rsp) */
	0xc5, 0xfb, 0x11, 0x44, 0x24, 0x10,	  /* 17: vmovsd %xmm0,0x10(%rsp) */
	0x62, 0xe1, 0xfe, 0x48, 0x7f, 0x04, 0x24, /* 23: vmovdqu64 %zmm16,(%rsp) */
	0x41, 0xf6, 0x47, 0x38, 2,		  /* 30: testb $2,0x38(%r15) */
	0x0f, 0x84, 0x20, 0,	0,    0,	  /* 35: je 73 */
	0x50,					  /* 41: push %rax */
	0x41, 0x52,				  /* 42: push %r10 */
	0x40, 0xf6, 0xc4, 0x0f,			  /* 44: test $15,%spl */
	0x0f, 0x84, 0x0b, 0,	0,    0,	  /* 48: je 65 */
	0x48, 0x83, 0xec, 0x08,			  /* 54: sub $8,%rsp */
	0xe8, 0x78, 0x56, 0x34, 0x12,		  /* 58: call */
	0x48, 0x83, 0xc4, 0x08,			  /* 63: add $8,%rsp */
	0xeb, 0x05,				  /* 67: jmp 74 */
	0xe8, 0x78, 0x56, 0x34, 0x12,		  /* 69: call */
	0x41, 0x5a,				  /* 74: pop %r10 */
	0x58,					  /* 76: pop %rax */
	0x4c, 0x8b, 0x6c, 0x24, 0x10,		  /* 77: mov 0x10(%rsp),%r13 */
	0x48, 0x81, 0xc4, 0x80, 0,    0,    0,	  /* 82: add $0x80,%rsp */
	0x48, 0x83, 0xc4, 0x08,			  /* 89: add $8,%rsp */
	0x9d,					  /* 93: popf */
	0x49, 0x83, 0xfa, 0,			  /* 94: cmp $0,%r10 */
	0x75, 0x05,				  /* 98: jne 105 */
	0xe9, 0,    0xff, 0,	0,		  /* 100: jmp to another blob */
	0x4c, 0x8b, 0xec,			  /* 105: mov %rsp,%r13 */
	0x48, 0x8b, 0x04, 0x24,			  /* 108: mov (%rsp),%rax */
	0x48, 0x83, 0xe4, 0xf0,			  /* 112: and $-16,%rsp */
	0x41, 0x55,				  /* 116: push %r13 */
	0xe8, 0x78, 0x56, 0x34, 0x12,		  /* 118: call */
	0x4c, 0x8b, 0x2c, 0x24,			  /* 123: mov (%rsp),%r13 */
	0x49, 0x8b, 0xe5,			  /* 127: mov %r13,%rsp */
	0x4c, 0x8d, 0x6c, 0x24, 0x08,		  /* 130: lea 8(%rsp),%r13 */
	0x58,					  /* 135: pop %rax */
	0xff, 0xe1,				  /* 136: jmp *%rcx */
};

TEST(adapters_with_barriers)
{
	static const struct {
		__u32 at;
		int below; /* words: how far the stack pointer is from the return address */
	} cases[] = {
		{ 0, 0 },   { 1, 1 },	{ 5, 2 },   { 12, 18 }, { 23, 18 }, { 30, 18 }, { 41, 18 },
		{ 42, 19 }, { 44, 20 }, { 54, 20 }, { 58, 21 }, { 63, 21 }, { 67, 20 }, { 69, 20 },
		{ 74, 20 }, { 76, 19 }, { 77, 18 }, { 89, 2 },	{ 93, 1 },  { 94, 0 },	{ 98, 0 },
		{ 100, 0 }, { 105, 0 }, { 108, 0 }, { 112, 0 }, { 116, 1 }, { 118, 2 }, { 123, 2 },
		{ 127, 2 }, { 130, 0 }, { 135, 0 },
	};
	__u64 adapter, caller;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up();
		adapter = add_blob("I2C/C2I adapters", 256, 0, -1, 0);
		caller = add_blob("nmethod", 256, 6, 16, 78);
		put(adapter + 64, barrier, sizeof(barrier));
		/* What is left of other calls is not believed. */
		for (__u32 word = 60; word < 105; word++)
			t.stack[word] = caller + 0x50;
		t.stack[105] = caller + 0x40;
		t.regs[X86_RSP] = SP(105 - cases[i].below);
		t.regs[X86_RAX] = caller + 0x60;
		/* Where the caller's stack pointer was put, or what the caller had there. */
		t.regs[X86_R13] = SP(cases[i].at < 108 ? 104 : cases[i].at < 135 ? 105 : 106);
		t.stack[103] = SP(105);
		t.stack[111] = t.record.call_stub_return;
		t.stack[110] = SP(200);
		call_stub_at(200);
		ASSERT_TO_NATIVE(walk(adapter + 64 + cases[i].at), 4);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	}
	/* With an instruction that is not known there is no caller. */
	put(adapter + 64 + 98, "\x0f\x38", 2);
	t.regs[X86_RSP] = SP(105);
	ASSERT_EQ(walk(adapter + 64 + 94), STOP_RUNTIME_UNREADABLE);
}

TEST(stubs_by_the_call_that_leads_there)
{
	__u64 stubs, caller;
	__u32 d32;

	for (int entered = 0; entered < 2; entered++) {
		set_up();
		stubs = add_blob("StubRoutines (2)", 512, 0, -1, 0);
		caller = add_blob("nmethod", 256, 6, 16, 78);
		put(caller + 0x3b, "\xe8", 1);
		d32 = (__u32)(stubs + 0x80 - (caller + 0x40));
		put_4(caller + 0x3c, d32);
		t.regs[X86_RSP] = SP(100);
		t.regs[X86_RBP] = entered ? SP(104) : SP(200);
		t.stack[100] = entered ? 7 : caller + 0x40;
		t.stack[104] = SP(200);
		t.stack[105] = caller + 0x40;
		t.stack[entered ? 111 : 106] = t.record.call_stub_return;
		t.stack[entered ? 110 : 105] = SP(200);
		call_stub_at(200);
		ASSERT_TO_NATIVE(walk(stubs + 0x90), 4);
		ASSERT_BLOB(0, HOTSPOT_STUB | HOTSPOT_INTERRUPTED, stubs,
			    hotspot_stub_check(*(__u64 *)at(stubs - HEADER, 8), HEADER + 512),
			    0x90);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	}
	/* Nothing on the stack was left there by a call of the stub. */
	t.stack[105] = 0;
	t.stack[100] = 0;
	ASSERT_EQ(walk(stubs + 0x90), STOP_RUNTIME_UNREADABLE);
}

/* The interpreter calls a handler by a register, in the frame of the native method. */
TEST(a_handler_of_a_native_methods_signature)
{
	/* lea (%r14),%rsi; mov -8(%r14),%edx; mov $imm64,%rax; ret */
	static const char code[] = "\x49\x8d\x36\x41\x8b\x56\xf8\x48\xb8\1\2\3\4\5\6\7\0\xc3";
	static const __u32 places[] = { 0, 3, 7, 17 };
	__u64 handlers;

	for (__u32 i = 0; i < 4; i++) {
		set_up();
		handlers = add_blob("native signature handlers", 512, 0, -1, 0);
		put(handlers + 0x40, code, sizeof(code) - 1);
		put(ENTRIES + 0x3d, "\x41\xff\xd3", 3);
		t.regs[X86_RSP] = SP(100);
		t.regs[X86_RBP] = SP(112);
		t.stack[100] = ENTRIES + 0x40;
		interpreted_at(112, 114, SP(200), t.record.call_stub_return, 0);
		call_stub_at(200);
		ASSERT_TO_NATIVE(walk(handlers + 0x40 + places[i]), 4);
		ASSERT_METHOD(1, 0);
	}
	/* Nothing else calls it. */
	t.stack[100] = handlers;
	ASSERT_EQ(walk(handlers + 0x40), STOP_RUNTIME_UNREADABLE);
}

#define CHUNK_WORD(i) (CHUNK + 64 + 8 * (__u64)(i))

TEST(frames_of_a_virtual_thread_in_the_heap)
{
	__u64 leaf, caller;

	leaf = virtual_thread(&caller);
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 5);
	ASSERT_EQ(*frame(1), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_FROZEN));
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(2)[1]), 79);

	/* Now the record knows chunks: a compiled frame, and an interpreted one. */
	know_chunks();
	/* The continuation's last chunk is empty; its parent is not. */
	put_4(CONTINUATION + 32, (CHUNK - 0x400) >> 3);
	put_4(CHUNK - 0x400 + 12, 20);
	put_4(CHUNK - 0x400 + 24, 18); /* two arguments are left of what was there */
	put_8(CHUNK - 0x400 + 64 + 8 * 17, t.record.cont_return);
	put_4(CHUNK - 0x400 + 40, CHUNK >> 3);
	put_4(CHUNK + 12, 40);
	put_4(CHUNK + 24, 10);
	put_8(CHUNK_WORD(9), caller + 0x40);
	put_8(CHUNK_WORD(15), INTERPRETER + 0x300); /* the compiled one's: 6 words from 10 on */
	put_8(CHUNK_WORD(14), 12);		    /* rbp: 12 words on */
	put_8(CHUNK_WORD(26 - 8), CODES + 5);
	put_8(CHUNK_WORD(26 - 3), METHOD);
	put_8(CHUNK_WORD(26 - 1), 4); /* the sender's sp: 4 words on */
	put_8(CHUNK_WORD(26), 0);
	put_8(CHUNK_WORD(27), t.record.cont_return);
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 6);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
	ASSERT_METHOD(2, 5);
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(3)[1]), 79);

	/* A copy of a stack is older than the heap. */
	t.late = true;
	ASSERT_TO_NATIVE(walk(leaf + 0x30), 5);
	ASSERT_EQ(*frame(1), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_FROZEN));
}

TEST(a_chunk_ends_where_it_ends)
{
	__u64 leaf, caller;

	for (__u32 args = 0; args <= 2; args += 2) {
		leaf = virtual_thread(&caller);
		know_chunks();
		put_4(CONTINUATION + 32, CHUNK >> 3);
		put_4(CHUNK + 12, 16 + args);
		put_4(CHUNK + 24, 10);
		put_8(CHUNK_WORD(9), caller + 0x40);
		/* The chunk is used again: here stands what its top frame was. */
		put_8(CHUNK_WORD(15), caller + 0x50);
		ASSERT_TO_NATIVE(walk(leaf + 0x30), 5);
		ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
		ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(2)[1]), 79);
	}
}

TEST(frames_that_are_on_their_way_to_the_heap)
{
	__u64 leaf, caller, yield;

	leaf = virtual_thread(&caller);
	know_chunks();
	put_4(CONTINUATION + 32, CHUNK >> 3);
	put_4(CHUNK + 12, 16);
	put_4(CHUNK + 24, 10);
	put_8(CHUNK_WORD(9), leaf + 0x30);
	/* Continuation.doYield: the heap has what is still on the stack. */
	yield = add_blob("native nmethod", 128, 2, 4, 80);
	t.regs[X86_RSP] = SP(98);
	t.stack[99] = leaf + 0x30;
	ASSERT_TO_NATIVE(walk(yield + 0x30), 6);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, leaf, 77, 0x30);
	ASSERT_EQ(*frame(2), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_FROZEN));
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(3)[1]), 79);
}

TEST(frames_that_are_on_their_way_back)
{
	__u64 caller, stubs;

	virtual_thread(&caller);
	stubs = t.stack[103] - 0x80;
	/* The stub made room, and a part of it is filled. */
	t.regs[X86_RSP] = SP(40);
	t.stack[40 + 9] = caller + 0x40;
	ASSERT_TO_NATIVE(walk(stubs + 0x90), 5);
	ASSERT_EQ(*frame(1), FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_FROZEN));
	ASSERT_EQ(HOTSPOT_WORD_CHECK(frame(2)[1]), 79);
	/* Where it ends is not known by now, or there is no continuation any more. */
	t.late = true;
	ASSERT_EQ(walk(stubs + 0x90), STOP_RUNTIME_UNREADABLE);
	t.late = false;
	put_8(THREAD + 8, 0);
	ASSERT_EQ(walk(stubs + 0x90), STOP_RUNTIME_UNREADABLE);
}

/* A stub that an exception jumps to: its caller's frame is 6 words from 106 on. */
static void check_thrown(const char *name, int frame_size, int complete, const char *code,
			 size_t size, __u32 pc, int sp)
{
	__u64 stub, caller;

	set_up();
	stub = add_blob(name, 256, frame_size, complete, 0);
	caller = add_blob("nmethod", 256, 6, 16, 78);
	put(stub, code, size);
	t.regs[X86_RSP] = SP(sp);
	t.regs[X86_RDX] = sp == 106 ? caller + 0x40 : 7;
	t.stack[105] = sp == 106 ? 7 : caller + 0x40;
	t.stack[111] = t.record.call_stub_return;
	t.stack[110] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(stub + pc), 4);
	ASSERT_BLOB(1, HOTSPOT_COMPILED, caller, 78, 0x40);
}

TEST(stubs_that_exceptions_jump_to)
{
	/* push %rdx; sub $8,%rsp; mov %rbp,(%rsp); mov %rax,d32(%r15); mov (%rsp),%rbp;
	 * add $8,%rsp; pop %rdx; mov %rax,%r8; jmp *%r8 */
	static const char blob[] = "\x52\x48\x83\xec\x08\x48\x89\x2c\x24\x49\x89\x87\0\x04\0\0"
				   "\x48\x8b\x2c\x24\x48\x83\xc4\x08\x5a\x4c\x8b\xc0\x41\xff\xe0";
	/* mov %rax,%r14; mov (%rsp),%rdx; sub $8,%rsp; nop; add $8,%rsp; mov %r14,%rax; pop %rdx;
	 * jmp *%rbx */
	static const char unwind[] = "\x4c\x8b\xf0\x48\x8b\x14\x24\x48\x83\xec\x08\x90\x48\x83"
				     "\xc4\x08\x49\x8b\xc6\x5a\xff\xe3";
	/* As JDK 8 to 11 have it: emms; mov %rax,%r14; ... */
	static const char emms[] = "\x0f\x77\x4c\x8b\xf0\x48\x8b\x14\x24\x48\x83\xec\x08\x90"
				   "\x48\x83\xc4\x08\x49\x8b\xc6\x5a\xff\xe3";
	/* push %rbp; sub $0x10,%rsp; nop; add $0x10,%rsp; pop %rbp; pop %rdx; jmp *%rax */
	static const char rethrow[] = "\x55\x48\x83\xec\x10\x90\x90\x90\x90\x90\x90\x90\x90\x48\x83"
				      "\xc4\x10\x5d\x5a\xff\xe0";
	static const struct {
		__u32 pc;
		int sp;
	} blobs[] = { { 0, 106 },  { 1, 105 },	{ 5, 104 },  { 9, 104 }, { 16, 104 },
		      { 20, 104 }, { 24, 105 }, { 25, 106 }, { 28, 106 } },
	  unwinds[] = { { 0, 105 },  { 3, 105 },  { 7, 105 },  { 11, 104 },
			{ 12, 104 }, { 16, 105 }, { 19, 105 }, { 20, 106 } },
	  rethrows[] = { { 0, 105 },  { 1, 104 },  { 5, 102 }, { 13, 102 },
			 { 17, 104 }, { 18, 105 }, { 19, 106 } };

	for (size_t i = 0; i < sizeof(blobs) / sizeof(blobs[0]); i++)
		check_thrown("ExceptionBlob", 2, -1, blob, sizeof(blob) - 1, blobs[i].pc,
			     blobs[i].sp);
	for (size_t i = 0; i < sizeof(unwinds) / sizeof(unwinds[0]); i++)
		check_thrown("unwind_exception Runtime1 stub", -1, -1, unwind, sizeof(unwind) - 1,
			     unwinds[i].pc, unwinds[i].sp);
	for (size_t i = 0; i < sizeof(unwinds) / sizeof(unwinds[0]); i++)
		check_thrown("unwind_exception Runtime1 stub", -1, -1, emms, sizeof(emms) - 1,
			     unwinds[i].pc ? unwinds[i].pc + 2 : 0, unwinds[i].sp);
	for (size_t i = 0; i < sizeof(rethrows) / sizeof(rethrows[0]); i++)
		check_thrown("_rethrow_Java", 4, -1, rethrow, sizeof(rethrow) - 1, rethrows[i].pc,
			     rethrows[i].sp);
}

TEST(a_large_blob_takes_several_steps_back)
{
	__u64 leaf;

	set_up();
	leaf = add_blob("nmethod", 0x8000, 4, 16, 77);
	/* Fragmented, as heap.cpp leaves it after blocks were merged. */
	for (__u32 i = 1; i < 0x8000 / SEGMENT; i++)
		t.segmap[(leaf - HEAP) / SEGMENT + i] = i < 7 ? (__u8)i : 7;
	t.regs[X86_RSP] = SP(100);
	t.stack[103] = t.record.call_stub_return;
	t.stack[102] = SP(200);
	call_stub_at(200);
	ASSERT_TO_NATIVE(walk(leaf + 0x7000), 3);
	ASSERT_BLOB(0, HOTSPOT_COMPILED | HOTSPOT_INTERRUPTED, leaf, 77, 0x7000);
}

TEST(what_makes_no_sense_ends_the_walk)
{
	__u64 leaf;

	set_up();
	leaf = add_blob("nmethod", 256, 4, 16, 77);
	t.regs[X86_RSP] = SP(100);
	/* Returns into a free block, to nothing, to before the heap, into a blob's header. */
	t.stack[103] = HEAP + HEAP_SIZE - 64;
	ASSERT_EQ(walk(leaf + 0x30), STOP_RUNTIME_UNREADABLE);
	t.stack[103] = 0;
	ASSERT_EQ(walk(leaf + 0x30), STOP_RUNTIME_UNREADABLE);
	t.stack[103] = leaf - 16;
	ASSERT_EQ(walk(leaf + 0x30), STOP_RUNTIME_UNREADABLE);
	/* A segment map that leads nowhere. */
	memset(t.segmap, 1, sizeof(t.segmap));
	ASSERT_EQ(walk(leaf + 0x30), STOP_RUNTIME_UNREADABLE);
	/* A stack that returns to itself has an end. */
	set_up();
	leaf = add_blob("nmethod", 256, 4, 16, 77);
	t.regs[X86_RSP] = SP(0);
	for (__u32 i = 0; i < STACK_WORDS; i++)
		t.stack[i] = leaf + 0x40;
	ASSERT_EQ(walk(leaf + 0x30), STOP_MAX_FRAMES);
	ASSERT_EQ(t.walk.nr_frames, 100);
}
