// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/python_async.h"

#include <errno.h>
#include <string.h>

/*
 * 64 bits, without Py_GIL_DISABLED: with it an object's header has 16 bytes more. Tasks: struct
 * TaskObj of Modules/_asynciomodule.c (3.14 on also the section .AsyncioDebug); others: the headers
 * of these versions. 3.15's are 3.14's, but the states of coroutines have other numbers, and on
 * what is awaited lies an index.
 */
static const struct async_version {
	uint8_t minor;
	uint8_t task_size, task_coro, awaited_by, awaited_by_is_set;
	uint8_t func_qualname, func_closure, co_argcount;
	uint8_t gen_frame, gen_state;
	int8_t state; /* FRAME_SUSPENDED_YIELD_FROM; up to 3.12: FRAME_SUSPENDED; 0: has none */
	uint16_t f_locals;
	uint8_t f_values, f_depth, flags;
	int8_t values;
} versions[] = {
	{ 7, 136, 112, 0, 0, 104, 48, 16, 16, 0, 0, 360, 72, 0, 0, 0 },
	{ 8, 144, 112, 0, 0, 104, 48, 16, 16, 0, 0, 360, 72, 0, 0, 0 },
	{ 9, 184, 152, 0, 0, 104, 48, 16, 16, 0, 0, 360, 72, 0, 0, 0 },
	{ 10, 192, 160, 0, 0, 40, 72, 16, 16, 0, -1, 352, 64, 80, 0, 0 },
	{ 11, 176, 136, 0, 0, 40, 72, 56, 80, 75, -1, 72, 72, 64, PYTHON_ASYNC_VALUES_INLINE, -32 },
	{ 12, 176, 136, 0, 0, 40, 72, 52, 72, 67, -1, 72, 72, 64, PYTHON_ASYNC_VALUES_INLINE, -24 },
	{ 13, 144, 120, 0, 0, 40, 72, 52, 72, 67, -1, 72, 72, 64,
	  PYTHON_ASYNC_VALUES_INLINE | PYTHON_ASYNC_YIELD_FROM, 24 },
	{ 14, 168, 128, 96, 109, 40, 72, 52, 72, 67, -1, 80, 64, 0, PYTHON_ASYNC_YIELD_FROM, 0 },
	{ 15, 168, 128, 96, 109, 40, 72, 52, 72, 67, 2, 80, 64, 0,
	  PYTHON_ASYNC_YIELD_FROM | PYTHON_ASYNC_INDEXED, 0 },
};

/* As python_text() has it of an ASCII str. */
static uint64_t text_of(const struct python_record *r, const char *s)
{
	__u64 words[PYTHON_TEXT_WORDS + 1] = { 0 };
	size_t len = strlen(s);

	memcpy(words, s, len < sizeof(words) ? len : sizeof(words));
	return python_text(
		len, words,
		python_text_size(len, 1 | PYTHON_STR_COMPACT | PYTHON_STR_ASCII, r->str_ascii));
}

int python_async_of(const struct python_layout *layout, struct python_record *record)
{
	static const char *const names[PYTHON_ASYNC_NAMES] = {
		[PYTHON_ASYNC_ROOT] = "_run_until_complete_cb",
		[PYTHON_ASYNC_GATHER] = "gather.<locals>._done_callback",
		[PYTHON_ASYNC_WAIT] = "_wait.<locals>._on_completion",
		[PYTHON_ASYNC_SHIELD] = "shield.<locals>._inner_done_callback",
		[PYTHON_ASYNC_RELEASE] = "_release_waiter",
		[PYTHON_ASYNC_GROUP] = "TaskGroup._on_task_done",
	};
	const struct async_version *v = versions;
	const struct async_version *end = versions + sizeof(versions) / sizeof(versions[0]);
	/* Before 3.11 behind the counts of arguments, locals and stack; then before them. */
	unsigned int flags = layout->minor >= 11 ? 48 : layout->minor >= 8 ? 36 : 32;
	uint16_t more = layout->free_threaded ? 16 : 0;

	while (v < end && v->minor != layout->minor)
		v++;
	/* Of later free-threaded ones only sizes are known to us. */
	if (v == end || (layout->free_threaded && v->minor != 13))
		return -ENOTSUP;
	record->async = (struct python_async){
		.task_size = (uint16_t)(v->task_size + more),
		.task_coro = (uint16_t)(v->task_coro + more),
		.fut_awaited_by = v->awaited_by,
		.fut_awaited_by_is_set = v->awaited_by_is_set,
		.func_qualname = (uint16_t)(v->func_qualname + more),
		.func_closure = (uint16_t)(v->func_closure + more),
		.co_argcount = (uint16_t)(v->co_argcount + more),
		.co_flags = (uint16_t)(flags + more),
		.header = more,
		.f_locals = v->f_locals,
		.f_values = v->f_values,
		.f_depth = v->f_depth,
		.gen_frame = (uint16_t)(v->gen_frame + more),
		.gen_state = (uint16_t)(v->gen_state ? v->gen_state + more : 0),
		.values = (int16_t)(v->values + more),
		.state = v->state,
		.flags = v->flags,
	};
	for (size_t i = 0; i < PYTHON_ASYNC_NAMES; i++)
		if (names[i])
			record->async.names[i] = text_of(record, names[i]);
	/* 3.9.2 has the other name, 3.9.18 this one. */
	if (layout->minor == 9)
		record->async.names[PYTHON_ASYNC_GATHER_3_9] =
			text_of(record, "_gather.<locals>._done_callback");
	/* Up to 3.10 a code object has no more than the name. */
	record->async.names[PYTHON_ASYNC_RUN] =
		text_of(record, layout->co_qualname ? "Handle._run" : "_run");
	record->flags |= PYTHON_ASYNC;
	return 0;
}
