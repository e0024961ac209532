/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abbreviations of .debug_abbrev (DWARF 5 section 7.5.3), made ready for passing over entries fast:
 * which of their attributes we want, what an entry of each kind is to us, and how many bytes a run
 * of attributes takes whose forms have a fixed size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/cfi_read.h"
#include "util/vec.h"

/* Attributes that are kept, each under its own number. */
enum dwarf_slot {
	SLOT_IGNORED = 0,
	SLOT_SIBLING,
	SLOT_NAME,
	SLOT_LINKAGE_NAME,
	SLOT_LOW_PC,
	SLOT_HIGH_PC,
	SLOT_RANGES,
	SLOT_ORIGIN,
	SLOT_SPECIFICATION, /* or DW_AT_extension */
	SLOT_DECL_FILE,
	SLOT_DECL_LINE,
	SLOT_CALL_FILE,
	SLOT_CALL_LINE,
	SLOT_CALL_COLUMN,
	SLOT_SIGNATURE,
	SLOT_ENTRY_MAX_, /* those behind it are a unit's */
	SLOT_STMT_LIST = SLOT_ENTRY_MAX_,
	SLOT_LANGUAGE,
	SLOT_COMP_DIR,
	SLOT_PRODUCER,
	SLOT_STR_OFFSETS_BASE,
	SLOT_ADDR_BASE,
	SLOT_RNGLISTS_BASE,
	SLOT_RANGES_BASE,
	SLOT_DWO_NAME,
	SLOT_DWO_ID,
	SLOT_MAX_,
};

/* What to do with an entry. */
enum dwarf_action {
	ACTION_DESCEND = 0, /* of no interest itself; what is in it may be */
	ACTION_SKIP,	    /* with all that is in it */
	ACTION_FUNCTION,    /* a subprogram with code */
	ACTION_INLINED,	    /* an inlined call with code */
};

enum {
	/* The GNU forms lie beyond a byte: these are free numbers. */
	FORM_UNKNOWN = 0,
	FORM_GNU_ADDR_INDEX = 0xe1,
	FORM_GNU_STR_INDEX = 0xe2,
	FORM_GNU_REF_ALT = 0xe3,
	FORM_GNU_STRP_ALT = 0xe4,
	FORM_SIZE_VARIES = 0xff,
};

struct dwarf_attr {
	uint8_t slot;
	uint8_t form; /* DW_FORM_* or FORM_* */
	uint8_t size; /* or FORM_SIZE_VARIES */
	/* This attribute and those behind it that have a fixed size: how many, how long. */
	uint8_t run_attrs;
	uint16_t run_size;
	int64_t implicit;
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first_attr, nr_attrs;
	uint16_t tag;
	uint8_t action;
	bool children;
	bool container; /* namespace, class, function ...: names of what is in it begin with its */
	bool usable;	/* no unknown form */
	bool sibling;
};

/* What the sizes of forms depend on. */
struct dwarf_encoding {
	uint8_t version, address_size, offset_size;
};

struct dwarf_abbrevs {
	VEC(struct dwarf_abbrev) abbrevs; /* by code */
	VEC(struct dwarf_attr) attrs;
	bool dense;  /* codes are 1, 2, 3 ... */
	size_t read; /* bytes */
};

/* The table at `offset`; one that breaks off has what stands before. 0, -EINVAL or -ENOMEM. */
int dwarf_abbrevs_read(const uint8_t *data, size_t size, uint64_t offset,
		       const struct dwarf_encoding *encoding, struct dwarf_abbrevs *ret);
void dwarf_abbrevs_fini(struct dwarf_abbrevs *abbrevs);
const struct dwarf_abbrev *dwarf_abbrevs_search(const struct dwarf_abbrevs *t, uint64_t code);

/* NULL: there is none of that code. */
static inline const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *t,
							    uint64_t code)
{
	if (__builtin_expect(t->dense, 1))
		return code - 1 < t->abbrevs.nr ? &t->abbrevs.items[code - 1] : NULL;
	return dwarf_abbrevs_search(t, code);
}

static inline const struct dwarf_attr *dwarf_abbrev_attrs(const struct dwarf_abbrevs *t,
							  const struct dwarf_abbrev *abbrev)
{
	return abbrev->nr_attrs ? t->attrs.items + abbrev->first_attr : NULL;
}

/* A form's number as struct dwarf_attr has it, and its size. */
uint8_t dwarf_form_of(uint64_t form);
uint8_t dwarf_form_size(uint8_t form, const struct dwarf_encoding *encoding);
