// SPDX-License-Identifier: Apache-2.0
/*
 * The part of a loop that lies elsewhere, in small files that are made here; and that no file, made
 * by whomever, keeps the search for it busy.
 */
#include "runtime/loop_code.h"
#include "runtime/functions.h"

#include "cfi_writer.h"
#include "elf_writer.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

enum {
	TEXT = 0x1000,
	MEGABYTE = 1 << 20,
	HOT = TEXT,		/* of a megabyte */
	COLD = TEXT + MEGABYTE, /* and behind it what it jumps into */
	EH_FRAME = COLD + 2 * MEGABYTE,
	JCC = 6,
};

struct made {
	uint8_t *text;
	size_t used;
	struct cfi_writer w;
	size_t cie;
};

static void made_begin(struct made *m)
{
	*m = (struct made){ .w = { .eh_frame = true, .addr = EH_FRAME } };
	m->text = calloc(1, EH_FRAME - TEXT);
	ASSERT(m->text);
	m->cie = cfi_writer_cie(&m->w, CFI_BYTES(0x0c, 7, 8, 0x90, 1));
}

static void made_function(struct made *m, uint64_t start, uint64_t size)
{
	cfi_writer_fde(&m->w, m->cie, start, size, NULL, 0);
}

/* je rel32 */
static void made_jump(struct made *m, uint64_t from, uint64_t to)
{
	uint8_t *p = m->text + (from - TEXT);
	int32_t off = (int32_t)(to - from - JCC);

	p[0] = 0x0f;
	p[1] = 0x84;
	memcpy(p + 2, &off, sizeof(off));
}

static struct elf_file *made_finish(struct made *m, void **ret_image)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       TEXT, m->text, EH_FRAME - TEXT);
	struct elf_file *elf;
	size_t size;

	elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, EH_FRAME, m->w.data, m->w.size);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
	free(m->text);
	*ret_image = elf_writer_finish(w, &size);
	ASSERT_OK(elf_file_open_memory(*ret_image, size, &elf));
	return elf;
}

/* A loop that jumps into `nr` functions, twice into each. */
static struct elf_file *made_jumps(unsigned int nr, uint64_t size, bool back, void **ret_image)
{
	struct made m;

	made_begin(&m);
	made_function(&m, HOT, MEGABYTE);
	for (unsigned int i = 0; i < nr; i++) {
		made_function(&m, COLD + i, size);
		made_jump(&m, HOT + 2 * i * JCC, COLD + i);
		made_jump(&m, HOT + (2 * i + 1) * JCC, COLD + i);
	}
	if (back)
		made_jump(&m, COLD + 32, HOT + 64);
	return made_finish(&m, ret_image);
}

static const struct code_range hot = { HOT, HOT + MEGABYTE };

TEST(the_part_that_jumps_back)
{
	struct runtime_dso dso = { 0 };
	struct elf_file *elf;
	void *image;

	elf = made_jumps(1, 64, true, &image);
	ASSERT_OK(vec_push(&dso.interpreter_functions, hot));
	ASSERT_OK(vec_push(&dso.hidden, hot));
	ASSERT_OK(runtime_add_cold(elf, NULL, &(struct loop_work){ 0 }, &dso));
	ASSERT_EQ(dso.interpreter_functions.nr, 2);
	ASSERT_EQ(dso.interpreter_functions.items[1].start, COLD);
	ASSERT_EQ(dso.interpreter_functions.items[1].end, COLD + 64);
	ASSERT_EQ(dso.hidden.nr, 2);
	runtime_dso_fini(&dso);
	elf_file_free(elf);
	free(image);
}

TEST(no_part_jumps_back)
{
	struct runtime_dso dso = { 0 };
	struct elf_file *elf;
	void *image;

	elf = made_jumps(2, 64, false, &image);
	ASSERT_OK(vec_push(&dso.interpreter_functions, hot));
	ASSERT_OK(runtime_add_cold(elf, NULL, &(struct loop_work){ 0 }, &dso));
	ASSERT_EQ(dso.interpreter_functions.nr, 1);
	runtime_dso_fini(&dso);
	elf_file_free(elf);
	free(image);
}

/* Functions may overlap, and each is looked through: a file of a few megabytes took minutes. */
TEST(parts_that_overlap_are_not_looked_through_for_ever)
{
	struct runtime_dso dso = { 0 };
	struct elf_file *elf;
	void *image;

	elf = made_jumps(500, MEGABYTE, false, &image);
	ASSERT_OK(vec_push(&dso.interpreter_functions, hot));
	ASSERT_ERR(runtime_add_cold(elf, NULL, &(struct loop_work){ 0 }, &dso), ENOTSUP);
	ASSERT_EQ(dso.interpreter_functions.nr, 1);
	runtime_dso_fini(&dso);
	elf_file_free(elf);
	free(image);
}

/* What the bytes of code at 0x401000 make, from the byte `at` on. */
static uint64_t address_of(uint8_t *bytes, size_t size, bool arm, bool fixed, size_t at)
{
	const struct loop_code c = {
		.bytes = bytes, .size = size, .start = 0x401000, .arm = arm, .fixed = fixed
	};

	return loop_code_address(&c, at);
}

TEST(addresses_that_code_takes)
{
	/* lea -0x10(%rip), %r10; mov $0x401234, %edx */
	uint8_t x86[] = { 0x4c, 0x8d, 0x15, 0xf0, 0xff, 0xff, 0xff, 0xba, 0x34, 0x12, 0x40, 0 };
	/* adrp x2, -0x1000; add x2, x2, #0x123 */
	uint8_t arm[] = { 0xe2, 0xff, 0xff, 0xf0, 0x42, 0x8c, 0x04, 0x91 };
	uint8_t mixed[24] = { 0xe2, 0xff, 0xff, 0xf0 }; /* zeroes between both */

	ASSERT_EQ(address_of(x86, sizeof(x86), false, false, 0), 0x400ff7);
	ASSERT_EQ(address_of(x86, 6, false, false, 0), 0);
	ASSERT_EQ(address_of(x86, sizeof(x86), false, true, 7), 0x401234);
	ASSERT_EQ(address_of(x86, sizeof(x86), false, false, 7), 0);
	ASSERT_EQ(address_of(x86, sizeof(x86) - 1, false, true, 7), 0);
	ASSERT_EQ(address_of(arm, sizeof(arm), true, false, 0), 0x400123);
	ASSERT_EQ(address_of(arm, sizeof(arm), true, false, 4), 0);
	memcpy(mixed + 16, arm + 4, 4);
	ASSERT_EQ(address_of(mixed, sizeof(mixed), true, false, 0), 0x400123);
	memcpy(mixed + 20, arm + 4, 4);
	memset(mixed + 16, 0, 4);
	ASSERT_EQ(address_of(mixed, sizeof(mixed), true, false, 0), 0);
	arm[4] = 0x41; /* add x1, x2 */
	ASSERT_EQ(address_of(arm, sizeof(arm), true, false, 0), 0);
}
