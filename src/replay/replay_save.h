/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: compares the kernel's walk of each sample with the host's of the same registers and
 * stack (the kernel sends both then: kernel_side_options.raw_too), and keeps some of them as replay
 * cases. Stacks with frames of runtimes are neither: a raw record has too little memory for them.
 * Walks of live threads have all they read: replay/replay_live.h keeps them.
 */
#pragma once

#include "unwinder/host_walk.h"
#include "replay/replay_case.h"
#include "bpf/walk.bpf.h"

/* Bytes of a stack that are kept above a walk's last frame: what lies further up is none of our
 * business (arguments, environment). */
enum { REPLAY_KEPT_ABOVE = 64 };

struct replay_save;

int replay_save_open(const char *dir, uint32_t max_cases, struct publisher *p,
		     struct replay_save **ret);
void replay_save_free(struct replay_save *s);
/* A raw record and what the host's walk of it gave; the kernel's own follows in a full record. */
void replay_save_raw(struct replay_save *s, const struct sample_header *h,
		     const struct sample_raw *raw, const struct stack_copy *stack,
		     const struct walk *walk, enum stop_reason stop);
/* A full record: the same sample's, if its time and CPU are the last raw record's. */
void replay_save_full(struct replay_save *s, const struct sample_header *h,
		      const struct sample_full *full, const __u64 *words);
/* Pairs that were compared, and those that differed. */
void replay_save_counts(const struct replay_save *s, uint64_t *ret_compared,
			uint64_t *ret_different);

/* A file of cases, one behind the other, in the folder. */
void replay_save_file(struct replay_save *s, const char *name, const uint8_t *data, size_t size);
