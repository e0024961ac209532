// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program a runtime, walker_NAME: it has the native step and that runtime's, and goes on with the
 * CPU's walk where another program, by a tail call, has left it. It knows nothing of the context
 * but that the next program wants it, so it serves every source of samples: the agent loads it as a
 * program of that source's type. (Nobody calls walker_native: the source's own program does that.)
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/send.bpf.h"

#define RUNTIME(name, NAME, id)                                                                    \
	SEC("perf_event")                                                                          \
	int walker_##name(void *ctx)                                                               \
	{                                                                                          \
		struct walk *w = current_walk();                                                   \
		int stop;                                                                          \
                                                                                                   \
		if (!w)                                                                            \
			return 0;                                                                  \
		stop = walk_##name##_frames();                                                     \
		if (stop == WALK_CHANGE) {                                                         \
			bpf_tail_call(ctx, &walkers, w->runtime);                                  \
			stop = STOP_WALKER_PENDING;                                                \
		}                                                                                  \
		send_sample((__u32)stop);                                                          \
		return 0;                                                                          \
	}
#include "abi/runtimes.def"
#undef RUNTIME
