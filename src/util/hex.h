/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal numbers in texts that may end anywhere and hold anything (kallsyms, perf maps). */
#pragma once

#include <stdint.h>

/* Reads 1 to 16 digits from `p` on, upper or lower case, without a prefix: behind them, or NULL. */
const char *hex_parse(const char *p, const char *end, uint64_t *ret);
