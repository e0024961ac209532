/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DWARF debug information (versions 2 to 5, GNU extensions included) says about code: which
 * function an address belongs to, what was inlined there, and from which line. Types, variables and
 * everything else is passed over.
 *
 * Input: the sections of one ELF file in memory, and, if there are such, those of its dwz
 * supplementary file and of its split units. Output: one `struct dwarf_unit` after the other,
 * handed to a callback; a bad unit costs itself, a bad entry its own subtree or range. No I/O, no
 * globals; bounded in memory and time by the caps below, also for hostile input.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/line_program.h"

enum {
	/* Inlined calls within each other; deeper ones are left out, their callers stay. */
	DWARF_INLINE_DEPTH_MAX = 128,
	/* A name with its namespaces and classes; a longer one keeps its end. */
	DWARF_NAME_MAX = 4096,
};

#define DWARF_NONE UINT32_MAX

struct dwarf_span {
	const uint8_t *data; /* NULL: the section is not there */
	size_t size;
};

/*
 * The DWARF sections of one ELF file (.dwo sections under their names without .dwo). Borrowed. A
 * .dwo may have several .debug_info.dwo or .debug_types.dwo, a type unit each: join them.
 */
struct dwarf_sections {
	struct dwarf_span info, abbrev, str, str_offsets, line, line_str, addr, ranges, rnglists;
	struct dwarf_span types;	      /* DWARF 4 type units: names of classes */
	struct dwarf_span cu_index, tu_index; /* of a .dwp */
};

/* A skeleton unit's other half. */
struct dwarf_split_ref {
	uint64_t id;	       /* DW_AT_dwo_id, DW_AT_GNU_dwo_id, or the unit header's */
	const char *name;      /* DW_AT_dwo_name; "" if it has none */
	const char *directory; /* DW_AT_comp_dir; "" if it has none */
};

struct dwarf_source {
	struct dwarf_sections main;
	/* The dwz supplementary file (.gnu_debugaltlink, .debug_sup), or NULL. */
	const struct dwarf_sections *alt;
	/*
	 * The sections of a split unit: of its .dwo, or of the .dwp (with cu_index). They live
	 * until the next call. 0, or -ENOENT: then the skeleton alone is used. May be NULL.
	 */
	int (*split)(void *ctx, const struct dwarf_split_ref *ref,
		     const struct dwarf_sections **ret);
	void *ctx;
	/*
	 * The file is relocatable (ET_REL): code may be at address 0. In all others 0 and 1, like
	 * the two highest addresses, stand for code that the linker discarded.
	 */
	bool relocatable;
};

struct dwarf_function {
	/*
	 * DW_AT_linkage_name (or MIPS_linkage_name) if it has one; else NULL. Both names point into
	 * the sections or the unit's own memory: copy what you keep.
	 */
	const char *linkage_name;
	/*
	 * DW_AT_name; in languages with namespaces (C++, Rust, D, Swift, ...), if there is no
	 * linkage name, with those that enclose it: "ns::Class::name". "" if it has none.
	 */
	const char *name;
	uint32_t file; /* of its declaration: index into unit->files, DWARF_NONE: not known */
	uint32_t line; /* 0: not known */
};

struct dwarf_range {
	uint64_t begin, end; /* in the file's own address space; begin < end */
};

/* A function's own code, or an inlined call in it. */
struct dwarf_scope {
	uint32_t parent; /* index of the enclosing scope, which comes before; DWARF_NONE: a function
			  */
	uint32_t function;		 /* index into functions */
	uint32_t first_range, nr_ranges; /* sorted, not overlapping; not empty */
	uint32_t call_file;		 /* of an inlined one; index into files or DWARF_NONE */
	uint32_t call_line, call_column; /* 0: not known */
};

struct dwarf_unit {
	uint16_t language;    /* DW_LANG_*; 0: not known */
	const char *producer; /* "" if not known */
	const struct dwarf_function *functions;
	size_t nr_functions;
	const struct dwarf_scope *scopes; /* parents before children, siblings as in the file */
	size_t nr_scopes;
	const struct dwarf_range *ranges;
	size_t nr_ranges;
	/* Its line table: files are absolute where the unit says enough ("dir/name" joined). */
	const struct line_table *lines; /* never NULL; may be empty */
};

struct dwarf_counts {
	uint64_t units, bad_units; /* bad: given up, in part or wholly */
	uint64_t missing_split;	   /* units whose .dwo was not found */
	uint64_t dropped;	   /* functions, scopes and ranges beyond caps or malformed */
};

/*
 * Calls `each` for every unit that has code; what it gets lives until it returns. A unit whose line
 * table another one has already brought (partial and type units) is not repeated. 0, -ENOMEM, or
 * what `each` returned if negative. `ret_counts` may be NULL.
 */
int dwarf_read_units(const struct dwarf_source *source,
		     int (*each)(void *ctx, const struct dwarf_unit *unit), void *ctx,
		     struct dwarf_counts *ret_counts);
