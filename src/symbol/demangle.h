/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ (Itanium), Rust (legacy and v0) and D names as people write them: as c++filt does, with
 * parameters; Rust's hashes are left out. A clone's suffix stays visible: `foo(int) [clone .cold]`.
 */
#pragma once

#include <stddef.h>

enum {
	/* Longer names stay as they are. */
	DEMANGLE_NAME_MAX = 16 << 10,
};

/*
 * Writes the demangled form of `name`, or `name` itself if it is not mangled, into `buf`. Bounded
 * in time and memory for hostile input; what does not fit is cut. Returns buf.
 */
const char *demangle(const char *name, char *buf, size_t size);
