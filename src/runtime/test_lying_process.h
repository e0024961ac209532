/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps over processes that lie in their memory, so that the walker would read without end: x86-64.
 * What a test puts there is made by its runtime's record; walks begin in code that the runtime has
 * made, or in a function that LEAF is, at the begin of the stack.
 */
#pragma once

#include "bpf/host/walk_host.h"
#include "runtime/runtime.h"

#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	CODE = 0x400000,
	LEAF = CODE,	     /* calls nothing of itself: it has a return address only */
	LOOP = CODE + 0x100, /* likewise, and runs the runtime's frames */
	CODE_SIZE = 0x200,
	MADE = 0x500000, /* code that the runtime has made */
	MADE_SIZE = 0x1000,
	STACK = 0x10000000,
	STACK_SIZE = 4 << 20,
	HEAP = 0x20000000,
	HEAP_SIZE = 16 << 20,
	THREAD = HEAP + 0x100, /* the thread pointer */
	LIE = HEAP + 0x1000,   /* from here on the heap is the test's */
	RECORD_CELL = 8192,
	FIRST_RULE = 8,
	RULES = 16,
};

static struct {
	struct unwind_file files[2];
	struct unwind_rule rules[RULES];
	struct arena_segment *segment;
	uint8_t *stack, *heap;
	uint8_t code[CODE_SIZE], made[MADE_SIZE];
	struct runtime_record header;
	const void *record;
	__u64 regs[UNWIND_REGS_MAX];
	uint32_t nr_reads; /* but for those of the stack, which are windows */
	struct walk walk;
} lie;

static inline uint8_t *lie_at(uint64_t addr, size_t size)
{
	const struct {
		uint64_t start, size;
		uint8_t *bytes;
	} areas[] = { { CODE, CODE_SIZE, lie.code },
		      { MADE, MADE_SIZE, lie.made },
		      { STACK, STACK_SIZE, lie.stack },
		      { HEAP, HEAP_SIZE, lie.heap } };

	for (size_t i = 0; i < 4; i++)
		if (addr >= areas[i].start && addr - areas[i].start <= areas[i].size &&
		    size <= areas[i].size - (addr - areas[i].start))
			return areas[i].bytes + (addr - areas[i].start);
	return NULL;
}

static inline int lie_read(void *ctx, __u64 addr, void *to, __u32 size)
{
	const uint8_t *from = lie_at(addr, size);

	(void)ctx;
	lie.nr_reads += addr < STACK || addr >= STACK + STACK_SIZE;
	if (!from)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static inline void lie_put(uint64_t addr, uint64_t value)
{
	uint8_t *to = lie_at(addr, 8);

	ASSERT(to);
	memcpy(to, &value, 8);
}

/* `record`, of `size` bytes, is borrowed until the walk. */
static inline void lie_set_up(uint32_t runtime, const void *record, size_t size)
{
	struct unwind_mapping *m;

	memset(&lie, 0, sizeof(lie));
	lie.segment = calloc(1, sizeof(*lie.segment));
	lie.stack = calloc(1, STACK_SIZE);
	lie.heap = calloc(1, HEAP_SIZE);
	ASSERT(lie.segment && lie.stack && lie.heap);
	m = (struct unwind_mapping *)lie.segment->cells;
	m[0] = (struct unwind_mapping){ CODE, CODE + CODE_SIZE, CODE, 1, 0 };
	m[1] = (struct unwind_mapping){ MADE, MADE + MADE_SIZE, 0, MAPPING_ANON, runtime };
	lie.files[1] = (struct unwind_file){
		.nr_buckets = 2, .buckets = 1024, .rows = 2048, .state = FILE_STATE_LOADED
	};
	lie.rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	lie.rules[RULE_FRAME_POINTER] =
		(struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_ANON };
	for (uint32_t id = 0; id < RULES - RULE_RUNTIMES; id++)
		lie.rules[RULE_RUNTIMES + id] =
			(struct unwind_rule){ .cfa = CFA_RUNTIME, .cfa_off = (int32_t)id };
	for (uint32_t i = 0; i < 2; i++) {
		struct unwind_rule *r = &lie.rules[RULES - 2 + i];

		*r = (struct unwind_rule){
			.cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = 8, .ra_off = -1
		};
		for (uint32_t slot = 0; slot < UNWIND_SLOTS; slot++)
			r->slot_off[slot] = SLOT_SAME;
		if (i)
			r->ra |= (__u8)(runtime << RULE_RUNTIME_SHIFT);
		lie.segment->cells[1024 + i] = BUCKET(i, 1);
		lie.segment->cells[2048 + i] = ROW(0, RULES - 2 + i);
	}
	lie.header = (struct runtime_record){ .runtime = runtime, .size = (__u32)size };
	lie.record = record;
	lie.regs[X86_RSP] = STACK;
}

/* How the walk ended that began at `pc`. */
static inline int lie_walk(uint64_t pc)
{
	struct runtime_record *header = (struct runtime_record *)&lie.segment->cells[RECORD_CELL];
	const struct walk_memory memory = { .read = lie_read };
	struct arena_segment *const segments[] = { lie.segment };
	const struct walk_tables tables = { lie.files, 2, lie.rules, RULES, segments, 1 };
	struct walk_input input = {
		.machine = EM_X86_64,
		.pc = pc,
		.regs = lie.regs,
		.process = { .generation = 7, .nr_mappings = 2, .runtimes = RECORD_CELL },
		.max_frames = SAMPLE_FRAMES_MAX,
		.thread_pointer = THREAD,
	};

	*header = lie.header;
	memcpy(header + 1, lie.record, lie.header.size);
	return walk_host(&tables, &memory, &input, &lie.walk);
}

static inline void lie_tear_down(void)
{
	free(lie.segment);
	free(lie.stack);
	free(lie.heap);
}

/* The walk was cut, before it had read more than a millisecond takes. */
static inline void assert_cut(int stop)
{
	uint32_t nr_reads = lie.nr_reads;

	lie_tear_down();
	ASSERT_EQ(stop, STOP_TOO_MUCH_WORK);
	ASSERT(nr_reads < 5 * WALK_WORK_MAX);
}
