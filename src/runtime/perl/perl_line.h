/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which line of a statement of Perl's an op is: of a block's first statement the COP is mostly
 * optimized away, so that what is run there is in the statement around it (`if`, `unless`, `for`).
 * What is left of that COP, a null op, has its line, as caller() and die() have it.
 */
#pragma once

#include "runtime/runtime.h"

/*
 * Of the COP at `cop`, and the op with that mark (perl_op_mark()). 0; *line is another one only if
 * such an op is in one of those blocks. -ENOENT: ops are gone, or more than are looked at.
 */
int perl_line_read(const struct runtime_target *t, uint64_t cop, uint64_t dbstate, uint64_t mark,
		   uint32_t *line);
