/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a profile: frames merged by what they are called. Frames of one function differ
 * by address only; a frame without a name is a function of its own.
 *
 * Functions are numbered in the order of their labels (bytes), so comparing numbers sorts by text.
 * Threads' names and truncation markers are functions too: all that a path of a tree is made of.
 */
#pragma once

#include "profile/profile.h"

/* Beside enum frame_kind: a thread's name. */
enum { FUNCTION_KIND_COMM = FRAME_KIND_MAX_ };

enum function_merge {
	MERGE_BY_TEXT, /* what a folded line shows: name and kind; a comm's blanks are '_' */
	MERGE_BY_NAME_AND_FILE, /* equal names in different files are different functions */
};

struct function {
	const char *label; /* profile_frame_name(), a comm, or "[truncated: reason]" */
	uint32_t file;	   /* one of the profile's files that has it, or PROFILE_NO_FILE */
	uint16_t kind;	   /* enum frame_kind or FUNCTION_KIND_COMM */
};

struct function_table {
	struct strtab labels;
	VEC(struct function) functions;
	uint32_t *of_frame;	       /* by frame of the profile */
	uint32_t *of_sample;	       /* by sample: its comm */
	uint32_t truncated[STOP_MAX_]; /* by enum stop_reason; UINT32_MAX: does not occur */
};

int function_table_init(struct function_table *t, const struct profile *p,
			enum function_merge merge);
void function_table_fini(struct function_table *t);
