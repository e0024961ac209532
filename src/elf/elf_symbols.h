/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function symbols of one ELF file, sorted, one stable choice an address: out of .symtab,
 * .dynsym and MiniDebugInfo (.gnu_debugdata), or the dynamic segment if there are no sections; and
 * V8's builtins where local functions have no names (v8_builtins.h). Immutable once built.
 *
 * A function is what is typed so (STT_FUNC, STT_GNU_IFUNC), or has no type but stands in an
 * executable section, as hand-written assembly does.
 *
 * Of the names of one address the choice is, in this order: global before weak before local; with a
 * size before without; a typed function before an untyped label; without a version before `foo@V`;
 * fewer leading underscores; shorter; first by byte value. If the choice has no size, it takes the
 * largest that another name of the address has.
 */
#pragma once

#include "elf/elf_file.h"

enum {
	/* Symbols read of one file; the largest browsers have about a million functions. */
	ELF_SYMBOLS_MAX = 2 << 20,
	/* Bytes of names held while a table is read. */
	ELF_SYMBOL_NAMES_MAX = 256 << 20,
	/* Bytes of .gnu_debugdata, packed and unpacked, and of its decoder's memory. */
	ELF_MINI_DEBUG_PACKED_MAX = 16 << 20,
	ELF_MINI_DEBUG_MAX = 64 << 20,
	ELF_MINI_DEBUG_DECODER_MAX = 32 << 20,
	/* Symbols that are looked back over for one that encloses an address. */
	ELF_SYMBOLS_LOOK_BACK = 128,
};

struct elf_symbol {
	uint64_t addr;	  /* in the file's own address space */
	uint64_t size;	  /* 0 if the file does not say */
	const char *name; /* mangled; an @version is cut off */
};

struct elf_symbols {
	struct elf_symbol *items; /* sorted by addr, one an address */
	size_t nr;
	bool left_out; /* some, since there was too much of their names */
	/* private */
	void *names;
};

/* 0 (also without any symbol), or -ENOMEM. Malformed tables give what could be read of them. */
int elf_symbols_read(const struct elf_file *elf, struct elf_symbols *ret);
/* Is it one of those that are asked for? Only the begin of a long name is shown. */
typedef bool elf_symbol_wanted_fn(const char *name);
/*
 * Reads some of them, in little memory: their own, if there is a .symtab, and else that of
 * the other tables' strings. Of an address the choice is among the wanted ones.
 */
int elf_symbols_read_some(const struct elf_file *elf, elf_symbol_wanted_fn *wanted,
			  struct elf_symbols *ret);
void elf_symbols_fini(struct elf_symbols *symbols);
/* How many bytes of symbol and string tables that would read and unpack, as the headers say. */
uint64_t elf_symbols_bytes(const struct elf_file *elf);
/*
 * Gives functions without a size the one that their code has, if `elf`, of which the symbols are,
 * has no names of local functions: what follows such a function would bear its name. One that ends
 * in a system call, and with it all code, gets a byte more: the address that a thread has in that
 * call. 0 or -ENOMEM.
 */
int elf_symbols_end(struct elf_symbols *symbols, const struct elf_file *elf);
/*
 * The symbol that covers `addr`: the innermost (nearest begin) whose size says so; if there is
 * none, one of size 0 up to the next symbol or its section's end. NULL if none does.
 */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, uint64_t addr);
/*
 * The address of a variable (STT_OBJECT) that .symtab has, as one that is not exported; 0: there is
 * none of that name, or the table, or its names, take more than `max` bytes.
 */
uint64_t elf_symtab_object(const struct elf_file *elf, const char *name, size_t max);
