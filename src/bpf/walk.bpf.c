// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The walker's loop: calls the step of whoever owns the current frame until one says how the walk
 * ended. Two nested loops, so that the verifier sees WALK_BATCH iterations only.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"

/* A frame of code that a runtime made takes two steps. */
enum { WALK_BATCHES = 2 * SAMPLE_WORDS_MAX / WALK_BATCH };

__noinline int WALK_NAME(walk_batch)(void);

__noinline int WALK_NAME(walk_batch)(void)
{
	struct walk *w = current_walk();
	int stop;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	for (i = 0; i < WALK_BATCH; i++) {
		switch (w->runtime) {
#define RUNTIME(name, NAME, id)                                                                    \
	case RUNTIME_##NAME:                                                                       \
		stop = WALK_NAME(step_##name)();                                                   \
		break;
#include "abi/runtimes.def"
#undef RUNTIME
		default:
			return STOP_INTERNAL;
		}
		if (stop)
			return stop;
	}
	return STOP_NONE;
}

__noinline int WALK_NAME(walk_user)(void)
{
	int stop;
	__u32 i;

	for (i = 0; i < WALK_BATCHES; i++) {
		stop = WALK_NAME(walk_batch)();
		if (stop)
			return stop;
	}
	return STOP_MAX_FRAMES;
}
