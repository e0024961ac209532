/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <string.h>

/*
 * The text, if it fits into `size` bytes with its end; else its begin in `buf`, of that size (at
 * least 8), which ends in "...". A UTF-8 character stays whole.
 */
static inline const char *cut_text(const char *text, char *buf, size_t size)
{
	size_t len = strnlen(text, size);

	if (len < size)
		return text;
	len = size - sizeof("...");
	while (len && ((uint8_t)text[len] & 0xc0) == 0x80)
		len--;
	memcpy(buf, text, len);
	memcpy(buf + len, "...", sizeof("..."));
	return buf;
}
