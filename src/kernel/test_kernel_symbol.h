/* SPDX-License-Identifier: Apache-2.0 */
/* Where something of this kernel is, for its tests. */
#pragma once

#include <string.h>

#include "util/kernel_symbols.h"

struct test_wanted_symbol {
	const char *name;
	uint64_t at;
};

static inline int test_look_at_symbol(void *ctx, const struct kernel_symbol *s)
{
	struct test_wanted_symbol *w = ctx;

	w->at = s->is_modules || strcmp(s->name, w->name) ? 0 : s->address;
	return w->at != 0;
}

/* 0: it has none, or hides it. No assertions: TEST_SKIP_REASON() asks, too. */
static inline uint64_t test_kernel_symbol(const char *name)
{
	struct test_wanted_symbol w = { .name = name };

	return kernel_symbols_walk(test_look_at_symbol, &w) > 0 ? w.at : 0;
}
