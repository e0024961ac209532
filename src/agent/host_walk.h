/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks with the host's build of the walker over the publisher's tables, loading those that the
 * walk meets; and the memory of a thread of which only a copy of its stack is of that moment.
 */
#pragma once

#include "agent/publisher.h"
#include "bpf/host/walk_host.h"

/* How the walk ended (enum stop_reason); state->words[0 .. state->full.nr_words) are the frames. */
int host_walk(struct publisher *p, const struct walk_memory *memory, const struct walk_input *input,
	      struct walk *state);

/*
 * The stack as it was copied, and the code around pc. All else that the process has is of a later
 * moment (walk_input.late): it is read where a runtime's step needs it, to tell what code is.
 */
struct copied_memory {
	uint64_t stack_start;
	uint32_t stack_size;
	const uint8_t *stack;
	uint64_t code_start;
	uint32_t code_size;
	const uint8_t *code; /* NULL: it is read from `pid` */
	int32_t pid;
	bool has_runtimes;  /* what else `pid` has may be read */
	uint64_t stack_end; /* of the stack's mapping, looked for when it matters; 0: not yet */
	/* Result: a read went on above the copy; it ends for lack of room, or at an untouched page.
	 */
	bool past_copy;
};

/* A walk_memory's `read`, and `read_stack`: the copy alone; `ctx` is the copied_memory. */
int copied_memory_read(void *ctx, __u64 addr, void *to, __u32 size);
int copied_memory_read_stack(void *ctx, __u64 addr, void *to, __u32 size);
/* How a walk over it ended: STOP_STACK_COPY_END if it was for lack of stack. */
int copied_memory_stop(const struct copied_memory *copied, int stop);
