/* SPDX-License-Identifier: Apache-2.0 */
/* What of a text is UTF-8 (Unicode 15.0, table 3-7), and what of it a terminal would obey. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the well-formed character at `s`, 0 if there is none; no more than `len` (1 or more) are
 * looked at. Of a text that ends with 0, `len` may be SIZE_MAX: nothing behind the 0 is looked at.
 */
size_t utf8_len(const char *s, size_t len);
/* Writes character `c`, of at most 21 bits; how many bytes that are. Surrogates are written, too.
 */
size_t utf8_put(uint32_t c, char ret[static 4]);
/* The character of `len` bytes at `s` is of C0, DEL, or C1 (U+0080 to U+009F). */
bool utf8_is_control(const char *s, size_t len);
