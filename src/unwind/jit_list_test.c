// SPDX-License-Identifier: Apache-2.0
/* Lists of code that was registered with GDB, in a made-up process's memory. */
#include "unwind/jit_list.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfi_writer.h"
#include "elf_writer.h"
#include "fake_memory.h"
#include "test.h"

enum {
	BASE = 0x10000,
	ENTRIES = BASE + 0x100,
	ENTRY = sizeof(struct jit_entry),
	IMAGES = BASE + 0x1000,
	LOADED = BASE + 0x8000,
	CODE = 0x400000,
	CODE_SIZE = 0x1000,
};

static struct {
	uint8_t bytes[0x10000];
	size_t nr_read, next_image;
	uint64_t changes_at; /* a read of this address changes the descriptor */
	struct jit_list list;
	struct jit_code code;
} t;

static struct jit_descriptor *descriptor(void)
{
	return (struct jit_descriptor *)t.bytes;
}

static struct jit_entry *entry(size_t i)
{
	return (struct jit_entry *)(t.bytes + (ENTRIES - BASE) + i * ENTRY);
}

static int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	(void)ctx;
	t.nr_read += size;
	if (addr == t.changes_at)
		descriptor()->relevant++;
	return fake_memory_read(t.bytes, BASE, sizeof(t.bytes), addr, to, size);
}

static int find(uint64_t pc)
{
	const struct jit_memory memory = { read_test, NULL };

	return jit_list_find(&t.list, &memory, EM_X86_64, pc, &t.code);
}

/* An image of code at `start`: its CFA is rsp + `cfa`, 8 more behind the first 16 bytes if it
 * `moves`. */
static void *make_image(uint64_t start, uint8_t cfa, bool moves, size_t *ret_size)
{
	struct elf_writer *w = elf_writer_new(ET_EXEC, EM_X86_64);
	struct cfi_writer frame = { .size = 0 };
	size_t cie = cfi_writer_cie(&frame, CFI_BYTES(0x0c, 7, 8, 0x90, 1));

	if (moves)
		cfi_writer_fde(&frame, cie, start, CODE_SIZE,
			       CFI_BYTES(0x0e, cfa, 0x50, 0x0e, cfa + 8, 0x86, 2));
	else
		cfi_writer_fde(&frame, cie, start, CODE_SIZE, CFI_BYTES(0x0e, cfa, 0x86, 2));
	elf_writer_section(w, ".debug_frame", SHT_PROGBITS, 0, 0, frame.data, frame.size);
	elf_writer_symbol(w, SHT_SYMTAB, "made", STB_GLOBAL, STT_FUNC,
			  elf_writer_section(w, ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR,
					     start, NULL, CODE_SIZE),
			  start, 32);
	return elf_writer_finish(w, ret_size);
}

/* Entry number `i` is that image, behind the one before it. */
static void add(size_t i, void *image, size_t size)
{
	struct jit_entry *e = entry(i);

	ASSERT(t.next_image + size <= LOADED - BASE);
	memcpy(t.bytes + t.next_image, image, size);
	*e = (struct jit_entry){ .image = BASE + t.next_image, .size = size };
	t.next_image += size;
	free(image);
	descriptor()->version = 1;
	if (!i) {
		descriptor()->first = ENTRIES;
		return;
	}
	e->prev = ENTRIES + (i - 1) * ENTRY;
	entry(i - 1)->next = ENTRIES + i * ENTRY;
}

static void add_code(size_t i, uint64_t start, uint8_t cfa, bool moves)
{
	size_t size;
	void *image = make_image(start, cfa, moves, &size);

	add(i, image, size);
}

static void set_up(void)
{
	jit_list_fini(&t.list);
	memset(&t, 0, sizeof(t));
	t.list.addr = BASE;
	t.next_image = IMAGES - BASE;
}

TEST(code_has_the_rule_of_its_image)
{
	set_up();
	add_code(0, CODE, 64, false);
	add_code(1, 2 * CODE, 48, true);
	ASSERT_OK(find(CODE + 5));
	ASSERT_EQ(t.code.start, CODE);
	ASSERT_EQ(t.code.end, CODE + CODE_SIZE);
	ASSERT(t.code.all);
	ASSERT_EQ(t.code.rule.cfa_off, 64);
	ASSERT_EQ(t.code.rule.cfa_reg, X86_RSP);
	ASSERT_EQ(t.code.rule.slot_off[X86_SLOT_RBP], -2);
	ASSERT_OK(find(2 * CODE));
	ASSERT(!t.code.all);
	ASSERT_EQ(t.code.rule.cfa_off, 48);
	ASSERT_OK(find(2 * CODE + 16));
	ASSERT_EQ(t.code.rule.cfa_off, 56);
	ASSERT_EQ(find(CODE - 1), -ENOENT);
	ASSERT_EQ(find(CODE + CODE_SIZE), -ENOENT);
	/* The list is not read again for what is not there. */
	t.nr_read = 0;
	ASSERT_EQ(find(CODE - 1), -ENOENT);
	ASSERT_EQ(t.nr_read, 2 * sizeof(struct jit_descriptor));
}

TEST(code_has_the_name_of_its_image)
{
	const struct jit_memory memory = { read_test, NULL };
	char name[JIT_NAME_MAX];

	set_up();
	add_code(0, CODE, 64, false);
	ASSERT_OK(jit_list_name(&t.list, &memory, EM_X86_64, CODE + 31, name));
	ASSERT_STR(name, "made");
	ASSERT_EQ(jit_list_name(&t.list, &memory, EM_X86_64, CODE + 32, name), -ENOENT);
	ASSERT_EQ(jit_list_name(&t.list, &memory, EM_X86_64, CODE - 1, name), -ENOENT);
}

TEST(what_went_or_changed_is_noticed)
{
	size_t size;
	uint8_t *image;

	set_up();
	add_code(0, CODE, 64, false);
	add_code(1, 2 * CODE, 48, false);
	ASSERT_OK(find(CODE));
	ASSERT_OK(find(2 * CODE));
	/* Other code where this was. */
	image = make_image(CODE, 32, false, &size);
	memcpy(t.bytes + (entry(0)->image - BASE), image, size);
	free(image);
	ASSERT_OK(find(CODE));
	ASSERT_EQ(t.code.rule.cfa_off, 32);
	/* Taken out, though its memory still is as it was. */
	entry(0)->next = 0;
	ASSERT_EQ(find(2 * CODE), -ENOENT);
	ASSERT_OK(find(CODE));
	descriptor()->first = 0;
	ASSERT_EQ(find(CODE), -ENOENT);
}

TEST(a_list_that_lies_ends_there)
{
	set_up();
	add_code(0, CODE, 64, false);
	add_code(1, 2 * CODE, 48, false);
	entry(1)->next = ENTRIES;
	ASSERT_OK(find(2 * CODE));
	ASSERT_EQ(t.list.known.nr, 2);
	entry(0)->next = ENTRIES; /* its own */
	ASSERT_EQ(find(2 * CODE), -ENOENT);
	ASSERT_OK(find(CODE));
	entry(0)->next = 0x1000;
	descriptor()->relevant++;
	ASSERT_OK(find(CODE));
	descriptor()->first = 0x1000;
	ASSERT_EQ(find(CODE), -ENOENT);
	descriptor()->first = ENTRIES;
	descriptor()->version = 2;
	ASSERT_EQ(find(CODE), -ENOENT);
}

TEST(an_image_that_can_not_be_read_costs_its_own_code)
{
	set_up();
	add_code(0, CODE, 64, false);
	add_code(1, 2 * CODE, 48, false);
	entry(0)->size = UINT64_C(1) << 40;
	ASSERT_EQ(find(CODE), -ENOENT);
	ASSERT_OK(find(2 * CODE));
	entry(0)->size = 4096;
	entry(0)->image = 0x1000;
	descriptor()->relevant++;
	ASSERT_EQ(find(CODE), -ENOENT);
	ASSERT_OK(find(2 * CODE));
}

TEST(a_list_that_changes_meanwhile_is_not_believed)
{
	set_up();
	add_code(0, CODE, 64, false);
	t.changes_at = entry(0)->image;
	ASSERT_EQ(find(CODE), -EAGAIN);
	ASSERT_EQ(find(CODE), -EAGAIN);
	t.changes_at = 0;
	ASSERT_OK(find(CODE));
}

TEST(sections_that_were_loaded_are_read_where_they_are)
{
	struct elf_writer *w = elf_writer_new(ET_REL, EM_X86_64);
	struct cfi_writer file = { .eh_frame = true, .addr = 0 };
	struct cfi_writer loaded = { .eh_frame = true, .addr = LOADED };
	size_t size;
	void *image;

	set_up();
	cfi_writer_fde(&file, cfi_writer_cie(&file, CFI_BYTES(0x0c, 7, 8, 0x90, 1)), 0, 16,
		       CFI_BYTES(0x0e, 16));
	cfi_writer_fde(&loaded, cfi_writer_cie(&loaded, CFI_BYTES(0x0c, 7, 8, 0x90, 1)), CODE, 16,
		       CFI_BYTES(0x0e, 24));
	elf_writer_section(w, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, LOADED, file.data, file.size);
	image = elf_writer_finish(w, &size);
	add(0, image, size);
	memcpy(t.bytes + (LOADED - BASE), loaded.data, loaded.size);
	ASSERT_OK(find(CODE + 3));
	ASSERT_EQ(t.code.rule.cfa_off, 24);
}

/* All entries have the same image, of 1 MB less than may be read, as far as anybody can see. */
TEST(no_more_is_read_than_that)
{
	set_up();
	add_code(0, CODE, 64, false);
	for (size_t i = 1; i < 100; i++) {
		*entry(i) = (struct jit_entry){ .prev = ENTRIES + (i - 1) * ENTRY,
						.image = entry(0)->image,
						.size = sizeof(t.bytes) - (IMAGES - BASE) };
		entry(i - 1)->next = ENTRIES + i * ENTRY;
	}
	t.nr_read = 0;
	ASSERT_EQ(find(2 * CODE), -ENOENT);
	ASSERT(t.nr_read < JIT_IMAGES_BYTES + 100 * ENTRY + 1000);
	ASSERT(t.list.known.nr < 100);
}
