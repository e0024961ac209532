/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: all that dwarf_read_units() says of one ELF file, copied and made searchable by
 * address, slowly. Split units are looked for in FILE.dwp and where the skeleton says, the dwz
 * supplementary file beside FILE.
 */
#pragma once

#include "dwarf/debug_info.h"
#include "util/vec.h"

struct flat_scope {
	struct flat_scope *parent; /* NULL: a function */
	const char *linkage_name;  /* NULL: none */
	const char *name;
	const char *file, *call_file; /* "" if not known */
	uint32_t line, call_line, depth;
};

struct flat_range {
	uint64_t begin, end;
	struct flat_scope *scope;
};

struct flat_row {
	uint64_t begin, end;
	const char *file;
	uint32_t line;
};

struct flat {
	VEC(struct flat_range) ranges; /* by begin */
	VEC(struct flat_row) rows;     /* by begin */
	VEC(struct flat_scope *) scopes;
	struct dwarf_counts counts;
};

/* Copies a unit; what is against the contract of debug_info.h fails the test. `ctx` is a flat. */
int flat_add(void *ctx, const struct dwarf_unit *unit);
/*
 * What is allocated between these two may be left to the end of the process: LeakSanitizer then
 * looks only for what the code under test forgets.
 */
void flat_keep_begin(void);
void flat_keep_end(void);
/* Sorts; before look-ups. Nothing is ever freed. */
void flat_finish(struct flat *f);
/* Reads the file at `path`; fails the test if that fails. */
void flat_read(const char *path, struct flat *ret);
/* The innermost scope at `addr`; NULL: none. */
const struct flat_scope *flat_find(const struct flat *f, uint64_t addr);
/* The line at `addr`; NULL: none. */
const struct flat_row *flat_line(const struct flat *f, uint64_t addr);
