/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything about one ELF file's code that has a name: functions, inlined calls, source files and
 * lines. Built once a build-id out of symbol tables and debug information (symbol_builder.h), then
 * immutable: one flat image, little-endian, that is mapped from the cache file or a memfd and used
 * in place. docs/formats/symbol-table.md has its layout.
 *
 * An image may come from a disk: opening checks it whole (lengths, offsets, a checksum), so that no
 * look-up can leave it. Look-ups take no locks and allocate nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Functions at one address: the real one and what is inlined there. */
	SYMBOL_FRAMES_MAX = 130,
	/* Bytes of a linker's name. What is longer is cut, and ends in "...". */
	SYMBOL_NAME_MAX = 8 << 10,
};

enum symbol_language {
	SYMBOL_LANGUAGE_UNKNOWN = 0,
	SYMBOL_LANGUAGE_C = 1,
	SYMBOL_LANGUAGE_CPP = 2,
	SYMBOL_LANGUAGE_RUST = 3,
	SYMBOL_LANGUAGE_GO = 4,
	SYMBOL_LANGUAGE_D = 5,
	SYMBOL_LANGUAGE_SWIFT = 6,
	SYMBOL_LANGUAGE_OTHER = 7, /* Fortran, Ada, Zig, assembly, ... */
	SYMBOL_LANGUAGE_MAX_ = 8,
};

struct symbol_table;

/* One function at an address. Strings live as long as the table. */
struct symbol_frame {
	uint32_t function; /* its number in this table: callers cache demangled names by it */
	const char *name; /* as the linker has it, mangled; or the debug information's plain name */
	const char *file; /* "" if not known */
	uint32_t line;	  /* that runs; of a caller, that calls; 0: not known */
	uint32_t column;
	uint32_t start_line; /* of the function's declaration; 0: not known */
	uint8_t language;    /* enum symbol_language */
	bool inlined;	     /* into the next one */
};

/* The size of a table's image in memory, and what is in it. */
struct symbol_table_info {
	uint64_t size;
	uint32_t nr_functions, nr_ranges, nr_lines, nr_files;
	bool has_lines, has_inlines;
	bool is_partial;      /* debug information was there, and too big or too bad to be used */
	uint64_t fingerprint; /* debug_files_fingerprint() of when it was built */
};

/*
 * Maps the image in `fd` (a whole file; it is sealed, or in a folder that only we can write to).
 * 0, -EBADMSG: damaged, cut off, or of another version. `fd` stays the caller's.
 */
int symbol_table_open_fd(int fd, struct symbol_table **ret);
/* An image in memory, borrowed (tests, fuzzing). */
int symbol_table_open_memory(const void *data, size_t size, struct symbol_table **ret);
void symbol_table_free(struct symbol_table *t);
/*
 * Nothing is looked up for a while: pages of its file do not count as memory of ours, which of
 * large tables would be dozens of megabytes. What is looked up comes back out of the page cache.
 */
void symbol_table_rest(const struct symbol_table *t);
static inline void symbol_table_free_p(struct symbol_table **t)
{
	symbol_table_free(*t);
}
void symbol_table_info(const struct symbol_table *t, struct symbol_table_info *ret);
/* What was said of its debug files when it was built, a line each; "" if nothing. Any bytes. */
const char *symbol_table_complaints(const struct symbol_table *t);
/* Bytes of the image that are in memory now. */
uint64_t symbol_table_resident(const struct symbol_table *t);
/*
 * The functions at `addr` (the file's own address space), innermost first, the real function last;
 * `inlines` false: the real one only, as the last one is else: where inlined code runs, with the
 * line of its own that calls it. How many (at most `max`), 0 if
 * no symbol covers it.
 */
size_t symbol_table_find(const struct symbol_table *t, uint64_t addr, bool inlines,
			 struct symbol_frame *ret, size_t max);
