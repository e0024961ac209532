/* SPDX-License-Identifier: Apache-2.0 */
/* What is told about one cut of the profile: OTLP requests, docs/formats/otlp.md, in gzip. */
#pragma once

#include "export/otlp_parts.h"

/* One request. */
struct report {
	char *data;
	size_t size;
	size_t plain_size; /* not compressed */
	uint64_t samples;
};

/* Takes what is in *report. */
typedef void report_fn(void *ctx, struct report *report);

/*
 * Tells of each request: one, or as many as it takes for none to be larger than `max_size`,
 * unpacked (export/otlp_parts.h). 0; or -ENOMEM, -E2BIG, and those that were told of stand.
 */
int report_make(const struct profile *p, enum otlp_schema schema, size_t max_size, report_fn *made,
		void *ctx);
void report_fini(struct report *report);
