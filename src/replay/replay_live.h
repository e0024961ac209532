/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: keeps the walks of a live process's threads as replay cases, with all the memory that
 * the walks and the process's runtimes read (`sonde stack --replay-dir`). The process should stand
 * still meanwhile.
 */
#pragma once

#include "unwinder/walk_observer.h"

struct replay_live;

int replay_live_open(const char *dir, struct replay_live **ret);
void replay_live_free(struct replay_live *l);
static inline void replay_live_free_p(struct replay_live **l)
{
	replay_live_free(*l);
}
/*
 * What live_walk calls, until `l` is freed. From its begin on what runtimes read of the process is
 * remembered; of a thread its last walk is kept. Its end writes them into one file,
 * COMM-PID.case.zst, with the names of their frames; of a process with a runtime only the threads
 * with frames of it. That takes seconds: it tries out which of the memory is needed.
 */
struct thread_observer replay_live_observer(struct replay_live *l);
