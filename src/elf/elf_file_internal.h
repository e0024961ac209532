/* SPDX-License-Identifier: Apache-2.0 */
/* What elf_file.c and elf_decompress.c share. The section's bytes are known to be in the file. */
#pragma once

#include "elf/elf_file.h"

/*
 * SHF_COMPRESSED: an Elf64_Chdr, then a zlib or zstd stream. .zdebug_*: "ZLIB", the size in
 * big-endian, then a zlib stream. -EBADMSG if it is corrupt.
 */
int elf_decompress(const struct elf_file *elf, const struct elf_section *section, size_t max,
		   struct elf_data *ret);
/* The size that its header promises; 0 if there is none. */
uint64_t elf_decompressed_size(const struct elf_file *elf, const struct elf_section *section);
