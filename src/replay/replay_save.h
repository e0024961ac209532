/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: compares the kernel's walk of each sample with the host's of the same registers and
 * stack (the kernel sends both then: bpf_sampler_options.raw_too), and keeps some of them as replay
 * cases. Stacks with frames of runtimes are neither: a raw record has too little memory for them.
 * Walks of live threads have all they read: replay/replay_live.h keeps them.
 */
#pragma once

#include "unwinder/walk_observer.h"
#include "replay/replay_case.h"

/* Bytes of a stack that are kept above a walk's last frame: what lies further up is none of our
 * business (arguments, environment). */
enum { REPLAY_KEPT_ABOVE = 64 };

struct replay_save;

/* Keeps a case of up to `max_cases` walked samples in the folder `dir`, which is made if need be.
 */
int replay_save_open(const char *dir, uint32_t max_cases, struct replay_save **ret);
void replay_save_free(struct replay_save *s);
/* What a recorder calls, until `s` is freed. */
struct sample_observer replay_save_observer(struct replay_save *s);
/* Pairs that were compared, and those that differed. */
void replay_save_counts(const struct replay_save *s, uint64_t *ret_compared,
			uint64_t *ret_different);

/* A file of cases, one behind the other, in the folder. */
void replay_save_file(struct replay_save *s, const char *name, const uint8_t *data, size_t size);
