/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --async: behind what an async function does when it goes on come those functions that wait for
 * it. A part of the step, included by v8.bpf.c behind what it uses.
 *
 * A builtin goes on with an async function where that awaited; its context has the function's
 * object, and that its promise. A promise that is pending has reactions: what is called when it is
 * settled. Of the one reaction, the handler is such a builtin, too, whose context has the object of
 * the function that waits; or one of Promise.all() and the like or of another promise, whose
 * context leads to the promise that waits; or what any program gave then(), which has a promise of
 * its own. This is how V8's own account goes (Isolate::CaptureAsyncStackTrace(),
 * src/execution/isolate.cc).
 *
 * Offsets that no version has changed: src/objects/{js-promise,promise,js-generator,contexts}.tq;
 * the others are in the record.
 */
#pragma once

/* Nothing of it is known where pointers are compressed, but is_of_script(), which does not need
 * --async. */
enum {
	/* Words of walk->scratch, beyond those of the step. */
	ASYNC_OBJECT_AT = 32,
	PROMISE_REACTIONS = 24,
	PROMISE_FLAGS = 32,
	PROMISE_STATUS = 3, /* of the flags, which are a small integer; 0: pending */
	CAPABILITY_PROMISE = 8,
	REQUEST_PROMISE = 32,
	GENERATOR_FUNCTION = 24,
	GENERATOR_POSITION = 48,
	GENERATOR_PROMISE = 80,
	/* Of a context: its extension, or the first one of its own; and the second one. */
	CONTEXT_SLOT_2 = 32,
	CONTEXT_SLOT_3 = 40,
	OBJECTS_MAX = 512, /* promises, and functions that wait */
	SAID_WAITED = 1,   /* [v8: awaited_by] stands there */
};

static __always_inline __u64 object_field(const struct walk *w, __u32 offset)
{
	return w->scratch[ASYNC_OBJECT_AT + (offset / 8 & 7)];
}

static __always_inline __u64 object_tagged(const struct walk *w, const struct v8_record *r,
					   __u64 near, __u32 offset)
{
	return tagged_of(r, near, object_field(w, offset) >> 8 * (offset & 7));
}

/* Reads the first 64 bytes of an object, to where object_field() has them: its type, or -1. */
__noinline int WALK_NAME(v8_object)(__u64 tagged)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 *to, map;
	__u16 type;

	if (!w)
		return -1;
	w->work++; /* promises without end are followed by up to ten of these each */
	r = v8_record(w);
	to = &w->scratch[ASYNC_OBJECT_AT];
	if (!r || !is_object(tagged) || read_to_page_end(tagged - TAG, to, V8_OBJECT_SIZE / 2))
		return -1;
	map = map_word(r, tagged, to[0]);
	if (!(map & TAG)) {
		if (read_to_page_end(map, to, V8_OBJECT_SIZE / 2))
			return -1;
		map = map_word(r, tagged, to[0]);
	}
	if (!is_object(map) || read_memory(map - TAG + r->map_type, &type, sizeof(type)))
		return -1;
	return type;
}

/* Whether the function that was just read is one of a script; else it is a builtin. */
static __always_inline bool is_of_script(struct walk *w, const struct v8_record *r, __u64 function)
{
	__u64 of = object_tagged(w, r, function, r->function_shared);

	if (WALK_NAME(v8_object)(of) < 0)
		return false;
	of = object_tagged(w, r, function, r->shared_script);
	return WALK_NAME(v8_object)(of) == r->async.script;
}

__noinline int WALK_NAME(v8_is_script)(__u64 function)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	int type = WALK_NAME(v8_object)(function);

	if (!w)
		return 0;
	r = v8_record(w);
	barrier_var(r);
	return r && type >= r->function_first && type <= r->function_last &&
	       is_of_script(w, r, function);
}

/* The promise of an async function's object, or of what was last asked of an async generator; 0. */
__noinline __u64 WALK_NAME(v8_promise_of)(__u64 generator)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 at = generator - TAG, promise;
	int type = WALK_NAME(v8_object)(generator);

	if (!w)
		return 0;
	r = v8_record(w);
	barrier_var(r);
	if (!r || type < 0)
		return 0;
	if (type != r->async.function && type != r->async.generator)
		return 0;
	if (read_word(at + GENERATOR_PROMISE, &promise))
		return 0;
	if (type == r->async.function)
		return promise;
	return WALK_NAME(v8_object)(promise) == r->async.request ? object_field(w, REQUEST_PROMISE)
								 : 0;
}

static __always_inline int async_end(struct walk *w, int note)
{
	runtime_state(w, RUNTIME_V8)[STATE_PROMISE] = 0;
	return note ? push_note(w, RUNTIME_V8, (enum frame_note)note) : STOP_NONE;
}

/* `context`: of what goes on with an async function. */
__noinline int WALK_NAME(v8_async_begin)(__u64 context)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 *state;

	if (!w)
		return STOP_INTERNAL;
	r = v8_record(w);
	state = runtime_state(w, RUNTIME_V8);
	if (!r || !r->async.promise)
		return STOP_NONE;
	state[STATE_LEFT] = OBJECTS_MAX;
	state[STATE_SAID] = 0;
	if (WALK_NAME(v8_object)(context) < 0)
		return async_end(w, FRAME_NOTE_AWAITER_UNKNOWN);
	state[STATE_PROMISE] = object_field(w, CONTEXT_SLOT_2);
	return STOP_NONE;
}

/* Pushes a function that waits, whose object was just read. */
static __always_inline int push_waiting(struct walk *w, const struct v8_record *r, __u64 generator)
{
	__u64 *state = runtime_state(w, RUNTIME_V8);
	__u64 function = object_field(w, GENERATOR_FUNCTION);
	__u64 at = object_field(w, GENERATOR_POSITION), place = V8_NO_PLACE;
	int stop = STOP_NONE;

	if (!(__u32)at) {
		at = (at >> 32) - (r->bytecodes - TAG);
		place = at < V8_BYTECODES_MAX ? at : V8_NO_PLACE;
	}
	if (!(state[STATE_SAID] & SAID_WAITED))
		stop = push_note(w, RUNTIME_V8, FRAME_NOTE_AWAITED_BY);
	state[STATE_SAID] |= SAID_WAITED;
	if (!stop)
		stop = WALK_NAME(v8_push)(function, V8_INTERPRETED, place, 0);
	state[STATE_PROMISE] = generator;
	return stop;
}

/* What a handler of a reaction leads to: -1 if that is nothing that is known. Else it is done. */
__noinline int WALK_NAME(v8_goes_on)(__u64 handler)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 context, second, third, *state;
	int type;

	if (!w)
		return STOP_INTERNAL;
	r = v8_record(w);
	state = runtime_state(w, RUNTIME_V8);
	type = WALK_NAME(v8_object)(handler);
	if (!r || type < r->function_first || type > r->function_last)
		return -1;
	context = object_field(w, r->async.function_context);
	if (is_of_script(w, r, handler) || WALK_NAME(v8_object)(context) < 0)
		return -1;
	second = object_field(w, CONTEXT_SLOT_2);
	third = object_field(w, CONTEXT_SLOT_3);
	type = WALK_NAME(v8_object)(second);
	if (type == r->async.function || type == r->async.generator)
		return push_waiting(w, r, second);
	if (type == r->async.promise) {
		state[STATE_PROMISE] = second;
		return STOP_NONE;
	}
	if (WALK_NAME(v8_object)(third) != r->async.capability)
		return -1;
	state[STATE_PROMISE] = object_field(w, CAPABILITY_PROMISE);
	return STOP_NONE;
}

/* Who waits for the promise, or for the function whose object that is. */
__noinline int WALK_NAME(v8_async)(void)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 reaction, chained, handler, *state;
	int stop, type;

	if (!w)
		return STOP_INTERNAL;
	r = v8_record(w);
	state = runtime_state(w, RUNTIME_V8);
	barrier_var(r);
	if (!r || !state[STATE_LEFT])
		return async_end(w, FRAME_NOTE_AWAITER_UNKNOWN);
	state[STATE_LEFT]--;
	type = WALK_NAME(v8_object)(state[STATE_PROMISE]);
	if (type == r->async.function || type == r->async.generator) {
		state[STATE_PROMISE] = WALK_NAME(v8_promise_of)(state[STATE_PROMISE]);
		return state[STATE_PROMISE] ? STOP_NONE : async_end(w, FRAME_NOTE_AWAITER_UNKNOWN);
	}
	if (type != r->async.promise)
		return async_end(w, FRAME_NOTE_AWAITER_UNKNOWN);
	reaction = object_field(w, PROMISE_REACTIONS);
	/* It is settled, or nobody waits. */
	if (object_field(w, PROMISE_FLAGS) >> 32 & PROMISE_STATUS || !is_object(reaction))
		return async_end(w, 0);
	if (WALK_NAME(v8_object)(reaction) != r->async.reaction)
		return async_end(w, FRAME_NOTE_AWAITER_UNKNOWN);
	if (is_object(object_field(w, r->async.next)))
		return async_end(w, FRAME_NOTE_AWAITED_BY_SEVERAL);
	handler = object_field(w, r->async.fulfill);
	chained = object_field(w, r->async.chained);
	stop = WALK_NAME(v8_goes_on)(handler);
	if (stop >= 0)
		return stop;
	/* Any function, which is followed by another promise. */
	type = WALK_NAME(v8_object)(chained);
	if (type == r->async.capability)
		chained = object_field(w, CAPABILITY_PROMISE);
	else if (type != r->async.promise)
		return async_end(w, FRAME_NOTE_AWAITER_UNKNOWN);
	state[STATE_PROMISE] = chained;
	return STOP_NONE;
}
