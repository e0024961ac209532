/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: keeps the walks of a live process's threads as replay cases, with all the memory that
 * the walks and the process's runtimes read (`sonde stack --replay-dir`). The process should stand
 * still.
 */
#pragma once

#include "agent/publisher.h"
#include "bpf/host/walk_host.h"

struct replay_live;

/* From here on what runtimes read of process `pid` is remembered. Borrows the publisher. */
int replay_live_open(const char *dir, struct publisher *p, int32_t pid, struct replay_live **ret);
void replay_live_free(struct replay_live *l);
/* What is to stand between the walker and `memory` (borrowed) for the next walk. */
struct walk_memory replay_live_tap(struct replay_live *l, const struct walk_memory *memory);
/* Keeps that walk, of thread `tid` and from `input`, with the names of its frames. */
void replay_live_keep(struct replay_live *l, struct process *proc, int32_t tid,
		      const struct walk_input *input, const struct walk *walk,
		      enum stop_reason stop);
