// SPDX-License-Identifier: Apache-2.0
#include "dwarf/cfi.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "abi/sample.h"
#include "cfi_writer.h"
#include "dwarf/cfi_read.h"
#include "test.h"

enum { FUNCTION = 0x1000, FUNCTION_SIZE = 0x100, SECTION = 0x200000, ROWS_MAX = 64 };

/* CFA = rsp + 8, return address at CFA - 8 */
#define X86_INITIAL 0x0c, 7, 8, 0x90, 1

struct row {
	uint64_t start, end;
	struct unwind_rule rule;
	int result;
};

static struct row rows[ROWS_MAX];
static int nr_rows; /* or the negative errno that ended them */
static struct cfi_arch arch;

static struct cfi_section section_of(const struct cfi_writer *w)
{
	return (struct cfi_section){
		.data = w->data, .size = w->size, .addr = w->addr, .eh_frame = w->eh_frame
	};
}

static int interpret(const struct cfi_section *section, const struct cfi_cie *cie,
		     const struct cfi_fde *fde)
{
	static struct cfi_rows it;
	union cfi_rule rule;
	int r, nr = 0;

	cfi_rows_begin(&it, &arch, section, cie, fde);
	while ((r = cfi_rows_next(&it)) > 0 && nr < ROWS_MAX) {
		rows[nr] = (struct row){ .start = it.start, .end = it.end };
		rows[nr].result = cfi_row_rule(&it, &rule);
		if (cie->signal && cfi_row_signal(&it, &rule) == 0)
			rows[nr].result = 1;
		rows[nr++].rule = rule.rule;
	}
	return r < 0 ? r : nr;
}

/* The rows of the section's last FDE. */
static void run_section(const struct cfi_section *section)
{
	struct cfi_entry entry, cie_entry;
	struct cfi_cie cie;
	struct cfi_fde fde;
	int r;

	nr_rows = -ENOENT;
	for (uint32_t at = 0; (r = cfi_entry_at(section, at, &entry)) > 0; at = entry.next) {
		if (entry.is_cie)
			continue;
		nr_rows = cfi_entry_at(section, entry.cie, &cie_entry);
		if (nr_rows <= 0)
			continue;
		nr_rows = cfi_parse_cie(section, &arch, &cie_entry, &cie);
		if (nr_rows == 0)
			nr_rows = cfi_parse_fde(section, &entry, &cie, &fde);
		if (nr_rows == 0)
			nr_rows = interpret(section, &cie, &fde);
	}
	if (r < 0)
		nr_rows = r;
}

static void run_with(struct cfi_writer *w, const uint8_t *initial, size_t initial_size,
		     const uint8_t *program, size_t size)
{
	struct cfi_section section;
	size_t cie;

	w->addr = SECTION;
	cie = cfi_writer_cie(w, initial, initial_size);
	cfi_writer_fde(w, cie, FUNCTION, FUNCTION_SIZE, program, size);
	section = section_of(w);
	run_section(&section);
}

static void run_x86(const uint8_t *program, size_t size)
{
	struct cfi_writer w = { .eh_frame = true };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&w, CFI_BYTES(X86_INITIAL), program, size);
}

static void run_a64(const uint8_t *program, size_t size)
{
	struct cfi_writer w = { .eh_frame = true, .ra = 30, .code_align = 4 };

	ASSERT_OK(cfi_arch_init(&arch, EM_AARCH64, 0));
	run_with(&w, CFI_BYTES(0x0c, 31, 0), program, size);
}

static void expect_cfa(int row, uint64_t start, int cfa, int reg, int off)
{
	ASSERT(row < nr_rows);
	ASSERT_EQ(rows[row].start, start);
	ASSERT_EQ(rows[row].rule.cfa, cfa);
	ASSERT_EQ(rows[row].rule.cfa_reg, reg);
	ASSERT_EQ(rows[row].rule.cfa_off, off);
}

static void expect_refused(int row)
{
	ASSERT(row < nr_rows);
	ASSERT_EQ(rows[row].result, -ENOTSUP);
	ASSERT_EQ(rows[row].rule.cfa, CFA_STOP);
	ASSERT_EQ(rows[row].rule.cfa_off, STOP_BAD_CFI);
}

TEST(a_function_without_instructions_has_its_cies_row)
{
	run_x86(CFI_BYTES(0));
	ASSERT_EQ(nr_rows, 1);
	expect_cfa(0, FUNCTION, CFA_REG, X86_RSP, 8);
	ASSERT_EQ(rows[0].end, FUNCTION + FUNCTION_SIZE);
	ASSERT_EQ(rows[0].rule.ra, RA_AT_CFA);
	ASSERT_EQ(rows[0].rule.ra_off, -1);
	ASSERT_EQ(rows[0].rule.slot_off[0], SLOT_SAME);
}

TEST(a_standard_frame)
{
	/* push %rbp; mov %rsp,%rbp; ...; leave */
	run_x86(CFI_BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x5c, 0x0c, 7, 8, 0xc6));
	ASSERT_EQ(nr_rows, 4);
	expect_cfa(1, FUNCTION + 1, CFA_REG, X86_RSP, 16);
	ASSERT_EQ(rows[1].rule.slot_off[0], -2);
	expect_cfa(2, FUNCTION + 4, CFA_REG, X86_RBP, 16);
	expect_cfa(3, FUNCTION + 32, CFA_REG, X86_RSP, 8);
	ASSERT_EQ(rows[3].rule.slot_off[0], SLOT_SAME);
}

TEST(every_way_to_advance)
{
	run_x86(CFI_BYTES(0x42, 0x0e, 16, 0x02, 3, 0x0e, 24, 0x03, 4, 0, 0x0e, 32, 0x04, 5, 0, 0, 0,
			  0x0e, 40, 0x1d, 6, 0, 0, 0, 0, 0, 0, 0, 0x0e, 48));
	ASSERT_EQ(nr_rows, 6);
	expect_cfa(1, FUNCTION + 2, CFA_REG, X86_RSP, 16);
	expect_cfa(2, FUNCTION + 5, CFA_REG, X86_RSP, 24);
	expect_cfa(3, FUNCTION + 9, CFA_REG, X86_RSP, 32);
	expect_cfa(4, FUNCTION + 14, CFA_REG, X86_RSP, 40);
	expect_cfa(5, FUNCTION + 20, CFA_REG, X86_RSP, 48);
}

TEST(set_loc_takes_an_encoded_address)
{
	struct cfi_writer w = { .eh_frame = true, .encoding = 0x04 };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&w, CFI_BYTES(X86_INITIAL),
		 CFI_BYTES(0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16));
	ASSERT_EQ(nr_rows, 2);
	expect_cfa(1, FUNCTION + 0x20, CFA_REG, X86_RSP, 16);
}

TEST(going_back_is_malformed_and_beyond_the_end_is_cut)
{
	struct cfi_writer w = { .eh_frame = true, .encoding = 0x04 };

	run_x86(CFI_BYTES(0x03, 0, 2, 0x0e, 16));
	ASSERT_EQ(nr_rows, 1);
	ASSERT_EQ(rows[0].end, FUNCTION + FUNCTION_SIZE);
	run_with(&w, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x01, 0, 0, 0, 0, 0, 0, 0, 0));
	ASSERT_EQ(nr_rows, -EINVAL);
}

TEST(signed_and_extended_forms)
{
	/* def_cfa_sf rbp, -3 * -8; offset_extended rbp, 2; _sf rbp, 3; GNU_negative rbp, 4 */
	run_x86(CFI_BYTES(0x12, 6, 0x7d, 0x05, 6, 2, 0x41, 0x11, 6, 3, 0x41, 0x2f, 6, 4, 0x41, 0x13,
			  0x7c, 0x41, 0x06, 6, 0x41, 0x08, 6, 0x41, 0x07, 6));
	ASSERT_EQ(nr_rows, 7);
	expect_cfa(0, FUNCTION, CFA_REG, X86_RBP, 24);
	ASSERT_EQ(rows[0].rule.slot_off[0], -2);
	ASSERT_EQ(rows[1].rule.slot_off[0], -3);
	ASSERT_EQ(rows[2].rule.slot_off[0], 4);
	ASSERT_EQ(rows[3].rule.cfa_off, 32);
	ASSERT_EQ(rows[4].rule.slot_off[0], SLOT_SAME);
	ASSERT_EQ(rows[5].rule.slot_off[0], SLOT_SAME);
	ASSERT_EQ(rows[6].rule.slot_off[0], SLOT_LOST);
}

TEST(remember_and_restore_nest)
{
	uint8_t program[2 * 3 * 20 + 3 * 21];
	size_t n = 0;

	for (int i = 0; i < 20; i++) {
		program[n++] = 0x0a;
		program[n++] = 0x41;
		program[n++] = 0x0e;
		program[n++] = 16 + 2 * i;
	}
	for (int i = 0; i < 20; i++) {
		program[n++] = 0x41;
		program[n++] = 0x0b;
	}
	run_x86(program, n);
	ASSERT_EQ(nr_rows, 41);
	ASSERT_EQ(rows[20].rule.cfa_off, 16 + 2 * 19);
	ASSERT_EQ(rows[21].rule.cfa_off, 16 + 2 * 18);
	ASSERT_EQ(rows[40].rule.cfa_off, 8);
	run_x86(CFI_BYTES(0x0b));
	ASSERT_EQ(nr_rows, -EINVAL);
}

TEST(nesting_is_bounded)
{
	uint8_t program[CFI_REMEMBER_MAX + 1];

	memset(program, 0x0a, sizeof(program));
	run_x86(program, CFI_REMEMBER_MAX);
	ASSERT_EQ(nr_rows, 1);
	run_x86(program, CFI_REMEMBER_MAX + 1);
	ASSERT_EQ(nr_rows, -EINVAL);
}

TEST(args_size_is_skipped_and_unknown_opcodes_are_malformed)
{
	run_x86(CFI_BYTES(0x2e, 0x80, 1, 0x41, 0x0e, 16));
	ASSERT_EQ(nr_rows, 2);
	run_x86(CFI_BYTES(0x41, 0x3f));
	ASSERT_EQ(nr_rows, -EINVAL);
	run_x86(CFI_BYTES(0x2d)); /* SPARC's */
	ASSERT_EQ(nr_rows, -EINVAL);
}

TEST(return_address_undefined_ends_the_stack)
{
	run_x86(CFI_BYTES(0x07, 16));
	ASSERT_EQ(rows[0].rule.cfa, CFA_END);
	ASSERT_EQ(rows[0].result, 0);
}

TEST(return_address_in_a_register)
{
	run_x86(CFI_BYTES(0x09, 16, 5)); /* vfork: rdi */
	ASSERT_EQ(rows[0].rule.ra, RA_IN_REG);
	ASSERT_EQ(rows[0].rule.ra_off, X86_RDI);
	run_x86(CFI_BYTES(0x08, 16)); /* "same" means nothing here */
	expect_refused(0);
}

TEST(what_a_rule_cannot_say_is_refused_or_lost)
{
	run_x86(CFI_BYTES(0x14, 16, 1)); /* return address *is* CFA - 8 */
	expect_refused(0);
	run_x86(CFI_BYTES(0x87, 2)); /* the caller's rsp is in memory */
	expect_refused(0);
	run_x86(CFI_BYTES(0x14, 7, 0)); /* it is the CFA, as always */
	ASSERT_EQ(rows[0].result, 0);
	run_x86(CFI_BYTES(0x0c, 17, 8)); /* a CFA of xmm0 */
	expect_refused(0);
	run_x86(CFI_BYTES(0x14, 6, 1, 0x41, 0x15, 6, 1, 0x41, 0x09, 6, 0));
	ASSERT_EQ(nr_rows, 3);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(rows[i].rule.slot_off[0], SLOT_LOST);
}

TEST(registers_nobody_needs_are_lost_once_saved)
{
	run_x86(CFI_BYTES(0x83, 2, 0x41, 0xc3, 0x41));
	ASSERT_EQ(rows[0].rule.slot_off[1], SLOT_LOST);
	ASSERT_EQ(rows[0].rule.slot_off[5], SLOT_LOST);
	ASSERT_EQ(rows[0].rule.slot_off[0], SLOT_SAME);
	ASSERT_EQ(rows[1].rule.slot_off[1], SLOT_SAME);
}

TEST(registers_that_are_needed_are_followed)
{
	struct cfi_writer w = { .eh_frame = true };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 1u << 1)); /* rbx */
	run_with(&w, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x83, 2, 0x8c, 3));
	ASSERT_EQ(rows[0].rule.slot_off[1], -2);
	ASSERT_EQ(rows[0].rule.slot_off[2], SLOT_LOST);
}

TEST(plt_expression)
{
	run_x86(CFI_BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22));
	expect_cfa(0, FUNCTION, CFA_PLT, X86_RSP, 8);
	ASSERT_EQ(rows[0].rule.slot_off[UNWIND_CFA_OFF2_SLOT], 11);
	ASSERT_EQ(rows[0].rule.ra_off, -1);
}

TEST(realigned_stack)
{
	/* CFA = *(rbp - 8); rbp at rbp + 0, rbx at rbp - 16 */
	run_x86(CFI_BYTES(0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0, 0x10, 3, 2, 0x76, 0x70));
	expect_cfa(0, FUNCTION, CFA_DEREF, X86_RBP, -8);
	ASSERT_EQ(rows[0].rule.slot_off[UNWIND_CFA_OFF2_SLOT], 0);
	ASSERT_EQ(rows[0].rule.flags, RULE_SLOTS_AT_FP);
	ASSERT_EQ(rows[0].rule.slot_off[0], -1);
	run_x86(CFI_BYTES(0x0f, 5, 0x76, 0x78, 0x06, 0x23, 16)); /* with plus_uconst */
	ASSERT_EQ(rows[0].rule.slot_off[UNWIND_CFA_OFF2_SLOT], 16);
	/* its prologue: CFA = r10, rbp at rbp + 0 */
	run_x86(CFI_BYTES(0x0c, 10, 0, 0x10, 6, 2, 0x76, 0));
	expect_cfa(0, FUNCTION, CFA_REG, X86_R10, 0);
	ASSERT_EQ(rows[0].rule.flags, RULE_SLOTS_AT_FP);
	ASSERT_EQ(rows[0].rule.slot_off[0], -1);
}

TEST(saved_stack_pointer_behind_an_array)
{
	/* CFA = *(rsp + 8 + 8 * r9) + 8, as OpenSSL writes it, with mul, and with shl */
	run_x86(CFI_BYTES(0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8));
	expect_cfa(0, FUNCTION, CFA_DEREF, X86_RSP, 8);
	ASSERT_EQ(rows[0].rule.slot_off[UNWIND_CFA_OFF2_SLOT], 8);
	ASSERT_EQ(RULE_INDEX(rows[0].rule.flags), 9);
	run_x86(CFI_BYTES(0x0f, 10, 0x77, 8, 0x79, 1, 0x33, 0x24, 0x22, 0x06, 0x23, 8));
	expect_cfa(0, FUNCTION, CFA_DEREF, X86_RSP, 16);
	ASSERT_EQ(RULE_INDEX(rows[0].rule.flags), 9);
	/* two index registers, and one without what it points to */
	run_x86(CFI_BYTES(0x0f, 13, 0x77, 8, 0x79, 0, 0x33, 0x24, 0x22, 0x79, 0, 0x33, 0x24, 0x22,
			  0x06));
	ASSERT_EQ(rows[0].rule.cfa, CFA_STOP);
	run_x86(CFI_BYTES(0x0f, 7, 0x77, 8, 0x79, 0, 0x33, 0x24, 0x22));
	ASSERT_EQ(rows[0].rule.cfa, CFA_STOP);
}

TEST(expressions_relative_to_a_known_cfa_become_offsets)
{
	/* CFA = rbp + 16, rbp at rbp + 0, return address at rbp + 8, or both at CFA - n */
	run_x86(CFI_BYTES(0x0c, 6, 16, 0x10, 6, 2, 0x76, 0, 0x10, 16, 2, 0x76, 8));
	ASSERT_EQ(rows[0].rule.slot_off[0], -2);
	ASSERT_EQ(rows[0].rule.ra_off, -1);
	ASSERT_EQ(rows[0].rule.flags, 0);
	run_x86(CFI_BYTES(0x10, 6, 2, 0x40, 0x1c)); /* CFA - 16 */
	ASSERT_EQ(rows[0].rule.slot_off[0], -2);
	run_x86(CFI_BYTES(0x10, 6, 2, 0x23, 0x10)); /* CFA + 16 */
	ASSERT_EQ(rows[0].rule.slot_off[0], 2);
	/* an expression for the CFA that is a register plus an offset */
	run_x86(CFI_BYTES(0x0f, 2, 0x77, 32));
	expect_cfa(0, FUNCTION, CFA_REG, X86_RSP, 32);
}

TEST(expressions_that_nobody_understands_cost_their_row_only)
{
	run_x86(CFI_BYTES(0x0f, 2, 0x77, 0x80, 0x41, 0x0c, 7, 16)); /* cut off */
	expect_refused(0);
	expect_cfa(1, FUNCTION + 1, CFA_REG, X86_RSP, 16);
	run_x86(CFI_BYTES(0x0f, 3, 0x77, 0, 0xe0));
	expect_refused(0);
	run_x86(CFI_BYTES(0x0f, 0));
	expect_refused(0);
	run_x86(CFI_BYTES(0x0f, 3, 0x76, 0, 0x06, 0x0e, 16)); /* no offset to replace */
	ASSERT_EQ(nr_rows, -EINVAL);
}

TEST(glibcs_signal_trampoline)
{
	struct cfi_writer w = { .eh_frame = true, .augmentation = "zRS" };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&w, CFI_BYTES(X86_INITIAL),
		 CFI_BYTES(0x0f, 4, 0x77, 0xa0, 1, 0x06, /* CFA = *(rsp + 160) */
			   0x10, 6, 3, 0x77, 0xf8, 0,	 /* rbp at rsp + 120 */
			   0x10, 7, 3, 0x77, 0xa0, 1,	 /* rsp at rsp + 160 */
			   0x10, 16, 3, 0x77, 0xa8, 1)); /* rip at rsp + 168 */
	ASSERT_EQ(nr_rows, 1);
	ASSERT_EQ(rows[0].result, 1);
	expect_cfa(0, FUNCTION, CFA_SIGNAL, X86_RSP, 40);
}

TEST(aarch64_link_register_and_frames)
{
	/* stp x29,x30,[sp,-32]!; ...; ldp */
	run_a64(CFI_BYTES(0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x45, 0xde, 0xdd, 0x0e, 0));
	ASSERT_EQ(nr_rows, 3);
	expect_cfa(0, FUNCTION, CFA_REG, A64_SP, 0);
	ASSERT_EQ(rows[0].rule.ra, RA_IN_REG);
	ASSERT_EQ(rows[0].rule.ra_off, A64_LR);
	expect_cfa(1, FUNCTION + 4, CFA_REG, A64_SP, 32);
	ASSERT_EQ(rows[1].rule.ra, RA_AT_CFA);
	ASSERT_EQ(rows[1].rule.ra_off, -3);
	ASSERT_EQ(rows[1].rule.slot_off[0], -4);
	expect_cfa(2, FUNCTION + 24, CFA_REG, A64_SP, 0);
	ASSERT_EQ(rows[2].rule.ra, RA_IN_REG);
}

TEST(aarch64_signed_return_addresses)
{
	run_a64(CFI_BYTES(0x41, 0x2d, 0x41, 0x0a, 0x2d, 0x41, 0x0b));
	ASSERT_EQ(rows[0].rule.flags, 0);
	ASSERT_EQ(rows[1].rule.flags, RULE_RA_SIGNED);
	ASSERT_EQ(rows[2].rule.flags, 0);
	ASSERT_EQ(rows[3].rule.flags, RULE_RA_SIGNED);
}

TEST(all_augmentations_and_versions)
{
	static const char *const known[] = { "zR", "zPLR", "zRS", "zRB", "zLRBG", "zRX" };
	static const uint8_t versions[] = { 1, 3, 4 };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		for (size_t v = 0; v < sizeof(versions); v++) {
			struct cfi_writer w = { .eh_frame = true,
						.augmentation = known[i],
						.version = versions[v] };

			run_with(&w, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x41, 0x0e, 16));
			ck_assert_msg(nr_rows == 2, "%s version %d: %d", known[i], versions[v],
				      nr_rows);
		}
	}
}

TEST(unknown_augmentations_and_versions_are_refused)
{
	struct cfi_writer strange = { .eh_frame = true, .augmentation = "armcc+" };
	struct cfi_writer before_r = { .eh_frame = true, .augmentation = "zXR" };
	struct cfi_writer future = { .eh_frame = true, .version = 5 };
	struct cfi_writer other_ra = { .eh_frame = true, .ra = 15 };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&strange, CFI_BYTES(X86_INITIAL), CFI_BYTES(0));
	ASSERT_EQ(nr_rows, -ENOTSUP);
	run_with(&before_r, CFI_BYTES(X86_INITIAL), CFI_BYTES(0));
	ASSERT_EQ(nr_rows, -ENOTSUP);
	run_with(&future, CFI_BYTES(X86_INITIAL), CFI_BYTES(0));
	ASSERT_EQ(nr_rows, -ENOTSUP);
	run_with(&other_ra, CFI_BYTES(X86_INITIAL), CFI_BYTES(0));
	ASSERT_EQ(nr_rows, -ENOTSUP);
}

TEST(gcc_2s_eh_augmentation)
{
	struct cfi_writer w = { .eh_frame = true, .augmentation = "eh", .encoding = 0x04 };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&w, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x41, 0x0e, 16));
	ASSERT_EQ(nr_rows, 2);
	expect_cfa(1, FUNCTION + 1, CFA_REG, X86_RSP, 16);
}

TEST(all_address_encodings)
{
	/* plain, pcrel and functional forms of each format, and relative to sections that begin at
	 * 0 */
	static const uint8_t encodings[] = { 0x01, 0x02, 0x03, 0x04, 0x0b, 0x0c, 0x10, 0x14,
					     0x1b, 0x1c, 0x24, 0x2b, 0x33, 0x3b, 0x44, 0x0a };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct cfi_writer w = { .eh_frame = true, .encoding = encodings[i] };

		run_with(&w, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x41, 0x0e, 16));
		ck_assert_msg(nr_rows == 2, "encoding %#x: %d", encodings[i], nr_rows);
		ASSERT_EQ(rows[0].start, FUNCTION);
		ASSERT_EQ(rows[1].end, FUNCTION + FUNCTION_SIZE);
	}
}

TEST(indirect_and_omitted_addresses_are_refused)
{
	struct cfi_writer indirect = { .eh_frame = true, .encoding = 0x9b };
	struct cfi_writer omitted = { .eh_frame = true, .encoding = 0xff };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&indirect, CFI_BYTES(X86_INITIAL), CFI_BYTES(0));
	ASSERT_EQ(nr_rows, -ENOTSUP);
	run_with(&omitted, CFI_BYTES(X86_INITIAL), CFI_BYTES(0));
	ASSERT_EQ(nr_rows, -ENOTSUP);
}

TEST(section_relative_encodings_add_their_base)
{
	uint8_t data[] = { 0x10, 0, 0, 0 };
	struct cfi_section section = { .text_base = 0x1000, .data_base = 0x2000 };
	struct cfi_reader r = { data, data + 4, false };
	uint64_t v;

	ASSERT_OK(cfi_read_encoded(&r, 0x23, 0, &section, &v));
	ASSERT_EQ(v, 0x1010);
	r.pos = data;
	ASSERT_OK(cfi_read_encoded(&r, 0x33, 0, &section, &v));
	ASSERT_EQ(v, 0x2010);
	r.pos = data;
	ASSERT_ERR(cfi_read_encoded(&r, 0x24, 0, &section, &v), EINVAL);
}

TEST(aligned_addresses)
{
	uint8_t data[16] = { 1, 2, 3, 0x34, 0x12 };
	struct cfi_section section = { 0 };
	struct cfi_reader r = { data, data + sizeof(data), false };
	uint64_t v;

	ASSERT_OK(cfi_read_encoded(&r, 0x50, 0x1005, &section, &v));
	ASSERT_EQ(v, 0x1234);
	ASSERT_EQ(r.pos - data, 11);
}

TEST(sixty_four_bit_dwarf)
{
	struct cfi_writer eh = { .eh_frame = true, .dwarf64 = true };
	struct cfi_writer debug = { .dwarf64 = true };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&eh, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x41, 0x0e, 16));
	ASSERT_EQ(nr_rows, 2);
	run_with(&debug, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x41, 0x0e, 16));
	ASSERT_EQ(nr_rows, 2);
}

TEST(debug_frame_of_every_version)
{
	static const uint8_t versions[] = { 1, 3, 4 };

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	for (size_t v = 0; v < sizeof(versions); v++) {
		struct cfi_writer w = { .version = versions[v] };

		run_with(&w, CFI_BYTES(X86_INITIAL), CFI_BYTES(0x41, 0x0e, 16));
		ASSERT_EQ(nr_rows, 2);
		expect_cfa(1, FUNCTION + 1, CFA_REG, X86_RSP, 16);
	}
}

TEST(an_empty_entry_ends_a_segments_frames_but_not_a_sections)
{
	struct cfi_writer w = { .eh_frame = true, .addr = SECTION };
	struct cfi_section section;
	struct cfi_entry entry;
	uint32_t next;

	cfi_writer_cie(&w, CFI_BYTES(X86_INITIAL));
	next = w.size;
	cfi_writer_end(&w);
	cfi_writer_cie(&w, CFI_BYTES(X86_INITIAL));
	section = section_of(&w);
	ASSERT_EQ(cfi_entry_at(&section, next, &entry), 1);
	ASSERT_EQ(entry.offset, next + 4);
	section.to_terminator = true;
	ASSERT_EQ(cfi_entry_at(&section, next, &entry), 0);
}

/* Whatever is cut off or overwritten: an error or rows, and (under ASan) no read out of bounds. */
TEST(cut_and_damaged_sections_are_survived)
{
	struct cfi_writer w = { .eh_frame = true };
	struct cfi_section section;

	ASSERT_OK(cfi_arch_init(&arch, EM_X86_64, 0));
	run_with(&w, CFI_BYTES(X86_INITIAL),
		 CFI_BYTES(0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x0f, 3, 0x76, 0x78, 0x06, 0x41, 0x0b));
	for (size_t size = 0; size <= w.size; size++) {
		uint8_t *copy = malloc(size + 1);

		memcpy(copy, w.data, size);
		section = section_of(&w);
		section.data = copy;
		section.size = size;
		run_section(&section);
		free(copy);
	}
	for (size_t at = 0; at < w.size; at++) {
		for (int bit = 0; bit < 8; bit++) {
			struct cfi_writer damaged = w;

			damaged.data[at] ^= 1 << bit;
			section = section_of(&damaged);
			run_section(&section);
		}
	}
}
