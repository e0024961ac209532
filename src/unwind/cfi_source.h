/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One section of call frame information of a file: found, read to the heap and indexed, so that
 * its FDEs come in the order of their addresses.
 */
#pragma once

#include "dwarf/cfi.h"
#include "elf/elf_file.h"
#include "util/code_range.h"

enum { CIE_CACHE_SLOTS = 64 }; /* files have one CIE, or (static ones) one for each object */

struct cie_slot {
	bool used;
	int error; /* of cfi_parse_cie() */
	struct cfi_cie cie;
};

struct cfi_source {
	struct cfi_section section;
	uint8_t *data;
	/* FDEs: (start - base) << 32 | offset in the section, sorted */
	uint64_t *index;
	size_t nr;
	uint64_t base;
	size_t at; /* how far the reader of the index is */
	uint32_t nr_bad_fdes, nr_bad_cies;
	struct cie_slot *cies; /* CIE_CACHE_SLOTS */
};

/*
 * Reads .eh_frame (by section, else by segment) or .debug_frame. 0; -ENOENT if there is none or it
 * can't be read; -EFBIG: the .eh_frame is larger than CFI_SECTION_MAX; -ENOMEM.
 */
int cfi_source_eh_frame(const struct elf_file *elf, struct cfi_source *ret);
int cfi_source_debug_frame(const struct elf_file *elf, struct cfi_source *ret);
/* How many bytes both would read, at most. */
uint64_t cfi_source_bytes(const struct elf_file *elf);
void cfi_source_fini(struct cfi_source *source);

/* Lists the FDEs whose code begins in one of `ranges` (sorted). 0 or -ENOMEM. */
int cfi_source_index(struct cfi_source *source, const struct cfi_arch *arch,
		     const struct code_range *ranges, size_t nr_ranges);
/* The CIE at `offset`; slot->error says whether it is any good. Valid until the next call. */
const struct cie_slot *cfi_source_cie(struct cfi_source *source, const struct cfi_arch *arch,
				      uint32_t offset);
