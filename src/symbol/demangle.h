/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as people write them: C++ (Itanium), Rust (legacy and v0), D and Swift names demangled,
 * escapes in Go's import paths undone. Rust's hashes are left out. A clone's suffix stays visible:
 * `foo(int) [clone .cold]`. What can't be demangled stays as it is. docs/names.md has examples.
 */
#pragma once

#include "symbol/symbol_table.h"

#include <stddef.h>

enum {
	/* Longer names stay as they are. */
	DEMANGLE_NAME_MAX = 16 << 10,
};

enum demangle_style {
	DEMANGLE_FULL = 0,  /* as c++filt does, with parameters: `int ns::max<int>(int, int)` */
	DEMANGLE_SHORT = 1, /* no parameters, template arguments, return types: `ns::max` */
	DEMANGLE_STYLE_MAX_ = 2,
};

/*
 * Writes the demangled form of `name`, or `name` itself if it is not mangled, into `buf`. Bounded
 * in time and memory for hostile input; what does not fit is cut. Returns buf.
 *
 * `language` is that of the debug information, SYMBOL_LANGUAGE_UNKNOWN if there is none: a name
 * that is not mangled but of a language with templates is shortened too (`vec<int>::push`).
 */
const char *demangle_name(const char *name, enum symbol_language language,
			  enum demangle_style style, char *buf, size_t size);
/* In full, of no known language. */
const char *demangle(const char *name, char *buf, size_t size);
