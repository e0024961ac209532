/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay case: one walk (registers, what it read of the process's memory, frames, how it ended),
 * with as much of the unwind tables as it touches and what runtimes had written down for it: so
 * that any machine can walk it again. May have the names that runtimes gave to its frames, and what
 * they read for that. Format: docs/formats/replay-case.md.
 */
#pragma once

#include "agent/publisher.h"
#include "agent/replay_memory.h"

#include <stdio.h>

struct replay_case;

/* A walk, to be written as a case; all borrowed. */
struct replay_capture {
	const struct publisher *publisher;
	const struct block *block; /* the mappings that the frames were found in */
	uint16_t machine;
	uint32_t valid; /* of `regs`; 0: all */
	uint32_t max_frames;
	uint32_t runtimes; /* cell of the process's first runtime_record, or 0 */
	uint64_t pc, thread_pointer;
	const uint64_t *regs;
	const struct replay_memory *memory; /* merged */
	const __u64 *words;		    /* user frames only */
	uint32_t nr_words;
	enum stop_reason stop;
	const char *names; /* see replay_case_names(); NULL: none */
};

/*
 * Makes a case: *ret is the caller's. Nothing but what stands in the case is needed to walk it
 * again: that is tried, and if it gives other frames the case is refused with -ESTALE (memory that
 * changed during the walk, files that could not be read).
 */
int replay_case_make(const struct replay_capture *capture, uint8_t **ret, size_t *ret_size);
/* The same, compressed (zstd), into a file. */
int replay_case_write(FILE *out, const struct replay_capture *capture);

/* Compressed or not. -EINVAL if it is no case. */
int replay_case_read(const void *data, size_t size, struct replay_case **ret);
void replay_case_free(struct replay_case *c);
static inline void replay_case_free_p(struct replay_case **c)
{
	replay_case_free(*c);
}

struct replay_result {
	enum stop_reason stop;
	const __u64 *words; /* the case's */
	uint32_t nr_words;
};

/* Walks it on the host. */
struct replay_result replay_case_walk(struct replay_case *c);
/* What was found when it was made. */
struct replay_result replay_case_expected(const struct replay_case *c);
/* The memory of the process, as far as it was read. */
const struct replay_memory *replay_case_memory(const struct replay_case *c);
