/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of scripts: by V8's own tables of where lines end, else by the source, which is read once.
 */
#pragma once

#include "runtime/v8/v8_names.h"

#include "util/vec.h"

/* Lines of one script are a quarter of what may be kept of all processes. */
enum { V8_SCRIPTS = 32, V8_LINES_MAX = 1 << 20, V8_SOURCE_MAX = 32 << 20 };

/* Where lines end in the source of a script, for which V8 has not made such a table itself. */
struct v8_script_lines {
	struct runtime_kept kept;
	uint64_t source; /* tagged; what it was; 0: this is free */
	uint32_t length; /* of the source */
	int32_t script;	 /* id */
	bool failed;	 /* it has no lines: it was not to be read, or there are too many */
	uint64_t used;	 /* when, by struct v8_lines */
	VEC(uint32_t) ends;
};

struct v8_lines {
	struct v8_script_lines scripts[V8_SCRIPTS];
	uint64_t now; /* counts uses */
};

void v8_lines_fini(const struct v8_heap *h, struct v8_lines *lines);

/* The line, from 1 on, of that offset in a function's script; 0: not known. */
uint32_t v8_line(const struct v8_heap *h, struct v8_lines *lines, const struct v8_function *f,
		 int32_t offset);
