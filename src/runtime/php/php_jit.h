/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where opcache's JIT keeps the code that it makes: one buffer, which two variables of opcache
 * tell. They are found in the memory of the process, since opcache is another file than PHP, by the
 * code of zend_jit_status(), which it exports. x86-64.
 */
#pragma once

#include "runtime/php/php_file.h"

struct php_jit {
	uint64_t begin, end; /* addresses of the variables; 0: not found yet */
};

/* Looks for opcache: 0; -ENOENT: it is not there (yet), or has no JIT; other errors of reading. */
int php_jit_find(const struct runtime_target *t, const struct php_dso *dso, struct php_jit *ret);
/* The buffer; start 0: there is none. */
int php_jit_buffer(const struct runtime_target *t, const struct php_jit *jit,
		   struct code_range *ret);
