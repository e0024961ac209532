// SPDX-License-Identifier: Apache-2.0
#include "elf/elf_note.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static size_t align_up(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

bool elf_notes_next(struct elf_notes *notes, struct elf_note *ret)
{
	size_t left = notes->pos < notes->size ? notes->size - notes->pos : 0, desc;
	const uint8_t *begin;
	Elf64_Nhdr header;

	if (left < sizeof(header))
		return false;
	begin = notes->data + notes->pos;
	memcpy(&header, begin, sizeof(header));
	desc = align_up(sizeof(header) + (size_t)header.n_namesz, notes->align);
	if (desc > left || header.n_descsz > left - desc)
		return false;
	*ret = (struct elf_note){ .type = header.n_type,
				  .owner = begin + sizeof(header),
				  .owner_size = header.n_namesz,
				  .desc = begin + desc,
				  .size = header.n_descsz };
	notes->pos += align_up(desc + ret->size, notes->align);
	return true;
}

int elf_notes_build_id(const void *data, size_t size, size_t align, size_t max, uint8_t *ret)
{
	struct elf_notes notes = { .data = data, .size = size, .align = align };
	struct elf_note note;

	while (elf_notes_next(&notes, &note)) {
		if (note.type != NT_GNU_BUILD_ID || note.owner_size != 4 ||
		    memcmp(note.owner, "GNU", 4) || !note.size || note.size > max)
			continue;
		memcpy(ret, note.desc, note.size);
		return (int)note.size;
	}
	return -ENOENT;
}
