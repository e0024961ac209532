/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay case: one walk (registers, what it read of the process's memory, frames, how it ended),
 * with as much of the unwind tables as it touches and what runtimes had written down for it: so
 * that any machine can walk it again. May have the names that runtimes gave to its frames, and what
 * they read for that. Format: docs/formats/replay-case.md.
 */
#pragma once

#include "unwinder/publisher.h"
#include "replay/replay_image.h"
#include "replay/replay_memory.h"

#include <stdio.h>

struct replay_case;

/* A walk, to be written as a case; all borrowed. */
struct replay_capture {
	const struct publisher *publisher;
	const struct mapping_snapshot *snapshot; /* the mappings that the frames were found in */
	uint16_t machine;
	uint32_t valid; /* of `regs`; 0: all */
	uint32_t max_frames;
	uint32_t runtimes; /* cell of the process's first runtime_record, or 0 */
	bool late;	   /* see struct walk */
	uint64_t pc, thread_pointer;
	const uint64_t *regs;
	const struct replay_memory *memory; /* merged */
	const __u64 *words;		    /* user frames only */
	uint32_t nr_words;
	enum stop_reason stop;
	const char *names;		   /* replay_names(); NULL: none */
	const struct replay_image *images; /* of the runtimes' files */
	uint32_t nr_images;
};

/*
 * Makes a case: *ret is the caller's. Nothing but what stands in the case is needed to walk it
 * again: that is tried, and if it gives other frames the case is refused with -ESTALE (memory that
 * changed during the walk, files that could not be read).
 */
int replay_case_make(const struct replay_capture *capture, uint8_t **ret, size_t *ret_size);
/* Writes cases, one behind the other, compressed (zstd). */
int replay_cases_pack(const uint8_t *data, size_t size, FILE *out);

/*
 * What a file of cases has, decompressed if need be: the caller's. -EINVAL if that can't be done.
 * replay_case_next() reads them one by one: 0, and `data`, `size` are the rest; -ENODATA at the
 * end; -EINVAL if what stands there is no case.
 */
int replay_cases_unpack(const void *data, size_t size, uint8_t **ret, size_t *ret_size);
int replay_case_next(const uint8_t **data, size_t *size, struct replay_case **ret);
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
/*
 * The names of its frames (replay/replay_names.h): those it was made with ("": it has none), and
 * those that the runtimes give now, out of the case's memory and files; *ret is the caller's.
 * -ENOENT: it has no files. Other errors: a runtime asks for what was not asked for then.
 */
const char *replay_case_expected_names(const struct replay_case *c);
int replay_case_name(const struct replay_case *c, char **ret);
