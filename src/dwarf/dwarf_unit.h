/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of .debug_info and .debug_types, and their entries: headers, the unit's own entry with the
 * bases of its indexed forms, values of attributes, and references from entry to entry, be they to
 * another unit, to the dwz supplementary file, or to a type unit.
 *
 * All that reading costs is charged to one budget, so that input in which many things point at one
 * large thing is given up instead of being read for hours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/debug_info.h"
#include "dwarf/dwarf_value.h"
#include "util/map.h"

struct dwarf_entry {
	const uint8_t *start;
	const struct dwarf_abbrev *abbrev;
	struct dwarf_value v[SLOT_MAX_];
};

/* An entry that has named entries in it. */
struct dwarf_container {
	const uint8_t *start, *end;
	uint32_t parent;
};

struct dwarf_file;

struct dwarf_cu {
	struct dwarf_file *file;
	const uint8_t *start, *entries, *end;
	uint64_t abbrev_offset;
	uint64_t id; /* dwo_id or a type's signature */
	uint64_t type_offset;
	struct dwarf_encoding encoding;
	uint8_t type;	/* DW_UT_* */
	bool truncated; /* its section ends before it does */
	/* From here on set by dwarf_cu_open(). */
	bool opened, bad;
	bool contained; /* containers are there */
	bool has_low_pc, has_stmt_list, is_dwo;
	uint16_t language;
	uint32_t generation;
	struct dwarf_abbrevs *abbrevs;
	const uint8_t *first; /* entry behind the unit's own; NULL: there is none */
	uint64_t low_pc, stmt_list;
	uint64_t str_offsets_base, addr_base, rnglists_base, ranges_base;
	const char *comp_dir, *name, *producer, *dwo_name; /* "" if absent */
	VEC(struct dwarf_container) containers;
};

struct dwarf_signature {
	uint64_t signature;
	uint32_t cu;
};

/* One ELF file's sections, or of a .dwp those of one unit. */
struct dwarf_file {
	struct dwarf_sections s;
	const struct dwarf_sections *package; /* the whole .dwp, if `s` is of one unit of it */
	struct dwarf_file *alt;		      /* NULL: none */
	uint64_t *budget;
	bool is_dwo;
	bool scanned, signatures_sorted;
	VEC(struct dwarf_cu) cus; /* by address; of .debug_info first, nr_info of them */
	size_t nr_info;
	uint64_t nr_bad; /* headers that make no sense */
	VEC(struct dwarf_signature) signatures;
	/* Tables of abbreviations and containers that are kept for the next unit. */
	struct map abbrevs_by_offset;
	size_t cached; /* bytes */
	uint32_t generation;
};

struct dwarf_ref {
	struct dwarf_cu *cu;
	const uint8_t *entry;
};

/* false: it is used up. */
static inline bool dwarf_spend(uint64_t *budget, uint64_t amount)
{
	if (*budget < amount) {
		*budget = 0;
		return false;
	}
	*budget -= amount;
	return true;
}

void dwarf_file_init(struct dwarf_file *file, const struct dwarf_sections *sections,
		     uint64_t *budget);
void dwarf_file_fini(struct dwarf_file *file);
/* Reads all unit headers; 0 or -ENOMEM. Once. */
int dwarf_file_scan(struct dwarf_file *file);
/* Lets go what is kept for the next unit if it has become much. No dwarf_abbrev is valid then. */
void dwarf_file_trim(struct dwarf_file *file);

/*
 * Reads the unit's own entry. `skeleton` is the unit that a split one belongs to, else NULL.
 * 0, -EBADMSG (no sense in it), -ENOMEM.
 */
int dwarf_cu_open(struct dwarf_cu *cu, const struct dwarf_cu *skeleton);
/*
 * The split unit with that id in `file`: of a .dwo, or, by cu_index, of a .dwp; then `file` is made
 * a view of that unit alone. 0, -ENOENT, -ENOMEM.
 */
int dwarf_file_find_split(struct dwarf_file *file, uint64_t id, struct dwarf_cu **ret);

/*
 * An entry's code and attributes, reader behind it afterwards. 1: there is one; 0: the null entry
 * that ends a list; -EBADMSG. Only slots below `nr_slots` are filled.
 */
int dwarf_entry_read(const struct dwarf_cu *cu, struct cfi_reader *r, struct dwarf_entry *ret);
/* Passes over the attributes of an entry whose code has been read. */
bool dwarf_entry_skip(const struct dwarf_cu *cu, struct cfi_reader *r,
		      const struct dwarf_abbrev *abbrev);
/* What dwarf_entry_read() does behind the code. */
bool dwarf_entry_attrs(const struct dwarf_cu *cu, struct cfi_reader *r,
		       const struct dwarf_abbrev *abbrev, struct dwarf_entry *ret);
/* Passes over all that is below an entry that has children. */
bool dwarf_entry_skip_children(const struct dwarf_cu *cu, struct cfi_reader *r);

/* NULL: absent or malformed. */
const char *dwarf_value_string(const struct dwarf_cu *cu, const struct dwarf_value *v);
/* `missing` if absent or no number. */
uint64_t dwarf_value_number(const struct dwarf_value *v, uint64_t missing);
bool dwarf_value_is_address(const struct dwarf_value *v);
bool dwarf_value_address(const struct dwarf_cu *cu, const struct dwarf_value *v, uint64_t *ret);
/* Number `index` of .debug_addr. */
bool dwarf_indexed_address(const struct dwarf_cu *cu, uint64_t index, uint64_t *ret);
/*
 * The entry that is referred to. DW_FORM_ref_sig8 gives the type in its unit. 0, -ENOENT, -EBADMSG
 * or -ENOMEM.
 */
int dwarf_value_ref(struct dwarf_cu *cu, const struct dwarf_value *v, struct dwarf_ref *ret);
/*
 * The name of the type with that signature: a type unit's, wherever it is. Valid as long as the
 * sections. NULL: not found, or out of memory.
 */
const char *dwarf_signature_name(struct dwarf_file *file, uint64_t signature);

/*
 * What the index of a .dwp (GNU's version 2, DWARF 5's) has of the unit `id`: its sections alone,
 * the others as in `package`. 0 or -ENOENT.
 */
int dwarf_package_find(const struct dwarf_sections *package, const struct dwarf_span *index,
		       uint64_t id, struct dwarf_sections *ret);

/* A bounded slice of a section. */
struct cfi_reader dwarf_reader_at(const struct dwarf_span *span, uint64_t offset);
/* A string at `offset` that ends within the section; NULL: there is none. */
const char *dwarf_string_at(const struct dwarf_span *span, uint64_t offset);
