/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "a=1,b=2": names and values as OTEL_RESOURCE_ATTRIBUTES and OTEL_EXPORTER_OTLP_HEADERS have them,
 * values percent-encoded (OpenTelemetry specification, resource/sdk.md and protocol/exporter.md).
 */
#pragma once

#include <stddef.h>

enum { PAIRS_MAX = 32 };

struct pairs {
	struct pair {
		/* RFC 9110's characters of a token, not empty; no control characters. Encoding is
		 * not checked. */
		char *name, *value;
	} items[PAIRS_MAX];
	size_t nr;
	char *text; /* what they point into */
};

/*
 * `text` is hostile. What has two digits behind '%' is a byte. 0, and *ret is the caller's;
 * -EINVAL, with a few words (static) in *ret_problem; -ENOMEM.
 */
int pairs_parse(const char *text, struct pairs *ret, const char **ret_problem);
void pairs_fini(struct pairs *pairs);
/*
 * Appends "name=value", with a comma before it if *len is not 0, to `text`, which has *len of
 * `size` bytes and stays a string. Whatever the value is, pairs_parse() finds it again. -EINVAL: a
 * name that is none, or control characters in the value; -ENOSPC.
 */
int pairs_append(char *text, size_t size, size_t *len, const void *name, size_t name_len,
		 const void *value, size_t value_len);
/* Of the first one of that name; NULL: there is none. */
const char *pairs_get(const struct pairs *pairs, const char *name);
