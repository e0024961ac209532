/* SPDX-License-Identifier: Apache-2.0 */
/* What elf_file.c and elf_decompress.c share. The section's bytes are known to be in the file. */
#pragma once

#include "elf/elf_file.h"

/* SHF_COMPRESSED: an Elf64_Chdr, then a zlib or zstd stream. -EBADMSG if it is corrupt. */
int elf_decompress_chdr(const struct elf_file *elf, const struct elf_section *section, size_t max,
			struct elf_data *ret);
/* .zdebug_*: "ZLIB", the size in big-endian, then a zlib stream. */
int elf_decompress_legacy(const struct elf_file *elf, const struct elf_section *section, size_t max,
			  struct elf_data *ret);
