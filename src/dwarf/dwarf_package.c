// SPDX-License-Identifier: Apache-2.0
/*
 * The indices of .dwp files: id of a unit -> where its share of each section is. DWARF 5 section
 * 7.3.5; version 2 is the GNU form before it, which differs in the numbers of sections only.
 */
#include "dwarf/dwarf_unit.h"

#include "dwarf/dwarf_defs.h"

#include <errno.h>

enum {
	/* Slots that are tried for an id; in a table two thirds full a few dozen are many. */
	PROBES_MAX = 4096,
};

struct package_index {
	uint32_t version, nr_columns, nr_units, nr_slots;
	const uint8_t *ids, *rows, *columns, *offsets, *sizes;
};

static uint32_t u32_at(const uint8_t *p, uint64_t index)
{
	uint32_t v;

	memcpy(&v, p + index * 4, 4);
	return v;
}

static bool parse_header(const struct dwarf_span *span, struct package_index *ret)
{
	struct cfi_reader r = dwarf_reader_at(span, 0);
	struct package_index x;
	uint64_t need;

	x.version = cfi_u32(&r); /* of 5 the high half is padding */
	x.nr_columns = cfi_u32(&r);
	x.nr_units = cfi_u32(&r);
	x.nr_slots = cfi_u32(&r);
	if (r.failed || (x.version != 2 && (x.version & 0xffff) != 5))
		return false;
	/* A power of two; and no more columns than sections there are. */
	if (!x.nr_slots || (x.nr_slots & (x.nr_slots - 1)) || x.nr_columns > 32)
		return false;
	need = (uint64_t)x.nr_slots * 12 + 4ULL * x.nr_columns * (1 + 2ULL * x.nr_units);
	if (need > cfi_left(&r))
		return false;
	x.ids = r.pos;
	x.rows = x.ids + 8ULL * x.nr_slots;
	x.columns = x.rows + 4ULL * x.nr_slots;
	x.offsets = x.columns + 4ULL * x.nr_columns;
	x.sizes = x.offsets + 4ULL * x.nr_columns * x.nr_units;
	*ret = x;
	return true;
}

/* The row of `id`, from 1; 0: it has none. */
static uint32_t find_row(const struct package_index *x, uint64_t id)
{
	uint32_t mask = x->nr_slots - 1;
	uint32_t slot = id & mask, step = ((id >> 32) & mask) | 1;

	for (uint32_t i = 0; i < x->nr_slots && i < PROBES_MAX; i++, slot = (slot + step) & mask) {
		uint32_t row = u32_at(x->rows, slot);
		uint64_t at;

		if (!row)
			return 0;
		memcpy(&at, x->ids + 8ULL * slot, 8);
		if (at == id)
			return row <= x->nr_units ? row : 0;
	}
	return 0;
}

static struct dwarf_span *span_of(struct dwarf_sections *s, uint32_t version, uint32_t column)
{
	switch (column) {
	case DW_SECT_INFO:
		return &s->info;
	case DW_SECT_TYPES:
		return version == 2 ? &s->types : NULL;
	case DW_SECT_ABBREV:
		return &s->abbrev;
	case DW_SECT_LINE:
		return &s->line;
	case DW_SECT_STR_OFFSETS:
		return &s->str_offsets;
	case DW_SECT_RNGLISTS:
		return version != 2 ? &s->rnglists : NULL;
	}
	return NULL;
}

int dwarf_package_find(const struct dwarf_sections *package, const struct dwarf_span *index,
		       uint64_t id, struct dwarf_sections *ret)
{
	struct dwarf_sections s = *package;
	struct package_index x;
	uint32_t row;

	if (!parse_header(index, &x))
		return -ENOENT;
	row = find_row(&x, id);
	if (!row)
		return -ENOENT;
	/* Without a share of these it has nothing there. */
	s.info = s.types = (struct dwarf_span){ 0 };
	for (uint32_t i = 0; i < x.nr_columns; i++) {
		uint64_t cell = (uint64_t)(row - 1) * x.nr_columns + i;
		uint32_t column = u32_at(x.columns, i);
		uint64_t offset = u32_at(x.offsets, cell), size = u32_at(x.sizes, cell);
		const struct dwarf_span *whole =
			span_of((struct dwarf_sections *)package, x.version, column);

		if (!whole || !whole->data)
			continue;
		if (offset > whole->size || size > whole->size - offset)
			return -ENOENT;
		*span_of(&s, x.version, column) = (struct dwarf_span){ whole->data + offset, size };
	}
	*ret = s;
	return 0;
}
