/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client asks of a small HTTP server: RFC 9112's request line and headers, as strictly as
 * whoever answers strangers should be. Of the headers only Host counts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_REQUEST_MAX = 8192, HTTP_PATH_SIZE = 256 };

struct http_request {
	bool head;		   /* only the headers are wanted */
	char path[HTTP_PATH_SIZE]; /* as it was asked for, without a query */
};

/*
 * 0 and *ret: the request is whole. -EAGAIN: it is right as far as it goes, and not whole. Else the
 * status of the answer: 400 (what this is, is no request), 405 (neither GET nor HEAD), 414, 431
 * (too large), 505.
 */
int http_request_parse(const char *data, size_t size, struct http_request *ret);
