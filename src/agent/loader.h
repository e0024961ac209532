/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds unwind tables without letting the ring of samples overflow: a big file's table is built by
 * a thread of its own, and the caller's `meanwhile` runs every few milliseconds until it is there.
 */
#pragma once

#include "unwind/unwind_table.h"

struct loader_wait {
	void (*meanwhile)(void *ctx); /* may be NULL */
	void *ctx;
};

/*
 * As unwind_table_build(); also -EFBIG if building would take more than `max_transient` bytes
 * beside the result. `elf` is used by nobody else meanwhile.
 */
int loader_build(const struct elf_file *elf, unsigned int follow, size_t max_transient,
		 const struct loader_wait *wait, struct unwind_table **ret);
