/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notes of a section or segment that is in memory (gABI, "Note Section"), one by one, and the
 * build-id among them. A note that is cut off ends them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_notes {
	const uint8_t *data;
	size_t size;
	size_t align; /* 4; 8 as few writers did it: of descriptors, and of notes */
	size_t pos;   /* of the next one, 0 at first */
};

struct elf_note {
	uint32_t type;
	const uint8_t *owner; /* mostly with a NUL, which owner_size counts */
	size_t owner_size;
	const uint8_t *desc;
	size_t size; /* of desc */
};

/* false: there is none any more. */
bool elf_notes_next(struct elf_notes *notes, struct elf_note *ret);
/* The first NT_GNU_BUILD_ID of 1 to `max` bytes: its length, or -ENOENT. */
int elf_notes_build_id(const void *data, size_t size, size_t align, size_t max, uint8_t *ret);
