// SPDX-License-Identifier: Apache-2.0
#include "test_table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "abi/sample.h"

TEST(rows_are_found_at_every_address)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);

	/* The second row spans several buckets. */
	cfi_writer_fde(&frames, cie, TEXT + 0x10, 0x800, CFI_BYTES(0x41, 0x0e, 16));
	cfi_writer_fde(&frames, cie, TEXT + 0x810, 0x10, CFI_BYTES(0x42, 0x0e, 24));
	build_with(EM_X86_64, ".eh_frame", &frames);
	expect(TEXT - 1, CFA_STOP, 0, STOP_NO_RULE);
	expect(TEXT + 0x10, CFA_REG, X86_RSP, 8);
	for (int i = 0x11; i < 0x810; i++)
		expect(TEXT + i, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x810, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x812, CFA_REG, X86_RSP, 24);
	expect(TEXT + TEXT_SIZE, CFA_STOP, 0, STOP_NO_RULE);
	expect(UINT64_MAX, CFA_STOP, 0, STOP_NO_RULE);
	ASSERT(unwind_table_bytes(table) > sizeof(*table));
}

TEST(frames_need_not_be_in_order)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);

	for (int i = 15; i >= 0; i--)
		cfi_writer_fde(&frames, cie, TEXT + i * 0x100, 0x100, CFI_BYTES(0x0e, 16 + 4 * i));
	build_with(EM_X86_64, ".eh_frame", &frames);
	for (int i = 0; i < 16; i++)
		expect(TEXT + i * 0x100 + 0x80, CFA_REG, X86_RSP, 16 + 4 * i);
}

TEST(a_bad_fde_costs_its_range_only)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL), bad_cie;

	cfi_writer_fde(&frames, cie, TEXT, 0x100, CFI_BYTES(0x0e, 16));
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 0x100, CFI_BYTES(0x42, 0x0e, 24, 0x42, 0x3f));
	cfi_writer_fde(&frames, cie, TEXT + 0x200, 0x100, CFI_BYTES(0x0e, 32));
	bad_cie = cfi_writer_cie(&frames, CFI_BYTES(0x3f));
	cfi_writer_fde(&frames, bad_cie, TEXT + 0x300, 0x100, CFI_BYTES(0));
	cfi_writer_fde(&frames, cie, TEXT + 0x400, 0x100, CFI_BYTES(0x0f, 1, 0x96));
	cfi_writer_fde(&frames, cie, 0x77770000, 0x100, CFI_BYTES(0)); /* no code there */
	cfi_writer_fde(&frames, cie, 0, 0x100, CFI_BYTES(0));	       /* discarded by the linker */
	build_with(EM_X86_64, ".eh_frame", &frames);
	expect(TEXT + 0xff, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x100, CFA_STOP, 0, STOP_BAD_CFI);
	expect(TEXT + 0x1ff, CFA_STOP, 0, STOP_BAD_CFI);
	expect(TEXT + 0x200, CFA_REG, X86_RSP, 32);
	expect(TEXT + 0x300, CFA_STOP, 0, STOP_BAD_CFI);
	expect(TEXT + 0x400, CFA_STOP, 0, STOP_BAD_CFI);
	ASSERT_EQ(table->nr_bad_fdes, 3);
	ASSERT_EQ(table->nr_bad_cies, 1);
	ASSERT_EQ(table->nr_unsupported_expressions, 1);
}

TEST(an_unknown_augmentation_costs_its_functions_only)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL), strange;

	cfi_writer_fde(&frames, cie, TEXT, 0x100, CFI_BYTES(0x0e, 16));
	frames.augmentation = "zXR";
	strange = cfi_writer_cie(&frames, X86_INITIAL);
	cfi_writer_fde(&frames, strange, TEXT + 0x100, 0x100, CFI_BYTES(0));
	build_with(EM_X86_64, ".eh_frame", &frames);
	expect(TEXT, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x100, CFA_STOP, 0, STOP_BAD_CFI);
	ASSERT_EQ(table->nr_bad_cies, 1);
}

TEST(overlapping_frames_end_where_the_next_begins)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);

	cfi_writer_fde(&frames, cie, TEXT, 0x400, CFI_BYTES(0x0e, 16));
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 0x100, CFI_BYTES(0x0e, 24));
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 0x100, CFI_BYTES(0x0e, 32)); /* a duplicate */
	build_with(EM_X86_64, ".eh_frame", &frames);
	expect(TEXT + 0xff, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x100, CFA_REG, X86_RSP, 24);
}

TEST(stripped_sections_are_found_by_segment)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);
	/* version 1, eh_frame_ptr pcrel sdata4, no table */
	uint8_t hdr[16] = { 1, 0x1b, 0xff, 0xff };
	int32_t rel = FRAMES - (HDR + 4);
	struct elf_writer *w = writer_with_text(EM_X86_64);
	unsigned int h, f;

	memcpy(hdr + 4, &rel, 4);
	cfi_writer_fde(&frames, cie, TEXT, 0x100, CFI_BYTES(0x0e, 16));
	cfi_writer_end(&frames);
	cfi_writer_bytes(&frames, "what follows the frames is none of them", 40);
	h = elf_writer_section(w, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, HDR, hdr, sizeof(hdr));
	f = elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAMES, frames.data,
			       frames.size);
	elf_writer_segment(w, PT_LOAD, PF_R, h, f);
	elf_writer_segment(w, PT_GNU_EH_FRAME, PF_R, h, h);
	elf_writer_no_section_table(w);
	build_finished(w);
	expect(TEXT + 0x80, CFA_REG, X86_RSP, 16);
	ASSERT_EQ(table->nr_bad_fdes, 0);
}

TEST(debug_frame_fills_what_eh_frame_leaves_open)
{
	struct cfi_writer eh = { .eh_frame = true, .addr = FRAMES }, debug = { 0 };
	struct elf_writer *w = writer_with_text(EM_X86_64);
	size_t cie = cfi_writer_cie(&eh, X86_INITIAL);

	cfi_writer_fde(&eh, cie, TEXT + 0x100, 0x100, CFI_BYTES(0x0e, 16));
	cfi_writer_fde(&eh, cie, TEXT + 0x300, 0x100, CFI_BYTES(0x0e, 16));
	cie = cfi_writer_cie(&debug, X86_INITIAL);
	cfi_writer_fde(&debug, cie, TEXT, 0x100, CFI_BYTES(0x0e, 24));
	cfi_writer_fde(&debug, cie, TEXT + 0x180, 0x200, CFI_BYTES(0x0e, 32));
	elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAMES, eh.data, eh.size);
	elf_writer_section(w, ".debug_frame", SHT_PROGBITS, 0, 0, debug.data, debug.size);
	build_finished(w);
	expect(TEXT, CFA_REG, X86_RSP, 24);
	expect(TEXT + 0x100, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x1ff, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x200, CFA_REG, X86_RSP, 32);
	expect(TEXT + 0x2ff, CFA_REG, X86_RSP, 32);
	expect(TEXT + 0x300, CFA_REG, X86_RSP, 16);
}

TEST(compressed_debug_frame)
{
	struct cfi_writer debug = { 0 };
	struct elf_writer *w = writer_with_text(EM_X86_64);
	uint8_t packed[sizeof(Elf64_Chdr) + 4096];
	Elf64_Chdr header = { .ch_type = ELFCOMPRESS_ZLIB, .ch_addralign = 1 };
	uLongf packed_size = 4096;
	size_t cie = cfi_writer_cie(&debug, X86_INITIAL);

	cfi_writer_fde(&debug, cie, TEXT, 0x100, CFI_BYTES(0x0e, 24));
	header.ch_size = debug.size;
	memcpy(packed, &header, sizeof(header));
	ASSERT_EQ(compress(packed + sizeof(header), &packed_size, debug.data, debug.size), Z_OK);
	elf_writer_section(w, ".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, packed,
			   sizeof(header) + packed_size);
	build_finished(w);
	expect(TEXT, CFA_REG, X86_RSP, 24);
}

TEST(callee_saved_registers_are_followed_if_a_cfa_hangs_on_them)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);
	const struct unwind_rule *rule;

	/* saves r12 and r13; elsewhere a CFA of r12 */
	cfi_writer_fde(&frames, cie, TEXT, 0x100, CFI_BYTES(0x0e, 24, 0x8c, 2, 0x8d, 3));
	build_with(EM_X86_64, ".eh_frame", &frames);
	rule = unwind_table_find(table, TEXT);
	ASSERT_EQ(rule->slot_off[2], SLOT_LOST);
	ASSERT_EQ(rule->slot_off[3], SLOT_LOST);
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 0x100, CFI_BYTES(0x0c, 12, 16));
	build_with(EM_X86_64, ".eh_frame", &frames);
	rule = unwind_table_find(table, TEXT);
	ASSERT_EQ(rule->slot_off[2], -2);
	ASSERT_EQ(rule->slot_off[3], SLOT_LOST);
	expect(TEXT + 0x100, CFA_REG, X86_R12, 16);
}

TEST(callee_saved_registers_are_followed_if_somebody_wants_them)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);
	const struct unwind_rule *rule;

	/* saves r12, r13 and r15; elsewhere a CFA of r12 */
	follow = 1u << 5;
	cfi_writer_fde(&frames, cie, TEXT, 0x100, CFI_BYTES(0x0e, 32, 0x8c, 2, 0x8d, 3, 0x8f, 4));
	build_with(EM_X86_64, ".eh_frame", &frames);
	rule = unwind_table_find(table, TEXT);
	ASSERT_EQ(rule->slot_off[2], SLOT_LOST);
	ASSERT_EQ(rule->slot_off[5], -4);
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 0x100, CFI_BYTES(0x0c, 12, 16));
	build_with(EM_X86_64, ".eh_frame", &frames);
	rule = unwind_table_find(table, TEXT);
	ASSERT_EQ(rule->slot_off[2], -2);
	ASSERT_EQ(rule->slot_off[3], SLOT_LOST);
	ASSERT_EQ(rule->slot_off[5], -4);
	follow = 0;
}

TEST(unknown_machines_are_refused)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_RISCV);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	size_t size;
	void *image = elf_writer_finish(w, &size);

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_ERR(unwind_table_build(elf, 0, &table), ENOTSUP);
	free(image);
}

/* --- code without CFI ------------------------------------------------------------------------ */

TEST(functions_without_cfi_are_followed)
{
	/* push %rbx; sub $0x20,%rsp; test; je out; call far; out: add $0x20,%rsp; pop %rbx; ret */
	put_code(TEXT + 0x100, CFI_BYTES(0x53, 0x48, 0x83, 0xec, 0x20, 0x85, 0xc0, 0x74, 0x05, 0xe8,
					 0xf2, 0xfe, 0, 0, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3));
	/* push %rbp; mov %rsp,%rbp; sub %rax,%rsp; leave; ret */
	put_code(TEXT + 0x200, CFI_BYTES(0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4, 0xc9, 0xc3));
	/* xor %eax,%eax; ret */
	put_code(TEXT + 0x300, CFI_BYTES(0x31, 0xc0, 0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x100, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x101, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x105, CFA_REG, X86_RSP, 48);
	expect(TEXT + 0x10e, CFA_REG, X86_RSP, 48);
	expect(TEXT + 0x112, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x113, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x201, CFA_REG, X86_RSP, 16);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x201)->slot_off[0], -2);
	expect(TEXT + 0x207, CFA_REG, X86_RBP, 16);
	expect(TEXT + 0x208, CFA_REG, X86_RSP, 8);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x208)->slot_off[0], SLOT_SAME);
	expect(TEXT + 0x300, CFA_REG, X86_RSP, 8);
}

TEST(blocks_behind_a_return_keep_the_jumps_state)
{
	/* push %rbp; jne 1f; pop %rbp; ret; 1: call ...; pop %rbp; ret */
	put_code(TEXT + 0x100,
		 CFI_BYTES(0x55, 0x75, 0x02, 0x5d, 0xc3, 0xe8, 0xf6, 0, 0, 0, 0x5d, 0xc3));
	put_code(TEXT + 0x200, CFI_BYTES(0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x104, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x105, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x10a, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x10b, CFA_REG, X86_RSP, 8);
}

TEST(a_function_that_hands_on_behind_a_call_that_never_returns)
{
	/* 0: sub $0x20,%rsp; je 11; add $0x20,%rsp; ret; 11: call; 16: jmp *%rdx */
	put_code(TEXT + 0x100, CFI_BYTES(0x48, 0x83, 0xec, 0x20, 0x74, 5, 0x48, 0x83, 0xc4, 0x20,
					 0xc3, 0xe8, 0xf0, 0, 0, 0, 0xff, 0xe2));
	/* As above, but 16: movzbl (%rbx),%edx; jmp *(%rax,%rdx,8), which is a switch. */
	put_code(TEXT + 0x300,
		 CFI_BYTES(0x48, 0x83, 0xec, 0x20, 0x74, 5, 0x48, 0x83, 0xc4, 0x20, 0xc3, 0xe8,
			   0xf0, 0xfe, 0xff, 0xff, 0x0f, 0xb6, 0x13, 0xff, 0x24, 0xd0));
	put_code(TEXT + 0x200, CFI_BYTES(0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x10f, CFA_REG, X86_RSP, 40);
	expect(TEXT + 0x110, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x310, CFA_REG, X86_RSP, 40);
}

TEST(functions_that_go_over_to_another_stack)
{
	/* push %rbp; mov %rsp,%rbp; jne 1f; mov 0x38(%rdx),%rsp; 1: call *%rdi; mov %rax,%rbp */
	put_code(TEXT + 0x100, CFI_BYTES(0x55, 0x48, 0x89, 0xe5, 0x75, 0x04, 0x48, 0x8b, 0x62, 0x38,
					 0xff, 0xd7, 0x48, 0x89, 0xc5, 0x90, 0xc3));
	/* mov 0x38(%rbx),%rsp; mov $0,%rbp; call; ret */
	put_code(TEXT + 0x200, CFI_BYTES(0x48, 0x8b, 0x63, 0x38, 0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0xe8,
					 0xf0, 0, 0, 0, 0xc3));
	/* syscall; test %rax,%rax; je 1f; ret; 1: mov %rsi,%rsp; call *%r12 */
	put_code(TEXT + 0x300, CFI_BYTES(0x0f, 0x05, 0x48, 0x85, 0xc0, 0x74, 0x01, 0xc3, 0x48, 0x89,
					 0xf4, 0x41, 0xff, 0xd4));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x10a, CFA_REG, X86_RBP, 16);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10a)->flags, RULE_OTHER_STACK);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x104)->flags, 0);
	expect(TEXT + 0x10f, CFA_FRAME_POINTER, 0, CODE_UNDECIDED);
	expect(TEXT + 0x20b, CFA_END, 0, 0);
	expect(TEXT + 0x307, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x30b, CFA_END, 0, 0);
}

/* As gcc -Os makes them: not aligned, right behind a function that ends in a switch. */
TEST(a_function_that_nobody_calls_is_known_by_any_way_to_its_end)
{
	/* 0: push %rbp; 1: sub $0x20,%rsp; 5: jmp *%rax; 7: push %rbx; 8: sub $0x10,%rsp; 12: nop;
	 * 13: dec %eax; 15: je 19; 17: jmp 12; 19: add $0x10,%rsp; 23: pop %rbx; 24: ret */
	put_code(TEXT + 0x100, CFI_BYTES(0x55, 0x48, 0x83, 0xec, 0x20, 0xff, 0xe0, 0x53, 0x48, 0x83,
					 0xec, 0x10, 0x90, 0xff, 0xc8, 0x74, 0x02, 0xeb, 0xf9, 0x48,
					 0x83, 0xc4, 0x10, 0x5b, 0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x105, CFA_REG, X86_RSP, 48);
	expect(TEXT + 0x107, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x10c, CFA_REG, X86_RSP, 32);
	expect(TEXT + 0x118, CFA_REG, X86_RSP, 8);
}

/* Its frames are elsewhere: the stack pointer is where StgRun() left it, but around calls of C. */
TEST(haskell_code_is_called_by_who_called_stg_run)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);
	enum { STG = 16440 };

	cfi_writer_fde(&frames, cie, TEXT, 0x40,
		       CFI_BYTES(0x16, 7, 4, 0x77, 0xb8, 0x80, 1)); /* rsp was rsp + 16440 */
	/* sub $8,%rsp; mov $0,%eax; call; add $8,%rsp; jmp *(%rbp) */
	put_code(TEXT + 0x80, CFI_BYTES(0x48, 0x83, 0xec, 8, 0xb8, 0, 0, 0, 0, 0xe8, 0, 1, 0, 0,
					0x48, 0x83, 0xc4, 8, 0xff, 0x65, 0));
	/* sub $8,%rsp; push %rax; push %rax; call *%r8; add $24,%rsp */
	put_code(TEXT + 0xc0, CFI_BYTES(0x48, 0x83, 0xec, 8, 0x50, 0x50, 0x41, 0xff, 0xd0, 0x48,
					0x83, 0xc4, 24));
	build_with(EM_X86_64, ".eh_frame", &frames);
	expect(TEXT + 0x80, CFA_REG, X86_RSP, STG);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x80)->ra_off, -1);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x80)->slot_off[X86_SLOT_RBP], -6);
	expect(TEXT + 0x84, CFA_REG, X86_RSP, STG + 8);
	expect(TEXT + 0x8d, CFA_REG, X86_RSP, STG + 8);
	expect(TEXT + 0x92, CFA_REG, X86_RSP, STG);
	expect(TEXT + 0xc8, CFA_REG, X86_RSP, STG + 24);
	expect(TEXT + 0xcd, CFA_REG, X86_RSP, STG);
	/* Without StgRun(), such code is anybody's. */
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x80, CFA_REG, X86_RSP, 8);
}

TEST(a_return_address_in_a_register)
{
	/* musl's vfork: pop %rdx; mov $58,%eax; syscall; push %rdx; ret */
	put_code(TEXT + 0x100, CFI_BYTES(0x5a, 0xb8, 0x3a, 0, 0, 0, 0x0f, 0x05, 0x52, 0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x106, CFA_REG, X86_RSP, 0);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x106)->ra, RA_IN_REG);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x106)->ra_off, X86_RDX);
	expect(TEXT + 0x109, CFA_REG, X86_RSP, 8);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x109)->ra, RA_AT_CFA);
}

TEST(code_that_cannot_be_followed_has_frame_pointers)
{
	put_code(TEXT + 0x100, CFI_BYTES(0x48, 0x89, 0xc4, 0x90, 0xc3)); /* mov %rax,%rsp */
	put_code(TEXT + 0x200, CFI_BYTES(0x06, 0x06, 0x06));		 /* no instructions */
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x100, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x103, CFA_FRAME_POINTER, 0, CODE_UNDECIDED);
	expect(TEXT + 0x200, CFA_FRAME_POINTER, 0, CODE_UNDECIDED);
}

static void expect_deref(uint64_t addr, int reg, int off, int off2)
{
	expect(addr, CFA_DEREF, reg, off);
	ASSERT_EQ(unwind_table_find(table, addr)->slot_off[UNWIND_CFA_OFF2_SLOT], off2);
}

/* As hand-written code for video does: x264, dav1d. */
TEST(realigned_functions_keep_the_old_stack_pointer_in_a_register)
{
	/* mov %rsp,%rcx; and $-32,%rsp; sub $0x60,%rsp; call; mov %rcx,%rsp; ret */
	uint8_t code[] = { 0x48, 0x89, 0xe1, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x83, 0xec,
			   0x60, 0xe8, 0xf0, 0,	   0,	 0,    0x48, 0x89, 0xcc, 0xc3 };

	put_code(TEXT + 0x100, code, sizeof(code));
	/* vphadduwq %xmm3,%xmm3; test %eax,%eax; jz; ret. And: mov $1,%ecx; ret */
	put_code(TEXT + 0x200,
		 CFI_BYTES(0x8f, 0xe9, 0x78, 0xd7, 0xdb, 0x85, 0xc0, 0x74, 0x01, 0xc3, 0xc3));
	put_code(TEXT + 0x240, CFI_BYTES(0x85, 0xc0, 0x74, 0x05, 0xb9, 1, 0, 0, 0, 0xc3));
	code[0xc] = 0x30;
	put_code(TEXT + 0x300, code, sizeof(code));			       /* calls this: */
	put_code(TEXT + 0x440, CFI_BYTES(0xe8, 0xfb, 0xfd, 0xff, 0xff, 0xc3)); /* call 0x240 */
	put_code(TEXT + 0x500, /* the same with call *%rax */
		 CFI_BYTES(0x48, 0x89, 0xe1, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x83, 0xec, 0x60, 0xff,
			   0xd0, 0x90, 0x48, 0x89, 0xcc, 0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x50b, CFA_REG, X86_RCX, 8);
	expect(TEXT + 0x50d, CFA_FRAME_POINTER, 0, CODE_UNDECIDED);
	expect(TEXT + 0x103, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x107, CFA_REG, X86_RCX, 8);
	expect(TEXT + 0x110, CFA_REG, X86_RCX, 8);
	expect(TEXT + 0x113, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x205, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x209, CFA_REG, X86_RSP, 8);
	/* What it calls overwrites it. */
	expect(TEXT + 0x30b, CFA_REG, X86_RCX, 8);
	expect(TEXT + 0x310, CFA_FRAME_POINTER, 0, CODE_UNDECIDED);
}

TEST(realigned_functions_keep_the_old_stack_pointer_on_the_stack)
{
	/*
	 * mov %rsp,%rax; push %rbx; and $-64,%rsp; sub $0x100,%rsp; mov %rax,0xf8(%rsp); call
	 * *%rdi; push %rdi; pop %rdi; mov 0xf8(%rsp),%rax; mov -8(%rax),%rbx; mov %rax,%rsp; ret
	 */
	put_code(TEXT + 0x100, CFI_BYTES(0x48, 0x89, 0xe0, 0x53, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x81,
					 0xec, 0, 1, 0, 0, 0x48, 0x89, 0x84, 0x24, 0xf8, 0, 0, 0,
					 0xff, 0xd7, 0x57, 0x5f, 0x48, 0x8b, 0x84, 0x24, 0xf8, 0, 0,
					 0, 0x48, 0x8b, 0x58, 0xf8, 0x48, 0x89, 0xc4, 0xc3));
	/*
	 * lea 8(%rsp),%r10; and $-32,%rsp; push %r10; sub $0x20,%rsp; call *%rdi; add $0x20,%rsp;
	 * pop %r10; lea -8(%r10),%rsp; ret
	 */
	put_code(TEXT + 0x200, CFI_BYTES(0x4c, 0x8d, 0x54, 0x24, 8, 0x48, 0x83, 0xe4, 0xe0, 0x41,
					 0x52, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0x48, 0x83, 0xc4,
					 0x20, 0x41, 0x5a, 0x49, 0x8d, 0x62, 0xf8, 0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x104, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x108, CFA_REG, X86_RAX, 8);
	expect_deref(TEXT + 0x117, X86_RSP, 0xf8, 8);
	expect_deref(TEXT + 0x11a, X86_RSP, 0x100, 8);
	expect_deref(TEXT + 0x11b, X86_RSP, 0xf8, 8);
	expect(TEXT + 0x12a, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x209, CFA_REG, X86_R10, 0);
	expect_deref(TEXT + 0x20b, X86_RSP, 0, 0);
	expect_deref(TEXT + 0x211, X86_RSP, 0x20, 0);
	expect(TEXT + 0x217, CFA_REG, X86_R10, 0);
	expect(TEXT + 0x21b, CFA_REG, X86_RSP, 8);
}

TEST(realigned_functions_keep_the_old_stack_pointer_in_a_callee_saved_register)
{
	/* push %rbx; mov %rsp,%rdx; mov %rdx,%rbx; sub %rax,%rsp; call *%rdi; mov %rbx,%rsp;
	 * pop %rbx; ret */
	put_code(TEXT + 0x100, CFI_BYTES(0x53, 0x48, 0x89, 0xe2, 0x48, 0x89, 0xd3, 0x48, 0x29, 0xc4,
					 0xff, 0xd7, 0x48, 0x89, 0xdc, 0x5b, 0xc3));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x107, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x10a, CFA_REG, X86_RBX, 16);
	expect(TEXT + 0x10c, CFA_REG, X86_RBX, 16);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10c)->slot_off[X86_SLOT_RBX], -2);
	expect(TEXT + 0x10f, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x110, CFA_REG, X86_RSP, 8);
}

TEST(the_entry_point_is_the_first_frame)
{
	/* mov %rsp,%rdi; and $-16,%rsp; call f; hlt */
	put_code(TEXT + 0x100,
		 CFI_BYTES(0x48, 0x89, 0xe7, 0x48, 0x83, 0xe4, 0xf0, 0xe8, 0xf4, 0, 0, 0, 0xf4));
	put_code(TEXT + 0x200, CFI_BYTES(0x53, 0x5b, 0xc3));
	build_program(EM_X86_64, NULL, NULL, TEXT + 0x100);
	expect(TEXT + 0x100, CFA_END, 0, 0);
	expect(TEXT + 0x10b, CFA_END, 0, 0);
	expect(TEXT + 0x201, CFA_REG, X86_RSP, 16);
}

/* (PHP's fibers have the same.) Nothing is above. */
TEST(a_stack_of_boost_context_ends_where_its_function_returns_to)
{
	/* [endbr64;] push %rbp; jmp *%rbx; [endbr64;] xor %rdi,%rdi; call; hlt */
	put_code(TEXT + 0x100,
		 CFI_BYTES(0x55, 0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8, 0xf5, 0, 0, 0, 0xf4));
	put_code(TEXT + 0x140, CFI_BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xff, 0xe3, 0xf3, 0x0f, 0x1e,
					 0xfa, 0x48, 0x31, 0xff, 0xe8, 0xac, 0, 0, 0, 0xf4));
	/* the next function: lea -0x38(%rsp),%rsp; jmp *%r8 */
	put_code(TEXT + 0x110, CFI_BYTES(0x48, 0x8d, 0x64, 0x24, 0xc8, 0x41, 0xff, 0xe0));
	build_with(EM_X86_64, NULL, NULL);
	for (int i = 0; i < 12; i++)
		expect(TEXT + 0x100 + i, CFA_END, 0, 0);
	expect(TEXT + 0x110, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x115, CFA_REG, X86_RSP, 64);
	for (int i = 0; i < 20; i++)
		expect(TEXT + 0x140 + i, CFA_END, 0, 0);
}

TEST(signal_trampolines_without_cfi)
{
	put_code(TEXT + 0x100, CFI_BYTES(0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05));
	build_with(EM_X86_64, NULL, NULL);
	expect(TEXT + 0x100, CFA_SIGNAL, X86_RSP, 40); /* where pc - 1 looks */
	expect(TEXT + 0x101, CFA_SIGNAL, X86_RSP, 40);
	expect(TEXT + 0x109, CFA_SIGNAL, X86_RSP, 40);
}

/* FDEs that do not say it: Go's .debug_frame; programs that have no C library. */
static void restorers_with_plain_cfi(const char *section, bool eh_frame)
{
	struct cfi_writer frames = { .eh_frame = eh_frame, .addr = eh_frame ? FRAMES : 0 };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);

	memset(text, 0xcc, sizeof(text));
	/* Go's: mov $15,%rax; syscall; int $3 */
	put_code(TEXT + 0x100, CFI_BYTES(0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, 0xcd, 0x03));
	cfi_writer_fde(&frames, cie, TEXT + 0x80, 0x7b, CFI_BYTES(0x41, 0x0e, 64));
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 11, CFI_BYTES(0x0e, 8));
	cfi_writer_fde(&frames, cie, TEXT + 0x110, 0x10, CFI_BYTES(0x0e, 24));
	/* endbr64; mov $15,%eax; syscall */
	put_code(TEXT + 0x200, CFI_BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05));
	cfi_writer_fde(&frames, cie, TEXT + 0x200, 11, CFI_BYTES(0));
	/* Ordinary code: something before it; another call; not at a function's begin. */
	put_code(TEXT + 0x300, CFI_BYTES(0x50, 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x58, 0xc3));
	cfi_writer_fde(&frames, cie, TEXT + 0x300, 10, CFI_BYTES(0x41, 0x0e, 16));
	put_code(TEXT + 0x400, CFI_BYTES(0xb8, 0x0e, 0, 0, 0, 0x0f, 0x05, 0xc3));
	cfi_writer_fde(&frames, cie, TEXT + 0x400, 8, CFI_BYTES(0));
	put_code(TEXT + 0x500, CFI_BYTES(0xc3, 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05));
	cfi_writer_fde(&frames, cie, TEXT + 0x500, 8, CFI_BYTES(0));
	build_program(EM_X86_64, section, &frames, TEXT + 0x600);
	expect(TEXT + 0x90, CFA_REG, X86_RSP, 64);
	expect(TEXT + 0xfe, CFA_REG, X86_RSP, 64);
	expect(TEXT + 0xff, CFA_SIGNAL, X86_RSP, 40); /* where pc - 1 looks */
	expect(TEXT + 0x100, CFA_SIGNAL, X86_RSP, 40);
	expect(TEXT + 0x109, CFA_SIGNAL, X86_RSP, 40);
	expect(TEXT + 0x110, CFA_REG, X86_RSP, 24);
	expect(TEXT + 0x204, CFA_SIGNAL, X86_RSP, 40);
	expect(TEXT + 0x301, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x307, CFA_REG, X86_RSP, 16);
	expect(TEXT + 0x407, CFA_REG, X86_RSP, 8);
	expect(TEXT + 0x507, CFA_REG, X86_RSP, 8);
}

TEST(signal_trampolines_with_plain_debug_frame)
{
	restorers_with_plain_cfi(".debug_frame", false);
}

TEST(signal_trampolines_with_plain_eh_frame)
{
	restorers_with_plain_cfi(".eh_frame", true);
}

TEST(a_restorer_may_be_the_first_code)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL);

	put_code(TEXT, CFI_BYTES(0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05));
	cfi_writer_fde(&frames, cie, TEXT, 7, CFI_BYTES(0));
	build_program(EM_X86_64, ".eh_frame", &frames, TEXT + 0x600);
	expect(TEXT, CFA_SIGNAL, X86_RSP, 40);
	build_with(EM_X86_64, ".eh_frame", &frames); /* a library: none is looked for */
	expect(TEXT, CFA_REG, X86_RSP, 8);
}

/* A stripped Go program: megabytes of code that nothing describes. */
TEST(signal_trampolines_in_code_too_large_to_be_scanned)
{
	enum { LARGE = 3 << 20, AT = TEXT + 0x155560, ENTRY = TEXT + 0x200000 };
	static uint8_t code[LARGE];
	static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	memset(code, 0xcc, sizeof(code));
	memcpy(code + (AT - TEXT), restorer, sizeof(restorer));
	memcpy(code + (AT - TEXT) + 0x101, restorer, sizeof(restorer)); /* no function's begin */
	for (int pass = 0; pass < 2; pass++) {
		struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
		unsigned int s = elf_writer_section(w, ".text", SHT_PROGBITS,
						    SHF_ALLOC | SHF_EXECINSTR, TEXT, code, LARGE);
		size_t size;
		void *image;

		elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
		image = elf_writer_finish(w, &size);
		elf_image_header(image)->e_entry = pass ? ENTRY : 0;
		build(image, size);
		expect(TEXT, CFA_FRAME_POINTER, 0, CODE_UNFOLLOWED);
		expect(AT - 2, CFA_FRAME_POINTER, 0, CODE_UNFOLLOWED);
		if (!pass) { /* a library */
			expect(AT, CFA_FRAME_POINTER, 0, CODE_UNFOLLOWED);
			continue;
		}
		expect(AT - 1, CFA_SIGNAL, X86_RSP, 40);
		expect(AT, CFA_SIGNAL, X86_RSP, 40);
		expect(AT + 9, CFA_FRAME_POINTER, 0, CODE_UNFOLLOWED);
		expect(AT + 0x101, CFA_FRAME_POINTER, 0, CODE_UNFOLLOWED);
		expect(ENTRY, CFA_END, 0, 0);
		expect(ENTRY + 0x100, CFA_FRAME_POINTER, 0, CODE_UNFOLLOWED);
	}
}

/* Of a file that has this .plt, and no CFI. */
static void build_plt(uint16_t machine, const void *plt, size_t plt_size)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, machine);
	unsigned int s = elf_writer_section(w, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					    TEXT, plt, plt_size);

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	build_finished(w);
}

TEST(plt_sections_without_cfi)
{
	static const uint8_t plt[48] = {
		0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0,	   0x0f, 0x1f, 0x40, 0x00,
		0xff, 0x25, 0, 0, 0, 0, 0x68, 0,    0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff,
		0xff, 0x25, 0, 0, 0, 0, 0x68, 1,    0, 0, 0, 0xe9, 0xd0, 0xff, 0xff, 0xff,
	};

	build_plt(EM_X86_64, plt, sizeof(plt));
	expect(TEXT, CFA_REG, X86_RSP, 16);
	expect(TEXT + 6, CFA_REG, X86_RSP, 24);
	expect(TEXT + 16, CFA_PLT, X86_RSP, 8);
	ASSERT_EQ(unwind_table_find(table, TEXT + 32)->slot_off[UNWIND_CFA_OFF2_SLOT], 11);
}

TEST(aarch64_functions_without_cfi)
{
	/* paciasp; stp x29,x30,[sp,#-32]!; mov x29,sp; bl; ldp x29,x30,[sp],#32; autiasp; ret */
	put_words(TEXT + 0x100, WORDS(0xd503233f, 0xa9be7bfd, 0x910003fd, 0x9400003d, 0xa8c27bfd,
				      0xd50323bf, 0xd65f03c0));
	put_words(TEXT + 0x200, WORDS(0xd10083ff, 0x910083ff, 0xd65f03c0)); /* sub, add, ret */
	build_with(EM_AARCH64, NULL, NULL);
	expect(TEXT + 0x100, CFA_REG, A64_SP, 0);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x100)->ra, RA_IN_REG);
	expect(TEXT + 0x10c, CFA_REG, A64_SP, 32);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10c)->ra, RA_AT_CFA);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10c)->ra_off, -3);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10c)->slot_off[0], -4);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10c)->flags, RULE_RA_SIGNED);
	expect(TEXT + 0x118, CFA_REG, A64_SP, 0);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x118)->flags, 0);
	expect(TEXT + 0x204, CFA_REG, A64_SP, 32);
	expect(TEXT + 0x208, CFA_REG, A64_SP, 0);
}

TEST(aarch64_function_behind_a_call_that_never_returns)
{
	/* stp x19,x30,[sp,#-48]!; bl; stp x19,x20,[sp,#-32]!; str x30,[sp,#16]; bl; nop */
	put_words(TEXT + 0x108,
		  WORDS(0xa9bd7bf3, 0x9400003d, 0xa9be53f3, 0xf9000bfe, 0x9400003d, 0xd503201f));
	build_with(EM_AARCH64, NULL, NULL);
	expect(TEXT + 0x10f, CFA_REG, A64_SP, 48);
	expect(TEXT + 0x110, CFA_REG, A64_SP, 0);
	expect(TEXT + 0x11b, CFA_REG, A64_SP, 32);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x11b)->ra_off, -2);
}

TEST(aarch64_plt_without_cfi)
{
	/* stp x16,x30,[sp,#-16]!; adrp; ldr; add; br x17; nop; nop; nop; adrp; ldr; add; br x17 */
	static const uint32_t plt[] = { 0xa9bf7bf0, 0x90000910, 0xf947fe11, 0x913fe210,
					0xd61f0220, 0xd503201f, 0xd503201f, 0xd503201f,
					0xd0000910, 0xf9400211, 0x91000210, 0xd61f0220 };

	build_plt(EM_AARCH64, plt, sizeof(plt));
	expect(TEXT, CFA_REG, A64_SP, 0);
	expect(TEXT + 4, CFA_REG, A64_SP, 16);
	ASSERT_EQ(unwind_table_find(table, TEXT + 4)->ra_off, -1);
	expect(TEXT + 16, CFA_REG, A64_SP, 16);
	expect(TEXT + 32, CFA_REG, A64_SP, 0);
	ASSERT_EQ(unwind_table_find(table, TEXT + 44)->ra, RA_IN_REG);
	ASSERT_EQ(unwind_table_find(table, TEXT + 44)->ra_off, A64_LR);
}

TEST(aarch64_resolver_whose_caller_has_pushed)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES, .ra = 30, .code_align = 4 };
	size_t cie = cfi_writer_cie(&frames, A64_INITIAL);

	/* lr at cfa + 8; 208 bytes more */
	cfi_writer_fde(&frames, cie, TEXT, 16,
		       CFI_BYTES(0x11, 30, 0x7f, 0x41, 0x0e, 0xd0, 1, 0x9d, 26));
	build_with(EM_AARCH64, ".eh_frame", &frames);
	expect(TEXT, CFA_REG, A64_SP, 16);
	ASSERT_EQ(unwind_table_find(table, TEXT)->ra_off, -1);
	expect(TEXT + 4, CFA_REG, A64_SP, 224);
	ASSERT_EQ(unwind_table_find(table, TEXT + 4)->ra_off, -1);
	ASSERT_EQ(unwind_table_find(table, TEXT + 4)->slot_off[0], -28);
}

TEST(aarch64_where_makecontext_ends)
{
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES, .ra = 30, .code_align = 4 };
	size_t cie = cfi_writer_cie(&frames, A64_INITIAL);

	/* A function; padding; nop; mov x0,x19; cbnz x0; b */
	put_words(TEXT + 0x100, WORDS(0xd65f03c0, 0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f,
				      0xaa1303e0, 0xb5fff9c0, 0x17fffc51));
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 4, CFI_BYTES(0));
	cfi_writer_fde(&frames, cie, TEXT + 0x110, 16, CFI_BYTES(0));
	build_with(EM_AARCH64, ".eh_frame", &frames);
	expect(TEXT + 0x10f, CFA_END, 0, 0);
	ASSERT_EQ(unwind_table_find(table, TEXT + 0x10f)->flags, RULE_NO_CALL);
}

TEST(aarch64_signal_trampoline)
{
	struct cfi_writer frames = {
		.eh_frame = true, .addr = FRAMES, .ra = 30, .code_align = 4, .augmentation = "zRS"
	};
	size_t cie = cfi_writer_cie(&frames, A64_INITIAL);

	/* The vDSO's: with CFI that describes something else. nop; mov x8,#139; svc #0 */
	put_words(TEXT + 0x100, WORDS(0xd503201f, 0xd2801168, 0xd4000001));
	cfi_writer_fde(&frames, cie, TEXT + 0x100, 12, CFI_BYTES(0x0c, 29, 0, 0x9d, 0, 0x9e, 0x7f));
	put_words(TEXT + 0x200, WORDS(0xd2801168, 0xd4000001)); /* musl's: without */
	build_with(EM_AARCH64, ".eh_frame", &frames);
	expect(TEXT + 0x103, CFA_SIGNAL, A64_SP, 312);
	expect(TEXT + 0x104, CFA_SIGNAL, A64_SP, 312);
	expect(TEXT + 0x1ff, CFA_SIGNAL, A64_SP, 312);
	expect(TEXT + 0x200, CFA_SIGNAL, A64_SP, 312);
}

/* --- what unpacks to more than it is --------------------------------------------------------- */

enum { BOMB = 100 << 20 };

/* Address space is what is watched: a sanitizer has its own use for it. */
static void forbid_memory(size_t bytes)
{
#ifndef WITH_SANITIZERS
	struct rlimit limit = { 0 };
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	ASSERT(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	limit.rlim_cur = limit.rlim_max = pages * 4096 + bytes;
	ASSERT_OK(setrlimit(RLIMIT_AS, &limit));
#else
	(void)bytes;
#endif
}

/* `nr` zeros as a compressed section. */
static void *packed_zeros(size_t nr, size_t *ret_size)
{
	_cleanup_free_ uint8_t *zeros = calloc(1, nr);
	uLongf size = compressBound(nr);
	Elf64_Chdr header = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = nr };
	uint8_t *packed = malloc(sizeof(header) + size);

	ASSERT(zeros && packed);
	memcpy(packed, &header, sizeof(header));
	ASSERT_EQ(compress2(packed + sizeof(header), &size, zeros, nr, 1), Z_OK);
	*ret_size = sizeof(header) + size;
	return packed;
}

/* What there was at most so far; 0 under sanitizers, which have their own ways with memory. */
static size_t peak_bytes(void)
{
	struct rusage usage = { 0 };

#ifndef WITH_SANITIZERS
	ASSERT_OK(getrusage(RUSAGE_SELF, &usage));
#endif
	return (size_t)usage.ru_maxrss * 1024;
}

/* A good table is built beside a section that promises `nr` bytes, with less than half of these. */
static void build_beside_bomb(const char *section, size_t nr)
{
	struct elf_writer *w = writer_with_text(EM_X86_64);
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL), size, packed_size, before;
	_cleanup_free_ void *packed = packed_zeros(nr, &packed_size);
	void *image;

	cfi_writer_fde(&frames, cie, TEXT, 0x100, CFI_BYTES(0x0e, 16));
	elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAMES, frames.data,
			   frames.size);
	ASSERT(elf_writer_section(w, section, SHT_PROGBITS, SHF_COMPRESSED, 0, packed,
				  packed_size) > 0);
	image = elf_writer_finish(w, &size);
	before = peak_bytes();
	build(image, size);
	ASSERT(peak_bytes() <= before + nr / 2);
	expect(TEXT + 0x10, CFA_REG, X86_RSP, 16);
}

TEST(a_bomb_is_not_unpacked)
{
	build_beside_bomb(".debug_frame", BOMB);
}

/* They are searched for what GHC's programs call. */
TEST(names_are_not_unpacked)
{
	build_beside_bomb(".dynstr", 60 << 20);
}

/* What follows .eh_frame in its segment is none of its business, and may be a hole. */
TEST(a_segment_is_read_up_to_the_terminator_only)
{
	struct elf_writer *w = writer_with_text(EM_X86_64);
	struct cfi_writer frames = { .eh_frame = true, .addr = FRAMES };
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL), size;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	uint8_t hdr[16] = { 1, 0x1b, 0xff, 0xff, FRAMES - HDR - 4 };
	unsigned int first, last;
	void *image;
	int fd;

	cfi_writer_fde(&frames, cie, TEXT, 0x100, CFI_BYTES(0x0e, 16));
	cfi_writer_end(&frames);
	first = elf_writer_section(w, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, HDR, hdr,
				   sizeof(hdr));
	last = elf_writer_section(w, ".frames", SHT_PROGBITS, SHF_ALLOC, FRAMES, frames.data,
				  frames.size);
	elf_writer_segment(w, PT_LOAD, PF_R, first, last);
	elf_writer_segment(w, PT_GNU_EH_FRAME, PF_R, first, first);
	elf_writer_no_section_table(w);
	image = elf_writer_finish(w, &size);
	elf_image_segment(image, 1)->p_filesz = BOMB;
	fd = elf_image_fd(image, size);
	ASSERT_OK(ftruncate(fd, (off_t)size + BOMB));
	ASSERT_OK(elf_file_open_fd(fd, &elf));
	free(image);
	forbid_memory(BOMB / 2);
	ASSERT_OK(unwind_table_build(elf, 0, &table));
	expect(TEXT + 0x10, CFA_REG, X86_RSP, 16);
}
