/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the table of one ELF file: functions of .symtab, .dynsym, MiniDebugInfo and the separate
 * debug file, with the inlined calls and lines that DWARF has of them.
 *
 * Where both know a function, the choice of names is elf_symbols.h's, and DWARF adds inlines and
 * lines; where only DWARF does (static functions of a stripped file's debug file, say), its
 * linkage name. `foo.cold` and its like are functions of their own.
 */
#pragma once

#include "elf/elf_file.h"
#include "symbol/debug_file.h"

struct symbol_builder_options {
	struct debug_search search;
	bool no_debug_info; /* symbol tables alone: fast, small */
	/* Said by the caller already, to be kept with the table like what search.complain gets. */
	const char *complaint;
};

struct symbol_builder_stats {
	uint64_t functions, ranges, lines, size;
	struct dwarf_counts dwarf;
};

/*
 * What search.complain gets is also kept with the table (symbol_table_complaints()).
 *
 * Writes the image to `fd` (empty, seekable). 0 and it is complete; -ENOENT: the file has no
 * symbols at all (then the image is there, and empty: a cache remembers that, too); -ENOTSUP: a
 * relocatable file; -EFBIG, -ENOMEM, -ENOSPC, ... `ret_stats` may be NULL.
 */
int symbol_table_build(const struct elf_file *elf, const struct symbol_builder_options *options,
		       int fd, struct symbol_builder_stats *ret_stats);
