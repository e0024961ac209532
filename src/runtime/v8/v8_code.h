/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that V8 made for functions: which one an address lies in, and where in the source that is.
 */
#pragma once

#include "runtime/v8/v8_heap.h"
#include "runtime/v8/v8_positions.h"

#include "util/vec.h"

/* Where code was found; looked at again before it is believed. */
struct v8_known_code {
	uint64_t start, size;
	uint64_t code; /* tagged pointer to the Code */
};

struct v8_codes {
	VEC(struct v8_known_code) known; /* at most V8_KNOWN_CODE */
	size_t next;			 /* the next one to be given up */
	uint64_t stream_map;		 /* tagged: of every InstructionStream; 0: not met yet */
};

enum { V8_KNOWN_CODE = 1024, V8_INLINED_MAX = 32 };

/* The Code that has the instruction at `pc`: 0 or -ENOENT, -ESRCH, -ENOMEM. */
int v8_code_find(const struct v8_heap *h, struct v8_codes *codes, uint64_t pc,
		 struct v8_object *ret);
void v8_codes_fini(struct v8_codes *codes);

/* A function, and where in it: innermost first. */
struct v8_place {
	uint64_t shared; /* tagged; 0: the function itself that the code is of */
	int32_t offset;	 /* in the source; -1: not known */
	bool unknown;	 /* no function: what is inlined there, if anything, is not known */
};

/*
 * What runs at `pc` in `code`, if that is `shared`'s (untagged): how many places, the function's
 * own last; or -ENOENT: it is not, or that could not be read.
 */
int v8_code_places(const struct v8_heap *h, const struct v8_object *code,
		   const struct v8_object *shared, const struct v8_bytecode_sizes *sizes,
		   uint64_t pc, struct v8_place ret[V8_INLINED_MAX]);
/* The source offset of a bytecode of the function; -1: not known. */
int32_t v8_bytecode_place(const struct v8_heap *h, const struct v8_object *shared, uint32_t at);
