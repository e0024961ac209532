/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions never return, by their code: all that it leads to are traps, endless loops and
 * calls of such functions. What is behind a call of one is not where that call returns to.
 *
 * "May return" is the answer whenever anything is not known: an indirect jump, code that is not
 * there, functions that call one another, too much of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan_arch;
struct never_returns;

/* Of functions in `code`, which lies at `addr`. All is borrowed. 0 or -ENOMEM. */
int never_returns_new(const struct scan_arch *arch, const uint8_t *code, size_t size, uint64_t addr,
		      struct never_returns **ret);
void never_returns_free(struct never_returns *n);
/* Whether the function that begins at `addr` never returns. */
bool never_returns(struct never_returns *n, uint64_t addr);
