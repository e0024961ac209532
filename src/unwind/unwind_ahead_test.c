// SPDX-License-Identifier: Apache-2.0
/* Functions without CFI whose places are known: some code, in a table that knows nothing of it. */
#include "unwind/table_writer.h"
#include "abi/sample.h"
#include "test.h"
#include "util/cleanup.h"

#include <elf.h>
#include <string.h>

enum {
	ADDR = 0x401000,
	SIZE = 1024,
	FRAMED = 128,
	LEAF = 400,
	ODD = 512,
	GONE = 600,
	LEAVES = 700,
	RESUMED = 800,
	LAST = 960
};

static struct {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	uint8_t code[SIZE];
} image;

static const union cfi_rule unfollowed = { .rule = { .cfa = CFA_FRAME_POINTER,
						     .cfa_off = CODE_UNFOLLOWED } },
			    known = { .rule = {
					      .cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = 96 } };

/* push %rbp; mov %rsp,%rbp; call; pop %rbp; ret. */
static const uint8_t framed[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 1, 0, 0, 0x5d, 0xc3 };
/* push %rbx; pop %rbx; ret. */
static const uint8_t leaf[] = { 0x53, 0x5b, 0xc3 };
/* pop %rax: the return address; push %rdx; push %rax; push %rbp; mov %rsp,%rbp; int3. */
static const uint8_t odd[] = { 0x58, 0x52, 0x50, 0x55, 0x48, 0x89, 0xe5, 0xcc };
/* It stays in %rax: pop %rax; push %rbp; mov %rsp,%rbp; int3. */
static const uint8_t gone[] = { 0x58, 0x55, 0x48, 0x89, 0xe5, 0xcc };
/* It stays there until a frame is made for the caller: ... nop; push %rax; push %rbp; mov %rsp,
 * %rbp; push %rdx; mov %rbp,%rsp; pop %rbp; ret. */
static const uint8_t leaves[] = { 0x58, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x50, 0x55, 0x48,
				  0x89, 0xe5, 0x52, 0x48, 0x89, 0xec, 0x5d, 0xc3 };
/* Behind a trap: mov -16(%rbp),%rbx; push %rbx; jmp *%rcx. */
static const uint8_t resumed[] = { 0xcc, 0x48, 0x8b, 0x5d, 0xf0, 0x53, 0xff, 0xe1 };

static const struct code_range functions[] = {
	{ ADDR + FRAMED, ADDR + FRAMED + sizeof(framed) },
	{ ADDR + LEAF, ADDR + LEAF + sizeof(leaf) },
	{ ADDR + ODD, ADDR + ODD + sizeof(odd) },
	{ ADDR + GONE, ADDR + GONE + sizeof(gone) },
	{ ADDR + LEAVES, ADDR + LEAVES + sizeof(leaves) },
	{ ADDR + RESUMED, ADDR + RESUMED + sizeof(resumed) },
	{ ADDR + LAST, ADDR + LAST + sizeof(leaf) },
};
enum { NR = sizeof(functions) / sizeof(*functions) };

static struct elf_file *code(void)
{
	struct elf_file *elf;

	image.ehdr = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(image.ehdr),
		.e_ehsize = sizeof(image.ehdr),
		.e_phentsize = sizeof(image.phdr),
		.e_phnum = 1,
	};
	image.phdr = (Elf64_Phdr){ .p_type = PT_LOAD,
				   .p_flags = PF_R | PF_X,
				   .p_offset = sizeof(image.ehdr) + sizeof(image.phdr),
				   .p_vaddr = ADDR,
				   .p_filesz = SIZE,
				   .p_memsz = SIZE };
	memset(image.code, 0xcc, SIZE);
	memcpy(image.code + FRAMED, framed, sizeof(framed));
	memcpy(image.code + LEAF, leaf, sizeof(leaf));
	memcpy(image.code + ODD, odd, sizeof(odd));
	memcpy(image.code + GONE, gone, sizeof(gone));
	memcpy(image.code + LEAVES, leaves, sizeof(leaves));
	memcpy(image.code + RESUMED, resumed, sizeof(resumed));
	memcpy(image.code + LAST, leaf, sizeof(leaf));
	ASSERT_OK(elf_file_open_memory(&image, sizeof(image), &elf));
	return elf;
}

/* [ADDR, ADDR + SIZE): unfollowed, but for the last function, which CFI covers. */
static struct unwind_table *table(void)
{
	struct unwind_table *t = calloc(1, sizeof(*t));
	struct table_writer w;

	ASSERT_OK(table_writer_init(&w, ADDR, ADDR + SIZE, 4));
	table_writer_add(&w, ADDR, &unfollowed);
	table_writer_add(&w, ADDR + LAST, &known);
	ASSERT_OK(table_writer_finish(&w, t));
	table_writer_fini(&w);
	return t;
}

static struct unwind_table *followed(const struct code_range *ranges, size_t nr)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = code();
	struct unwind_table *t = table();

	ASSERT_OK(unwind_table_follow(t, elf, ranges, nr));
	return t;
}

static void expect(const struct unwind_table *t, uint64_t at, int reg, int off)
{
	const struct unwind_rule *found = unwind_table_find(t, ADDR + at);

	ck_assert_msg(found->cfa == CFA_REG && found->cfa_reg == reg && found->cfa_off == off,
		      "%d: cfa %d, register %d, %d", (int)at, found->cfa, found->cfa_reg,
		      found->cfa_off);
}

static void expect_unfollowed(const struct unwind_table *t, uint64_t at)
{
	const struct unwind_rule *found = unwind_table_find(t, ADDR + at);

	ck_assert_msg(found->cfa == CFA_FRAME_POINTER && found->cfa_off == CODE_UNFOLLOWED,
		      "%d: cfa %d, %d", (int)at, found->cfa, found->cfa_off);
}

TEST(each_function_is_followed_and_what_is_between_them_is_not)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *t = followed(functions, NR);

	expect_unfollowed(t, 0);
	expect_unfollowed(t, FRAMED - 1);
	expect(t, FRAMED, X86_RSP, 8);
	expect(t, FRAMED + 1, X86_RSP, 16);
	expect(t, FRAMED + 4, X86_RBP, 16);
	/* Within the call, where callers are looked for. */
	expect(t, FRAMED + 8, X86_RBP, 16);
	expect(t, FRAMED + 10, X86_RSP, 8);
	expect_unfollowed(t, FRAMED + sizeof(framed));
	expect_unfollowed(t, LEAF - 1);
	expect(t, LEAF, X86_RSP, 8);
	expect(t, LEAF + 1, X86_RSP, 16);
	expect(t, LEAF + 2, X86_RSP, 8);
	expect_unfollowed(t, LEAF + sizeof(leaf));
}

/* Who takes its own return address away is not walked by where the stack pointer was. */
TEST(a_function_that_does_something_else_first_has_its_frame_pointer_only)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *t = followed(functions, NR);

	expect_unfollowed(t, ODD);
	expect_unfollowed(t, ODD + 1);
	expect(t, ODD + 7, X86_RBP, 24);
	expect_unfollowed(t, ODD + sizeof(odd));
}

/* The frame pointer leads past the caller then. */
TEST(a_function_whose_return_address_is_in_a_register_is_not_walked_by_the_frame_pointer)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *t = followed(functions, NR);

	expect_unfollowed(t, GONE + 5);
	expect(t, LEAVES + 5, X86_RSP, 8);
	ASSERT_EQ(RULE_RA(unwind_table_find(t, ADDR + LEAVES + 5)), RA_IN_REG);
	expect(t, LEAVES + 7, X86_RSP, 16);
	ASSERT_EQ(unwind_table_find(t, ADDR + LEAVES + 7)->ra_off, -2);
	/* Its own frame is below that. */
	expect(t, LEAVES + 8, X86_RSP, 16);
	expect(t, LEAVES + 12, X86_RBP, 16);
	ASSERT_EQ(unwind_table_find(t, ADDR + LEAVES + 12)->slot_off[0], -2);
	expect(t, LEAVES + 16, X86_RSP, 8);
}

/* A return address - 1 is the trap. */
TEST(a_function_behind_a_trap_is_returned_to_with_its_frame_there)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *t = followed(functions, NR);

	expect_unfollowed(t, RESUMED - 1);
	for (size_t at = 0; at < sizeof(resumed); at++)
		expect(t, RESUMED + at, X86_RBP, 16);
	expect_unfollowed(t, RESUMED + sizeof(resumed));
}

TEST(what_cfi_covers_stays_as_it_is)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *t = followed(functions, NR);

	expect(t, LAST, X86_RSP, 96);
	expect(t, LAST + 1, X86_RSP, 96);
	expect(t, SIZE - 1, X86_RSP, 96);
}

TEST(functions_outside_of_the_file_and_too_large_ones_are_left_out)
{
	static const struct code_range wrong[] = {
		{ 0x1000, 0x2000 },
		{ ADDR + FRAMED, ADDR + FRAMED + sizeof(framed) },
		{ ADDR + RESUMED, ADDR + 0x40000000 },
		{ UINT64_MAX - 1, UINT64_MAX },
	};
	_cleanup_(unwind_table_free_p) struct unwind_table *t =
		followed(wrong, sizeof(wrong) / sizeof(*wrong));

	expect(t, FRAMED + 4, X86_RBP, 16);
	expect_unfollowed(t, RESUMED);
	expect(t, LAST, X86_RSP, 96);
	expect(t, SIZE - 1, X86_RSP, 96);
}
