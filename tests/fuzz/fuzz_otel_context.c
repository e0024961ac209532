// SPDX-License-Identifier: Apache-2.0
/* What a process publishes of itself; what is made of it must be a list that can be read. */
#include "fuzz.h"
#include "record/otel_context.h"
#include "util/pairs.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

FUZZER(data, size)
{
	struct otel_context c;
	const char *problem = NULL;
	struct pairs pairs;
	int r = otel_context_read(data, size, &c);

	assert(!r || r == -EBADMSG);
	if (r)
		return 0;
	assert(memchr(c.service, '\0', sizeof(c.service)));
	assert(memchr(c.attributes, '\0', sizeof(c.attributes)));
	r = pairs_parse(c.attributes, &pairs, &problem);
	assert(!r || r == -ENOMEM);
	if (!r)
		pairs_fini(&pairs);
	return 0;
}
