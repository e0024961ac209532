/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions, their scripts, and lines of these.
 */
#pragma once

#include "runtime/v8/v8_heap.h"

#include "util/vec.h"

enum { V8_SCRIPTS = 32, V8_LINES_MAX = 1 << 21, V8_SOURCE_MAX = 32 << 20 };

/* Where lines end in the source of a script, for which V8 has not made such a table itself. */
struct v8_script_lines {
	uint64_t source; /* tagged; what it was */
	int32_t script;	 /* id */
	VEC(uint32_t) ends;
};

struct v8_lines {
	struct v8_script_lines scripts[V8_SCRIPTS];
	size_t next;
};

void v8_lines_fini(struct v8_lines *lines);

struct v8_function {
	struct v8_object shared, script;
	bool has_script;
	char name[V8_TEXT_MAX + 1];
	char source[V8_TEXT_MAX + 1]; /* "": none */
	int32_t start;		      /* offset in the source; -1: not known */
};

/* What the SharedFunctionInfo (a tagged pointer) tells. 0, or -ENOENT, -ESRCH. */
int v8_function_read(const struct v8_heap *h, uint64_t shared, struct v8_function *ret);
/* The line, from 1 on, of that offset in a function's script; 0: not known. */
uint32_t v8_line(const struct v8_heap *h, struct v8_lines *lines, const struct v8_function *f,
		 int32_t offset);
