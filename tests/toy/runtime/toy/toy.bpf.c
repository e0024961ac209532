// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The step of the toy machine. Each call of its loop has an activation on the native stack, in the
 * frame of the loop's caller; threads have a list of them, innermost first, and an activation one
 * of the frames that its loop runs. A loop's activation is the first one above its stack
 * pointer: those below are of loops that have ended, or not begun.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/toy/toy_abi.h"

/* What is remembered within a walk: runtime_state(). */
enum {
	STATE_BEGUN,	  /* 1: the thread was looked for */
	STATE_LOOP,	  /* stack pointer of the loop whose frames are pushed */
	STATE_FRAME,	  /* the next one; 0: no more */
	STATE_ACTIVATION, /* the next loop's; 0: no more, or the thread is not known */
};

/* A struct's words into w->scratch; 0 if they could be read. */
static __always_inline int read_struct(struct walk *w, __u64 addr)
{
	return read_memory(addr, w->scratch, TOY_STRUCT_SIZE);
}

/* The innermost activation of the walked thread. */
static __always_inline __u64 find_thread(struct walk *w, const struct toy_offsets *o, __u64 threads)
{
	__u64 thread, pointer = walk_thread_pointer(w);
	__u32 i;

	if (!pointer || read_word(threads, &thread))
		return 0;
	for (i = 0; i < TOY_THREADS_MAX && thread; i++) {
		if (read_struct(w, thread))
			return 0;
		if (w->scratch[TOY_WORD(o->thread_pointer)] == pointer)
			return w->scratch[TOY_WORD(o->thread_activation)];
		thread = w->scratch[TOY_WORD(o->thread_next)];
	}
	return 0;
}

/* Finds the frames of the loop that the walk is at; 0, or what is to be said in their place. */
static __always_inline int enter_loop(struct walk *w, const struct toy_record *r, __u64 *state)
{
	const struct toy_offsets *o = &r->offsets;
	__u64 activation;
	__u32 i;

	if (!state[STATE_BEGUN]) {
		state[STATE_BEGUN] = 1;
		state[STATE_ACTIVATION] = find_thread(w, o, r->threads);
		if (!state[STATE_ACTIVATION])
			return FRAME_NOTE_NO_THREAD_STATE;
	}
	state[STATE_LOOP] = w->loop_sp;
	state[STATE_FRAME] = 0;
	for (i = 0; i < TOY_ACTIVATIONS_MAX; i++) {
		activation = state[STATE_ACTIVATION];
		if (!activation)
			break;
		if (read_struct(w, activation))
			return FRAME_NOTE_UNREADABLE;
		state[STATE_ACTIVATION] = w->scratch[TOY_WORD(o->activation_previous)];
		if (activation < w->loop_sp)
			continue;
		state[STATE_FRAME] = w->scratch[TOY_WORD(o->activation_frame)];
		return 0;
	}
	return FRAME_NOTE_MISMATCH;
}

/* Pushes a frame and moves to the one that called it. */
static __always_inline int push_toy_frame(struct walk *w, const struct toy_offsets *o, __u64 *state)
{
	__u64 function, pc, serial;

	if (read_struct(w, state[STATE_FRAME]))
		goto unreadable;
	function = w->scratch[TOY_WORD(o->frame_function)];
	pc = w->scratch[TOY_WORD(o->frame_pc)];
	state[STATE_FRAME] = w->scratch[TOY_WORD(o->frame_back)];
	if (read_word(function + o->function_serial, &serial))
		goto unreadable;
	return push_frame_2(w, RUNTIME_TOY, function, serial << 32 | (__u32)pc);
unreadable:
	state[STATE_FRAME] = 0;
	return push_note(w, RUNTIME_TOY, FRAME_NOTE_UNREADABLE);
}

/* One frame a call. */
STEP(toy)
{
	const struct toy_record *r;
	struct walk *w = current_walk();
	__u64 *state;
	int note = 0, stop;

	if (!w)
		return STOP_INTERNAL;
	/* The machine makes no code. */
	if (w->entry == ENTRY_CODE)
		return STOP_RUNTIME_UNKNOWN;
	r = runtime_record(w, RUNTIME_TOY, struct toy_record);
	state = runtime_state(w, RUNTIME_TOY);
	if (!r || w->late)
		note = FRAME_NOTE_NOT_READY;
	else if (state[STATE_LOOP] != w->loop_sp)
		note = enter_loop(w, r, state);
	if (note) {
		stop = push_note(w, RUNTIME_TOY, note);
		return stop ? stop : walk_native(w);
	}
	if (r && state[STATE_FRAME])
		return push_toy_frame(w, &r->offsets, state);
	return walk_native(w);
}
