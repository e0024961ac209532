/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told about one cut of the profile: OTLP requests (docs/formats/otlp.md) in gzip, or one
 * pprof file (docs/formats/pprof.md).
 */
#pragma once

#include "export/otlp_parts.h"

enum report_format {
	REPORT_OTLP = 0,
	REPORT_PPROF = 1,
	REPORT_FORMATS_ = 2,
};

struct report_options {
	enum report_format format;
	enum otlp_schema schema;
	size_t max_size; /* of a request, unpacked: a larger report is several */
};

/* One request, or file. */
struct report {
	char *data;
	size_t size;
	size_t plain_size; /* of a request, not compressed */
	uint64_t samples;
	bool nameless; /* names of functions are left out (export/otlp_parts.h) */
};

/* Takes what is in *report. */
typedef void report_fn(void *ctx, struct report *report);

/*
 * Tells of each request: one, or as many as it takes for none to be larger than it may be
 * (export/otlp_parts.h); of a pprof file, which is always one. 0; or -ENOMEM, -E2BIG, and those
 * that were told of stand.
 */
int report_make(const struct profile *p, const struct report_options *options, report_fn *made,
		void *ctx);
void report_fini(struct report *report);
