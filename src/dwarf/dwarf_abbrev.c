// SPDX-License-Identifier: Apache-2.0
/*
 * Reading tables of abbreviations. What can be decided about an entry by its abbreviation alone is
 * decided here, once: there are some hundred abbreviations to a unit, and a million entries.
 */
#include "dwarf/dwarf_abbrev.h"

#include "dwarf/dwarf_defs.h"
#include "util/sorted.h"

#include <errno.h>
#include <stdlib.h>

static const uint8_t slots[] = {
	[DW_AT_sibling] = SLOT_SIBLING,		  [DW_AT_name] = SLOT_NAME,
	[DW_AT_stmt_list] = SLOT_STMT_LIST,	  [DW_AT_low_pc] = SLOT_LOW_PC,
	[DW_AT_high_pc] = SLOT_HIGH_PC,		  [DW_AT_language] = SLOT_LANGUAGE,
	[DW_AT_comp_dir] = SLOT_COMP_DIR,	  [DW_AT_producer] = SLOT_PRODUCER,
	[DW_AT_abstract_origin] = SLOT_ORIGIN,	  [DW_AT_decl_file] = SLOT_DECL_FILE,
	[DW_AT_decl_line] = SLOT_DECL_LINE,	  [DW_AT_specification] = SLOT_SPECIFICATION,
	[DW_AT_extension] = SLOT_SPECIFICATION,	  [DW_AT_ranges] = SLOT_RANGES,
	[DW_AT_call_column] = SLOT_CALL_COLUMN,	  [DW_AT_call_file] = SLOT_CALL_FILE,
	[DW_AT_call_line] = SLOT_CALL_LINE,	  [DW_AT_signature] = SLOT_SIGNATURE,
	[DW_AT_linkage_name] = SLOT_LINKAGE_NAME, [DW_AT_str_offsets_base] = SLOT_STR_OFFSETS_BASE,
	[DW_AT_addr_base] = SLOT_ADDR_BASE,	  [DW_AT_rnglists_base] = SLOT_RNGLISTS_BASE,
	[DW_AT_dwo_name] = SLOT_DWO_NAME,
};

static uint8_t slot_of(uint64_t name)
{
	if (name < sizeof(slots))
		return slots[name];
	switch (name) {
	case DW_AT_MIPS_linkage_name:
		return SLOT_LINKAGE_NAME;
	case DW_AT_GNU_dwo_name:
		return SLOT_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return SLOT_DWO_ID;
	case DW_AT_GNU_ranges_base:
		return SLOT_RANGES_BASE;
	case DW_AT_GNU_addr_base:
		return SLOT_ADDR_BASE;
	}
	return SLOT_IGNORED;
}

uint8_t dwarf_form_of(uint64_t form)
{
	switch (form) {
	case DW_FORM_GNU_addr_index:
		return FORM_GNU_ADDR_INDEX;
	case DW_FORM_GNU_str_index:
		return FORM_GNU_STR_INDEX;
	case DW_FORM_GNU_ref_alt:
		return FORM_GNU_REF_ALT;
	case DW_FORM_GNU_strp_alt:
		return FORM_GNU_STRP_ALT;
	}
	/* 0x02 was a form of DWARF 1. */
	return form <= DW_FORM_addrx4 && form != 2 ? form : FORM_UNKNOWN;
}

/* DWARF 5 section 7.5.6 and table 7.6. */
uint8_t dwarf_form_size(uint8_t form, const struct dwarf_encoding *encoding)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return encoding->address_size;
	case DW_FORM_ref_addr: /* DWARF 2 had it as long as an address */
		return encoding->version <= 2 ? encoding->address_size : encoding->offset_size;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_line_strp:
	case FORM_GNU_REF_ALT:
	case FORM_GNU_STRP_ALT:
		return encoding->offset_size;
	}
	return FORM_SIZE_VARIES;
}

struct traits {
	bool has_code, declaration;
};

static int read_attrs(struct cfi_reader *r, const struct dwarf_encoding *encoding,
		      struct dwarf_abbrevs *t, struct dwarf_abbrev *abbrev, struct traits *traits)
{
	abbrev->usable = true;
	for (;;) {
		uint64_t name = cfi_uleb(r), form = cfi_uleb(r);
		struct dwarf_attr attr = { .slot = slot_of(name), .form = dwarf_form_of(form) };
		int err;

		if (r->failed)
			return -EINVAL;
		if (!name && !form)
			return 0;
		if (attr.form == DW_FORM_implicit_const)
			attr.implicit = cfi_sleb(r);
		attr.size = dwarf_form_size(attr.form, encoding);
		if (attr.form == FORM_UNKNOWN)
			abbrev->usable = false;
		if (attr.slot == SLOT_SIBLING)
			abbrev->sibling = true;
		if (attr.slot == SLOT_LOW_PC || attr.slot == SLOT_RANGES)
			traits->has_code = true;
		if (name == DW_AT_declaration)
			traits->declaration = true;
		err = vec_push(&t->attrs, attr);
		if (err)
			return err;
		abbrev->nr_attrs++;
	}
}

/* Backwards, so that each attribute knows the run that begins with it. */
static void find_runs(struct dwarf_attr *attrs, uint32_t nr)
{
	for (uint32_t i = nr; i-- > 0;) {
		struct dwarf_attr *attr = &attrs[i];

		if (attr->size == FORM_SIZE_VARIES)
			continue;
		attr->run_attrs = 1;
		attr->run_size = attr->size;
		if (i + 1 < nr && attrs[i + 1].run_attrs < UINT8_MAX) {
			attr->run_attrs += attrs[i + 1].run_attrs;
			attr->run_size += attrs[i + 1].run_size;
		}
	}
}

static enum dwarf_action action_of(uint16_t tag, const struct traits *traits)
{
	switch (tag) {
	case DW_TAG_subprogram:
		if (traits->has_code)
			return ACTION_FUNCTION;
		/* An abstract instance may have nested functions that have code. */
		return traits->declaration ? ACTION_SKIP : ACTION_DESCEND;
	case DW_TAG_inlined_subroutine:
		return traits->has_code ? ACTION_INLINED : ACTION_DESCEND;
	case DW_TAG_array_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_formal_parameter:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_template_parameter_pack:
	case DW_TAG_GNU_formal_parameter_pack:
		return ACTION_SKIP;
	}
	return ACTION_DESCEND;
}

static bool is_container(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subprogram:
	case DW_TAG_module:
		return true;
	}
	return false;
}

static int read_abbrev(struct cfi_reader *r, uint64_t code, const struct dwarf_encoding *encoding,
		       struct dwarf_abbrevs *t)
{
	struct dwarf_abbrev abbrev = { .code = code, .first_attr = t->attrs.nr };
	uint64_t tag = cfi_uleb(r);
	struct traits traits = { 0 };
	int err;

	abbrev.tag = tag <= UINT16_MAX ? tag : 0;
	abbrev.children = cfi_u8(r);
	err = read_attrs(r, encoding, t, &abbrev, &traits);
	if (err)
		return err;
	abbrev.action = action_of(abbrev.tag, &traits);
	abbrev.container = abbrev.children && is_container(abbrev.tag);
	if (abbrev.nr_attrs)
		find_runs(t->attrs.items + abbrev.first_attr, abbrev.nr_attrs);
	return vec_push(&t->abbrevs, abbrev);
}

static int by_code(const void *a, const void *b)
{
	uint64_t x = ((const struct dwarf_abbrev *)a)->code;
	uint64_t y = ((const struct dwarf_abbrev *)b)->code;

	return x < y ? -1 : x > y;
}

static void make_searchable(struct dwarf_abbrevs *t)
{
	t->dense = true;
	for (size_t i = 0; i < t->abbrevs.nr && t->dense; i++)
		t->dense = t->abbrevs.items[i].code == i + 1;
	if (!t->dense && t->abbrevs.nr)
		qsort(t->abbrevs.items, t->abbrevs.nr, sizeof(*t->abbrevs.items), by_code);
}

int dwarf_abbrevs_read(const uint8_t *data, size_t size, uint64_t offset,
		       const struct dwarf_encoding *encoding, struct dwarf_abbrevs *ret)
{
	struct dwarf_abbrevs t = { 0 };
	struct cfi_reader r;
	uint64_t code;
	int err = 0;

	if (!data || offset >= size || size - offset > UINT32_MAX)
		return -EINVAL;
	r = (struct cfi_reader){ .pos = data + offset, .end = data + size };
	while (!err && r.pos < r.end && (code = cfi_uleb(&r)) && !r.failed)
		err = read_abbrev(&r, code, encoding, &t);
	if (err == -ENOMEM) {
		dwarf_abbrevs_fini(&t);
		return err;
	}
	make_searchable(&t);
	t.read = r.pos - (data + offset);
	*ret = t;
	return 0;
}

void dwarf_abbrevs_fini(struct dwarf_abbrevs *t)
{
	vec_free(&t->abbrevs);
	vec_free(&t->attrs);
}

const struct dwarf_abbrev *dwarf_abbrevs_search(const struct dwarf_abbrevs *t, uint64_t code)
{
	size_t low = sorted_before(t->abbrevs.nr, i, t->abbrevs.items[i].code < code);

	return low < t->abbrevs.nr && t->abbrevs.items[low].code == code ? &t->abbrevs.items[low]
									 : NULL;
}
