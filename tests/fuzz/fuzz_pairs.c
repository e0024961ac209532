// SPDX-License-Identifier: Apache-2.0
/* A list of names and values, as a process's environment may have it. */
#include "fuzz.h"
#include "util/pairs.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

FUZZER(data, size)
{
	char *text = malloc(size + 1);
	const char *problem = NULL;
	struct pairs p;
	int r;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	r = pairs_parse(text, &p, &problem);
	assert(!r || r == -ENOMEM || (r == -EINVAL && problem));
	for (size_t i = 0; !r && i < p.nr; i++) {
		assert(*p.items[i].name && pairs_get(&p, p.items[i].name));
		for (const char *s = p.items[i].value; *s; s++)
			assert((unsigned char)*s >= ' ' && *s != 127);
	}
	if (!r)
		pairs_fini(&p);
	free(text);
	return 0;
}
