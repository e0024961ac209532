/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a process's memory that was read: aligned or not, of this machine's byte order. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t word_at(const void *data, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)data + offset, sizeof(word));
	return word;
}

/* One of 32 bits. */
static inline uint32_t half_at(const void *data, size_t offset)
{
	uint32_t half;

	memcpy(&half, (const uint8_t *)data + offset, sizeof(half));
	return half;
}
