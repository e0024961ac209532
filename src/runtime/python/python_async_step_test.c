// SPDX-License-Identifier: Apache-2.0
/* The step with --async: who waits for a task. */
#include "runtime/python/python_async.h"
#include "runtime/python/test_python_step.h"

/* --- tasks that wait: function 2 is Handle._run() now, 3 a coroutine -------------------------- */

enum {
	OBJECTS = HEAP + 0xe000, /* 0x100 each */
	TYPES = HEAP + 0xf000,	 /* 0x110 each */
	TYPE_NAMES = HEAP + 0xfd00,
};
enum object { HANDLE, CALLBACK, RUNNING, WAITING, COROUTINE, ITERATOR, WAKEUP, OTHER, LIST, TUPLE };
#define OBJECT(n) (OBJECTS + 0x100ull * (n))
#define TYPE(n)	  (TYPES + 0x110ull * (n))

/* An object of a type of its own. */
static void put_object(enum object n, const char *type)
{
	put(OBJECT(n) + 8, TYPE(n));
	put(TYPE(n) + 24, TYPE_NAMES + 0x20 * n);
	put(TYPE(n) + 32, t.record.async.task_size);
	memcpy(memory_at(TYPE_NAMES + 0x20 * n, 0x20), type, strlen(type) + 1);
}

/* The coroutine awaits the object `awaited`. */
static void put_coroutine(uint64_t awaited)
{
	const struct python_async *a = &t.record.async;
	uint64_t frame = OBJECT(COROUTINE) + a->gen_frame, values = OBJECT(COROUTINE) + 0xe0, top;

	put_object(COROUTINE, "coroutine");
	if (objects()) {
		put(frame, FRAME_OF(3));
		frame = FRAME_OF(3);
	}
	put_frame(frame, 3, 0);
	if (a->gen_state)
		*memory_at(OBJECT(COROUTINE) + a->gen_state, 1) = (uint8_t)a->state;
	else if (a->state)
		*memory_at(frame + t.record.f_owner, 1) = (uint8_t)a->state;
	if (a->flags & PYTHON_ASYNC_VALUES_INLINE)
		values = frame + a->f_values;
	else
		put(frame + a->f_values, values + (a->f_depth ? 0 : 16));
	top = values + 8 - (a->flags & PYTHON_ASYNC_INDEXED ? 8 : 0);
	if (a->f_depth)
		put_32(frame + a->f_depth, 2);
	put(top, awaited);
}

/* The future at `future` has `callback`, or, from 3.14 on, the awaiter. */
static void put_awaiter(uint64_t future, uint64_t callback, uint64_t awaiter)
{
	if (t.record.async.fut_awaited_by)
		put(future + t.record.async.fut_awaited_by, awaiter);
	else
		put(future + 24, callback);
}

static void put_tasks(void)
{
	ASSERT_OK(python_async_of(&t.layout, &t.record));
	put_text(NAME_OF(2), t.layout.co_qualname ? "Handle._run" : "_run");
	put_32(CODE_OF(2) + t.record.async.co_argcount, 1);
	put_32(CODE_OF(3) + t.record.async.co_flags, 0x80);
	put(FRAME_OF(2) + t.record.async.f_locals, OBJECT(HANDLE));
	put_object(HANDLE, "Handle");
	put(OBJECT(HANDLE) + 24, OBJECT(CALLBACK));
	put_object(CALLBACK,
		   t.record.minor >= 12 ? "_asyncio.TaskStepMethWrapper" : "TaskStepMethWrapper");
	put(OBJECT(CALLBACK) + 16, OBJECT(RUNNING));
	put_object(RUNNING, "_asyncio.Task");
	put_object(WAITING, "_asyncio.Task");
	put(OBJECT(WAITING) + t.record.async.task_coro, OBJECT(COROUTINE));
	put_object(ITERATOR, "_asyncio.FutureIter");
	put_object(WAKEUP, "TaskWakeupMethWrapper");
	put(OBJECT(WAKEUP) + 16, OBJECT(WAITING));
	put_awaiter(OBJECT(RUNNING), OBJECT(WAKEUP), OBJECT(WAITING));
	put_coroutine(OBJECT(ITERATOR));
}

static void each_version_with_tasks(version_fn *test)
{
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int minor = 7; minor <= 15; minor++) {
			set_up(minor, false, i ? EM_AARCH64 : EM_X86_64);
			put_tasks();
			test();
		}
}

static void check_tasks(const char *want)
{
	char text[64];

	snprintf(text, sizeof(text), "LO0%sGO%s2E", objects() ? "" : "1", want);
	check(text);
}

static void one_waits(void)
{
	check_tasks("!63");
	/* Not wanted. */
	t.record.flags &= ~(uint32_t)PYTHON_ASYNC;
	check_tasks("");
}

TEST(who_waits_for_a_task_stands_behind_it)
{
	each_version_with_tasks(one_waits);
}

static void nobody_waits(void)
{
	put_awaiter(OBJECT(RUNNING), 0, 0);
	check_tasks("");
	/* Not a task of this version. */
	put_awaiter(OBJECT(RUNNING), OBJECT(WAKEUP), OBJECT(WAITING));
	put(TYPE(RUNNING) + 32, t.record.async.task_size + 8);
	check_tasks("");
	/* No task's callback. */
	put_object(CALLBACK, "function");
	check_tasks("");
}

TEST(nobody_waits_for_a_task)
{
	each_version_with_tasks(nobody_waits);
}

static void who_knows(void)
{
	put_object(OTHER, "function");
	put_awaiter(OBJECT(RUNNING), OBJECT(OTHER), OBJECT(OTHER));
	check_tasks("!8");
	put_awaiter(OBJECT(RUNNING), 0x10, 0x10); /* unreadable */
	check_tasks("!8");
	/* It is known who, but not what that one awaits. */
	put_awaiter(OBJECT(RUNNING), OBJECT(WAKEUP), OBJECT(WAITING));
	put_coroutine(OBJECT(OTHER));
	check_tasks("!6!83");
	/* And not where: it runs. */
	if (t.record.async.gen_state)
		*memory_at(OBJECT(COROUTINE) + t.record.async.gen_state, 1) = 77;
	else
		put(OBJECT(COROUTINE) + t.record.async.gen_frame, 0);
	check_tasks("!6!8");
}

TEST(who_waits_is_not_known)
{
	each_version_with_tasks(who_knows);
}

static void two_wait(void)
{
	put_object(OTHER, "_asyncio.Task");
	if (t.record.async.fut_awaited_by) { /* a set of two */
		put(OBJECT(RUNNING) + t.record.async.fut_awaited_by, OBJECT(LIST));
		*memory_at(OBJECT(RUNNING) + t.record.async.fut_awaited_by_is_set, 1) = 1;
		put(OBJECT(LIST) + 24, 2);
		put(OBJECT(LIST) + 32, 7);
		put(OBJECT(LIST) + 40, OBJECT(TUPLE));
		put(OBJECT(TUPLE) + 0x30, OBJECT(WAITING));
		check_tasks("!7");
		put(OBJECT(LIST) + 24, 1);
		check_tasks("!63");
		return;
	}
	put(OBJECT(RUNNING) + 40, OBJECT(LIST));
	put(OBJECT(LIST) + 16, 1);
	put(OBJECT(LIST) + 24, OBJECT(LIST) + 0x40);
	put(OBJECT(LIST) + 0x40, OBJECT(TUPLE));
	put(OBJECT(TUPLE) + 24, OBJECT(WAKEUP)); /* the same one again */
	check_tasks("!63");
	put_object(CALLBACK, "TaskWakeupMethWrapper");
	put(OBJECT(TUPLE) + 24, OBJECT(CALLBACK));
	check_tasks("!7");
	put_object(OTHER, "function");
	put(OBJECT(TUPLE) + 24, OBJECT(OTHER)); /* somebody else is told, too */
	check_tasks("!63");
	put(OBJECT(LIST) + 16, 1000000);
	check_tasks("!8");
}

TEST(several_wait_for_a_task)
{
	each_version_with_tasks(two_wait);
}

static void in_circles(void)
{
	/* A coroutine that awaits itself. */
	put_coroutine(OBJECT(COROUTINE));
	ASSERT_EQ(walk(), STOP_MAX_FRAMES);
	ASSERT_EQ(t.walk.nr_frames, 100);
	/* Something around itself: no frame, but an end. */
	put_object(OTHER, "coroutine_wrapper");
	put(OBJECT(OTHER) + 16, OBJECT(OTHER));
	put_coroutine(OBJECT(OTHER));
	check_tasks("!6!8");
	/* Tasks that wait for each other. */
	put_coroutine(OBJECT(ITERATOR));
	put_awaiter(OBJECT(WAITING), OBJECT(WAKEUP), OBJECT(WAITING));
	ASSERT_EQ(walk(), STOP_MAX_FRAMES);
	ASSERT_EQ(t.walk.nr_frames, 100);
}

TEST(what_waits_for_itself_comes_to_an_end)
{
	each_version_with_tasks(in_circles);
}

/*
 * One task after the other has callbacks of a class that is made of itself: no frames come of
 * them, and each takes 26 reads.
 */
static void endless_classes(void)
{
	enum { NR_CALLBACKS = 63 };

	/* Before 3.11 a loop has one frame; from 3.14 on no callbacks are looked at. */
	if (t.record.minor < 11 || t.record.minor > 13)
		return;
	put_object(OTHER, "nothing_we_know_of");
	put(TYPE(OTHER) + 256, TYPE(OTHER));
	put(OBJECT(RUNNING) + 40, OBJECT(LIST));
	put(OBJECT(LIST) + 16, NR_CALLBACKS);
	put(OBJECT(LIST) + 24, TRAMPOLINE);
	for (unsigned int i = 0; i < NR_CALLBACKS; i++)
		put(TRAMPOLINE + 8 * i, OBJECT(TUPLE));
	put(OBJECT(TUPLE) + 24, OBJECT(OTHER));
	put_awaiter(OBJECT(RUNNING), OBJECT(OTHER), 0);
	put_frame(FRAME_OF(4), 2, FRAME_OF(2));
	put(FRAME_OF(4) + t.record.async.f_locals, OBJECT(HANDLE));
	put_frame(FRAME_OF(2), 2, FRAME_OF(4));
	if (t.record.f_entry)
		*memory_at(FRAME_OF(2) + t.record.f_entry, 1) = 0;
	t.max_frames = SAMPLE_FRAMES_MAX;
	t.nr_reads = 0;
	ASSERT_EQ(walk(), STOP_TOO_MUCH_WORK);
	ASSERT(t.nr_reads < 5 * WALK_WORK_MAX);
}

TEST(classes_without_end_cut_the_stack)
{
	each_version_with_tasks(endless_classes);
}

static void by_itself(void)
{
	/* Function 0 is a coroutine, and no Handle is below it. */
	put_32(CODE_OF(0) + t.record.async.co_flags, 0x80);
	put_text(NAME_OF(2), "function_2");
	put_32(CODE_OF(1) + t.record.async.co_flags, 0x20);
	check(objects() ? "LO0GO!82E" : "LO01GO!82E");
	put_32(CODE_OF(2) + t.record.async.co_flags, 0x80);
	check(objects() ? "LO0GO2E" : "LO01GO2E");
}

TEST(what_runs_a_coroutine_is_not_known)
{
	each_version_with_tasks(by_itself);
}
