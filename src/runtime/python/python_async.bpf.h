/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --async: behind the frames of a task of asyncio come those of the tasks that wait for it, up to
 * the one that nobody waits for. A part of the step, included by python.bpf.c behind what it uses.
 *
 * An event loop runs a task's step by a Handle, whose method _run() has it in its frame: where that
 * frame comes the task is found, and then, a unit of work a call of the step (async_step()), for
 * each task that waits a note is pushed and the frames of its suspended coroutines. Those are found
 * from the outermost on, and pushed from the innermost on. Who waits: from 3.14 on the task has it;
 * before, it is what the task's callbacks lead to.
 *
 * Objects are told by the names of their types: asyncio's types have no addresses known to us. The
 * facts: CPython's Modules/_asynciomodule.c, Lib/asyncio, Objects/genobject.c of each version; the
 * offsets are in the record (python_async.c).
 */
#pragma once

/* Words of walk->scratch, beyond those of the step; python_push() leaves them alone. */
enum {
	CHAIN_AT = 128, /* the frames of coroutines, outermost first */
	CHAIN_MAX = 96,
	TYPE_AT = CHAIN_AT + CHAIN_MAX, /* for python_kind() */
	OBJECT_AT = TYPE_AT + 4,	/* for who reads an object's words */
	ASYNC_AT = OBJECT_AT + 8,
};
/* From ASYNC_AT on. */
enum {
	A_MODE,	    /* enum async_mode */
	A_LEFT,	    /* so many units of work are left */
	A_FUTURE,   /* who waits for this one? */
	A_CALLBACK, /* its next callback: 0, or 1 + the index in its list */
	A_NR_CALLBACKS,
	A_AWAITER, /* a task or future that waits, or 0 */
	A_UNKNOWN, /* there is a callback that does who knows what */
	A_NEXT,	   /* the next object that is awaited: a coroutine, or what it ends with */
	A_NR_CHAIN,
	A_WORDS,
};
_Static_assert((int)LAST_COOKIE_AT < (int)CHAIN_AT &&
		       (int)ASYNC_AT + (int)A_WORDS <= SCRATCH_SIZE / 8,
	       "scratch");

enum async_mode { ASYNC_BEGIN, ASYNC_FIND, ASYNC_CALLBACKS, ASYNC_DOWN, ASYNC_PUSH };
/* Units of work: enough for hundreds of frames, and an end in a process that means harm. */
enum { ASYNC_WORK_MAX = 1024, CALLBACKS_MAX = 64, BASES_MAX = 4, CELLS_MAX = 6 };

/* Offsets that no version has changed; with Py_GIL_DISABLED, field() adds to them:
 * Include/cpython/object.h, methodobject.h, classobject.h, cellobject.h, listobject.h,
 * tupleobject.h, setobject.h. */
enum {
	OBJECT_TYPE = 8,
	TYPE_NAME = 24, /* and tp_basicsize */
	TYPE_BASE = 256,
	VAR_SIZE = 16,
	TUPLE_ITEMS = 24,
	LIST_ITEMS = 24,
	CFUNCTION_ML = 16, /* and m_self */
	METHOD_FUNC = 16,  /* and im_self */
	PARTIAL_FN = 16,   /* and args: Modules/_functoolsmodule.c */
	CELL_CONTENT = 16,
	FIRST_FIELD = 16,
	SET_USED = 24,	      /* and mask, table */
	HANDLE_CALLBACK = 24, /* __slots__ are sorted: _args, _callback */
	FUTURE_CALLBACK = 24, /* fut_callback0 */
	FUTURE_CALLBACKS = 40,
	PARENT_TASK = 4, /* which of TaskGroup's attributes */
};

enum kind {
	KIND_OTHER,
	KIND_TASK,
	KIND_FUTURE,
	KIND_FUTURE_ITER,
	KIND_METH_WRAPPER, /* TaskStepMethWrapper, TaskWakeupMethWrapper */
	KIND_COROUTINE,	   /* or an asynchronous generator */
	KIND_GENERATOR,
	KIND_AWAITABLE, /* around a coroutine or an asynchronous generator, its first field */
	KIND_FUNCTION,
	KIND_METHOD,
	KIND_BUILTIN,
	KIND_PARTIAL,
	KIND_HANDLE,
};

/* The address of a field whose offset is one of these. */
static __always_inline __u64 field(const struct python_record *r, __u64 object, __u32 offset)
{
	return object + offset + r->async.header;
}

__noinline int WALK_NAME(python_kind)(__u64 object);
__noinline __u64 WALK_NAME(python_task_of)(__u64 callback);
__noinline __u64 WALK_NAME(python_group_task)(__u64 group);
__noinline __u64 WALK_NAME(python_cell_future)(__u64 closure);
__noinline __u64 WALK_NAME(python_only_member)(__u64 set);
__noinline __u64 WALK_NAME(python_awaited)(__u64 object);
/* A unit of work of each mode. */
__noinline int WALK_NAME(python_async_begin)(void);
__noinline int WALK_NAME(python_async_find)(void);
__noinline int WALK_NAME(python_async_callback)(void);
__noinline int WALK_NAME(python_async_down)(void);
__noinline int WALK_NAME(python_async_push)(void);

static __always_inline __u64 *async_state(struct walk *w)
{
	return &w->scratch[ASYNC_AT];
}

/* --- what an object is ----------------------------------------------------------------------- */

#define TEXT8(a, b, c, d, e, f, g, h)                                                              \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 |   \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)
/* The first N characters, the string's end among them. */
#define CHARS(word, n) ((word) << (64 - 8 * (n)) >> (64 - 8 * (n)))

static __always_inline int asyncio_kind(__u64 second)
{
	if (CHARS(second, 6) == TEXT8('.', 'T', 'a', 's', 'k', 0, 0, 0))
		return KIND_TASK;
	if (second == TEXT8('.', 'F', 'u', 't', 'u', 'r', 'e', 0))
		return KIND_FUTURE;
	if (second == TEXT8('.', 'F', 'u', 't', 'u', 'r', 'e', 'I'))
		return KIND_FUTURE_ITER;
	if (second == TEXT8('.', 'T', 'a', 's', 'k', 'S', 't', 'e') ||
	    second == TEXT8('.', 'T', 'a', 's', 'k', 'W', 'a', 'k'))
		return KIND_METH_WRAPPER;
	return KIND_OTHER;
}

/* By the first 16 bytes of a type's name. */
static __always_inline int named_kind(__u64 first, __u64 second)
{
	if (first == TEXT8('_', 'a', 's', 'y', 'n', 'c', 'i', 'o'))
		return asyncio_kind(second);
	if (first == TEXT8('T', 'a', 's', 'k', 'S', 't', 'e', 'p') || /* up to 3.11 */
	    first == TEXT8('T', 'a', 's', 'k', 'W', 'a', 'k', 'e'))
		return KIND_METH_WRAPPER;
	if (first == TEXT8('c', 'o', 'r', 'o', 'u', 't', 'i', 'n'))
		return CHARS(second, 2) == 'e' ? KIND_COROUTINE : KIND_AWAITABLE;
	if (first == TEXT8('g', 'e', 'n', 'e', 'r', 'a', 't', 'o') && CHARS(second, 2) == 'r')
		return KIND_GENERATOR;
	if (first == TEXT8('a', 's', 'y', 'n', 'c', '_', 'g', 'e'))
		return second == TEXT8('n', 'e', 'r', 'a', 't', 'o', 'r', 0) ? KIND_COROUTINE
									     : KIND_AWAITABLE;
	if (first == TEXT8('f', 'u', 'n', 'c', 't', 'i', 'o', 'n') && !CHARS(second, 1))
		return KIND_FUNCTION;
	if (CHARS(first, 7) == TEXT8('m', 'e', 't', 'h', 'o', 'd', 0, 0))
		return KIND_METHOD;
	if (first == TEXT8('b', 'u', 'i', 'l', 't', 'i', 'n', '_') &&
	    second == TEXT8('f', 'u', 'n', 'c', 't', 'i', 'o', 'n'))
		return KIND_BUILTIN;
	if (first == TEXT8('f', 'u', 'n', 'c', 't', 'o', 'o', 'l') &&
	    second == TEXT8('s', '.', 'p', 'a', 'r', 't', 'i', 'a'))
		return KIND_PARTIAL;
	if (CHARS(first, 7) == TEXT8('H', 'a', 'n', 'd', 'l', 'e', 0, 0) ||
	    (first == TEXT8('T', 'i', 'm', 'e', 'r', 'H', 'a', 'n') &&
	     CHARS(second, 4) == TEXT8('d', 'l', 'e', 0, 0, 0, 0, 0)))
		return KIND_HANDLE;
	return KIND_OTHER;
}

/* What `object` is: enum kind. A class made of Task or Future is one. */
__noinline int WALK_NAME(python_kind)(__u64 object)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 type;
	int kind, i;

	if (!w)
		return KIND_OTHER;
	r = python_record_of(w);
	if (!object || read_word(field(r, object, OBJECT_TYPE), &type))
		return KIND_OTHER;
	for (i = 0; i < BASES_MAX; i++) {
		w->work++;
		if (read_memory(field(r, type, TYPE_NAME), &w->scratch[TYPE_AT], 16) ||
		    read_memory(w->scratch[TYPE_AT], &w->scratch[TYPE_AT + 2], 16))
			return KIND_OTHER;
		kind = named_kind(w->scratch[TYPE_AT + 2], w->scratch[TYPE_AT + 3]);
		/* Tasks that are not as this version's are none that we know of. */
		if (kind == KIND_TASK && w->scratch[TYPE_AT + 1] != r->async.task_size)
			return KIND_OTHER;
		if (kind && (!i || kind == KIND_TASK || kind == KIND_FUTURE))
			return kind;
		if (read_word(field(r, type, TYPE_BASE), &type) || !type)
			return KIND_OTHER;
	}
	return KIND_OTHER;
}

/* The number of the function's qualified name in python_async.names; PYTHON_ASYNC_NAMES: none. */
static __always_inline __u32 function_name(struct walk *w, __u64 function)
{
	const struct python_record *r = python_record_of(w);
	__u64 name;
	__u32 i, found = PYTHON_ASYNC_NAMES;

	if (read_word(function + r->async.func_qualname, &name))
		return PYTHON_ASYNC_NAMES;
	name = WALK_NAME(python_str)(name);
	for (i = 0; i < PYTHON_ASYNC_NAMES; i++)
		if (name && r->async.names[i] == name)
			found = i;
	return found;
}

/* --- who waits ------------------------------------------------------------------------------- */

/* The task that this callback makes go on; 0: it is no such callback. */
__noinline __u64 WALK_NAME(python_task_of)(__u64 callback)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *object, name;
	int kind;

	if (!w)
		return 0;
	r = python_record_of(w);
	object = &w->scratch[OBJECT_AT];
	kind = WALK_NAME(python_kind)(callback);
	if (kind == KIND_METH_WRAPPER) {
		if (read_word(field(r, callback, FIRST_FIELD), &object[1]))
			return 0;
	} else if (kind == KIND_BUILTIN) {
		/* 3.10 on. There are other methods of tasks. */
		if (read_memory(field(r, callback, CFUNCTION_ML), object, 16) ||
		    read_word(object[0], &name) || read_memory(name, &object[2], 16) ||
		    object[2] != TEXT8('t', 'a', 's', 'k', '_', 'w', 'a', 'k') ||
		    CHARS(object[3], 4) != TEXT8('e', 'u', 'p', 0, 0, 0, 0, 0))
			return 0;
	} else {
		return 0;
	}
	return WALK_NAME(python_kind)(object[1]) == KIND_TASK ? object[1] : 0;
}

/* 3.11 to 3.13: the task that entered this TaskGroup; 0: it can't be told. Whatever lies there in
 * an object that has got a real __dict__ is no task. */
__noinline __u64 WALK_NAME(python_group_task)(__u64 group)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 values = group, task;

	if (!w)
		return 0;
	r = python_record_of(w);
	if (r->async.values < 0 && read_word(group + (__s64)r->async.values, &values))
		return 0;
	if (r->async.values >= 0)
		values += (__u64)r->async.values;
	/* 3.12: a pointer that is made odd. */
	values += values & 1;
	if (!r->async.values || read_word(values + 8 * PARENT_TASK, &task))
		return 0;
	return WALK_NAME(python_kind)(task) == KIND_TASK ? task : 0;
}

/* The first future in cells of a closure: gather()'s and shield()'s `outer`, wait()'s `waiter`. */
__noinline __u64 WALK_NAME(python_cell_future)(__u64 closure)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 nr, cell, object;
	__u32 i;
	int kind;

	if (!w)
		return 0;
	r = python_record_of(w);
	if (!closure || read_word(field(r, closure, VAR_SIZE), &nr))
		return 0;
	for (i = 0; i < CELLS_MAX && i < nr; i++) {
		if (read_word(field(r, closure, TUPLE_ITEMS) + 8 * (__u64)i, &cell) ||
		    read_word(field(r, cell, CELL_CONTENT), &object))
			return 0;
		kind = WALK_NAME(python_kind)(object);
		if (kind == KIND_FUTURE || kind == KIND_TASK)
			return object;
	}
	return 0;
}

/* What waits by means of this callback of a future: another future, or a task. 0: nobody knows; 1:
 * nobody. */
static __always_inline __u64 awaiter_of(struct walk *w, __u64 callback)
{
	const struct python_record *r = python_record_of(w);
	__u64 *object = &w->scratch[OBJECT_AT], found;
	__u32 name;
	int kind;

	found = WALK_NAME(python_task_of)(callback);
	if (found)
		return found;
	kind = WALK_NAME(python_kind)(callback);
	if (kind == KIND_FUNCTION) {
		name = function_name(w, callback);
		if (name == PYTHON_ASYNC_ROOT)
			return 1;
		if ((name != PYTHON_ASYNC_GATHER && name != PYTHON_ASYNC_GATHER_3_9 &&
		     name != PYTHON_ASYNC_WAIT && name != PYTHON_ASYNC_SHIELD) ||
		    read_word(callback + r->async.func_closure, &found))
			return 0;
		return WALK_NAME(python_cell_future)(found);
	}
	if (kind != KIND_METHOD && kind != KIND_PARTIAL)
		return 0;
	/* A function, and what it is called with: self, or a tuple. */
	if (read_memory(field(r, callback, METHOD_FUNC), object, 16))
		return 0;
	name = function_name(w, object[0]);
	if (kind == KIND_METHOD)
		return name == PYTHON_ASYNC_GROUP ? WALK_NAME(python_group_task)(object[1]) : 0;
	if (name != PYTHON_ASYNC_RELEASE || read_word(field(r, object[1], TUPLE_ITEMS), &found) ||
	    WALK_NAME(python_kind)(found) != KIND_FUTURE)
		return 0;
	return found;
}

/* 3.14 on: the member of a set, if it has no other; else 0. */
__noinline __u64 WALK_NAME(python_only_member)(__u64 set)
{
	enum { SMALL_TABLE = 8 };
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *object, key;
	__u32 i;

	if (!w)
		return 0;
	r = python_record_of(w);
	object = &w->scratch[OBJECT_AT];
	if (read_memory(field(r, set, SET_USED), object, 24) || object[0] != 1 ||
	    object[1] != SMALL_TABLE - 1)
		return 0;
	for (i = 0; i < SMALL_TABLE; i++)
		if (!read_word(object[2] + 16 * (__u64)i, &key) &&
		    WALK_NAME(python_kind)(key) == KIND_TASK)
			return key;
	return 0;
}

/* The walk goes on where the task was found. */
static __always_inline int end_async(__u64 *s)
{
	s[S_STAGE] &= ~(__u64)STAGE_ASYNC;
	return STOP_NONE;
}

static __always_inline int end_async_note(struct walk *w, __u64 *s, enum frame_note note)
{
	end_async(s);
	return push_note(w, RUNTIME_PYTHON, note);
}

/* The task at `task` waits for what was pushed. */
static __always_inline int take_awaiter(struct walk *w, __u64 *s, __u64 task)
{
	__u64 *a = async_state(w);

	a[A_FUTURE] = task;
	a[A_NR_CHAIN] = 0;
	a[A_MODE] = ASYNC_DOWN;
	if (read_word(task + python_record_of(w)->async.task_coro, &a[A_NEXT]))
		return end_async_note(w, s, FRAME_NOTE_AWAITER_UNKNOWN);
	return push_note(w, RUNTIME_PYTHON, FRAME_NOTE_AWAITED_BY);
}

/* `awaiter` waits for A_FUTURE. */
static __always_inline int go_outwards(struct walk *w, __u64 *s, __u64 awaiter)
{
	__u64 *a = async_state(w);

	switch (WALK_NAME(python_kind)(awaiter)) {
	case KIND_TASK:
		return take_awaiter(w, s, awaiter);
	case KIND_FUTURE: /* for which in turn something waits */
		a[A_FUTURE] = awaiter;
		a[A_MODE] = ASYNC_FIND;
		return STOP_NONE;
	default:
		return end_async_note(w, s, FRAME_NOTE_AWAITER_UNKNOWN);
	}
}

__noinline int WALK_NAME(python_async_find)(void)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *s, *a, awaiter, list;
	__u8 is_set;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	s = python_state(w);
	a = async_state(w);
	if (r->async.fut_awaited_by) {
		if (read_word(a[A_FUTURE] + r->async.fut_awaited_by, &awaiter) ||
		    read_memory(a[A_FUTURE] + r->async.fut_awaited_by_is_set, &is_set, 1))
			return end_async_note(w, s, FRAME_NOTE_AWAITER_UNKNOWN);
		if (!awaiter)
			return end_async(s);
		if (is_set & 1) {
			awaiter = WALK_NAME(python_only_member)(awaiter);
			if (!awaiter)
				return end_async_note(w, s, FRAME_NOTE_AWAITED_BY_SEVERAL);
		}
		return go_outwards(w, s, awaiter);
	}
	a[A_CALLBACK] = 0;
	a[A_AWAITER] = 0;
	a[A_UNKNOWN] = 0;
	a[A_NR_CALLBACKS] = 0;
	if (read_word(field(r, a[A_FUTURE], FUTURE_CALLBACKS), &list) ||
	    (list && read_word(field(r, list, VAR_SIZE), &a[A_NR_CALLBACKS])))
		return end_async_note(w, s, FRAME_NOTE_AWAITER_UNKNOWN);
	a[A_MODE] = ASYNC_CALLBACKS;
	return STOP_NONE;
}

/* The address of callback number A_CALLBACK; 0: there is none. */
static __always_inline __u64 callback_at(struct walk *w)
{
	const struct python_record *r = python_record_of(w);
	__u64 *a = async_state(w), at, callback;

	if (!a[A_CALLBACK])
		return read_word(field(r, a[A_FUTURE], FUTURE_CALLBACK), &callback) ? 0 : callback;
	/* Tuples of a callback and its context. */
	if (read_word(field(r, a[A_FUTURE], FUTURE_CALLBACKS), &at) ||
	    read_word(field(r, at, LIST_ITEMS), &at) ||
	    read_word(at + 8 * (a[A_CALLBACK] - 1), &at) ||
	    read_word(field(r, at, TUPLE_ITEMS), &callback))
		return 0;
	return callback;
}

/* Up to 3.13: looks at a callback. */
__noinline int WALK_NAME(python_async_callback)(void)
{
	struct walk *w = current_walk();
	__u64 *s, *a, awaiter, callback;

	if (!w)
		return STOP_INTERNAL;
	s = python_state(w);
	a = async_state(w);
	if (a[A_CALLBACK] > a[A_NR_CALLBACKS]) {
		if (a[A_AWAITER])
			return go_outwards(w, s, a[A_AWAITER]);
		return a[A_UNKNOWN] ? end_async_note(w, s, FRAME_NOTE_AWAITER_UNKNOWN)
				    : end_async(s);
	}
	if (a[A_CALLBACK] >= CALLBACKS_MAX)
		return end_async_note(w, s, FRAME_NOTE_AWAITER_UNKNOWN);
	callback = callback_at(w);
	a[A_CALLBACK]++;
	if (!callback)
		return STOP_NONE;
	awaiter = awaiter_of(w, callback);
	if (!awaiter)
		a[A_UNKNOWN] = 1;
	if (awaiter <= 1 || awaiter == a[A_AWAITER])
		return STOP_NONE;
	if (a[A_AWAITER])
		return end_async_note(w, s, FRAME_NOTE_AWAITED_BY_SEVERAL);
	a[A_AWAITER] = awaiter;
	return STOP_NONE;
}

/* --- where it waits -------------------------------------------------------------------------- */

/* Where its frame is. */
static __always_inline __u64 generator_frame(const struct python_record *r, __u64 object)
{
	__u64 frame = object + r->async.gen_frame;

	if (r->frames == PYTHON_FRAME_OBJECTS || r->frames == PYTHON_FRAME_OBJECTS_CFRAME)
		return read_word(frame, &frame) ? 0 : frame;
	return frame;
}

/* What the coroutine awaits: the topmost value of its frame. 0: it is not suspended. */
__noinline __u64 WALK_NAME(python_awaited)(__u64 object)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 frame, top = 0, value;
	__s32 depth = 1;
	__s8 state;

	if (!w)
		return 0;
	r = python_record_of(w);
	frame = generator_frame(r, object);
	if (!frame)
		return 0;
	if (r->async.state) {
		top = r->async.gen_state ? object + r->async.gen_state : frame + r->f_owner;
		if (read_memory(top, &state, 1) || state != r->async.state)
			return 0;
	}
	if (r->async.f_depth && (read_memory(frame + r->async.f_depth, &depth, 4) || depth <= 0))
		return 0;
	/* The values, or a pointer to them, or behind the topmost one. */
	top = frame + r->async.f_values;
	if (!(r->async.flags & PYTHON_ASYNC_VALUES_INLINE) && (read_word(top, &top) || !top))
		return 0;
	if (r->async.f_depth)
		top += 8 * (__u64)(__u32)depth;
	if (r->async.flags & PYTHON_ASYNC_INDEXED)
		top -= 8;
	return read_word(top - 8, &value) ? 0 : value & ~7ull;
}

/* A coroutine more, going inwards. */
__noinline int WALK_NAME(python_async_down)(void)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *a, object, at, next;
	int kind;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	a = async_state(w);
	object = a[A_NEXT];
	at = a[A_NR_CHAIN];
	kind = WALK_NAME(python_kind)(object);
	a[A_MODE] = ASYNC_PUSH;
	if (kind == KIND_FUTURE_ITER)
		return STOP_NONE;
	if (kind == KIND_AWAITABLE && !read_word(field(r, object, FIRST_FIELD), &a[A_NEXT])) {
		a[A_MODE] = ASYNC_DOWN;
		return STOP_NONE;
	}
	if ((kind != KIND_COROUTINE && kind != KIND_GENERATOR) || at >= CHAIN_MAX)
		return push_note(w, RUNTIME_PYTHON, FRAME_NOTE_AWAITER_UNKNOWN);
	next = WALK_NAME(python_awaited)(object);
	if (!next)
		return push_note(w, RUNTIME_PYTHON, FRAME_NOTE_AWAITER_UNKNOWN);
	barrier_var(at);
	if (at < CHAIN_MAX)
		w->scratch[CHAIN_AT + at] = generator_frame(r, object);
	a[A_NR_CHAIN]++;
	a[A_NEXT] = next;
	/* Up to 3.12 a generator may be suspended for other reasons, with anything on its stack. */
	if (kind == KIND_GENERATOR && !(r->async.flags & PYTHON_ASYNC_YIELD_FROM) &&
	    WALK_NAME(python_kind)(next) != KIND_FUTURE_ITER)
		return push_note(w, RUNTIME_PYTHON, FRAME_NOTE_AWAITER_UNKNOWN);
	a[A_MODE] = ASYNC_DOWN;
	return STOP_NONE;
}

__noinline int WALK_NAME(python_async_push)(void)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *s, *a, at;
	int frame = -1, stop;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	s = python_state(w);
	a = async_state(w);
	if (!a[A_NR_CHAIN]) {
		a[A_MODE] = ASYNC_FIND;
		return STOP_NONE;
	}
	at = --a[A_NR_CHAIN];
	barrier_var(at);
	if (at < CHAIN_MAX)
		frame = frame_words(w, w->scratch[CHAIN_AT + at], r->f_size);
	if (frame < 0)
		return end_async_note(w, s, FRAME_NOTE_UNREADABLE);
	stop = WALK_NAME(python_push)((__u32)frame);
	if (stop == NONSENSE)
		return end_async_note(w, s, FRAME_NOTE_UNREADABLE);
	return stop > 0 ? stop : STOP_NONE;
}

/* --- where it begins ------------------------------------------------------------------------- */

/* Is the code object that was read Handle._run()'s? */
static __always_inline bool is_handle_run(struct walk *w, const struct python_record *r)
{
	return half_of(w, CODE_AT, r->async.co_argcount) == 1 &&
	       WALK_NAME(python_str)(word_of(w, CODE_AT, r->co_name)) ==
		       r->async.names[PYTHON_ASYNC_RUN];
}

/* The frame at S_FRAME is Handle._run()'s, and has not been pushed: what task does it run? */
__noinline int WALK_NAME(python_async_begin)(void)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *s, *a, self, callback, task;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	s = python_state(w);
	a = async_state(w);
	s[S_STAGE] = (s[S_STAGE] | STAGE_AWAITED) & ~(__u64)STAGE_ASYNC;
	if (read_word(s[S_FRAME] + r->async.f_locals, &self))
		return STOP_NONE;
	self &= ~7ull;
	if (WALK_NAME(python_kind)(self) != KIND_HANDLE ||
	    read_word(field(r, self, HANDLE_CALLBACK), &callback))
		return STOP_NONE;
	task = WALK_NAME(python_task_of)(callback);
	if (!task)
		return STOP_NONE;
	a[A_MODE] = ASYNC_FIND;
	a[A_FUTURE] = task;
	s[S_STAGE] = (s[S_STAGE] | STAGE_ASYNC) & ~(__u64)STAGE_COROUTINE;
	return STOP_NONE;
}

/*
 * Is the frame that was read one that runs a coroutine, but no task that we
 * know of? What would wait for that can't be told. It is another event loop, a task that is written
 * in Python or has just been made and begins at once, or a program that does it by itself. Between
 * coroutines there may be generators.
 */
static __always_inline int pass_coroutine(struct walk *w, const struct python_record *r, __u64 *s)
{
	enum { GENERATOR = 0x20, COROUTINE = 0x80, ASYNC_GENERATOR = 0x200 }; /* CO_* */
	__u32 flags = half_of(w, CODE_AT, r->async.co_flags);

	if (flags & (COROUTINE | ASYNC_GENERATOR))
		s[S_STAGE] |= STAGE_COROUTINE;
	if (flags & (COROUTINE | ASYNC_GENERATOR | GENERATOR) || !(s[S_STAGE] & STAGE_COROUTINE))
		return STOP_NONE;
	s[S_STAGE] &= ~(__u64)STAGE_COROUTINE;
	return push_note(w, RUNTIME_PYTHON, FRAME_NOTE_AWAITER_UNKNOWN);
}

/* The frame that was read is one of the thread's own: RUNS_TASK, or STOP_NONE, or a stop reason. */
static __always_inline int before_push(struct walk *w, const struct python_record *r, __u64 *s)
{
	if (!(s[S_STAGE] & STAGE_AWAITED) && is_handle_run(w, r))
		return RUNS_TASK;
	s[S_STAGE] &= ~(__u64)STAGE_AWAITED;
	return pass_coroutine(w, r, s);
}

/* python_push() said that it runs a task. */
static __always_inline int begin_async(struct walk *w, __u64 *s)
{
	__u64 *a = async_state(w);

	a[A_MODE] = ASYNC_BEGIN;
	a[A_LEFT] = ASYNC_WORK_MAX;
	s[S_STAGE] |= STAGE_ASYNC;
	return STOP_NONE;
}

/* One unit of work. Called by the step itself: further functions are three levels deep. */
static __always_inline int async_step(struct walk *w, __u64 *s)
{
	__u64 *a = async_state(w);

	if (!a[A_LEFT])
		return end_async_note(w, s, FRAME_NOTE_AWAITER_UNKNOWN);
	a[A_LEFT]--;
	switch (a[A_MODE]) {
	case ASYNC_BEGIN:
		return WALK_NAME(python_async_begin)();
	case ASYNC_FIND:
		return WALK_NAME(python_async_find)();
	case ASYNC_CALLBACKS:
		return WALK_NAME(python_async_callback)();
	case ASYNC_DOWN:
		return WALK_NAME(python_async_down)();
	default:
		return WALK_NAME(python_async_push)();
	}
}
