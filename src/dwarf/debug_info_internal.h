/* SPDX-License-Identifier: Apache-2.0 */
/* What debug_info.c, debug_info_scopes.c and debug_info_names.c share: the state of one reading. */
#pragma once

#include "dwarf/debug_info.h"
#include "dwarf/dwarf_ranges.h"
#include "dwarf/dwarf_unit.h"

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

struct dwarf_reading {
	const struct dwarf_source *source;
	struct dwarf_file main, alt, split;
	uint64_t budget;
	struct dwarf_counts counts;
	struct map lines_seen; /* offset of a line program -> 1 */
	/* Of the unit that is read. */
	struct line_table lines;
	uint64_t lines_offset;
	bool has_lines;
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
/* The file that `number` means in `cu`, as index into the files of the unit that is read. */
uint32_t dwarf_unit_file(const struct dwarf_reading *rd, const struct dwarf_cu *cu,
			 const struct dwarf_value *number);
