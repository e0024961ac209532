/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a profile: inline frames of frames merged by what they are called. Frames of one
 * function differ by address only; a frame without a name is a function of its own; an inlined call
 * of a function is another one than the function itself.
 *
 * A runtime's function is told by its source and where in it it begins, too: many methods of one
 * file have one name.
 *
 * Functions are numbered in the order of their labels (bytes), so comparing numbers sorts by text.
 * Threads' names and truncation markers are functions too: all that a path of a tree is made of.
 */
#pragma once

#include "profile/profile.h"

/* Beside enum frame_kind. */
enum {
	FUNCTION_KIND_COMM = FRAME_KIND_MAX_,	     /* a thread's name */
	FUNCTION_KIND_INLINED = FRAME_KIND_MAX_ + 1, /* a native function, inlined into the next */
	FUNCTION_KIND_INLINED_OF = 64, /* plus the kind of a runtime's frames: the same of its */
};

enum function_merge {
	/* What a folded line shows: name and mark; a comm's blanks are '_'. */
	MERGE_BY_TEXT,
	MERGE_BY_NAME_AND_FILE, /* equal names in different files are different functions */
	MERGE_INLINED_TOO,	/* the same, and where it was inlined a function is no other one */
};

struct function {
	const char *label; /* the name (with ":line" if asked for), a comm, "[truncated: reason]" */
	uint32_t file;	   /* one of the profile's files that has it, or PROFILE_NO_FILE */
	uint16_t kind;	   /* enum frame_kind, or one of the above */
	/* Of a runtime's function; else 0, and of all if MERGE_BY_TEXT. */
	uint32_t source, start_line; /* as struct profile_function has them */
};

struct function_table {
	struct strtab labels;
	VEC(struct function) functions;
	uint32_t *first_inline;	       /* by frame of the profile, and one more: into of_inline */
	uint32_t *of_inline;	       /* of each frame, the innermost inline frame first */
	uint32_t *of_thread;	       /* by thread: its comm */
	uint32_t truncated[STOP_MAX_]; /* by enum stop_reason; UINT32_MAX: does not occur */
};

/* `lines`: the same function in different lines is different functions, "name:line". */
int function_table_init(struct function_table *t, const struct profile *p,
			enum function_merge merge, bool lines);
void function_table_fini(struct function_table *t);
