/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runtimes keep of processes only so that they need not read it again: one budget of memory
 * for all processes, since anybody may start many. What was not used for longest goes first.
 *
 * Embedded in what is kept, which belongs to its runtime_proc.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { RUNTIME_KEPT_MAX = 16 << 20 }; /* bytes */

struct runtime_kept {
	struct runtime_kept *older, *newer;
	size_t bytes; /* 0: it is not kept */
	/* Frees what is kept; it is in the keeper no more. */
	void (*drop)(struct runtime_kept *kept);
};

struct runtime_keeper {
	struct runtime_kept *oldest, *newest;
	size_t bytes;
	uint64_t nr_dropped;
};

/* Keeps what was not kept; others go until there is room. `bytes`: 1 to RUNTIME_KEPT_MAX. */
void runtime_keep(struct runtime_keeper *keeper, struct runtime_kept *kept, size_t bytes);
/* It is used now. */
void runtime_use_kept(struct runtime_keeper *keeper, struct runtime_kept *kept);
/* Its owner frees it; nothing happens if it is not kept. */
void runtime_keep_no_more(struct runtime_keeper *keeper, struct runtime_kept *kept);
