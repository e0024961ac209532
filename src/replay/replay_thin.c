// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_thin.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

static bool is_zero(const uint8_t *data, size_t size)
{
	return !size || (!data[0] && !memcmp(data, data + 1, size - 1));
}

static bool is_kept(const struct replay_thin *t, size_t start, size_t end)
{
	return t->keep_start < end && t->keep_start + t->keep_size > start;
}

/* Zeroes [start, end), unless that is needed. `saved` has room for it. */
static void try_without(struct replay_thin *t, size_t start, size_t end, uint8_t *saved)
{
	size_t size = end - start;

	if (is_kept(t, start, end) || is_zero(t->data + start, size))
		return;
	memcpy(saved, t->data + start, size);
	memset(t->data + start, 0, size);
	t->nr_tries++;
	if (!t->is_enough(t->ctx))
		memcpy(t->data + start, saved, size);
}

int replay_thin(struct replay_thin *t, size_t size)
{
	_cleanup_free_ uint8_t *saved = malloc(t->first_piece);

	if (!saved)
		return -ENOMEM;
	for (size_t piece = t->first_piece; piece >= t->last_piece; piece /= 2)
		for (size_t end = size; end;) {
			size_t start = (end - 1) / piece * piece;

			try_without(t, start, end, saved);
			end = start;
		}
	return 0;
}
