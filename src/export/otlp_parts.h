/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as OTLP requests of a bounded size, for collectors that refuse larger ones. Each is
 * valid by itself, with a dictionary of its own and the whole cut's times; together they have what
 * one request would have.
 */
#pragma once

#include "profile/profile.h"

/* Of requests; collectors read just one. docs/formats/otlp.md, "Older schemas". */
enum otlp_schema {
	OTLP_SCHEMA_1_10 = 0, /* and later */
	OTLP_SCHEMA_1_9 = 1,
	OTLP_SCHEMA_1_8 = 2,
};

/* One request, of so many samples of type 0. 0, or negative errno: no further one is made. */
typedef int otlp_part_fn(void *ctx, const void *request, size_t size, uint64_t samples);

/*
 * Tells of at least one request. A single time or value whose stack alone takes more than
 * `max_size` is a request all the same. 0; -ENOMEM, -E2BIG, or what `part` returned: those that
 * were told of before stand.
 */
int otlp_write_parts(const struct profile *p, enum otlp_schema schema, size_t max_size,
		     otlp_part_fn *part, void *ctx);
