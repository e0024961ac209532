// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind_table.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "abi/sample.h"
#include "cfi_writer.h"
#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

enum { TEXT = 0x1000, TEXT_SIZE = 0x1000, FRAMES = 0x3000, HDR = 0x2ff0 };

#define X86_INITIAL CFI_BYTES(0x0c, 7, 8, 0x90, 1)
#define A64_INITIAL CFI_BYTES(0x0c, 31, 0)

static uint8_t text[TEXT_SIZE];
static struct unwind_table *table;
static unsigned int follow;

static void build(void *image, size_t size)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;

	unwind_table_free(table);
	table = NULL;
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(unwind_table_build(elf, follow, &table));
	free(image);
}

static struct elf_writer *writer_with_text(uint16_t machine)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, machine);
	unsigned int s = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					    TEXT, text, sizeof(text));

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	return w;
}

static void build_program(uint16_t machine, const char *name, const struct cfi_writer *frames,
			  uint64_t entry)
{
	struct elf_writer *w = writer_with_text(machine);
	size_t size;
	void *image;

	if (frames)
		elf_writer_section(w, name, SHT_PROGBITS, SHF_ALLOC, FRAMES, frames->data,
				   frames->size);
	image = elf_writer_finish(w, &size);
	elf_image_header(image)->e_entry = entry;
	build(image, size);
}

static void build_with(uint16_t machine, const char *name, const struct cfi_writer *frames)
{
	build_program(machine, name, frames, 0);
}

static void expect(uint64_t addr, int cfa, int reg, int off)
{
	const struct unwind_rule *rule = unwind_table_find(table, addr);

	ck_assert_msg(rule->cfa == cfa && rule->cfa_reg == reg && rule->cfa_off == off,
		      "%#lx: %d: %d + %d, not %d: %d + %d", (long)addr, rule->cfa, rule->cfa_reg,
		      rule->cfa_off, cfa, reg, off);
}

static void put_code(uint64_t addr, const uint8_t *code, size_t size)
{
	memcpy(text + (addr - TEXT), code, size);
}

/* --- CFI ------------------------------------------------------------------------------------- */

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
	size_t cie = cfi_writer_cie(&frames, X86_INITIAL), size;
	/* version 1, eh_frame_ptr pcrel sdata4, no table */
	uint8_t hdr[16] = { 1, 0x1b, 0xff, 0xff };
	int32_t rel = FRAMES - (HDR + 4);
	struct elf_writer *w = writer_with_text(EM_X86_64);
	unsigned int h, f;
	void *image;

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
	image = elf_writer_finish(w, &size);
	build(image, size);
	expect(TEXT + 0x80, CFA_REG, X86_RSP, 16);
	ASSERT_EQ(table->nr_bad_fdes, 0);
}

TEST(debug_frame_fills_what_eh_frame_leaves_open)
{
	struct cfi_writer eh = { .eh_frame = true, .addr = FRAMES }, debug = { 0 };
	struct elf_writer *w = writer_with_text(EM_X86_64);
	size_t size, cie = cfi_writer_cie(&eh, X86_INITIAL);
	void *image;

	cfi_writer_fde(&eh, cie, TEXT + 0x100, 0x100, CFI_BYTES(0x0e, 16));
	cfi_writer_fde(&eh, cie, TEXT + 0x300, 0x100, CFI_BYTES(0x0e, 16));
	cie = cfi_writer_cie(&debug, X86_INITIAL);
	cfi_writer_fde(&debug, cie, TEXT, 0x100, CFI_BYTES(0x0e, 24));
	cfi_writer_fde(&debug, cie, TEXT + 0x180, 0x200, CFI_BYTES(0x0e, 32));
	elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAMES, eh.data, eh.size);
	elf_writer_section(w, ".debug_frame", SHT_PROGBITS, 0, 0, debug.data, debug.size);
	image = elf_writer_finish(w, &size);
	build(image, size);
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
	size_t size, cie = cfi_writer_cie(&debug, X86_INITIAL);
	void *image;

	cfi_writer_fde(&debug, cie, TEXT, 0x100, CFI_BYTES(0x0e, 24));
	header.ch_size = debug.size;
	memcpy(packed, &header, sizeof(header));
	ASSERT_EQ(compress(packed + sizeof(header), &packed_size, debug.data, debug.size), Z_OK);
	elf_writer_section(w, ".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, packed,
			   sizeof(header) + packed_size);
	image = elf_writer_finish(w, &size);
	build(image, size);
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
	expect(TEXT + 0x103, CFA_FRAME_POINTER, 0, 0);
	expect(TEXT + 0x200, CFA_FRAME_POINTER, 0, 0);
}

TEST(the_entry_point_is_the_first_frame)
{
	struct elf_writer *w;
	size_t size;
	void *image;

	/* mov %rsp,%rdi; and $-16,%rsp; call f; hlt */
	put_code(TEXT + 0x100,
		 CFI_BYTES(0x48, 0x89, 0xe7, 0x48, 0x83, 0xe4, 0xf0, 0xe8, 0xf4, 0, 0, 0, 0xf4));
	put_code(TEXT + 0x200, CFI_BYTES(0x53, 0x5b, 0xc3));
	w = writer_with_text(EM_X86_64);
	image = elf_writer_finish(w, &size);
	elf_image_header(image)->e_entry = TEXT + 0x100;
	build(image, size);
	expect(TEXT + 0x100, CFA_END, 0, 0);
	expect(TEXT + 0x10b, CFA_END, 0, 0);
	expect(TEXT + 0x201, CFA_REG, X86_RSP, 16);
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
		expect(TEXT, CFA_FRAME_POINTER, 0, 0);
		expect(AT - 2, CFA_FRAME_POINTER, 0, 0);
		if (!pass) { /* a library */
			expect(AT, CFA_FRAME_POINTER, 0, 0);
			continue;
		}
		expect(AT - 1, CFA_SIGNAL, X86_RSP, 40);
		expect(AT, CFA_SIGNAL, X86_RSP, 40);
		expect(AT + 9, CFA_FRAME_POINTER, 0, 0);
		expect(AT + 0x101, CFA_FRAME_POINTER, 0, 0);
		expect(ENTRY, CFA_END, 0, 0);
		expect(ENTRY + 0x100, CFA_FRAME_POINTER, 0, 0);
	}
}

/* Of a file that has this .plt, and no CFI. */
static void build_plt(uint16_t machine, const void *plt, size_t plt_size)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, machine);
	unsigned int s = elf_writer_section(w, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					    TEXT, plt, plt_size);
	size_t size;
	void *image;

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, s, s);
	image = elf_writer_finish(w, &size);
	build(image, size);
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

static void put_words(uint64_t addr, const uint32_t *words, size_t nr)
{
	memcpy(text + (addr - TEXT), words, nr * 4);
}
#define WORDS(...) (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4

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
