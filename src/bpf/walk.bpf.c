// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The walkers' loops: they call the step of whoever owns the current frame until one says how the
 * walk ended. Two nested loops, so that the verifier sees WALK_BATCH iterations only.
 *
 * In the kernel each runtime has a loop, and so a program, of its own (walkers.bpf.c), which are
 * verified one by one. Where that can't be, and on the host, one loop has all steps.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/frames.bpf.h"

/* A frame of code that a runtime made takes two steps. */
enum { WALK_BATCHES = 2 * SAMPLE_WORDS_MAX / WALK_BATCH };

__noinline int WALK_NAME(walk_change)(void);
__noinline int WALK_NAME(walk_batch)(void);

/*
 * The current frame is of a runtime that has another walker than the one that runs: WALK_CHANGE if
 * that has to go on. STOP_NONE: it is done with.
 */
__noinline int WALK_NAME(walk_change)(void)
{
	struct walk *w = current_walk();
	int stop;

	if (!w)
		return STOP_INTERNAL;
	if (walkers_off() & 1u << (w->runtime & (RUNTIME_MAX_ - 1))) {
		if (w->entry == ENTRY_CODE)
			return STOP_RUNTIME_OFF;
		stop = push_note(w, w->runtime, FRAME_NOTE_OFF);
		/* Its step would have known where that stack was left, or that there is none. */
		if (!stop && w->entry == ENTRY_SWITCHED)
			stop = append_frame(w, RUNTIME_NATIVE, FRAME_NOTE_OTHER_STACK, 1, 0);
		return stop ? stop : walk_native(w);
	}
	if (w->nr_changes == CHANGES_MAX)
		return STOP_RUNTIME_CHANGES;
	w->nr_changes++;
	w->walker = w->runtime;
	return WALK_CHANGE;
}

static __always_inline bool is_of_another(const struct walk *w)
{
	return w->runtime != RUNTIME_NATIVE && w->runtime != w->walker;
}

#define RUNTIME(name, NAME, id)                                                                    \
	__noinline int WALK_NAME(walk_##name##_batch)(void);                                       \
	__noinline int WALK_NAME(walk_##name##_batch)(void)                                        \
	{                                                                                          \
		struct walk *w = current_walk();                                                   \
		int stop;                                                                          \
		__u32 i;                                                                           \
                                                                                                   \
		if (!w)                                                                            \
			return STOP_INTERNAL;                                                      \
		for (i = 0; i < WALK_BATCH; i++) {                                                 \
			if (too_much_work(w, 0))                                                   \
				return STOP_TOO_MUCH_WORK;                                         \
			if (w->runtime == RUNTIME_NATIVE)                                          \
				stop = WALK_NAME(native_steps)();                                  \
			else if (w->runtime == RUNTIME_##NAME)                                     \
				stop = WALK_NAME(step_##name)();                                   \
			else                                                                       \
				stop = WALK_NAME(walk_change)();                                   \
			if (stop)                                                                  \
				return stop;                                                       \
		}                                                                                  \
		return STOP_NONE;                                                                  \
	}                                                                                          \
                                                                                                   \
	__noinline int WALK_NAME(walk_##name##_frames)(void)                                       \
	{                                                                                          \
		int stop;                                                                          \
		__u32 i;                                                                           \
                                                                                                   \
		for (i = 0; i < WALK_BATCHES; i++) {                                               \
			stop = WALK_NAME(walk_##name##_batch)();                                   \
			if (stop)                                                                  \
				return stop;                                                       \
		}                                                                                  \
		return STOP_MAX_FRAMES;                                                            \
	}
#include "abi/runtimes.def"
#undef RUNTIME

__noinline int WALK_NAME(walk_batch)(void)
{
	struct walk *w = current_walk();
	int stop;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	for (i = 0; i < WALK_BATCH; i++) {
		if (too_much_work(w, 0))
			return STOP_TOO_MUCH_WORK;
		stop = is_of_another(w) ? WALK_NAME(walk_change)() : STOP_NONE;
		if (stop && stop != WALK_CHANGE)
			return stop;
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
