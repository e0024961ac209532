/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and names that stay as they are, small: four bytes an address, and the names in blocks
 * that are compressed. A kernel's 120,000 take 1.2 MB in place of 4.4.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct packed_symbols;

/*
 * Of `nr` symbols (not 0), in the order of their addresses; a name may be "". -ERANGE: they lie too
 * far apart, or not in order; -ENOMEM. `addr` and `name` are asked for each, once, in order.
 */
int packed_symbols_new(size_t nr, uint64_t (*addr)(const void *ctx, size_t i),
		       const char *(*name)(const void *ctx, size_t i), const void *ctx,
		       struct packed_symbols **ret);
void packed_symbols_free(struct packed_symbols *p);
static inline void packed_symbols_free_p(struct packed_symbols **p)
{
	packed_symbols_free(*p);
}
size_t packed_symbols_nr(const struct packed_symbols *p);
uint64_t packed_symbols_addr(const struct packed_symbols *p, size_t i);
/* Valid until the next name is asked for; NULL: out of memory. */
const char *packed_symbols_name(struct packed_symbols *p, size_t i);
/* Gives back what asking for names took. */
void packed_symbols_rest(struct packed_symbols *p);
