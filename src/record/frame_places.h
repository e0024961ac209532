/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the frames of one stack of a profile lay in their process's memory, by the mappings that it
 * was walked in. A stack has a hundred frames, a made-up process thousands of mappings: the search
 * begins where the last frame was, and ends after so many looks in all.
 */
#pragma once

#include "abi/unwind.h"

#include <stdint.h>

enum { FRAME_PLACES_LOOKS_MAX = 1 << 16 };

struct frame_places {
	const struct unwind_mapping *mappings;
	uint32_t nr;
	/* A file's number in the profile, by that of a mapping; UINT32_MAX: it has none. */
	uint32_t (*file_of)(void *ctx, uint32_t mapping_file);
	void *ctx;
	/* private */
	uint32_t last, nr_looks;
};

/* The address in memory; 0: it is in no mapping of that file, or there were too many looks. */
uint64_t frame_places_find(struct frame_places *p, uint32_t file, uint64_t address);
