// SPDX-License-Identifier: Apache-2.0
/* V8's step over a process that lies: how much is read before the stack is cut. */
#include "runtime/test_lying_process.h"
#include "runtime/v8/v8_abi.h"

enum {
	PROMISE_TYPE = 1,
	REACTION_TYPE,
	CONTEXT_TYPE,
	FUNCTION_TYPE = 10,
	MAPS = LIE,		/* 0x40 each, by type */
	OBJECTS = LIE + 0x1000, /* 0x80 each */
};

static const struct v8_record record = {
	.entry_start = LOOP + 0x40,
	.entry_pushed = LOOP + 0x44,
	.entry_size = 8,
	.map_type = 12,
	.function_first = FUNCTION_TYPE,
	.function_last = FUNCTION_TYPE,
	.function_shared = 16,
	.shared_script = 16,
	.fp_context = -8,
	.fp_function = -16,
	.async = { .promise = PROMISE_TYPE,
		   .reaction = REACTION_TYPE,
		   .script = 99,
		   .function = 98,
		   .generator = 97,
		   .next = 8,
		   .fulfill = 24,
		   .chained = 32,
		   .function_context = 32 },
};

/* A pointer to object number `n`, which is of that type. */
static uint64_t object(unsigned int n, unsigned int type)
{
	uint64_t map = MAPS + 0x40 * type, at = OBJECTS + 0x80 * n;

	lie_put(map + 8, (uint64_t)type << 32);
	lie_put(at, map | 1);
	return at | 1;
}

static void set_field(uint64_t object, unsigned int offset, uint64_t value)
{
	lie_put(object - 1 + offset, value);
}

/*
 * --async: loop after loop goes on with an async function, for which a promise waits that waits for
 * itself, by way of a function of Promise.all()'s.
 */
TEST(promises_without_end_cut_the_stack)
{
	enum { FRAME = 4, ROUNDS = 2000 };
	uint64_t context, promise, reaction, handler;

	lie_set_up(RUNTIME_V8, &record, sizeof(record));
	promise = object(0, PROMISE_TYPE);
	reaction = object(1, REACTION_TYPE);
	handler = object(2, FUNCTION_TYPE);
	context = object(4, CONTEXT_TYPE);
	set_field(promise, 24, reaction);
	set_field(promise, 32, 0); /* pending */
	set_field(reaction, 24, handler);
	set_field(handler, 16, object(5, CONTEXT_TYPE)); /* of no script */
	set_field(handler, 32, context);
	set_field(context, 32, promise);
	set_field(object(5, CONTEXT_TYPE), 16, context);
	lie.rules[RULES - 1].cfa_off = 8 * FRAME;
	lie_put(STACK, LOOP + 0x11);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t frame = STACK + 8 + 8 * FRAME * i;

		/* The frame pointer's place is below the return address. */
		lie_put(frame + 8 * FRAME - 8, LOOP + 0x11);
		lie_put(frame + 8 * FRAME - 24, context);
		lie_put(frame + 8 * FRAME - 32, handler);
	}
	assert_cut(lie_walk(LEAF + 5));
}
