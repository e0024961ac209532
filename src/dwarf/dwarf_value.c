// SPDX-License-Identifier: Apache-2.0
/*
 * Entries and the values of their attributes: DWARF 5 sections 7.5.4 to 7.5.6. A value is kept as
 * its form and the number that stands there; what it means (a string, an address, another entry) is
 * found out when somebody asks.
 */
#include "dwarf/dwarf_unit.h"

#include "dwarf/dwarf_defs.h"

#include <errno.h>

enum {
	/* A string that its section does not end with a NUL is searched for its end that far. */
	STRING_SEARCH_MAX = 64 << 10,
};

struct cfi_reader dwarf_reader_at(const struct dwarf_span *span, uint64_t offset)
{
	if (!span->data || offset > span->size)
		return (struct cfi_reader){ .failed = true };
	return (struct cfi_reader){ .pos = span->data + offset, .end = span->data + span->size };
}

const char *dwarf_string_at(const struct dwarf_span *span, uint64_t offset)
{
	const uint8_t *p;
	size_t left;

	if (!span->data || offset >= span->size)
		return NULL;
	p = span->data + offset;
	left = span->size - offset;
	/* A section that ends with NUL is one in which every string ends: no need to look. */
	if (span->data[span->size - 1] &&
	    !memchr(p, 0, left < STRING_SEARCH_MAX ? left : STRING_SEARCH_MAX))
		return NULL;
	return (const char *)p;
}

/* A value of a form whose size is no matter of its form alone. */
static bool read_varying(const struct dwarf_encoding *encoding, struct cfi_reader *r, uint8_t form,
			 struct dwarf_value *ret)
{
	uint64_t u = 0;

	switch (form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case FORM_GNU_ADDR_INDEX:
	case FORM_GNU_STR_INDEX:
		u = cfi_uleb(r);
		break;
	case DW_FORM_sdata:
		u = (uint64_t)cfi_sleb(r);
		break;
	case DW_FORM_string:
		u = (uintptr_t)cfi_string(r);
		break;
	case DW_FORM_block1:
		cfi_take(r, cfi_u8(r));
		break;
	case DW_FORM_block2:
		cfi_take(r, cfi_u16(r));
		break;
	case DW_FORM_block4:
		cfi_take(r, cfi_u32(r));
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		cfi_take(r, cfi_uleb(r));
		break;
	case DW_FORM_indirect:
		u = cfi_uleb(r);
		/* The standard forbids neither; nobody writes either. */
		if (u == DW_FORM_indirect || u == DW_FORM_implicit_const)
			return false;
		return dwarf_form_read(encoding, r, u, ret);
	default:
		return false;
	}
	*ret = (struct dwarf_value){ form, u };
	return !r->failed;
}

bool dwarf_form_read(const struct dwarf_encoding *encoding, struct cfi_reader *r, uint64_t form_,
		     struct dwarf_value *ret)
{
	uint8_t form = dwarf_form_of(form_), size = dwarf_form_size(form, encoding);
	uint64_t u = 1; /* of DW_FORM_flag_present */

	if (form == DW_FORM_implicit_const)
		return false;
	if (size == FORM_SIZE_VARIES)
		return read_varying(encoding, r, form, ret);
	if (size > 8)
		cfi_take(r, size);
	else if (size)
		u = cfi_fixed(r, size);
	*ret = (struct dwarf_value){ form, u };
	return !r->failed;
}

static bool read_value(const struct dwarf_cu *cu, struct cfi_reader *r,
		       const struct dwarf_attr *attr, struct dwarf_value *ret)
{
	uint64_t u = 0;

	switch (attr->size) {
	case FORM_SIZE_VARIES:
		return read_varying(&cu->encoding, r, attr->form, ret);
	case 0:
		u = attr->form == DW_FORM_implicit_const ? (uint64_t)attr->implicit : 1;
		break;
	case 1:
		u = cfi_u8(r);
		break;
	case 4:
		u = cfi_u32(r);
		break;
	case 8:
		u = cfi_u64(r);
		break;
	case 16:
		cfi_take(r, 16);
		break;
	default:
		u = cfi_fixed(r, attr->size);
	}
	*ret = (struct dwarf_value){ attr->form, u };
	return !r->failed;
}

bool dwarf_entry_attrs(const struct dwarf_cu *cu, struct cfi_reader *r,
		       const struct dwarf_abbrev *abbrev, struct dwarf_entry *ret)
{
	const struct dwarf_attr *attr = dwarf_abbrev_attrs(cu->abbrevs, abbrev);

	/* Nobody looks at the number of a value that is not there. */
	for (int i = 0; i < SLOT_ENTRY_MAX_; i++)
		ret->v[i].form = 0;
	ret->abbrev = abbrev;
	for (uint32_t i = 0; i < abbrev->nr_attrs; i++)
		if (!read_value(cu, r, &attr[i], &ret->v[attr[i].slot]))
			return false;
	return true;
}

bool dwarf_entry_skip(const struct dwarf_cu *cu, struct cfi_reader *r,
		      const struct dwarf_abbrev *abbrev)
{
	const struct dwarf_attr *attr = dwarf_abbrev_attrs(cu->abbrevs, abbrev);
	const struct dwarf_attr *end = abbrev->nr_attrs ? attr + abbrev->nr_attrs : NULL;
	struct dwarf_value ignored;

	while (attr < end) {
		if (attr->run_attrs) {
			if (!cfi_take(r, attr->run_size))
				return false;
			attr += attr->run_attrs;
			continue;
		}
		if (!read_varying(&cu->encoding, r, attr->form, &ignored))
			return false;
		attr++;
	}
	return true;
}

int dwarf_entry_read(const struct dwarf_cu *cu, struct cfi_reader *r, struct dwarf_entry *ret)
{
	const struct dwarf_abbrev *abbrev;
	uint64_t code;

	ret->start = r->pos;
	code = cfi_uleb(r);
	if (r->failed)
		return -EBADMSG;
	if (!code)
		return 0;
	abbrev = dwarf_abbrevs_find(cu->abbrevs, code);
	if (!abbrev || !dwarf_entry_attrs(cu, r, abbrev, ret))
		return -EBADMSG;
	return 1;
}

bool dwarf_entry_skip_children(const struct dwarf_cu *cu, struct cfi_reader *r)
{
	uint64_t depth = 1;

	while (depth) {
		uint64_t code = cfi_uleb(r);
		const struct dwarf_abbrev *abbrev;

		if (r->failed)
			return false;
		if (!code) {
			depth--;
			continue;
		}
		abbrev = dwarf_abbrevs_find(cu->abbrevs, code);
		if (!abbrev || !dwarf_entry_skip(cu, r, abbrev))
			return false;
		depth += abbrev->children;
	}
	return true;
}

/* Number `index` of .debug_str_offsets. */
static const char *indexed_string(const struct dwarf_cu *cu, uint64_t index)
{
	const struct dwarf_sections *s = &cu->file->s;
	uint8_t size = cu->encoding.offset_size;
	struct cfi_reader r;
	uint64_t offset;

	if (index > s->str_offsets.size / size)
		return NULL;
	r = dwarf_reader_at(&s->str_offsets, cu->str_offsets_base + index * size);
	offset = cfi_fixed(&r, size);
	return r.failed ? NULL : dwarf_string_at(&s->str, offset);
}

const char *dwarf_value_string(const struct dwarf_cu *cu, const struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_string:
		return (const char *)(uintptr_t)v->u;
	case DW_FORM_strp:
		return dwarf_string_at(&cu->file->s.str, v->u);
	case DW_FORM_line_strp:
		return dwarf_string_at(&cu->file->s.line_str, v->u);
	case DW_FORM_strp_sup:
	case FORM_GNU_STRP_ALT:
		return cu->file->alt ? dwarf_string_at(&cu->file->alt->s.str, v->u) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case FORM_GNU_STR_INDEX:
		return indexed_string(cu, v->u);
	}
	return NULL;
}

uint64_t dwarf_value_number(const struct dwarf_value *v, uint64_t missing)
{
	switch (v->form) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_sec_offset:
	case DW_FORM_flag:
	case DW_FORM_flag_present:
		return v->u;
	}
	return missing;
}

bool dwarf_value_is_address(const struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_addr:
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case FORM_GNU_ADDR_INDEX:
		return true;
	}
	return false;
}

bool dwarf_indexed_address(const struct dwarf_cu *cu, uint64_t index, uint64_t *ret)
{
	uint8_t size = cu->encoding.address_size;
	struct cfi_reader r;
	uint64_t v;

	if (index > cu->file->s.addr.size / size)
		return false;
	r = dwarf_reader_at(&cu->file->s.addr, cu->addr_base + index * size);
	v = cfi_fixed(&r, size);
	if (r.failed)
		return false;
	*ret = v;
	return true;
}

bool dwarf_value_address(const struct dwarf_cu *cu, const struct dwarf_value *v, uint64_t *ret)
{
	if (!dwarf_value_is_address(v))
		return false;
	if (v->form != DW_FORM_addr)
		return dwarf_indexed_address(cu, v->u, ret);
	*ret = v->u;
	return true;
}
