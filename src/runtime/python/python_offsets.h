/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython's fields lie: what is needed of a version (3.6 to 3.12 by tables, from 3.13 on by
 * the debug offsets that _PyRuntime begins with), made into the record of the walker's step and the
 * layout that names are read by. The tables are the headers of these versions, for 64-bit builds.
 */
#pragma once

#include "runtime/python/python_abi.h"
#include "runtime/python/python_names.h"
#include "runtime/runtime.h"

/* What the debug offsets begin with: CPython's Include/internal/pycore_debug_offsets.h. */
#define PYTHON_DEBUG_COOKIE "xdebugpy"
enum { PYTHON_DEBUG_OFFSETS_SIZE = 1024 }; /* so much is looked at */

/* Is there a table for that version, of one or the other kind? */
bool python_offsets_known(unsigned int minor);

/* 3.6 to 3.12: all but the addresses. -ENOTSUP: another version. */
int python_offsets_of(unsigned int minor, struct python_record *record,
		      struct python_layout *layout);
/*
 * 3.13 and later: out of the first `size` bytes of _PyRuntime; record->interpreters is relative to
 * it. -EINVAL: they are none or make no sense. -ENOTSUP: of a version whose debug offsets are not
 * known to us.
 */
int python_offsets_parse(const void *data, size_t size, struct python_record *record,
			 struct python_layout *layout);

/*
 * The cookie of the code object at `code` as the step makes it. -EFAULT and the like: it can't be
 * read; -EINVAL: it is no code object.
 */
int python_read_cookie(const struct runtime_target *target, const struct python_record *record,
		       uint64_t code, uint32_t *ret);
