/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay case: one sample as the kernel walked it (registers, stack, frames, how it ended), with
 * as much of the unwind tables as its walk touches: so that any machine can walk it again. Format:
 * docs/formats/replay-case.md.
 */
#pragma once

#include "agent/publisher.h"

#include <stdio.h>

struct replay_case;

/*
 * Writes a case: `bytes` are the raw record's stack bytes, `words` the frames that the kernel found
 * in mappings of `block`. 0 or negative errno.
 */
int replay_case_write(FILE *out, const struct publisher *p, const struct block *block,
		      const struct sample_raw *raw, const uint8_t *stack, const __u64 *words,
		      uint32_t nr_words, enum stop_reason stop);
/* -EINVAL if it is no case. */
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
/* What the kernel found. */
struct replay_result replay_case_expected(const struct replay_case *c);
