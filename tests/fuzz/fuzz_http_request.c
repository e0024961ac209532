// SPDX-License-Identifier: Apache-2.0
/* What anybody may send to the agent's port: whole at some size, and then at any larger one. */
#include "fuzz.h"
#include "net/http_request.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

FUZZER(data, size)
{
	struct http_request request;
	int whole, part;

	if (size > HTTP_REQUEST_MAX)
		size = HTTP_REQUEST_MAX;
	whole = http_request_parse((const char *)data, size, &request);
	assert(whole == 0 || whole == -EAGAIN || (whole >= 400 && whole < 600));
	assert(whole != -EAGAIN || size < HTTP_REQUEST_MAX);
	if (!whole)
		assert(*request.path == '/' && memchr(request.path, '\0', sizeof(request.path)));
	/* What was said of a part holds of the whole. */
	for (size_t n = size < 300 ? size : 300; n-- > 0;) {
		part = http_request_parse((const char *)data, n, &request);
		assert(part == -EAGAIN || part == whole);
	}
	return 0;
}
