/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who watches walks as they are made, and changes nothing: replay cases are kept so
 * (src/replay), of a recording or of a live process's threads. What walks knows nothing of who
 * watches.
 *
 * `begin` comes first, with the publisher that the walks use, which lives until the last call; 0,
 * or negative errno: then nothing is walked. All calls come from the thread that walks.
 */
#pragma once

#include "unwinder/publisher.h"
#include "unwinder/host_walk.h"
#include "bpf/host/walk_host.h"
#include "bpf/walk.bpf.h"

/* Of a recording, whose kernel then sends a raw record before each full one. */
struct sample_observer {
	void *ctx;
	int (*begin)(void *ctx, struct publisher *p);
	/* A raw record, what of the stack was copied, and what the host's walk of it gave. */
	void (*raw)(void *ctx, const struct sample_header *h, const struct sample_raw *raw,
		    const struct stack_copy *stack, const struct walk *walk, enum stop_reason stop);
	/* A full record: the kernel's walk. */
	void (*full)(void *ctx, const struct sample_header *h, const struct sample_full *full,
		     const __u64 *words);
};

/* Of the threads of a live process. */
struct thread_observer {
	void *ctx;
	int (*begin)(void *ctx, struct publisher *p, int32_t pid);
	/* What is to stand between the walker and `memory` (borrowed) for the next walk. */
	struct walk_memory (*tap)(void *ctx, const struct walk_memory *memory);
	/* That walk was of thread `tid`, from `input`. */
	void (*walked)(void *ctx, int32_t tid, const struct walk_input *input,
		       const struct walk *walk, enum stop_reason stop);
	/* The last one was made; the publisher is still there. */
	void (*end)(void *ctx, struct process *proc);
};
