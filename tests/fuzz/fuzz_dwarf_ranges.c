// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of ranges, DWARF 2 to 5. Three bytes choose the version and sizes, the form that refers to
 * the list, and where it begins; then 32 bytes of .debug_addr; the rest is the section of lists.
 */
#include "fuzz.h"
#include "dwarf/dwarf_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "dwarf/dwarf_defs.h"

enum { ADDR_SIZE = 32, BUDGET = 1 << 16 };

static void check(const struct dwarf_ranges *ranges, int nr)
{
	const struct dwarf_range *r = ranges->v.items;

	if ((size_t)nr != ranges->v.nr)
		abort();
	for (int i = 0; i < nr; i++)
		if (r[i].begin >= r[i].end || (i && r[i].begin <= r[i - 1].end))
			abort();
}

FUZZER(data, size)
{
	static const uint8_t forms[] = { DW_FORM_sec_offset, DW_FORM_rnglistx, DW_FORM_data4, 0 };
	uint64_t budget = BUDGET;
	struct dwarf_file file = { .budget = &budget };
	struct dwarf_ranges ranges = { 0 };
	struct dwarf_entry entry = { 0 };
	struct dwarf_cu cu = { .file = &file };
	int r;

	if (size < 3 + ADDR_SIZE)
		return 0;
	cu.encoding = (struct dwarf_encoding){ .version = 2 + data[0] % 4,
					       .address_size = data[0] & 16 ? 4 : 8,
					       .offset_size = data[0] & 32 ? 4 : 8 };
	cu.has_low_pc = data[0] & 64;
	cu.low_pc = cu.has_low_pc ? 0x1000 : 0;
	cu.is_dwo = data[0] & 128;
	cu.ranges_base = data[1] >> 4;
	ranges.relocatable = data[1] & 4;
	entry.v[SLOT_RANGES] = (struct dwarf_value){ forms[data[1] & 3], data[2] };
	entry.v[SLOT_LOW_PC] = (struct dwarf_value){ DW_FORM_addrx, data[2] };
	entry.v[SLOT_HIGH_PC] =
		(struct dwarf_value){ data[1] & 8 ? DW_FORM_addrx : DW_FORM_data4, data[2] >> 1 };
	file.s.addr = (struct dwarf_span){ data + 3, ADDR_SIZE };
	file.s.ranges = file.s.rnglists =
		(struct dwarf_span){ data + 3 + ADDR_SIZE, size - 3 - ADDR_SIZE };
	r = dwarf_ranges_of(&cu, &entry, &ranges);
	if (r < 0) {
		if ((r != -EBADMSG && r != -ENOMEM) || ranges.v.nr)
			abort();
	} else {
		check(&ranges, r);
	}
	vec_free(&ranges.v);
	return 0;
}
