/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the threads of one live process with the host's build of the walker: in the process's own
 * memory where a thread stands still, else in a copy of its stack. Non-logging.
 */
#pragma once

#include "snapshot/live_threads.h"
#include "symbolize/decoder.h"
#include "snapshot/thread_event.h"
#include "unwinder/unwinder.h"
#include "unwinder/walk_observer.h"
#include "bpf/host/walk_host.h"

struct live_walker {
	struct unwinder unwinder;
	struct decoder decoder;
	struct process *process;
	const struct mapping_snapshot *snapshot; /* its mappings; NULL: it has none */
	struct walk *walk; /* walk->words[0 .. walk->full.nr_words) are the frames */
	uint32_t max_frames;
	const struct thread_observer *observer; /* of the walks; NULL: nobody */
	bool refreshed;				/* the mappings were read again for this round */
};

/*
 * -ESRCH: no such process. -EPERM: we may not read its memory. live_walker_fini() in any case. It
 * must not be moved. `observer` (borrowed, or NULL) watches the walks.
 */
int live_walker_init(struct live_walker *w, int32_t pid, uint32_t max_frames,
		     struct profile *profile, const struct symbolizer_options *symbolizer,
		     const struct thread_observer *observer);
void live_walker_fini(struct live_walker *w);
/* From here on mappings may have changed. */
void live_walker_new_round(struct live_walker *w);
/* How the walk ended; w->snapshot is what its addresses were found in. */
enum stop_reason live_walker_still(struct live_walker *w, const struct live_thread *thread);
/* The thread runs on: only its copied stack is of that moment. */
enum stop_reason live_walker_caught(struct live_walker *w, int32_t tid,
				    const struct caught_thread *caught);
/* The thread is being kept from running. */
enum stop_reason live_walker_stopped(struct live_walker *w, int32_t tid,
				     const struct caught_thread *caught);
/* Is something missing in the last walk that a walk of the stopped thread would find? */
bool live_walker_wants_stop(const struct live_walker *w);
