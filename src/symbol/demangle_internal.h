/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What demangle.c is made of: shortening of demangled text.
 */
#pragma once

#include "symbol/demangle.h"

#include <stdbool.h>

/*
 * `text` without what DEMANGLE_SHORT leaves out, by the brackets that the language uses for it.
 * False: its brackets don't match, or the language has none of them; then `buf` is in disorder.
 */
bool demangle_shorten(const char *text, enum symbol_language language, char *buf, size_t size);

/* Appends " [clone .part.0] [clone .cold]" for ".part.0.cold": a new one begins at a letter. */
void demangle_append_clones(const char *clones, char *buf, size_t size);
