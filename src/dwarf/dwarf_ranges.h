/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of an entry: DW_AT_low_pc and high_pc, or a list in .debug_ranges (DWARF 3, 4) or
 * .debug_rnglists (5), as ranges in the order of addresses. Discarded code is left out.
 */
#pragma once

#include "dwarf/dwarf_unit.h"

enum {
	/* Of one unit, 256 MB. The largest real ones have half a million. */
	DWARF_RANGES_MAX = 16 << 20,
};

struct dwarf_ranges {
	VEC(struct dwarf_range) v;
	bool relocatable; /* address 0 is code */
	uint64_t dropped;
};

/*
 * Appends the entry's ranges: sorted, disjoint, how many. 0: it has no code; -EBADMSG: malformed
 * (nothing is appended); -ENOMEM.
 */
int dwarf_ranges_of(const struct dwarf_cu *cu, const struct dwarf_entry *entry,
		    struct dwarf_ranges *ranges);
