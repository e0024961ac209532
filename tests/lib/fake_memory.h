/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of a made-up process's memory, which a test fills in. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads `size` bytes at `addr` of the `nr` ones that begin at `base`. 0 or -EFAULT. */
static inline int fake_memory_read(const uint8_t *bytes, uint64_t base, size_t nr, uint64_t addr,
				   void *to, size_t size)
{
	if (addr < base || addr >= base + nr || size > base + nr - addr)
		return -EFAULT;
	memcpy(to, bytes + (addr - base), size);
	return 0;
}
