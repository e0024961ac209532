// SPDX-License-Identifier: Apache-2.0
#include "elf/elf_note.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

/* In memory of just that size, so that reading beyond it is seen. */
static int build_id_of(const char *notes, size_t size, size_t align, uint8_t *ret)
{
	uint8_t *copy = malloc(size ? size : 1);
	int r;

	ASSERT_PTR_NONNULL(copy);
	memcpy(copy, notes, size);
	r = elf_notes_build_id(copy, size, align, 20, ret);
	free(copy);
	return r;
}

TEST(notes_come_in_order)
{
	static const uint8_t data[] = "\4\0\0\0\1\0\0\0\1\0\0\0Xen\0z\0\0\0"
				      "\5\0\0\0\0\0\0\0\7\0\0\0CORE\0\0\0\0"
				      "\3\0\0\0\2\0\0\0\4\0\0\0Go?\0hi";
	struct elf_notes notes = { .data = data, .size = sizeof(data) - 1, .align = 4 };
	struct elf_note note = { 0 };

	ASSERT(elf_notes_next(&notes, &note));
	ASSERT_EQ(note.type, 1);
	ASSERT(note.owner_size == 4 && !memcmp(note.owner, "Xen", 4));
	ASSERT(note.size == 1 && note.desc[0] == 'z');
	ASSERT(elf_notes_next(&notes, &note));
	ASSERT_EQ(note.type, 7);
	ASSERT(note.owner_size == 5 && note.size == 0);
	/* The last one's padding may be missing. */
	ASSERT(elf_notes_next(&notes, &note));
	ASSERT(note.owner_size == 3 && note.size == 2 && !memcmp(note.desc, "hi", 2));
	ASSERT(!elf_notes_next(&notes, &note));
	ASSERT(!elf_notes_next(&notes, &note));
}

TEST(a_build_id_is_what_it_should_be)
{
	static const char good[] = "\4\0\0\0\3\0\0\0\3\0\0\0GNU\0abc";
	static const char others[] = "\4\0\0\0\0\0\0\0\3\0\0\0GNU\0"	  /* empty */
				     "\3\0\0\0\3\0\0\0\3\0\0\0GNU\0abc\0" /* without its NUL */
				     "\4\0\0\0\3\0\0\0\3\0\0\0GNX\0abc\0"
				     "\4\0\0\0\3\0\0\0\1\0\0\0GNU\0abc\0";
	char both[sizeof(others) + sizeof(good)];
	uint8_t id[20] = "";

	ASSERT_EQ(build_id_of(good, sizeof(good) - 1, 4, id), 3);
	ASSERT(!memcmp(id, "abc", 3));
	ASSERT_ERR(build_id_of(others, sizeof(others) - 1, 4, id), ENOENT);
	memcpy(both, others, sizeof(others) - 1);
	memcpy(both + sizeof(others) - 1, good, sizeof(good));
	ASSERT_EQ(build_id_of(both, sizeof(others) + sizeof(good) - 2, 4, id), 3);
	for (size_t cut = 0; cut < sizeof(good) - 1; cut++)
		ASSERT_ERR(build_id_of(good, cut, 4, id), ENOENT);
}

TEST(eight_bytes_are_an_alignment_too)
{
	/* Descriptors begin at a multiple of 8 from the note's begin: gABI. */
	static const char data[] = "\6\0\0\0\4\0\0\0\2\0\0\0OpenBX\0\0\0\0\0\0wxyz\0\0\0\0"
				   "\4\0\0\0\3\0\0\0\3\0\0\0GNU\0abc\0\0\0\0\0";
	uint8_t id[20] = "";

	ASSERT_EQ(build_id_of(data, sizeof(data) - 1, 8, id), 3);
	ASSERT(!memcmp(id, "abc", 3));
}

TEST(huge_sizes_end_the_notes)
{
	static const char name[] = "\xff\xff\xff\xff\3\0\0\0\3\0\0\0GNU\0abc\0";
	static const char desc[] = "\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU\0abc\0";
	static const char large[] = "\4\0\0\0\x15\0\0\0\3\0\0\0GNU\0aaaaaaaaaaaaaaaaaaaaa\0\0\0";
	uint8_t id[20] = "";

	ASSERT_ERR(build_id_of(name, sizeof(name) - 1, 4, id), ENOENT);
	ASSERT_ERR(build_id_of(desc, sizeof(desc) - 1, 8, id), ENOENT);
	ASSERT_ERR(build_id_of(large, sizeof(large) - 1, 4, id), ENOENT);
	ASSERT_EQ(id[0], 0);
}
