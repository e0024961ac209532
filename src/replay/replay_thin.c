// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_thin.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

static bool is_zero(const uint8_t *data, size_t size)
{
	return !size || (!data[0] && !memcmp(data, data + 1, size - 1));
}

int replay_thin(struct replay_thin *t, size_t start, size_t end)
{
	size_t size = end - start;
	int r;

	if (is_zero(t->data + start, size))
		return 0;
	/* Not kept while it calls itself: the halves are tried one after the other. */
	{
		_cleanup_free_ uint8_t *saved = malloc(size);

		if (!saved)
			return -ENOMEM;
		memcpy(saved, t->data + start, size);
		memset(t->data + start, 0, size);
		t->nr_tries++;
		if (t->is_enough(t->ctx))
			return 0;
		memcpy(t->data + start, saved, size);
	}
	if (size <= t->last_piece)
		return 0;
	r = replay_thin(t, start, start + size / 2);
	return r ? r : replay_thin(t, start + size / 2, end);
}
