// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "abi/sample.h"
#include "cfi_writer.h"
#include "elf_writer.h"
#include "test.h"
#include "unwind/unwind_table.h"
#include "util/cleanup.h"

enum { TEXT = 0x1000, FRAMES = 0x3000, POPPED = 10, ELSE = 12, LEFT = 15 };

/* 0: push %rbp; mov %rsp,%rbp; push %rbx; 5: test; jne ELSE; 9: pop %rbp; ret; nop; 12: call;
 * leave; ret */
static const uint8_t code[] = {
	0x55, 0x48, 0x89, 0xe5, 0x53, 0x85, 0xc0, 0x75,
	0x03, 0x5d, 0xc3, 0x90, 0xff, 0xd0, 0xc9, 0xc3,
};

/* Ruby 3.1's rb_ec_tag_jump(), as Debian has it: push %rbp; mov %esi,0x40(%rdi); mov %rsp,%rbp; 7:
 * mov 0x18(%rdi),%rdx; mov 0x10(%rdi),%rcx; 15: mov 0x20(%rdi),%rsp; 19: mov %rcx,%rbp; jmp *%rdx
 */
static const uint8_t jumps[] = { 0x55, 0x89, 0x77, 0x40, 0x48, 0x89, 0xe5, 0x48,
				 0x8b, 0x57, 0x18, 0x48, 0x8b, 0x4f, 0x10, 0x48,
				 0x8b, 0x67, 0x20, 0x48, 0x89, 0xcd, 0xff, 0xe2 };

/* The table of a function of which its CFI says nothing behind its prologue. */
static struct unwind_table *build_of(const uint8_t *text, size_t text_size, const uint8_t *cfi,
				     size_t cfi_size, const char *comment)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, CFI_BYTES(0x0c, 7, 8, 0x90, 1)), size;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	struct unwind_table *table = NULL;
	unsigned int s;

	s = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, text,
			       text_size);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	cfi_writer_fde(&frames, cie, TEXT, text_size, cfi, cfi_size);
	elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAMES, frames.data,
			   frames.size);
	if (comment)
		elf_writer_section(w, ".comment", SHT_PROGBITS, 0, 0, comment, strlen(comment) + 1);
	image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(unwind_table_build(elf, 0, &table));
	return table;
}

static struct unwind_table *build(const char *comment)
{
	/* 1: CFA + 16, rbp at CFA - 16; 4: CFA = rbp + 16; 5: rbx at CFA - 24 */
	return build_of(code, sizeof(code),
			CFI_BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x41, 0x83, 3), comment);
}

static void expect(const struct unwind_table *table, uint32_t at, int reg, int off, int fp)
{
	const struct unwind_rule *rule = unwind_table_find(table, TEXT + at);

	ck_assert_msg(rule->cfa == CFA_REG && rule->cfa_reg == reg && rule->cfa_off == off &&
			      rule->slot_off[X86_SLOT_RBP] == fp,
		      "%u: %d: %d + %d, rbp %d", at, rule->cfa, rule->cfa_reg, rule->cfa_off,
		      rule->slot_off[X86_SLOT_RBP]);
}

TEST(behind_an_epilogue_of_an_old_clang_the_stack_pointer_tells)
{
	static const char *const old[] = { "clang version 3.9.1 (tags/RELEASE_391/final)",
					   "GCC: (GNU) 4.8 clang version 6.0.1 " };

	for (size_t i = 0; i < 2; i++) {
		struct unwind_table *table = build(old[i]);

		expect(table, 0, X86_RSP, 8, SLOT_SAME);
		expect(table, 1, X86_RSP, 16, -2);
		expect(table, 5, X86_RBP, 16, -2);
		expect(table, POPPED - 1, X86_RBP, 16, -2);
		expect(table, POPPED, X86_RSP, 8, SLOT_SAME);
		expect(table, POPPED + 1, X86_RBP, 16, -2);
		expect(table, ELSE, X86_RBP, 16, -2);
		expect(table, LEFT - 1, X86_RBP, 16, -2);
		expect(table, LEFT, X86_RSP, 8, SLOT_SAME);
		unwind_table_free(table);
	}
}

TEST(others_say_it_themselves)
{
	static const char *const others[] = { "GCC: (Debian 12.2.0) 12.2.0", "clang version 7.0.1",
					      "Debian clang version 14.0.6", "clang version 3",
					      NULL };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct unwind_table *table = build(others[i]);

		expect(table, POPPED, X86_RBP, 16, -2);
		unwind_table_free(table);
	}
}

TEST(behind_a_longjmp_it_is_the_stack_of_another_frame)
{
	/* 1: CFA + 16, rbp at CFA - 16; 7: CFA = rbp + 16 */
	struct unwind_table *table = build_of(
		jumps, sizeof(jumps), CFI_BYTES(0x41, 0x0e, 16, 0x86, 2, 0x46, 0x0d, 6), NULL);
	const struct unwind_rule *rule;

	expect(table, 6, X86_RSP, 16, -2);
	expect(table, 7, X86_RBP, 16, -2);
	expect(table, 18, X86_RBP, 16, -2);
	for (uint32_t at = 19; at < sizeof(jumps); at++) {
		rule = unwind_table_find(table, TEXT + at);
		ASSERT_EQ(rule->cfa, CFA_STOP);
		ASSERT_EQ(rule->cfa_off, STOP_BAD_CFI);
	}
	unwind_table_free(table);
}
