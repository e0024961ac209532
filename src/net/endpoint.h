/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server listens: "host:port", "http://host:port/path", "https://host/path"; IPv6
 * addresses stand in brackets. And headers as OTEL_EXPORTER_OTLP_HEADERS has them: "a=1,b=2",
 * values percent-encoded (specification/protocol/exporter.md of OpenTelemetry).
 */
#pragma once

#include "util/pairs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENDPOINT_HOST_SIZE = 256, ENDPOINT_PATH_SIZE = 512 };

struct endpoint {
	bool has_scheme, tls;	       /* tls: by the scheme */
	char host[ENDPOINT_HOST_SIZE]; /* without brackets */
	uint16_t port;		       /* 0: none was given */
	char path[ENDPOINT_PATH_SIZE]; /* with the slash; "": none was given */
};

/* 0, or -EINVAL with a few words in *ret_problem (static): what is wrong. */
int endpoint_parse(const char *text, struct endpoint *ret, const char **ret_problem);
/*
 * May what somebody gave as an endpoint have a secret in it? A user's name and password, or a
 * query: what is no endpoint, since it has these, above all.
 */
bool endpoint_has_secret(const char *text);
/* "host:port", as HTTP names it. */
void endpoint_authority(const struct endpoint *e, char *buf, size_t size);

/*
 * A list as above, names in lower case. 0, and *ret is the caller's; -EINVAL as above; -ENOMEM.
 * What the transports set themselves is refused.
 */
int net_headers_parse(const char *text, struct pairs *ret, const char **ret_problem);
