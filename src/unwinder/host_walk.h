/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks with the host's build of the walker over the publisher's tables, loading those that the
 * walk meets; and the memory of a thread of which only a copy of its stack is of that moment.
 */
#pragma once

#include "unwinder/publisher.h"
#include "bpf/host/walk_host.h"

/* How the walk ended (enum stop_reason); state->words[0 .. state->full.nr_words) are the frames. */
int host_walk(struct publisher *p, const struct walk_memory *memory, const struct walk_input *input,
	      struct walk *state);

/* A copy of a stack: of all of it from `start` on, or of some pages of RAW_PAGE bytes. */
struct stack_copy {
	uint64_t start;
	uint32_t size; /* bytes copied */
	uint32_t nr_pages;
	const uint16_t *pages; /* struct sample_raw; NULL: all of it */
	const uint8_t *bytes;
};

struct stack_chunk {
	uint64_t addr;
	uint32_t size;
	const uint8_t *bytes;
};

/* The i'th piece of the copy, by address. False: there are no more. */
bool stack_copy_chunk(const struct stack_copy *copy, uint32_t i, struct stack_chunk *ret);
/* The copy that a raw record has; `bytes` follow its kernel frames. False: it makes no sense. */
bool stack_copy_of_raw(const struct sample_raw *raw, const uint8_t *bytes, struct stack_copy *ret);

/*
 * The stack as it was copied, and the code around pc. All else that the process has is of a later
 * moment (walk_input.late): it is read where a step needs it, to tell what code is. The process may
 * be over then; what it mapped is known, and the files are there.
 */
struct copied_memory {
	struct stack_copy stack;
	uint64_t code_start;
	uint32_t code_size;
	const uint8_t *code; /* NULL: it is read from `pid` */
	int32_t pid;	     /* 0: nothing else of it may be read */
	/* Code of files is read from these where the process is gone; NULL: it is not. */
	struct publisher *publisher;
	const struct mapping_snapshot *snapshot;
	uint64_t stack_end; /* of the stack's mapping, looked for when it matters; 0: not yet */
	bool past_copy;	    /* result: a read met what was left out of the copy for lack of room */
	bool elsewhere;	    /* result: the last read that failed was of no part of this stack */
};

/* A walk_memory's `read`, and `read_stack`: the copy alone; `ctx` is the copied_memory. */
int copied_memory_read(void *ctx, __u64 addr, void *to, __u32 size);
int copied_memory_read_stack(void *ctx, __u64 addr, void *to, __u32 size);
/* How a walk over it ended: STOP_STACK_COPY_END if it was for lack of stack. */
int copied_memory_stop(const struct copied_memory *copied, int stop);
