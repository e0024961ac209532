/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How --memory-limit is shared out, and what is really used. The limit is for this process's memory
 * and its BPF maps together; pages of maps that are mapped here count once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct budget {
	size_t arena;	/* unwind tables and mappings */
	size_t profile; /* stacks, frames, names */
	size_t batch;	/* samples of one turn; there are two: one at work, one being filled */
};

/* `fixed` bytes are in use already, whatever comes: the program itself and its maps of fixed size.
 */
struct budget budget_share(uint64_t limit, size_t fixed);
/* The shares when tables need more than their part: half of what samples of a turn may take. */
struct budget budget_lend(const struct budget *b);
/* For a profile that is full, while tables have so many bytes of their part free: half of these. */
struct budget budget_lend_to_profile(const struct budget *b, size_t arena_free);
/* The limit, in steps that people would choose, that leaves so much for the arena. */
uint64_t budget_limit_for_arena(size_t arena, size_t fixed);
/* Resident memory of this process without pages of BPF maps, in bytes; 0 if it can't be read. */
size_t budget_resident(void);
