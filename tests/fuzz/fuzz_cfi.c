// SPDX-License-Identifier: Apache-2.0
/*
 * .eh_frame and .debug_frame: any bytes, cut anywhere. The first byte chooses architecture and
 * kind; rows must come in order, inside their FDE, and say only what the walker knows.
 */
#include "fuzz.h"
#include "dwarf/cfi.h"

#include <elf.h>
#include <stdlib.h>

enum { ADDR = 0x100000 };

static void check_rule(const struct unwind_rule *rule)
{
	if (rule->cfa > CFA_SIGNAL || rule->cfa_reg >= UNWIND_REGS_MAX || rule->ra > RA_IN_REG)
		abort();
	if (rule->ra == RA_IN_REG && (rule->ra_off < 0 || rule->ra_off >= UNWIND_REGS_MAX))
		abort();
}

static void interpret(const struct cfi_arch *arch, const struct cfi_section *section,
		      const struct cfi_cie *cie, const struct cfi_fde *fde)
{
	static struct cfi_rows rows;
	uint64_t at = fde->start;
	union cfi_rule rule;

	cfi_rows_begin(&rows, arch, section, cie, fde);
	while (cfi_rows_next(&rows) > 0) {
		if (rows.start < at || rows.start >= rows.end || rows.end > fde->end)
			abort();
		at = rows.end;
		cfi_row_rule(&rows, &rule);
		check_rule(&rule.rule);
		if (cfi_row_signal(&rows, &rule) == 0)
			check_rule(&rule.rule);
	}
}

FUZZER(data, size)
{
	struct cfi_entry entry, cie_entry;
	struct cfi_section section;
	struct cfi_arch arch;
	struct cfi_cie cie;
	struct cfi_fde fde;

	if (!size)
		return 0;
	if (cfi_arch_init(&arch, data[0] & 1 ? EM_AARCH64 : EM_X86_64, data[0] >> 3) < 0)
		abort();
	section = (struct cfi_section){ .data = data + 1,
					.size = size - 1,
					.addr = ADDR,
					.eh_frame = !(data[0] & 2),
					.to_terminator = data[0] & 4 };
	for (uint32_t at = 0; cfi_entry_at(&section, at, &entry) > 0; at = entry.next) {
		if (entry.next <= at || entry.next > section.size)
			abort();
		if (entry.is_cie || cfi_entry_at(&section, entry.cie, &cie_entry) <= 0)
			continue;
		if (cfi_parse_cie(&section, &arch, &cie_entry, &cie) == 0 &&
		    cfi_parse_fde(&section, &entry, &cie, &fde) == 0)
			interpret(&arch, &section, &cie, &fde);
	}
	return 0;
}
