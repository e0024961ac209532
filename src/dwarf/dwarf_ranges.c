// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of ranges: DWARF 4 section 2.17.3, DWARF 5 sections 2.17.3 and 7.25, and the GNU forms for
 * split units. Linkers leave the ranges of code that they discarded in place, with an address that
 * no code has: 0, 1 (ld, in .debug_ranges, where 0 would end the list), the highest address or the
 * one below it (lld; the second where the highest means something else).
 */
#include "dwarf/dwarf_ranges.h"

#include "dwarf/dwarf_defs.h"

#include <errno.h>
#include <stdlib.h>

struct list {
	const struct dwarf_cu *cu;
	struct dwarf_ranges *out;
	uint64_t base, highest;
	bool discarded; /* what is relative to the base */
};

static uint64_t highest_address(const struct dwarf_cu *cu)
{
	return cu->encoding.address_size == 8 ? UINT64_MAX : UINT32_MAX;
}

static int add(struct dwarf_ranges *out, uint64_t highest, uint64_t begin, uint64_t end)
{
	if (begin >= highest - 1 || (begin <= 1 && !out->relocatable) || begin == end)
		return 0;
	/* Malformed; or discarded code that begins below 0 by what was added to its address. */
	if (begin > end || out->v.nr >= DWARF_RANGES_MAX) {
		out->dropped++;
		return 0;
	}
	return vec_push(&out->v, (struct dwarf_range){ begin, end });
}

static void set_base(struct list *list, uint64_t base)
{
	list->base = base;
	list->discarded = base >= list->highest - 1;
}

static int add_relative(struct list *list, uint64_t begin, uint64_t end)
{
	if (list->discarded)
		return 0;
	return add(list->out, list->highest, (begin + list->base) & list->highest,
		   (end + list->base) & list->highest);
}

static int read_debug_ranges(struct list *list, uint64_t offset)
{
	const struct dwarf_cu *cu = list->cu;
	uint8_t size = cu->encoding.address_size;
	struct cfi_reader r = dwarf_reader_at(&cu->file->s.ranges, offset);

	for (;;) {
		uint64_t begin = cfi_fixed(&r, size), end = cfi_fixed(&r, size);
		int err = 0;

		if (r.failed || !dwarf_spend(cu->file->budget, 2 * size))
			return -EBADMSG;
		if (!begin && !end)
			return 0;
		if (begin == list->highest)
			set_base(list, end);
		else
			err = add_relative(list, begin, end);
		if (err)
			return err;
	}
}

static int add_start_length(struct list *list, uint64_t begin, uint64_t length)
{
	return add(list->out, list->highest, begin, (begin + length) & list->highest);
}

/* The operands that `kind` has, as two numbers. */
static bool read_operands(struct list *list, struct cfi_reader *r, uint8_t kind, uint64_t x[2])
{
	uint8_t size = list->cu->encoding.address_size;

	switch (kind) {
	case DW_RLE_end_of_list:
		return true;
	case DW_RLE_base_addressx:
		x[0] = cfi_uleb(r);
		return dwarf_indexed_address(list->cu, x[0], &x[0]);
	case DW_RLE_startx_endx:
		x[0] = cfi_uleb(r);
		x[1] = cfi_uleb(r);
		return dwarf_indexed_address(list->cu, x[0], &x[0]) &&
		       dwarf_indexed_address(list->cu, x[1], &x[1]);
	case DW_RLE_startx_length:
		x[0] = cfi_uleb(r);
		x[1] = cfi_uleb(r);
		return dwarf_indexed_address(list->cu, x[0], &x[0]);
	case DW_RLE_offset_pair:
		x[0] = cfi_uleb(r);
		x[1] = cfi_uleb(r);
		return true;
	case DW_RLE_base_address:
		x[0] = cfi_fixed(r, size);
		return true;
	case DW_RLE_start_end:
		x[0] = cfi_fixed(r, size);
		x[1] = cfi_fixed(r, size);
		return true;
	case DW_RLE_start_length:
		x[0] = cfi_fixed(r, size);
		x[1] = cfi_uleb(r);
		return true;
	}
	return false;
}

static int read_rnglist(struct list *list, uint64_t offset)
{
	struct cfi_reader r = dwarf_reader_at(&list->cu->file->s.rnglists, offset);

	for (;;) {
		const uint8_t *start = r.pos;
		uint8_t kind = cfi_u8(&r);
		uint64_t x[2] = { 0 };
		int err = 0;

		if (r.failed || !read_operands(list, &r, kind, x) || r.failed ||
		    !dwarf_spend(list->cu->file->budget, r.pos - start))
			return -EBADMSG;
		switch (kind) {
		case DW_RLE_end_of_list:
			return 0;
		case DW_RLE_base_addressx:
		case DW_RLE_base_address:
			set_base(list, x[0]);
			break;
		case DW_RLE_offset_pair:
			err = add_relative(list, x[0], x[1]);
			break;
		case DW_RLE_startx_length:
		case DW_RLE_start_length:
			err = add_start_length(list, x[0], x[1]);
			break;
		default:
			err = add(list->out, list->highest, x[0], x[1]);
		}
		if (err)
			return err;
	}
}

/* DW_FORM_rnglistx: an index into the unit's array of offsets, which are relative to that array. */
static bool indexed_list(const struct dwarf_cu *cu, uint64_t index, uint64_t *ret)
{
	uint8_t size = cu->encoding.offset_size;
	struct cfi_reader r;
	uint64_t offset;

	if (index > cu->file->s.rnglists.size / size)
		return false;
	r = dwarf_reader_at(&cu->file->s.rnglists, cu->rnglists_base + index * size);
	offset = cfi_fixed(&r, size);
	if (r.failed)
		return false;
	*ret = cu->rnglists_base + offset;
	return true;
}

static int read_list(const struct dwarf_cu *cu, const struct dwarf_value *v,
		     struct dwarf_ranges *out)
{
	struct list list = { .cu = cu, .out = out, .highest = highest_address(cu) };
	uint64_t offset;

	set_base(&list, cu->has_low_pc ? cu->low_pc : 0);
	if (v->form == DW_FORM_rnglistx) {
		if (!indexed_list(cu, v->u, &offset))
			return -EBADMSG;
		return read_rnglist(&list, offset);
	}
	offset = dwarf_value_number(v, UINT64_MAX);
	if (offset == UINT64_MAX)
		return -EBADMSG;
	if (cu->encoding.version >= 5)
		return read_rnglist(&list, offset);
	return read_debug_ranges(&list, offset + (cu->is_dwo ? cu->ranges_base : 0));
}

static int by_begin(const void *a, const void *b)
{
	uint64_t x = ((const struct dwarf_range *)a)->begin;
	uint64_t y = ((const struct dwarf_range *)b)->begin;

	return x < y ? -1 : x > y;
}

/* Sorts what was appended behind `first`, and joins what overlaps or touches. */
static void tidy(struct dwarf_ranges *out, size_t first)
{
	struct dwarf_range *items = out->v.items + first;
	size_t nr = out->v.nr - first, kept = 0;
	bool sorted = true;

	for (size_t i = 1; i < nr && sorted; i++)
		sorted = items[i - 1].begin <= items[i].begin;
	if (!sorted)
		qsort(items, nr, sizeof(*items), by_begin);
	for (size_t i = 0; i < nr; i++) {
		if (kept && items[i].begin <= items[kept - 1].end) {
			if (items[i].end > items[kept - 1].end)
				items[kept - 1].end = items[i].end;
		} else {
			items[kept++] = items[i];
		}
	}
	out->v.nr = first + kept;
}

/* DW_AT_high_pc is an address, or, since DWARF 4, a length. */
static int read_pair(const struct dwarf_cu *cu, const struct dwarf_entry *entry,
		     struct dwarf_ranges *out)
{
	const struct dwarf_value *high = &entry->v[SLOT_HIGH_PC];
	uint64_t begin, end;

	if (!dwarf_value_address(cu, &entry->v[SLOT_LOW_PC], &begin))
		return entry->v[SLOT_LOW_PC].form ? -EBADMSG : 0;
	if (!high->form) /* an address, not a range: a label, an entry point */
		return 0;
	if (dwarf_value_is_address(high)) {
		if (!dwarf_value_address(cu, high, &end))
			return -EBADMSG;
	} else {
		end = (begin + dwarf_value_number(high, 0)) & highest_address(cu);
	}
	return add(out, highest_address(cu), begin, end);
}

int dwarf_ranges_of(const struct dwarf_cu *cu, const struct dwarf_entry *entry,
		    struct dwarf_ranges *out)
{
	size_t first = out->v.nr;
	int err;

	if (entry->v[SLOT_RANGES].form)
		err = read_list(cu, &entry->v[SLOT_RANGES], out);
	else
		err = read_pair(cu, entry, out);
	if (err) {
		out->v.nr = first;
		return err;
	}
	if (out->v.nr - first > 1)
		tidy(out, first);
	return out->v.nr - first;
}
