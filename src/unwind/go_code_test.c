// SPDX-License-Identifier: Apache-2.0
/* What is known of Go's functions beside their CFI. */
#include "test_table.h"

#include "abi/sample.h"

/* Go's CFI tells neither where rbp is nor that the stack changes. */
TEST(go_functions_keep_their_frame_pointer_and_change_stacks)
{
	static const uint8_t initial[] = { 0x0c, 7, 8, 0x90, 2 };
	struct cfi_writer debug = { .data_align = -4 };
	size_t cie = cfi_writer_cie(&debug, initial, sizeof(initial));

	for (int go = 0; go < 2; go++) {
		struct elf_writer *w;

		/* push %rbp; mov %rsp,%rbp; mov 0x38(%rdx),%rsp; call *%rdi; pop %rbp; ret */
		put_code(TEXT + 0x100, CFI_BYTES(0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x62, 0x38,
						 0xff, 0xd7, 0x5d, 0xc3));
		/* mov 0x38(%r14),%rsp; call *%r12 */
		put_code(TEXT + 0x200, CFI_BYTES(0x49, 0x8b, 0x66, 0x38, 0x41, 0xff, 0xd4));
		w = writer_with_text(EM_X86_64);
		if (!go) {
			cfi_writer_fde(&debug, cie, TEXT, 0x20, CFI_BYTES(0x41, 0x0e, 32));
			cfi_writer_fde(&debug, cie, TEXT + 0x100, 12, CFI_BYTES(0x41, 0x0e, 16));
			cfi_writer_fde(&debug, cie, TEXT + 0x200, 7, CFI_BYTES(0));
		}
		elf_writer_section(w, ".debug_frame", SHT_PROGBITS, 0, 0, debug.data, debug.size);
		if (go)
			elf_writer_section(w, ".note.go.buildid", SHT_NOTE, SHF_ALLOC, FRAMES,
					   initial, sizeof(initial));
		build_finished(w);
		ASSERT_EQ(unwind_table_find(table, TEXT)->slot_off[X86_SLOT_RBP], SLOT_SAME);
		ASSERT_EQ(unwind_table_find(table, TEXT + 1)->slot_off[X86_SLOT_RBP],
			  go ? -2 : SLOT_SAME);
		expect(TEXT + 0x108, CFA_REG, go ? X86_RBP : X86_RSP, 16);
		ASSERT_EQ(unwind_table_find(table, TEXT + 0x108)->flags, go ? RULE_OTHER_STACK : 0);
		if (go)
			expect(TEXT + 0x205, CFA_FRAME_POINTER, 0, CODE_SWITCHED);
		else
			expect(TEXT + 0x205, CFA_REG, X86_RSP, 8);
	}
}

/*
 * A program with more code than is scanned, in which Go's table knows one function with 24 bytes.
 * `flags`: what that says of it; `first`: the function's first bytes.
 */
static void build_go(uint16_t machine, bool has_debug_frame, uint32_t flags, uint32_t first)
{
	enum { LARGE = 2 << 20, TABLE = TEXT + LARGE + 0x1000, VALUES = 80, FUNCTIONS = 96 };
	static uint8_t code[LARGE], go[256] = "\xf1\xff\xff\xff\0\0\1\x08";
	const struct {
		uint32_t at, value;
	} words[] = {
		{ 8, 1 },
		{ 24, TEXT },
		{ 32, VALUES },
		{ 40, VALUES },
		{ 48, VALUES },
		{ 56, VALUES },
		{ 64, FUNCTIONS },
		{ FUNCTIONS + 4, 16 },
		{ FUNCTIONS + 8, LARGE },
		{ FUNCTIONS + 32, 1 },
		/* The record begins 16 bytes behind that: funcID, flag. */
		{ FUNCTIONS + 16 + 40, flags << 8 },
	};
	/* From -1 to 24, for 2 MiB. */
	static const uint8_t values[] = { 0, 50, 0x80, 0x80, 0x80, 1, 0 };
	struct elf_writer *w = elf_writer_new(ET_EXEC, machine);
	unsigned int s;

	memcpy(code, &first, sizeof(first));
	s = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, code,
			       sizeof(code));
	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		memcpy(go + words[i].at, &words[i].value, 4);
	memcpy(go + VALUES, values, sizeof(values));
	elf_writer_section(w, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, TABLE, go, sizeof(go));
	if (has_debug_frame)
		elf_writer_section(w, ".debug_frame", SHT_PROGBITS, 0, 0, NULL, 8);
	build_finished(w);
}

/* Where it is not counted (unwind_table_cost()), it is not read. */
TEST(go_table_of_stripped_programs)
{
	enum { TOP_FRAME = 1, STP_X19_X20_AT_SP = 0xa90053f3 };

	build_go(EM_X86_64, false, 0, 0);
	expect(TEXT + 0x1000, CFA_REG, X86_RSP, 32);
	build_go(EM_X86_64, true, 0, 0);
	expect(TEXT + 0x1000, CFA_FRAME_POINTER, 0, CODE_UNFOLLOWED);
	build_go(EM_AARCH64, false, 0, 0);
	expect(TEXT + 0x1000, CFA_REG, A64_SP, 24);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x1000)->ra, RA_AT_CFA);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x1000)->ra_off, -3);
	/* What Go's threads begin with; the handler of signals. */
	build_go(EM_AARCH64, false, TOP_FRAME, 0);
	expect(TEXT + 0x1000, CFA_END, 0, 0);
	build_go(EM_AARCH64, false, TOP_FRAME, STP_X19_X20_AT_SP);
	expect(TEXT + 0x1000, CFA_REG, A64_SP, 24);
}

/* Go's: str x30,[sp,#-48]!; stur x29,[sp,#-8]; sub x29,sp,#8; stp x19,x20,[sp,#32] (or a nop). */
TEST(aarch64_handler_of_gos_signals_has_a_caller)
{
	static const uint8_t initial[] = { 0x0c, 31, 0, 0x08, 30 };
	struct cfi_writer debug = { .data_align = -4, .ra = 30 };
	size_t cie = cfi_writer_cie(&debug, initial, sizeof(initial));

	put_words(TEXT + 0x100, WORDS(0xf81d0ffe, 0xf81f83fd, 0xd10023fd, 0xa90253f3));
	put_words(TEXT + 0x200, WORDS(0xf81d0ffe, 0xf81f83fd, 0xd10023fd, 0xd503201f));
	for (uint64_t at = 0x100; at <= 0x200; at += 0x100)
		cfi_writer_fde(&debug, cie, TEXT + at, 0x40, CFI_BYTES(0x07, 30, 0x44, 0x0e, 48));
	build_with(EM_AARCH64, ".debug_frame", &debug);
	expect(TEXT + 0x100, CFA_REG, A64_SP, 0);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x100)->ra, RA_IN_REG);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x100)->ra_off, A64_LR);
	expect(TEXT + 0x104, CFA_REG, A64_SP, 48);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x104)->ra, RA_AT_CFA);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x104)->ra_off, -6);
	/* What Go's threads begin with. */
	expect(TEXT + 0x204, CFA_END, 0, 0);
}

/* A function of Go's on aarch64 at `addr`, of which its CFI says that it has `size` bytes. */
static void build_go_a64(uint64_t addr, const uint32_t *code, size_t nr, uint8_t size)
{
	static const uint8_t initial[] = { 0x0c, 31, 0, 0x08, 30 };
	struct cfi_writer debug = { .data_align = -4, .ra = 30 };
	size_t cie = cfi_writer_cie(&debug, initial, sizeof(initial));
	struct elf_writer *w;

	put_words(addr, code, nr);
	cfi_writer_fde(&debug, cie, addr, 4 * (uint32_t)nr, CFI_BYTES(0x44, 0x0e, size));
	w = writer_with_text(EM_AARCH64);
	elf_writer_section(w, ".debug_frame", SHT_PROGBITS, 0, 0, debug.data, debug.size);
	elf_writer_section(w, ".note.go.buildid", SHT_NOTE, SHF_ALLOC, FRAMES, initial,
			   sizeof(initial));
	build_finished(w);
}

static void expect_ra(uint64_t addr, int ra, int off)
{
	ASSERT_EQ(unwind_table_find(table, addr)->ra, ra);
	ASSERT_EQ(unwind_table_find(table, addr)->ra_off, off);
}

/* sub sp,sp,#192; stp x0,x1,[sp,#8]; stp x19,x20,[sp,#32]; stp x29,x30,[sp,#176]; bl; ldp
 * x29,x30,[sp,#176]; add sp,sp,#192; ret (crosscall2); or each with str. */
TEST(aarch64_what_c_calls)
{
	const uint64_t at = TEXT + 0x100;

	build_go_a64(at,
		     WORDS(0xd10303ff, 0xa90087e0, 0xa90253f3, 0xa90b7bfd, 0x94000010, 0xa94b7bfd,
			   0x910303ff, 0xd65f03c0),
		     192);
	expect(at, CFA_REG, A64_SP, 0);
	expect(at + 4, CFA_REG, A64_SP, 192);
	expect_ra(at + 12, RA_IN_REG, A64_LR);
	expect(at + 16, CFA_REG, A64_SP, 192);
	expect_ra(at + 16, RA_AT_CFA, -1);
	ASSERT_EQ(unwind_table_find(table, at + 16)->slot_off[0], -2);
	ASSERT_EQ(unwind_table_find(table, at + 16)->slot_off[1], -20);
	ASSERT_EQ(unwind_table_find(table, at + 16)->slot_off[2], -19);
	expect_ra(at + 24, RA_AT_CFA, -1);
	expect(at + 28, CFA_REG, A64_SP, 0);
	expect_ra(at + 28, RA_IN_REG, A64_LR);
	/* str x0,[sp,#8]; str x19,[sp,#32]; str x29,[sp,#112]; str x30,[sp,#120]; add; ret */
	build_go_a64(at,
		     WORDS(0xd10303ff, 0xf90007e0, 0xf90013f3, 0xf9003bfd, 0xf9003ffe, 0x94000010,
			   0x910303ff, 0xd65f03c0),
		     192);
	expect_ra(at + 20, RA_AT_CFA, -9);
	ASSERT_EQ(unwind_table_find(table, at + 20)->slot_off[0], -10);
	ASSERT_EQ(unwind_table_find(table, at + 20)->slot_off[1], -20);
}

/* str x30,[sp,#-48]!; mov x20,sp; mov x1,sp; mov sp,x1; blr x2; mov sp,x20; ldr x30,[sp],#48; ret
 * (nanotime1). */
TEST(aarch64_calls_of_the_vdso)
{
	const uint64_t at = TEXT + 0x100;

	build_go_a64(at,
		     WORDS(0xf81d0ffe, 0x910003f4, 0x910003e1, 0x9100003f, 0xd63f0040, 0x9100029f,
			   0xf84307fe, 0xd65f03c0),
		     48);
	expect(at, CFA_REG, A64_SP, 0);
	expect(at + 4, CFA_REG, A64_SP, 48);
	expect(at + 16, CFA_REG, 20, 48);
	expect_ra(at + 16, RA_AT_CFA, -6);
	ASSERT_EQ(unwind_table_find(table, at + 16)->flags, RULE_OTHER_STACK);
	expect(at + 24, CFA_REG, A64_SP, 48);
	expect(at + 28, CFA_REG, A64_SP, 0);
	/* It does not go back: its CFI counts. */
	build_go_a64(at, WORDS(0xf81d0ffe, 0x910003f4, 0x910003e1, 0x9100003f, 0xd65f03c0), 48);
	expect(at + 16, CFA_REG, A64_SP, 48);
}

/* Behind the last call before the stack changes nobody has called these. */
TEST(aarch64_what_never_comes_back)
{
	const uint64_t at = TEXT + 0x100;

	/* bl; ldr x0,[x28,#56]; mov sp,x0; str xzr,[sp,#-16]!; bl (morestack) */
	build_go_a64(at,
		     WORDS(0xd503201f, 0x94000010, 0xf9401f80, 0x9100001f, 0xf81f0fff, 0x94000010),
		     0);
	expect(at + 4, CFA_REG, A64_SP, 0);
	expect(at + 5, CFA_END, 0, 0);
	expect(at + 20, CFA_END, 0, 0);
	/* mov x28,x6; bl; ldr x0,[x5]; mov sp,x0; br x6 (gogo) */
	build_go_a64(at, WORDS(0xaa0603fc, 0x94000010, 0xf94000a0, 0x9100001f, 0xd61f00c0), 0);
	expect(at + 4, CFA_REG, A64_SP, 0);
	expect(at + 8, CFA_FRAME_POINTER, 0, CODE_SWITCHED);
}
