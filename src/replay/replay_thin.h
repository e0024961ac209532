/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out by trying which parts of some bytes are needed, and zeroes the others.
 *
 * Of all of them large pieces are tried before any smaller ones, and the last ones first: a file's
 * symbols stand at its end, each try reads what is left of them, and next to nothing is needed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay_thin {
	uint8_t *data;
	size_t first_piece;	      /* bytes that are tried at once */
	size_t last_piece;	      /* bytes that are needed or not together */
	size_t keep_start, keep_size; /* these bytes are kept untried */
	bool (*is_enough)(void *ctx); /* are the data as they stand good enough? */
	void *ctx;
	size_t nr_tries;
};

/* Zeroes what can be of the `size` bytes of the data. 0 or -ENOMEM. */
int replay_thin(struct replay_thin *t, size_t size);
