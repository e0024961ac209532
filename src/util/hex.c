// SPDX-License-Identifier: Apache-2.0
#include "util/hex.h"

#include <stddef.h>

const char *hex_parse(const char *p, const char *end, uint64_t *ret)
{
	const char *begin = p;
	uint64_t v = 0;

	for (; p < end; p++) {
		unsigned int c = (unsigned char)*p, lower = c | 0x20;

		if (c - '0' < 10)
			v = v << 4 | (c - '0');
		else if (lower - 'a' < 6)
			v = v << 4 | (lower - 'a' + 10);
		else
			break;
	}
	if (p == begin || p - begin > 16)
		return NULL;
	*ret = v;
	return p;
}
