/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions, and of their scripts.
 */
#pragma once

#include "runtime/v8/v8_heap.h"

struct v8_function {
	struct v8_object shared, script;
	bool has_script;
	char name[V8_TEXT_MAX + 1];
	char source[V8_TEXT_MAX + 1]; /* "": none */
	int32_t start;		      /* offset in the source; -1: not known */
};

/* What the SharedFunctionInfo (a tagged pointer) tells. 0, or -ENOENT, -ESRCH. */
int v8_function_read(const struct v8_heap *h, uint64_t shared, struct v8_function *ret);
