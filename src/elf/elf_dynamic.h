/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up single symbols that a file exports, by the hash table that ld.so uses: a handful of
 * small reads, whether it is there or not, however large the file's tables are. For what is no
 * function, or where a whole table (elf_symbols.h) would cost too much: what runtimes are
 * recognised by.
 */
#pragma once

#include "elf/elf_file.h"

/* Where the dynamic segment says that things are; addresses in the file's own address space. */
struct elf_dynamic {
	const struct elf_file *elf;
	uint64_t symbols, strings, strings_size;
	uint64_t gnu_hash, hash; /* DT_GNU_HASH, DT_HASH; 0: none */
};

/* `elf` is borrowed. 0; -ENOENT: no dynamic segment, or no symbols and hash table in it. */
int elf_dynamic_read(const struct elf_file *elf, struct elf_dynamic *ret);
/*
 * The address of a defined symbol of that name, of any type and version, in the file's own address
 * space. 0, or -ENOENT (also if the tables make no sense).
 */
int elf_dynamic_find(const struct elf_dynamic *dynamic, const char *name, uint64_t *ret);
/*
 * Is a symbol of that name left to other files? By DT_GNU_HASH alone, which has these before all
 * others; of the first 4,096 of them, one read each.
 */
bool elf_dynamic_needs(const struct elf_dynamic *dynamic, const char *name);
