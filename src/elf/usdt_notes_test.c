// SPDX-License-Identifier: Apache-2.0
#include "elf/usdt_notes.h"

#include "elf_writer.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

/* pc, base, semaphore; three texts. */
static size_t make(uint8_t *to, uint64_t pc, uint64_t base, uint64_t semaphore, const char *texts,
		   size_t size)
{
	memcpy(to, &pc, 8);
	memcpy(to + 8, &base, 8);
	memcpy(to + 16, &semaphore, 8);
	memcpy(to + 24, texts, size);
	return 24 + size;
}

static void *image_of(const void *desc, size_t desc_size, uint32_t type, const char *owner,
		      size_t *ret_size)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	uint8_t code[64] = { 0x90 };
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       0x1000, code, sizeof(code));
	unsigned int base =
		elf_writer_section(w, ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, 0x2000, code, 1);
	unsigned int data = elf_writer_section(w, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE,
					       0x3000, code, sizeof(code));

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, base);
	elf_writer_segment(w, PT_LOAD, PF_R | PF_W, data, data);
	elf_writer_note(w, ".note.stapsdt", owner, type, desc, desc_size);
	return elf_writer_finish(w, ret_size);
}

static struct usdt_notes notes;
static void *image;

static uint64_t offset_of(const char *section)
{
	return elf_image_section(image, elf_image_section_index(image, section))->sh_offset;
}

static void read_notes(const void *desc, size_t desc_size, uint32_t type, const char *owner)
{
	struct elf_file *elf;
	size_t size;

	image = image_of(desc, desc_size, type, owner, &size);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(usdt_notes_read(elf, &notes));
	elf_file_free(elf);
}

static void end(void)
{
	usdt_notes_fini(&notes);
	free(image);
}

static const char texts[] = "python\0function__entry\0008@%rbp -4@%eax";

TEST(a_note_tells_where_its_probe_is)
{
	uint8_t desc[128];
	size_t size = make(desc, 0x1010, 0x2000, 0x3008, texts, sizeof(texts));

	read_notes(desc, size, 3, "stapsdt");
	ASSERT_EQ(notes.nr, 1);
	ASSERT_STR(notes.items[0].provider, "python");
	ASSERT_STR(notes.items[0].name, "function__entry");
	ASSERT_STR(notes.items[0].arguments, "8@%rbp -4@%eax");
	ASSERT_EQ(notes.items[0].offset, offset_of(".text") + 0x10);
	ASSERT_EQ(notes.items[0].semaphore_offset, offset_of(".data") + 8);
	end();
}

TEST(what_was_moved_by_a_prelink_is_found)
{
	uint8_t desc[128];
	size_t size = make(desc, 0x11010, 0x12000, 0, texts, sizeof(texts));

	read_notes(desc, size, 3, "stapsdt");
	ASSERT_EQ(notes.nr, 1);
	ASSERT_EQ(notes.items[0].offset, offset_of(".text") + 0x10);
	ASSERT_EQ(notes.items[0].semaphore_offset, 0);
	end();
}

TEST(arguments_are_found)
{
	static const char x86[] =
		"8@%rbp -4@%eax 8@16(%rsp) 1@%r12b 8@$3 8@-8(%rbp,%rax,8) 8@(%rdi)";
	static const char arm[] = "8@x19 -4@w0 8@[sp, 16] 8@[x20] 8@x31 8@[sp, 16";
	struct usdt_argument a;

	ASSERT_OK(usdt_argument_find(x86, 1, EM_X86_64, &a));
	ASSERT(a.reg == 4 && a.size == 8 && !a.indirect && !a.offset);
	ASSERT_OK(usdt_argument_find(x86, 2, EM_X86_64, &a));
	ASSERT(a.reg == 10 && a.size == -4);
	ASSERT_OK(usdt_argument_find(x86, 3, EM_X86_64, &a));
	ASSERT(a.reg == 19 && a.indirect && a.offset == 16);
	ASSERT_OK(usdt_argument_find(x86, 4, EM_X86_64, &a));
	ASSERT_EQ(a.reg, 3);
	ASSERT_ERR(usdt_argument_find(x86, 5, EM_X86_64, &a), ENOTSUP);
	ASSERT_ERR(usdt_argument_find(x86, 6, EM_X86_64, &a), ENOTSUP);
	ASSERT_OK(usdt_argument_find(x86, 7, EM_X86_64, &a));
	ASSERT(a.reg == 14 && a.indirect && !a.offset);
	ASSERT_ERR(usdt_argument_find(x86, 8, EM_X86_64, &a), ENOENT);
	ASSERT_ERR(usdt_argument_find("", 1, EM_X86_64, &a), ENOENT);
	ASSERT_ERR(usdt_argument_find("x", 1, EM_X86_64, &a), EINVAL);
	ASSERT_ERR(usdt_argument_find("8@", 1, EM_X86_64, &a), ENOTSUP);
	ASSERT_ERR(usdt_argument_find(x86, 1, EM_386, &a), ENOTSUP);
	ASSERT_OK(usdt_argument_find(arm, 1, EM_AARCH64, &a));
	ASSERT_EQ(a.reg, 19);
	ASSERT_OK(usdt_argument_find(arm, 2, EM_AARCH64, &a));
	ASSERT_EQ(a.reg, 0);
	ASSERT_OK(usdt_argument_find(arm, 3, EM_AARCH64, &a));
	ASSERT(a.reg == 31 && a.indirect && a.offset == 16);
	ASSERT_OK(usdt_argument_find(arm, 4, EM_AARCH64, &a));
	ASSERT(a.reg == 20 && a.indirect && !a.offset);
	ASSERT_ERR(usdt_argument_find(arm, 5, EM_AARCH64, &a), ENOTSUP);
	ASSERT_ERR(usdt_argument_find(arm, 6, EM_AARCH64, &a), ENOTSUP);
	ASSERT_ERR(usdt_argument_find(arm, 7, EM_AARCH64, &a), ENOENT);
}

TEST(nonsense_is_left_out)
{
	uint8_t desc[128];
	size_t size = make(desc, 0x1010, 0x2000, 0, texts, sizeof(texts));

	for (size_t cut = 0; cut < size; cut++) {
		read_notes(desc, cut, 3, "stapsdt");
		ASSERT_EQ(notes.nr, 0);
		end();
	}
	read_notes(desc, size, 2, "stapsdt");
	ASSERT_EQ(notes.nr, 0);
	end();
	read_notes(desc, size, 3, "stapsdu");
	ASSERT_EQ(notes.nr, 0);
	end();
	size = make(desc, 0x9000, 0x2000, 0, texts, sizeof(texts));
	read_notes(desc, size, 3, "stapsdt");
	ASSERT_EQ(notes.nr, 0);
	end();
	size = make(desc, 0x1000, 0x2000, 0x9000, texts, sizeof(texts));
	read_notes(desc, size, 3, "stapsdt");
	ASSERT_EQ(notes.nr, 0);
	end();
}
