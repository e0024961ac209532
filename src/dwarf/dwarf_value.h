/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of an attribute or of a table's column as it stands in a file: its form and a number.
 * What dwarf_value_*() of dwarf_unit.h say it means.
 */
#pragma once

#include "dwarf/dwarf_abbrev.h"

struct dwarf_value {
	uint8_t form; /* 0: absent */
	uint64_t u;   /* a number or offset; of DW_FORM_string its address */
};

/*
 * A value of that form, reader behind it afterwards. false: it is cut off, or of a form whose size
 * nobody knows, or one that has no bytes here (DW_FORM_implicit_const).
 */
bool dwarf_form_read(const struct dwarf_encoding *encoding, struct cfi_reader *r, uint64_t form,
		     struct dwarf_value *ret);
