// SPDX-License-Identifier: Apache-2.0
/* Where functions without CFI end and begin: the rows of their code (see unwind_table_test.c). */
#include "unwind/unwind_table.h"

#include <stdlib.h>

#include "abi/sample.h"
#include "cfi_writer.h"
#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

enum { TEXT = 0x1000, TEXT_SIZE = 0x1000 };

static uint8_t text[TEXT_SIZE];
static struct unwind_table *table;

static void put_code(uint64_t addr, const uint8_t *code, size_t size)
{
	memcpy(text + (addr - TEXT), code, size);
}

static void build_for(uint16_t machine, bool of_go)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct elf_writer *w = elf_writer_new(ET_DYN, machine);
	unsigned int s = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					    TEXT, text, sizeof(text));
	size_t size;
	void *image;

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	if (of_go)
		elf_writer_section(w, ".go.buildinfo", SHT_PROGBITS, 0, 0, NULL, 8);
	image = elf_writer_finish(w, &size);
	unwind_table_free(table);
	table = NULL;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(unwind_table_build(elf, 0, &table));
	free(image);
	memset(text, 0, sizeof(text));
}

static void build(void)
{
	build_for(EM_X86_64, false);
}

static void expect(uint64_t addr, int off)
{
	const struct unwind_rule *rule = unwind_table_find(table, addr);

	ck_assert_msg(rule->cfa == CFA_REG && rule->cfa_reg == X86_RSP && rule->cfa_off == off,
		      "%#lx: %d: %d + %d, not rsp + %d", (long)addr, rule->cfa, rule->cfa_reg,
		      rule->cfa_off, off);
}

/*
 * At TEXT + 0x100: 0: sub $0x28,%rsp; 4: je 11; 6: add $0x28,%rsp; 10: ret; 11: call TEXT + 0x200.
 * At 16: push %rbx; 17: call TEXT + 0x300; 22: pop %rbx; 23: ret, which is a function that nobody
 * calls, or goes on. Not aligned.
 */
static void put_callers(void)
{
	put_code(TEXT + 0x101,
		 CFI_BYTES(0x48, 0x83, 0xec, 0x28, 0x74, 5, 0x48, 0x83, 0xc4, 0x28, 0xc3, 0xe8,
			   0xef, 0, 0, 0, 0x53, 0xe8, 0xe9, 1, 0, 0, 0x5b, 0xc3));
	put_code(TEXT + 0x300, CFI_BYTES(0xc3));
}

TEST(behind_a_call_of_what_traps_another_function_begins)
{
	/* hlt */
	put_callers();
	put_code(TEXT + 0x200, CFI_BYTES(0xf4));
	build();
	expect(TEXT + 0x110, 48);
	expect(TEXT + 0x111, 8);
	expect(TEXT + 0x112, 16);
}

/*
 * operator new and operator new[] of Deno: 0: push %rbp; mov %rsp,%rbp; push %rbx; push %rax;
 * 6: call; 11: je 20; 13: add $8,%rsp; pop %rbx; pop %rbp; ret; 20: call what throws. Behind that,
 * 25: push %rbp; mov %rsp,%rbp; pop %rbp; jmp 0.
 */
TEST(functions_that_are_not_aligned_begin_behind_what_throws)
{
	put_code(TEXT + 0x100, CFI_BYTES(0x55, 0x48, 0x89, 0xe5, 0x53, 0x50, 0xe8, 0x00, 0x10, 0, 0,
					 0x74, 7, 0x48, 0x83, 0xc4, 8, 0x5b, 0x5d, 0xc3, 0xe8, 0x00,
					 0x10, 0, 0, 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xeb, 0xe0));
	build();
	expect(TEXT + 0x100, 8);
	expect(TEXT + 0x10a, 32);
	expect(TEXT + 0x119, 8);
	expect(TEXT + 0x11a, 16);
	expect(TEXT + 0x11e, 8);
}

/*
 * runtime.mcall() ends in a trap, and asyncPreempt() calls what calls it: 136 bytes of registers
 * lay behind that call, and its caller was missing when a preempted goroutine had gone on.
 */
TEST(code_of_gos_that_traps_may_come_back_all_the_same)
{
	put_callers();
	put_code(TEXT + 0x200, CFI_BYTES(0xf4));
	build_for(EM_X86_64, true);
	expect(TEXT + 0x111, 48);
	expect(TEXT + 0x112, 56);
}

/* As exit() and what calls it: bb_show_usage() of busybox. */
TEST(calls_of_functions_that_never_return_never_return_either)
{
	/* 0: push %rax; je 5; nop; nop; 5: call TEXT + 0x220. There, 0: syscall; jne 0; jmp 0 */
	put_callers();
	put_code(TEXT + 0x200, CFI_BYTES(0x50, 0x74, 2, 0x90, 0x90, 0xe8, 0x16, 0, 0, 0));
	put_code(TEXT + 0x220, CFI_BYTES(0x0f, 0x05, 0x75, 0xfc, 0xeb, 0xfa));
	build();
	expect(TEXT + 0x111, 8);
	expect(TEXT + 0x112, 16);
}

TEST(what_may_return_is_not_taken_for_what_never_does)
{
	/* je 3; hlt; 3: ret */
	static const uint8_t returns[] = { 0x74, 1, 0xf4, 0xc3 };
	/* jmp *%rax */
	static const uint8_t goes_anywhere[] = { 0xff, 0xe0 };
	/* call TEXT + 0x200, as recursion; then zeros, which are nobody's code */
	static const uint8_t falls_out[] = { 0xe8, 0xfb, 0xff, 0xff, 0xff };
	static const struct {
		const uint8_t *code;
		size_t size;
	} callees[] = {
		{ returns, sizeof(returns) },
		{ goes_anywhere, sizeof(goes_anywhere) },
		{ falls_out, sizeof(falls_out) },
	};

	for (size_t i = 0; i < sizeof(callees) / sizeof(*callees); i++) {
		put_callers();
		put_code(TEXT + 0x200, callees[i].code, callees[i].size);
		build();
		expect(TEXT + 0x111, 48);
		expect(TEXT + 0x112, 56);
	}
}

/* A handler of busybox's getty, which ends in a call that never returns, behind a switch. */
TEST(a_function_behind_a_switch_is_known_by_how_its_calls_are_aligned)
{
	/* 0: sub $0x28,%rsp; jmp *%rax; 6: push %rax; call TEXT + 0x300; call TEXT + 0x200 */
	put_code(TEXT + 0x101, CFI_BYTES(0x48, 0x83, 0xec, 0x28, 0xff, 0xe0, 0x50, 0xe8, 0xf3, 1, 0,
					 0, 0xe8, 0xee, 0, 0, 0));
	put_code(TEXT + 0x200, CFI_BYTES(0xf4));
	put_code(TEXT + 0x300, CFI_BYTES(0xc3));
	build();
	expect(TEXT + 0x105, 48);
	expect(TEXT + 0x107, 8);
	expect(TEXT + 0x108, 16);
	expect(TEXT + 0x10d, 16);
}

TEST(a_case_of_a_switch_is_known_by_how_its_calls_are_aligned)
{
	/* Likewise, but without the push. */
	put_code(TEXT + 0x101, CFI_BYTES(0x48, 0x83, 0xec, 0x28, 0xff, 0xe0, 0xe8, 0xf4, 1, 0, 0,
					 0xe8, 0xef, 0, 0, 0));
	put_code(TEXT + 0x200, CFI_BYTES(0xf4));
	put_code(TEXT + 0x300, CFI_BYTES(0xc3));
	build();
	expect(TEXT + 0x107, 48);
	expect(TEXT + 0x10c, 48);
}

/* dav1d's: a case of another function's switch than the one before it. */
TEST(what_is_no_case_of_the_switch_before_it_is_as_what_it_jumps_to)
{
	/* 0: sub $0x10,%rsp; 4: add $0x10,%rsp; ret */
	put_code(TEXT + 0x80, CFI_BYTES(0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xc4, 0x10, 0xc3));
	/* 0: sub $0x28,%rsp; jmp *%rax; 6: mov %eax,%eax; jmp TEXT + 0x84 */
	put_code(TEXT + 0x101, CFI_BYTES(0x48, 0x83, 0xec, 0x28, 0xff, 0xe0, 0x89, 0xc0, 0xe9, 0x76,
					 0xff, 0xff, 0xff));
	build();
	expect(TEXT + 0x84, 24);
	expect(TEXT + 0x105, 48);
	expect(TEXT + 0x107, 24);
}

static uint8_t flags_at(uint64_t addr)
{
	return unwind_table_find(table, addr)->flags;
}

/* clone() of glibc and of musl, and what only looks like it: fork(), whose stack is a copy. */
TEST(where_a_new_thread_is_beside_the_one_that_made_it)
{
	/* 0: syscall; 2: test %rax,%rax; jl 13; 7: je 10; 9: ret; 10: xor %ebp,%ebp; hlt; 13: ret
	 */
	put_code(TEXT + 0x100, CFI_BYTES(0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 6, 0x74, 1, 0xc3, 0x31,
					 0xed, 0xf4, 0xc3));
	/* 0: syscall; 2: test %eax,%eax; 4: jne 8; 6: xor %ebp,%ebp; 8: ret */
	put_code(TEXT + 0x200, CFI_BYTES(0x0f, 0x05, 0x85, 0xc0, 0x75, 2, 0x31, 0xed, 0xc3));
	/* 0: syscall; 2: test %eax,%eax; 4: jne 8; 6: xor %eax,%eax; 8: ret */
	put_code(TEXT + 0x300, CFI_BYTES(0x0f, 0x05, 0x85, 0xc0, 0x75, 2, 0x31, 0xc0, 0xc3));
	build();
	for (int i = 0; i < 16; i++) {
		ASSERT_EQ(flags_at(TEXT + 0x100 + i), i >= 2 && i < 9 ? RULE_NEW_THREAD : 0);
		ASSERT_EQ(flags_at(TEXT + 0x200 + i), i >= 2 && i < 6 ? RULE_NEW_THREAD : 0);
		ASSERT_EQ(flags_at(TEXT + 0x300 + i), 0);
	}
	expect(TEXT + 0x102, 8);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10a)->cfa, CFA_REG);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10c)->cfa, CFA_END);
}

static void put_insns(uint64_t addr, const uint32_t *insns, size_t size)
{
	put_code(addr, (const uint8_t *)insns, size);
}

/* Likewise. */
TEST(where_a_new_thread_is_on_aarch64)
{
	/* svc #0; cmp x0,#0; b.eq 24; b.lt 28; ret; nop; 24: mov x29,#0; 28: ret */
	static const uint32_t glibc[] = { 0xd4000001, 0xf100001f, 0x54000080, 0x5400008b,
					  0xd65f03c0, 0xd503201f, 0xd280001d, 0xd65f03c0 };
	/* svc #0; cbz x0,12; ret; 12: ldp x1,x0,[sp],#16; blr x1 */
	static const uint32_t musl[] = { 0xd4000001, 0xb4000040, 0xd65f03c0, 0xa8c103e1,
					 0xd63f0020 };
	/* fork: svc #0; cbz x0,12; ret; 12: mov x0,#0; ret */
	static const uint32_t fork[] = { 0xd4000001, 0xb4000040, 0xd65f03c0, 0xd2800000,
					 0xd65f03c0 };

	put_insns(TEXT + 0x100, glibc, sizeof(glibc));
	put_insns(TEXT + 0x200, musl, sizeof(musl));
	put_insns(TEXT + 0x300, fork, sizeof(fork));
	build_for(EM_AARCH64, false);
	for (int i = 0; i < 32; i += 4) {
		ASSERT_EQ(flags_at(TEXT + 0x100 + i), i >= 4 && i < 12 ? RULE_NEW_THREAD : 0);
		ASSERT_EQ(flags_at(TEXT + 0x200 + i), i == 4 ? RULE_NEW_THREAD : 0);
		ASSERT_EQ(flags_at(TEXT + 0x300 + i), 0);
	}
}

static bool is_from_r12(uint64_t addr)
{
	const struct unwind_rule *rule = unwind_table_find(table, addr);

	return rule->cfa == CFA_REG && rule->cfa_reg == X86_R12 && rule->cfa_off == 8 &&
	       rule->flags == RULE_OTHER_STACK;
}

static bool is_undecided(uint64_t addr)
{
	const struct unwind_rule *rule = unwind_table_find(table, addr);

	return rule->cfa == CFA_FRAME_POINTER && rule->cfa_off == CODE_UNDECIDED;
}

/* Go's racecall() goes over to the thread's stack, if it is not there yet. */
TEST(the_old_stack_pointer_is_in_a_register_that_callees_keep)
{
	/* 0: mov 0x30(%r14),%r13; 4: mov %rsp,%r12; 7: mov 0x48(%r13),%r10; b: cmp %r14,%r10;
	 * e: je 14; 10: mov 0x38(%r10),%rsp; 14: and $-16,%rsp; 18: call *%rax; 1a: mov %r12,%rsp;
	 * 1d: ret */
	put_code(TEXT + 0x100,
		 CFI_BYTES(0x4d, 0x8b, 0x6e, 0x30, 0x49, 0x89, 0xe4, 0x4d, 0x8b, 0x55, 0x48, 0x4d,
			   0x39, 0xf2, 0x74, 0x04, 0x49, 0x8b, 0x62, 0x38, 0x48, 0x83, 0xe4, 0xf0,
			   0xff, 0xd0, 0x4c, 0x89, 0xe4, 0xc3));
	/* 0: mov %rsp,%r12; 3: mov %r10,%r12; 6: mov 0x38(%r10),%rsp; a: call *%rax */
	put_code(TEXT + 0x200,
		 CFI_BYTES(0x49, 0x89, 0xe4, 0x4d, 0x89, 0xd4, 0x49, 0x8b, 0x62, 0x38, 0xff, 0xd0));
	/* 0: mov %rsp,%r9; 3: mov 0x38(%r10),%rsp; 7: call *%rax */
	put_code(TEXT + 0x300, CFI_BYTES(0x49, 0x89, 0xe1, 0x49, 0x8b, 0x62, 0x38, 0xff, 0xd0));
	/* 0: push %r12; 2: nop; 3: pop %r12; 5: ret */
	put_code(TEXT + 0x400, CFI_BYTES(0x41, 0x54, 0x90, 0x41, 0x5c, 0xc3));
	build();
	expect(TEXT + 0x110, 8);
	ASSERT(is_from_r12(TEXT + 0x114) && is_from_r12(TEXT + 0x118) && is_from_r12(TEXT + 0x11a));
	expect(TEXT + 0x11d, 8);
	ASSERT(is_undecided(TEXT + 0x20a) && is_undecided(TEXT + 0x307));
	/* What it calls is followed for that register. */
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x402)->slot_off[X86_SLOT_R12], -2);
}
