/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a profile its samples use, and what is known of the frames of each file: pprof's mappings
 * and OTLP's say so. A count of 0 is no sample.
 */
#pragma once

#include "profile/profile.h"

/* Frames without a file whose kind says what stands in for one. */
enum { USED_NO_FILES = FRAME_KIND_MAX_ };

struct used_file {
	bool used;
	/* Of all its frames; and whether one has inlined functions. */
	bool functions, filenames, line_numbers;
	bool inline_frames;
	/* All their addresses lie in [start, end) of the file. */
	bool in_range;
};

struct used {
	bool *frames;
	bool *stacks;
	bool *functions;
	bool stops[STOP_MAX_]; /* reasons of truncated stacks */
	/* As many as the profile has, and USED_NO_FILES more, see used_file_of(). */
	struct used_file *files;
};

int used_init(struct used *u, const struct profile *p);
void used_fini(struct used *u);
/*
 * The index of a frame's file. Frames of the kernel and of runtimes without one are of a file that
 * the profile does not have, of number `files.nr` + their kind. PROFILE_NO_FILE: none.
 */
uint32_t used_file_of(const struct profile *p, const struct profile_frame *f);
/* The reason in `stops` of a stack that is not complete; STOP_COMPLETE if it is. */
enum stop_reason used_stop(const struct profile_stack *s);
