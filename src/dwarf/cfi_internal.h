/* SPDX-License-Identifier: Apache-2.0 */
/* What cfi.c and cfi_rows.c share. */
#pragma once

#include "dwarf/cfi.h"

/* Runs the CIE's initial instructions into cie->initial. 0 or -EINVAL. */
int cfi_run_initial(const struct cfi_section *section, const struct cfi_arch *arch,
		    struct cfi_cie *cie);
