/* SPDX-License-Identifier: Apache-2.0 */
/* What debug_info.c, debug_info_scopes.c and debug_info_names.c share: the state of one reading. */
#pragma once

#include "dwarf/debug_info.h"
#include "dwarf/dwarf_ranges.h"
#include "dwarf/dwarf_unit.h"
#include "dwarf/line_program_internal.h"

enum {
	/* From an entry to what it completes: compilers need 3 (inlined -> abstract -> class). */
	REF_HOPS_MAX = 16,
	/* Entries within each other. */
	LEVELS_MAX = 64 << 10,
	/* Namespaces, classes and functions around a function. */
	CONTAINERS_MAX = 64,
};

/* Where the walk is: what the entries of this list belong to. */
struct dwarf_level {
	uint32_t scope; /* DWARF_NONE: none that is kept */
	uint32_t depth; /* of inlined calls */
};

/* The files that another unit numbers. */
struct dwarf_foreign {
	struct line_files files;
	uint16_t version;
	uint64_t unit_number; /* that indexes are of */
	uint32_t *indexes;    /* by its number: 1 + index into the files of the unit that is read */
};

struct dwarf_reading {
	const struct dwarf_source *source;
	struct dwarf_file main, alt, split;
	uint64_t budget;
	struct dwarf_counts counts;
	struct map split_seen;	/* id of a split unit -> 1 */
	const uint8_t *package; /* the .dwp that has been reckoned with */
	struct map lines_seen;	/* offset of a line program -> 1 */
	VEC(struct dwarf_foreign) foreign;
	struct map foreign_of; /* address of a unit -> index into foreign */
	size_t foreign_cached; /* bytes */
	/* Of the unit that is read. */
	struct line_table lines;
	uint64_t lines_offset;
	bool has_lines;
	size_t nr_own_files, files_cap; /* of lines.files */
	uint64_t unit_number;
	VEC(struct dwarf_function) functions;
	VEC(struct dwarf_scope) scopes;
	struct dwarf_ranges ranges;
	struct map function_of; /* address of an entry -> index into functions */
	VEC(char *) names;	/* made here */
	VEC(struct dwarf_level) levels;
};

/*
 * All functions and inlined calls of a unit, into rd->functions, scopes and ranges. 0, -EBADMSG (it
 * broke off; what stood before is there), -ENOMEM.
 */
int dwarf_walk_unit(struct dwarf_reading *rd, struct dwarf_cu *cu);
/*
 * The index in rd->functions of the function that an entry with code is of. `top`: nothing is
 * around it but the unit. 0, -EBADMSG (no sense in its references), -ENOMEM.
 */
int dwarf_find_function(struct dwarf_reading *rd, struct dwarf_cu *cu,
			const struct dwarf_entry *entry, bool top, uint32_t *ret);
/*
 * The file that `number` means in `cu`, as index into the files of the unit that is read; *ret is
 * left as it is if that is not known. 0 or -ENOMEM.
 */
int dwarf_unit_file(struct dwarf_reading *rd, const struct dwarf_cu *cu,
		    const struct dwarf_value *number, uint32_t *ret);
/*
 * The unit's line table, into rd->lines; its rows count for the first unit that has it only. 0 also
 * if there is none; -ENOMEM.
 */
int dwarf_load_lines(struct dwarf_reading *rd, const struct dwarf_cu *cu);
/* Before the next unit, and at the end. */
void dwarf_files_clear(struct dwarf_reading *rd);
void dwarf_files_fini(struct dwarf_reading *rd);
