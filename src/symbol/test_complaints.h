/* SPDX-License-Identifier: Apache-2.0 */
/* What tests hear of a store's complaints. */
#pragma once

#include <stdio.h>

struct complaints {
	int nr;
	char last[1024];
};

/* symbol_store_options.complain; ctx: struct complaints */
static inline void take_complaint(void *ctx, const char *text)
{
	struct complaints *c = ctx;

	c->nr++;
	snprintf(c->last, sizeof(c->last), "%s", text);
}
