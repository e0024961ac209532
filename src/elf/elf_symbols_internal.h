/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of symbol tables and the builder of the sorted list share. */
#pragma once

#include "elf/elf_symbols.h"
#include "util/code_range.h"
#include "util/vec.h"

enum {
	/* .symtab, .dynsym (or the dynamic segment), .gnu_debugdata, V8's builtins */
	SYMBOL_TABLES_MAX = 4,
	/* While the list is built, the top byte of a symbol's size is its rank: less is better. */
	SYMBOL_RANK_SHIFT = 56,
};
/* The rank of a local function with a size. */
#define SYMBOL_LOCAL (2ULL << 3 << SYMBOL_RANK_SHIFT)

/* A string table, or the part of it that is used. */
struct symbol_names {
	char *data;
	size_t size;
	size_t budget; /* of the sum of all names, while they are read */
};

struct elf_symbols_private {
	struct symbol_names names[SYMBOL_TABLES_MAX];
	size_t nr_names;
	VEC(struct code_range) ranges; /* sorted: what bounds a symbol without a size */
	uint64_t size_max;	       /* the largest symbol */
	bool left_out;		       /* symbols, since their names are too long */
	bool complete;		       /* there were the names of local functions, too */
};

struct symbol_list {
	VEC(struct elf_symbol) items;
	elf_symbol_wanted_fn *wanted; /* NULL: all are */
	struct elf_symbols_private *priv;
};

/* Where one table of symbols and its strings are in the file. */
struct symbol_source {
	uint64_t symbols, nr;	       /* file offset and count */
	uint64_t strings, strings_len; /* file offset and bytes */
	uint64_t indices, nr_indices;  /* .symtab_shndx: file offset and count, or 0 */
	bool in_order; /* names of neighbours are near each other, as linkers write .symtab */
};

/* Appends the functions of a table, with their rank. 0 or -ENOMEM. */
int symbol_list_add(struct symbol_list *list, const struct elf_file *elf,
		    const struct symbol_source *source);
/* The dynamic segment's table. 0, -ENOENT or -ENOMEM. */
int symbol_source_from_dynamic(const struct elf_file *elf, struct symbol_source *ret);
/* The ELF file within .gnu_debugdata. 0; -ENOENT if there is none that can be read; -ENOMEM. */
int elf_mini_debug_read(const struct elf_file *elf, struct elf_data *ret);
/* How many bytes that reads, and unpacks at most; 0: none. */
uint64_t elf_mini_debug_bytes(const struct elf_file *elf);
/* The end of the code that `addr` is in, of the innermost where they overlap; 0: of none. */
uint64_t elf_symbols_range_end(const struct elf_symbols_private *priv, uint64_t addr);
