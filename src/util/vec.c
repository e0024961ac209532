// SPDX-License-Identifier: Apache-2.0
#include "util/vec.h"

#include <stdint.h>

int vec_grow(void **items, size_t *cap, size_t item_size, size_t want)
{
	size_t new_cap = *cap ? *cap : 8;
	void *p;

	while (new_cap < want) {
		if (new_cap > SIZE_MAX / 2)
			return -ENOMEM;
		new_cap += new_cap / 2;
	}
	if (new_cap > SIZE_MAX / item_size)
		return -ENOMEM;
	p = realloc(*items, new_cap * item_size);
	if (!p)
		return -ENOMEM;
	*items = p;
	*cap = new_cap;
	return 0;
}
