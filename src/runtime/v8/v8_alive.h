/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a function is alive. What was dropped may look whole for long, while what it leads to has
 * become another's; V8's list of scripts, and a script's list of its functions, do not hold what
 * they have alive, and a collection takes what is not out of them before its memory is used again.
 */
#pragma once

#include "runtime/v8/v8_heap.h"

enum { V8_SCRIPT_HINTS = 256 };

/* What is remembered of a process. */
struct v8_scripts {
	/* How far behind the heap (the C++ object) the pointer to the list of scripts is; 0: it was
	 * not found yet, and looked for so many times. */
	int64_t list;
	uint32_t tries;
	/* Where in the list scripts were, by the id. */
	struct {
		uint32_t id, index;
	} hints[V8_SCRIPT_HINTS];
};

/* A function, by where it and its script are now. */
struct v8_identity {
	uint64_t script, shared;
	uint32_t id, literal;
};

/*
 * 0: it is alive, so all that was read of it before is its own. -ENOENT: it is not, or was moved;
 * -ENODATA: that cannot be told in this process; -ESRCH: the process is gone.
 */
int v8_is_alive(const struct v8_heap *h, struct v8_scripts *scripts, const struct v8_identity *f);
