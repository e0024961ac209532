/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as OTLP requests of a bounded size, for collectors that refuse larger ones. Each is
 * valid by itself, with a dictionary of its own and the whole cut's times; together they have what
 * one request would have.
 */
#pragma once

#include "profile/profile.h"

enum {
	/* Of a sample of type 0: ordinary ones take a kilobyte, those of a large report less. Of
	 * other types, sleeps say, a process can have as many as it likes, of a few bytes each. */
	OTLP_FREE_BYTES = 4096,
	OTLP_FREE_BYTES_OF_OTHERS = 64,
	/* max_size: what users who are not trusted have beyond that. It is less than the agent's
	 * queue takes by default (cli/cmd_agent.c). */
	OTLP_REPORT_TIMES = 8,
	OTLP_OWNERS_PART = 4, /* of what is left of it each of them has such a part */
};

/* Of requests; collectors read just one. docs/formats/otlp.md, "Older schemas". */
enum otlp_schema {
	OTLP_SCHEMA_1_10 = 0, /* and later */
	OTLP_SCHEMA_1_9 = 1,
	OTLP_SCHEMA_1_8 = 2,
};

/*
 * One request, of so many samples of type 0; `named` false: names of functions are left out. 0, or
 * negative errno: no further one is made.
 */
typedef int otlp_part_fn(void *ctx, const void *request, size_t size, uint64_t samples, bool named);

/*
 * Tells of at least one request. A user who is not trusted (util/owners.h) has a share of what
 * requests take beyond what is free; behind it, and if one stack alone takes more than
 * `max_size`, the others of his samples in this report have no names. A single time or value that
 * takes more all the same, or whose user is trusted, is a larger request. 0; -ENOMEM, -E2BIG, or
 * what `part` returned: those that were told of before stand.
 */
int otlp_write_parts(const struct profile *p, enum otlp_schema schema, size_t max_size,
		     otlp_part_fn *part, void *ctx);
