/* SPDX-License-Identifier: Apache-2.0 */
/* What is told about one cut of the profile: an OTLP request, docs/formats/otlp.md, in gzip. */
#pragma once

#include "profile/profile.h"

struct report {
	char *data;
	size_t size;
	size_t plain_size; /* not compressed */
	uint64_t samples;
};

/* 0 or -ENOMEM; *ret is the caller's. */
int report_make(const struct profile *p, struct report *ret);
void report_fini(struct report *report);
