// SPDX-License-Identifier: Apache-2.0
/*
 * What files tell: small made-up ones (the fuzzer's), with the code that real ones have where it is
 * looked at.
 */
#include "runtime/php/php_file.h"

#include "abi/unwind.h"
#include "elf_writer.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The made file of that name: its bytes, and how many. */
static size_t read_bytes(const char *name, size_t max, uint8_t *ret)
{
	char path[PATH_MAX];
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/php_file/%s", test_source_root(), name);
	file = fopen(path, "re");
	ASSERT(file);
	size = fread(ret, 1, max, file);
	ASSERT(size && size < max);
	fclose(file);
	return size;
}

static struct php_version version; /* of the one that was read last */

/* 0, and *ret is the caller's; else why not. */
static int read_made(const char *name, struct php_dso **ret, const char **why)
{
	static uint8_t data[64 << 10];
	size_t size = read_bytes(name, sizeof(data), data);
	struct elf_file *elf;
	int r;

	ASSERT_OK(elf_file_open_memory(data, size, &elf));
	r = php_file_read(elf, ret, &version, why);
	elf_file_free(elf);
	return r;
}

TEST(each_version_has_its_layout)
{
	static const struct {
		unsigned int major, minor, current, last, opcodes, filename, lines, placeholder;
	} want[] = {
		{ 7, 3, 488, 60, 64, 128, 136, 200 },  { 7, 4, 488, 60, 64, 136, 144, 200 },
		{ 8, 0, 488, 68, 72, 144, 152, 192 },  { 8, 1, 488, 68, 72, 144, 152, 184 },
		{ 8, 2, 488, 80, 88, 152, 160, 184 },  { 8, 3, 488, 76, 80, 144, 152, 184 },
		{ 8, 4, 488, 96, 104, 168, 176, 184 }, { 8, 5, 512, 96, 104, 168, 176, 184 },
	};
	struct php_layout layout;
	uint32_t current;

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		ASSERT(php_layout_of(want[i].major, want[i].minor, &layout, &current));
		ASSERT_EQ(current, want[i].current);
		ASSERT_EQ(layout.last, want[i].last);
		ASSERT_EQ(layout.opcodes, want[i].opcodes);
		ASSERT_EQ(layout.filename, want[i].filename);
		ASSERT_EQ(layout.lines, want[i].lines);
		ASSERT_EQ(layout.generator_placeholder, want[i].placeholder);
		/* The step reads so much of a function. */
		ASSERT(layout.lines + 8 <= PHP_FUNCTION_SIZE);
	}
	ASSERT(php_layout_of(7, 3, &layout, &current));
	ASSERT(layout.closure_bit == 20 && layout.named_bit == 6);
	ASSERT(php_layout_of(7, 4, &layout, &current));
	ASSERT(layout.closure_bit == 20 && layout.named_bit == 21);
	ASSERT(php_layout_of(8, 0, &layout, &current));
	ASSERT(layout.closure_bit == 22 && layout.named_bit == 23);
	ASSERT(!php_layout_of(7, 2, &layout, &current));
	ASSERT(!php_layout_of(8, 6, &layout, &current));
}

TEST(a_loop_without_a_frame_pointer)
{
	struct php_dso *dso;
	const char *why;

	ASSERT_OK(read_made("74", &dso, &why));
	ASSERT(dso->version.major == 7 && dso->version.minor == 4);
	ASSERT(dso->globals && !dso->key);
	ASSERT_EQ(dso->record.layout.generator_frame, 64);
	ASSERT_EQ(dso->record.layout.generator_parent, 160);
	ASSERT_EQ(dso->record.layout.generator_placeholder, 200);
	ASSERT_EQ(dso->record.frame_reg, X86_R14);
	ASSERT_EQ(dso->record.frame_saved, 0x48);
	ASSERT_EQ(dso->record.op_saved, 0x40);
	ASSERT_EQ(dso->record.jit_frame, 0x78 + 5 * 8);
	ASSERT_EQ(dso->record.canary, 0x68);
	ASSERT_EQ(dso->record.frame_pointer, 0);
	ASSERT_EQ(dso->record.nr_pushed, 4);
	ASSERT_EQ(dso->record.pushed[0], X86_R13);
	ASSERT_EQ(dso->record.pushed[2], X86_RBP);
	php_file_free(dso);
}

TEST(a_loop_does_other_things_between_its_pushes)
{
	struct php_dso *dso;
	const char *why;

	ASSERT_OK(read_made("80", &dso, &why));
	ASSERT(dso->version.major == 8 && dso->version.minor == 0);
	ASSERT_EQ(dso->record.jit_frame, 0x78 + 5 * 8);
	ASSERT_EQ(dso->record.canary, 0x68);
	ASSERT_EQ(dso->record.nr_pushed, 4);
	ASSERT_EQ(dso->record.pushed[3], X86_RBX);
	php_file_free(dso);
}

TEST(a_loop_with_a_frame_pointer)
{
	struct php_dso *dso;
	const char *why;

	ASSERT_OK(read_made("84", &dso, &why));
	ASSERT_EQ(dso->current, 488);
	ASSERT_EQ(dso->record.layout.generator_parent, 152);
	ASSERT_EQ(dso->record.frame_pointer, 0xa8 + 3 * 8);
	ASSERT_EQ(dso->record.jit_frame, 0xa8 + 5 * 8);
	ASSERT_EQ(dso->record.canary, dso->record.frame_pointer - 0x28);
	ASSERT_EQ(dso->record.frame_saved, dso->record.frame_pointer - 0x38);
	/* Its begin and its end. */
	ASSERT_EQ(dso->record.nr_gaps, 2);
	php_file_free(dso);
	ASSERT_OK(read_made("85", &dso, &why));
	ASSERT_EQ(dso->current, 512);
	php_file_free(dso);
	ASSERT_OK(read_made("82z", &dso, &why));
	ASSERT(dso->key && dso->globals_offset && !dso->globals && !dso->sapi);
	php_file_free(dso);
}

TEST(a_loop_without_stack_protector_has_a_frame_pointer_or_callers)
{
	struct php_dso *dso;
	const char *why;

	ASSERT_OK(read_made("83n", &dso, &why));
	ASSERT_EQ(dso->record.canary, 0);
	ASSERT_EQ(dso->record.frame_pointer, 0xa8 + 3 * 8);
	ASSERT_EQ(dso->record.jit_frame, 0xa8 + 5 * 8);
	php_file_free(dso);
	ASSERT_OK(read_made("82n", &dso, &why));
	ASSERT(dso->record.frame_reg && !dso->record.jit_frame);
	php_file_free(dso);
}

TEST(a_loop_that_nothing_tells_is_known_by_who_calls_it)
{
	struct php_dso *dso;
	const char *why;

	/* By the variable, by a register that has its value, by its name. */
	ASSERT_OK(read_made("82m", &dso, &why));
	ASSERT_EQ(dso->record.jit_frame, 0x78 + 5 * 8);
	ASSERT_EQ(dso->record.nr_callers, 3);
	ASSERT_EQ(dso->record.callers[0], 0x6ce);
	ASSERT_EQ(dso->record.callers[1], 0x6da);
	ASSERT_EQ(dso->record.callers[2], 0x6e4);
	php_file_free(dso);
	/* In a library, which asks its table of addresses for where the variable is. */
	ASSERT_OK(read_made("82l", &dso, &why));
	ASSERT_EQ(dso->record.nr_callers, 1);
	ASSERT_EQ(dso->record.callers[0], 0x6d1);
	php_file_free(dso);
	/* There is no room for all of them. */
	ASSERT_OK(read_made("82t", &dso, &why));
	ASSERT(dso->record.frame_reg && !dso->record.jit_frame);
	php_file_free(dso);
}

TEST(a_loop_that_calls_for_each_instruction)
{
	struct php_dso *dso;
	const char *why;

	ASSERT_OK(read_made("73c", &dso, &why));
	ASSERT_EQ(dso->record.frame_reg, X86_RBX);
	ASSERT_EQ(dso->record.op_reg, 0);
	ASSERT_EQ(dso->base.follow, 1u << X86_SLOT_RBX);
	/* It takes its argument at 8, and its caller's register back at 0x48. */
	ASSERT_EQ(dso->record.nr_gaps, 2);
	ASSERT_EQ(dso->record.gaps[0].start, 0);
	ASSERT_EQ(dso->record.gaps[0].end, 0xb);
	ASSERT_EQ(dso->record.gaps[1].start, 0x49);
	ASSERT_EQ(dso->record.gaps[1].end, 0x4a);
	ASSERT_EQ(dso->record.jit_frame, 0);
	php_file_free(dso);
	/* One that has something else in that register, too. */
	ASSERT_OK(read_made("73w", &dso, &why));
	ASSERT_EQ(dso->record.frame_reg, 0);
	ASSERT_EQ(dso->base.follow, 0);
	php_file_free(dso);
}

TEST(what_was_split_off_the_loop_may_lie_before_it)
{
	struct php_dso *dso;
	const char *why;

	ASSERT_OK(read_made("83c", &dso, &why));
	ASSERT_EQ(dso->base.interpreter_functions.nr, 2);
	ASSERT_EQ(dso->record.loop_start, dso->base.interpreter_functions.items[1].start);
	ASSERT(dso->record.jit_frame && dso->record.frame_reg);
	php_file_free(dso);
}

TEST(a_fibers_first_function_is_the_one_whose_address_is_taken)
{
	struct code_range entry;
	struct php_dso *dso;
	const char *why;

	/* An address that is no function's, the function's, one within it. */
	ASSERT_OK(read_made("83f", &dso, &why));
	ASSERT_EQ(dso->base.interpreter_functions.nr, 3);
	ASSERT_EQ(dso->record.fiber, dso->base.interpreter_functions.items[1].start);
	ASSERT_EQ(dso->record.fiber_size, 5);
	/* endbr64; push %rbp; jmp *%rbx: where a new stack is gone over to. */
	entry = dso->base.interpreter_functions.items[2];
	ASSERT_EQ(entry.end - entry.start, 7);
	ASSERT_EQ(dso->base.hidden.nr, 3);
	php_file_free(dso);
	/* Of two functions nobody knows which it is. */
	ASSERT_OK(read_made("83g", &dso, &why));
	ASSERT_EQ(dso->base.interpreter_functions.nr, 1);
	ASSERT_EQ(dso->record.fiber_size, 0);
	php_file_free(dso);
}

TEST(what_is_not_as_its_version_has_it_is_not_walked)
{
	struct php_dso *dso;
	const char *why;

	ASSERT_EQ(read_made("99", &dso, &why), -ENOTSUP);
	ASSERT_STR(why, "its version is not known");
	ASSERT_EQ(version.major, 9);
	ASSERT_EQ(version.minor, 9);
	ASSERT_EQ(read_made("static", &dso, &why), -ENOTSUP);
	ASSERT_STR(why,
		   "it is linked statically, and exports nothing that is looked for by its name");
	ASSERT_EQ(version.major, 8);
	ASSERT_EQ(version.minor, 4);
	/* An 8.5 that has its globals as 8.4 has them. */
	ASSERT_EQ(read_made("85x", &dso, &why), -ENOTSUP);
	ASSERT_STR(why, "its structures are not as this version has them");
}

/* Where ld.so writes where the globals are, if relocations of `nr` other symbols stand before that
 * one's; 0: it was not found. */
static uint64_t slot_behind(size_t nr)
{
	enum { GLOBALS = 7, SLOT = 0x1c68 }; /* its number among the file's symbols */
	static uint8_t data[256 << 10];
	size_t at = (read_bytes("74", sizeof(data), data) + 15) & ~15ul, end = at;
	Elf64_Shdr *section = elf_image_section(data, elf_image_section_index(data, ".rela.dyn"));
	struct elf_file *elf;
	struct php_dso *dso;
	const char *why;
	uint64_t slot;

	ASSERT(end + (nr + 1) * sizeof(Elf64_Rela) < sizeof(data));
	for (size_t i = 0; i <= nr; i++, end += sizeof(Elf64_Rela)) {
		const Elf64_Rela rela = {
			SLOT, ELF64_R_INFO(i < nr ? 1 + i % 2 : GLOBALS, R_X86_64_GLOB_DAT), 0
		};

		memcpy(data + end, &rela, sizeof(rela));
	}
	section->sh_offset = at;
	section->sh_size = end - at;
	ASSERT_OK(elf_file_open_memory(data, end, &elf));
	ASSERT_OK(php_file_read(elf, &dso, &version, &why));
	slot = dso->globals_slot;
	php_file_free(dso);
	elf_file_free(elf);
	return slot;
}

/* Each is read: libraries have a thousand. */
TEST(relocations_of_other_symbols_are_not_gone_through_for_ever)
{
	ASSERT(slot_behind(0));
	ASSERT_EQ(slot_behind(2000), slot_behind(0));
	ASSERT_EQ(slot_behind(5000), 0);
}
