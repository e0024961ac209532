/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out by trying which parts of some bytes are needed, and zeroes the others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay_thin {
	uint8_t *data;
	size_t last_piece;	      /* bytes that are needed or not together */
	bool (*is_enough)(void *ctx); /* are the data as they stand good enough? */
	void *ctx;
	size_t nr_tries;
};

/* Zeroes what can be of [start, end) of the data. 0 or -ENOMEM. */
int replay_thin(struct replay_thin *t, size_t start, size_t end);
