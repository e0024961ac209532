/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: keeps the walks of a live process's threads as replay cases, with all the memory that
 * the walks and the process's runtimes read (`sonde stack --replay-dir`). The process should stand
 * still meanwhile.
 */
#pragma once

#include "unwinder/publisher.h"
#include "bpf/host/walk_host.h"

struct replay_live;

/* From here on what runtimes read of process `pid` is remembered. Borrows the publisher. */
int replay_live_open(const char *dir, struct publisher *p, int32_t pid, struct replay_live **ret);
void replay_live_free(struct replay_live *l);
/* What is to stand between the walker and `memory` (borrowed) for the next walk. */
struct walk_memory replay_live_tap(struct replay_live *l, const struct walk_memory *memory);
/* That walk was of thread `tid`, from `input`: it takes the place of an earlier one. */
void replay_live_keep(struct replay_live *l, int32_t tid, const struct walk_input *input,
		      const struct walk *walk, enum stop_reason stop);
/*
 * Writes the threads' last walks into one file, COMM-PID.case.zst, with the names of their frames;
 * of a process with a runtime only the threads with frames of it. Takes seconds: it tries out which
 * of the memory is needed.
 */
void replay_live_write(struct replay_live *l, struct process *proc);
