/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a raw sample (abi/sample.h: registers and a copy of the stack) with the host's build of the
 * walker, over the same tables as the kernel's.
 */
#pragma once

#include "unwinder/host_walk.h"

/*
 * Walks in the mappings of `snapshot`, loading the unwind tables that it meets. Returns how it
 * ended (enum stop_reason); walk->words[0 .. walk->full.nr_words) are the user frames. What a
 * runtime's step needs beside it is read from the live process `pid` (0: from none), for what code
 * is. `is_final`: what is in none of these mappings is nowhere (PROCESS_MAPPINGS_FINAL).
 */
int raw_walk(struct publisher *p, const struct mapping_snapshot *snapshot,
	     const struct sample_raw *raw, const struct stack_copy *stack, int32_t pid,
	     bool is_final, uint32_t max_frames, struct walk *walk);

/*
 * Why a stack is cut whose walk ended so: the end of a copy that had to be short (RAWS_SHORT) tells
 * nothing of the stack, but that too much was new at once.
 */
int raw_walk_reason(const struct sample_raw *raw, int stop);
